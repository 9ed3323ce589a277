//! A question that comes again is not decided again; whoever still wants something says so anew.

use base::{Duration, Instant, Machine};

use crate::{
    Client, Field, Grantor, Holder, Kind, Policy, Terms,
    grantor::Output,
    holder::{self, Input},
    message::{Down, Downward, Refusal, Return, Up, Upward, Want},
    script::scope,
};

const NOW: Instant = Instant::START;
const ME: Client = Client(1);

fn wants() -> Vec<Want> {
    vec![Want { scope: scope("1:content"), kind: Kind::Write }]
}

fn say(grantor: &mut Grantor, client: Client, body: Up) -> Vec<Down> {
    let mut out: Vec<Output> = Vec::new();
    grantor.step(NOW, (client, Upward { session: 1, stamp: NOW, body }), &mut out);
    out.into_iter().filter(|(to, _)| *to == client).map(|(_, message)| message.body).collect()
}

fn ask(grantor: &mut Grantor, client: Client, request: u64) -> Vec<Down> {
    say(grantor, client, Up::Ask { request, wants: wants(), together: true })
}

fn serial(said: &[Down]) -> u64 {
    match said {
        [Down::Granted { grants, .. }] => grants[0].serial,
        other => panic!("no grant: {other:?}"),
    }
}

fn give_back(grantor: &mut Grantor, number: u64, serial: u64) {
    let (lease, kind) = (scope("1:content"), Kind::Write);
    let part = lease.clone();
    let returns = vec![Return { lease, kind, serial, part, kept: false, truths: Vec::new() }];
    say(grantor, ME, Up::Return { number, returns });
    assert_eq!(grantor.lease_count(), 0);
}

#[test]
fn what_was_given_back_is_not_granted_once_more_to_the_same_question() {
    let mut grantor = Grantor::new(Terms::default(), Policy::of_the_paper());
    let first = serial(&ask(&mut grantor, ME, 7));
    give_back(&mut grantor, 1, first);
    let refused = Down::Refused { request: 7, why: Refusal::Answered };
    assert_eq!(ask(&mut grantor, ME, 7), [refused]);
    assert_eq!(grantor.lease_count(), 0);
    assert!(serial(&ask(&mut grantor, ME, 8)) > first, "a new question is a new one");
}

#[test]
fn a_question_that_waited_is_answered_once_too() {
    let mut grantor = Grantor::new(Terms::default(), Policy::of_the_paper());
    let other = Client(2);
    let theirs = serial(&ask(&mut grantor, other, 1));
    assert_eq!(ask(&mut grantor, ME, 7), []);
    assert_eq!((ask(&mut grantor, ME, 7), grantor.waiting_count()), (vec![], 1));
    let (lease, kind) = (scope("1:content"), Kind::Write);
    let part = lease.clone();
    let returned = Return { lease, kind, serial: theirs, part, kept: false, truths: Vec::new() };
    say(&mut grantor, other, Up::Return { number: 1, returns: vec![returned] });
    assert_eq!((grantor.waiting_count(), grantor.lease_count()), (0, 1));
    let again = serial(&ask(&mut grantor, ME, 7));
    give_back(&mut grantor, 1, again);
    assert!(matches!(ask(&mut grantor, ME, 7)[..], [Down::Refused { .. }]));
}

#[test]
fn what_still_stands_is_said_again_under_a_number_that_counts() {
    let mut grantor = Grantor::new(Terms::default(), Policy::of_the_paper());
    let first = serial(&ask(&mut grantor, ME, 7));
    let again = serial(&ask(&mut grantor, ME, 7));
    assert!(again > first && grantor.lease_count() == 1);
}

#[test]
fn a_refusal_stays_a_refusal() {
    let policy = Policy { budget: 1, ..Policy::of_the_paper() };
    let mut grantor = Grantor::new(Terms::default(), policy);
    let wants: Vec<Want> =
        ["1:content", "1:times"].map(|at| Want { scope: scope(at), kind: Kind::Read }).into();
    let refused = |request| [Down::Refused { request, why: Refusal::OverBudget }];
    let both = Up::Ask { request: 7, wants, together: true };
    assert_eq!(say(&mut grantor, ME, both), refused(7));
    // Under the same number it would fit now.
    assert_eq!(ask(&mut grantor, ME, 7), refused(7));
    assert_eq!(grantor.lease_count(), 0);
}

