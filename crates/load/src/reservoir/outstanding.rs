//! What has been sent and not yet answered, by key, stopping what sends more (L38, L46).

use std::collections::{BTreeMap, btree_map::Entry};

use base::Instant;

use super::{Meter, Tally};
use crate::Spec;

/// A throttling reservoir whose items leave in the order of their answers.
#[derive(Clone, Debug)]
pub struct Outstanding<K, V> {
    items: BTreeMap<K, V>,
    tally: Tally,
}

/// Why an answer is not awaited; key and value are in the caller's hands again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the arrival did not enter; keep it, and stop the flow that it came by"]
pub enum NotInserted<K, V> {
    /// There is no room: wait with it.
    Full(K, V),
    /// Something else is outstanding under an equal key, and stays.
    Taken(K, V),
}

impl<K: Clone + Ord, V> Outstanding<K, V> {
    /// Nothing is outstanding yet.
    pub fn new(spec: Spec) -> Outstanding<K, V> {
        Outstanding { items: BTreeMap::new(), tally: Tally::new(spec) }
    }

    /// What the graph says about it.
    pub fn spec(&self) -> &Spec {
        self.tally.spec()
    }

    /// Whether the flows that it throttles may run; see [`Tally`] on hysteresis.
    pub fn is_open(&self) -> bool {
        self.tally.is_open()
    }

    /// Notes that an answer is awaited; hands key and value back if there is no room or the key is taken.
    pub fn insert(&mut self, now: Instant, key: K, value: V) -> Result<(), NotInserted<K, V>> {
        match self.items.entry(key) {
            Entry::Occupied(occupied) => Err(NotInserted::Taken(occupied.key().clone(), value)),
            Entry::Vacant(vacant) => {
                if self.tally.enter(now, 1).is_err() {
                    return Err(NotInserted::Full(vacant.into_key(), value));
                }
                vacant.insert(value);
                Ok(())
            }
        }
    }

    /// The answer is here, or will not come.
    pub fn remove(&mut self, now: Instant, key: &K) -> Option<V> {
        let value = self.items.remove(key)?;
        self.tally.leave(now, 1);
        Some(value)
    }

    /// What is outstanding under this key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.items.get(key)
    }

    /// All that is outstanding, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.items.iter()
    }

    /// How much is outstanding.
    pub fn level(&self) -> u64 {
        self.tally.level()
    }

    /// Whether nothing is.
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
    use super::*;

    #[test]
    fn an_answer_in_any_order_makes_room() {
        let spec = Spec { label: "7C", name: "requests", capacity: 2, threshold: 2 };
        let mut requests = Outstanding::new(spec);
        let now = Instant::START;
        assert_eq!(requests.insert(now, 1, 'a'), Ok(()));
        assert_eq!(requests.insert(now, 2, 'b'), Ok(()));
        assert!(!requests.is_open());
        assert_eq!(requests.insert(now, 3, 'c'), Err(NotInserted::Full(3, 'c')));
        assert_eq!(requests.remove(now, &2), Some('b'));
        assert_eq!(requests.remove(now, &2), None, "a second answer changes nothing");
        assert!(requests.is_open());
    }

    #[test]
    fn a_taken_key_is_told_from_want_of_room_even_without_room() {
        let spec = Spec { label: "7C", name: "requests", capacity: 1, threshold: 1 };
        let mut requests = Outstanding::new(spec);
        let now = Instant::START;
        assert_eq!(requests.insert(now, 1, 'a'), Ok(()));
        assert_eq!(requests.insert(now, 1, 'x'), Err(NotInserted::Taken(1, 'x')));
        assert_eq!(requests.insert(now, 2, 'b'), Err(NotInserted::Full(2, 'b')));
        assert_eq!(requests.get(&1), Some(&'a'));
        assert_eq!(requests.meter(now).refused, 1, "a taken key is not for want of room");
    }
}
