//! Systems that are built wrong in one place: each is caught.

use std::collections::{BTreeMap, BTreeSet};

use base::Instant;
use client::{Call, Failure, Reply};
use directory::{
    Act, Actor, Command, Operation,
    message::{Answer, Ask, Provision, Request, Response, Value},
    operation::Moment,
};
use lease::{
    Client,
    message::{Down, Return, Up},
};
use node::Order;
use wire::{Frame, Message};

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
    match wire::decode(&bytes) {
        Ok(Frame::Group(about, Message::Request(mut request))) => {
            change(&mut request);
            about.encode(Message::Request(request))
        }
        _ => bytes,
    }
}

fn with_response(bytes: Vec<u8>, change: impl FnOnce(&mut Response)) -> Vec<u8> {
    match wire::decode(&bytes) {
        Ok(mut response) => {
            change(&mut response);
            wire::encode(&response)
        }
        _ => bytes,
    }
}

fn with_operations(bytes: Vec<u8>, change: impl FnOnce(&mut Vec<Operation>)) -> Vec<u8> {
    with_request(bytes, |request| {
        if let Some(Ask::Batch { operations, .. }) = &mut request.ask {
            change(operations);
        }
    })
}

fn with_provision(bytes: Vec<u8>, change: impl FnOnce(&mut Provision)) -> Vec<u8> {
    with_response(bytes, |response| {
        if let Some(Answer::Provided { provision, .. }) = &mut response.answer {
            change(provision);
        }
    })
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
            let Ok(Frame::Group(_, Message::Request(request))) = wire::decode(&bytes) else {
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
            let forged = Response { lease, values: vec![], applied: number, answer };
            let sent = std::mem::replace(&mut self.late, vec![bytes]);
            (sent, vec![wire::encode(&forged)])
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
            if let Ok(response) = wire::decode::<Response>(&bytes)
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
            match wire::decode(&bytes) {
                Ok(Response { lease, .. }) if lease.body == Down::Lost => None,
                _ => Some(bytes),
            }
        }
    }
    catch(&Deaf, &["progress"]);
}

#[test]
fn a_group_that_gives_more_than_there_is_is_caught() {
    #[derive(Clone)]
    struct Lavish;
    impl Tamper for Lavish {
        fn downward(&mut self, _: Client, bytes: Vec<u8>) -> Vec<Vec<u8>> {
            vec![with_provision(bytes, |provision| {
                if let Some((_, stock)) = &mut provision.stock {
                    stock.files += 100;
                    stock.bytes += 1_000;
                }
            })]
        }
    }
    catch(&Lavish, &["quota"]);
}

#[test]
fn a_group_that_says_that_it_is_full_and_is_not_is_caught() {
    #[derive(Clone)]
    struct Miser;
    impl Tamper for Miser {
        fn downward(&mut self, _: Client, bytes: Vec<u8>) -> Vec<Vec<u8>> {
            vec![with_provision(bytes, |provision| {
                if let Some((_, stock)) = &mut provision.stock {
                    stock.bytes = 0;
                }
            })]
        }
    }
    catch(&Miser, &["witness"]);
}

#[test]
fn a_group_that_gives_a_user_more_than_their_share_is_caught() {
    #[derive(Clone)]
    struct Partial;
    impl Tamper for Partial {
        fn downward(&mut self, _: Client, bytes: Vec<u8>) -> Vec<Vec<u8>> {
            vec![with_provision(bytes, |provision| {
                // The superuser may have all that there is: for others nobody looks at shares.
                if let Some((1.., stock)) = &mut provision.stock {
                    stock.files += 100;
                    stock.bytes += 1_000;
                }
            })]
        }
    }
    catch(&Partial, &["quota"]);
}

#[test]
fn a_group_that_counts_holes_is_caught() {
    let edit = |act: &mut Act| {
        if let Act::SetContent { content, .. } = act {
            content.allocated = content.size;
        }
    };
    catch_editor(edit, &["never refused", "witness"]);
}

#[test]
fn a_group_to_which_nothing_comes_back_is_caught() {
    #[derive(Clone)]
    struct Hoarder;
    impl Tamper for Hoarder {
        fn upward(&mut self, _: Client, bytes: Vec<u8>) -> Vec<u8> {
            with_request(bytes, |request| {
                if let Some(Ask::Provide { needs, .. }) = &mut request.ask {
                    needs.give_back.clear();
                }
            })
        }
    }
    catch(&Hoarder, &["witness"]);
}

#[test]
fn a_client_that_ignores_share_modes_is_caught() {
    #[derive(Clone)]
    struct Rude;
    impl Tamper for Rude {
        fn call(&mut self, call: Call) -> Call {
            match call {
                Call::Open { file, mut modes } => {
                    modes.deny = None;
                    Call::Open { file, modes }
                }
                other => other,
            }
        }
    }
    catch(&Rude, &["witness"]);
}

#[test]
fn a_client_that_does_what_was_cancelled_is_caught() {
    #[derive(Clone)]
    struct Stubborn;
    impl Tamper for Stubborn {
        fn heeds_cancel(&self) -> bool {
            false
        }
    }
    catch(&Stubborn, &["witness", "inv-N1"]);
}

/// A client that tells programs something else than what came of it.
#[track_caller]
fn catch_liar(lie: fn(&mut Reply), by: &[&str]) {
    #[derive(Clone)]
    struct Liar(fn(&mut Reply));
    impl Tamper for Liar {
        fn result(&mut self, mut result: Result<Reply, Failure>) -> Result<Reply, Failure> {
            if let Ok(reply) = &mut result {
                (self.0)(reply);
            }
            result
        }
    }
    catch(&Liar(lie), by);
}

