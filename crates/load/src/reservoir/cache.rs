//! Kept things in the order of their last use, the least recent leaving first (L25, L41, L60).

use base::Instant;

use super::{Meter, order::Order};
use crate::Spec;

/// Things by key; an arrival at capacity gives out the one that was used least recently.
///
/// A use may be told late and out of order: what counts is when it was, not when we heard of it.
#[derive(Clone, Debug)]
pub struct Cache<K, V = ()> {
    spec: Spec,
    order: Order<Instant, K, V>,
    released: u64,
}

impl<K: Clone + Ord, V> Cache<K, V> {
    /// An empty cache for this place.
    pub fn new(spec: Spec) -> Cache<K, V> {
        assert!(spec.capacity > 0, "{} could hold nothing", spec.label);
        Cache { spec, order: Order::new(), released: 0 }
    }

    /// What the graph says about it.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Keeps a thing last used then, in place of an older one of this key.
    ///
    /// What comes out must be released now.
    #[must_use = "the least recently used thing has left the cache; release it"]
    pub fn put(&mut self, key: K, value: V, used_at: Instant) -> Option<(K, V)> {
        let is_full = self.level() >= self.spec.capacity;
        let early = if is_full && self.get(&key).is_none() { self.release() } else { None };
        self.order.put(key, used_at, value);
        early
    }

    /// Says when a thing was last used; whether it is kept.
    pub fn touch(&mut self, key: &K, used_at: Instant) -> bool {
        self.order.reorder(key, used_at)
    }

    /// A thing and when it was last used.
    pub fn get(&self, key: &K) -> Option<(Instant, &V)> {
        self.order.get(key)
    }

    /// Takes a thing out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.order.remove(key)
    }

    /// Takes the least recently used thing, if that was not after `used_at`.
    pub fn take_unused(&mut self, used_at: Instant) -> Option<(K, V)> {
        self.order.pop_to(used_at)
    }

    /// Takes the least recently used thing before its time, because room is needed elsewhere (L28).
    pub fn release(&mut self) -> Option<(K, V)> {
        let early = self.order.pop()?;
        self.released += 1;
        Some(early)
    }

    /// When the least recently used thing was used.
    pub fn used_at(&self) -> Option<Instant> {
        self.order.first().map(|(used_at, _)| used_at)
    }

    /// All things, least recently used first.
    pub fn iter(&self) -> impl Iterator<Item = (Instant, &K)> {
        self.order.iter()
    }

    /// How many things there are.
    pub fn level(&self) -> u64 {
        self.order.level()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.level() == 0
    }

    /// Its numbers.
    pub fn meter(&self) -> Meter {
        Meter { released: self.released, ..self.order.meter() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_leaves_first() {
        let spec = Spec { label: "6F", name: "clean files", capacity: 2, threshold: 2 };
        let mut cache = Cache::new(spec);
        let at = Instant::from_secs;
        assert_eq!(cache.put('a', 1, at(1)), None);
        assert_eq!(cache.put('b', 2, at(2)), None);
        assert!(cache.touch(&'a', at(3)));
        assert_eq!(cache.put('c', 3, at(4)), Some(('b', 2)));
        assert_eq!(cache.take_unused(at(2)), None);
        assert_eq!(cache.take_unused(at(3)), Some(('a', 1)));
        assert_eq!((cache.meter().left, cache.meter().released), (2, 1));
    }
}
