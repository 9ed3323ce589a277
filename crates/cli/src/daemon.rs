//! A machine in a process of its own.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

/// Starts a machine and mounts it, and waits until it is ready.
pub fn start(home: &Path, mount: &Path) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("can't find my own program")?;
    let mut child = Command::new(program)
        .args(["run", "--with-parent", "--dir"])
        .arg(home)
        .arg("--mount")
        .arg(mount)
        // What a terminal says it hears from us: twice would be an order to stop at once.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("can't start a machine")?;
    let stdout = child.stdout.take().context("a machine's output is read")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    if line != "ready\n" {
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
