//! Groups that are built wrong in one place: each is caught by the check that it is about.

use std::{collections::BTreeSet, rc::Rc};

use base::Duration;
use group::{Change, Decision, Doubt, Lineage, Message, Record, Seat, Settings};

use crate::groups::{
    disk::{Disk, Entry},
    run::run_tampered,
    tamper::{Honest, Tamper},
};

/// As many seeds are tried to find a mutant out.
const SEEDS: u64 = 500;

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

#[test]
fn the_honest_group_is_not_caught() {
    for seed in 1..=3 {
        assert_eq!(run_tampered(seed, &Honest, 0).violation, None, "seed {seed}");
    }
}

#[test]
fn a_member_that_votes_before_its_log_is_safe_is_caught() {
    #[derive(Clone)]
    struct Hasty;
    impl Tamper for Hasty {
        fn waits_for_disk(&self) -> bool {
            false
        }
    }
    catch(&Hasty, &["inv-B7", "inv-B1"]);
}

#[test]
fn a_member_that_never_hears_that_its_log_is_safe_is_caught() {
    #[derive(Clone)]
    struct Waiting;
    impl Tamper for Waiting {
        fn reports_safe(&self) -> bool {
            false
        }
    }
    catch(&Waiting, &["inv-B5"]);
}

#[test]
fn a_member_that_forgets_its_votes_when_it_starts_again_is_caught() {
    #[derive(Clone)]
    struct Forgetful;
    impl Tamper for Forgetful {
        fn restarted(&self, disk: &mut Disk) {
            for entry in &mut disk.entries {
                if let Entry::Record(bytes) = entry {
                    let records: Vec<Record> = base::decode(bytes, bytes.len()).unwrap();
                    let kept = records.into_iter().filter(|one| !matches!(one, Record::Fact(..)));
                    *bytes = base::encode(&kept.collect::<Vec<_>>()).into();
                }
            }
        }
        fn is_greeted(&self) -> bool {
            false
        }
    }
    catch(&Forgetful, &["inv-B7", "inv-B1"]);
}

#[test]
fn a_member_that_does_not_ask_what_others_have_seen_of_it_is_caught() {
    #[derive(Clone)]
    struct Unasked;
    impl Tamper for Unasked {
        fn is_greeted(&self) -> bool {
            false
        }
    }
    catch(&Unasked, &["inv-B7"]);
}

#[test]
fn a_member_that_stays_on_its_seat_with_an_old_disk_is_caught() {
    #[derive(Clone)]
    struct Stubborn;
    impl Tamper for Stubborn {
        fn heeds_stale(&self) -> bool {
            false
        }
    }
    catch(&Stubborn, &["inv-B5"]);
}

#[test]
fn a_customer_that_believes_anybody_is_caught() {
    #[derive(Clone)]
    struct Gullible;
    impl Tamper for Gullible {
        fn heard_as(&mut self, _: Seat, members: &[Seat]) -> Vec<Seat> {
            members.to_vec()
        }
    }
    catch(&Gullible, &["inv-B8"]);
}

#[test]
fn a_customer_that_counts_one_member_twice_is_caught() {
    #[derive(Clone)]
    struct Double;
    impl Tamper for Double {
        fn heard_as(&mut self, from: Seat, members: &[Seat]) -> Vec<Seat> {
            let place = members.iter().position(|seat| *seat == from).unwrap_or(0);
            let next = members[(place + 1) % members.len()];
            vec![from, next]
        }
    }
    catch(&Double, &["inv-B8"]);
}

#[test]
fn a_customer_that_follows_any_change_of_members_is_caught() {
    #[derive(Clone)]
    struct Led;
    impl Tamper for Led {
        fn checks_changes(&self) -> bool {
            false
        }
    }
    catch(&Led, &["inv-B8"]);
}

#[test]
fn a_member_that_answers_before_anything_is_decided_is_caught() {
    #[derive(Clone)]
    struct Early;
    impl Tamper for Early {
        fn answers_early(&self) -> bool {
            true
        }
    }
    catch(&Early, &["inv-B8"]);
}

#[test]
fn a_member_that_takes_a_state_from_anybody_is_caught() {
    #[derive(Clone)]
    struct Trusting;
    impl Tamper for Trusting {
        fn inward(&mut self, from: Seat, message: Message, all: &[Seat]) -> Vec<(Seat, Message)> {
            let mut heard = vec![(from, message.clone())];
            if matches!(message, Message::Offer(..)) {
                let others = all.iter().filter(|seat| **seat != from);
                heard.extend(others.map(|seat| (*seat, message.clone())));
            }
            heard
        }
    }
    catch(&Trusting, &["inv-B3"]);
}

