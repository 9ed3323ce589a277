//! The file map against a naive model: every prefix in a list, the longest one wins.

use proptest::{collection::vec, prelude::*};

use super::*;

fn id(text: &str) -> FileId {
    text.parse().unwrap()
}

/// Who owns what, by trying every prefix.
#[derive(Clone, Debug)]
struct Naive(Vec<(FileId, u8)>);

impl Naive {
    fn owner(&self, id: &FileId) -> u8 {
        let covering = self.0.iter().filter(|(prefix, _)| prefix.is_prefix_of(id));
        covering.max_by_key(|(prefix, _)| prefix.bit_len()).expect("the root covers all").1
    }

    fn insert(&mut self, prefix: &FileId, owner: u8) -> Option<u8> {
        let before = self.remove(prefix);
        self.0.push((prefix.clone(), owner));
        before
    }

    fn remove(&mut self, prefix: &FileId) -> Option<u8> {
        let index = self.0.iter().position(|(known, _)| known == prefix)?;
        Some(self.0.remove(index).1)
    }
}

fn assert_sound<V>(map: &FileMap<V>) {
    assert!(map.boundaries[0].start.is_root());
    assert!(map.boundaries.is_sorted_by(|a, b| a.start < b.start));
    assert!(map.boundaries.windows(2).all(|pair| pair[0].region != pair[1].region));
    let regions = map.regions.iter().flatten().count();
    assert_eq!(map.regions().count(), regions);
    assert_eq!(map.regions.len(), regions + map.free.len());
    assert!(map.boundaries.len() <= 2 * regions, "linear space");
}

/// The paper's example: A owns all but ⟨1⟩, ⟨3⟩, ⟨4⟩; B owns ⟨1⟩ less ⟨1.3⟩; D owns ⟨1.3⟩ less
/// ⟨1.3.1⟩ and ⟨1.3.3.2⟩.
fn figure_2() -> FileMap<char> {
    let mut map = FileMap::new('A');
    for (from, prefix, to) in [
        ('A', "1", 'B'),
        ('A', "3", 'C'),
        ('A', "4", 'E'),
        ('B', "1.3", 'D'),
        ('D', "1.3.1", 'F'),
        ('D', "1.3.3.2", 'G'),
    ] {
        map.delegate(&from, id(prefix), to).unwrap();
    }
    map
}

#[test]
fn the_longest_delegated_prefix_decides_as_in_figure_2() {
    let mut map = figure_2();
    assert_sound(&map);
    for (file, owner) in [
        ("root", 'A'),
        ("1", 'B'),
        ("1.1", 'B'),
        ("1.2.9", 'B'),
        ("1.3", 'D'),
        ("1.3.1", 'F'),
        ("1.3.1.4", 'F'),
        ("1.3.2", 'D'),
        ("1.3.3", 'D'),
        ("1.3.3.1", 'D'),
        ("1.3.3.2", 'G'),
        ("1.3.3.2.1", 'G'),
        ("1.3.3.3", 'D'),
        ("1.4", 'B'),
        ("2", 'A'),
        ("3.1", 'C'),
        ("4", 'E'),
        ("5", 'A'),
    ] {
        assert_eq!(*map.owner(&id(file)), owner, "{file}");
    }

    map.delegate(&'D', id("1.3.3"), 'H').unwrap();
    assert_eq!(*map.owner(&id("1.3.3.1")), 'H', "D delegated ⟨1.3.3⟩");
    assert_eq!(*map.owner(&id("1.3.3.2")), 'G', "delegated before, and not from H");
    assert_eq!(*map.owner(&id("1.3.4")), 'D');
    assert_eq!(map.hand_back(&id("1.3.3")), Some('H'));
    assert_eq!(map, figure_2());
}

#[test]
fn only_the_owner_can_delegate() {
    let mut map = figure_2();
    assert_eq!(map.delegate(&'A', id("1.2"), 'Z'), Err(NotOwner { prefix: id("1.2") }));
    assert_eq!(
        map.delegate(&'B', id("1.3.2"), 'Z').unwrap_err().to_string(),
        "1.3.2 belongs to another: only its owner can delegate it"
    );
    assert_eq!(map, figure_2());
}

#[test]
fn what_was_not_delegated_cannot_be_handed_back() {
    let mut map = figure_2();
    for prefix in ["root", "2", "1.3.3", "1.3.3.2.1"] {
        assert_eq!(map.hand_back(&id(prefix)), None, "{prefix}");
    }
    assert_eq!(map, figure_2());
}

#[test]
fn regions_come_parents_first() {
    let map = figure_2();
    let prefixes: Vec<_> = map.regions().map(|region| region.prefix.to_string()).collect();
    assert_eq!(prefixes, ["root", "1", "1.3", "1.3.1", "1.3.3.2", "3", "4"]);
}

#[test]
fn a_region_at_the_end_of_all_identifiers_has_nothing_behind_it() {
    let last = id("18446744073709551615");
    let mut map = FileMap::new('A');
    map.insert(last.clone(), 'B');
    assert_sound(&map);
    assert_eq!(*map.owner(&last.child(std::num::NonZeroU64::MAX).unwrap()), 'B');
    assert_eq!(*map.owner(&id("18446744073709551614.9")), 'A');
    assert_eq!(map.hand_back(&last), Some('B'));
    assert_eq!(map, FileMap::new('A'));
}

/// A small dense world, so that regions nest, touch and repeat.
fn prefix() -> impl Strategy<Value = FileId> {
    let component = prop_oneof![9 => 1u64..4, 1 => Just(u64::MAX)];
    vec(component, 0..5).prop_map(|components| {
        components.iter().fold(FileId::ROOT, |id, &n| id.child(n.try_into().unwrap()).unwrap())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_history_of_delegations_answers_as_the_naive_map(
        history in vec((prefix(), any::<Option<u8>>()), 0..60),
        probes in vec(prefix(), 40),
    ) {
        let mut map = FileMap::new(0);
        let mut naive = Naive(vec![(FileId::ROOT, 0)]);
        for (prefix, owner) in history {
            match owner {
                Some(owner) => {
                    let from = naive.owner(&prefix);
                    let known = map.clone();
                    prop_assert!(map.delegate(&from.wrapping_add(1), prefix.clone(), owner).is_err());
                    prop_assert_eq!(&map, &known);
                    map.delegate(&from, prefix.clone(), owner).unwrap();
                    naive.insert(&prefix, owner);
                }
                None if prefix.is_root() => prop_assert_eq!(map.hand_back(&prefix), None),
                None => prop_assert_eq!(map.hand_back(&prefix), naive.remove(&prefix)),
            }
            assert_sound(&map);
            for probe in &probes {
                prop_assert_eq!(*map.owner(probe), naive.owner(probe), "{}", probe);
            }
        }
        let regions = naive.0.into_iter().map(|(prefix, owner)| Region { prefix, owner });
        let built = FileMap::from_regions(9, regions.clone().chain(regions));
        assert_sound(&built);
        prop_assert_eq!(built, map);
    }
}
