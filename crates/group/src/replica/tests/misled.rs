//! Newcomers, and those who have let them in and lie.

use super::{
    world::{Pen as _, charter},
    *,
};
use crate::{
    lineage::Roll, message::Summary, replica::catching_up::digest_of_state, seal::Ed25519,
};

/// The first member of a group of four, which was alone at first: it is gone from this world, and lies.
const LIAR: u8 = 0;
const NEWCOMER: u8 = 9;

/// Four members, the first of which was alone at first, and so many decisions.
fn grown(decisions: u32) -> World {
    let settings = Settings { checkpoint_every: 5, recent_max: 10, ..Settings::default() };
    let mut world = World::new(settings, 1);
    world.command(seat(LIAR), 0);
    reseat(&mut world, 0..1, 0..4);
    world.run(Duration::from_secs(3));
    for number in 1..decisions {
        world.command(world.leader(), number);
        world.run(millis(20));
    }
    assert_eq!(world.states(), vec![numbers(0..decisions); 4]);
    world
}

fn alone() -> Roll {
    Roll { epoch: 1, seats: vec![seat(LIAR)], leader: seat(LIAR) }
}

fn four(world: &World) -> Roll {
    Roll::from(world.members[&seat(1)].replica.tip())
}

/// Somebody with an empty disk, who was told that these sit in the group.
fn join(world: &mut World, roll: &Roll) {
    world.add(NEWCOMER, Tip::pinned(roll).unwrap());
}

fn newcomer(world: &World) -> &world::Member<Ed25519> {
    &world.members[&seat(NEWCOMER)]
}

/// Nobody but the liar hears the newcomer, or is heard by it.
fn with_the_liar_alone(world: &mut World) {
    world.down.extend((0..4).map(seat));
}

/// The liar offers a state that was never decided, and gives it to whoever asks for it.
fn offer_forged(world: &mut World, tip: Tip) {
    let state = base::encode(&vec![666_u32.to_be_bytes().to_vec()]);
    let (height, bytes) = (tip.height, state.len() as u64);
    let summary = Summary { tip, state: digest_of_state(&state), bytes };
    let piece = Message::Piece { height, from: 0, bytes: state };
    for message in [Message::Offer(summary, None), piece] {
        let (from, is_fit) = (seat(LIAR), true);
        world.input(seat(NEWCOMER), Input::Heard { from, message, is_fit });
    }
}

/// A point far ahead in time, as a liar would have it who sits there alone.
fn ahead(roll: &Roll) -> Tip {
    let first = Tip::first(roll.seats.clone()).unwrap();
    Tip { height: 1_000, time: Instant::from_secs(3), epoch: roll.epoch, ..first }
}

#[test]
fn one_who_was_alone_at_first_hands_nobody_a_state_once_it_is_known_that_there_are_four() {
    let mut world = grown(12);
    let (four, tip) = (four(&world), world.members[&seat(1)].replica.tip().clone());
    with_the_liar_alone(&mut world);
    // What proves that there are four is in what the liar itself offers, or was shown before.
    let with_lineage = Tip { height: 1_000, ..tip };
    let mut both = vec![seat(LIAR), seat(NEWCOMER)];
    both.sort_unstable();
    let four_now = four.seats.clone();
    for (pin, offered) in [
        (alone(), with_lineage.clone()),
        (four.clone(), with_lineage),
        (four.clone(), ahead(&alone())),
        (four.clone(), ahead(&four)),
        (alone(), Tip { seats: vec![seat(LIAR), seat(NEWCOMER)], ..ahead(&alone()) }),
        // Nor if it says that the newcomer itself sits there since.
        (alone(), Tip { epoch: 900, ..Tip { seats: both.clone(), ..ahead(&alone()) } }),
        (alone(), Tip { epoch: 6, ..Tip { seats: four_now, ..ahead(&alone()) } }),
    ] {
        join(&mut world, &pin);
        for _ in 0..3 {
            offer_forged(&mut world, offered.clone());
            world.run(Duration::from_secs(1));
        }
        assert_eq!(newcomer(&world).installs, 0, "{pin:?}");
    }
}

#[test]
fn who_knows_only_the_four_learns_everything_from_them() {
    let mut world = grown(12);
    let four = four(&world);
    join(&mut world, &four);
    world.run(Duration::from_secs(3));
    assert_eq!((newcomer(&world).installs, newcomer(&world).state.len()), (1, 12));
    world.command(world.leader(), 12);
    world.run(Duration::from_secs(3));
    assert_eq!(newcomer(&world).state.len(), 13);
}

