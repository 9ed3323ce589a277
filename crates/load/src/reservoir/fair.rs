//! A queue shared by sources that must not starve each other.

use std::collections::{BTreeMap, VecDeque};

use base::Instant;

use super::{Full, Meter, Tally};
use crate::Spec;

/// First in, first out for each source; the sources take turns.
///
/// A source may hold as much as there is room left for everybody (Choudhury and Hahne's dynamic
/// threshold). One busy source alone thus fills half the queue and two fill a third each. Whoever comes
/// next finds room, unless so many have come that the queue is full. The price is the room that stays
/// empty; the gain is that nobody needs to know how many sources there are, and nothing that has entered
/// is ever thrown out.
///
/// Whether a flow may run depends on its source, so each asks [`has_room`](Fair::has_room) at the
/// throttled link. That link must end here: with anything between, what is on its way when a source has
/// used up its room would not fit (L23).
#[derive(Clone, Debug)]
pub struct Fair<S, T> {
    /// The sources that have something waiting, and where in `queues`.
    sources: BTreeMap<S, usize>,
    /// Each is in `sources` and `turns`, or else in `free`.
    queues: Vec<VecDeque<T>>,
    /// Each source that has something waiting, once, in the order of their turns.
    turns: VecDeque<(S, usize)>,
    free: Vec<usize>,
    tally: Tally,
}

/// A queue that is free keeps room for so many items; the room of larger ones is given back.
const FREE_ITEMS_MAX: usize = 32;

impl<S: Clone + Ord, T> Fair<S, T> {
    /// An empty queue for this place.
    ///
    /// # Panics
    /// If the place's threshold is below its capacity: then it throttles from further back.
    pub fn new(spec: Spec) -> Fair<S, T> {
        let label = spec.label;
        assert!(spec.threshold == spec.capacity, "{label} must throttle the flow that enters it");
        Fair {
            sources: BTreeMap::new(),
            queues: Vec::new(),
            turns: VecDeque::new(),
            free: Vec::new(),
            tally: Tally::new(spec),
        }
    }

    /// What the graph says about it.
    pub fn spec(&self) -> &Spec {
        self.tally.spec()
    }

    /// Whether the flow from this source may run: it may push one more.
    pub fn has_room(&self, source: &S) -> bool {
        let room = self.spec().capacity - self.level();
        self.level_of(source) < room
    }

    /// Puts an item behind those of its source, or hands it back.
    pub fn push(&mut self, now: Instant, source: S, item: T) -> Result<(), Full<T>> {
        let room = self.spec().capacity - self.level();
        let known = self.sources.get(&source).copied();
        let level = known.map_or(0, |at| self.queues[at].len() as u64);
        if level >= room {
            self.tally.refuse();
            return Err(Full(item));
        }
        if self.tally.enter(now, 1).is_err() {
            return Err(Full(item));
        }
        let at = known.unwrap_or_else(|| self.begin(source));
        self.queues[at].push_back(item);
        Ok(())
    }

    /// Takes the oldest item of the source whose turn it is.
    pub fn pop(&mut self, now: Instant) -> Option<(S, T)> {
        let (source, at) = self.turns.pop_front()?;
        let queue = &mut self.queues[at];
        let item = queue.pop_front()?;
        if queue.is_empty() {
            queue.shrink_to(FREE_ITEMS_MAX);
            self.sources.remove(&source);
            self.free.push(at);
        } else {
            self.turns.push_back((source.clone(), at));
        }
        self.tally.leave(now, 1);
        Some((source, item))
    }

    /// Takes the oldest item of the first source, in the order of their turns, that may have one taken.
    pub fn pop_where(&mut self, now: Instant, may: impl Fn(&S) -> bool) -> Option<(S, T)> {
        let place = self.turns.iter().position(|(source, _)| may(source))?;
        let turn = self.turns.remove(place)?;
        self.turns.push_front(turn);
        self.pop(now)
    }

