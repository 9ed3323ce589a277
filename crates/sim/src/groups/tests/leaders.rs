//! Liars who lead: how long they can keep a group waiting, and what happens where nothing is done about it.

use std::collections::BTreeSet;

use base::{Duration, Instant};
use group::{Message, Seat, Settings, Term, Tip};

use crate::{
    Summary,
    groups::{
        leaders::{self, run_tampered},
        leading::{LED_MAX, SERVED_MAX},
        run,
        tamper::Tamper,
    },
};

/// As many seeds are tried.
const SEEDS: u64 = 15;

#[test]
fn a_slow_leader_leads_for_ten_seconds_at_most_and_who_is_ignored_is_served_within_five() {
    let mut summary = Summary::default();
    for seed in 1..=SEEDS {
        summary.add(seed, &leaders::run(seed));
        assert!(summary.is_clean(), "{:?}", summary.failure);
    }
    let longest: Vec<Duration> = summary.longest.iter().map(|(_, took)| took).collect();
    let [led, served] = longest[..] else { panic!("{:?}", summary.longest) };
    // They were slow, and did ignore somebody: else this would show nothing.
    assert!((Duration::from_secs(6)..=LED_MAX).contains(&led), "{led:?}");
    assert!((Duration::from_secs(2)..=SERVED_MAX).contains(&served), "{served:?}");
}

/// Runs seeds until one is broken by this check.
#[track_caller]
fn catch(tamper: &impl Tamper, by: &str) {
    let mut others = BTreeSet::new();
    for seed in 1..=SEEDS {
        if let Some(violation) = run_tampered(seed, tamper, 0).violation {
            if violation.broken.invariant == by {
                return;
            }
            others.insert(violation.broken.invariant);
        }
    }
    panic!("{SEEDS} seeds did not find it out, but {others:?}");
}

#[test]
fn a_group_whose_terms_end_by_height_only_is_caught() {
    #[derive(Clone)]
    struct Lasting;
    impl Tamper for Lasting {
        fn first(&self, tip: Tip) -> Tip {
            // The agreed time never gets there. Whoever comes after the first would have a term as usual.
            Tip { term: Term { time: Instant::END, ..tip.term }, ..tip }
        }
    }
    catch(&Lasting, "slow leader");
}

#[test]
fn a_group_in_which_nobody_refuses_a_proposal_that_leaves_out_what_is_overdue_is_caught() {
    #[derive(Clone)]
    struct Patient;
    impl Tamper for Patient {
        fn settings(&self, settings: Settings) -> Settings {
            Settings { overdue: Duration::from_secs(1_000), ..settings }
        }
    }
    catch(&Patient, "ignored customer");
}

#[test]
fn a_member_whose_state_drifts_and_that_does_not_hear_of_those_of_others_is_caught() {
    #[derive(Clone)]
    struct Unaware;
    impl Tamper for Unaware {
        fn inward(&mut self, from: Seat, message: Message, _: &[Seat]) -> Vec<(Seat, Message)> {
            match message {
                Message::Vouch(_) => Vec::new(),
                message => vec![(from, message)],
            }
        }
    }
    for seed in 1..=500 {
        if let Some(violation) = run::run_tampered(seed, &Unaware, 0).violation {
            assert_eq!(violation.broken.invariant, "inv-B3", "{violation}");
            assert!(violation.broken.what.contains("not noticed"), "{violation}");
            return;
        }
    }
    panic!("it was not found out");
}
