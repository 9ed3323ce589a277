//! One member behind a narrow wire: the others hardly notice, as long as it does not lead.

use base::Duration;

use super::world::{Wax, World, seat};
use crate::{replica::Settings, seat::Seat};

/// 256 kbit/s.
const NARROW: u64 = 32_000;
/// What one change of a file takes.
const COMMAND_BYTES: usize = 1_000;
/// How much longer messages may take, in milliseconds: with some, what is said of a height comes before the last
/// vote of the one before.
const JITTERS: [u64; 2] = [0, 8];
const SPAN: Duration = Duration::from_secs(20);
/// After so long somebody who wants something decided asks all members.
const REPEAT: Duration = Duration::from_millis(500);

/// A command of this number.
fn command(number: u32) -> Vec<u8> {
    let mut command = number.to_be_bytes().to_vec();
    command.resize(COMMAND_BYTES, 0);
    command
}

/// Commands that are decided in a second: each is given to the leader when the one before is decided, as far as
/// somebody knows who has a fast wire.
fn rate(world: &mut World<Wax>, slow: Option<Seat>, span: Duration) -> f64 {
    let watcher = (0..4).map(seat).find(|seat| Some(*seat) != slow).unwrap();
    let is_decided = |world: &World<Wax>, number: u32| {
        let state = &world.members[&watcher].state;
        state.iter().rev().take(100).any(|command| command.starts_with(&number.to_be_bytes()))
    };
    let (start, end) = (world.now, world.now + span);
    let first = u32::try_from(world.members[&watcher].state.len()).unwrap();
    let (mut number, mut given_at) = (first, None);
    while world.now < end {
        if given_at.is_some() && is_decided(world, number) {
            (number, given_at) = (number + 1, None);
        }
        let to = match given_at {
            None => vec![world.members[&watcher].replica.tip().leader],
            Some(at) if world.now.since(at) >= REPEAT => (0..4).map(seat).collect(),
            Some(_) => Vec::new(),
        };
        for to in to {
            given_at = Some(world.now);
            world.hand_in(to, command(number));
        }
        world.run(Duration::from_millis(1));
    }
    f64::from(number - first) / world.now.since(start).as_secs_f64()
}

/// Members with wires that take two milliseconds, and up to so many more, as luck has it.
fn world(jitter: u64) -> World<Wax> {
    let mut world = World::sealed(Settings::default(), 4);
    world.wires.hop = Duration::from_millis(2);
    world.wires.jitter = Duration::from_millis(jitter);
    world
}

/// How much of the usual rate is left with this member behind a narrow wire, from the beginning and later on.
fn share(jitter: u64, slow: Seat) -> [f64; 2] {
    let usual = rate(&mut world(jitter), None, SPAN);
    let mut narrow = world(jitter);
    narrow.wires.narrow.insert(slow, NARROW);
    [0, 1].map(|_| rate(&mut narrow, Some(slow), SPAN) / usual)
}

#[test]
fn a_member_behind_a_narrow_wire_does_not_hold_up_the_others() {
    for jitter in JITTERS {
        let shares = share(jitter, seat(1));
        assert!(shares.iter().all(|share| *share > 0.75), "{shares:?} with {jitter} ms");
    }
}
