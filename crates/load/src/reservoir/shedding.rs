//! A queue that sheds arrivals when it is full, and drops what has waited too long (L17, L53).

use std::collections::VecDeque;

use base::Instant;

use super::{
    Shed,
    meter::{Count, Meter},
};
use crate::Spec;

/// First in, first out, each item with the moment after which nobody wants it.
///
/// Shedding is the last resort (L27). An arrival at capacity comes back as [`Shed`], which must be
/// rectified; an item that has expired comes out as such, because its sender has given up already and
/// that is rectification enough (L52).
#[derive(Clone, Debug)]
pub struct Shedding<T> {
    items: VecDeque<(Instant, T)>,
    spec: Spec,
    count: Count,
    shed: u64,
    expired: u64,
}

/// What came out of a [`Shedding`] queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popped<T> {
    /// Still wanted.
    Fresh(T),
    /// Its deadline has come: working on it would be pointless.
    Expired(T),
}

impl<T> Shedding<T> {
    /// An empty queue for this place.
    pub fn new(spec: Spec) -> Shedding<T> {
        let (items, count) = (VecDeque::new(), Count::default());
        Shedding { items, spec, count, shed: 0, expired: 0 }
    }

    /// What the graph says about it.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Puts an item at the end, wanted until `deadline` ([`Instant::END`] if it is always wanted).
    #[inline]
    pub fn push(&mut self, item: T, deadline: Instant) -> Result<(), Shed<T>> {
        if self.count.level() >= self.spec.capacity {
            self.shed += 1;
            return Err(Shed::new(item));
        }
        self.items.push_back((deadline, item));
        self.count.enter();
        Ok(())
    }

    /// Takes the oldest item and says whether it is still wanted.
    ///
    /// It takes one item even if that has expired, so a call's work is bounded; call again.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<Popped<T>> {
        let (deadline, item) = self.items.pop_front()?;
        self.count.leave();
        if deadline <= now {
            self.expired += 1;
            return Some(Popped::Expired(item));
        }
        Some(Popped::Fresh(item))
    }

    /// All items, oldest first, each with its deadline.
    pub fn iter(&self) -> impl Iterator<Item = &(Instant, T)> {
        self.items.iter()
    }

    /// How many items there are.
    pub fn level(&self) -> u64 {
        self.count.level()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Its numbers.
    pub fn meter(&self) -> Meter {
        Meter { shed: self.shed, expired: self.expired, ..self.count.meter() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arrival_is_shed_and_the_expired_are_reported() {
        let spec = Spec { label: "8A", name: "requests", capacity: 2, threshold: 2 };
        let mut queue = Shedding::new(spec);
        let at = Instant::from_secs;
        assert_eq!(queue.push(1, at(10)), Ok(()));
        assert_eq!(queue.push(2, at(20)), Ok(()));
        let shed = queue.push(3, at(30)).expect_err("it is full");
        assert_eq!(shed.rectify(|item| item), 3);
        assert_eq!(queue.pop(at(10)), Some(Popped::Expired(1)));
        assert_eq!(queue.pop(at(10)), Some(Popped::Fresh(2)));
        assert_eq!(queue.pop(at(10)), None);
        let meter = queue.meter();
        assert_eq!((meter.entered, meter.left, meter.shed, meter.expired), (2, 2, 1, 1));
    }
}
