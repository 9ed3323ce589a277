//! A queue that lets its oldest item go when it is full (L25).

use std::collections::VecDeque;

use super::meter::{Count, Meter};
use crate::Spec;

/// First in, first out; a push at capacity gives out the oldest item before its time.
///
/// The item that comes out takes its normal path at once: this is not shedding, nothing is lost. The
/// graph's checker sees to it that the path can always be taken (not throttled, remote or slow).
#[derive(Clone, Debug)]
pub struct Releasing<T> {
    items: VecDeque<T>,
    spec: Spec,
    count: Count,
    released: u64,
}

impl<T> Releasing<T> {
    /// An empty queue for this place.
    pub fn new(spec: Spec) -> Releasing<T> {
        assert!(spec.capacity > 0, "{} could hold nothing", spec.label);
        Releasing { items: VecDeque::new(), spec, count: Count::default(), released: 0 }
    }

    /// What the graph says about it.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Puts an item at the end; what comes out must be released now.
    #[inline]
    #[must_use = "the oldest item has left the reservoir; release it along its normal path"]
    pub fn push(&mut self, item: T) -> Option<T> {
        let early = if self.count.level() >= self.spec.capacity {
            self.released += 1;
            self.pop()
        } else {
            None
        };
        self.items.push_back(item);
        self.count.enter(1);
        early
    }

    /// Takes the oldest item in its own time.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        self.count.leave(1);
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
        self.count.level()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Its numbers.
    pub fn meter(&self) -> Meter {
        Meter { released: self.released, ..self.count.meter() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_leaves_early_and_the_rest_in_order() {
        let spec = Spec { label: "T", name: "test", capacity: 2, threshold: 2 };
        let mut queue = Releasing::new(spec);
        assert_eq!([queue.push(1), queue.push(2), queue.push(3)], [None, None, Some(1)]);
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(2), Some(3), None]);
        let meter = queue.meter();
        assert_eq!((meter.entered, meter.left, meter.released, meter.level_max), (3, 3, 1, 2));
    }
}
