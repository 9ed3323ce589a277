//! A newcomer whose group was one when it was let in, and that one lies.

use base::{Digest, Domain, Instant, Machine as _, SecretKey};
use group::{Ed25519, Message as Words, Seat, Summary, Tip};
use wire::Message;

use crate::{Identity, Input, Member, Output, Settings};

fn seat(number: u8) -> Seat {
    Seat { key: SecretKey::from_seed([number; 32]).public(), incarnation: 0 }
}

fn member(number: u8, now: Instant) -> Member<Ed25519> {
    let identity = Identity {
        group: Digest::of(Domain::new("test v1"), b""),
        seat: seat(number),
        authority: None,
        notary: Ed25519::new(SecretKey::from_seed([number; 32])),
    };
    let first = Tip::first(vec![seat(1)]).unwrap();
    Member::new(Settings::default(), group::Settings::default(), identity, first, now)
}

/// What the newcomer wants done when the first one hands it a state at this point.
fn hand(newcomer: &mut Member<Ed25519>, now: Instant, tip: &Tip, state: &[u8]) -> Vec<Output> {
    let (height, bytes) = (tip.height, state.len() as u64);
    let summary = Summary { tip: tip.clone(), state: vice::digest_of(state), bytes };
    let piece = Words::Piece { height, from: 0, bytes: state.to_vec() };
    let mut out = Vec::new();
    for words in [Words::Offer(summary, None), piece] {
        let bytes = newcomer.about().encode(Message::Member(Box::new(words)));
        newcomer.step(now, Input::Told { from: seat(1), bytes }, &mut out);
    }
    out
}

#[test]
fn a_state_that_makes_no_sense_is_let_go_of_and_a_good_one_taken_after_it() {
    let now = Instant::from_secs(50);
    let (mut first, mut newcomer) = (member(1, now), member(2, now));
    let begun = Tip { height: 7, ..first.replica().tip().clone() };
    let good = first.whole_state().unwrap();
    let others = [&b"nobody has this state"[..], &[], &good];
    for state in others {
        // The last one makes sense, but it is of another point.
        let out = hand(&mut newcomer, now, &begun, state);
        assert!(out.contains(&Output::Misled) && !out.contains(&Output::Replaced), "{out:?}");
        assert_eq!((newcomer.height(), newcomer.replica().tip().height), (0, 0));
    }
    assert_eq!(newcomer.malformed(), 3);
    let ((_, book, rest), records): crate::member::Whole = base::decode(&good, good.len()).unwrap();
    let fitting = base::encode(&((begun.clone(), book, rest), records));
    let out = hand(&mut newcomer, now, &begun, &fitting);
    assert!(out.contains(&Output::Replaced) && !out.contains(&Output::Misled), "{out:?}");
    assert_eq!(newcomer.height(), 7);
}
