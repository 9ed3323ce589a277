//! A queue that sheds arrivals when it is full, and drops what has waited too long (L17, L53).

use std::collections::VecDeque;

use base::Instant;

use super::{
    Dropped,
    meter::{Count, Meter},
};
use crate::Spec;

/// First in, first out, each item with the moment after which nobody wants it.
///
/// Shedding is the last resort (L27). An arrival at capacity comes back as [`Dropped`], which must be
/// rectified; an item that has expired comes out as such, because its sender has given up already and
/// that is rectification enough (L52).
///
/// The limit is on what is outstanding (L51): an item that was taken out and is being served counts
/// until [`done`](Shedding::done). To take items out fast makes no room; to be done with them does.
#[derive(Clone, Debug)]
pub struct Shedding<T> {
    /// With what is being served, they are what `count` counts.
    items: VecDeque<(Instant, T)>,
    spec: Spec,
    count: Count,
    shed: u64,
    expired: u64,
}

/// What came out of a [`Shedding`] queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popped<T> {
    /// Still wanted. It counts until [`Shedding::done`].
    Fresh(T),
    /// Its deadline has come: working on it would be pointless. It has left.
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
    pub fn push(&mut self, item: T, deadline: Instant) -> Result<(), Dropped<T>> {
        if self.count.level() >= self.spec.capacity {
            self.shed += 1;
            return Err(Dropped::new(item));
        }
        self.items.push_back((deadline, item));
        self.count.enter(1);
        Ok(())
    }

    /// Takes the oldest item and says whether it is still wanted.
    ///
    /// It takes one item even if that has expired, so a call's work is bounded; call again.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<Popped<T>> {
        let (deadline, item) = self.items.pop_front()?;
        if deadline <= now {
            self.count.leave(1);
            self.expired += 1;
            return Some(Popped::Expired(item));
        }
        Some(Popped::Fresh(item))
    }

    /// One of the items that came out fresh has been served, well or not, and makes room.
    ///
    /// # Panics
    /// If none is being served.
    #[inline]
    pub fn done(&mut self) {
        assert!(self.serving() > 0, "{} is done with what it did not serve", self.spec.label);
        self.count.leave(1);
    }

    /// How many items came out fresh and are not done.
    #[inline]
    pub fn serving(&self) -> u64 {
        self.count.level() - self.items.len() as u64
    }

    /// All items that wait, oldest first, each with its deadline.
    pub fn iter(&self) -> impl Iterator<Item = &(Instant, T)> {
        self.items.iter()
    }

    /// How many items there are, waiting or being served.
    pub fn level(&self) -> u64 {
        self.count.level()
    }

    /// Whether none waits.
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
        queue.done();
        let meter = queue.meter();
        assert_eq!((meter.entered, meter.left, meter.shed, meter.expired), (2, 2, 1, 1));
    }

    #[test]
    fn what_is_being_served_takes_room_until_it_is_done() {
        let spec = Spec { label: "8A", name: "requests", capacity: 2, threshold: 2 };
        let mut queue = Shedding::new(spec);
        assert_eq!(queue.push(1, Instant::END), Ok(()));
        assert_eq!(queue.push(2, Instant::END), Ok(()));
        assert_eq!(queue.pop(Instant::START), Some(Popped::Fresh(1)));
        assert_eq!((queue.level(), queue.serving()), (2, 1));
        queue.push(3, Instant::END).expect_err("two are outstanding").rectify(drop);
        queue.done();
        assert_eq!(queue.push(3, Instant::END), Ok(()));
        assert_eq!((queue.level(), queue.serving()), (2, 0));
    }

    #[test]
    #[should_panic(expected = "8A is done with what it did not serve")]
    fn what_waits_cannot_be_done() {
        let spec = Spec { label: "8A", name: "requests", capacity: 2, threshold: 2 };
        let mut queue = Shedding::new(spec);
        queue.push(1, Instant::END).expect("it has room");
        queue.done();
    }
}
