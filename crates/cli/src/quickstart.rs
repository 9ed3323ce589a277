//! `croft quickstart`: a whole cell of real processes on this computer, mounted.

mod fleet;

use std::{
    fs,
    io::{ErrorKind, Write, stderr},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use host::{Machine, Patrons};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::{machine, view::MEMBERS};
use fleet::{Event, Fleet};

/// The most machines: each is a process with a store of its own.
const MACHINES_MAX: i64 = 16;
/// How long machines may take to start, to join and to form a group.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether they have.
const LOOK: Duration = Duration::from_millis(100);
/// How long an invitation has to serve.
const INVITATION: Duration = Duration::from_secs(600);

#[derive(clap::Args)]
pub struct Args {
    /// How many machines, 1 to 16; if there were more before, all of them are started
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        value_parser = clap::value_parser!(u32).range(1..=MACHINES_MAX)
    )]
    machines: u32,
    /// Where the machines live, ~/croft-quickstart if not given; starting again finds the data
    #[arg(
        long = "dir",
        value_name = "DIR",
        default_value_os_t = default_directory(),
        hide_default_value = true
    )]
    directory: PathBuf,
    /// Where to mount machine 1; DIR/mnt if not given
    #[arg(long, value_name = "PATH")]
    mount: Option<PathBuf>,
    /// Mount the other machines too, each at DIR/mnt-I
    #[arg(long)]
    mounts: bool,
}

fn default_directory() -> PathBuf {
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    home.join("croft-quickstart")
}

/// Any free port of an address of this computer's own that hardly another cell has. A machine keeps the one that it
/// gets, and nobody else may take it while the machine is away.
fn any_port() -> SocketAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    (Ipv4Addr::new(127, 64 | high, middle, low), 0).into()
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let mut fleet = Fleet::new();
    let tell = fleet.teller();
    thread::spawn(move || signals.forever().for_each(|_| _ = tell.send(Event::Stop)));
    let formed = form(args, &mut fleet).and_then(|is_formed| {
        if is_formed {
            greet(&fleet)?;
            tend(&mut fleet);
        }
        Ok(())
    });
    let is_well = fleet.stop();
    formed?;
    writeln!(stderr(), "stopped")?;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Starts all machines, and makes those that there are not yet. False if somebody wants it to stop first.
fn form(args: &Args, fleet: &mut Fleet) -> anyhow::Result<bool> {
    let directory = std::path::absolute(&args.directory)?;
    let home = |number: usize| directory.join(format!("machine-{number}"));
    let first_mount = match &args.mount {
        Some(mount) => std::path::absolute(mount)?,
        None => directory.join("mnt"),
    };
    let mount = |number: usize| match number {
        1 => Some(first_mount.clone()),
        _ => args.mounts.then(|| directory.join(format!("mnt-{number}"))),
    };
    let add = |fleet: &mut Fleet, number: usize| {
        let mount = mount(number);
        mount.as_deref().map_or(Ok(()), make_directory)?;
        fleet.add(home(number), mount)
    };
    let are_there =
        (1..=MACHINES_MAX as usize).rev().find(|number| Machine::is_home(&home(*number)));
    let found = are_there.unwrap_or(0);
    if !await_rest(&(1..=found).map(home).collect::<Vec<_>>(), fleet)? {
        return Ok(false);
    }
    if found == 0 {
        make_directory(&directory)?;
        // Beside the machines: whoever makes a real cell of it finds it there, and takes it elsewhere.
        let root = directory.join("root");
        Machine::init_for(&home(1), Some(any_port()), Patrons::Any, &root)?;
    }
    // All at once: after the first time they need each other.
    for number in 1..=found.max(1) {
        if !Machine::is_home(&home(number)) {
            let missing = home(number);
            bail!("there is no machine in {}; put it back from a copy", missing.display());
        }
        add(fleet, number)?;
    }
    if !fleet.await_ready(Instant::now() + PATIENCE)? {
        return Ok(false);
    }
    for number in fleet.count() + 1..=args.machines as usize {
        join(&home(1), &home(number)).with_context(|| {
            let at = directory.display();
            format!("machine {number} can't join the cell in {at}; another --dir begins a new one")
        })?;
        add(fleet, number)?;
        if !fleet.await_ready(Instant::now() + PATIENCE)? {
            return Ok(false);
        }
    }
    await_group(fleet)
}

