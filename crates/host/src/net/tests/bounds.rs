//! How much of everything there may be, whoever wants more.

use std::time::Duration;

use super::{
    super::{Lane, LaneLimits, Limits, Welcome, tls},
    hostile::Raw,
    rig::{LONG, Machine, key, quick, until},
};

#[test]
fn of_many_that_come_at_once_only_so_many_are_let_in_and_friends_still_are() {
    let limits = Limits { handshakes_max: 8, guests_max: 5, guest: LONG, ..quick() };
    let machine = Machine::start_with(1, limits);
    let friend = Machine::start(2);
    machine.welcomes_others(Welcome::Stranger);
    machine.welcomes(&friend, Welcome::Known);
    let raw = Raw::new();
    let mut open = Vec::new();
    for wave in 0..10 {
        let calls: Vec<_> =
            (0..30).map(|call| raw.dial(10 + wave * 20 + call % 20, &machine, tls::LINK)).collect();
        for call in calls {
            let standing = machine.network.standing().unwrap();
            assert!(standing.handshakes <= 8, "{} handshakes", standing.handshakes);
            assert!(standing.guests <= 5, "{} guests", standing.guests);
            if let Ok(connection) = raw.wait(call) {
                open.push(connection);
            }
        }
    }
    until(|| open.iter().filter(|connection| connection.close_reason().is_none()).count() <= 5);
    let standing = machine.network.standing().unwrap();
    assert!(standing.refused.busy + standing.refused.crowded >= 200, "{:?}", standing.refused);
    assert!(machine.heard(|heard| heard.lines.len()) <= 60, "the log is filled");
    friend.knows(&machine);
    assert!(friend.network.ask(&machine.key, b"well?".to_vec(), LONG).is_ok());
}

#[test]
fn connections_of_known_machines_are_bounded_too() {
    let machine = Machine::start_with(1, Limits { connections_max: 3, ..quick() });
    let raw = Raw::new();
    let calls: Vec<_> = (10..20).map(|seed| raw.dial(seed, &machine, tls::LINK)).collect();
    let _open: Vec<_> = calls.into_iter().map(|call| raw.wait(call)).collect();
    until(|| {
        let standing = machine.network.standing().unwrap();
        assert!(standing.connections <= 3);
        standing.refused.busy + standing.refused.crowded == 7
    });
}

#[test]
fn an_outbox_is_bounded_by_frames_and_by_bytes_and_says_so() {
    let lane = LaneLimits { frame_bytes_max: 100, outbox_count_max: 3, outbox_bytes_max: 150 };
    let machine = Machine::start_with(1, Limits { lanes: [lane; 3], ..quick() });
    let other = key(9).public();
    assert!(!machine.network.send(&other, Lane::Bulk, vec![]), "nobody is known");
    // Known, and not where it could be reached.
    assert!(machine.network.know(&other, &[]));
    let send = |size| machine.network.send(&other, Lane::Bulk, vec![0; size]);
    assert!(!send(101) && send(100) && !send(51) && send(25) && send(25) && !send(0));
    assert!(machine.network.send(&other, Lane::Urgent, vec![0; 100]), "each lane has its own");
    let standing = machine.network.standing().unwrap();
    assert_eq!(
        (standing.peers[0].lanes[2].waiting, standing.peers[0].lanes[2].waiting_bytes),
        (3, 150)
    );
}

#[test]
fn what_waits_for_a_machine_that_is_not_there_is_dropped_in_time() {
    let limits = Limits {
        handshake: Duration::from_millis(20),
        patience: Duration::from_millis(50),
        ..quick()
    };
    let machine = Machine::start_with(1, limits);
    // A socket that nobody reads from, so that nobody else gets its port.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let other = key(9).public();
    assert!(machine.network.know(&other, &[silent.local_addr().unwrap()]));
    assert!(machine.network.send(&other, Lane::Ordinary, vec![1]));
    until(|| machine.network.standing().unwrap().peers[0].lanes[1].frames_dropped == 1);
    let lines = machine.heard(|heard| heard.lines.clone());
    assert_eq!(lines.len(), 1, "it is said once: {lines:?}");
    assert!(lines[0].contains("nobody answers there"), "{lines:?}");
}

