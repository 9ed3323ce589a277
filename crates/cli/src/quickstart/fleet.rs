//! The machines of a cell on this computer, each in a process of its own; one that dies is started again.

use std::{
    fs::{self, File},
    io::{Write, stderr},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::{daemon, machine};

/// A machine that died is started again after this, and after twice as long each time that it dies soon.
const PAUSE_MIN: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long a stop waits until all is unmounted.
const UNMOUNT_MAX: Duration = Duration::from_secs(20);
/// How much of what a machine said is shown if it does not start.
const TAIL_BYTES: usize = 2_000;

/// What happens to a fleet.
pub enum Event {
    /// Somebody wants it to stop.
    Stop,
    /// A machine can be used.
    Ready(usize),
    /// A machine's process has ended.
    Ended(usize, ExitStatus),
    /// All are unmounted that are about to stop.
    Unmounted,
}

/// Machines, numbered from 1.
pub struct Fleet {
    units: Vec<Unit>,
    events: Receiver<Event>,
    tell: Sender<Event>,
    /// It is about to end, and nobody is started again.
    is_stopping: bool,
    /// Whether one has ended otherwise than well since it was told to stop.
    has_failed: bool,
}

/// One machine.
struct Unit {
    home: PathBuf,
    mount: Option<PathBuf>,
    /// What it says on standard error.
    log: PathBuf,
    process: Option<Process>,
    start_at: Option<Instant>,
    pause: Duration,
}

struct Process {
    pid: Pid,
    /// The process and no other, even if its number is given to another one.
    handle: OwnedFd,
    since: Instant,
    is_ready: bool,
}

impl Fleet {
    /// None yet.
    pub fn new() -> Fleet {
        let (tell, events) = mpsc::channel();
        Fleet { units: Vec::new(), events, tell, is_stopping: false, has_failed: false }
    }

    /// Where to tell it something.
    pub fn teller(&self) -> Sender<Event> {
        self.tell.clone()
    }

    /// One more machine, which is started.
    pub fn add(&mut self, home: PathBuf, mount: Option<PathBuf>) -> anyhow::Result<()> {
        let log = home.with_extension("log");
        File::create(&log).with_context(|| format!("can't write {}", log.display()))?;
        let (process, start_at, pause) = (None, None, PAUSE_MIN);
        self.units.push(Unit { home, mount, log, process, start_at, pause });
        self.start(self.units.len())
    }

    /// By the thread that stays: a machine stops when the thread ends that has started it.
    fn start(&mut self, number: usize) -> anyhow::Result<()> {
        let (tell, unit) = (self.tell.clone(), &mut self.units[number - 1]);
        let log = File::options().append(true).open(&unit.log);
        let log = log.with_context(|| format!("can't write {}", unit.log.display()))?;
        let mut command = daemon::command(&unit.home, unit.mount.as_deref())?;
        let mut child = command.stderr(log).spawn().context("can't start a machine")?;
        let pid = Pid::from_child(&child);
        let handle = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
            _ = child.kill();
        });
        let handle = handle.context("can't watch a machine")?;
        let (since, is_ready) = (Instant::now(), false);
        unit.process = Some(Process { pid, handle, since, is_ready });
        unit.start_at = None;
        thread::spawn(move || watch(number, child, &tell));
        Ok(())
    }

    /// What happens next, but not later than this. Meanwhile whoever has died is started again.
    pub fn next(&mut self, until: Option<Instant>) -> Option<Event> {
        loop {
            let now = Instant::now();
            for number in 1..=self.units.len() {
                if self.units[number - 1].start_at.is_some_and(|at| at <= now) {
                    self.start_again(number);
                }
            }
            let starts = self.units.iter().filter_map(|unit| unit.start_at);
            let wait = starts.chain(until).min();
            let event = match wait {
                // We have a sender ourselves, so there will be something.
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => self.events.recv_timeout(at.saturating_duration_since(now)),
            };
            match event {
                Ok(event) => {
                    self.note(&event);
                    return Some(event);
                }
                Err(_) if until.is_some_and(|until| until <= Instant::now()) => return None,
                Err(_) => {}
            }
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Stop => self.is_stopping = true,
            Event::Unmounted => {}
            Event::Ready(number) => {
                if let Some(process) = &mut self.units[number - 1].process {
                    process.is_ready = true;
                }
            }
            Event::Ended(number, status) => {
                let (is_stopping, unit) = (self.is_stopping, &mut self.units[number - 1]);
                let process = unit.process.take();
                if is_stopping {
                    self.has_failed |= !status.success();
                    return;
                }
                let has_lasted = |process: Process| process.since.elapsed() > PAUSE_MAX;
                if process.is_some_and(has_lasted) {
                    unit.pause = PAUSE_MIN;
                }
                unit.start_at = Some(Instant::now() + unit.pause);
            }
        }
    }

    fn start_again(&mut self, number: usize) {
        let unit = &mut self.units[number - 1];
        unit.pause = (unit.pause * 2).min(PAUSE_MAX);
        unit.start_at = Some(Instant::now() + unit.pause);
        if let Err(error) = self.start(number) {
            _ = writeln!(stderr(), "machine {number}: {error:#}; trying again later");
        }
    }

    /// Waits until all are ready. False if somebody wants it to stop first.
    pub fn await_ready(&mut self, until: Instant) -> anyhow::Result<bool> {
        loop {
            let is_ready = |unit: &Unit| unit.process.as_ref().is_some_and(|one| one.is_ready);
            let Some(late) = self.units.iter().position(|unit| !is_ready(unit)) else {
                return Ok(true);
            };
            match self.next(Some(until)) {
                Some(Event::Stop) => return Ok(false),
                Some(Event::Ended(number, status)) => {
                    let said = self.said(number);
                    bail!("machine {number} did not start ({status}); it said: {said}");
                }
                Some(Event::Ready(_) | Event::Unmounted) => {}
                None => {
                    let (number, said) = (late + 1, self.said(late + 1));
                    bail!("machine {number} takes too long to start; it said: {said}");
                }
            }
        }
    }

    /// The last of what a machine has said on standard error.
    fn said(&self, number: usize) -> String {
        let log = &self.units[number - 1].log;
        let said = fs::read(log).unwrap_or_default();
        let tail = &said[said.len().saturating_sub(TAIL_BYTES)..];
        String::from_utf8_lossy(tail).trim_end().to_owned()
    }

    /// How many machines there are.
    pub fn count(&self) -> usize {
        self.units.len()
    }

    /// The machine's process, if it runs.
    pub fn pid(&self, number: usize) -> Option<Pid> {
        self.units[number - 1].process.as_ref().map(|process| process.pid)
    }

    /// Where a machine lives.
    pub fn home(&self, number: usize) -> &Path {
        &self.units[number - 1].home
    }

    /// Where a machine is mounted.
    pub fn mount(&self, number: usize) -> Option<&Path> {
        self.units[number - 1].mount.as_deref()
    }

    /// What a machine says goes there.
    pub fn log(&self, number: usize) -> &Path {
        &self.units[number - 1].log
    }

    /// When it is started again, if it has died.
    pub fn pause(&self, number: usize) -> Duration {
        self.units[number - 1].pause
    }

    /// Stops all of them, and says whether all went well.
    ///
    /// First everybody is unmounted, which pushes what was done there: for that enough others have to run.
    pub fn stop(&mut self) -> bool {
        self.is_stopping = true;
        self.units.iter_mut().for_each(|unit| unit.start_at = None);
        let (done, all) = mpsc::channel::<()>();
        for unit in &self.units {
            let is_ready = unit.process.as_ref().is_some_and(|process| process.is_ready);
            if let Some(path) = unit.mount.clone().filter(|_| is_ready) {
                let (home, done) = (unit.home.clone(), done.clone());
                thread::spawn(move || {
                    if let Err(error) = machine::unmount_at(&home, &path, false) {
                        _ = writeln!(stderr(), "croft: {error:#}; it goes all the same");
                        // If not even that, what is not safe is told when the machine stops.
                        _ = machine::unmount_at(&home, &path, true);
                    }
                    drop(done);
                });
            }
        }
        drop(done);
        let tell = self.tell.clone();
        thread::spawn(move || {
            // It is over when all have let go of it. What is seen elsewhere too may go on there for ever.
            _ = all.recv_timeout(UNMOUNT_MAX);
            _ = tell.send(Event::Unmounted);
        });
        let mut is_told = false;
        while self.units.iter().any(|unit| unit.process.is_some()) {
            match self.next(None) {
                // A second time, then, ends it at once, and a third time without mercy.
                Some(Event::Stop) => self.tell_all(),
                Some(Event::Unmounted) if !is_told => self.tell_all(),
                _ => continue,
            }
            is_told = true;
        }
        !self.has_failed
    }

    fn tell_all(&self) {
        for process in self.units.iter().filter_map(|unit| unit.process.as_ref()) {
            // It may have ended by itself.
            _ = pidfd_send_signal(&process.handle, Signal::TERM);
        }
    }
}

/// Tells what becomes of a process.
fn watch(number: usize, mut child: Child, tell: &Sender<Event>) {
    if daemon::await_ready(&mut child) {
        _ = tell.send(Event::Ready(number));
    }
    if let Ok(status) = child.wait() {
        _ = tell.send(Event::Ended(number, status));
    }
}
