//! A member's state is another one than those of the others: it notices, and nobody else is put out.

use super::*;

/// A checkpoint after every decision.
fn settings() -> Settings {
    Settings { checkpoint_every: 1, ..Settings::default() }
}

/// Decides so many commands, each given to somebody who is not out.
fn decide(world: &mut World<Wax>, range: std::ops::Range<u32>) {
    for number in range {
        let there = (0..7).map(seat).filter(|seat| world.members.contains_key(seat));
        let there: Vec<Seat> = there.filter(|seat| !world.members[seat].is_stale).collect();
        for seat in there {
            world.command(seat, number);
        }
        world.run(Duration::from_secs(1));
    }
}

/// A group of so many, of whom these have drifted after two decisions.
fn drifted(count: u8, drifting: &[u8]) -> World<Wax> {
    let mut world = World::<Wax>::sealed(settings(), count);
    decide(&mut world, 0..2);
    for number in drifting {
        world.members.get_mut(&seat(*number)).unwrap().state[0] = vec![9];
    }
    decide(&mut world, 2..5);
    world
}

fn out(world: &World<Wax>) -> Vec<Seat> {
    let out = world.members.iter().filter(|(_, member)| member.replica.astray().is_some());
    out.map(|(seat, _)| *seat).collect()
}

#[test]
fn a_member_whose_state_has_drifted_says_nothing_more_and_the_others_go_on() {
    assert_eq!(out(&drifted(3, &[1])), [seat(1)]);
    for count in [4, 7] {
        let world = drifted(count, &[1]);
        assert_eq!(out(&world), [seat(1)], "of {count}");
        let others = world.members.values().filter(|member| !member.is_stale);
        assert!(others.clone().all(|member| member.state.len() == 5), "of {count}");
        assert_eq!(others.count(), usize::from(count) - 1);
    }
}

#[test]
fn it_keeps_what_the_others_have_sealed_and_says_so_again_when_it_starts() {
    let mut world = drifted(4, &[1]);
    let astray = world.members[&seat(1)].replica.astray().unwrap().clone();
    assert!(astray.others.len() >= 2);
    for Sealed { what, seal } in &astray.others {
        assert!(what.seat != seat(1) && what.state != astray.state);
        assert_eq!(what.height, astray.height);
        let bytes = what.sealed_bytes(&world::group());
        assert!(Wax::of(0).is_sealed(&what.seat.key, &bytes, seal));
    }
    let replica = &world.members[&seat(1)].replica;
    let (behind, length) = (replica.mark_behind(u64::MAX), world.log_len(1) as u64);
    assert!(behind < length, "what they have sealed stays in the log");
    world.members.get_mut(&seat(1)).unwrap().is_stale = false;
    world.restart(1, usize::MAX);
    assert_eq!(world.members[&seat(1)].replica.astray(), Some(&astray));
    assert!(world.members[&seat(1)].is_stale, "it says so again");
}

#[test]
fn a_liar_puts_nobody_out_by_making_states_up() {
    let mut world = World::<Wax>::sealed(settings(), 4);
    decide(&mut world, 0..3);
    let (liar, height) = (seat(1), world.members[&seat(0)].replica.tip().height);
    for height in [height, height + 1, u64::MAX] {
        let what = crate::Vouch { height, state: world::group(), seat: liar };
        let seal = Wax::of(1).seal(&what.sealed_bytes(&world::group()));
        let forged = crate::Vouch { seat: seat(2), ..what.clone() };
        for what in [what, forged] {
            let message = Message::Vouch(Sealed { what, seal });
            for number in [0, 2, 3] {
                for from in [liar, seat(2)] {
                    let message = message.clone();
                    world.input(seat(number), Input::Heard { from, message, is_fit: true });
                }
            }
        }
    }
    decide(&mut world, 3..6);
    assert_eq!(out(&world), Vec::<Seat>::new());
    for number in [0, 2, 3] {
        assert!(world.members[&seat(number)].replica.sizes().vouches <= 3 * Settings::STATES_MAX);
    }
}

#[test]
fn of_two_nobody_can_tell_who_is_wrong() {
    assert_eq!(out(&drifted(2, &[1])), Vec::<Seat>::new());
}

#[test]
fn who_is_alone_compares_itself_with_nobody() {
    let world = drifted(1, &[0]);
    assert_eq!((out(&world), world.sent), (Vec::new(), 0));
}
