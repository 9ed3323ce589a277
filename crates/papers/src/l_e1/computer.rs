//! One computer: a client that makes directories, the pager of `load`, a processor and a disk.
//!
//! The client makes a tree, breadth first. To make a directory it looks up the parent's object and
//! then the new one, works on both, sets both dirty and lets both go. It has several under way at
//! once, so what waits holds references, as in a server.

use std::collections::{BTreeSet, VecDeque};

use base::{Duration, Instant, Machine};
use load::{
    pager::{Input, Meters, Output, Pager, Token},
    settings::Pager as Settings,
};

use super::disk::{Disk, Job};

/// Subdirectories of each directory.
pub const FANOUT: u64 = 100;

/// What a computer is like, and what it is to do.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The limits of the pager.
    pub settings: Settings,
    /// Whether 9C throttles lookups.
    pub is_throttled: bool,
    /// Directories being made at once.
    pub tasks_max: usize,
    /// How long the processor works on a directory.
    pub creation: Duration,
    /// How long the disk takes for an object.
    pub transfer: Duration,
    /// Objects that the memory has room for.
    pub objects_max: u64,
    /// How long it runs.
    pub time: Duration,
    /// How often it is looked at.
    pub sample_period: Duration,
}

/// A look at a running computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Directories made so far.
    pub directories: u64,
    /// Dirty objects that nobody references.
    pub dirty: u64,
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Directories made.
    pub directories: u64,
    /// When the memory was used up, if it was.
    pub aborted_at: Option<Instant>,
    /// The most objects that were in memory or on their way there.
    pub objects_peak: u64,
    /// What the pager's places saw.
    pub meters: Meters,
    /// One for each sample period until the end or the abort.
    pub samples: Vec<Sample>,
}

/// A computer under way.
struct Computer {
    setup: Setup,
    now: Instant,
    pager: Pager<u64, ()>,
    /// What the pager is about to be told, in order.
    inputs: VecDeque<Input<u64, ()>>,
    disk: Disk,
    /// Objects that the disk has.
    stored: BTreeSet<u64>,
    /// Directories being made; a name is here until its directory is there.
    tasks: BTreeSet<u64>,
    next: u64,
    /// Those that hold all they need, first come first served.
    ready: VecDeque<u64>,
    working: Option<(Instant, u64)>,
    objects: u64,
    objects_peak: u64,
    directories: u64,
    aborted_at: Option<Instant>,
}

/// The parent in a tree that is numbered breadth first from the root, which is 0.
fn parent(directory: u64) -> u64 {
    (directory - 1) / FANOUT
}

/// Runs a computer to the end, or until its memory is used up.
pub fn run(setup: Setup) -> Outcome {
    let mut computer = Computer::new(setup);
    let mut samples = Vec::new();
    let end = computer.now + setup.time;
    let mut sample_at = computer.now + setup.sample_period;
    computer.begin();
    computer.settle();
    while computer.aborted_at.is_none() {
        let next = computer.wake_at();
        while sample_at <= end && next.is_none_or(|next| sample_at < next) {
            samples.push(computer.sample());
            sample_at = sample_at + setup.sample_period;
        }
        let Some(next) = next.filter(|&next| next <= end) else { break };
        computer.go_on(next);
    }
    Outcome {
        directories: computer.directories,
        aborted_at: computer.aborted_at,
        objects_peak: computer.objects_peak,
        meters: computer.pager.meters(computer.aborted_at.unwrap_or(end)),
        samples,
    }
}

impl Computer {
    fn new(setup: Setup) -> Computer {
        let pager = Pager::new(setup.settings).expect("the settings stand together");
        assert!(2 * setup.tasks_max as u64 <= setup.settings.lookups_max, "9A would refuse some");
        Computer {
            now: Instant::START,
            pager: if setup.is_throttled { pager } else { pager.without_throttle() },
            inputs: VecDeque::new(),
            disk: Disk::new(setup.transfer),
            stored: BTreeSet::from([0]),
            tasks: BTreeSet::new(),
            next: 1,
            ready: VecDeque::new(),
            working: None,
            objects: 0,
            objects_peak: 0,
            directories: 0,
            aborted_at: None,
            setup,
        }
    }

    fn sample(&self) -> Sample {
        let dirty = self.pager.meters(self.now).dirty.level;
        Sample { directories: self.directories, dirty }
    }

    /// When something happens next.
    fn wake_at(&self) -> Option<Instant> {
        let work = self.working.map(|(done_at, _)| done_at);
        [work, self.disk.done_at(), self.pager.wake_at()].into_iter().flatten().min()
    }

