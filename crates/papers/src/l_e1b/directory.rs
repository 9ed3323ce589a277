//! A model of a directory server (figure 7), clients that write the same files over and over, and
//! hosts that lose replicas faster than others answer.

use std::collections::BTreeMap;

use base::{Duration, Instant};
use load::{Graph, graphs::directory as graph, reservoir::Rank, settings::Directory as Settings};

use super::{
    fitting::Fitting,
    level::Peak,
    sets::{Awaited, Resting, Tiers},
};

const TICK: Duration = Duration::from_secs(1);
const TICKS: u64 = 3_600;
/// What arrives in a second.
const UPDATES: u64 = 50;
const EJECTIONS: u64 = 20;
/// Of the updates, one in so many makes a new file, if the quota allows.
const UPDATES_PER_FILE: u64 = 10;
/// What hosts answer in a second, and how often they fail.
const ANSWERS: u64 = 5;
const ANSWERS_PER_FAILURE: u64 = 3;

/// Production limits, but for a quota that is filled in minutes.
fn settings() -> Settings {
    Settings { files_max: 4_096, ..Settings::default() }
}

struct Directory {
    now: Instant,
    settings: Settings,
    absorbed: Resting,
    missing: Tiers,
    requests: Awaited<(u64, Rank)>,
    /// Files are numbered from 0; the quota bounds them (L48).
    files: u64,
    /// How often in a row a file's replication has failed.
    failures: BTreeMap<u64, u32>,
    updates: u64,
    ejections: u64,
    sends: u64,
    answers: u64,
}

/// The model's graph.
pub fn graph() -> Graph {
    graph::graph(&settings())
}

/// The most that was in each place under this load.
pub fn run(without: Option<&'static str>, load: u64) -> Vec<Peak> {
    let mut directory = Directory::new(without);
    for tick in 0..TICKS * load {
        directory.now = Instant::START + TICK * tick as u32;
        (0..UPDATES * load).for_each(|_| directory.on_update());
        (0..EJECTIONS * load).for_each(|_| directory.on_ejection());
        (0..ANSWERS).for_each(|_| directory.on_answer());
        directory.go_on();
    }
    vec![
        directory.absorbed.peak(),
        directory.missing.peak(),
        directory.requests.peak(directory.now),
    ]
}

impl Directory {
    fn new(without: Option<&'static str>) -> Directory {
        let mut fitting = Fitting::new(&graph(), without);
        let directory = Directory {
            now: Instant::START,
            settings: settings(),
            absorbed: fitting.resting(graph::ABSORBED),
            missing: fitting.tiers(graph::MISSING),
            requests: fitting.awaited(graph::REQUESTS),
            files: 1,
            failures: BTreeMap::new(),
            updates: 0,
            ejections: 0,
            sends: 0,
            answers: 0,
        };
        fitting.finish();
        directory
    }

    fn on_update(&mut self) {
        self.updates += 1;
        let is_new = self.updates.is_multiple_of(UPDATES_PER_FILE);
        if is_new && self.files < self.settings.files_max {
            self.files += 1;
        }
        self.absorb(self.updates % self.files);
    }

    /// A host has given up a replica (L50).
    fn on_ejection(&mut self) {
        self.ejections += 1;
        let rank = 1 + (self.ejections % u64::from(self.settings.rank_max)) as Rank;
        self.missing.put(self.ejections % self.files, rank);
    }

    /// A host has answered, or the time for that is up.
    fn on_answer(&mut self) {
        let Some((file, rank)) = self.requests.answer(self.now) else { return };
        self.answers += 1;
        let is_failure = self.answers.is_multiple_of(ANSWERS_PER_FAILURE);
        let failures = self.failures.entry(file).or_default();
        *failures = if is_failure { *failures + 1 } else { 0 };
        if *failures >= self.settings.failures_max {
            // L49: the source is suspected.
            *failures = 0;
            self.absorb(file);
        } else if is_failure {
            self.missing.put(file, rank);
        } else if rank < Rank::from(self.settings.rank_max) {
            // L47
            self.missing.put(file, rank + 1);
        }
    }

    fn absorb(&mut self, file: u64) {
        self.absorbed.mark(file, self.now + self.settings.absorb_period);
    }

    fn go_on(&mut self) {
        while let Some(file) = self.absorbed.take_due(self.now) {
            self.missing.put(file, 1);
        }
        while self.requests.is_open() {
            let Some(copy) = self.missing.take() else { break };
            self.sends += 1;
            self.requests.insert(self.now, self.sends, copy).expect("it is open");
        }
    }
}
