//! Every order in which two producers and a consumer can share a reservoir.

use std::hash::{Hash, Hasher};

use base::Instant;
use load::{
    Spec,
    reservoir::{Full, Releasing, Throttling},
};
use stateright::{Checker, Model, Property};

const NOW: Instant = Instant::START;
/// How many items each producer makes.
const ITEMS: u8 = 4;
const PRODUCERS: u8 = 2;

/// The place where two producers meet; each may carry one item that has passed the throttled link.
fn spec(threshold: u64) -> Spec {
    Spec { label: "T", name: "test", capacity: 4, threshold }
}

/// What may be wrong, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// The producers don't ask whether they may run.
    Heedless,
    /// The threshold leaves no room for what is on its way (L23).
    TooHigh,
    /// The consumer works only while the queue is closed.
    Idle,
    /// The caller drops what is released early.
    Lossy,
}

/// A producer's number in the high half, the item's in the low.
type Item = u8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Producer {
    made: u8,
    carries: Option<Item>,
}

impl Producer {
    fn make(&mut self, at: u8) {
        self.carries = Some(at << 4 | self.made);
        self.made += 1;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// A producer passes the throttled link with an item.
    Pass(u8),
    /// What a producer carries arrives.
    Arrive(u8),
    Consume,
}

/// Whether each producer's items are there in order and without a gap.
fn is_in_order(items: &[Item]) -> bool {
    (0..PRODUCERS).all(|at| {
        let mine = items.iter().filter(|&&item| item >> 4 == at);
        mine.enumerate().all(|(index, item)| usize::from(item & 15) == index)
    })
}

#[derive(Clone, Debug)]
struct Throttled {
    queue: Throttling<Item>,
    producers: [Producer; PRODUCERS as usize],
    consumed: Vec<Item>,
}

impl Throttled {
    fn view(&self) -> (Vec<Item>, [Producer; 2], &[Item], bool) {
        let was_refused = self.queue.meter(NOW).refused > 0;
        (self.queue.iter().copied().collect(), self.producers, &self.consumed, was_refused)
    }
}

impl Hash for Throttled {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.view().hash(state);
    }
}

impl PartialEq for Throttled {
    fn eq(&self, other: &Throttled) -> bool {
        self.view() == other.view()
    }
}

struct Throttle(Mutant);

impl Model for Throttle {
    type State = Throttled;
    type Action = Action;

    fn init_states(&self) -> Vec<Throttled> {
        let threshold = if self.0 == Mutant::TooHigh { 4 } else { 2 };
        let producers = [Producer::default(); 2];
        vec![Throttled { queue: Throttling::new(spec(threshold)), producers, consumed: Vec::new() }]
    }

    fn actions(&self, state: &Throttled, actions: &mut Vec<Action>) {
        for (at, producer) in (0..).zip(&state.producers) {
            let may_run = state.queue.is_open() || self.0 == Mutant::Heedless;
            if producer.carries.is_some() {
                actions.push(Action::Arrive(at));
            } else if producer.made < ITEMS && may_run {
                actions.push(Action::Pass(at));
            }
        }
        if !state.queue.is_empty() && (self.0 != Mutant::Idle || !state.queue.is_open()) {
            actions.push(Action::Consume);
        }
    }

