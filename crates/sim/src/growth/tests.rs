//! A cell that grows is clean, repeats itself, and finds out whose shell is built wrong.

use std::collections::BTreeSet;

use wire::Answer;

use super::{
    run,
    run::{MARKS, run_tampered},
    tamper::Tamper,
};
use crate::Summary;

/// As many seeds run in every check; `croft simulate` runs more.
const SEEDS: u64 = 4;
/// As many are tried to find a mutant out.
const MUTANT_SEEDS: u64 = 8;

#[test]
fn a_few_seeds_are_clean_and_pass_no_unnamed_mark() {
    let mut summary = Summary::default();
    for seed in 1..=SEEDS {
        summary.add(seed, &run(seed));
        assert!(summary.is_clean(), "{:?}", summary.failure);
    }
    let rare =
        ["a newcomer lets go of what it was shown", "a member does not note where a machine is"];
    let named = summary.marks.iter().filter(|(name, _)| !rare.contains(name)).count();
    assert_eq!(named, MARKS.len(), "an unnamed mark was passed");
}

#[test]
fn a_seed_repeats_itself() {
    assert_eq!(run(2).digest, run(2).digest);
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
fn a_shell_that_lets_no_deadline_pass_is_caught() {
    #[derive(Clone)]
    struct Timeless;
    impl Tamper for Timeless {
        fn keeps_time(&self) -> bool {
            false
        }
    }
    catch(&Timeless, &["inv-W2", "inv-W3", "inv-W4", "inv-W5", "inv-W7"]);
}

#[test]
fn a_shell_that_goes_on_with_a_machine_that_was_sent_away_is_caught() {
    #[derive(Clone)]
    struct Loyal;
    impl Tamper for Loyal {
        fn lets_go(&self) -> bool {
            false
        }
    }
    catch(&Loyal, &["inv-W6"]);
}

#[test]
fn a_shell_that_answers_twice_or_not_at_all_is_caught() {
    #[derive(Clone)]
    struct Times(usize);
    impl Tamper for Times {
        fn replies(&self, _: &Answer) -> usize {
            self.0
        }
    }
    catch(&Times(0), &["inv-W2"]);
    catch(&Times(2), &["inv-W1"]);
}
