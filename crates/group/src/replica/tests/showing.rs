//! Who gets a seat: only whoever has shown that it has what the members have.

use super::{world::Pen, *};
use crate::{batch::Ready, message::Summary, replica::catching_up::digest_of_state};

/// The first member of a group of four, which was alone at first, and lies.
const LIAR: u8 = 0;
const NEWCOMER: u8 = 9;

/// Four members, and where the first one was when it was still alone.
fn grown() -> (World<Wax>, Tip) {
    let mut world = World::<Wax>::sealed(Settings::default(), 1);
    for number in 0..3 {
        world.command(seat(LIAR), number);
    }
    reseat(&mut world, 0..1, 0..4);
    let early = world.members[&seat(LIAR)].replica.tip().clone();
    world.run(Duration::from_secs(3));
    for number in 3..8 {
        world.command(world.leader(), number);
        world.run(millis(20));
    }
    assert_eq!(world.states(), vec![numbers(0..8); 4]);
    (world, early)
}

/// A newcomer knows of the first member alone, and that one hands it a state that was never decided, at a point that
/// was: all that was decided since follows on it.
fn misled(world: &mut World<Wax>, early: &Tip) {
    let up = world.down.clone();
    world.down.extend((0..4).map(seat));
    world.add(NEWCOMER, Tip::first(vec![seat(LIAR)]).unwrap());
    let state = base::encode(&vec![666_u32.to_be_bytes().to_vec()]);
    let (height, bytes) = (early.height, state.len() as u64);
    let summary = Summary { tip: early.clone(), state: digest_of_state(&state), bytes };
    let piece = Message::Piece { height, from: 0, bytes: state };
    for message in [Message::Offer(summary, None), piece] {
        let (from, is_fit) = (seat(LIAR), true);
        world.input(seat(NEWCOMER), Input::Heard { from, message, is_fit });
    }
    world.down = up;
}

fn newcomer<N>(world: &World<N>) -> &world::Member<N> {
    &world.members[&seat(NEWCOMER)]
}

fn is_seated<N: Pen>(world: &World<N>) -> bool {
    world.members[&seat(1)].replica.tip().seats.contains(&seat(NEWCOMER))
}

/// Those who are left of the four wish that the newcomer sits in place of the first.
fn wish_for_newcomer(world: &mut World<Wax>) {
    let mut wanted: Vec<Seat> = [1, 2, 3, NEWCOMER].map(seat).to_vec();
    wanted.sort_unstable();
    for number in 1..4 {
        world.input(seat(number), Input::Wish(wanted.clone()));
    }
}

#[test]
fn who_was_given_a_false_state_gets_no_seat_before_it_has_let_go_of_it() {
    let (mut world, early) = grown();
    misled(&mut world, &early);
    world.down.insert(seat(LIAR));
    for number in 1..4 {
        let behind = Message::Behind { height: early.height, epoch: early.epoch };
        let heard = Input::Heard { from: seat(NEWCOMER), message: behind, is_fit: true };
        world.input(seat(number), heard);
    }
    world.run(millis(400));
    assert_eq!(newcomer(&world).replica.tip().seats.len(), 4, "it has followed them");
    assert_eq!(newcomer(&world).state[0], 666_u32.to_be_bytes(), "and has another state");
    wish_for_newcomer(&mut world);
    for _ in 0..2_000 {
        world.run(millis(5));
        let is_right = newcomer(&world).state == world.members[&seat(1)].state;
        assert!(is_right || !is_seated(&world), "it sits there with a state of its own");
    }
    assert!(newcomer(&world).forgotten > 0, "it has let go of what it had");
    assert!(is_seated(&world) && newcomer(&world).replica.is_member());
    assert_eq!(newcomer(&world).state, world.members[&seat(1)].state);
}

#[test]
fn who_shows_nothing_takes_nobody_s_seat() {
    let (mut world, _) = grown();
    world.down.extend([LIAR, NEWCOMER].map(seat));
    wish_for_newcomer(&mut world);
    world.run(Duration::from_secs(30));
    assert!(!is_seated(&world), "nobody has heard of it");
    world.command(world.leader(), 8);
    world.run(Duration::from_secs(5));
    assert_eq!(world.states(), vec![numbers(0..9); 3], "they go on without it");
}

#[test]
fn who_is_seated_without_having_shown_anything_takes_everything_anew() {
    let mut world = World::<Wax>::sealed(Settings::default(), 1);
    for number in 0..3 {
        world.command(seat(LIAR), number);
    }
    let all: Vec<Seat> = [0, 1, 2, NEWCOMER].map(seat).to_vec();
    let first = Tip::first(vec![seat(0)]).unwrap();
    for number in [1, 2, NEWCOMER] {
        world.add(number, first.clone());
    }
    world.down.insert(seat(NEWCOMER));
    let mut wanted = all.clone();
    wanted.sort_unstable();
    world.input(seat(0), Input::Wish(wanted));
    world.run(Duration::from_secs(5));
    assert_eq!(world.members[&seat(1)].replica.tip().seats.len(), 4, "three are enough to begin");
    // One that is right, and one that was shown something else before.
    world.down.clear();
    world.run(Duration::from_secs(5));
    world.command(world.leader(), 3);
    world.run(Duration::from_secs(5));
    assert_eq!(world.states(), vec![numbers(0..4); 4]);
    assert!(newcomer(&world).replica.is_member());
}

#[test]
fn a_member_does_not_vote_for_one_that_has_shown_what_it_has_not() {
    let (mut world, early) = grown();
    misled(&mut world, &early);
    world.down.insert(seat(LIAR));
    // The newcomer is run by the liar: it never lets go, and shows what it has.
    world.down.insert(seat(NEWCOMER));
    wish_for_newcomer(&mut world);
    world.run(Duration::from_secs(1));
    let tip = world.members[&seat(1)].replica.tip().clone();
    let seats = tip.plan.clone().unwrap();
    for known in world.members[&seat(1)].replica.points.clone() {
        let digest = Digest::of(base::Domain::new("test point v1"), b"other");
        let point = Point { digest, ..known };
        let (epoch, seat) = (tip.epoch, seat(NEWCOMER));
        let ready = Ready { epoch, seats: seats.clone(), seat, point };
        let seal = Wax::of(NEWCOMER).seal(&ready.sealed_bytes(&world::group()));
        for number in 1..4 {
            let message = Message::Ready { epoch, seats: seats.clone(), point, seal };
            world.input(super::seat(number), Input::Heard { from: seat, message, is_fit: true });
        }
        // Nor if one who leads counts it.
        let change =
            Change::Enact { seats: seats.clone(), point: Some(point), ready: vec![(seat, seal)] };
        assert!(tip.admits(&change, tip.time, &world::group(), &Wax::of(1)));
        let batch = Batch::after(&tip, tip.leader, tip.time, Vec::new(), Some(change));
        assert!(!world.members[&super::seat(1)].replica.has_seen(&batch));
    }
    world.run(Duration::from_secs(10));
    assert!(!is_seated(&world));
}
