//! Systems that are built wrong in one place: each is caught.

use std::collections::{BTreeMap, BTreeSet};

use base::Instant;
use directory::{
    Actor,
    message::{Answer, Ask, Request, Response, Value},
};
use lease::{
    Client,
    message::{Down, Return, Up},
};
use wire::Message;

use crate::files::{
    run::run_tampered,
    tamper::{Honest, Tamper},
};

/// As many seeds are tried to find a mutant out.
const SEEDS: u64 = 120;

/// Runs seeds until one is broken by one of these checks: those that the mutant is about. That it comes
/// to a standstill as well shows nothing.
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

fn with_request(bytes: Vec<u8>, change: impl FnOnce(&mut Request)) -> Vec<u8> {
    match wire::open(&bytes) {
        Ok(Message::Request(mut request)) => {
            change(&mut request);
            wire::seal(&Message::Request(request))
        }
        _ => bytes,
    }
}

fn with_response(bytes: Vec<u8>, change: impl FnOnce(&mut Response)) -> Vec<u8> {
    match wire::open(&bytes) {
        Ok(Message::Response(mut response)) => {
            change(&mut response);
            wire::seal(&Message::Response(response))
        }
        _ => bytes,
    }
}

#[test]
fn the_honest_system_is_not_caught() {
    for seed in 1..=3 {
        assert_eq!(run_tampered(seed, &Honest, 0).violation, None, "seed {seed}");
    }
}

#[test]
fn a_group_that_answers_before_its_log_is_safe_is_caught() {
    #[derive(Clone)]
    struct Hasty;
    impl Tamper for Hasty {
        fn waits_for_disk(&self) -> bool {
            false
        }
    }
    catch(&Hasty, &["durable", "witness", "inv-N1", "never refused"]);
}

#[test]
fn a_group_that_forgets_the_end_of_its_log_is_caught() {
    #[derive(Clone)]
    struct Forgetful;
    impl Tamper for Forgetful {
        fn kept(&self, records: usize) -> usize {
            records.saturating_sub(3)
        }
    }
    catch(&Forgetful, &["durable", "witness", "inv-N1", "never refused"]);
}

#[test]
fn a_group_that_drops_an_operation_of_a_batch_is_caught() {
    #[derive(Clone)]
    struct Sloppy;
    impl Tamper for Sloppy {
        fn upward(&mut self, _: Client, bytes: Vec<u8>) -> Vec<u8> {
            with_request(bytes, |request| {
                if let Some(Ask::Batch { operations, .. }) = &mut request.ask
                    && operations.len() > 2
                {
                    operations.pop();
                }
            })
        }
    }
    catch(&Sloppy, &["witness", "inv-N1", "never refused"]);
}

#[test]
fn a_client_that_pushes_in_the_wrong_order_is_caught() {
    #[derive(Clone)]
    struct Backwards;
    impl Tamper for Backwards {
        fn upward(&mut self, _: Client, bytes: Vec<u8>) -> Vec<u8> {
            with_request(bytes, |request| {
                if let Some(Ask::Batch { operations, .. }) = &mut request.ask {
                    operations.reverse();
                }
            })
        }
    }
    catch(&Backwards, &["witness", "inv-N1", "never refused"]);
}

#[test]
fn a_client_that_gives_back_before_it_has_pushed_is_caught() {
    /// Takes its own word for an answer, and sends the batch when it sends the next one.
    #[derive(Clone)]
    struct Early {
        late: Vec<Vec<u8>>,
    }
    impl Tamper for Early {
        fn outward(&mut self, bytes: Vec<u8>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
            let Ok(Message::Request(request)) = wire::open(&bytes) else {
                return (vec![bytes], vec![]);
            };
            let Some(Ask::Batch { number, .. }) = request.ask else {
                return (vec![bytes], vec![]);
            };
            let lease = lease::message::Downward {
                session: request.lease.session,
                stamp: Instant::START,
                span: base::Duration::ZERO,
                body: Down::Renewed,
            };
            let answer = Some(Answer::Applied { number, refused: None });
            let forged =
                Message::Response(Response { lease, values: vec![], applied: number, answer });
            let sent = std::mem::replace(&mut self.late, vec![bytes]);
            (sent, vec![wire::seal(&forged)])
        }
    }
    catch(&Early { late: vec![] }, &["durable", "witness", "inv-N1", "never refused"]);
}

