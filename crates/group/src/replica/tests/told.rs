//! What is small to ask and large to tell is told to nobody without end.

use super::*;
use crate::message::Message;

/// What a member says to somebody who asks it for the first decisions, so often at once.
fn told(world: &mut World, from: Seat, count: usize) -> (usize, usize) {
    let (now, leader) = (world.now, world.leader());
    let replica = &mut world.members.get_mut(&leader).unwrap().replica;
    let mut out = Vec::new();
    for _ in 0..count {
        let message = Message::Behind { height: 0, epoch: 1 };
        replica.step(now, Input::Heard { from, message, is_fit: true }, &mut out);
    }
    let sizes = out.iter().map(|output| match output {
        Output::Send { message, .. } => base::encode(message).len(),
        _ => 0,
    });
    (sizes.sum(), out.len())
}

/// A group that has decided ten commands of a hundred thousand bytes.
fn world() -> World {
    let mut world = World::new(Settings::default(), 4);
    for number in 0..10 {
        world.hand_in(world.leader(), vec![number; 100_000]);
        world.run(millis(50));
    }
    world
}

#[test]
fn a_machine_without_a_vote_is_told_no_more_than_its_allowance_however_often_it_asks() {
    let mut world = world();
    let allowance = Settings::default().told_others;
    let (bytes, _) = told(&mut world, seat(99), 1_000);
    let (burst, answer) = (allowance.burst as usize, 1_100_000);
    assert!((burst..burst + answer).contains(&bytes), "{bytes}");
    assert_eq!(told(&mut world, seat(99), 1_000), (0, 0), "and nothing more at once");
    assert_ne!(told(&mut world, seat(98), 1), (0, 0), "another is told");
    world.run(Duration::from_secs(20));
    let (bytes, _) = told(&mut world, seat(99), 1_000);
    assert!(bytes > burst, "what was paid off is had again: {bytes}");
}

#[test]
fn a_member_that_is_behind_is_told_as_fast_as_it_asks() {
    let mut world = world();
    let other = world.members.keys().copied().find(|seat| *seat != world.leader()).unwrap();
    assert_eq!(told(&mut world, other, 30).1, 30);
}

#[test]
fn pieces_of_a_state_are_counted_too() {
    let mut world = World::new(Settings { checkpoint_every: 5, ..Settings::default() }, 4);
    for number in 0..30 {
        world.hand_in(world.leader(), vec![number; 100_000]);
        world.run(millis(50));
    }
    let (now, leader) = (world.now, world.leader());
    let replica = &mut world.members.get_mut(&leader).unwrap().replica;
    let mut out = Vec::new();
    for _ in 0..1_000 {
        let (from, message) = (seat(99), Message::Fetch { height: 30, from: 0 });
        replica.step(now, Input::Heard { from, message, is_fit: true }, &mut out);
    }
    assert!((8..=9).contains(&out.len()), "{} pieces of 256 KiB", out.len());
}