/// Waits until nobody runs these machines any more: those whose parent was killed take a moment to stop.
/// False if somebody wants it to stop first.
fn await_rest(homes: &[PathBuf], fleet: &mut Fleet) -> anyhow::Result<bool> {
    // One that can't push what was done any more tries for a minute.
    let until = Instant::now() + 2 * PATIENCE;
    while let Some(home) = homes.iter().find(|home| Machine::is_running(home)) {
        if machine::look(home).is_ok() || Instant::now() > until {
            bail!("the machine in {} runs already; stop it first", home.display());
        }
        if let Some(Event::Stop) = fleet.next(Some(Instant::now() + LOOK)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// There it may be already, also as what a machine that was killed has left mounted.
fn make_directory(path: &Path) -> anyhow::Result<()> {
    match fs::create_dir_all(path) {
        Err(error)
            if !matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotConnected) =>
        {
            Err(error).with_context(|| format!("can't make {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Makes one more machine. A group that has just been started may not answer at once.
fn join(founder: &Path, home: &Path) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let code = Machine::invite(founder, INVITATION)?;
        match Machine::join(home, code.reveal(), any_port()) {
            Err(failure) if Instant::now() > until => return Err(failure.into()),
            Err(_) => thread::sleep(LOOK),
            Ok(()) => return Ok(()),
        }
    }
}

/// Waits until the group is as large as it can be. False if somebody wants it to stop first.
fn await_group(fleet: &mut Fleet) -> anyhow::Result<bool> {
    let until = Instant::now() + PATIENCE;
    let wanted = MEMBERS.min(fleet.count() as u64);
    if wanted < MEMBERS {
        return Ok(true);
    }
    let mut least = members_least(fleet);
    while least < wanted && Instant::now() < until {
        match fleet.next(Some(Instant::now() + LOOK)) {
            Some(Event::Stop) => return Ok(false),
            Some(event) => say(fleet, &event),
            None => {}
        }
        least = members_least(fleet);
    }
    if least < wanted {
        writeln!(
            stderr(),
            "the group has not got {wanted} members within {} s; going on, since it may yet. `croft doctor \
             --dir {}` says what is wrong",
            PATIENCE.as_secs(),
            fleet.home(1).display()
        )?;
    }
    Ok(true)
}

/// How many members the group has, as the machine sees it that knows of the fewest.
fn members_least(fleet: &Fleet) -> u64 {
    let members = |number| {
        let status = machine::look(fleet.home(number)).ok();
        status.and_then(|status| status["group"]["members"].as_u64()).unwrap_or(0)
    };
    (1..=fleet.count()).map(members).min().unwrap_or(0)
}

/// Says what there is, and what to try.
fn greet(fleet: &Fleet) -> std::io::Result<()> {
    let mut err = stderr();
    let count = fleet.count();
    let (machines, at) = (if count == 1 { "machine" } else { "machines" }, fleet.mount(1));
    let at = at.unwrap_or(Path::new("")).display();
    writeln!(err, "a cell of {count} {machines} is mounted at {at}\n")?;
    for number in 1..=count {
        let pid = fleet.pid(number).map_or(0, |pid| pid.as_raw_nonzero().get());
        let home = fleet.home(number).display();
        let mount = fleet.mount(number).map(|path| format!(", mounted at {}", path.display()));
        let mount = mount.filter(|_| number > 1).unwrap_or_default();
        writeln!(err, "  machine {number:<3} process {pid}, lives in {home}{mount}")?;
    }
    writeln!(err, "\n  try     cp -r SOMETHING {at} && ls -l {at}")?;
    writeln!(err, "  look    croft status --dir {}", fleet.home(1).display())?;
    if let Some(pid) = fleet.pid(count).filter(|_| count as u64 >= MEMBERS) {
        let pid = pid.as_raw_nonzero();
        writeln!(err, "  break   kill -9 {pid}; the others go on, and it comes back by itself")?;
    }
    writeln!(err, "  stop    Ctrl-C; start again with the same command and the data is there")
}

/// Sees to the machines until somebody wants them to stop.
fn tend(fleet: &mut Fleet) {
    loop {
        match fleet.next(None) {
            Some(Event::Stop) => return,
            Some(event) => say(fleet, &event),
            None => {}
        }
    }
}

/// Nobody is left to tell if this fails.
fn say(fleet: &Fleet, event: &Event) {
    _ = match event {
        Event::Stop | Event::Unmounted => Ok(()),
        Event::Ready(number) => {
            let pid = fleet.pid(*number).map_or(0, |pid| pid.as_raw_nonzero().get());
            writeln!(stderr(), "machine {number} runs again, as process {pid}")
        }
        Event::Ended(number, status) => {
            let others = if fleet.count() > 1 { "the others go on, and " } else { "" };
            writeln!(
                stderr(),
                "machine {number} has ended ({status}); {others}it is started again in {} s. What it said is \
                 in {}",
                fleet.pause(*number).as_secs(),
                fleet.log(*number).display()
            )
        }
    };
}