#[test]
fn a_client_that_acts_after_its_session_has_lapsed_is_caught() {
    /// Its clock runs at half the speed that it should.
    #[derive(Clone)]
    struct Slow;
    impl Tamper for Slow {
        fn clock(&mut self, now: Instant) -> Instant {
            Instant::from_nanos(now.as_nanos() / 2)
        }

        fn clock_back(&self, at: Instant) -> Instant {
            Instant::from_nanos(at.as_nanos().saturating_mul(2))
        }
    }
    catch(&Slow, &["witness", "inv-N1", "never refused"]);
}

#[test]
fn a_group_that_grants_before_it_has_a_lease_back_is_caught() {
    /// Hears the answer to its own recall.
    #[derive(Clone)]
    struct Impatient {
        owed: BTreeMap<Client, Vec<Return>>,
        number: u64,
    }
    impl Tamper for Impatient {
        fn downward(&mut self, to: Client, bytes: Vec<u8>) -> Vec<Vec<u8>> {
            if let Ok(Message::Response(response)) = wire::open(&bytes)
                && let Down::Recall(recalls) = response.lease.body
            {
                let returns = recalls.into_iter().map(|recall| Return {
                    lease: recall.lease,
                    kind: recall.kind,
                    serial: recall.serial,
                    part: recall.part,
                    kept: false,
                    truths: vec![],
                });
                self.owed.entry(to).or_default().extend(returns);
            }
            vec![bytes]
        }

        fn upward(&mut self, from: Client, bytes: Vec<u8>) -> Vec<u8> {
            let Some(returns) = self.owed.remove(&from) else { return bytes };
            self.number += 1_000_000;
            let number = self.number;
            with_request(bytes, |request| request.lease.body = Up::Return { number, returns })
        }
    }
    let impatient = Impatient { owed: BTreeMap::new(), number: 0 };
    catch(&impatient, &["witness", "inv-N1", "never refused"]);
}

#[test]
fn a_group_that_hands_out_old_values_is_caught() {
    /// Says of a file what it said first.
    #[derive(Clone)]
    struct Stale {
        first: BTreeMap<Vec<u8>, Value>,
    }
    impl Tamper for Stale {
        fn downward(&mut self, _: Client, bytes: Vec<u8>) -> Vec<Vec<u8>> {
            let first = &mut self.first;
            vec![with_response(bytes, |response| {
                for value in response.values.iter_mut().flatten() {
                    if let Value::Entry { directory, name, .. } = value {
                        let key = base::encode(&(&*directory, &*name));
                        *value = first.entry(key).or_insert_with(|| value.clone()).clone();
                    }
                }
            })]
        }
    }
    catch(&Stale { first: BTreeMap::new() }, &["witness", "inv-N1", "never refused"]);
}

#[test]
fn a_group_that_leaves_a_name_out_of_a_listing_is_caught() {
    #[derive(Clone)]
    struct Partial;
    impl Tamper for Partial {
        fn downward(&mut self, _: Client, bytes: Vec<u8>) -> Vec<Vec<u8>> {
            vec![with_response(bytes, |response| {
                let listed = match &mut response.answer {
                    Some(Answer::Listed { value, .. }) => value.as_mut(),
                    _ => None,
                };
                for value in response.values.iter_mut().flatten().chain(listed) {
                    if let Value::Names { entries, .. } = value {
                        entries.pop();
                    }
                }
            })]
        }
    }
    catch(&Partial, &["witness", "inv-N1", "never refused"]);
}

#[test]
fn a_group_that_forgets_who_has_a_file_open_is_caught() {
    #[derive(Clone)]
    struct Careless;
    impl Tamper for Careless {
        fn upward(&mut self, _: Client, bytes: Vec<u8>) -> Vec<u8> {
            with_request(bytes, |request| {
                if let Up::Return { returns, .. } = &mut request.lease.body {
                    returns.iter_mut().for_each(|returned| returned.truths.clear());
                }
            })
        }
    }
    catch(&Careless, &["witness", "inv-N1", "never refused"]);
}

#[test]
fn a_client_that_acts_for_the_wrong_user_is_caught() {
    #[derive(Clone)]
    struct Usurper;
    impl Tamper for Usurper {
        fn actor(&self, _: Actor) -> Actor {
            Actor::ROOT
        }
    }
    catch(&Usurper, &["witness", "inv-N1"]);
}

#[test]
fn a_client_that_is_deaf_to_the_end_of_its_session_is_caught() {
    #[derive(Clone)]
    struct Deaf;
    impl Tamper for Deaf {
        fn inward(&mut self, bytes: Vec<u8>) -> Option<Vec<u8>> {
            match wire::open(&bytes) {
                Ok(Message::Response(response)) if response.lease.body == Down::Lost => None,
                _ => Some(bytes),
            }
        }
    }
    catch(&Deaf, &["progress"]);
}
