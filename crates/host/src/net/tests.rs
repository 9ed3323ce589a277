//! Machines that speak over real sockets of this computer, and some that do not keep the rules.

mod bounds;
mod crowd;
mod hostile;
mod rig;

use std::time::Duration;

use self::rig::{LONG, Machine, key, quick, until};
use super::*;

#[test]
fn both_sides_know_who_the_other_is() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    one.knows(&two);
    assert!(one.network.send(&two.key, Lane::Ordinary, b"hello".to_vec()));
    two.hears(|heard| heard.frames == [(one.key, Lane::Ordinary, b"hello".to_vec())]);
    // Who was called can answer, though nobody said where the caller is.
    assert!(two.network.send(&one.key, Lane::Urgent, b"and you".to_vec()));
    one.hears(|heard| heard.frames == [(two.key, Lane::Urgent, b"and you".to_vec())]);
    let standing = one.network.standing().unwrap();
    let [urgent, ordinary, bulk] = standing.peers[0].lanes.as_slice() else { panic!() };
    assert_eq!((urgent.bytes_in, ordinary.bytes_out, bulk.bytes_out), (7, 5, 0));
    assert!(standing.peers[0].connected_s.is_some() && standing.connections == 1);
}

#[test]
fn a_machine_with_another_key_is_not_spoken_to() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    let wanted = key(3).public();
    assert!(one.network.know(&wanted, &[two.address()]));
    assert!(one.network.send(&wanted, Lane::Ordinary, b"secret".to_vec()));
    one.hears(|heard| heard.lines.iter().any(|line| line.contains("with another key")));
    assert!(two.heard(|heard| heard.frames.is_empty()));
    assert_eq!(one.network.standing().unwrap().connections, 0);
}

#[test]
fn who_is_not_where_it_was_is_called_where_it_may_be_and_only_if_it_shows_its_key() {
    let (one, two, three) = (Machine::start(1), Machine::start(2), Machine::start(3));
    let (lookout, nowhere) = (one.network.lookout(), three.address());
    assert!(one.network.know(&two.key, &[nowhere]));
    assert!(one.network.send(&two.key, Lane::Ordinary, b"secret".to_vec()));
    one.hears(|heard| heard.lines.iter().any(|line| line.contains("with another key")));
    lookout.hint(&two.key, &[nowhere]);
    lookout.hint(&key(9).public(), &[two.address()]);
    lookout.hint(&two.key, &[two.address()]);
    two.hears(|heard| heard.frames == [(one.key, Lane::Ordinary, b"secret".to_vec())]);
    assert!(three.heard(|heard| heard.frames.is_empty()));
}

#[test]
fn a_stranger_may_ask_once_and_little_but_not_send() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    two.welcomes(&one, Welcome::Stranger);
    let (who, answer) = one.network.ask_at(two.address(), b"may I?".to_vec(), LONG).unwrap();
    assert_eq!((who, answer), (two.key, b"stranger: may I?".to_vec()));
    one.knows(&two);
    assert!(one.network.send(&two.key, Lane::Urgent, b"vote".to_vec()));
    let answer = one.network.ask(&two.key, b"and now?".to_vec(), LONG).unwrap();
    assert_eq!(answer, b"stranger: and now?");
    let large = vec![0; two.limits.ask_stranger_bytes_max + 1];
    let failure = one.network.ask_at(two.address(), large, LONG).unwrap_err().to_string();
    assert!(failure.contains("at most"), "{failure}");
    assert!(two.heard(|heard| heard.frames.is_empty()));
    assert_eq!(two.network.standing().unwrap().refused.oversized, 1);
}

#[test]
fn a_stranger_that_becomes_known_is_heard() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    two.welcomes(&one, Welcome::Stranger);
    one.knows(&two);
    one.network.ask(&two.key, b"join".to_vec(), LONG).unwrap();
    two.welcomes(&one, Welcome::Known);
    assert!(one.network.send(&two.key, Lane::Ordinary, b"hello".to_vec()));
    two.hears(|heard| heard.frames.len() == 1);
}

