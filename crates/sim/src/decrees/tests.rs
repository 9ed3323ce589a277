//! The world of decrees holds, and its checkers catch whoever breaks it.

use overlay::Tidings;

use crate::Marks;

use super::{tamper::Tamper, *};

#[test]
fn thirty_seeds_are_clean_and_pass_every_mark() {
    let mut marks = Marks::new(run::MARKS);
    for seed in 0..30 {
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
    let digests: Vec<_> = (0..3).map(|seed| run(seed).digest).collect();
    for (seed, digest) in digests.iter().enumerate() {
        assert_eq!(run(seed as u64).digest, *digest);
        assert!(!digests[..seed].contains(digest));
    }
}

/// In how many of the first seeds this is caught, by which invariant.
#[track_caller]
fn is_caught(tamper: &impl Tamper, invariant: &str) {
    let caught = (0..30).find_map(|seed| run::run_tampered(seed, tamper, 0).violation);
    let caught = caught.expect("it is not caught");
    assert_eq!(caught.broken.invariant, invariant, "{caught}");
}

/// Only those who have a vote are told.
#[derive(Clone)]
struct MembersOnly;

impl Tamper for MembersOnly {
    fn says(&self, to_member: bool, _: &Tidings) -> bool {
        to_member
    }
}

#[test]
fn that_only_members_are_told_is_caught() {
    is_caught(&MembersOnly, "inv-D1");
}

/// Machines that meet do not compare.
#[derive(Clone)]
struct NoGreeting;

impl Tamper for NoGreeting {
    fn greets(&self) -> bool {
        false
    }
}

#[test]
fn that_machines_do_not_compare_when_they_meet_is_caught() {
    is_caught(&NoGreeting, "inv-D1");
}

/// Nobody is told what is new before they ask.
#[derive(Clone)]
struct NoPush;

impl Tamper for NoPush {
    fn says(&self, _: bool, tidings: &Tidings) -> bool {
        !matches!(tidings, Tidings::News(_))
    }
}

#[test]
fn that_nobody_is_told_what_is_new_is_caught() {
    is_caught(&NoPush, "inv-D1");
}
