//! Tasks and a store around a real pager, and what must always be true of them.

use std::{
    collections::BTreeSet,
    hash::{Hash, Hasher},
};

use base::{Duration, Instant, Machine};
use load::{
    pager::{Input, Output, Pager, Stage, Token},
    settings::Pager as Settings,
};

pub type Key = u8;

/// One thing that a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Looks an object up and waits for it.
    Want(Key),
    /// Changes an object that it holds.
    Change(Key),
    /// Lets go of an object that it holds.
    Drop(Key),
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A task does what is next in its program.
    Task(usize),
    /// The store has loaded an object.
    Loaded(Key),
    /// The store has written an object.
    Cleaned(Key),
    /// Nothing, until the pager's next deadline.
    Wait,
}

/// What may be wrong with a world, to see that its faults are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// Nothing.
    None,
    /// 9C does not throttle.
    Unthrottled,
    /// What the pager releases because an object was cleaned gets lost.
    Forgetful,
    /// 9C throttles one object too late.
    Late,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub program: Vec<Op>,
    /// How much of the program is done.
    pub done: usize,
    pub is_waiting: bool,
}

#[derive(Clone, Debug)]
pub struct World {
    pub settings: Settings,
    pub pager: Pager<Key, ()>,
    pub now: Instant,
    pub tasks: Vec<Task>,
    /// What the store has been asked for.
    pub loads: BTreeSet<Key>,
    pub writes: BTreeSet<Key>,
    /// What has been changed and not been given to be written since.
    changed: BTreeSet<Key>,
    mutant: Mutant,
    /// Lookups released since matching began may not be more than these objects cleaned.
    cleaned_while_matching: u64,
    released_while_matching: u64,
    /// The first thing that went wrong.
    pub fault: Option<&'static str>,
}

impl World {
    pub fn new(settings: Settings, programs: Vec<Vec<Op>>, mutant: Mutant) -> World {
        let late = u64::from(mutant == Mutant::Late);
        let dirty_threshold = settings.dirty_threshold + late;
        let pager = Pager::new(Settings { dirty_threshold, ..settings });
        let pager = pager.expect("the settings stand together");
        let task = |program| Task { program, done: 0, is_waiting: false };
        World {
            settings,
            pager: if mutant == Mutant::Unthrottled { pager.without_throttle() } else { pager },
            now: Instant::from_secs(1),
            tasks: programs.into_iter().map(task).collect(),
            loads: BTreeSet::new(),
            writes: BTreeSet::new(),
            changed: BTreeSet::new(),
            mutant,
            cleaned_while_matching: 0,
            released_while_matching: 0,
            fault: None,
        }
    }

    /// Everything that can happen next.
    pub fn events(&self) -> Vec<Event> {
        let tasks = (0..self.tasks.len()).filter(|&at| self.may_run(at)).map(Event::Task);
        let loads = self.loads.iter().copied().map(Event::Loaded);
        let writes = self.writes.iter().copied().map(Event::Cleaned);
        let wait = self.pager.wake_at().map(|_| Event::Wait);
        tasks.chain(loads).chain(writes).chain(wait).collect()
    }

    fn may_run(&self, at: usize) -> bool {
        let task = &self.tasks[at];
        let is_lookup = matches!(task.program.get(task.done), Some(Op::Want(_)));
        task.done < task.program.len()
            && !task.is_waiting
            // 9A throttles: a task asks before it looks anything up.
            && (!is_lookup || self.pager.is_open())
    }

    pub fn happen(&mut self, event: Event) {
        let before = self.clone();
        let mut out = Vec::new();
        match event {
            Event::Wait => {
                self.now = self.pager.wake_at().expect("there is a deadline").max(self.now);
                self.pager.tick(self.now, &mut out);
            }
            event => {
                let input = self.input(event);
                self.pager.step(self.now, input, &mut out);
            }
        }
        if self.mutant == Mutant::Forgetful && matches!(event, Event::Cleaned(_)) {
            out.retain(|output| !matches!(output, Output::Load { .. }));
        }
        out.into_iter().for_each(|output| self.answer(output));
        self.judge(&before, event);
    }