#[test]
fn a_stranger_that_has_called_too_early_calls_again_as_soon_as_it_is_known() {
    let one = Machine::start(1);
    // A stranger that asks for nothing may stay for longer than this test.
    let two = Machine::start_with(2, Limits { guest: 10 * LONG, ..quick() });
    two.welcomes(&one, Welcome::Stranger);
    one.knows(&two);
    let say = |what: &[u8]| one.network.send(&two.key, Lane::Ordinary, what.to_vec());
    assert!(say(b"lost"));
    until(|| two.network.standing().unwrap().guests == 1);
    two.welcomes(&one, Welcome::Known);
    until(|| two.network.standing().unwrap().guests == 0);
    until(|| say(b"heard") && two.heard(|heard| !heard.frames.is_empty()));
}

#[test]
fn whoever_is_not_welcome_is_turned_away_and_told() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    two.welcomes(&one, Welcome::Refused);
    let failure = one.network.ask_at(two.address(), b"may I?".to_vec(), LONG).unwrap_err();
    assert!(failure.to_string().contains("does not want this machine"), "{failure}");
    two.hears(|heard| heard.lines.iter().any(|line| line.contains("not welcome")));
    assert_eq!(
        (two.heard(|heard| heard.asks), two.network.standing().unwrap().refused.unwelcome),
        (0, 1)
    );
}

#[test]
fn whoever_calls_a_machine_that_has_not_joined_yet_may_call_again_and_nobody_is_blamed() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    two.welcomes(&one, Welcome::Early);
    let failure = one.network.ask_at(two.address(), b"hello?".to_vec(), LONG).unwrap_err();
    assert!(failure.to_string().contains("it may be tried again"), "{failure}");
    assert_eq!(two.network.standing().unwrap().refused.unwelcome, 0);
    assert!(two.heard(|heard| heard.lines.is_empty()));
    two.welcomes(&one, Welcome::Known);
    one.network.ask_at(two.address(), b"hello?".to_vec(), LONG).unwrap();
}

#[test]
fn whoever_is_no_longer_welcome_loses_its_connection() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    one.knows(&two);
    assert!(one.network.send(&two.key, Lane::Ordinary, b"hello".to_vec()));
    two.hears(|heard| heard.frames.len() == 1);
    two.network.reconsider();
    assert_eq!(two.network.standing().unwrap().connections, 1);
    two.welcomes(&one, Welcome::Refused);
    two.network.reconsider();
    until(|| two.network.standing().unwrap().connections == 0);
    one.hears(|heard| heard.lines.iter().any(|line| line.contains("does not want this machine")));
}

#[test]
fn requests_are_answered_also_many_at_once() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    one.knows(&two);
    std::thread::scope(|scope| {
        for number in 0..20 {
            let (one, two) = (&one, &two);
            scope.spawn(move || {
                let bytes = vec![number; 100_000];
                let answer = one.network.ask(&two.key, bytes.clone(), LONG).unwrap();
                assert_eq!(answer, [&b"known: "[..], &bytes].concat());
            });
        }
    });
    assert_eq!(two.network.standing().unwrap().connections, 1);
}

#[test]
fn a_request_that_is_not_answered_ends_in_time() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    one.knows(&two);
    let short = Duration::from_millis(50);
    let failure = one.network.ask(&two.key, b"block".to_vec(), short).unwrap_err();
    assert!(failure.to_string().contains("no answer came in time"), "{failure}");
    two.unblock();
    let failure = one.network.ask(&key(9).public(), vec![], LONG).unwrap_err();
    assert!(failure.to_string().contains("nobody with this key is known"), "{failure}");
    let failure = one.network.ask(&two.key, b"panic".to_vec(), LONG).unwrap_err();
    assert!(failure.to_string().contains("could not answer"), "{failure}");
    assert_eq!(one.network.ask(&two.key, b"still?".to_vec(), LONG).unwrap(), b"known: still?");
}

