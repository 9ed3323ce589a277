//! Of which keys it is known what is there: a set of stretches of the line of keys.
//!
//! A key in here without a record is known to have none. So "no such name" needs no record, and a whole
//! directory, or everything, is one stretch.

use std::collections::BTreeMap;

use crate::record::Key;

/// A place between two keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Edge {
    /// Before a key, or right after it.
    At(Key, bool),
    /// After all of them.
    End,
}

impl Edge {
    pub(crate) fn before(key: &Key) -> Edge {
        Edge::At(key.clone(), false)
    }

    pub(crate) fn after(key: &Key) -> Edge {
        Edge::At(key.clone(), true)
    }
}

/// A set of keys, as stretches that neither overlap nor touch: start and end of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    stretches: BTreeMap<Edge, Edge>,
    /// Mostly it is, and then nothing has to be looked up.
    is_everything: bool,
}

impl Known {
    /// Every key.
    pub(crate) fn everything() -> Known {
        let stretches = BTreeMap::from([(first(), Edge::End)]);
        Known { stretches, is_everything: true }
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.is_everything
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.is_everything
            || self.reach(&Edge::before(key)).is_some_and(|end| *end >= Edge::after(key))
    }

    /// The end of the stretch in which something that starts at this edge lies.
    pub(crate) fn reach(&self, from: &Edge) -> Option<&Edge> {
        let (_, end) = self.stretches.range(..=from).next_back()?;
        (end > from).then_some(end)
    }

    pub(crate) fn add_key(&mut self, key: &Key) {
        self.add(Edge::before(key), Edge::after(key));
    }

    pub(crate) fn remove_key(&mut self, key: &Key) {
        let (from, to) = (Edge::before(key), Edge::after(key));
        let Some((start, end)) = self.stretches.range(..=&from).next_back() else { return };
        if *end <= from {
            return;
        }
        let (start, end) = (start.clone(), end.clone());
        self.is_everything = false;
        self.stretches.remove(&start);
        if start < from {
            self.stretches.insert(start, from);
        }
        if to < end {
            self.stretches.insert(to, end);
        }
    }

    pub(crate) fn add(&mut self, mut from: Edge, mut to: Edge) {
        if let Some((start, end)) = self.stretches.range(..=&from).next_back()
            && *end >= from
        {
            from = start.clone();
        }
        while let Some((start, end)) = self.stretches.range(&from..=&to).next() {
            let (start, end) = (start.clone(), end.clone());
            self.stretches.remove(&start);
            to = to.max(end);
        }
        self.is_everything = from == first() && to == Edge::End;
        self.stretches.insert(from, to);
    }
}

fn first() -> Edge {
    Edge::At(Key { file: base::FileId::ROOT, name: None }, false)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lease::Name;
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn keys() -> Vec<Key> {
        let files = ["root", "1", "1.1", "2"].map(|id| id.parse::<base::FileId>().unwrap());
        let mut keys = Vec::new();
        for file in files {
            keys.push(Key::file(&file));
            for name in ["a", "b", "c"] {
                keys.push(Key::entry(&file, &Name::new(name.as_bytes()).unwrap()));
            }
        }
        keys.sort();
        keys
    }

    proptest! {
        #[test]
        fn it_is_the_set_of_keys_that_were_added_and_not_removed(
            steps in vec((0usize..16, 0usize..16, any::<bool>()), 0..40),
        ) {
            let keys = keys();
            let mut known = Known::default();
            let mut naive = BTreeSet::new();
            for (from, to, is_removal) in steps {
                if is_removal {
                    known.remove_key(&keys[from]);
                    naive.remove(&from);
                } else if from <= to {
                    known.add(Edge::before(&keys[from]), Edge::after(&keys[to]));
                    naive.extend(from..=to);
                }
                for (index, key) in keys.iter().enumerate() {
                    prop_assert_eq!(known.contains(key), naive.contains(&index));
                }
                let mut last: Option<&Edge> = None;
                for (start, end) in &known.stretches {
                    prop_assert!(start < end && last.is_none_or(|last| last < start));
                    last = Some(end);
                }
            }
        }
    }

    #[test]
    fn everything_is_one_stretch_and_heals() {
        let mut known = Known::everything();
        let key = &keys()[5];
        assert!(known.contains(key) && known.is_everything());
        known.remove_key(key);
        assert!(!known.contains(key) && !known.is_everything());
        known.add_key(key);
        assert!(known.is_everything());
    }
}
