//! Who takes whose seat: nobody is thrown out by few, or by what was wished long ago.

use super::*;

fn seats_of(world: &World<Wax>) -> Vec<Seat> {
    world.members[&world.leader()].replica.tip().seats.clone()
}

fn five_without(away: Seat) -> Vec<Seat> {
    let mut seats: Vec<Seat> = (0..5).map(seat).filter(|seat| *seat != away).collect();
    seats.sort_unstable();
    seats
}

/// A group of the first four of five, of whom one that does not lead stays away.
fn without_one() -> (World<Wax>, Seat, Vec<Seat>) {
    let mut world = World::<Wax>::sealed(Settings::default(), 4);
    world.add(4, Tip::first((0..4).map(seat).collect()).unwrap());
    world.command(world.leader(), 0);
    world.run(millis(100));
    let away = (0..4).map(seat).find(|seat| *seat != world.leader()).unwrap();
    world.down.insert(away);
    let wanted = five_without(away);
    (world, away, wanted)
}

fn wish(world: &mut World<Wax>, away: Seat, count: usize, wanted: &[Seat]) {
    for seat in (0..4).map(seat).filter(|seat| *seat != away).take(count) {
        world.input(seat, Input::Wish(wanted.to_vec()));
    }
}

#[test]
fn a_member_goes_only_if_a_quorum_wishes_it() {
    let (mut world, away, wanted) = without_one();
    wish(&mut world, away, 2, &wanted);
    world.run(Duration::from_secs(10));
    assert!(seats_of(&world).contains(&away), "a liar and one with a bad line are not enough");
    wish(&mut world, away, 3, &wanted);
    world.run(Duration::from_secs(5));
    assert_eq!(seats_of(&world), wanted);
    world.command(world.leader(), 1);
    world.run(Duration::from_secs(1));
    assert_eq!(world.members[&seat(4)].state.len(), 2, "the new one follows");
}

#[test]
fn a_wish_of_long_ago_does_not_count() {
    let (mut world, away, wanted) = without_one();
    wish(&mut world, away, 2, &wanted);
    world.run(Duration::from_secs(1));
    // All is well again, so they wish it no longer.
    world.down.remove(&away);
    wish(&mut world, away, 2, &(0..4).map(seat).collect::<Vec<_>>());
    world.run(Duration::from_secs(60));
    let last = (0..4).map(seat).filter(|seat| *seat != away).nth(2).unwrap();
    world.input(last, Input::Wish(wanted));
    world.run(Duration::from_secs(10));
    assert!(seats_of(&world).contains(&away));
}

#[test]
fn who_has_left_can_be_taken_in_again() {
    let (mut world, away, wanted) = without_one();
    wish(&mut world, away, 3, &wanted);
    world.run(Duration::from_secs(5));
    world.down.remove(&away);
    let number = (0..4).find(|number| seat(*number) == away).unwrap();
    world.restart(number, usize::MAX);
    world.run(Duration::from_secs(5));
    assert!(!world.members[&away].replica.is_member(), "it knows that it has left");
    let left = world.members[&away].state.len();
    for number in 1..100 {
        world.command(world.leader(), number);
        world.run(millis(20));
    }
    assert_eq!(world.members[&away].state.len(), left, "nobody tells it of anything");
    let gone = *wanted.iter().find(|seat| **seat != world.leader()).unwrap();
    world.down.insert(gone);
    let again = five_without(gone);
    for seat in wanted.iter().filter(|seat| **seat != gone) {
        world.input(*seat, Input::Wish(again.clone()));
    }
    world.run(Duration::from_secs(5));
    assert_eq!(seats_of(&world), again);
    assert_eq!(world.members[&away].state.len(), 100, "it has learnt what it had missed");
}

#[test]
fn members_who_slept_through_a_change_without_which_nothing_can_be_decided_are_brought_up() {
    let settings = Settings { checkpoint_every: 5, recent_max: 10, ..Settings::default() };
    let mut world = World::<Wax>::sealed(settings, 7);
    let mut wanted: Vec<Seat> = [0, 1, 4, 5].map(seat).into();
    wanted.sort_unstable();
    world.down.extend([4, 5].map(seat));
    for number in 0..30 {
        world.command(seat(0), number);
        world.run(millis(500));
    }
    for number in [0, 1, 2, 3, 6] {
        world.input(seat(number), Input::Wish(wanted.clone()));
    }
    world.run(Duration::from_secs(5));
    assert_eq!(world.members[&seat(0)].replica.tip().seats, wanted);
    // Two of four decide nothing, so what proves the change is in no decision yet.
    assert!(world.members[&seat(0)].replica.tip().unproven.is_some());
    world.down = [2, 3, 6].map(seat).into();
    world.command(seat(0), 30);
    world.run(Duration::from_secs(20));
    for seat in wanted {
        assert_eq!(world.members[&seat].state.len(), 31);
    }
}

#[test]
fn whoever_is_alone_seats_nobody_whom_it_could_not_tell_what_came_since() {
    let settings = Settings { checkpoint_every: 2, recent_max: 4, ..Settings::default() };
    let mut world = World::<Wax>::sealed(settings, 1);
    for number in 1..4 {
        world.add(number, Tip::first(vec![seat(0)]).unwrap());
    }
    let mut wanted: Vec<Seat> = (0..4).map(seat).collect();
    wanted.sort_unstable();
    world.command(seat(0), 0);
    world.down.insert(seat(1));
    world.input(seat(0), Input::Wish(wanted.clone()));
    world.run(millis(500));
    assert_eq!(seats_of(&world), [seat(0)], "it waits for the third for a while");
    // One of those that have shown what they have stays behind.
    world.down.insert(seat(2));
    for number in 1..20 {
        world.command(seat(0), number);
        world.run(millis(300));
    }
    world.down = [seat(3)].into();
    world.run(Duration::from_secs(10));
    world.command(seat(0), 20);
    world.run(Duration::from_secs(10));
    assert_eq!(seats_of(&world), wanted);
    for number in 0..3 {
        assert_eq!(world.members[&seat(number)].state.len(), 21, "{number}");
    }
}