#[test]
fn a_client_that_sees_no_locks_is_caught() {
    let blind = |reply: &mut Reply| {
        if let Reply::Lock(lock) = reply {
            *lock = None;
        }
    };
    catch_liar(blind, &["witness"]);
}

#[test]
fn a_client_that_leaves_out_an_attribute_is_caught() {
    let forgetful = |reply: &mut Reply| {
        if let Reply::Attributes(names) = reply {
            names.pop();
        }
    };
    catch_liar(forgetful, &["witness"]);
}

#[test]
fn a_client_that_says_too_soon_that_a_page_is_the_last_is_caught() {
    let hasty = |reply: &mut Reply| {
        if let Reply::Names { is_all, .. } = reply {
            *is_all = true;
        }
    };
    catch_liar(hasty, &["witness"]);
}

#[test]
fn a_client_that_shows_the_wrong_times_is_caught() {
    let late = |reply: &mut Reply| {
        if let Reply::File(file) = reply {
            let mut record = directory::File::clone(file);
            record.times.modified += 1;
            *file = record.into();
        }
    };
    catch_liar(late, &["witness"]);
}

#[test]
fn a_client_that_fails_for_no_reason_is_caught() {
    #[derive(Clone)]
    struct Lazy(Failure, u32);
    impl Tamper for Lazy {
        fn result(&mut self, result: Result<Reply, Failure>) -> Result<Reply, Failure> {
            self.1 += 1;
            if self.1.is_multiple_of(50) { Err(self.0) } else { result }
        }
    }
    for failure in [Failure::Lost, Failure::Busy, Failure::Cancelled] {
        catch(&Lazy(failure, 0), &["needless failure"]);
    }
}

#[test]
fn a_group_that_ends_sessions_for_no_reason_is_caught() {
    #[derive(Clone)]
    struct Fickle(u32);
    impl Tamper for Fickle {
        fn downward(&mut self, _: Client, bytes: Vec<u8>) -> Vec<Vec<u8>> {
            self.0 += 1;
            let is_due = self.0.is_multiple_of(100);
            vec![with_response(bytes, |response| {
                if is_due && response.lease.body == Down::Renewed {
                    response.lease.body = Down::Lost;
                }
            })]
        }
    }
    catch(&Fickle(0), &["needless loss"]);
}

#[test]
fn a_client_that_pushes_with_a_gap_is_caught() {
    #[derive(Clone)]
    struct Gappy;
    impl Tamper for Gappy {
        fn upward(&mut self, _: Client, bytes: Vec<u8>) -> Vec<u8> {
            with_operations(bytes, |operations| {
                if operations.len() > 1 {
                    operations.remove(0);
                }
            })
        }
    }
    catch(&Gappy, &["prefix"]);
}

/// A group that changes what it is told before it does it.
#[track_caller]
fn catch_editor(edit: fn(&mut Act), by: &[&str]) {
    #[derive(Clone)]
    struct Editor(fn(&mut Act));
    impl Tamper for Editor {
        fn upward(&mut self, _: Client, bytes: Vec<u8>) -> Vec<u8> {
            with_operations(bytes, |operations| {
                operations.iter_mut().for_each(|operation| (self.0)(&mut operation.act));
            })
        }
    }
    catch(&Editor(edit), by);
}

#[test]
fn a_group_that_files_another_attribute_is_caught_at_the_end() {
    let edit = |act: &mut Act| {
        if let Act::SetXattr { value: Some(value), .. } = act {
            value.push(b'!');
        }
    };
    catch_editor(edit, &["end state"]);
}

#[test]
fn a_group_that_files_another_mode_is_caught_at_the_end() {
    let edit = |act: &mut Act| {
        if let Act::Create { mode, .. } = act {
            *mode ^= 0o001;
        }
    };
    catch_editor(edit, &["end state"]);
}

#[test]
fn a_group_that_files_another_target_is_caught_at_the_end() {
    let edit = |act: &mut Act| {
        if let Act::Symlink { target, .. } = act {
            target[0] ^= 1;
        }
    };
    catch_editor(edit, &["end state"]);
}

#[test]
fn a_group_that_files_another_time_is_caught_at_the_end() {
    let edit = |act: &mut Act| {
        if let Act::SetAttr { changes, .. } = act
            && changes.modified == Some(Moment::At(7))
        {
            changes.modified = Some(Moment::At(8));
        }
    };
    catch_editor(edit, &["end state"]);
}

#[test]
fn a_group_whose_log_is_not_what_it_did_is_caught() {
    #[derive(Clone)]
    struct Forger;
    impl Tamper for Forger {
        fn written(&mut self, record: Vec<u8>) -> Vec<u8> {
            let mut records: Vec<group::Record> =
                base::decode(&record, record.len()).expect("a member's own record");
            for record in &mut records {
                let group::Record::Decided(_, Some(batch)) = record else { continue };
                for bytes in &mut batch.commands {
                    let mut order = Order::of(bytes).expect("a member's own order");
                    if let Order::Do { command: Command::Heard { request, .. }, .. } = &mut order
                        && let Some(Ask::Batch { operations, .. }) = &mut request.ask
                    {
                        operations.pop();
                    }
                    *bytes = base::encode(&order);
                }
            }
            base::encode(&records)
        }
    }
    catch(&Forger, &["log"]);
}
