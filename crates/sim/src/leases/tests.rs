//! The lease world holds, and its checkers catch whoever breaks it.

mod budget;
mod mutants;
mod scene;
mod starvation;

use crate::Marks;

use super::*;

#[test]
fn a_hundred_seeds_are_clean_and_pass_every_mark() {
    let mut marks = Marks::new(run::MARKS);
    for seed in 0..100 {
        let outcome = run(seed);
        if let Some(violation) = outcome.violation {
            panic!("seed {seed}: {violation}\n{}", explain(seed, 60).trace.join("\n"));
        }
        marks.merge(&outcome.marks);
    }
    assert_eq!(marks.missed().collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn a_seed_replays_to_the_same_digest_and_two_differ() {
    let digests: Vec<_> = (0..5).map(|seed| run(seed).digest).collect();
    for (seed, digest) in digests.iter().enumerate() {
        assert_eq!(run(seed as u64).digest, *digest);
        assert!(!digests[..seed].contains(digest));
    }
}

#[test]
fn to_explain_a_seed_does_not_change_it() {
    let explained = explain(7, 10);
    assert_eq!(explained.digest, run(7).digest);
    assert_eq!(explained.trace.len(), 10);
}
