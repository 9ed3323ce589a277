//! A set of marked objects, each with a wait (L26, L44).

use base::Instant;

use super::{Meter, order::Order};
use crate::Spec;

/// At most one entry per object; the last writer wins.
///
/// It takes everything, however fast it comes, and can't overflow: there are at most as many entries
/// as objects, and quotas bound those (L48). The place's capacity is that bound; it is not policed
/// here.
///
/// An entry is due at a moment that its writer names. A later mark replaces value and due moment, so a
/// delay counts from the last write (L10); a writer who wants it to count from the first asks
/// [`get`](Marks::get) before.
#[derive(Clone, Debug)]
pub struct Marks<K, V = ()> {
    spec: Spec,
    order: Order<Instant, K, V>,
}

impl<K: Clone + Ord, V> Marks<K, V> {
    /// No object is marked yet.
    pub fn new(spec: Spec) -> Marks<K, V> {
        Marks { spec, order: Order::new() }
    }

    /// What the graph says about it.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Marks an object; gives the value that this mark makes obsolete.
    pub fn mark(&mut self, key: K, value: V, due_at: Instant) -> Option<V> {
        self.order.put(key, due_at, value)
    }

    /// An object's value and due moment, if it is marked.
    pub fn get(&self, key: &K) -> Option<(Instant, &V)> {
        self.order.get(key)
    }

    /// An object's value, to be changed in place: the wait stays what it was.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.order.get_mut(key)
    }

    /// Takes away an object's mark.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.order.remove(key)
    }

    /// Takes the object that has been due longest, if one is due.
    pub fn take_due(&mut self, now: Instant) -> Option<(K, V)> {
        self.order.pop_to(now)
    }

    /// Takes the object that is or will be due first, however long its wait.
    pub fn take_first(&mut self) -> Option<(K, V)> {
        self.order.pop()
    }

    /// When the first object is due.
    pub fn due_at(&self) -> Option<Instant> {
        self.order.first().map(|(due_at, _)| due_at)
    }

    /// All marked objects with their due moments, first due first.
    pub fn iter(&self) -> impl Iterator<Item = (Instant, &K)> {
        self.order.iter()
    }

    /// How many objects are marked.
    pub fn level(&self) -> u64 {
        self.order.level()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.level() == 0
    }

    /// Its numbers.
    pub fn meter(&self) -> Meter {
        self.order.meter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_mark_obsoletes_the_earlier_and_starts_its_wait_anew() {
        let spec = Spec { label: "7A", name: "absorption", capacity: 9, threshold: 9 };
        let mut marks = Marks::new(spec);
        let at = Instant::from_secs;
        assert_eq!(marks.mark('a', 1, at(10)), None);
        assert_eq!(marks.mark('b', 2, at(20)), None);
        assert_eq!(marks.mark('a', 3, at(30)), Some(1));
        assert_eq!(marks.level(), 2);
        assert_eq!(marks.take_due(at(19)), None);
        assert_eq!(marks.take_due(at(30)), Some(('b', 2)));
        assert_eq!(marks.take_due(at(30)), Some(('a', 3)));
        assert_eq!((marks.meter().entered, marks.meter().left), (2, 2));
    }
}