    /// Gives a source that had nothing waiting a queue, and the last turn of the round.
    fn begin(&mut self, source: S) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.queues.push(VecDeque::new());
            self.queues.len() - 1
        });
        self.turns.push_back((source.clone(), at));
        self.sources.insert(source, at);
        at
    }

    /// How many items there are.
    pub fn level(&self) -> u64 {
        self.tally.level()
    }

    /// How many of them are this source's.
    pub fn level_of(&self, source: &S) -> u64 {
        self.sources.get(source).map_or(0, |&at| self.queues[at].len() as u64)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.level() == 0
    }

    /// Its numbers at this moment.
    ///
    /// Its throttled time is that of being full, when all sources stood still. That a source had used up
    /// its own room shows in what was refused, if the source did not ask.
    pub fn meter(&self, now: Instant) -> Meter {
        self.tally.meter(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes these in order; gives those that came back and the order in which the others leave.
    fn check(capacity: u64, pushes: &str, refused: &str, order: &str) {
        let spec = Spec { label: "T", name: "test", capacity, threshold: capacity };
        let (mut queue, now) = (Fair::new(spec), Instant::START);
        let mut back = Vec::new();
        for item in pushes.split_whitespace() {
            if let Err(Full(item)) = queue.push(now, item.as_bytes()[0], item) {
                back.push(item);
            }
        }
        let out: Vec<_> = std::iter::from_fn(|| queue.pop(now)).map(|(_, item)| item).collect();
        assert_eq!((back.join(" ").as_str(), out.join(" ").as_str()), (refused, order));
    }

    #[test]
    fn sources_take_turns_and_each_keeps_its_order() {
        check(99, "a1 a2 a3 b1 c1 c2", "", "a1 b1 c1 a2 c2 a3");
    }

    #[test]
    fn a_busy_source_leaves_room_for_those_to_come() {
        check(8, "a1 a2 a3 a4 a5 b1 b2 b3 c1 d1 e1", "a5 b3 e1", "a1 b1 c1 d1 a2 b2 a3 a4");
    }

    #[test]
    fn when_it_is_full_nobody_has_room() {
        let spec = Spec { label: "T", name: "test", capacity: 2, threshold: 2 };
        let (mut queue, now) = (Fair::new(spec), Instant::START);
        queue.push(now, 'a', 1).expect("it has room");
        assert!(!queue.has_room(&'a') && queue.has_room(&'b'));
        queue.push(now, 'b', 1).expect("it has room");
        assert!(!queue.has_room(&'c'));
        assert_eq!(queue.push(now, 'c', 1), Err(Full(1)));
    }

    #[test]
    fn a_source_that_may_not_keeps_its_place_and_the_next_one_has_its_turn() {
        let spec = Spec { label: "T", name: "test", capacity: 9, threshold: 9 };
        let (mut queue, now) = (Fair::new(spec), Instant::START);
        for (source, item) in [('a', 1), ('a', 2), ('b', 3)] {
            queue.push(now, source, item).expect("it has room");
        }
        assert_eq!(queue.pop_where(now, |source| *source == 'b'), Some(('b', 3)));
        assert_eq!(queue.pop_where(now, |source| *source == 'b'), None);
        assert_eq!([queue.pop(now), queue.pop(now)], [Some(('a', 1)), Some(('a', 2))]);
    }

    #[test]
    #[should_panic(expected = "T must throttle the flow that enters it")]
    fn it_cannot_throttle_from_further_back() {
        Fair::<char, ()>::new(Spec { label: "T", name: "test", capacity: 3, threshold: 2 });
    }

    #[test]
    fn a_source_that_was_quiet_starts_at_the_end_of_the_round() {
        let spec = Spec { label: "T", name: "test", capacity: 9, threshold: 9 };
        let (mut queue, now) = (Fair::new(spec), Instant::START);
        queue.push(now, 'a', 1).expect("it has room");
        queue.push(now, 'b', 1).expect("it has room");
        assert_eq!(queue.pop(now), Some(('a', 1)));
        queue.push(now, 'a', 2).expect("it has room");
        assert_eq!([queue.pop(now), queue.pop(now)], [Some(('b', 1)), Some(('a', 2))]);
    }
}
