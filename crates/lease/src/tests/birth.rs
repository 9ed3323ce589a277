//! Leases from birth, and the group as its own client.

use base::{Instant, Machine};

use super::check_plain;
use crate::{
    Client, Grantor, Kind, Policy, Terms,
    message::{Up, Upward, Want},
    script::{check_with, scope},
};

#[test]
fn who_creates_a_tree_holds_all_of_it_without_asking() {
    check_plain(
        "0 A needs 1:/x write
         0 A says messages
         1 A creates 1.5:**
         2 A tries 1.5:content
         2 A tries 1.5.9:/y
         3 A says messages",
        "0 A is content
         0 A saw 2 messages
         2 A writes 1.5:content
         2 A writes 1.5.9:/y
         3 A saw 0 messages",
    );
}

#[test]
fn what_was_born_changes_hands_like_everything_else() {
    check_plain(
        "0 A needs 1:/x write
         1 A creates 1.5:**
         2 B needs 1.5:content write
         3 A pushes
         4 A tries 1.5:content
         4 A tries 1.5:access
         4 B tries 1.5:content
         5 B needs 1.5:** write
         6 A pushes
         7 A tries 1.5:access
         7 B tries 1.5:access",
        "0 A is content
         2 A must push 1.5:content
         3 B is content
         4 A knows nothing of 1.5:content
         4 A writes 1.5:access
         4 B writes 1.5:content
         5 A must push 1.5:**
         6 B is content
         7 A knows nothing of 1.5:access
         7 B writes 1.5:access",
    );
}

#[test]
fn what_was_born_can_be_given_back_unasked() {
    check_plain(
        "0 A needs 1:/x write
         1 A creates 1.5:*
         2 A is done with 1.5:* write
         2 A pushes
         3 B needs 1.5:content write
         3 B says messages",
        "0 A is content
         2 A must push 1.5:*
         3 B is content
         3 B saw 5 messages",
    );
}

#[test]
fn a_birth_under_a_lease_that_covers_it_adds_nothing_and_goes_with_it() {
    check_plain(
        "0 A needs 1:** write
         1 A creates 1.5:** for now
         2 A tries 1.5:content
         3 B needs 1:** write
         4 A pushes
         5 A tries 1.5:content
         5 B tries 1.5:content",
        "0 A is content
         2 A writes 1.5:content
         3 A must push 1:**
         4 B is content
         5 A knows nothing of 1.5:content
         5 B writes 1.5:content",
    );
}

#[test]
fn a_birth_while_the_lease_around_it_leaves_is_heard_of_before_that_is_gone() {
    // B may have the rest when A lets go, but the new file is A's until A lets go of that too.
    check_plain(
        "0 A needs 1:** write, 2:/x write
         1 B needs 1:** write
         2 A creates 1.5:** for now
         3 A pushes
         4 A tries 1.5:content
         4 B tries 1:content
         5 A pushes
         6 A tries 1.5:content
         6 B tries 1.5:content",
        "0 A is content
         1 A must push 1:**
         3 A must push 1.5:**
         4 A knows nothing of 1.5:content
         4 B knows nothing of 1:content
         5 B is content
         6 A knows nothing of 1.5:content
         6 B writes 1.5:content",
    );
}

#[test]
fn a_lease_that_is_granted_around_a_birth_does_not_swallow_it() {
    // The grantor grants 1:** before it hears of the birth. Then a part of the one is recalled.
    check_plain(
        "0 A needs 1:/x write
         1 A creates 1.5:** for now
         2 A needs 1:** write
         3 A is done with 1:/x write
         3 A pushes
         4 B needs 1.5:content write
         5 A pushes
         6 A tries 1.5:content
         6 B tries 1.5:content",
        "0 A is content
         2 A is content
         3 A must push 1:/x
         4 A must push 1.5:content
         4 A must push 1.5:content
         5 B is content
         6 A knows nothing of 1.5:content
         6 B writes 1.5:content",
    );
}

#[test]
fn who_holds_the_tree_around_a_birth_lets_go_of_it_before_hearing_of_it() {
    // A has everything below 1 but the name x, under which B creates 1.5.
    check_plain(
        "0 A needs 1:** write
         1 B needs 1:/x write
         2 A pushes
         3 B creates 1.5:** for now
         4 A needs 1:/x read
         5 B pushes
         6 A tries 1:/x
         7 A pushes
         8 A tries 1:/x
         8 A tries 1.5:content
         8 A tries 1.6:content
         8 B tries 1.5:content",
        "0 A is content
         1 A must push 1:/x
         2 B is content
         4 B must push 1:/x
         5 A must push 1.5:**
         6 A knows nothing of 1:/x
         7 A is content
         8 A reads 1:/x
         8 A knows nothing of 1.5:content
         8 A writes 1.6:content
         8 B writes 1.5:content",
    );
}

