//! `croft init`, `invite`, `join` and `revoke`: how a cell begins, grows and gets rid of a machine.

use std::{
    io::{Read, Write, stderr, stdin, stdout},
    net::SocketAddr,
    path::Path,
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::{Context, bail};
use host::Machine;

use crate::{
    machine::{self, Home},
    view::short,
    words,
};

/// More than any code has, in bytes.
const CODE_BYTES_MAX: u64 = 64 << 10;

#[derive(clap::Args)]
pub struct InitArgs {
    #[command(flatten)]
    home: Home,
    /// Where other machines reach this one: an IP, or IP:PORT; without it nobody can join
    #[arg(long, value_name = "ADDRESS", value_parser = words::listen)]
    listen: Option<SocketAddr>,
}

#[derive(clap::Args)]
pub struct InviteArgs {
    #[command(flatten)]
    home: Home,
    /// How long the code serves, as in 30m, 1h or 2d
    #[arg(long = "for", value_name = "SPAN", default_value = "1h", value_parser = words::span)]
    span: Duration,
}

#[derive(clap::Args)]
pub struct JoinArgs {
    /// What `croft invite` has printed; `-` reads it from standard input, where nobody else sees it
    code: String,
    #[command(flatten)]
    home: Home,
    /// Where other machines reach this one: an IP, or IP:PORT; the address from which this machine
    /// reaches the one that invites, if not given
    #[arg(long, value_name = "ADDRESS", value_parser = words::listen)]
    listen: Option<SocketAddr>,
}

#[derive(clap::Args)]
pub struct RevokeArgs {
    /// The machine: its key as `croft status` shows it, or as many digits as no other key begins with
    machine: String,
    #[command(flatten)]
    home: Home,
}

pub fn init(args: &InitArgs) -> anyhow::Result<ExitCode> {
    let directory = &args.home.directory;
    Machine::init(directory, args.listen)?;
    let mut err = stderr();
    writeln!(err, "made a cell of one machine in {}", directory.display())?;
    say_start(directory)?;
    match args.listen {
        Some(_) => {
            writeln!(err, "then have others join: croft invite --dir {}", directory.display())?;
        }
        None => writeln!(
            err,
            "it does not listen, so no machine can join it; for that, run it with --listen ADDRESS"
        )?,
    }
    Ok(ExitCode::SUCCESS)
}

pub fn invite(args: &InviteArgs) -> anyhow::Result<ExitCode> {
    let code = Machine::invite(&args.home.directory, args.span)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let until = now.unwrap_or_default() + args.span;
    let mut err = stderr();
    writeln!(err, "on the machine that is to join, while this one runs: croft join CODE")?;
    writeln!(
        err,
        "it serves one machine, until {}; whoever has it can join, so treat it as a secret",
        words::moment(until.as_secs())
    )?;
    writeln!(stdout(), "{}", code.reveal())?;
    Ok(ExitCode::SUCCESS)
}

pub fn join(args: &JoinArgs) -> anyhow::Result<ExitCode> {
    let code = match args.code.as_str() {
        "-" => read_code()?,
        code => code.to_owned(),
    };
    let code = code.trim();
    let listen = match args.listen {
        Some(listen) => listen,
        None => Machine::way_to(code)?,
    };
    let directory = &args.home.directory;
    Machine::join(directory, code, listen)?;
    writeln!(stderr(), "joined the cell, as the machine in {}", directory.display())?;
    say_start(directory)?;
    Ok(ExitCode::SUCCESS)
}

pub fn revoke(args: &RevokeArgs) -> anyhow::Result<ExitCode> {
    let told = machine::revoke_at(&args.home.directory, &args.machine)?;
    let key = told["key"].as_str().unwrap_or_default();
    let mut err = stderr();
    writeln!(err, "{} is no longer of the cell; nobody lets it in or listens to it", short(key))?;
    if told["was_member"] == true {
        let what = match told["has_successor"] == true {
            true => "another machine takes its seat in the group as soon as it is there",
            false => {
                "it keeps its seat in the group, as one that is away, since no other machine can take \
                 it: until one more joins, no other member may be away"
            }
        };
        writeln!(err, "{what}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn say_start(directory: &Path) -> std::io::Result<()> {
    writeln!(stderr(), "start it with: croft run --dir {} --mount PATH", directory.display())
}

fn read_code() -> anyhow::Result<String> {
    let mut code = String::new();
    let read = stdin().take(CODE_BYTES_MAX).read_to_string(&mut code);
    read.context("can't read the code from standard input")?;
    if code.trim().is_empty() {
        bail!("standard input has no code; pass on what `croft invite` prints");
    }
    Ok(code)
}
