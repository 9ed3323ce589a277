//! Things that belong to scopes, found by which scopes they meet.

use std::{collections::BTreeMap, fmt};

use base::FileId;
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{Field, Mode, Name, Scope, kind::Side};

/// A map from (scope, owner) to a value, ordered by file and field.
///
/// What meets a scope lies in few places: among the fields of the same file, in a subtree lease of an
/// ancestor, and for a subtree in the one range of its files. Wide scopes are few and lie apart, so
/// that looking at a single field mostly costs one search.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub(crate) struct Index<K: Owner, V> {
    /// What is on a single field.
    leaves: BTreeMap<Key<K::Part>, V>,
    /// What is on many.
    wides: BTreeMap<Key<K::Part>, V>,
    /// How many entries have the field `Tree`; with none, ancestors need not be asked.
    trees: usize,
}

/// Whose entry it is: somebody, and a side of the field.
pub(crate) trait Owner: Copy {
    type Part: Copy + Ord + fmt::Debug + BorshSerialize + BorshDeserialize;
    /// The least of them, to name where a range begins.
    const MIN: Self::Part;
    fn split(self) -> (Self::Part, Side);
    fn join(part: Self::Part, side: Side) -> Self;
}

impl Owner for Side {
    type Part = ();
    const MIN: () = ();

    fn split(self) -> ((), Side) {
        ((), self)
    }

    fn join((): (), side: Side) -> Side {
        side
    }
}

impl Owner for crate::Client {
    type Part = crate::Client;
    const MIN: crate::Client = crate::Client(u32::MIN);

    fn split(self) -> (crate::Client, Side) {
        (self, Side::Own)
    }

    fn join(client: crate::Client, _: Side) -> crate::Client {
        client
    }
}

impl Owner for (crate::Client, Side) {
    type Part = crate::Client;
    const MIN: crate::Client = crate::Client(u32::MIN);

    fn split(self) -> (crate::Client, Side) {
        self
    }

    fn join(client: crate::Client, side: Side) -> (crate::Client, Side) {
        (client, side)
    }
}

impl Owner for (u64, Side) {
    type Part = u64;
    const MIN: u64 = u64::MIN;

    fn split(self) -> (u64, Side) {
        self
    }

    fn join(number: u64, side: Side) -> (u64, Side) {
        (number, side)
    }
}

/// A scope and an owner in as few bytes as can be: a million of these are kept. Ordered by these
/// fields, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub(crate) struct Key<P> {
    file: FileId,
    rank: u8,
    name: Option<Name>,
    part: P,
    side: Side,
}

const _: () = assert!(size_of::<Key<crate::Client>>() == 24);

/// Where a field stands among the fields of a file: as in [`Field`], the wide ones last.
const fn rank(field: &Field) -> u8 {
    match field {
        Field::Access => 0,
        Field::Times => 1,
        Field::Extended => 2,
        Field::Content => 3,
        Field::Deletion => 4,
        Field::Parent => 5,
        Field::Locks => 6,
        Field::Handles => 7,
        Field::Mode(mode) => MODE + *mode as u8,
        Field::Child(_) => CHILD,
        Field::Children => CHILDREN,
        Field::Whole => WHOLE,
        Field::Tree => TREE,
    }
}

/// So many are looked at one by one, which is quicker than to search for each ancestor. A client that is alone has
/// one lease.
const FEW: usize = 4;

const MODE: u8 = 8;
const CHILD: u8 = MODE + Mode::ALL.len() as u8;
const CHILDREN: u8 = CHILD + 1;
const WHOLE: u8 = CHILD + 2;
const TREE: u8 = CHILD + 3;

/// The field at a rank, with the name of a child.
fn field_at(rank: u8, name: &Option<Name>) -> Field {
    match (rank, name) {
        (CHILD, Some(name)) => Field::Child(name.clone()),
        (0, _) => Field::Access,
        (1, _) => Field::Times,
        (2, _) => Field::Extended,
        (3, _) => Field::Content,
        (4, _) => Field::Deletion,
        (5, _) => Field::Parent,
        (6, _) => Field::Locks,
        (7, _) => Field::Handles,
        (CHILDREN, _) => Field::Children,
        (WHOLE, _) => Field::Whole,
        (TREE, _) => Field::Tree,
        (mode, _) => Field::Mode(Mode::ALL[usize::from(mode - MODE)]),
    }
}

impl<P> Key<P> {
    fn new(scope: &Scope, part: P, side: Side) -> Key<P> {
        let name = match &scope.field {
            Field::Child(name) => Some(name.clone()),
            _ => None,
        };
        Key { file: scope.file.clone(), rank: rank(&scope.field), name, part, side }
    }

    /// Before everything of this file from this rank on.
    fn first(file: FileId, rank: u8, part: P) -> Key<P> {
        Key { file, rank, name: None, part, side: Side::Own }
    }

    /// Whose field it is.
    pub(crate) fn file(&self) -> &FileId {
        &self.file
    }