#[test]
fn a_machine_that_starts_anew_at_its_place_is_found_again() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    one.knows(&two);
    assert!(one.network.send(&two.key, Lane::Ordinary, b"first".to_vec()));
    two.hears(|heard| heard.frames.len() == 1);
    let address = two.address();
    drop(two);
    let two = Machine::start_at(2, address, quick());
    // What is said while it is away may be lost; what is said again and again is not.
    until(|| {
        one.network.send(&two.key, Lane::Ordinary, b"second".to_vec());
        two.heard(|heard| !heard.frames.is_empty())
    });
}

#[test]
fn a_machine_that_died_without_a_word_tells_so_itself_when_it_is_back() {
    // Nothing else would tell so soon.
    let limits = Limits { stall: LONG * 10, silence: LONG * 10, ..quick() };
    let one = Machine::start_with(1, limits.clone());
    let two = Machine::start_with(2, limits.clone());
    one.knows(&two);
    assert!(one.network.send(&two.key, Lane::Ordinary, b"first".to_vec()));
    two.hears(|heard| heard.frames.len() == 1);
    let address = two.address();
    two.vanish();
    let two = Machine::start_at(2, address, limits);
    until(|| {
        one.network.send(&two.key, Lane::Ordinary, b"second".to_vec());
        two.heard(|heard| !heard.frames.is_empty())
    });
}

#[test]
fn two_that_call_each_other_at_once_end_up_with_one_connection_and_lose_nothing() {
    for round in 0..10 {
        let (one, two) = (Machine::start(1), Machine::start(2));
        one.knows(&two);
        two.knows(&one);
        for number in 0..20 {
            assert!(one.network.send(&two.key, Lane::Ordinary, vec![number]));
            assert!(two.network.send(&one.key, Lane::Ordinary, vec![number]));
        }
        for machine in [&one, &two] {
            machine.hears(|heard| {
                let mut numbers: Vec<u8> = heard.frames.iter().map(|frame| frame.2[0]).collect();
                numbers.sort_unstable();
                numbers == (0..20).collect::<Vec<u8>>()
            });
        }
        until(|| {
            let count = |machine: &Machine| machine.network.standing().unwrap().connections;
            (count(&one), count(&two)) == (1, 1)
        });
        assert!(one.heard(|heard| heard.lines.is_empty()), "round {round}");
    }
}

#[test]
fn an_idle_connection_is_closed_and_comes_back_without_losing_a_frame() {
    let limits = Limits { idle: Duration::from_millis(20), ..quick() };
    let one = Machine::start_with(1, limits.clone());
    let two = Machine::start_with(2, limits);
    one.knows(&two);
    two.knows(&one);
    for round in 0..30u32 {
        let bytes = round.to_le_bytes().to_vec();
        // In every other round while the connection is there or just goes, in either direction.
        if round % 2 == 0 {
            until(|| one.network.standing().unwrap().connections == 0);
        }
        assert!(one.network.send(&two.key, Lane::Ordinary, bytes.clone()));
        two.hears(|heard| heard.frames.len() == round as usize + 1);
        assert!(two.network.send(&one.key, Lane::Ordinary, bytes));
        one.hears(|heard| heard.frames.len() == round as usize + 1);
    }
    for machine in [one, two] {
        assert!(machine.heard(|heard| {
            let numbers = heard.frames.iter().map(|frame| frame.2.clone());
            numbers.eq((0..30u32).map(|round| round.to_le_bytes().to_vec()))
        }));
    }
}