#[test]
fn who_knows_nothing_but_who_sits_there_decides_nothing_even_if_it_is_said_to_sit_there() {
    let mut world = grown(12);
    for seats in [vec![seat(NEWCOMER)], vec![seat(1), seat(NEWCOMER)]] {
        let roll = Roll { epoch: 7, leader: seat(NEWCOMER), seats };
        join(&mut world, &roll);
        world.command(seat(NEWCOMER), 7);
        world.run(Duration::from_secs(3));
        let replica = &newcomer(&world).replica;
        assert_eq!(
            (replica.tip().height, replica.is_member(), replica.is_alone()),
            (0, false, false)
        );
    }
}

/// A newcomer that was told of the first member alone, and has a state of that one that was never decided.
fn misled(world: &mut World) {
    let up = world.down.clone();
    with_the_liar_alone(world);
    join(world, &alone());
    offer_forged(world, ahead(&alone()));
    assert_eq!((newcomer(world).installs, newcomer(world).state.len()), (1, 1));
    world.run(Duration::from_secs(5));
    assert_eq!(newcomer(world).state.len(), 1, "it has heard nobody else");
    world.down = up;
    world.down.insert(seat(LIAR));
}

#[test]
fn who_was_misled_lets_go_of_everything_when_somebody_else_speaks_to_it() {
    let mut world = grown(12);
    misled(&mut world);
    // Any decision will do: it asks whoever knows of something that it can't follow.
    world.input(
        seat(1),
        Input::Heard {
            from: seat(NEWCOMER),
            message: Message::Behind { height: 3, epoch: 1 },
            is_fit: true,
        },
    );
    world.run(Duration::from_secs(5));
    assert_eq!(newcomer(&world).replica.tip().seats, four(&world).seats);
    assert_eq!(newcomer(&world).state, world.members[&seat(1)].state);
    assert!(newcomer(&world).forgotten > 0 && !newcomer(&world).is_stale);
}

#[test]
fn who_was_misled_and_starts_again_is_not_misled_again() {
    let mut world = grown(12);
    misled(&mut world);
    let lineage = world.members[&seat(1)].replica.changes_since(1);
    with_the_liar_alone(&mut world);
    world.input(seat(NEWCOMER), Input::Changes(lineage));
    assert!(newcomer(&world).state.is_empty());
    world.restart(NEWCOMER, usize::MAX);
    assert!(newcomer(&world).replica.tip().is_blank());
    offer_forged(&mut world, ahead(&alone()));
    assert!(newcomer(&world).state.is_empty());
    world.down.clear();
    world.run(Duration::from_secs(5));
    assert_eq!(newcomer(&world).state, world.members[&seat(1)].state);
}

#[test]
fn an_honest_member_lets_go_of_nothing_because_the_first_one_says_that_others_sit_there() {
    let mut world = grown(12);
    let height = 5;
    let change = Change::Enact { seats: vec![seat(LIAR), seat(7)], point: None, ready: Vec::new() };
    let alone_now = Tip::first(vec![seat(LIAR)]).unwrap();
    let time = Instant::from_secs(9);
    let batch = Batch::after(&alone_now, seat(LIAR), time, Vec::new(), Some(change));
    let (round, step, value) = (0, Step::Precommit, batch.digest());
    let vote = Vote { height, round, step, value: Some(value), seat: seat(LIAR) };
    let seal = Ed25519::of(LIAR).seal(&vote.sealed_bytes(&charter().group));
    let certificate = Certificate { height, round, step, value, seals: vec![(seat(LIAR), seal)] };
    let forged = Decision { height, batch, certificate };
    assert_eq!(alone().after(std::slice::from_ref(&forged), &charter(), &Ed25519::of(1)).epoch, 6);
    for number in 1..4 {
        world.input(seat(number), Input::Changes(vec![forged.clone()]));
        let message = Message::Decisions(vec![forged.clone()]);
        world.input(seat(number), Input::Heard { from: seat(LIAR), message, is_fit: true });
    }
    world.command(world.leader(), 12);
    world.run(Duration::from_secs(2));
    assert_eq!(world.states(), vec![numbers(0..13); 4]);
}
