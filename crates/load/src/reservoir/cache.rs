//! Kept things in the order of their last use, the least recent leaving first (L25, L41, L60).

use base::Instant;

use super::{
    meter::{Count, Meter},
    order::Order,
};
use crate::Spec;

/// Things by key, each with a weight in the place's unit; what does not fit makes those leave that were
/// used least recently.
///
/// A use may be told late and out of order: what counts is when it was, not when we heard of it. So the
/// latest use of a thing stands, and an arrival that was used before all others leaves before them.
#[derive(Clone, Debug)]
pub struct Cache<K, V = ()> {
    spec: Spec,
    order: Order<Instant, K, Kept<V>>,
    /// By weight.
    count: Count,
    released: u64,
}

#[derive(Clone, Debug)]
struct Kept<V> {
    value: V,
    weight: u64,
}

impl<K: Clone + Ord, V> Cache<K, V> {
    /// An empty cache for this place.
    pub fn new(spec: Spec) -> Cache<K, V> {
        assert!(spec.capacity > 0, "{} could hold nothing", spec.label);
        Cache { spec, order: Order::new(), count: Count::default(), released: 0 }
    }

    /// What the graph says about it.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Keeps a thing last used then, in place of an older one of this key.
    ///
    /// Where the place counts things, each weighs 1. A weight of nothing counts as 1 too, or there would
    /// be no bound on how many there are.
    ///
    /// What is handed to `release` has left and must be released now. It may be the arrival, if that was
    /// used less recently than what is kept or is too heavy for the whole cache.
    pub fn put(
        &mut self,
        key: K,
        value: V,
        weight: u64,
        used_at: Instant,
        mut release: impl FnMut(K, V),
    ) {
        let weight = weight.max(1);
        if self.has_room(weight) {
            return self.keep(key, value, weight, used_at);
        }
        let used_at = self.get(&key).map_or(used_at, |(before, _)| used_at.max(before));
        self.remove(&key);
        while weight <= self.spec.capacity && !self.has_room(weight) {
            if self.used_at().is_none_or(|first| first > used_at) {
                break;
            }
            let Some((key, value)) = self.release() else { break };
            release(key, value);
        }
        if self.has_room(weight) {
            self.keep(key, value, weight, used_at);
        } else {
            self.count.pass(weight);
            self.released += weight;
            release(key, value);
        }
    }

    fn has_room(&self, weight: u64) -> bool {
        weight <= self.spec.capacity - self.level()
    }

    fn keep(&mut self, key: K, value: V, weight: u64, used_at: Instant) {
        if let Some(old) = self.order.put_latest(key, used_at, Kept { value, weight }) {
            self.count.leave(old.weight);
        }
        self.count.enter(weight);
    }

    /// Says when a thing was used; whether it is kept. An earlier use than the last known is no news.
    pub fn touch(&mut self, key: &K, used_at: Instant) -> bool {
        let Some((before, _)) = self.order.get(key) else { return false };
        before > used_at || self.order.reorder(key, used_at)
    }

    /// A thing and when it was last used.
    pub fn get(&self, key: &K) -> Option<(Instant, &V)> {
        self.order.get(key).map(|(used_at, kept)| (used_at, &kept.value))
    }

    /// Takes a thing out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let Kept { value, weight } = self.order.remove(key)?;
        self.count.leave(weight);
        Some(value)
    }

    /// Takes the least recently used thing, if that was not after `used_at`.
    pub fn take_unused(&mut self, used_at: Instant) -> Option<(K, V)> {
        let (key, Kept { value, weight }) = self.order.pop_to(used_at)?;
        self.count.leave(weight);
        Some((key, value))
    }

    /// Takes the least recently used thing before its time, because room is needed (L28).
    pub fn release(&mut self) -> Option<(K, V)> {
        let (key, Kept { value, weight }) = self.order.pop()?;
        self.count.leave(weight);
        self.released += weight;
        Some((key, value))
    }

    /// When the least recently used thing was used.
    pub fn used_at(&self) -> Option<Instant> {
        self.order.first().map(|(used_at, _)| used_at)
    }

    /// All things, least recently used first.
    pub fn iter(&self) -> impl Iterator<Item = (Instant, &K)> {
        self.order.iter()
    }

    /// What all things weigh together.
    pub fn level(&self) -> u64 {
        self.count.level()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.level() == 0
    }

    /// Its numbers.
    pub fn meter(&self) -> Meter {
        Meter { released: self.released, ..self.count.meter() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of bytes with room for ten.
    fn files() -> Cache<char, u8> {
        let spec = Spec { label: "6F", name: "clean files", capacity: 10, threshold: 10 };
        Cache::new(spec)
    }

    /// Puts these, each a key, a weight and a second; gives what comes out, in order.
    fn put(cache: &mut Cache<char, u8>, things: &[(char, u64, u64)]) -> String {
        let mut out = String::new();
        for &(key, weight, second) in things {
            cache.put(key, 0, weight, Instant::from_secs(second), |key, _| out.push(key));
        }
        out
    }

    #[test]
    fn the_least_recently_used_leaves_first() {
        let (mut cache, at) = (files(), Instant::from_secs);
        assert_eq!(put(&mut cache, &[('a', 5, 1), ('b', 5, 2)]), "");
        assert!(cache.touch(&'a', at(3)));
        assert_eq!(put(&mut cache, &[('c', 5, 4)]), "b");
        assert_eq!(cache.take_unused(at(2)), None);
        assert_eq!(cache.take_unused(at(3)), Some(('a', 0)));
        assert_eq!((cache.meter().left, cache.meter().released), (10, 5));
    }

    #[test]
    fn a_heavy_arrival_makes_as_many_leave_as_it_must() {
        let mut cache = files();
        assert_eq!(put(&mut cache, &[('a', 3, 1), ('b', 3, 2), ('c', 3, 3), ('d', 6, 4)]), "ab");
        assert_eq!((cache.level(), cache.meter().level_max), (9, 9));
        assert_eq!(put(&mut cache, &[('d', 7, 5)]), "", "it takes its own place");
        assert_eq!(
            put(&mut cache, &[('e', 11, 6)]),
            "e",
            "it is too heavy, and no reason to empty"
        );
        assert_eq!(cache.level(), 10);
    }

    #[test]
    fn what_weighs_nothing_is_bounded_too() {
        let mut cache = files();
        let things: Vec<_> = ('a'..='l').zip(1..).map(|(key, second)| (key, 0, second)).collect();
        assert_eq!(put(&mut cache, &things), "ab");
    }

    #[test]
    fn a_use_that_is_told_late_moves_nothing_back() {
        let (mut cache, at) = (files(), Instant::from_secs);
        assert_eq!(put(&mut cache, &[('a', 5, 4), ('b', 5, 3)]), "");
        assert!(cache.touch(&'a', at(1)));
        assert_eq!(put(&mut cache, &[('a', 5, 2)]), "");
        assert_eq!(cache.get(&'a'), Some((at(4), &0)));
        assert_eq!(put(&mut cache, &[('c', 5, 5)]), "b");
    }

    #[test]
    fn an_arrival_that_was_used_before_all_others_leaves_itself() {
        let mut cache = files();
        assert_eq!(put(&mut cache, &[('a', 5, 4), ('b', 5, 3), ('c', 5, 2)]), "c");
        let meter = cache.meter();
        assert_eq!((meter.level, meter.entered, meter.left, meter.released), (10, 15, 5, 5));
    }
}