#[test]
fn a_connection_that_ends_in_peace_loses_nothing_that_crosses_its_end() {
    const BURST: u32 = 60;
    let (one, two) = (Machine::start(1), Machine::start(2));
    one.knows(&two);
    two.knows(&one);
    let mut count = 0u32;
    for round in 0..30 {
        for number in count..count + BURST {
            let frame = [&number.to_le_bytes()[..], &[0; 8 << 10]].concat();
            for (from, to) in [(&one, &two), (&two, &one)] {
                assert!(from.network.send(&to.key, Lane::Ordinary, frame.clone()));
            }
        }
        // In the midst of it, one or the other parts, or both do.
        one.hears(|heard| heard.frames.len() > (count + BURST / 4) as usize);
        let sides = [(&one, &two.key), (&two, &one.key)];
        for (index, (side, other)) in sides.into_iter().enumerate() {
            if round % 3 != index {
                let peer = side.network.hub.peer(other).unwrap();
                peer.links().iter().for_each(|link| link.part());
            }
        }
        count += BURST;
        for machine in [&one, &two] {
            machine.hears(|heard| heard.frames.len() == count as usize);
        }
    }
    for machine in [&one, &two] {
        let number = |frame: &[u8]| u32::from_le_bytes(*frame.first_chunk().unwrap());
        let mut numbers: Vec<u32> =
            machine.heard(|heard| heard.frames.iter().map(|frame| number(&frame.2)).collect());
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..count));
    }
}

#[test]
fn frames_of_one_lane_come_in_order() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    one.knows(&two);
    for number in 0..2_000u32 {
        assert!(one.network.send(&two.key, Lane::Urgent, number.to_le_bytes().to_vec()));
    }
    two.hears(|heard| heard.frames.len() == 2_000);
    let is_ordered = |heard: &rig::Heard| {
        let numbers = heard.frames.iter().map(|frame| frame.2.clone());
        numbers.eq((0..2_000u32).map(|number| number.to_le_bytes().to_vec()))
    };
    assert!(two.heard(is_ordered));
}

#[test]
fn an_urgent_frame_overtakes_a_backlog_of_bulk() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    one.knows(&two);
    let lane = |lane: Lane| one.network.standing().unwrap().peers[0].lanes[lane.index()].clone();
    // While the other end stands still, only what was on its way at once is on its way.
    assert!(one.network.send(&two.key, Lane::Bulk, b"freeze".to_vec()));
    two.hears(|heard| heard.frames.len() == 1);
    let count = 200;
    for _ in 0..count {
        assert!(one.network.send(&two.key, Lane::Bulk, vec![7; 16 << 10]));
    }
    until(|| lane(Lane::Bulk).frames_out > 50);
    assert!(one.network.send(&two.key, Lane::Urgent, b"recall".to_vec()));
    until(|| lane(Lane::Urgent).frames_out == 1);
    two.unblock();
    two.hears(|heard| heard.frames.len() == count + 2);
    let place = two.heard(|heard| heard.frames.iter().position(|frame| frame.1 == Lane::Urgent));
    assert!(place.unwrap() < 30, "{place:?} frames of bulk came before the urgent one");
}

#[test]
fn who_is_forgotten_is_gone_and_can_be_known_again() {
    let (one, two) = (Machine::start(1), Machine::start(2));
    one.knows(&two);
    assert!(one.network.send(&two.key, Lane::Ordinary, b"hello".to_vec()));
    two.hears(|heard| heard.frames.len() == 1);
    one.network.forget(&two.key);
    assert!(!one.network.send(&two.key, Lane::Ordinary, b"hello".to_vec()));
    until(|| two.network.standing().unwrap().connections == 0);
    assert!(one.network.standing().unwrap().peers.is_empty());
    one.knows(&two);
    assert!(one.network.send(&two.key, Lane::Ordinary, b"again".to_vec()));
    two.hears(|heard| heard.frames.len() == 2);
}

#[test]
fn it_works_over_the_other_family_of_addresses_too() {
    let address = "[::1]:0".parse().unwrap();
    let (one, two) =
        (Machine::start_at(1, address, quick()), Machine::start_at(2, address, quick()));
    one.knows(&two);
    assert_eq!(one.network.ask(&two.key, b"six".to_vec(), LONG).unwrap(), b"known: six");
}

#[test]
fn a_place_that_is_taken_is_named() {
    let one = Machine::start(1);
    let settings = Settings { key: key(2), bind: one.address(), limits: quick() };
    let failure = Network::start(settings, rig::Ears::new()).err().unwrap().to_string();
    assert!(failure.contains(&one.address().to_string()), "{failure}");
}
