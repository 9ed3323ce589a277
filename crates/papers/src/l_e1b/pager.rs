//! A model of the object pager (figure 9), and tasks that look up more than its store can do.
//!
//! L-E1 has the real pager; but that cannot be taken apart, and here each of its places is to
//! lose its protection. Every object is new, three of four are changed, and nothing is hit. 9C stops
//! lookups at its threshold; the finer points of rate matching (L59) make no difference to a bound.

use std::collections::VecDeque;

use base::{Duration, Instant};
use load::{Graph, graphs::pager as graph, reservoir::Watched, settings::Pager as Settings};

use super::{
    fitting::Fitting,
    level::Peak,
    queues::Line,
    sets::{Count, Kept},
};

const TICK: Duration = Duration::from_millis(20);
const TICKS: u64 = 30_000;
/// What tasks look up in a tick: 500 in a second.
const LOOKUPS: u64 = 10;
/// What the store loads in a tick. It writes one object in that time: 200 and 50 in a second.
const LOADS: u64 = 4;
/// How long a task works with an object.
const WORK: Duration = Duration::from_millis(100);
/// One object in so many is not changed.
const OBJECTS_PER_UNCHANGED: u64 = 4;

struct Pager {
    now: Instant,
    settings: Settings,
    lookups: Line<u64>,
    /// 9F and what it counts, and so on.
    loading: Count,
    loads: VecDeque<u64>,
    referenced: Watched,
    tasks: VecDeque<(Instant, u64)>,
    dirty: Count,
    dirty_objects: VecDeque<(Instant, u64)>,
    cleaning: Count,
    writes: VecDeque<u64>,
    clean: Kept,
    /// Whether tasks let go of what they have done with (L61).
    is_disciplined: bool,
    /// Whether the cleaner ignores its timers.
    is_hurried: bool,
    objects: u64,
}

/// The model's graph.
pub fn graph() -> Graph {
    graph::graph(&Settings::default())
}

/// The most that was in each place under this load.
pub fn run(without: Option<&'static str>, load: u64) -> Vec<Peak> {
    let mut pager = Pager::new(without);
    for tick in 0..TICKS * load {
        pager.now = Instant::START + TICK * tick as u32;
        pager.write();
        (0..LOADS).for_each(|_| pager.load());
        pager.let_go();
        pager.clean();
        pager.discard();
        (0..LOOKUPS * load).for_each(|_| pager.ask());
        pager.look_up();
    }
    let now = pager.now;
    let referenced = Peak::new(pager.referenced.spec(), pager.referenced.meter());
    let dirty = pager.dirty.peak(now);
    let [cleaning, loading] = [&pager.cleaning, &pager.loading].map(|count| count.peak(now));
    vec![pager.lookups.peak(now), referenced, dirty, pager.clean.peak(), cleaning, loading]
}

impl Pager {
    fn new(without: Option<&'static str>) -> Pager {
        let mut fitting = Fitting::new(&graph(), without);
        let pager = Pager {
            now: Instant::START,
            settings: Settings::default(),
            lookups: fitting.line(graph::LOOKUPS),
            loading: fitting.count(graph::LOADING),
            loads: VecDeque::new(),
            referenced: fitting.watched(graph::REFERENCED),
            tasks: VecDeque::new(),
            dirty: fitting.count(graph::DIRTY),
            dirty_objects: VecDeque::new(),
            cleaning: fitting.count(graph::CLEANING),
            writes: VecDeque::new(),
            clean: fitting.kept(graph::CLEAN),
            is_disciplined: without != Some(graph::REFERENCED.label()),
            is_hurried: false,
            objects: 0,
        };
        fitting.finish();
        pager
    }

    /// A task wants an object that is not in memory, unless 9A makes it wait (L56).
    fn ask(&mut self) {
        if self.lookups.is_open() {
            self.objects += 1;
            self.lookups.push(self.now, self.objects).expect("it is open");
        }
    }

    fn look_up(&mut self) {
        // L58: 9C throttles lookups, and so does 9F.
        while self.dirty.is_open() && self.loading.is_open() {
            let Some(object) = self.lookups.pop(self.now) else { break };
            self.loading.enter(self.now);
            self.loads.push_back(object);
        }
    }

    fn load(&mut self) {
        let Some(object) = self.loads.pop_front() else { return };
        self.loading.leave(self.now);
        self.referenced.enter(1);
        self.tasks.push_back((self.now + WORK, object));
    }

    /// Tasks that are done drop their objects.
    fn let_go(&mut self) {
        if !self.is_disciplined {
            return;
        }
        while let Some((_, object)) = self.tasks.pop_front_if(|(done_at, _)| *done_at <= self.now) {
            self.referenced.leave(1);
            if object.is_multiple_of(OBJECTS_PER_UNCHANGED) {
                self.put_by(object);
            } else {
                self.dirty.enter(self.now);
                self.dirty_objects.push_back((self.now + self.settings.clean_after, object));
            }
        }
    }

    /// Takes what is due, or all that there is once 9C has closed and until it is empty.
    fn clean(&mut self) {
        self.is_hurried |= self.dirty_objects.len() as u64 >= self.settings.dirty_threshold;
        while self.cleaning.is_open() {
            let is_due = |(due_at, _): &mut (Instant, u64)| self.is_hurried || *due_at <= self.now;
            let Some((_, object)) = self.dirty_objects.pop_front_if(is_due) else { break };
            self.dirty.leave(self.now);
            self.cleaning.enter(self.now);
            self.writes.push_back(object);
        }
        self.is_hurried &= !self.dirty_objects.is_empty();
    }

    fn write(&mut self) {
        let Some(object) = self.writes.pop_front() else { return };
        self.cleaning.leave(self.now);
        self.put_by(object);
    }

    fn put_by(&mut self, object: u64) {
        // L60: what this releases is discarded.
        let _ = self.clean.put(self.now, object);
    }

    fn discard(&mut self) {
        let unused_since = self.now - self.settings.discard_after;
        // Time starts at zero, so nothing is old before that long.
        if unused_since > Instant::START {
            while self.clean.take_unused(unused_since).is_some() {}
        }
    }
}