    /// The scope.
    pub(crate) fn scope(&self) -> Scope {
        Scope { file: self.file.clone(), field: field_at(self.rank, &self.name) }
    }

    /// Whether everything in the other scope is in this one too.
    pub(crate) fn contains(&self, other: &Scope) -> bool {
        if self.rank == TREE {
            return self.file.is_prefix_of(&other.file);
        }
        self.file == other.file
            && match self.rank {
                WHOLE => other.field != Field::Tree,
                CHILDREN => matches!(other.field, Field::Children | Field::Child(_)),
                CHILD => self.is_child(&other.field),
                at => at == rank(&other.field),
            }
    }

    /// Whether everything in this scope is in the other one too.
    pub(crate) fn is_in(&self, other: &Scope) -> bool {
        if other.field == Field::Tree {
            return other.file.is_prefix_of(&self.file);
        }
        self.file == other.file
            && match &other.field {
                Field::Whole => self.rank != TREE,
                Field::Children => matches!(self.rank, CHILDREN | CHILD),
                field @ Field::Child(_) => self.rank == CHILD && self.is_child(field),
                field => self.rank == rank(field),
            }
    }

    fn is_child(&self, field: &Field) -> bool {
        matches!((field, &self.name), (Field::Child(a), Some(b)) if a == b)
    }
}

impl<K: Owner, V> Index<K, V> {
    pub(crate) fn new() -> Index<K, V> {
        Index { leaves: BTreeMap::new(), wides: BTreeMap::new(), trees: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.leaves.len() + self.wides.len()
    }

    fn map(&self, field: &Field) -> &BTreeMap<Key<K::Part>, V> {
        if field.is_wide() { &self.wides } else { &self.leaves }
    }

    fn map_mut(&mut self, field: &Field) -> &mut BTreeMap<Key<K::Part>, V> {
        if field.is_wide() { &mut self.wides } else { &mut self.leaves }
    }

    pub(crate) fn get(&self, scope: &Scope, owner: K) -> Option<&V> {
        let map = self.map(&scope.field);
        if map.is_empty() { None } else { map.get(&key(scope, owner)) }
    }

    pub(crate) fn get_mut(&mut self, scope: &Scope, owner: K) -> Option<&mut V> {
        self.map_mut(&scope.field).get_mut(&key(scope, owner))
    }

    pub(crate) fn insert(&mut self, scope: &Scope, owner: K, value: V) -> Option<V> {
        let before = self.map_mut(&scope.field).insert(key(scope, owner), value);
        self.trees += usize::from(scope.field == Field::Tree && before.is_none());
        before
    }

    pub(crate) fn remove(&mut self, scope: &Scope, owner: K) -> Option<V> {
        let removed = self.map_mut(&scope.field).remove(&key(scope, owner));
        self.trees -= usize::from(scope.field == Field::Tree && removed.is_some());
        removed
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Key<K::Part>, K) -> bool) {
        self.leaves.retain(|key, _| keep(key, K::join(key.part, key.side)));
        self.wides.retain(|key, _| keep(key, K::join(key.part, key.side)));
        self.trees = self.wides.keys().filter(|key| key.rank == TREE).count();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key<K::Part>, K, &V)> {
        self.leaves.iter().chain(&self.wides).map(flat)
    }