    fn input(&mut self, event: Event) -> Input<Key, ()> {
        match event {
            Event::Wait => unreachable!("time is not an input"),
            Event::Loaded(key) => {
                self.loads.remove(&key);
                Input::Loaded { key, value: () }
            }
            Event::Cleaned(key) => {
                self.writes.remove(&key);
                Input::Cleaned { key }
            }
            Event::Task(at) => {
                let task = &mut self.tasks[at];
                let op = task.program[task.done];
                match op {
                    Op::Want(key) => {
                        task.is_waiting = true;
                        Input::Lookup { token: Token(at as u64), key }
                    }
                    Op::Change(key) => {
                        task.done += 1;
                        self.changed.insert(key);
                        Input::SetDirty { key }
                    }
                    Op::Drop(key) => {
                        task.done += 1;
                        Input::Drop { key }
                    }
                }
            }
        }
    }

    fn answer(&mut self, output: Output<Key, ()>) {
        match output {
            Output::Granted { token, key } => {
                let task = &mut self.tasks[token.0 as usize];
                assert_eq!(task.program[task.done], Op::Want(key), "it was not asked for");
                assert!(task.is_waiting, "it was granted already");
                task.is_waiting = false;
                task.done += 1;
            }
            Output::Refused { .. } => self.blame("a lookup was refused although 9A was open"),
            Output::Load { key } => {
                if !self.loads.insert(key) {
                    self.blame("an object was asked for twice");
                }
            }
            Output::Write { key, .. } => {
                self.changed.remove(&key);
                if !self.writes.insert(key) {
                    self.blame("an object was written twice at once");
                }
            }
            Output::Discarded { key, .. } => {
                if self.changed.contains(&key) || self.writes.contains(&key) {
                    self.blame("an object was discarded before the store had it");
                }
            }
        }
    }

    pub fn is_done(&self) -> bool {
        self.tasks.iter().all(|task| task.done == task.program.len())
    }

    fn blame(&mut self, fault: &'static str) {
        self.fault.get_or_insert(fault);
    }

    /// Compares the world with what it was.
    fn judge(&mut self, before: &World, event: Event) {
        let meters = self.pager.meters(self.now);
        let Settings { lookups_max, loads_max, clean_max, writes_max, .. } = self.settings;
        let within = [
            (meters.lookups.level_max <= lookups_max, "9A is over its bound"),
            (meters.loading.level_max <= loads_max, "9F is over its bound"),
            (meters.clean.level_max <= clean_max, "9D is over its bound"),
            (meters.cleaning.level_max <= writes_max, "9E is over its bound"),
        ];
        for (_, fault) in within.into_iter().filter(|(is_within, _)| !is_within) {
            self.blame(fault);
        }
        // L23, with what 9B held indeed in place of what we expect it to hold.
        let between = meters.referenced.level_max + loads_max + clean_max + writes_max;
        if meters.dirty.level_max > self.settings.dirty_threshold + between {
            self.blame("9C is over its bound");
        }
        for meter in [
            meters.lookups,
            meters.loading,
            meters.referenced,
            meters.dirty,
            meters.clean,
            meters.cleaning,
        ] {
            if meter.entered != meter.left + meter.level {
                self.blame("a place lost something");
            }
        }
        if meters.lookups.level != self.pager.waiting().count() as u64 {
            self.blame("9A does not hold what waits");
        }
        let loading = self.pager.stages().filter(|(_, stage)| *stage == Stage::Loading).count();
        if meters.loading.level != loading as u64 {
            self.blame("an object takes more than one place at the store");
        }
        let is_in_memory = |key| !matches!(self.pager.stage(key), None | Some(Stage::Loading));
        if self.pager.waiting().any(|(key, _)| is_in_memory(key)) {
            self.blame("a lookup waits for an object that is in memory");
        }
        self.judge_matching(before, event);
    }