#[test]
fn requests_beyond_what_the_threads_can_take_are_turned_away() {
    let limits = Limits { ask_threads: 1, ask_queue_max: 1, ..quick() };
    let machine = Machine::start_with(1, limits);
    let friends: Vec<_> = (2..5).map(Machine::start).collect();
    friends.iter().for_each(|friend| friend.knows(&machine));
    std::thread::scope(|scope| {
        let ask = |friend: usize, what: &'static [u8]| {
            let (friend, machine) = (&friends[friend], &machine);
            scope.spawn(move || friend.network.ask(&machine.key, what.to_vec(), LONG))
        };
        let first = ask(0, b"block");
        machine.hears(|heard| heard.asks == 1);
        // One of these waits, the other finds no place.
        let others = [ask(1, b"one"), ask(2, b"two")];
        until(|| machine.network.standing().unwrap().refused.asks == 1);
        machine.unblock();
        assert!(first.join().unwrap().is_ok());
        let answers = others.map(|other| other.join().unwrap());
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        let failure = answers.into_iter().find_map(Result::err).unwrap().to_string();
        assert!(failure.contains("too much to do"), "{failure}");
    });
}

#[test]
fn whoever_answers_sees_that_nobody_waits_any_more() {
    let machine = Machine::start(1);
    let friend = Machine::start(2);
    friend.knows(&machine);
    let asked = friend.network.ask(&machine.key, b"dawdle".to_vec(), Duration::from_millis(50));
    assert!(asked.is_err());
    machine.hears(|heard| heard.deserted == 1);
}

#[test]
fn our_own_requests_are_bounded() {
    let machine = Machine::start_with(1, Limits { asks_max: 1, ask_bytes_max: 10, ..quick() });
    let friend = Machine::start(2);
    machine.knows(&friend);
    let ask = |bytes: &[u8]| machine.network.ask(&friend.key, bytes.to_vec(), LONG);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(b"block"));
        friend.hears(|heard| heard.asks == 1);
        let failure = ask(&[0; 10]).unwrap_err().to_string();
        assert!(failure.contains("too many requests"), "{failure}");
        friend.unblock();
        assert!(first.join().unwrap().is_ok());
    });
    let failure = ask(&[0; 11]).unwrap_err().to_string();
    assert!(failure.contains("at most 10 bytes"), "{failure}");
}

#[test]
fn what_waits_for_all_machines_together_is_bounded() {
    let machine = Machine::start_with(1, Limits { outboxes_bytes_max: 250, ..quick() });
    let send = |seed: u8, size| {
        // Known, and not where it could be reached.
        assert!(machine.network.know(&key(seed).public(), &[]));
        machine.network.send(&key(seed).public(), Lane::Bulk, vec![0; size])
    };
    assert!(send(10, 100) && send(11, 100) && !send(12, 51) && send(12, 50) && !send(13, 1));
    machine.network.forget(&key(10).public());
    until(|| send(13, 100));
}

#[test]
fn frames_that_never_come_to_an_end_leave_room_for_others() {
    let machine = Machine::start_with(1, Limits { reading_bytes_max: 300_000, ..quick() });
    let raw = Raw::new();
    // Each announces a frame of a megabyte and sends a part of it.
    let part = [&[1, 0, 0, 16, 0][..], &[7; 100_000]].concat();
    let connections: Vec<_> = (10..16).map(|seed| raw.call(seed, &machine)).collect();
    let unfinished: Vec<_> =
        connections.iter().map(|connection| raw.begin(connection, &part)).collect();
    until(|| machine.network.standing().unwrap().refused.crowded >= 3);
    let line = "all together send too much at once";
    machine.hears(|heard| heard.lines.iter().any(|said| said.contains(line)));
    until(|| machine.network.standing().unwrap().connections <= 3);
    drop(unfinished);
    connections.iter().for_each(|connection| connection.close(0u8.into(), b""));
    let friend = Machine::start(2);
    friend.knows(&machine);
    until(|| {
        friend.network.send(&machine.key, Lane::Ordinary, vec![1; 150_000]);
        machine.heard(|heard| !heard.frames.is_empty())
    });
}

#[test]
fn connections_that_are_not_quite_over_count_too() {
    let machine = Machine::start_with(1, Limits { open_max: 4, ..quick() });
    machine.welcomes_others(Welcome::Stranger);
    let raw = Raw::new();
    let open: Vec<_> = (10..20).map(|seed| raw.wait(raw.dial(seed, &machine, tls::ASK))).collect();
    assert!(open.iter().filter(|call| call.is_ok()).count() <= 4);
    let turned = machine.network.standing().unwrap().refused.busy;
    assert!(turned >= 6, "{turned}");
    let line = "too many handshakes or connections";
    machine.hears(|heard| heard.lines.iter().any(|said| said.contains(line)));
    drop(open);
    let friend = Machine::start(2);
    machine.welcomes(&friend, Welcome::Known);
    friend.knows(&machine);
    until(|| friend.network.ask(&machine.key, b"well?".to_vec(), LONG).is_ok());
}
