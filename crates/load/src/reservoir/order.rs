//! Keyed entries in an order that is not the keys': the inside of [`Marks`], [`Ranks`] and [`Cache`].
//!
//! [`Marks`]: super::Marks
//! [`Ranks`]: super::Ranks
//! [`Cache`]: super::Cache

use std::collections::{BTreeMap, btree_map};

use super::meter::{Count, Meter};

/// One entry per key, in order of `O`, and among equals in order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Order<O, K, V> {
    /// The same entries as in `keys`: each says where in `keys` it stands.
    entries: BTreeMap<K, Entry<O, V>>,
    keys: BTreeMap<(O, u64), K>,
    arrivals: u64,
    count: Count,
}

#[derive(Clone, Debug)]
struct Entry<O, V> {
    place: (O, u64),
    value: V,
}

impl<O: Copy + Ord, K: Clone + Ord, V> Order<O, K, V> {
    pub(super) fn new() -> Order<O, K, V> {
        let (entries, keys) = (BTreeMap::new(), BTreeMap::new());
        Order { entries, keys, arrivals: 0, count: Count::default() }
    }

    pub(super) fn level(&self) -> u64 {
        self.count.level()
    }

    pub(super) fn meter(&self) -> Meter {
        self.count.meter()
    }

    pub(super) fn get(&self, key: &K) -> Option<(O, &V)> {
        self.entries.get(key).map(|entry| (entry.place.0, &entry.value))
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    /// Puts a new entry behind its equals, or moves an old one there; gives the old value.
    pub(super) fn put(&mut self, key: K, order: O, value: V) -> Option<V> {
        let place = self.next_place(order);
        let old = match self.entries.entry(key.clone()) {
            btree_map::Entry::Vacant(vacant) => {
                vacant.insert(Entry { place, value });
                self.count.enter(1);
                None
            }
            btree_map::Entry::Occupied(mut occupied) => {
                let old = occupied.insert(Entry { place, value });
                self.keys.remove(&old.place);
                Some(old.value)
            }
        };
        self.keys.insert(place, key);
        old
    }

    /// As `put`, but an old entry never moves before its equals.
    pub(super) fn put_latest(&mut self, key: K, order: O, value: V) -> Option<V> {
        let mut place = self.next_place(order);
        let old = match self.entries.entry(key.clone()) {
            btree_map::Entry::Vacant(vacant) => {
                vacant.insert(Entry { place, value });
                self.count.enter(1);
                None
            }
            btree_map::Entry::Occupied(mut occupied) => {
                place.0 = place.0.max(occupied.get().place.0);
                let old = occupied.insert(Entry { place, value });
                self.keys.remove(&old.place);
                Some(old.value)
            }
        };
        self.keys.insert(place, key);
        old
    }

    /// As `put`, but an entry that is among its equals already keeps its turn.
    pub(super) fn put_once(&mut self, key: K, order: O, value: V) {
        let place = self.next_place(order);
        match self.entries.entry(key.clone()) {
            btree_map::Entry::Vacant(vacant) => {
                vacant.insert(Entry { place, value });
                self.count.enter(1);
            }
            btree_map::Entry::Occupied(occupied) if occupied.get().place.0 == order => return,
            btree_map::Entry::Occupied(mut occupied) => {
                let old = occupied.insert(Entry { place, value });
                self.keys.remove(&old.place);
            }
        }
        self.keys.insert(place, key);
    }

    /// Moves an entry behind its new equals, if there is one of this key.
    pub(super) fn reorder(&mut self, key: &K, order: O) -> bool {
        let place = self.next_place(order);
        let Some(entry) = self.entries.get_mut(key) else { return false };
        if let Some(key) = self.keys.remove(&entry.place) {
            self.keys.insert(place, key);
        }
        entry.place = place;
        true
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.keys.remove(&entry.place);
        self.count.leave(1);
        Some(entry.value)
    }

    pub(super) fn first(&self) -> Option<(O, &K)> {
        self.keys.first_key_value().map(|(&(order, _), key)| (order, key))
    }

    pub(super) fn pop(&mut self) -> Option<(K, V)> {
        let (_, key) = self.keys.pop_first()?;
        let entry = self.entries.remove(&key)?;
        self.count.leave(1);
        Some((key, entry.value))
    }

    /// Takes the first entry if its order is not beyond `last`.
    pub(super) fn pop_to(&mut self, last: O) -> Option<(K, V)> {
        self.first().filter(|&(order, _)| order <= last)?;
        self.pop()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (O, &K)> {
        self.keys.iter().map(|(&(order, _), key)| (order, key))
    }

    fn next_place(&mut self, order: O) -> (O, u64) {
        self.arrivals += 1;
        (order, self.arrivals)
    }
}