    /// Lets everything happen that is due at this moment.
    fn go_on(&mut self, to: Instant) {
        self.now = self.now.max(to);
        if let Some((_, directory)) = self.working.take_if(|(done_at, _)| *done_at <= to) {
            self.on_made(directory);
        }
        match self.disk.take_done(self.now) {
            Some(Job::Read(key)) => self.inputs.push_back(Input::Loaded { key, value: () }),
            Some(Job::Write(key)) => {
                self.stored.insert(key);
                self.inputs.push_back(Input::Cleaned { key });
            }
            None => {}
        }
        let mut out = Vec::new();
        self.pager.tick(self.now, &mut out);
        out.into_iter().for_each(|output| self.on_output(output));
        self.settle();
    }

    /// Tells the pager all that there is to tell, and does what it wants done.
    fn settle(&mut self) {
        let mut out = Vec::new();
        while let Some(input) = self.inputs.pop_front() {
            self.pager.step(self.now, input, &mut out);
            out.drain(..).for_each(|output| self.on_output(output));
        }
        if self.working.is_none() {
            let next = self.ready.pop_front();
            self.working = next.map(|directory| (self.now + self.setup.creation, directory));
        }
    }

    /// Starts as many directories as may be under way, each once its parent is there.
    fn begin(&mut self) {
        while self.tasks.len() < self.setup.tasks_max && !self.tasks.contains(&parent(self.next)) {
            self.tasks.insert(self.next);
            let token = Token(2 * self.next);
            self.inputs.push_back(Input::Lookup { token, key: parent(self.next) });
            self.next += 1;
        }
    }

    fn on_made(&mut self, directory: u64) {
        self.directories += 1;
        self.tasks.remove(&directory);
        for key in [parent(directory), directory] {
            self.inputs.extend([Input::SetDirty { key }, Input::Drop { key }]);
        }
        self.begin();
    }

    fn on_output(&mut self, output: Output<u64, ()>) {
        match output {
            Output::Granted { token: Token(token), .. } if token % 2 == 0 => {
                let lookup = Input::Lookup { token: Token(token + 1), key: token / 2 };
                self.inputs.push_back(lookup);
            }
            Output::Granted { token: Token(token), .. } => self.ready.push_back(token / 2),
            Output::Refused { .. } => panic!("9A has room for all tasks"),
            Output::Load { key } => self.on_load(key),
            Output::Write { key, .. } => self.disk.ask(self.now, Job::Write(key)),
            Output::Discarded { .. } => self.objects -= 1,
        }
    }

    fn on_load(&mut self, key: u64) {
        self.objects += 1;
        self.objects_peak = self.objects_peak.max(self.objects);
        if self.objects > self.setup.objects_max {
            self.aborted_at.get_or_insert(self.now);
        }
        // That an object is new is known without a look at the disk.
        if self.stored.contains(&key) {
            self.disk.ask(self.now, Job::Read(key));
        } else {
            self.inputs.push_back(Input::Loaded { key, value: () });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small computer whose disk is as fast as its processor over `share` percent.
    fn setup(share: u64) -> Setup {
        let settings = Settings { dirty_threshold: 20, clean_max: 50, ..Settings::default() };
        Setup {
            settings,
            is_throttled: true,
            tasks_max: 8,
            creation: Duration::from_millis(10),
            transfer: Duration::from_millis(1_000 / share),
            objects_max: 500,
            time: Duration::from_secs(60),
            sample_period: Duration::from_secs(10),
        }
    }

    #[test]
    fn the_tree_is_made_breadth_first() {
        assert_eq!([1, 100, 101, 200, 10_100].map(parent), [0, 0, 1, 1, 100]);
    }

    #[test]
    fn a_slow_disk_sets_the_pace_of_a_throttled_computer() {
        let outcome = run(setup(25));
        assert_eq!(outcome.aborted_at, None);
        assert!(outcome.meters.dirty.throttled > Duration::from_secs(50));
        // Nearly 25 a second for a minute: the tree's inner objects are written and read again.
        assert!((1_400..1_600).contains(&outcome.directories), "{}", outcome.directories);
        assert_eq!(outcome.samples.len(), 6);
    }

    #[test]
    fn without_its_throttle_the_same_computer_runs_out_of_memory() {
        let outcome = run(Setup { is_throttled: false, ..setup(25) });
        // Of 100 directories a second, 75 stay in memory, and 50 clean ones.
        let aborted_at = outcome.aborted_at.unwrap();
        assert!((5..9).contains(&(aborted_at.as_nanos() / 1_000_000_000)), "{aborted_at}");
        assert_eq!(outcome.objects_peak, 501);
        assert!(outcome.meters.dirty.level_max > 300);
    }

    #[test]
    fn memory_is_counted_as_the_pager_has_it() {
        for setup in [setup(25), Setup { is_throttled: false, ..setup(25) }] {
            let mut computer = Computer::new(setup);
            computer.begin();
            computer.settle();
            while computer.directories < 1_000 && computer.aborted_at.is_none() {
                let next = computer.wake_at().unwrap();
                computer.go_on(next);
                assert_eq!(computer.objects, computer.pager.stages().count() as u64);
            }
        }
    }
}
