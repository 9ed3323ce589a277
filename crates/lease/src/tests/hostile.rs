//! What one client can't do to a grantor, whatever it says.

use base::{Instant, Machine};

use crate::{
    Client, Grantor, Kind, Policy, Scope, Terms,
    grantor::{Favour, Output},
    message::{Down, Grant, Recall, Refusal, Return, Up, Upward, Want},
    script::scope,
};

const NOW: Instant = Instant::START;

fn grantor(budget: usize) -> Grantor {
    Grantor::new(Terms::default(), Policy { budget, ..Policy::of_the_paper() })
}

fn say(grantor: &mut Grantor, client: u32, session: u64, body: Up) -> Vec<Output> {
    let mut out = Vec::new();
    let message = Upward { session, stamp: NOW, body };
    grantor.step(NOW, (Client(client), message), &mut out);
    out
}

fn ask(grantor: &mut Grantor, client: u32, request: u64, at: &str, kind: Kind) -> Vec<Output> {
    let wants = vec![Want { scope: scope(at), kind }];
    say(grantor, client, 1, Up::Ask { request, wants, together: true })
}

fn recalls(out: &[Output]) -> Vec<&Recall> {
    let bodies = out.iter().map(|(_, message)| &message.body);
    bodies
        .filter_map(|body| if let Down::Recall(all) = body { Some(all) } else { None })
        .flatten()
        .collect()
}

fn granted(out: &[Output]) -> &Grant {
    let Down::Granted { grants, .. } = &out[0].1.body else { panic!("{out:?}") };
    &grants[0]
}

fn give_back(grant: &Grant, part: Scope, truths: Vec<Scope>) -> Return {
    let Grant { scope: lease, kind, serial, .. } = grant.clone();
    Return { lease, kind, serial, part, kept: false, truths }
}

#[test]
fn many_who_want_single_names_of_one_lease_end_up_recalling_all_of_it() {
    let mut grantor = grantor(1_000);
    ask(&mut grantor, 1, 1, "1:/*", Kind::Write);
    let mut parts = Vec::new();
    for number in 0..200 {
        let out = ask(&mut grantor, 2, number, &format!("1:/name-{number}"), Kind::Write);
        parts.extend(recalls(&out).into_iter().map(|recall| recall.part.clone()));
    }
    assert_eq!(parts.len(), 65);
    assert_eq!(parts.last(), Some(&scope("1:/*")));
}

#[test]
fn who_claims_more_open_files_than_it_may_remember_is_lost() {
    let mut grantor = grantor(10);
    let out = ask(&mut grantor, 1, 1, "1:**", Kind::Write);
    let truths = (1..20).map(|number| scope(&format!("1.{number}:handles"))).collect();
    let returns = vec![give_back(granted(&out), scope("1:**"), truths)];
    let out = say(&mut grantor, 1, 1, Up::Return { number: 1, returns });
    assert!(matches!(out[..], [(Client(1), ref lost)] if lost.body == Down::Lost), "{out:?}");
    let out = ask(&mut grantor, 2, 1, "1.1:handles", Kind::OtherRead);
    assert_eq!(granted(&out).truths, []);
}

#[test]
fn what_is_said_of_leases_that_are_not_held_means_nothing() {
    let mut grantor = grantor(10);
    let out = ask(&mut grantor, 1, 1, "1:*", Kind::Write);
    let grant = granted(&out).clone();
    let before = grantor.clone();
    let wrongs = [
        Return {
            lease: scope("2:*"),
            part: scope("2:*"),
            ..give_back(&grant, scope("1:*"), vec![])
        },
        Return { serial: 99, ..give_back(&grant, scope("1:*"), vec![]) },
        Return { kind: Kind::OtherRead, ..give_back(&grant, scope("1:*"), vec![]) },
        give_back(&grant, scope("1:**"), vec![]),
        give_back(&grant, scope("2:content"), vec![scope("2:handles")]),
    ];
    for (number, wrong) in (1..).zip(wrongs) {
        let out = say(&mut grantor, 1, 1, Up::Return { number, returns: vec![wrong] });
        assert_eq!(out, []);
        assert_eq!(grantor.lease_count(), before.lease_count());
        assert!(grantor.promises(Client(1), &scope("1:*"), Kind::Write));
        assert!(grantor.knows_closed(&scope("2:handles"), Client(2)));
    }
}

#[test]
fn a_client_that_starts_again_and_again_leaves_one_farewell_for_each_boolean() {
    let mut grantor = grantor(10);
    let out = ask(&mut grantor, 1, 1, "1:handles", Kind::SelfWrite);
    let returned = give_back(granted(&out), scope("1:handles"), vec![scope("1:handles")]);
    say(&mut grantor, 1, 1, Up::Return { number: 1, returns: vec![returned] });
    // Somebody relies on the boolean, so its end has to wait.
    ask(&mut grantor, 2, 1, "1:handles", Kind::OtherRead);
    for session in 2..100 {
        say(&mut grantor, 1, session, Up::Renew);
        assert_eq!((grantor.lease_count(), grantor.waiting_count()), (1, 1), "session {session}");
    }
}

#[test]
fn waiting_is_bounded_and_ends_with_the_session() {
    let mut grantor = grantor(10);
    ask(&mut grantor, 1, 1, "1:**", Kind::Write);
    for request in 0..100 {
        ask(&mut grantor, 2, request, &format!("1:/name-{request}"), Kind::Read);
    }
    assert_eq!(grantor.waiting_count(), 10);
    say(&mut grantor, 2, 2, Up::Renew);
    assert_eq!(grantor.waiting_count(), 0);
    let out = ask(&mut grantor, 2, 1, "2:content", Kind::Read);
    assert_eq!(out, [], "that session is over");
}

#[test]
fn whoever_runs_the_grantor_says_whether_more_is_granted_than_was_asked_or_nothing() {
    let mut grantor = Grantor::new(Terms::default(), Policy::default());
    let mut ask = |client: u32, at: &str, favour| {
        let wants = vec![Want { scope: scope(at), kind: Kind::Read }];
        let body = Up::Ask { request: 1, wants, together: true };
        let message = Upward { session: 1, stamp: NOW, body };
        let mut out = Vec::new();
        grantor.step_with(NOW, (Client(client), message), favour, &mut out);
        out
    };
    assert_eq!(granted(&ask(1, "1:access", Favour::Generous)).scope, scope("1:*"));
    assert_eq!(granted(&ask(2, "1:access", Favour::Narrow)).scope, scope("1:access"));
    let denied = Down::Refused { request: 1, why: Refusal::Denied };
    assert_eq!(ask(3, "1:access", Favour::Denied)[0].1.body, denied);
    assert_eq!(grantor.lease_count(), 2);
}