    fn next_state(&self, state: &Throttled, action: Action) -> Option<Throttled> {
        let mut next = state.clone();
        match action {
            Action::Pass(at) => next.producers[usize::from(at)].make(at),
            Action::Arrive(at) => {
                let item = next.producers[usize::from(at)].carries.take()?;
                if let Err(Full(item)) = next.queue.push(NOW, item) {
                    next.producers[usize::from(at)].carries = Some(item);
                }
            }
            Action::Consume => next.consumed.extend(next.queue.pop(NOW)),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Throttle>> {
        vec![
            Property::always("within capacity", |_, state: &Throttled| {
                state.queue.meter(NOW).level_max <= state.queue.spec().capacity
            }),
            Property::always("nothing comes back", |_, state: &Throttled| {
                state.queue.meter(NOW).refused == 0
            }),
            Property::always("in order", |_, state: &Throttled| is_in_order(&state.consumed)),
            Property::always("nobody is stuck", |model, state: &Throttled| {
                let mut actions = Vec::new();
                model.actions(state, &mut actions);
                !actions.is_empty() || state.consumed.len() == usize::from(ITEMS * PRODUCERS)
            }),
            Property::sometimes("filled to the brim", |_, state: &Throttled| {
                // The last to see it open are two, and find one item there.
                state.queue.level() == 3
            }),
        ]
    }
}

#[test]
fn a_throttling_queue_never_overflows_and_never_sticks() {
    let checker = Throttle(Mutant::None).checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.is_done());
    assert_eq!(checker.unique_state_count(), 1_656);
}

#[test]
fn faults_around_a_throttling_queue_are_found_out() {
    let check = |mutant| Throttle(mutant).checker().spawn_bfs().join();
    check(Mutant::Heedless).assert_any_discovery("nothing comes back");
    check(Mutant::TooHigh).assert_any_discovery("nothing comes back");
    check(Mutant::Idle).assert_any_discovery("nobody is stuck");
}

#[derive(Clone, Debug)]
struct Released {
    queue: Releasing<Item>,
    producers: [Producer; PRODUCERS as usize],
    /// All that has left, early or not: both take the same path.
    left: Vec<Item>,
}

impl Released {
    fn view(&self) -> (Vec<Item>, [Producer; 2], &[Item]) {
        (self.queue.iter().copied().collect(), self.producers, &self.left)
    }
}

impl Hash for Released {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.view().hash(state);
    }
}

impl PartialEq for Released {
    fn eq(&self, other: &Released) -> bool {
        self.view() == other.view()
    }
}

struct Release(Mutant);

impl Model for Release {
    type State = Released;
    type Action = Action;

    fn init_states(&self) -> Vec<Released> {
        let queue = Releasing::new(Spec { label: "R", name: "test", capacity: 2, threshold: 2 });
        vec![Released { queue, producers: [Producer::default(); 2], left: Vec::new() }]
    }

    fn actions(&self, state: &Released, actions: &mut Vec<Action>) {
        for (at, producer) in (0..).zip(&state.producers) {
            if producer.made < ITEMS {
                actions.push(Action::Arrive(at));
            }
        }
        if !state.queue.is_empty() {
            actions.push(Action::Consume);
        }
    }

    fn next_state(&self, state: &Released, action: Action) -> Option<Released> {
        let mut next = state.clone();
        match action {
            Action::Pass(_) => return None,
            Action::Arrive(at) => {
                let producer = &mut next.producers[usize::from(at)];
                producer.make(at);
                let early = next.queue.push(producer.carries.take()?);
                next.left.extend(early.filter(|_| self.0 != Mutant::Lossy));
            }
            Action::Consume => next.left.extend(next.queue.pop()),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Release>> {
        vec![
            Property::always("within capacity", |_, state: &Released| {
                state.queue.meter().level_max <= state.queue.spec().capacity
            }),
            Property::always("nothing is lost", |_, state: &Released| {
                let made: usize = state.producers.iter().map(|p| usize::from(p.made)).sum();
                made == state.left.len() + state.queue.level() as usize
            }),
            Property::always("in order", |_, state: &Released| is_in_order(&state.left)),
            Property::sometimes("released early", |_, state: &Released| {
                state.queue.meter().released > 0
            }),
        ]
    }
}

#[test]
fn a_releasing_queue_never_blocks_overflows_or_loses() {
    let checker = Release(Mutant::None).checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.is_done());
    assert_eq!(checker.unique_state_count(), 749);
}

#[test]
fn a_caller_that_drops_what_is_released_early_is_found_out() {
    Release(Mutant::Lossy).checker().spawn_bfs().join().assert_any_discovery("nothing is lost");
}
