//! A queue that stops what fills it (L17, L22).

use std::collections::VecDeque;

use base::Instant;

use super::{Full, Meter, Tally};
use crate::Spec;

/// First in, first out; closed from its threshold on.
///
/// The flows that it throttles ask [`is_open`](Throttling::is_open) at their throttled link. What had
/// passed the link before it closed still fits, because the threshold leaves room for it (L23). A push
/// beyond the capacity means that somebody did not ask; the item comes back.
///
/// ```
/// # use load::{Spec, reservoir::{Full, Throttling}};
/// # let now = base::Instant::START;
/// let spec = Spec { label: "6B", name: "update set", capacity: 3, threshold: 2 };
/// let mut updates = Throttling::new(spec);
/// assert_eq!(updates.push(now, 'a'), Ok(()));
/// assert!(updates.is_open());
/// assert_eq!(updates.push(now, 'b'), Ok(()));
/// assert!(!updates.is_open());
/// assert_eq!(updates.push(now, 'c'), Ok(()), "it was on its way");
/// assert_eq!(updates.push(now, 'd'), Err(Full('d')));
/// ```
#[derive(Clone, Debug)]
pub struct Throttling<T> {
    items: VecDeque<T>,
    tally: Tally,
}

impl<T> Throttling<T> {
    /// An empty queue for this place.
    pub fn new(spec: Spec) -> Throttling<T> {
        Throttling { items: VecDeque::new(), tally: Tally::new(spec) }
    }

    /// What the graph says about it.
    pub fn spec(&self) -> &Spec {
        self.tally.spec()
    }

    /// Whether the flows that it throttles may run; see [`Tally`] on hysteresis.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.tally.is_open()
    }

    /// Puts an item at the end, or hands it back.
    #[inline]
    pub fn push(&mut self, now: Instant, item: T) -> Result<(), Full<T>> {
        if self.tally.enter(now, 1).is_err() {
            return Err(Full(item));
        }
        self.items.push_back(item);
        Ok(())
    }

    /// Takes the oldest item.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        let item = self.items.pop_front()?;
        self.tally.leave(now, 1);
        Some(item)
    }

    /// The oldest item, left where it is.
    pub fn first(&self) -> Option<&T> {
        self.items.front()
    }

    /// All items, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    /// How many items there are.
    pub fn level(&self) -> u64 {
        self.tally.level()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Its numbers at this moment.
    pub fn meter(&self, now: Instant) -> Meter {
        self.tally.meter(now)
    }
}

#[cfg(test)]
mod tests {
    use base::Duration;

    use super::*;

    #[test]
    fn throttled_time_is_the_time_at_or_over_the_threshold() {
        let spec = Spec { label: "T", name: "test", capacity: 4, threshold: 2 };
        let mut queue = Throttling::new(spec);
        let at = Instant::from_secs;
        let throttled = |queue: &Throttling<_>, now| queue.meter(now).throttled;
        queue.push(at(0), 'a').expect("it has room");
        assert_eq!(throttled(&queue, at(5)), Duration::ZERO);
        queue.push(at(10), 'b').expect("it has room");
        queue.push(at(12), 'c').expect("it has room");
        assert_eq!(throttled(&queue, at(13)), Duration::from_secs(3), "while it lasts");
        queue.pop(at(15));
        queue.pop(at(20));
        assert_eq!(throttled(&queue, at(90)), Duration::from_secs(10), "when it is over");
        queue.push(at(100), 'd').expect("it has room");
        assert_eq!(throttled(&queue, at(101)), Duration::from_secs(11), "and again");
    }

    #[test]
    fn what_is_refused_never_entered() {
        let spec = Spec { label: "T", name: "test", capacity: 1, threshold: 1 };
        let mut queue = Throttling::new(spec);
        let now = Instant::START;
        assert_eq!(queue.push(now, 1), Ok(()));
        assert_eq!(queue.push(now, 2), Err(Full(2)));
        assert_eq!((queue.pop(now), queue.pop(now)), (Some(1), None));
        let meter = queue.meter(now);
        assert_eq!((meter.entered, meter.left, meter.refused), (1, 1, 1));
        assert_eq!((meter.level, meter.level_max), (0, 1));
    }
}