    /// Everything whose scope meets this one.
    pub(crate) fn meeting<'a>(
        &'a self,
        scope: &'a Scope,
    ) -> impl Iterator<Item = (&'a Key<K::Part>, K, &'a V)> {
        self.single(scope).chain(self.wide(scope)).chain(self.above(scope)).map(flat::<K, V>)
    }

    /// Shows what has a scope that contains this one, mostly far fewer than meet it, until something comes of it.
    /// Nothing is asked more often, so this is loops and not a chain of iterators, which costs three times as much.
    pub(crate) fn containing<'a, T>(
        &'a self,
        scope: &Scope,
        mut show: impl FnMut(&'a Key<K::Part>, &'a V) -> Option<T>,
    ) -> Option<T> {
        let file = &scope.file;
        if !scope.field.is_wide() && !self.leaves.is_empty() {
            for (key, value) in self.leaves.range(Key::new(scope, K::MIN, Side::Own)..) {
                if !key.is_in(scope) {
                    break;
                }
                if let found @ Some(_) = show(key, value) {
                    return found;
                }
            }
        }
        if self.wides.len() <= FEW {
            let mut all = self.wides.iter();
            return all.find_map(
                |(key, value)| if key.contains(scope) { show(key, value) } else { None },
            );
        }
        for (key, value) in self.wides.range(Key::first(file.clone(), CHILDREN, K::MIN)..) {
            if key.file != *file {
                break;
            }
            if key.contains(scope)
                && let found @ Some(_) = show(key, value)
            {
                return found;
            }
        }
        if self.trees == 0 {
            return None;
        }
        for prefix in file.prefixes().filter(|prefix| prefix != file) {
            for (key, value) in self.wides.range(Key::first(prefix.clone(), TREE, K::MIN)..) {
                if key.rank != TREE || key.file != prefix {
                    break;
                }
                if let found @ Some(_) = show(key, value) {
                    return found;
                }
            }
        }
        None
    }

    /// The single fields in it: they follow each other.
    fn single<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = Entry<'a, K, V>> {
        let range = (!self.leaves.is_empty()).then(|| {
            let low = match &scope.field {
                Field::Whole | Field::Tree => Key::first(scope.file.clone(), 0, K::MIN),
                Field::Children => Key::first(scope.file.clone(), CHILD, K::MIN),
                _ => Key::new(scope, K::MIN, Side::Own),
            };
            self.leaves.range(low..)
        });
        range.into_iter().flatten().take_while(|(key, _)| key.is_in(scope))
    }

    /// The wide scopes of the same file, and for a subtree of the files below.
    fn wide<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = Entry<'a, K, V>> {
        let range = (!self.wides.is_empty())
            .then(|| self.wides.range(Key::first(scope.file.clone(), CHILDREN, K::MIN)..));
        let is_tree = scope.field == Field::Tree;
        let has_names =
            matches!(scope.field, Field::Child(_) | Field::Children | Field::Whole | Field::Tree);
        range
            .into_iter()
            .flatten()
            .take_while(move |(key, _)| match is_tree {
                true => scope.file.is_prefix_of(&key.file),
                false => scope.file == key.file,
            })
            .filter(move |(key, _)| has_names || key.rank != CHILDREN)
    }

    /// The subtree scopes of the files above.
    fn above<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = Entry<'a, K, V>> {
        let above = (self.trees > 0).then(|| scope.file.prefixes());
        above.into_iter().flatten().filter(|prefix| *prefix != scope.file).flat_map(|prefix| {
            let trees = self.wides.range(Key::first(prefix.clone(), TREE, K::MIN)..);
            trees.take_while(move |(key, _)| key.rank == TREE && key.file == prefix)
        })
    }
}

type Entry<'a, K, V> = (&'a Key<<K as Owner>::Part>, &'a V);

fn key<K: Owner>(scope: &Scope, owner: K) -> Key<K::Part> {
    let (part, side) = owner.split();
    Key::new(scope, part, side)
}

fn flat<'a, K: Owner, V>((key, value): Entry<'a, K, V>) -> (&'a Key<K::Part>, K, &'a V) {
    (key, K::join(key.part, key.side), value)
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
            Field::Locks,
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

    #[test]
    fn a_key_is_the_scope_and_sorts_like_it() {
        let modes = Mode::ALL.map(Field::Mode);
        let name = |text: &str| Field::Child(Name::new(text.as_bytes()).unwrap());
        let mut fields = vec![
            Field::Access,
            Field::Times,
            Field::Extended,
            Field::Content,
            Field::Deletion,
            Field::Parent,
            Field::Locks,
            Field::Handles,
        ];
        fields.extend(modes);
        fields.extend([name("a"), name("b"), Field::Children, Field::Whole, Field::Tree]);
        let files = ["root", "1", "1.1", "2"].map(|file| file.parse::<FileId>().unwrap());
        let scopes =
            files.iter().flat_map(|file| fields.iter().map(|field| field.clone().of(file)));
        let scopes: Vec<Scope> = scopes.collect();
        for a in &scopes {
            let key = Key::new(a, (), Side::Own);
            assert_eq!(key.scope(), *a);
            for b in &scopes {
                assert_eq!(key.cmp(&Key::new(b, (), Side::Own)), a.cmp(b), "{a} and {b}");
                assert_eq!((key.contains(b), key.is_in(b)), (a.contains(b), b.contains(a)));
            }
        }
    }

    proptest! {
        #[test]
        fn what_meets_or_contains_a_scope_is_found_and_nothing_else(
            entries in vec((scope(), 0u64..3, any::<bool>()), 0..30),
            probe in scope(),
        ) {
            let mut index = Index::<(u64, Side), ()>::new();
            let mut naive = BTreeMap::new();
            for (scope, owner, keep) in entries {
                index.insert(&scope, (owner, Side::Own), ());
                naive.insert((scope.clone(), owner), ());
                if !keep {
                    index.remove(&scope, (owner, Side::Own));
                    naive.remove(&(scope, owner));
                }
            }
            let mut found: Vec<_> = index.meeting(&probe).map(|(at, k, ())| (at.scope(), k.0)).collect();
            found.sort();
            let expected = naive.keys().filter(|(scope, _)| scope.meets(&probe));
            prop_assert_eq!(found, expected.cloned().collect::<Vec<_>>());
            let mut found = Vec::new();
            let nothing: Option<()> = index.containing(&probe, |at, ()| {
                found.push((at.scope(), at.part));
                None
            });
            prop_assert_eq!(nothing, None);
            found.sort();
            let expected = naive.keys().filter(|(scope, _)| scope.contains(&probe));
            prop_assert_eq!(found, expected.cloned().collect::<Vec<_>>());
        }
    }
}
