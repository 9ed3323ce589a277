//! Decisions that are built wrong: each is caught.

use std::collections::BTreeSet;

use content::{Need, Next, Regain, Settle};
use directory::record::Content;

use super::super::{
    run::run_tampered,
    tamper::{Honest, Tamper},
};

/// As many seeds are tried to find a mutant out. The honest system is clean in all of them.
const SEEDS: u64 = 490;

/// Runs seeds until one is broken by one of these checks: those that the mutant is about.
#[track_caller]
fn catch(tamper: &impl Tamper, by: &[&str]) {
    let mut others = BTreeSet::new();
    for seed in 1..=SEEDS {
        if let Some(violation) = run_tampered(seed, tamper, 0).violation {
            if by.contains(&violation.broken.invariant) {
                return;
            }
            others.insert(violation.broken.invariant);
        }
    }
    panic!("{SEEDS} seeds did not find it out, but {others:?}");
}

/// Whoever reads or writes sees something else than there is.
const STALE: &[&str] = &["inv-B1", "inv-B2"];

#[test]
fn the_honest_system_is_not_caught() {
    assert!((1..=10).all(|seed| run_tampered(seed, &Honest, 0).violation.is_none()));
}

#[test]
fn whoever_writes_with_the_right_to_read_is_caught() {
    #[derive(Clone)]
    struct Bold;
    impl Tamper for Bold {
        fn holds(
            &self,
            held: Option<Content>,
            reads: impl Fn() -> Option<Content>,
        ) -> Option<Content> {
            held.or_else(reads)
        }
    }
    catch(&Bold, STALE);
}

#[test]
fn whoever_takes_its_own_old_bytes_for_those_of_others_is_caught() {
    #[derive(Clone)]
    struct Lazy;
    impl Tamper for Lazy {
        fn next(&self, next: Next) -> Next {
            match next {
                Next::Fetch(content) => Next::Load(content),
                next => next,
            }
        }
    }
    catch(&Lazy, STALE);
}

#[test]
fn whoever_gives_up_what_it_has_not_told_is_caught() {
    #[derive(Clone)]
    struct Silent;
    impl Tamper for Silent {
        fn settle(&self, settle: Settle) -> Settle {
            match settle {
                Settle::Memory { .. } | Settle::File { .. } => Settle::Nothing,
                settle => settle,
            }
        }
    }
    catch(&Silent, STALE);
}

#[test]
fn whoever_tells_of_bytes_that_it_has_not_stored_is_caught() {
    #[derive(Clone)]
    struct Empty;
    impl Tamper for Empty {
        fn settle(&self, settle: Settle) -> Settle {
            match settle {
                Settle::Memory { tells, .. } => Settle::Memory { stores: false, tells },
                settle => settle,
            }
        }
    }
    catch(&Empty, STALE);
}

#[test]
fn whoever_throws_away_what_others_overtook_is_caught() {
    #[derive(Clone)]
    struct Careless;
    impl Tamper for Careless {
        fn keeps(&self) -> bool {
            false
        }
    }
    catch(&Careless, &["inv-B7"]);
}

#[test]
fn whoever_takes_what_is_lost_for_what_the_group_has_heard_is_caught() {
    #[derive(Clone)]
    struct Sanguine;
    impl Tamper for Sanguine {
        fn is_pushed(&self, _: bool) -> bool {
            true
        }
    }
    catch(&Sanguine, &["inv-B1", "inv-B2", "inv-B7"]);
}

#[test]
fn whoever_does_not_ask_where_bytes_change_without_a_word_is_caught() {
    #[derive(Clone)]
    struct Stubborn;
    impl Tamper for Stubborn {
        fn holds(&self, held: Option<Content>, _: impl Fn() -> Option<Content>) -> Option<Content> {
            held.map(|content| Content { is_live: false, ..content })
        }
    }
    catch(&Stubborn, STALE);
}

#[test]
fn contents_that_can_not_be_told_apart_are_caught() {
    #[derive(Clone)]
    struct Unnumbered;
    impl Tamper for Unnumbered {
        fn tells(&self, content: Content) -> Content {
            Content { version: 0, digest: None, ..content }
        }
    }
    catch(&Unnumbered, STALE);
}

#[test]
fn whoever_calls_safe_what_it_may_tell_no_more_is_caught() {
    #[derive(Clone)]
    struct Smug;
    impl Tamper for Smug {
        fn regain(&self, _: Regain) -> Regain {
            Regain::Nothing
        }
        fn settle(&self, settle: Settle) -> Settle {
            if settle == Settle::Regain { Settle::Nothing } else { settle }
        }
    }
    catch(&Smug, &["inv-B1", "inv-B2", "inv-B4", "inv-B7"]);
}

#[test]
fn a_home_that_says_that_it_is_none_is_caught() {
    #[derive(Clone)]
    struct Modest;
    impl Tamper for Modest {
        fn tells(&self, content: Content) -> Content {
            Content { is_live: false, ..content }
        }
    }
    catch(&Modest, STALE);
}

#[test]
fn whoever_reads_what_was_never_told_without_the_right_to_tell_it_is_caught() {
    // The world found this one in the product.
    #[derive(Clone)]
    struct Forward;
    impl Tamper for Forward {
        fn next_of(&self, need: Need, is_at_hand: bool, next: Next) -> Next {
            match next {
                Next::Hold { writes: true } if need == Need::Read && is_at_hand => Next::Go,
                next => next,
            }
        }
    }
    catch(&Forward, STALE);
}

#[test]
fn whoever_hands_out_bytes_that_the_directory_has_not_heard_of_is_caught() {
    // And this one.
    #[derive(Clone)]
    struct Generous;
    impl Tamper for Generous {
        fn is_fetched(&self, _: bool) -> bool {
            true
        }
    }
    catch(&Generous, STALE);
}

#[test]
fn a_size_of_before_the_file_was_closed_is_caught() {
    // Racing found this one on three mounts, after 2,151 deeds.
    #[derive(Clone)]
    struct Late;
    impl Tamper for Late {
        fn was_told(&self, _: bool) -> bool {
            false
        }
    }
    catch(&Late, &["inv-B3"]);
}
