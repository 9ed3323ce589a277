//! What has been sent and not yet answered, by key, stopping what sends more (L38, L46).

use std::collections::{BTreeMap, btree_map::Entry};

use base::Instant;

use super::{Full, Meter, Tally};
use crate::Spec;

/// A throttling reservoir whose items leave in the order of their answers.
#[derive(Clone, Debug)]
pub struct Outstanding<K, V> {
    items: BTreeMap<K, V>,
    tally: Tally,
}

impl<K: Ord, V> Outstanding<K, V> {
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

    /// Notes that an answer is awaited; hands the value back if there is no room or the key is taken.
    pub fn insert(&mut self, now: Instant, key: K, value: V) -> Result<(), Full<V>> {
        match self.items.entry(key) {
            Entry::Vacant(vacant) if !self.tally.is_full() => {
                vacant.insert(value);
                self.tally.enter(now);
                Ok(())
            }
            _ => {
                self.tally.refuse();
                Err(Full(value))
            }
        }
    }

    /// The answer is here, or will not come.
    pub fn remove(&mut self, now: Instant, key: &K) -> Option<V> {
        let value = self.items.remove(key)?;
        self.tally.leave(now);
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
        assert_eq!(requests.insert(now, 1, 'x'), Err(Full('x')), "one request per key");
        assert_eq!(requests.insert(now, 2, 'b'), Ok(()));
        assert!(!requests.is_open());
        assert_eq!(requests.insert(now, 3, 'c'), Err(Full('c')));
        assert_eq!(requests.remove(now, &2), Some('b'));
        assert_eq!(requests.remove(now, &2), None, "a second answer changes nothing");
        assert!(requests.is_open());
    }
}