#[test]
fn a_born_lease_with_a_boolean_is_asked_for_again_in_time() {
    check_plain(
        "0 A needs 1:/x write
         1 A creates 1.5:*
         2 A sets 1.5:handles
         7151000 A needs 2:content read
         7160000 A tries 1.5:handles
         7300000 A needs 3:content read
         7300000 A tries 1.5:handles
         7300001 B needs 1.5:handles others
         7300002 A pushes
         7300003 B tries 1.5:handles",
        "0 A is content
         7151000 A is content
         7151800 A must push 1:/x
         7151801 A is content
         7160000 A writes 1.5:handles, others false
         7300000 A is content
         7300000 A writes 1.5:handles, others false
         7300001 A must push 1.5:handles
         7300002 B is content
         7300003 B knows nothing of 1.5:handles, others true",
    );
}

#[test]
fn births_beyond_all_measure_are_refused() {
    check_with(
        Policy { budget: 1, ..Policy::of_the_paper() },
        "0 A needs 1:/x write
         1 A creates 1.5:*
         2 A creates 1.6:*",
        "0 A is content
         2 A is refused a birth",
    );
}

#[test]
fn the_group_learns_when_the_last_handle_is_closed() {
    // G's session never lapses, and its leases have no end.
    check_plain(
        "0 A needs 1:handles self
         0 A pushes at once
         1 A sets 1:handles
         2 G pushes at once
         2 G needs 1:handles others
         3 G tries 1:handles
         9000000 A needs 2:content read
         9000000 G tries 1:handles
         9000001 A needs 1:handles self
         9000002 A clears 1:handles
         9000003 G needs 1:handles others
         9000004 G tries 1:handles",
        "0 A is content
         2 A must push 1:handles
         2 G is content
         3 G knows nothing of 1:handles, others true
         9000000 A is content
         9000000 G knows nothing of 1:handles, others true
         9000001 G must push 1:handles
         9000001 A is content
         9000003 A must push 1:handles
         9000003 G is content
         9000004 G knows nothing of 1:handles, others false",
    );
}

const A: Client = Client(1);
const B: Client = Client(2);

fn grantor_with(client: Client, wants: &[(&str, Kind)]) -> Grantor {
    let mut grantor = Grantor::new(Terms::default(), Policy::of_the_paper());
    let wants = wants.iter().map(|(at, kind)| Want { scope: scope(at), kind: *kind });
    let body = Up::Ask { request: 1, wants: wants.collect(), together: true };
    let message = Upward { session: 1, stamp: Instant::START, body };
    grantor.step(Instant::START, (client, message), &mut Vec::new());
    grantor
}

#[test]
fn a_promise_stands_until_it_is_given_back_or_the_session_is_lost() {
    let wants = [("1:*", Kind::Write), ("2:handles", Kind::OtherRead)];
    let mut grantor = grantor_with(A, &wants);
    for (at, kind, is_promised) in [
        ("1:content", Kind::Write, true),
        ("1:/a", Kind::Read, true),
        ("1:handles", Kind::SelfWrite, true),
        ("1:handles", Kind::OtherRead, true),
        ("1:**", Kind::Write, false),
        ("1.1:content", Kind::Read, false),
        ("2:handles", Kind::OtherRead, true),
        ("2:handles", Kind::SelfWrite, false),
    ] {
        assert_eq!(grantor.promises(A, &scope(at), kind), is_promised, "{at} {kind:?}");
        assert!(!grantor.promises(B, &scope(at), kind));
    }
    assert!(grantor.is_in_session(A, 1) && !grantor.is_in_session(A, 2));
    grantor.expel(Instant::START, A, &mut Vec::new());
    assert!(!grantor.promises(A, &scope("1:content"), Kind::Write));
    assert!(!grantor.is_in_session(A, 1));
}

#[test]
fn what_was_born_in_a_lease_is_promised_to_its_creator_alone() {
    let mut grantor = grantor_with(A, &[("1:**", Kind::Write)]);
    let renew = Upward { session: 1, stamp: Instant::START, body: Up::Renew };
    grantor.step(Instant::START, (B, renew), &mut Vec::new());
    assert!(grantor.bear(Instant::START, B, scope("1.5:**"), &mut Vec::new()));
    assert!(grantor.promises(B, &scope("1.5:content"), Kind::Write));
    assert!(!grantor.promises(A, &scope("1.5:content"), Kind::Write));
    assert!(grantor.promises(A, &scope("1.6:content"), Kind::Write));
}

#[test]
fn a_field_is_closed_when_nobody_else_has_or_may_take_a_truth() {
    let at = scope("1:handles");
    assert!(grantor_with(A, &[("1:handles", Kind::OtherRead)]).knows_closed(&at, B));
    for wants in [("1:handles", Kind::SelfWrite), ("1:*", Kind::Write)] {
        let grantor = grantor_with(A, &[wants]);
        assert!(grantor.knows_closed(&at, A) && !grantor.knows_closed(&at, B));
    }
}