#[test]
fn a_new_session_has_asked_nothing_yet() {
    let mut grantor = Grantor::new(Terms::default(), Policy::of_the_paper());
    ask(&mut grantor, ME, 7);
    let body = Up::Ask { request: 7, wants: wants(), together: true };
    let mut out = Vec::new();
    grantor.step(NOW, (ME, Upward { session: 2, stamp: NOW, body }), &mut out);
    assert!(out.iter().any(|(_, said)| matches!(said.body, Down::Granted { .. })));
}

#[test]
fn who_still_waits_for_what_was_answered_asks_anew_and_is_told_of_its_need() {
    let mut holder = Holder::new(Terms::default(), 1);
    let mut out = Vec::new();
    let need = holder.request_next();
    holder.step(NOW, Input::Need { wants: wants(), together: true }, &mut out);
    let mut hear = |body| {
        let span = Duration::from_secs(20);
        let mut out = Vec::new();
        let message = Downward { session: 1, stamp: NOW, span, body };
        holder.step(NOW, Input::Heard(message), &mut out);
        out
    };
    let answered = |request| Down::Refused { request, why: Refusal::Answered };
    assert_eq!(hear(answered(need + 5)), [], "nobody has asked that");
    let out = hear(answered(need));
    let asked = Up::Ask { request: need + 1, wants: wants(), together: true };
    let sent = Upward { session: 1, stamp: NOW, body: asked };
    assert_eq!(out, [holder::Output::Send(sent)]);
    assert_eq!(hear(answered(need)), [], "that question is over");
    let mut grantor = Grantor::new(Terms::default(), Policy::of_the_paper());
    let granted = ask(&mut grantor, ME, need + 1).remove(0);
    assert_eq!(hear(granted), [holder::Output::Met(need)]);
}

/// How long somebody waits for what a client has that goes on working and never answers a recall; time after
/// time. And on what it is granted each time.
fn waits_for_a_hoarder(times: usize) -> Vec<(u64, Field)> {
    let (mut grantor, mut now) = (Grantor::new(Terms::default(), Policy::default()), NOW);
    let (hoarder, other) = (Client(1), Client(2));
    let ask = |request| Up::Ask { request, wants: wants(), together: true };
    let step = |grantor: &mut Grantor, now, who, session, body| {
        let mut out: Vec<Output> = Vec::new();
        grantor.step(now, (who, Upward { session, stamp: now, body }), &mut out);
        out.into_iter().find_map(|(to, said)| match said.body {
            Down::Granted { grants, .. } if to == who => Some(grants[0].clone()),
            _ => None,
        })
    };
    let mut waits = Vec::new();
    for round in 1..=times as u64 {
        let held = step(&mut grantor, now, hoarder, round, ask(1)).expect("nobody has it");
        let asked_at = now;
        let mut got = step(&mut grantor, now, other, 1, ask(round));
        while got.is_none() {
            now = now + Duration::from_millis(500);
            grantor.tick(now, &mut Vec::new());
            step(&mut grantor, now, hoarder, round, Up::Renew);
            got = step(&mut grantor, now, other, 1, ask(round));
        }
        waits.push((now.since(asked_at).as_secs(), held.scope.field));
        let got = got.expect("it was granted");
        let (lease, kind, serial) = (got.scope.clone(), got.kind, got.serial);
        let returned =
            Return { lease, kind, serial, part: got.scope, kept: false, truths: Vec::new() };
        step(&mut grantor, now, other, 1, Up::Return { number: round, returns: vec![returned] });
    }
    waits
}

#[test]
fn who_never_answers_a_recall_delays_others_less_and_less_and_gets_no_more_than_it_asks_for() {
    let narrow = |seconds| (seconds, Field::Content);
    let expected = [(20, Field::Whole), narrow(10), narrow(5), narrow(5)];
    assert_eq!(waits_for_a_hoarder(4), expected);
}

#[test]
fn a_short_session_is_kept_alive_in_time() {
    let terms = Terms::default();
    let mut holder = Holder::new(terms, 1);
    holder.step(NOW, Input::Need { wants: wants(), together: true }, &mut Vec::new());
    let mut grantor = Grantor::new(terms, Policy::of_the_paper());
    let granted = ask(&mut grantor, ME, 1).remove(0);
    let span = Duration::from_secs(5);
    let message = Downward { session: 1, stamp: NOW, span, body: granted };
    holder.step(NOW, Input::Heard(message), &mut Vec::new());
    holder.touch(NOW + Duration::from_millis(1));
    let renewed_at = holder.wake_at().expect("it has done something");
    assert!(renewed_at + terms.repeat <= holder.relied_until(), "{renewed_at:?}");
    let mut out = Vec::new();
    holder.tick(renewed_at, &mut out);
    assert!(matches!(&out[..], [holder::Output::Send(Upward { body: Up::Renew, .. })]), "{out:?}");
}
