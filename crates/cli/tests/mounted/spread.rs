//! A cell whose machines were set up by hand, each on a network of its own.

use std::{
    fs,
    path::PathBuf,
    sync::{MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Signal, kill_process};

use crate::{
    cell::{Cell, text},
    quickstart::ONE_AT_A_TIME,
    wires::Wires,
};

/// Whatever comes by itself comes within this time.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The members of a group, if there are enough machines.
const MEMBERS: usize = 4;

/// Machines, numbered from 0, all mounted.
pub struct Spread {
    pub machines: Vec<Cell>,
    pub wires: Wires,
    /// None if others may be at work beside it.
    alone: Option<MutexGuard<'static, ()>>,
}

impl Spread {
    /// As the README says, with the root key elsewhere: `init`, then `invite` and `join` for each other one.
    pub fn new(wires: Wires, count: usize) -> Spread {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        let mut machines: Vec<Cell> =
            (0..count).map(|machine| Cell::on(wires.way(machine))).collect();
        let (first, others) = machines.split_first_mut().expect("one at least");
        // A doctor warns where it lies open.
        let root = first.home.with_extension("root");
        let root = root.to_str().expect("it is plain text");
        first.init(&["--listen", &wires.address(0), "--root", root]);
        first.start(&[]);
        for machine in others {
            let code = text(&first.ask(&["invite"]).stdout);
            let output = machine.ask(&["join", code.trim()]);
            assert!(output.status.success(), "{}", text(&output.stderr));
            machine.start(&[]);
        }
        let spread = Spread { machines, wires, alone: Some(alone) };
        spread.await_well();
        eprintln!("{count} machines were set up by hand in {} ms", start.elapsed().as_millis());
        spread
    }

    /// From now on it mostly waits, and other tests need not.
    pub fn let_others(&mut self) {
        self.alone = None;
    }

    /// A path on a machine's mount.
    pub fn at(&self, machine: usize, name: &str) -> PathBuf {
        self.machines[machine].at(name)
    }

    /// What a machine says of itself.
    pub fn status(&self, machine: usize) -> serde_json::Value {
        let output = self.machines[machine].ask(&["status", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// The key that a machine is known by.
    pub fn key(&self, machine: usize) -> String {
        let status = self.status(machine);
        let machines = status["machines"].as_array().into_iter().flatten();
        let this = machines.into_iter().find(|machine| machine["is_this"] == true);
        this.and_then(|this| this["key"].as_str()).unwrap_or_default().to_owned()
    }

    /// Who leads the group, as a machine sees it.
    pub fn leader(&self, seen_by: usize) -> usize {
        let status = self.status(seen_by);
        let machines = status["machines"].as_array().into_iter().flatten();
        let leader = machines.into_iter().find(|machine| machine["is_leader"] == true);
        let key = leader.and_then(|leader| leader["key"].as_str()).unwrap_or_default().to_owned();
        let count = self.machines.len();
        (0..count).find(|machine| self.key(*machine) == key).expect("somebody leads")
    }

    /// How many files tell what was lost on a machine.
    pub fn lost(&self, machine: usize) -> usize {
        fs::read_dir(self.machines[machine].home.join("recovery")).map_or(0, Iterator::count)
    }

    /// What those files say.
    pub fn recovered(&self, machine: usize) -> String {
        let entries = fs::read_dir(self.machines[machine].home.join("recovery"));
        let paths = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
        paths.map(|path| text(&fs::read(path).unwrap())).collect()
    }

    /// Whether a machine finds nothing wrong with the cell.
    pub fn is_well(&self, machine: usize) -> bool {
        self.machines[machine].ask(&["doctor"]).status.success()
    }

    /// Waits until no machine finds anything wrong: all answer, and those vote that can.
    #[track_caller]
    pub fn await_well(&self) {
        let is_full = self.machines.len() >= MEMBERS;
        until("all being well", || {
            let is_well = |machine| match is_full {
                true => self.is_well(machine),
                false => self.machines[machine].ask(&["status"]).status.success(),
            };
            (0..self.machines.len()).all(is_well)
        });
    }

    /// A machine's process dies, and starts again when told.
    pub fn kill(&mut self, machine: usize) {
        self.machines[machine].kill();
    }

    /// A machine's process stands still, until what is returned is dropped.
    pub fn freeze(&self, machine: usize) -> Frozen {
        Frozen::new(self.machines[machine].pid())
    }
}

/// A process that stands still, until this is dropped.
pub struct Frozen(rustix::process::Pid);

impl Frozen {
    pub fn new(pid: rustix::process::Pid) -> Frozen {
        kill_process(pid, Signal::STOP).unwrap();
        Frozen(pid)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// Waits for something that comes by itself.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what} takes too long");
        thread::park_timeout(Duration::from_millis(10));
    }
}

/// Lets time pass that nothing can be waited for in: a session's, for one.
pub fn pass(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        thread::park_timeout(time - start.elapsed());
    }
}
