//! `croft quickstart`: a whole cell of real processes on this computer, mounted.

use std::{
    fs,
    io::{Write, stderr},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context;
use host::Machine;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::daemon;

#[derive(clap::Args)]
pub struct Args {
    /// How many machines; one is all that can be had so far
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1))]
    machines: u32,
    /// Where the machines live, ~/croft-quickstart if not given; starting again finds the data
    #[arg(
        long = "dir",
        value_name = "DIR",
        default_value_os_t = default_directory(),
        hide_default_value = true
    )]
    directory: PathBuf,
    /// Where to mount; DIR/mnt if not given
    #[arg(long, value_name = "PATH")]
    mount: Option<PathBuf>,
}

fn default_directory() -> PathBuf {
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    home.join("croft-quickstart")
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let directory = std::path::absolute(&args.directory)?;
    let mount = match &args.mount {
        Some(mount) => std::path::absolute(mount)?,
        None => directory.join("mnt"),
    };
    let home = directory.join("machine-1");
    if !Machine::is_home(&home) {
        Machine::init(&home, None)?;
    }
    fs::create_dir_all(&mount).with_context(|| format!("can't make {}", mount.display()))?;
    let mut child = daemon::start(&home, &mount)?;
    let (machines, at) = (args.machines, mount.display());
    let mut err = stderr();
    writeln!(err, "a cell of {machines} machine is mounted at {at}\n")?;
    writeln!(err, "  try     cp -r SOMETHING {at} && ls -l {at}")?;
    writeln!(err, "  look    croft status --dir {}", home.display())?;
    writeln!(err, "  stop    Ctrl-C; start again with the same command and the data is there")?;
    // The machine may also end by itself.
    let handle = signals.handle();
    let pid = Pid::from_child(&child);
    let waiter = std::thread::spawn(move || {
        let status = child.wait();
        handle.close();
        status
    });
    for _ in signals.forever() {
        // A second one ends it at once.
        _ = kill_process(pid, Signal::TERM);
    }
    let status = waiter.join().map_err(|_| anyhow::anyhow!("lost sight of the machine"))??;
    writeln!(err, "stopped")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
