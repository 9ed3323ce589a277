//! A leader leaves out what somebody wants, and what an honest leader has to fear of that: nothing.

use super::*;

/// How long somebody asks the leader alone.
const ALONE: Duration = Duration::from_secs(1);
/// After so long it is served.
const SERVED_MAX: Duration = Duration::from_secs(5);
const WANTED: u32 = 1_000_000;

/// How long somebody waits whom the first leaders do not heed, so many as may lie, while they go on serving others.
fn wait_of_the_ignored(settings: Settings, count: u8) -> Duration {
    let mut world = World::<Wax>::sealed(settings, count);
    let members = world.members[&seat(0)].replica.members().clone();
    let liars = members.faults() as u32;
    world.deaf = (0..liars).map(|round| *members.leader(round)).collect();
    let start = world.now;
    let has_it = |world: &World<Wax>| {
        let wanted = WANTED.to_be_bytes().to_vec();
        let honest = world.members.iter().filter(|(seat, _)| !world.deaf.contains(seat));
        honest.into_iter().any(|(_, member)| member.state.contains(&wanted))
    };
    let mut number = 0;
    while !has_it(&world) && world.now.since(start) < Duration::from_secs(60) {
        if world.now.since(start) == ALONE {
            for seat in members.list() {
                if !world.deaf.contains(seat) {
                    world.command(*seat, WANTED);
                }
            }
        }
        world.command(world.leader(), number);
        number += 1;
        world.run(millis(10));
    }
    let leader = world.leader();
    assert!(world.members[&leader].state.len() > 80, "others were served meanwhile");
    world.now.since(start)
}

#[test]
fn somebody_whom_the_leader_ignores_is_served_within_five_seconds() {
    for count in [4, 7] {
        let waited = wait_of_the_ignored(Settings::default(), count);
        assert!(waited > ALONE && waited < SERVED_MAX, "{waited:?} in a group of {count}");
    }
}

#[test]
fn where_nobody_insists_who_is_ignored_waits_for_the_end_of_the_terms() {
    let settings = Settings { overdue: Duration::from_secs(1_000), ..Settings::default() };
    for count in [4, 7] {
        let waited = wait_of_the_ignored(settings.clone(), count);
        assert!(waited > SERVED_MAX, "{waited:?} in a group of {count}");
    }
}

#[test]
fn an_honest_leader_loses_no_votes_however_much_waits_and_wherever() {
    let settings = Settings {
        overdue: millis(20),
        batch_count_max: 4,
        // One may have half of the room.
        pending_count_max: 600,
        ..Settings::default()
    };
    let mut world = World::<Wax>::sealed(settings, 4);
    // More than the leader has room for, so that it does not know of all from those who forward it.
    for number in 0..1_200 {
        world.command(seat((number % 4) as u8), number);
    }
    world.run(Duration::from_secs(5));
    let mut state = world.states()[0].clone();
    state.sort_unstable();
    state.dedup();
    assert_eq!(state, numbers(0..1_200));
    for member in world.members.values() {
        assert!(member.decided_at[0] + millis(100) < *member.decided_at.last().unwrap());
        assert!(member.rounds.iter().all(|round| *round == 0), "{:?}", member.rounds);
    }
}

#[test]
fn what_is_overdue_is_taken_first_also_by_a_leader_that_has_no_room_for_more() {
    let settings = Settings { batch_count_max: 4, pending_count_max: 200, ..Settings::default() };
    let mut world = World::<Wax>::sealed(settings, 4);
    let follower = (0..4).map(seat).find(|seat| *seat != world.leader()).unwrap();
    for number in 0..200 {
        world.command(world.leader(), number);
    }
    let message = Message::Overdue(WANTED.to_be_bytes().to_vec());
    world.input(world.leader(), Input::Heard { from: follower, message, is_fit: true });
    world.run(millis(10));
    let place = world.states()[0].iter().position(|number| *number == WANTED);
    assert!(place.is_some_and(|place| place <= 4), "{place:?}");
}

#[test]
fn a_height_comes_to_an_end_though_a_needed_member_insists_on_what_nobody_else_finds_fit() {
    let mut world = World::<Wax>::sealed(Settings::default(), 4);
    let leader = world.leader();
    let mut others = (0..4).map(seat).filter(|seat| *seat != leader);
    let (away, stubborn) = (others.next().unwrap(), others.next().unwrap());
    world.down.insert(away);
    world.unfit.insert(WANTED.to_be_bytes().to_vec());
    world.command(stubborn, WANTED);
    let start = world.now;
    for number in 0..20 {
        for seat in (0..4).map(seat).filter(|seat| *seat != stubborn) {
            world.command(seat, number);
        }
        world.run(Duration::from_secs(3));
        assert!(world.states()[0].contains(&number), "{number} after {:?}", world.now.since(start));
    }
    let rounds = &world.members[&leader].rounds;
    assert!(rounds.iter().any(|round| *round > 1), "{rounds:?}");
    world.run(Duration::from_secs(10));
    assert_eq!(world.members[&stubborn].replica.sizes().pending, 0, "it has let go of it");
    let sent = world.sent;
    world.run(Duration::from_secs(20));
    assert_eq!(world.sent, sent, "an idle group is silent");
}

#[test]
fn what_a_quorum_has_seen_before_is_not_refused_and_neither_is_anything_in_a_late_round() {
    let mut world = World::new(Settings::default(), 4);
    let members = world.members[&seat(0)].replica.members().clone();
    let number_of = |round: u32| (0..4).find(|number| seat(*number) == *members.leader(round));
    let insists = number_of(3).unwrap();
    let unheard: Vec<Seat> = (0..4).map(seat).filter(|other| *other != seat(insists)).collect();
    world.down.extend(unheard);
    world.command(seat(insists), WANTED);
    world.run(millis(2_100));
    let since = world.log_len(insists);
    let time = world.members[&seat(insists)].replica.time(world.now);
    for (round, valid_round) in [(0, None), (1, None), (1, Some(0)), (2, None)] {
        let leader = number_of(round).unwrap();
        // Each is another one.
        let tip = world.members[&seat(insists)].replica.tip();
        let batch = batch(tip, leader, time + Duration::from_nanos(valid_round.map_or(0, |_| 1)));
        let message = proposal(leader, round, valid_round, &batch);
        world.input(seat(insists), Input::Heard { from: seat(leader), message, is_fit: true });
    }
    let judged = judgements(&world, insists, since);
    assert_eq!(judged, [(0, false), (1, false), (1, true), (2, true)]);
}

#[test]
fn nobody_is_shown_more_than_fits() {
    let settings = Settings { batch_bytes_max: 400, ..Settings::default() };
    let mut world = World::<Wax>::sealed(settings, 4);
    let leader = world.leader();
    let follower = (0..4).map(seat).find(|seat| *seat != leader).unwrap();
    for (bytes, expected) in [(101, 0), (100, 1), (99, 1)] {
        let message = Message::Overdue(vec![7; bytes]);
        let stranger = Seat { incarnation: 9, ..follower };
        for from in [stranger, follower] {
            let message = message.clone();
            let mut out = Vec::new();
            let now = world.now;
            let member = world.members.get_mut(&leader).unwrap();
            member.replica.step(now, Input::Heard { from, message, is_fit: true }, &mut out);
            let expected =
                if from == follower { expected } else { expected.min(usize::from(bytes == 99)) };
            assert_eq!(member.replica.sizes().overdue, expected, "{bytes}");
        }
    }
}
