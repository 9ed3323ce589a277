//! The group world itself: it is clean, repeats itself, and finds out who is built wrong.

mod leaders;
mod mutants;
mod quiet;

use super::{
    run,
    run::{MARKS, OUTGROWN},
    run_twins,
};
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
    assert!(outgrown(&summary) >= 10, "few founders lie: {}", outgrown(&summary));
}

/// In how many seeds a founder that lies came to be one of several.
fn outgrown(summary: &Summary) -> u64 {
    let mut marks = summary.marks.iter().filter(|(mark, _)| *mark == OUTGROWN);
    marks.next().map_or(0, |(_, passed)| passed)
}

#[test]
fn a_thousand_short_worlds_with_twins_are_clean() {
    let mut summary = Summary::default();
    for seed in 1..=1_000 {
        summary.add(seed, &run_twins(seed));
        assert!(summary.is_clean(), "{:?}", summary.failure);
    }
    assert!(outgrown(&summary) >= 50, "few founders are two: {}", outgrown(&summary));
}

#[test]
fn a_seed_repeats_itself() {
    for seed in [1, 17, 4_711] {
        assert_eq!(run(seed).digest, run(seed).digest, "seed {seed}");
        assert_eq!(run_twins(seed).digest, run_twins(seed).digest, "seed {seed} of twins");
    }
}
