//! The one binary.
//!
//! Data goes to stdout, talk to stderr. Exit codes: 0 all is well, 1 it is not, 2 the command line
//! cannot be understood.

#![expect(clippy::disallowed_methods, reason = "a shell: it talks to its surroundings")]

mod experiments;
mod graph;
mod simulate;

use std::{
    io::{ErrorKind, Write, stderr},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

/// A serverless file system: the computers of a group of people are the servers.
#[derive(Parser)]
#[command(name = "croft", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the workflow graphs and whether they are immune to overload
    Graph(graph::Args),
    /// Reproduce the published tables: paper, ours, verdict
    #[command(subcommand)]
    Papers(experiments::Command),
    /// Run simulated worlds under faults; exit with 0 only if nothing was broken
    Simulate(simulate::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Graph(args) => graph::run(&args),
        Command::Papers(command) => experiments::run(&command),
        Command::Simulate(args) => simulate::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::FAILURE,
        Err(error) => {
            // Nobody is left to tell if this fails.
            let _ = writeln!(stderr(), "croft: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the reader of our output went away, which is its right.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