#[test]
fn a_member_that_finds_any_time_plausible_is_caught() {
    #[derive(Clone)]
    struct Timeless;
    impl Tamper for Timeless {
        fn settings(&self, settings: Settings) -> Settings {
            let slack = Duration::from_secs(1_000_000);
            Settings { doubt: Doubt { slack, ..settings.doubt }, ..settings }
        }
    }
    catch(&Timeless, &["agreed time"]);
}

#[test]
fn a_group_whose_clocks_run_slowly_is_caught() {
    #[derive(Clone)]
    struct Slow;
    impl Tamper for Slow {
        fn slowness(&self) -> u32 {
            2
        }
    }
    catch(&Slow, &["agreed time"]);
}

#[test]
fn a_member_that_votes_for_what_nobody_asked_for_is_caught() {
    #[derive(Clone)]
    struct Careless;
    impl Tamper for Careless {
        fn is_fit(&self, _: bool) -> bool {
            true
        }
    }
    catch(&Careless, &["inv-B4"]);
}

#[test]
fn a_member_that_does_not_tell_decisions_is_caught() {
    #[derive(Clone)]
    struct Silent;
    impl Tamper for Silent {
        fn outward(&mut self, message: &Message) -> bool {
            !matches!(message, Message::Decisions(_) | Message::Offer(..))
        }
    }
    catch(&Silent, &["inv-B5"]);
}

#[test]
fn a_group_in_which_an_order_takes_effect_twice_is_caught() {
    #[derive(Clone)]
    struct Again;
    impl Tamper for Again {
        fn repeats(&self) -> bool {
            true
        }
    }
    catch(&Again, &["inv-B3", "inv-B8"]);
}

#[test]
fn a_member_whose_state_goes_astray_is_caught() {
    #[derive(Clone)]
    struct Astray;
    impl Tamper for Astray {
        fn drifts(&self) -> bool {
            true
        }
    }
    catch(&Astray, &["inv-B3"]);
}

#[test]
fn a_member_that_vouches_for_another_state_than_it_has_is_caught() {
    #[derive(Clone)]
    struct Perjurer;
    impl Tamper for Perjurer {
        fn vouched(&mut self, state: Rc<[u8]>) -> Rc<[u8]> {
            state.iter().chain(&[0]).copied().collect()
        }
    }
    catch(&Perjurer, &["inv-B3"]);
}

#[test]
fn a_member_that_does_not_say_hello_back_is_caught() {
    #[derive(Clone)]
    struct Cold;
    impl Tamper for Cold {
        fn outward(&mut self, message: &Message) -> bool {
            !matches!(message, Message::Welcome { .. })
        }
    }
    catch(&Cold, &["inv-B5"]);
}

#[test]
fn a_member_that_wishes_whatever_anybody_wishes_is_caught() {
    #[derive(Clone)]
    struct Echo;
    impl Tamper for Echo {
        fn echoes_wishes(&self) -> bool {
            true
        }
    }
    catch(&Echo, &["inv-B6"]);
}

#[test]
fn a_member_that_obeys_a_rescue_at_once_is_caught() {
    #[derive(Clone)]
    struct Obedient;
    impl Tamper for Obedient {
        fn settings(&self, settings: Settings) -> Settings {
            Settings { hesitate: Duration::ZERO, ..settings }
        }
    }
    catch(&Obedient, &["inv-B5", "inv-B7"]);
}

#[test]
fn a_member_that_counts_the_vouchers_of_an_older_roll_though_it_was_shown_a_newer_one_is_caught() {
    #[derive(Clone)]
    struct Backward;
    impl Tamper for Backward {
        fn inward(&mut self, from: Seat, message: Message, _: &[Seat]) -> Vec<(Seat, Message)> {
            let is_change = |one: &Decision| matches!(one.batch.change, Some(Change::Enact { .. }));
            match message {
                Message::Offer(mut summary, proof) => {
                    summary.tip.lineage = Lineage::default();
                    vec![(from, Message::Offer(summary, proof))]
                }
                Message::Decisions(all) if !all.is_empty() && all.iter().all(is_change) => {
                    Vec::new()
                }
                message => vec![(from, message)],
            }
        }
    }
    catch(&Backward, &["inv-B3"]);
}
