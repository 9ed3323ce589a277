//! What identifiers and the file map cost, beside baselines measured in the same run.
//!
//! `cargo bench -p base`. The figures that matter are ratios: a look-up among 100,000 regions against
//! one among 10, and each against a naive scan and a trie.

use std::{fmt, num::NonZeroU64};

use base::{FileId, FileMap, Region, Rng};
use divan::{Bencher, black_box};
use sequence_trie::SequenceTrie;

fn main() {
    divan::main();
}

/// A tree that grows as desktops do: a new directory's parent is a random older one, more likely one
/// that has children already.
fn directories(count: usize) -> Vec<FileId> {
    let mut rng = Rng::new(1);
    let mut ids = vec![FileId::ROOT];
    let mut children = vec![0u64];
    let mut tickets = vec![0usize, 0];
    while ids.len() <= count {
        let parent = *rng.pick(&tickets);
        children[parent] += 1;
        let number = NonZeroU64::new(children[parent]).expect("it was counted up");
        let Ok(id) = ids[parent].child(number) else { continue };
        tickets.extend([parent, ids.len(), ids.len()]);
        ids.push(id);
        children.push(0);
    }
    ids.split_off(1)
}

/// Files in random directories of the tree.
fn files(directories: &[FileId], count: usize) -> Vec<FileId> {
    let mut rng = Rng::new(2);
    let file = |rng: &mut Rng| {
        let number = NonZeroU64::new(1 + rng.below(40)).expect("it is positive");
        rng.pick(directories).child(number).expect("the tree is shallow")
    };
    (0..count).map(|_| file(&mut rng)).collect()
}

#[derive(Clone, Copy)]
enum Length {
    Short,
    Long,
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Length::Short => "up to 48 bits",
            Length::Long => "over 48 bits",
        })
    }
}

const LENGTHS: [Length; 2] = [Length::Short, Length::Long];

/// A thousand files of a tree; the long ones lie a few crowded directories deeper.
fn of_length(length: Length) -> Vec<FileId> {
    let mut ids = files(&directories(20_000), 2_000);
    if let Length::Long = length {
        let deeper = |id: FileId| {
            [1_000, 3, 50]
                .into_iter()
                .filter_map(NonZeroU64::new)
                .fold(id, |id, number| id.child(number).expect("the tree is shallow"))
        };
        ids = ids.into_iter().map(deeper).collect();
    }
    ids.retain(|id| matches!(length, Length::Short) == (id.bit_len() <= FileId::SHORT_MAX));
    ids.truncate(1_000);
    assert_eq!(ids.len(), 1_000);
    ids
}

#[divan::bench(args = LENGTHS, counters = [divan::counter::ItemsCount::new(1_000u32)])]
fn encode_key(bencher: Bencher, length: Length) {
    let ids = of_length(length);
    let mut key = Vec::with_capacity(FileId::KEY_MAX);
    bencher.bench_local(|| {
        for id in &ids {
            key.clear();
            id.append_key(&mut key);
            black_box(&key);
        }
    });
}

#[divan::bench(args = LENGTHS, counters = [divan::counter::ItemsCount::new(1_000u32)])]
fn decode_key(bencher: Bencher, length: Length) {
    let keys: Vec<_> = of_length(length).iter().map(FileId::to_key).collect();
    bencher.bench_local(|| {
        for key in &keys {
            black_box(FileId::from_key(key).is_ok());
        }
    });
}

#[divan::bench(args = LENGTHS, counters = [divan::counter::ItemsCount::new(1_000u32)])]
fn compare(bencher: Bencher, length: Length) {
    let ids = of_length(length);
    bencher.bench_local(|| ids.windows(2).filter(|pair| black_box(&pair[0]) < &pair[1]).count());
}

#[divan::bench(args = LENGTHS, counters = [divan::counter::ItemsCount::new(1_000u32)])]
fn clone(bencher: Bencher, length: Length) {
    let ids = of_length(length);
    bencher.bench_local(|| ids.iter().for_each(|id| drop(black_box(id.clone()))));
}

const REGIONS: [usize; 3] = [10, 1_000, 100_000];
const PROBES: usize = 1_000;

#[divan::bench(args = REGIONS, counters = [divan::counter::ItemsCount::new(PROBES)])]
fn look_up_in_the_map(bencher: Bencher, count: usize) {
    let prefixes = directories(count);
    let probes = files(&prefixes, PROBES);
    let regions = (1u32..).zip(prefixes).map(|(owner, prefix)| Region { prefix, owner });
    let map = FileMap::from_regions(0u32, regions);
    bencher.bench_local(|| probes.iter().map(|id| *map.owner(black_box(id)) as u64).sum::<u64>());
}

#[divan::bench(args = REGIONS, counters = [divan::counter::ItemsCount::new(PROBES)])]
fn look_up_in_a_trie(bencher: Bencher, count: usize) {
    let prefixes = directories(count);
    let probes: Vec<Vec<NonZeroU64>> =
        files(&prefixes, PROBES).iter().map(|id| id.components().collect()).collect();
    let mut trie = SequenceTrie::<NonZeroU64, u32>::new();
    trie.insert([], 0);
    for (owner, prefix) in (1u32..).zip(&prefixes) {
        trie.insert_owned(prefix.components(), owner);
    }
    let look_up = |id: &Vec<NonZeroU64>| trie.get_ancestor(id).map_or(0, |&owner| owner as u64);
    bencher.bench_local(|| probes.iter().map(|id| look_up(black_box(id))).sum::<u64>());
}

#[divan::bench(args = REGIONS, counters = [divan::counter::ItemsCount::new(PROBES)], sample_count = 3, sample_size = 1)]
fn look_up_by_scanning(bencher: Bencher, count: usize) {
    let prefixes = directories(count);
    let probes = files(&prefixes, PROBES);
    let owned: Vec<(FileId, u64)> = prefixes.into_iter().zip(1..).collect();
    let look_up = |id: &FileId| {
        let covering = owned.iter().filter(|(prefix, _)| prefix.is_prefix_of(id));
        covering.max_by_key(|(prefix, _)| prefix.bit_len()).map_or(0, |(_, owner)| *owner)
    };
    bencher.bench_local(|| probes.iter().map(|id| look_up(black_box(id))).sum::<u64>());
}