    /// L59, from outside.
    fn judge_matching(&mut self, before: &World, event: Event) {
        let dirty = |world: &World| world.pager.dirty().count() as u64;
        // Those that bring an object; one that joins them does not count.
        let gone = {
            let entered = |world: &World| world.pager.meters(world.now).loading.entered;
            entered(self) - entered(before)
        };
        if !self.pager.is_matching() || !before.pager.is_matching() {
            self.cleaned_while_matching = 0;
            self.released_while_matching = 0;
        } else {
            self.cleaned_while_matching += u64::from(matches!(event, Event::Cleaned(_)));
            self.released_while_matching += gone;
        }
        if self.released_while_matching > self.cleaned_while_matching {
            self.blame("more lookups went on than objects were cleaned");
        }
        let threshold = self.settings.dirty_threshold;
        if !self.pager.is_matching() && dirty(self) > threshold {
            self.blame("lookups did not stop");
        }
        if self.pager.is_matching() && dirty(self) == 0 {
            self.blame("matching went on with nothing left to clean");
        }
        if self.pager.is_matching() && dirty(self) > threshold && gone > 0 {
            self.blame("a lookup went on while they must stop");
        }
        // An event adds at most one object to 9C; the cleaner may take it at once.
        let is_entry = !before.pager.is_matching() && self.pager.is_matching();
        if is_entry && dirty(before) < threshold {
            self.blame("lookups stopped without need");
        }
        let has_room = (self.writes.len() as u64) < self.settings.writes_max;
        if self.pager.is_matching() && dirty(self) > 0 && has_room {
            self.blame("the cleaner did not hurry");
        }
        let is_exit = before.pager.is_matching() && !self.pager.is_matching();
        let batch_max = before.pager.tickets() + 1 + self.settings.batch_max;
        if is_exit && gone > batch_max {
            self.blame("more than a batch went on");
        }
        if let Event::Cleaned(key) = event
            && before.pager.is_matching()
            && self.pager.is_matching()
        {
            // An object that was changed meanwhile and that nobody holds is dirty as before.
            let is_held = before.pager.stage(&key) == Some(Stage::Referenced);
            let returns = u64::from(before.changed.contains(&key) && !is_held);
            let is_due = dirty(before) + returns <= threshold
                && before.pager.tickets() < before.pager.line().count() as u64;
            if self.pager.tickets() + gone != before.pager.tickets() + u64::from(is_due) {
                self.blame("not exactly one lookup was let go for an object");
            }
        }
    }
}

/// All that decides what can happen from here on: no meters, and time relative to now.
impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let age = |key: &Key| -> Option<Duration> {
            // A held object's age will start anew.
            let is_put_by = self.pager.stage(key) != Some(Stage::Referenced);
            self.pager.used_at(key).filter(|_| is_put_by).map(|at| self.now.since(at))
        };
        self.pager.stages().for_each(|(key, stage)| (key, stage, age(key)).hash(state));
        self.pager.waiting().for_each(|lookup| lookup.hash(state));
        self.pager.line().for_each(|key| ("line", key).hash(state));
        self.pager.dirty().for_each(|key| ("dirty", key).hash(state));
        self.pager.clean().for_each(|key| ("clean", key).hash(state));
        (self.pager.is_matching(), self.pager.tickets(), self.fault).hash(state);
        self.tasks.iter().for_each(|task| (task.done, task.is_waiting).hash(state));
        (&self.loads, &self.writes, &self.changed).hash(state);
        (self.cleaned_while_matching, self.released_while_matching).hash(state);
    }
}

impl PartialEq for World {
    fn eq(&self, other: &World) -> bool {
        let hash = |world: &World| {
            let mut hasher = std::hash::DefaultHasher::new();
            world.hash(&mut hasher);
            hasher.finish()
        };
        hash(self) == hash(other)
    }
}
