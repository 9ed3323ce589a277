//! A machine in a process of its own.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

/// What runs a machine and mounts it there, if anywhere. It stops when the thread ends that has started it.
pub fn command(home: &Path, mount: Option<&Path>) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("can't find my own program")?;
    let mut command = Command::new(program);
    command.args(["run", "--with-parent", "--dir"]).arg(home);
    if let Some(mount) = mount {
        command.arg("--mount").arg(mount);
    }
    // What a terminal says it hears from us: twice would be an order to stop at once.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
    Ok(command)
}

/// Waits until a machine says that it is ready. False if it ends instead.
pub fn await_ready(child: &mut Child) -> bool {
    let mut line = String::new();
    let stdout = child.stdout.take();
    let read = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line));
    read.is_some_and(|read| read.is_ok()) && line == "ready\n"
}

/// Starts a machine and mounts it, and waits until it is ready.
pub fn start(home: &Path, mount: &Path) -> anyhow::Result<Child> {
    let mut child = command(home, Some(mount))?.spawn().context("can't start a machine")?;
    if !await_ready(&mut child) {
        let status = child.wait()?;
        bail!("the machine did not start ({status}); what it said stands above");
    }
    Ok(child)
}

/// Tells a machine to stop, and waits until it has.
pub fn stop(mut child: Child) -> anyhow::Result<ExitStatus> {
    // It may have ended by itself.
    _ = kill_process(Pid::from_child(&child), Signal::TERM);
    Ok(child.wait()?)
}
