//! What a workload costs: time, and processor time of those who had a part in it.

use std::{fs, path::Path, time::Instant};

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};

/// Measures from its start.
pub struct Meter {
    daemon: u32,
    wall: Instant,
    before: Used,
}

/// What was spent, all in microseconds.
pub struct Spent {
    /// Time.
    pub wall: f64,
    /// Processor time of the application and its children.
    pub application: f64,
    /// Processor time of the daemon where the kernel waits for it, in the kernel and out of it.
    pub foreground: f64,
    /// Of that, what was spent out of the kernel: the daemon's own code.
    pub foreground_user: f64,
    /// Processor time of the daemon elsewhere: journal, group, store.
    pub background: f64,
}

impl Spent {
    /// All processor time.
    pub fn cpu(&self) -> f64 {
        self.application + self.foreground + self.background
    }
}

#[derive(Clone, Copy, Default)]
struct Used {
    application: f64,
    foreground: f64,
    foreground_user: f64,
    background: f64,
}

/// Threads of the daemon that answer the kernel have names that begin like this.
const FOREGROUND: &str = "fuse";
/// Linux counts in these.
const TICK_US: f64 = 10_000.0;

impl Meter {
    /// Starts to measure this process and the daemon.
    pub fn start(daemon: u32) -> anyhow::Result<Meter> {
        Ok(Meter { daemon, before: used(daemon)?, wall: Instant::now() })
    }

    /// What was spent since.
    pub fn stop(self) -> anyhow::Result<Spent> {
        let wall = self.wall.elapsed().as_secs_f64() * 1e6;
        let (before, after) = (self.before, used(self.daemon)?);
        Ok(Spent {
            wall,
            application: after.application - before.application,
            foreground: after.foreground - before.foreground,
            foreground_user: after.foreground_user - before.foreground_user,
            background: after.background - before.background,
        })
    }
}

/// Microseconds of processor time of this process so far.
pub fn own() -> f64 {
    let own = clock_gettime(ClockId::ProcessCPUTime);
    own.tv_sec as f64 * 1e6 + own.tv_nsec as f64 / 1e3
}

fn used(daemon: u32) -> anyhow::Result<Used> {
    let stat = Stat::read(Path::new("/proc/self/stat"))?;
    let mut used = Used { application: own() + stat.children, ..Used::default() };
    for (stat, micros) in tasks(daemon)? {
        if stat.name.starts_with(FOREGROUND) {
            used.foreground += micros;
            used.foreground_user += stat.user;
        } else {
            used.background += micros;
        }
    }
    Ok(used)
}

/// The threads of a process, and how many microseconds each has used.
fn tasks(process: u32) -> anyhow::Result<impl Iterator<Item = (Stat, f64)>> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).context("the daemon has gone")?;
    Ok(tasks.filter_map(|task| {
        let task = task.ok()?.path();
        // A thread may end at any moment.
        let stat = Stat::read(&task.join("stat")).ok()?;
        let schedule = fs::read_to_string(task.join("schedstat")).ok()?;
        let nanos = schedule.split_whitespace().next()?.parse::<f64>().ok()?;
        Some((stat, nanos / 1e3))
    }))
}

/// The names of the threads of a process, and how many microseconds each has used.
pub fn threads(process: u32) -> anyhow::Result<impl Iterator<Item = (String, f64)>> {
    Ok(tasks(process)?.map(|(stat, micros)| (stat.name, micros)))
}

/// How much memory a process has, in MiB.
pub fn resident_mib(process: u32) -> anyhow::Result<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).map(str::parse::<f64>);
    Ok(kib.context("a process without memory")?? / 1_024.0)
}

/// Some of the fields of `/proc/PID/stat`, times in microseconds.
struct Stat {
    name: String,
    user: f64,
    children: f64,
}

impl Stat {
    fn read(path: &Path) -> anyhow::Result<Stat> {
        let text = fs::read_to_string(path)?;
        let (name, rest) = text
            .split_once('(')
            .and_then(|(_, rest)| rest.rsplit_once(')'))
            .context("a stat file without a name")?;
        let ticks: Vec<f64> = rest
            .split_whitespace()
            .skip(11)
            .take(4)
            .map(|field| field.parse::<f64>().map(|ticks| ticks * TICK_US))
            .collect::<Result<_, _>>()?;
        let [user, _, children_user, children_system] = ticks[..] else {
            anyhow::bail!("a stat file with too few fields");
        };
        Ok(Stat { name: name.to_owned(), user, children: children_user + children_system })
    }
}
