//! A checker that can't fail checks nothing: each mutant is caught, and by the right one.

use std::collections::BTreeMap;

use base::{Duration, Instant};
use lease::{
    Client,
    message::{Down, Downward, Grant, Up, Upward, Want},
};

use crate::leases::{run::run_tampered, tamper::Tamper};

/// In at least this many of twenty seeds the mutant is caught: by these invariants, each at least once.
#[track_caller]
fn check(mutant: &impl Tamper, least: usize, invariants: &[&str]) {
    check_also(mutant, least, invariants, &[]);
}

/// The same, but it may be caught by these others too.
#[track_caller]
fn check_also(mutant: &impl Tamper, least: usize, invariants: &[&str], others: &[&str]) {
    let violations = (0..20).filter_map(|seed| run_tampered(seed, mutant, 0).violation);
    let caught: Vec<&str> = violations.map(|violation| violation.broken.invariant).collect();
    let count = caught.len();
    assert!(count >= least, "caught in {count} seeds of 20, by {caught:?}");
    let mut all = caught.iter();
    let is_meant = |by: &&str| invariants.contains(by) || others.contains(by);
    assert!(all.all(is_meant), "by {caught:?}");
    assert!(invariants.iter().all(|invariant| caught.contains(invariant)), "by {caught:?}");
}

/// Grants at once what it should recall first.
#[derive(Clone, Default)]
struct Hasty {
    last: Option<(Client, u64, Vec<Want>)>,
    forged: u64,
}

impl Tamper for Hasty {
    fn heard(&mut self, _: Instant, from: Client, message: Upward) -> Vec<(Client, Upward)> {
        if let Up::Ask { request, wants, .. } = &message.body {
            self.last = Some((from, *request, wants.clone()));
        }
        vec![(from, message)]
    }

    fn said(&mut self, _: Instant, to: Client, message: Downward) -> Vec<(Client, Downward)> {
        let mut all = vec![(to, message)];
        let is_recall = matches!(all[0].1.body, Down::Recall(_));
        if let Some((asker, request, wants)) = self.last.take().filter(|_| is_recall) {
            self.forged += 1;
            let grant = |want: Want| Grant {
                scope: want.scope,
                except: Vec::new(),
                kind: want.kind,
                serial: (1 << 40) + self.forged,
                span: Duration::from_secs(60),
                truths: Vec::new(),
            };
            let grants = wants.into_iter().map(grant).collect();
            // The session is a guess; it is right as long as nobody has lost one.
            let body = Down::Granted { request, grants };
            all.push((asker, Downward { body, session: 1, ..all[0].1.clone() }));
        }
        all
    }
}

#[test]
fn who_grants_before_the_others_have_let_go_is_caught() {
    check(&Hasty::default(), 15, &["inv-L1", "inv-L4"]);
}

/// Judges what it knows by the time at which it last heard anything.
#[derive(Clone)]
struct Timeless(Instant);

impl Tamper for Timeless {
    fn learnt(&mut self, now: Instant, message: Downward) -> Option<Downward> {
        self.0 = now;
        Some(message)
    }

    fn belief_now(&self, now: Instant) -> Instant {
        self.0.min(now)
    }
}

#[test]
fn who_acts_after_its_session_has_lapsed_is_caught() {
    check(&Timeless(Instant::START), 5, &["inv-L4"]);
}

/// Lets go before it has pushed.
#[derive(Clone)]
struct Careless;

impl Tamper for Careless {
    fn pushes(&self) -> bool {
        false
    }
}

#[test]
fn who_lets_go_before_it_has_pushed_is_caught() {
    check(&Careless, 10, &["inv-L6"]);
}

/// Does not say which of its booleans are true when it freezes them.
#[derive(Clone)]
struct Secretive;

impl Tamper for Secretive {
    fn told(&mut self, _: Instant, mut message: Upward) -> Vec<Upward> {
        if let Up::Return { returns, .. } = &mut message.body {
            returns.iter_mut().for_each(|returned| returned.truths.clear());
        }
        vec![message]
    }
}

#[test]
fn who_freezes_a_boolean_without_its_value_is_caught() {
    check(&Secretive, 10, &["inv-L3"]);
}

/// Takes a grant that was overtaken, or comes twice, for a new one.
#[derive(Clone, Default)]
struct Gullible {
    seen: u64,
}

