//! The flooded world is clean, repeats itself, and finds out who has built queues wrong.

use std::collections::BTreeSet;

use base::PublicKey;
use group::Settings;
use load::reservoir::Allowance;
use node::mailroom::Sender;

use super::{
    run,
    run::{DECIDED, MARKS, run_tampered},
    tamper::Tamper,
};
use crate::Summary;

/// As many seeds run in every check; `croft simulate` runs more.
const SEEDS: u64 = 5;
/// As many are tried to find a mutant out.
const MUTANT_SEEDS: u64 = 24;

#[test]
fn a_few_seeds_are_clean_and_something_is_decided_in_each() {
    let mut summary = Summary::default();
    for seed in 1..=SEEDS {
        let outcome = run(seed);
        summary.add(seed, &outcome);
        assert!(summary.is_clean(), "{:?}", summary.failure);
        let decided = outcome.marks.iter().find(|(name, _)| *name == DECIDED);
        assert!(decided.is_some_and(|(_, count)| count > 10), "{decided:?} in seed {seed}");
    }
    assert_eq!(summary.marks.iter().count(), MARKS.len(), "an unnamed mark was passed");
}

#[test]
fn a_seed_repeats_itself() {
    assert_eq!(run(3).digest, run(3).digest);
}

/// Runs seeds until one is broken by one of these checks: those that the mutant is about.
#[track_caller]
fn catch(tamper: &impl Tamper, by: &[&str]) {
    let mut others = BTreeSet::new();
    for seed in 1..=MUTANT_SEEDS {
        if let Some(violation) = run_tampered(seed, tamper, 0).violation {
            if by.contains(&violation.broken.invariant) {
                return;
            }
            others.insert(violation.broken.invariant);
        }
    }
    panic!("{MUTANT_SEEDS} seeds did not find it out, but {others:?}");
}

#[test]
fn one_queue_for_all_is_caught() {
    #[derive(Clone)]
    struct Shared;
    impl Tamper for Shared {
        fn sender(&self, _: Sender) -> Sender {
            Sender::Own
        }
    }
    catch(&Shared, &["inv-R4", "inv-R5"]);
}

#[test]
fn a_mailroom_that_favours_nobody_is_caught() {
    #[derive(Clone)]
    struct Equal;
    impl Tamper for Equal {
        fn seated(&self, _: BTreeSet<PublicKey>) -> BTreeSet<PublicKey> {
            BTreeSet::new()
        }
    }
    catch(&Equal, &["inv-R4", "inv-R5"]);
}

#[test]
fn a_member_that_tells_anybody_as_much_as_it_asks_for_is_caught() {
    #[derive(Clone)]
    struct Talkative;
    impl Tamper for Talkative {
        fn settings(&self, settings: Settings) -> Settings {
            Settings { told_others: Allowance::ENDLESS, ..settings }
        }
    }
    catch(&Talkative, &["inv-R6"]);
}
