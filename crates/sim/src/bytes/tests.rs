//! The world of bytes is clean, repeats itself, and finds out who decides wrong.

mod mutants;

use super::{run, run::MARKS};
use crate::Summary;

/// As many seeds run in every check; `croft simulate` runs more.
const SEEDS: u64 = 100;

#[test]
fn a_hundred_seeds_are_clean_and_pass_every_mark() {
    let mut summary = Summary::default();
    for seed in 1..=SEEDS {
        summary.add(seed, &run(seed));
        assert!(summary.is_clean(), "{:?}", summary.failure);
    }
    assert_eq!(summary.marks.missed().collect::<Vec<_>>(), Vec::<&str>::new());
    assert_eq!(summary.marks.iter().count(), MARKS.len(), "an unnamed mark was passed");
}

#[test]
fn a_seed_repeats_itself() {
    for seed in [1, 17, 4_711] {
        assert_eq!(run(seed).digest, run(seed).digest, "seed {seed}");
    }
}
