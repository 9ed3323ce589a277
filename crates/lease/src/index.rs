//! Things that belong to scopes, found by which scopes they meet.

use std::{
    collections::{BTreeMap, btree_map},
    ops::Bound::{Excluded, Included, Unbounded},
};

use crate::{Field, Mode, Scope, kind::Side};

/// A map from (scope, owner) to a value, ordered by file and field.
///
/// What meets a scope lies in few places: among the fields of the same file, in a subtree lease of an
/// ancestor, and for a subtree in the one range of its files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Index<K, V> {
    entries: BTreeMap<(Scope, K), V>,
    /// How many entries have the field `Tree`; with none, ancestors need not be asked.
    trees: usize,
}

/// The least and the greatest owner, to name ranges.
pub(crate) trait Owner: Copy + Ord {
    const MIN: Self;
    const MAX: Self;
}

impl Owner for u64 {
    const MIN: u64 = u64::MIN;
    const MAX: u64 = u64::MAX;
}

impl Owner for crate::Client {
    const MIN: crate::Client = crate::Client(u32::MIN);
    const MAX: crate::Client = crate::Client(u32::MAX);
}

impl Owner for Side {
    const MIN: Side = Side::Own;
    const MAX: Side = Side::Others;
}

impl<K: Owner> Owner for (K, Side) {
    const MIN: (K, Side) = (K::MIN, Side::MIN);
    const MAX: (K, Side) = (K::MAX, Side::MAX);
}

impl<K: Owner, V> Index<K, V> {
    pub(crate) fn new() -> Index<K, V> {
        Index { entries: BTreeMap::new(), trees: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn get(&self, scope: &Scope, owner: K) -> Option<&V> {
        self.entries.get(&(scope.clone(), owner))
    }

    pub(crate) fn get_mut(&mut self, scope: &Scope, owner: K) -> Option<&mut V> {
        self.entries.get_mut(&(scope.clone(), owner))
    }

    pub(crate) fn insert(&mut self, scope: Scope, owner: K, value: V) -> Option<V> {
        let is_tree = scope.field == Field::Tree;
        let before = self.entries.insert((scope, owner), value);
        self.trees += usize::from(is_tree && before.is_none());
        before
    }

    pub(crate) fn remove(&mut self, scope: &Scope, owner: K) -> Option<V> {
        let removed = self.entries.remove(&(scope.clone(), owner));
        self.trees -= usize::from(scope.field == Field::Tree && removed.is_some());
        removed
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Scope, K, &V) -> bool) {
        self.entries.retain(|(scope, owner), value| keep(scope, *owner, value));
        self.trees = self.entries.keys().filter(|(scope, _)| scope.field == Field::Tree).count();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Scope, K, &V)> {
        self.entries.iter().map(flat)
    }

    /// Everything whose scope meets this one.
    pub(crate) fn meeting<'a>(
        &'a self,
        scope: &'a Scope,
    ) -> impl Iterator<Item = (&'a Scope, K, &'a V)> {
        let inside = self.inside(scope).map(flat);
        let around = self.around(scope).into_iter().flatten().map(flat);
        inside.chain(around).chain(self.ancestors(scope).map(flat))
    }

    /// What the scope contains, itself included.
    fn inside(&self, scope: &Scope) -> btree_map::Range<'_, (Scope, K), V> {
        let at = |field: Field, owner| (field.of(&scope.file), owner);
        let low = match scope.field {
            Field::Whole | Field::Tree => Included(at(Field::Access, K::MIN)),
            // The last field before the child names.
            Field::Children => Excluded(at(Field::Mode(Mode::DenyDelete), K::MAX)),
            _ => Included((scope.clone(), K::MIN)),
        };
        let high = match scope.field {
            Field::Tree => scope
                .file
                .region_end()
                .map_or(Unbounded, |end| Excluded((Field::Access.of(&end), K::MIN))),
            // The same file's wide fields stand behind this one and are asked for in `around`.
            _ => Included((scope.clone(), K::MAX)),
        };
        self.entries.range((low, high))
    }

    /// The wide scopes of the same file that contain this one.
    fn around(&self, scope: &Scope) -> Option<btree_map::Range<'_, (Scope, K), V>> {
        let low = match scope.field {
            Field::Tree => return None,
            Field::Child(_) => Included((Field::Children.of(&scope.file), K::MIN)),
            Field::Children | Field::Whole => Excluded((scope.clone(), K::MAX)),
            _ => Included((Field::Whole.of(&scope.file), K::MIN)),
        };
        Some(self.entries.range((low, Included((Field::Tree.of(&scope.file), K::MAX)))))
    }

    /// The subtree scopes of the files above.
    fn ancestors<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = (&'a (Scope, K), &'a V)> {
        let above = (self.trees > 0).then(|| scope.file.prefixes());
        above.into_iter().flatten().filter(|prefix| *prefix != scope.file).flat_map(|prefix| {
            let tree = Field::Tree.of(&prefix);
            self.entries.range((tree.clone(), K::MIN)..=(tree, K::MAX))
        })
    }
}

fn flat<'a, K: Copy, V>((key, value): (&'a (Scope, K), &'a V)) -> (&'a Scope, K, &'a V) {
    (&key.0, key.1, value)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::Name;

    fn scope() -> impl Strategy<Value = Scope> {
        let name = |text: &str| Field::Child(Name::new(text.as_bytes()).unwrap());
        let field = prop::sample::select(vec![
            Field::Access,
            Field::Handles,
            Field::Mode(Mode::DenyDelete),
            name("a"),
            name("b"),
            name("zz"),
            Field::Children,
            Field::Whole,
            Field::Tree,
        ]);
        let file = prop::sample::select(vec!["root", "1", "1.1", "1.1.1", "1.2", "2", "2.1"]);
        (file, field).prop_map(|(file, field)| field.of(&file.parse().unwrap()))
    }

    proptest! {
        #[test]
        fn what_meets_a_scope_is_found_and_nothing_else(
            entries in vec((scope(), 0u64..3, any::<bool>()), 0..30),
            probe in scope(),
        ) {
            let mut index = Index::<u64, ()>::new();
            let mut naive = BTreeMap::new();
            for (scope, owner, keep) in entries {
                index.insert(scope.clone(), owner, ());
                naive.insert((scope.clone(), owner), ());
                if !keep {
                    index.remove(&scope, owner);
                    naive.remove(&(scope, owner));
                }
            }
            let mut found: Vec<_> = index.meeting(&probe).map(|(s, k, ())| (s.clone(), k)).collect();
            found.sort();
            let expected = naive.keys().filter(|(scope, _)| scope.meets(&probe));
            prop_assert_eq!(found, expected.cloned().collect::<Vec<_>>());
        }
    }
}