impl Tamper for Gullible {
    fn learnt(&mut self, _: Instant, mut message: Downward) -> Option<Downward> {
        match &mut message.body {
            Down::Granted { grants, .. } => {
                for grant in grants {
                    grant.serial = grant.serial.max(self.seen + 1);
                    self.seen = grant.serial;
                }
            }
            Down::Recall(recalls) => {
                let serials = recalls.iter().map(|recall| recall.serial);
                self.seen = serials.fold(self.seen, u64::max);
            }
            _ => {}
        }
        Some(message)
    }
}

#[test]
fn who_accepts_a_stale_grant_is_caught() {
    check_also(&Gullible::default(), 10, &["inv-L1", "inv-L4"], &["inv-L3"]);
}

/// Does not say what is excepted from a wide lease.
#[derive(Clone)]
struct Sweeping;

impl Tamper for Sweeping {
    fn said(&mut self, _: Instant, to: Client, mut message: Downward) -> Vec<(Client, Downward)> {
        if let Down::Granted { grants, .. } = &mut message.body {
            grants.iter_mut().for_each(|grant| grant.except.clear());
        }
        vec![(to, message)]
    }
}

#[test]
fn who_forgets_exceptions_is_caught() {
    check_also(&Sweeping, 10, &["inv-L1", "inv-L4"], &["inv-L3"]);
}

/// Promises longer sessions than it keeps.
#[derive(Clone)]
struct Boastful;

impl Tamper for Boastful {
    fn said(&mut self, _: Instant, to: Client, mut message: Downward) -> Vec<(Client, Downward)> {
        message.span += Duration::from_secs(20);
        vec![(to, message)]
    }
}

#[test]
fn who_promises_more_than_it_keeps_is_caught() {
    check(&Boastful, 5, &["inv-L4"]);
}

/// Runs so fast that its promises end too early.
#[derive(Clone, Default)]
struct Fast {
    start: Option<Instant>,
}

impl Tamper for Fast {
    fn server_now(&mut self, now: Instant) -> Instant {
        let start = *self.start.get_or_insert(now);
        now + now.since(start)
    }
}

#[test]
fn a_clock_beyond_the_agreed_drift_is_caught() {
    check_also(&Fast::default(), 5, &["inv-L4"], &["inv-L1", "inv-L3"]);
}

/// Never tells the first client what it was granted.
#[derive(Clone)]
struct Silent;

impl Tamper for Silent {
    fn said(&mut self, _: Instant, to: Client, message: Downward) -> Vec<(Client, Downward)> {
        let is_answer = matches!(message.body, Down::Granted { .. });
        if is_answer && to == Client(1) { Vec::new() } else { vec![(to, message)] }
    }
}

#[test]
fn who_does_not_answer_is_caught() {
    // Whoever hears nothing gives back what it never knew of.
    check_also(&Silent, 15, &["inv-L5"], &["one answer"]);
}

/// Takes a repeated request for a new one.
#[derive(Clone, Default)]
struct Bureaucrat {
    count: u64,
}

impl Tamper for Bureaucrat {
    fn heard(&mut self, _: Instant, from: Client, message: Upward) -> Vec<(Client, Upward)> {
        let mut copy = message.clone();
        if let Up::Ask { request, .. } = &mut copy.body {
            self.count += 1;
            *request += self.count << 32;
            return vec![(from, message), (from, copy)];
        }
        vec![(from, message)]
    }
}

#[test]
fn queues_that_grow_are_caught() {
    check(&Bureaucrat::default(), 3, &["bounded queues"]);
}

/// A grantor that forgets a question as soon as it is answered.
#[derive(Clone, Default)]
struct Amnesiac {
    /// How often each question was answered.
    answers: BTreeMap<(Client, u64), u64>,
}

/// Under so many names the grantor may come to know a question.
const NAMES: u64 = 1 << 20;

impl Tamper for Amnesiac {
    fn asked(&mut self, client: Client, request: u64) -> u64 {
        request * NAMES + self.answers.get(&(client, request)).copied().unwrap_or(0)
    }

    fn answered(&mut self, client: Client, request: u64) -> u64 {
        let request = request / NAMES;
        *self.answers.entry((client, request)).or_default() += 1;
        request
    }
}

#[test]
fn a_grantor_that_forgets_which_questions_it_has_answered_is_caught() {
    check(&Amnesiac::default(), 10, &["one answer"]);
}
