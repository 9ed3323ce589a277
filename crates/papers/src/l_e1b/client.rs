//! A model of the client (figure 6), and applications that want more than it can do.
//!
//! Each operation is an update of a file, and every other one makes a new file, one byte long. Each
//! update that the directory has accepted comes back later as a notice that its file has a replica
//! (the graph's itinerant flow), and the disk can mark only so many files clean.

use std::collections::{BTreeSet, VecDeque};

use base::{Duration, Instant};
use load::{Graph, graphs::client as graph, settings::Client as Settings};

use super::{
    fitting::Fitting,
    level::Peak,
    queues::{Buffer, Intake, Line},
    sets::{Awaited, Count, Kept},
};

const TICK: Duration = Duration::from_millis(10);
const TICKS: u64 = 3_000;
/// What applications want in a tick: 20,000 operations and 1,000 opened files in a second.
const OPERATIONS: u64 = 200;
const OPENS: u64 = 10;
/// What the directory accepts in a tick, and how long until its notice of a replica comes.
const ACCEPTED: u64 = 10;
const REPLICA_DELAY: Duration = Duration::from_secs(5);
/// An opened file is modified as often as that.
const OPENS_PER_MODIFICATION: u64 = 10;

/// Production limits, but for the cache: its files are one byte long, so that it fills up in a short run.
fn settings() -> Settings {
    Settings {
        cache_bytes: 4_096,
        clean_bytes: 2_048,
        rectify_period: Duration::from_secs(10),
        ..Settings::default()
    }
}

/// An update, and since when it waits to be merged with others.
#[derive(Debug)]
struct Update {
    file: u64,
    since: Instant,
}

struct Client {
    now: Instant,
    settings: Settings,
    buffered: Buffer<u64>,
    updates: Line<Update>,
    sent: Awaited<u64>,
    notices: Intake<u64>,
    dirty: Count,
    clean: Kept,
    /// What 6E counts.
    dirty_files: BTreeSet<u64>,
    /// Files whose notice was shed (L40).
    unheard: BTreeSet<u64>,
    /// Updates that other machines work on, each with when its notice comes.
    elsewhere: VecDeque<(Instant, u64)>,
    operations: u64,
    opens: u64,
    sends: u64,
    /// Numbers files; those from elsewhere have odd numbers.
    files: u64,
}

/// The model's graph.
pub fn graph() -> Graph {
    graph::graph(&settings())
}

/// The most that was in each place under this load.
pub fn run(without: Option<&'static str>, load: u64) -> Vec<Peak> {
    let mut client = Client::new(without);
    for tick in 0..TICKS * load {
        client.now = Instant::START + TICK * tick as u32;
        client.hear();
        client.mark();
        client.rectify(tick);
        client.push();
        client.flush(tick);
        client.open(load);
        client.operate(load);
    }
    client.peaks()
}

impl Client {
    fn new(without: Option<&'static str>) -> Client {
        let mut fitting = Fitting::new(&graph(), without);
        let client = Client {
            now: Instant::START,
            settings: settings(),
            buffered: fitting.buffer(graph::BUFFERED),
            updates: fitting.line(graph::UPDATES),
            sent: fitting.awaited(graph::SENT),
            notices: fitting.intake(graph::NOTICES),
            dirty: fitting.count(graph::DIRTY),
            clean: fitting.kept(graph::CLEAN),
            dirty_files: BTreeSet::new(),
            unheard: BTreeSet::new(),
            elsewhere: VecDeque::new(),
            operations: 0,
            opens: 0,
            sends: 0,
            files: 0,
        };
        fitting.finish();
        client
    }

    fn peaks(&self) -> Vec<Peak> {
        vec![
            self.buffered.peak(),
            self.updates.peak(self.now),
            self.sent.peak(self.now),
            self.notices.peak(),
            self.dirty.peak(self.now),
            self.clean.peak(),
        ]
    }

