//! What two machines know after they have met, and whom a machine believes.

use std::collections::VecDeque;

use base::{Machine as _, SecretKey};

use super::*;
use crate::{Issuer, IssuerRevocation, Revocation};

/// Until when issuers may issue, and a moment before and after.
const UNTIL: u64 = 1_000;
const EARLY: u64 = 500;
const LATE: u64 = 1_500;

fn key(number: u64) -> SecretKey {
    let mut seed = [5; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    SecretKey::from_seed(seed)
}

fn public(number: u64) -> PublicKey {
    key(number).public()
}

fn root() -> SecretKey {
    key(900_000)
}

fn issuer(number: u64) -> Issuer {
    Issuer::by(&root(), key(number), UNTIL)
}

const ISSUER: u64 = 900_001;
const SPENT: u64 = 900_002;

fn revoke(number: u64) -> Decree {
    Decree::Revoke(Revocation::new(&issuer(ISSUER), public(number), 5))
}

fn revoked_by(by: &Issuer, number: u64) -> Decree {
    Decree::Revoke(Revocation::new(by, public(number), 5))
}

fn dismissed(number: u64) -> Decree {
    Decree::RevokeIssuer(IssuerRevocation::new(&root(), public(number), 5))
}

/// A machine without a vote that knows these, in a cell with four members: 1 to 4.
fn machine(me: u64, known: Vec<Decree>) -> Decrees {
    let mut decrees = Decrees::new(root().public(), public(me), known);
    let members: Vec<PublicKey> = (1..=4).map(public).collect();
    let machines = members.iter().copied().chain([public(me)]).collect();
    decrees.step(Instant::START, Input::Cell { machines, members }, &mut Vec::new());
    decrees
}

fn hear(decrees: &mut Decrees, from: u64, tidings: Tidings, seconds: u64) -> Vec<Output> {
    let mut out = Vec::new();
    let input = Input::Heard { from: public(from), tidings, seconds };
    decrees.step(Instant::START, input, &mut out);
    out
}

/// Lets two machines meet, and say what they have to say. How many bytes that took, and the most in one.
fn meet(one: &mut Decrees, two: &mut Decrees) -> (usize, usize) {
    let (me, other) = (one.me, two.me);
    let mut waiting = VecDeque::new();
    for (decrees, to) in [(&mut *one, other), (&mut *two, me)] {
        let mut out = Vec::new();
        decrees.step(Instant::START, Input::Met(to), &mut out);
        waiting.extend(out.into_iter().map(|output| (to, output)));
    }
    let (mut bytes, mut most) = (0, 0);
    while let Some((to, output)) = waiting.pop_front() {
        let Output::Tell(_, tidings) = output else { continue };
        let size = base::encode(&tidings).len();
        (bytes, most) = (bytes + size, most.max(size));
        let (decrees, from) = if to == me { (&mut *one, other) } else { (&mut *two, me) };
        let mut out = Vec::new();
        let input = Input::Heard { from, tidings, seconds: EARLY };
        decrees.step(Instant::START, input, &mut out);
        let told = out.into_iter().filter(|output| matches!(output, Output::Tell(..)));
        waiting.extend(told.map(|output| (from, output)));
    }
    (bytes, most)
}

#[test]
fn two_machines_that_meet_know_all_that_either_knew() {
    let all: Vec<Decree> = (100..400).map(revoke).chain([dismissed(SPENT)]).collect();
    for (first, second) in [
        (0..0, 0..0),
        (0..1, 0..0),
        (0..3, 2..5),
        (0..64, 64..65),
        (0..301, 0..0),
        (0..200, 100..301),
    ] {
        let mut one = machine(10, all[first.clone()].to_vec());
        let mut two = machine(11, all[second.clone()].to_vec());
        let (_, most) = meet(&mut one, &mut two);
        let names = |decrees: &Decrees| decrees.known.keys().copied().collect::<Vec<_>>();
        assert_eq!(names(&one), names(&two), "{first:?} and {second:?}");
        let expected = first.chain(second).collect::<BTreeSet<usize>>().len();
        assert_eq!(one.known.len(), expected);
        assert!(most < 32 << 10, "{most} bytes at once");
        let (bytes, _) = meet(&mut one, &mut two);
        assert!(bytes < 100, "who knows the same says little: {bytes} bytes");
    }
}

#[test]
fn what_many_know_costs_little_when_only_one_is_new() {
    let all: Vec<Decree> = (100..400).map(revoke).collect();
    let mut one = machine(10, all.clone());
    let mut two = machine(11, all[1..].to_vec());
    let (bytes, _) = meet(&mut one, &mut two);
    assert_eq!(two.known.len(), 300);
    assert!(bytes < 40 << 10, "{bytes} bytes");
}

#[test]
fn nobody_believes_what_no_issuer_has_said_or_hears_who_was_sent_away() {
    let mut one = machine(10, Vec::new());
    let stranger = Issuer::by(&key(77), key(78), UNTIL);
    for forged in [
        revoked_by(&stranger, 1),
        Decree::RevokeIssuer(IssuerRevocation::new(&key(77), public(ISSUER), 5)),
    ] {
        let out = hear(&mut one, 1, Tidings::News(vec![forged]), EARLY);
        assert!(matches!(out[..], [Output::Tell(_, Tidings::Compare(..))]), "{out:?}");
    }
    assert_eq!(one.known.len(), 0);
    let out = hear(&mut one, 1, Tidings::News(vec![revoke(20)]), EARLY);
    assert!(out.contains(&Output::Obey(revoke(20))) && one.is_revoked(&public(20)));
    assert_eq!(hear(&mut one, 20, Tidings::News(vec![revoke(21)]), EARLY), []);
    let mut out = Vec::new();
    one.step(Instant::START, Input::Met(public(20)), &mut out);
    assert_eq!(out, []);
}

#[test]
fn what_an_issuer_says_that_may_no_more_counts_if_one_honest_member_has_it() {
    for (known, by, seconds) in
        [(vec![dismissed(SPENT)], issuer(SPENT), EARLY), (Vec::new(), issuer(ISSUER), LATE)]
    {
        let mut one = machine(10, known);
        let late = revoked_by(&by, 20);
        // However many say so who have no vote, and one member who may lie.
        for from in [11, 12, 13, 14, 1, 1, 1] {
            hear(&mut one, from, Tidings::News(vec![late.clone()]), seconds);
            assert!(!one.is_revoked(&public(20)), "from {from}");
        }
        let out = hear(&mut one, 2, Tidings::News(vec![late.clone()]), seconds);
        assert!(out.contains(&Output::Obey(late)) && one.is_revoked(&public(20)));
    }
}

#[test]
fn a_liar_with_an_old_issuers_key_fills_no_memory() {
    let mut one = machine(10, vec![dismissed(SPENT)]);
    let by = issuer(SPENT);
    for page in 0..4 {
        let many = (0..PAGE as u64).map(|number| revoked_by(&by, 1_000 + 100 * page + number));
        hear(&mut one, 1, Tidings::News(many.collect()), EARLY);
    }
    assert_eq!(one.vouched.values().map(BTreeSet::len).sum::<usize>(), VOUCHED_MAX);
    assert_eq!(one.known.len(), 1);
}

#[test]
fn a_member_takes_only_what_its_group_has_decided_and_then_tells_everybody_until_they_know() {
    let mut member = machine(1, Vec::new());
    let machines: BTreeSet<PublicKey> = (1..=100).map(public).collect();
    let members: Vec<PublicKey> = (1..=4).map(public).collect();
    let input = Input::Cell { machines: machines.clone(), members };
    member.step(Instant::START, input, &mut Vec::new());
    let out = hear(&mut member, 50, Tidings::News(vec![revoke(20)]), EARLY);
    assert!(out.contains(&Output::Submit(revoke(20))) && !member.is_revoked(&public(20)));
    let mut out = Vec::new();
    member.step(Instant::START, Input::Decided(Box::new(revoke(20))), &mut out);
    assert_eq!(out, [Output::Obey(revoke(20))]);
    let mut told = BTreeSet::new();
    let mut calls = 0;
    while let Some(at) = member.wake_at() {
        let mut out = Vec::new();
        member.tick(at, &mut out);
        for output in out {
            let Output::Tell(to, Tidings::News(news)) = output else { panic!("{output:?}") };
            assert_eq!(news, [revoke(20)]);
            told.insert(to);
            calls += 1;
            // All but one answer that they know it.
            let whole = Tidings::Compare(Range::default(), member.whole);
            if to != public(60) {
                let input = Input::Heard { from: to, tidings: whole, seconds: EARLY };
                member.step(at, input, &mut Vec::new());
            }
        }
        assert!(member.wake_at().is_none_or(|next| next > at));
    }
    let others: BTreeSet<PublicKey> =
        machines.into_iter().filter(|key| ![public(1), public(20)].contains(key)).collect();
    assert_eq!(told, others, "all but itself and who was sent away");
    assert_eq!(calls, others.len() + CALLS_EACH_MAX as usize - 1);
}

#[test]
fn what_was_kept_is_known_again() {
    let mut one = machine(10, Vec::new());
    hear(&mut one, 1, Tidings::News(vec![revoke(20), dismissed(SPENT)]), EARLY);
    let again = machine(10, one.known().cloned().collect());
    assert!(again.is_revoked(&public(20)) && again.whole == one.whole);
}

#[test]
fn tidings_of_more_than_may_be_are_malformed() {
    let decrees = |count: u64| (0..count).map(|number| revoke(100 + number)).collect::<Vec<_>>();
    let reads = |bytes: &[u8]| base::decode::<Tidings>(bytes, 1 << 20).is_ok();
    let page = decrees(PAGE as u64);
    let more = decrees(PAGE as u64 + 1);
    assert!(reads(&base::encode(&Tidings::News(page))));
    assert!(!reads(&base::encode(&Tidings::News(more))));
    let compare = |halves: &[u8]| {
        base::encode(&Tidings::Compare(Range(halves.to_vec()), Digest::of(RANGE, &[])))
    };
    assert!(reads(&compare(&[1, 15])) && !reads(&compare(&[16])) && !reads(&compare(&[1; 9])));
}
