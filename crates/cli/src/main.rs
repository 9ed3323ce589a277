//! The one binary.
//!
//! Data goes to stdout, talk to stderr. Exit codes: 0 all is well, 1 it is not, 2 the command line
//! cannot be understood.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a shell: it talks to its surroundings"
)]

mod authority;
mod bench;
mod cell;
mod daemon;
mod doctor;
mod experiments;
mod fsck;
mod graph;
mod machine;
mod passphrase;
mod quickstart;
mod quota;
mod simulate;
mod status;
mod user;
mod view;
mod words;

use std::{
    io::{ErrorKind, Write, stderr},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

/// A serverless file system: the computers of a group of people are the servers.
#[derive(Parser)]
#[command(name = "croft", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a whole cell on this computer and mount it
    Quickstart(quickstart::Args),
    /// Make a directory the home of a machine, a cell of its own
    Init(cell::InitArgs),
    /// Print a code with which more machines can join the cell
    Invite(cell::InviteArgs),
    /// Make a directory the home of a machine of the cell that a code invites to
    Join(cell::JoinArgs),
    /// Renew the certificate of this machine, which it does by itself while an issuer is at hand
    Renew(cell::RenewArgs),
    /// Send a machine of the cell away for good
    Revoke(cell::RevokeArgs),
    /// Let the cell go on from this machine, when too many others are gone for good
    Recover(cell::RecoverArgs),
    /// Keep the root key safe, by which the cell is known
    #[command(subcommand)]
    Root(authority::RootCommand),
    /// Say which machines may invite, enrol, renew and revoke
    #[command(subcommand)]
    Issuer(authority::IssuerCommand),
    /// Say who the users of the cell are, and whom machines act for
    #[command(subcommand)]
    User(user::Command),
    /// Show who may have how much and has, or set it
    Quota(quota::Args),
    /// Run a machine until it is told to stop
    Run(machine::RunArgs),
    /// Mount the tree of a machine that runs
    Mount(machine::MountArgs),
    /// Unmount it
    Umount(machine::UmountArgs),
    /// Show what a machine is doing
    Status(machine::StatusArgs),
    /// Say what is wrong and what to do; exit with 0 only if all is well
    Doctor(doctor::Args),
    /// Check that everything fits together, while it is in use; exit with 0 only if nothing is wrong
    Fsck(fsck::Args),
    /// Measure against a baseline in the same run
    #[command(subcommand)]
    Bench(bench::Command),
    /// Show the workflow graphs and whether they are immune to overload
    Graph(graph::Args),
    /// Reproduce the published tables: paper, ours, verdict
    #[command(subcommand)]
    Papers(experiments::Command),
    /// Run simulated worlds under faults; exit with 0 only if nothing was broken
    Simulate(simulate::Args),
}

/// What one thread makes another lets go of (requests, records, what is said), which this one is made for:
/// everything that a machine does for a file costs a tenth to a seventh less than with the C library's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Quickstart(args) => quickstart::run(&args),
        Command::Init(args) => cell::init(&args),
        Command::Invite(args) => cell::invite(&args),
        Command::Join(args) => cell::join(&args),
        Command::Renew(args) => cell::renew(&args),
        Command::Revoke(args) => cell::revoke(&args),
        Command::Recover(args) => cell::recover(&args),
        Command::Root(command) => authority::root(&command),
        Command::Issuer(command) => authority::issuer(&command),
        Command::User(command) => user::run(&command),
        Command::Quota(args) => quota::run(&args),
        Command::Run(args) => machine::run(&args),
        Command::Mount(args) => machine::mount(&args),
        Command::Umount(args) => machine::umount(&args),
        Command::Status(args) => machine::status(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Fsck(args) => fsck::run(&args),
        Command::Bench(command) => bench::run(&command),
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