    /// Acknowledgements and notices arrive.
    fn hear(&mut self) {
        for _ in 0..ACCEPTED {
            let Some(file) = self.sent.answer(self.now) else { break };
            self.elsewhere.push_back((self.now + REPLICA_DELAY, file));
        }
        while let Some((_, file)) = self.elsewhere.pop_front_if(|(at, _)| *at <= self.now) {
            self.notice(file);
        }
    }

    /// Whether a notice is kept until the disk can write it.
    fn notice(&mut self, file: u64) -> bool {
        let shed = self.notices.push(file, Instant::END).err();
        let is_shed = shed.is_some();
        if let Some(shed) = shed {
            // L40: the client will ask again about files that it still takes for dirty.
            let file = shed.rectify(|file| file);
            self.unheard.extend(Some(file).filter(|file| self.dirty_files.contains(file)));
        }
        !is_shed
    }

    /// The disk marks a file clean in every tick.
    fn mark(&mut self) {
        let Some(file) = self.notices.pop(self.now) else { return };
        self.notices.done();
        self.unheard.remove(&file);
        if self.dirty_files.remove(&file) {
            self.dirty.leave(self.now);
            // L41: what this releases is evicted.
            let _ = self.clean.put(self.now, file);
        }
    }

    /// Asks for the notices that were shed, until one is shed again.
    fn rectify(&mut self, tick: u64) {
        if !is_due(tick, self.settings.rectify_period) {
            return;
        }
        while let Some(file) = self.unheard.pop_first() {
            if !self.notice(file) {
                break;
            }
        }
    }

    fn push(&mut self) {
        let due = |update: &Update| update.since + self.settings.push_period <= self.now;
        while self.sent.is_open() && self.updates.first().is_some_and(due) {
            let Some(Update { file, .. }) = self.updates.pop(self.now) else { break };
            self.sends += 1;
            self.sent.insert(self.now, self.sends, file).expect("it is open");
        }
    }

    /// The driver hands its updates on; where they find no room they stay.
    fn flush(&mut self, tick: u64) {
        if !is_due(tick, self.settings.flush_period) {
            return;
        }
        while self.updates.has_room() {
            let Some(file) = self.buffered.pop() else { break };
            self.merge(file);
        }
    }

    fn merge(&mut self, file: u64) {
        let update = Update { file, since: self.now };
        self.updates.push(self.now, update).expect("the threshold leaves room (L23)");
    }

    /// Applications open files from elsewhere, and modify some that are cached.
    fn open(&mut self, load: u64) {
        for _ in 0..OPENS * load {
            self.opens += 1;
            // L42: 6E stops whatever makes the cache grow.
            if self.dirty.is_open() {
                let _ = self.clean.put(self.now, 2 * self.opens + 1);
            }
            if self.opens.is_multiple_of(OPENS_PER_MODIFICATION) {
                self.modify();
            }
        }
    }

    fn modify(&mut self) {
        if !self.updates.is_open() {
            return;
        }
        let Some(file) = self.clean.take_unused(self.now) else { return };
        self.soil(file);
        self.log(file);
    }

    fn soil(&mut self, file: u64) {
        self.dirty_files.insert(file);
        self.dirty.enter(self.now);
    }

    /// The driver keeps an update for a while.
    fn log(&mut self, file: u64) {
        // L36: what comes out early is flushed at once.
        if let Some(early) = self.buffered.push(file) {
            self.merge(early);
        }
    }

    fn operate(&mut self, load: u64) {
        for _ in 0..OPERATIONS * load {
            // L37: the driver completes no operation while 6B is closed.
            if !self.updates.is_open() {
                break;
            }
            self.operations += 1;
            if self.operations.is_multiple_of(2) {
                // L42: out of space.
                if !self.dirty.is_open() {
                    continue;
                }
                self.files += 1;
                self.soil(2 * self.files);
            }
            let file = 2 * (1 + self.operations / 2 % self.files.max(1));
            self.log(file);
        }
    }
}

/// Whether what happens so often happens in this tick.
fn is_due(tick: u64, period: Duration) -> bool {
    (u128::from(tick) * TICK.as_nanos()).is_multiple_of(period.as_nanos())
}
