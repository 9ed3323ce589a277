//! Members of a group in a world without faults but those that a test makes.

use std::collections::BTreeSet;

use base::Duration;

use super::*;
use crate::{engine::Patience, seal::Sealable as _};
use world::{HOP, Pen as _, Wax, World, seat};

mod agreeing;
mod chain;
mod fairness;
mod misled;
mod rescues;
mod seats;
mod showing;
mod slow;
mod told;
mod world;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn numbers(range: std::ops::Range<u32>) -> Vec<u32> {
    range.collect()
}

#[test]
fn four_members_decide_in_three_hops_and_twenty_seven_messages() {
    let mut world = World::new(Settings::default(), 4);
    for number in 0..10 {
        let (start, sent) = (world.now, world.sent);
        world.command(world.leader(), number);
        world.run(millis(20));
        assert_eq!(world.sent - sent, 27);
        for member in world.members.values() {
            assert!(member.decided_at.last().unwrap().since(start) <= 3 * HOP);
        }
    }
    assert_eq!(world.states(), vec![numbers(0..10); 4]);
}

#[test]
fn an_idle_group_is_silent() {
    let mut world = World::new(Settings::default(), 4);
    world.command(world.leader(), 1);
    world.run(millis(100));
    let sent = world.sent;
    world.run(Duration::from_secs(10));
    assert_eq!(world.sent, sent);
    assert!(world.members.values().all(|member| member.replica.wake_at().is_none()));
}

#[test]
fn when_the_leader_dies_another_leads_after_the_two_waits() {
    let settings = Settings::default();
    let Patience { propose, prevote, .. } = settings.patience;
    let mut world = World::new(settings, 4);
    world.command(world.leader(), 0);
    world.run(millis(100));
    world.down.insert(world.leader());
    let start = world.now;
    for number in 0..4 {
        world.command(seat(number), 1);
    }
    world.run(Duration::from_secs(1));
    assert_eq!(world.states(), vec![numbers(0..2); 3]);
    for member in world.members.values().filter(|member| member.decided_at.len() > 1) {
        let took = member.decided_at[1].since(start);
        assert!(took <= propose + prevote + millis(5), "{took:?}");
    }
    let start = world.now;
    world.command(world.leader(), 2);
    world.run(Duration::from_secs(1));
    assert_eq!(world.states(), vec![numbers(0..3); 3]);
    let last = world.members.values().filter_map(|member| member.decided_at.get(2)).max().unwrap();
    assert!(last.since(start) <= 3 * HOP, "the new leader stays");
}

#[test]
fn a_command_that_only_a_follower_knows_is_decided() {
    let mut world = World::new(Settings::default(), 4);
    let follower = (0..4).map(seat).find(|seat| *seat != world.leader()).unwrap();
    world.command(follower, 0);
    world.run(millis(50));
    assert_eq!(world.states(), vec![numbers(0..1); 4]);
}

#[test]
fn one_member_decides_alone_and_says_nothing() {
    let mut world = World::new(Settings::default(), 1);
    for number in 0..100 {
        world.command(seat(0), number);
    }
    assert_eq!((world.states(), world.sent), (vec![numbers(0..100)], 0));
    world.restart(0, usize::MAX);
    assert_eq!(world.states(), vec![numbers(0..100)]);
}

#[test]
fn who_is_alone_keeps_nothing_for_others_until_they_are_to_come() {
    let mut world = World::new(Settings { checkpoint_every: 4, ..Settings::default() }, 1);
    for number in 0..20 {
        world.command(seat(0), number);
        world.run(millis(10));
    }
    let alone = &world.members[&seat(0)].replica;
    assert_eq!((alone.sizes().recent, alone.checkpoints.len()), (0, 0));
    reseat(&mut world, 0..1, 0..4);
    world.run(Duration::from_secs(5));
    assert_eq!(world.states(), vec![numbers(0..20); 4]);
}

#[test]
fn all_members_may_crash_at_any_record_and_nothing_decided_is_lost() {
    for cut in 0..6 {
        let mut world = World::new(Settings::default(), 4);
        for number in 0..3 {
            world.command(world.leader(), number);
            world.run(millis(20));
        }
        world.command(world.leader(), 3);
        world.run(HOP + HOP / 2);
        for number in 0..4 {
            // What was said follows from what is safe; here everything written is.
            let keep = world.log_len(number);
            world.restart(number, keep);
        }
        world.run(millis(cut));
        world.run(Duration::from_secs(3));
        let states = world.states();
        assert!(states.iter().all(|state| *state == states[0]), "{states:?}");
        assert!(states[0].starts_with(&[0, 1, 2]));
        world.command(world.leader(), 4);
        world.run(Duration::from_secs(1));
        assert!(world.states().iter().all(|state| state.contains(&4)), "{:?}", world.states());
    }
}

#[test]
fn a_member_that_was_away_learns_the_decisions() {
    let mut world = World::new(Settings::default(), 4);
    let away = (0..4).map(seat).find(|seat| *seat != world.leader()).unwrap();
    world.down.insert(away);
    for number in 0..200 {
        world.command(world.leader(), number);
        world.run(millis(5));
    }
    world.down.remove(&away);
    world.command(world.leader(), 200);
    world.run(Duration::from_secs(5));
    assert_eq!(world.states(), vec![numbers(0..201); 4]);
    assert_eq!(world.members[&away].installs, 0);
}

#[test]
fn a_member_far_behind_takes_the_state_that_enough_vouch_for() {
    let settings = Settings { checkpoint_every: 50, recent_max: 100, ..Settings::default() };
    let mut world = World::new(settings, 4);
    let away = (0..4).map(seat).find(|seat| *seat != world.leader()).unwrap();
    world.down.insert(away);
    for number in 0..1_000 {
        world.command(world.leader(), number);
        world.run(millis(3));
    }
    world.down.remove(&away);
    world.command(world.leader(), 1_000);
    world.run(Duration::from_secs(5));
    assert_eq!(world.states(), vec![numbers(0..1_001); 4]);
    assert_eq!(world.members[&away].installs, 1);
}

#[test]
fn a_member_ten_thousand_decisions_behind_takes_one_state_in_pieces() {
    let settings = Settings { checkpoint_every: 4_000, ..Settings::default() };
    let mut world = World::<Wax>::sealed(settings, 4);
    // Leaders take turns meanwhile, and it is not among them.
    let away = *world.members[&seat(0)].replica.members().leader(3);
    world.down.insert(away);
    let there: Vec<Seat> = (0..4).map(seat).filter(|seat| *seat != away).collect();
    let mut number = 0_u32;
    while world.members[&there[0]].replica.tip().height < 10_000 {
        let command = [&number.to_be_bytes()[..], &[0; 60]].concat();
        let leader = world.leader();
        let whom = if leader == away { there[0] } else { leader };
        world.hand_in(whom, command);
        world.run(millis(2));
        number += 1;
    }
    world.down.remove(&away);
    let pieces = world.pieces;
    world.command(there[0], number);
    world.run(Duration::from_secs(3));
    assert_eq!(world.states(), vec![numbers(0..number + 1); 4]);
    assert_eq!(world.members[&away].installs, 1);
    assert!(world.pieces - pieces >= 2, "{}", world.pieces - pieces);
}

#[test]
fn one_becomes_four_becomes_seven_becomes_four_under_load() {
    let mut world = World::new(Settings::default(), 1);
    let mut next = 0;
    for target in [4, 7, 4_u8] {
        let (from, to) = if target == 4 && next > 0 { (3, 7) } else { (0, target) };
        let wanted: BTreeSet<Seat> = (from..to).map(seat).collect();
        let first = Tip::first(vec![seat(0)]).unwrap();
        for number in from..to {
            if !world.members.contains_key(&seat(number)) {
                world.add(number, first.clone());
            }
        }
        let members = world.members[&world.leader()].replica.members().clone();
        for seat in members.list() {
            world.input(*seat, Input::Wish(wanted.iter().copied().collect()));
        }
        for _ in 0..100 {
            world.command(world.leader(), next);
            next += 1;
            world.run(millis(20));
        }
        world.run(Duration::from_secs(5));
        let seats: Vec<Seat> = wanted.into_iter().collect();
        let leader = world.leader();
        assert_eq!(world.members[&leader].replica.tip().seats, seats, "{target}");
        for seat in seats {
            let state = &world.members[&seat].state;
            assert_eq!(state.len() as u32, next, "{seat} of {target}");
        }
    }
    let leader = world.leader();
    let expected: Vec<Vec<u8>> = (0..next).map(|n| n.to_be_bytes().to_vec()).collect();
    assert_eq!(world.members[&leader].state, expected, "nothing is lost, nothing is repeated");
}

#[test]
fn one_to_come_that_never_says_that_it_is_ready_does_not_keep_the_others_waiting_for_ever() {
    let mut world = World::new(Settings::default(), 1);
    let first = Tip::first(vec![seat(0)]).unwrap();
    for number in 1..4 {
        world.add(number, first.clone());
    }
    world.down.insert(seat(3));
    world.input(seat(0), Input::Wish((0..4).map(seat).collect()));
    world.run(millis(500));
    assert_eq!(world.members[&seat(0)].replica.tip().seats.len(), 1, "it may still come");
    world.run(Duration::from_secs(3));
    assert_eq!(world.members[&seat(0)].replica.tip().seats.len(), 4);
    world.command(seat(0), 0);
    world.run(Duration::from_secs(1));
    assert_eq!(world.states(), vec![numbers(0..1); 3]);
    world.down.remove(&seat(3));
    world.run(Duration::from_secs(3));
    assert_eq!(world.states(), vec![numbers(0..1); 4]);
}

#[test]
fn a_member_with_an_old_disk_notices_and_says_nothing() {
    let mut world = World::new(Settings::default(), 4);
    let old = (0..4).find(|number| seat(*number) != world.leader()).unwrap();
    for number in 0..10 {
        world.command(world.leader(), number);
        world.run(millis(20));
    }
    let keep = world.log_len(old) - 5;
    world.restart(old, keep);
    world.run(Duration::from_secs(2));
    assert!(world.members[&seat(old)].is_stale);
    world.command(world.leader(), 10);
    world.run(Duration::from_secs(2));
    let states = world.states();
    assert!(states.iter().filter(|state| **state == numbers(0..11)).count() >= 3);
}

#[test]
fn a_member_with_its_own_disk_is_welcomed() {
    let mut world = World::new(Settings::default(), 4);
    for number in 0..10 {
        world.command(world.leader(), number);
        world.run(millis(20));
    }
    for number in 0..4 {
        let keep = world.log_len(number);
        world.restart(number, keep);
        world.run(Duration::from_secs(1));
        assert!(!world.members[&seat(number)].is_stale);
        world.command(world.leader(), 10 + u32::from(number));
        world.run(Duration::from_secs(1));
    }
    assert_eq!(world.states(), vec![numbers(0..14); 4]);
}

#[test]
fn a_state_that_is_handed_over_while_the_log_is_read_begins_nothing() {
    let settings = Settings { checkpoint_every: 1, ..Settings::default() };
    let mut world = World::new(settings.clone(), 4);
    for number in 0..2 {
        world.command(world.leader(), number);
        world.run(if number == 0 { millis(20) } else { 2 * HOP });
    }
    let (tip, now) = (Tip::first((0..4).map(seat).collect()).unwrap(), world.now);
    for number in 0..4 {
        let cast = &world.members[&seat(number)].replica.cast;
        assert!(!cast.is_empty(), "the second height has begun");
        let (me, notary) = (seat(number), world::notary(number));
        let (settings, tip) = (settings.clone(), tip.clone());
        let mut replica = Replica::new(settings, world::group(), me, notary, tip, now);
        replica.begin_replay(0);
        for record in world.log(number) {
            let mut out = Vec::new();
            replica.replay(record, now, &mut out).unwrap();
            for output in out {
                if let Output::WantState { height } = output {
                    let input = Input::State { height, state: Arc::from([]) };
                    replica.step(now, input, &mut Vec::new());
                }
            }
        }
        replica.end_replay(now, &mut Vec::new());
        assert_eq!((replica.tip().height, &replica.cast), (1, cast));
    }
}

/// A proposal of this member at the first height, sealed by it.
fn proposal(number: u8, round: u32, valid_round: Option<u32>, batch: &Batch) -> Message {
    proposal_at(1, number, round, valid_round, batch)
}

fn proposal_at(
    height: u64,
    number: u8,
    round: u32,
    valid_round: Option<u32>,
    batch: &Batch,
) -> Message {
    let (value, seat) = (batch.digest(), seat(number));
    let what = crate::ballot::Proposal { height, round, value, valid_round, seat };
    let seal = world::notary(number).seal(&what.sealed_bytes(&world::group()));
    Message::Word(Word::Proposal(Sealed { what, seal }), Some(batch.clone()))
}

fn batch(tip: &Tip, leader: u8, time: Instant) -> Batch {
    Batch::after(tip, seat(leader), time, Vec::new(), None)
}

/// Whether the records that this member has written since say that a proposal of a round is fit.
fn judgements<N: world::Pen>(world: &World<N>, number: u8, since: usize) -> Vec<(u32, bool)> {
    let mut judgements = Vec::new();
    for record in &world.log(number)[since..] {
        for record in base::decode::<Vec<Record>>(record, record.len()).unwrap() {
            if let Record::Fact(_, Fact::Judged { round, is_fit, .. }) = record {
                judgements.push((round, is_fit));
            }
        }
    }
    judgements
}

/// All of these wish that those be the members, who come if they are not there yet.
fn reseat<N: world::Pen>(world: &mut World<N>, from: std::ops::Range<u8>, to: std::ops::Range<u8>) {
    let first = Tip::first(vec![seat(0)]).unwrap();
    for number in to.clone() {
        if !world.members.contains_key(&seat(number)) {
            world.add(number, first.clone());
        }
    }
    let seats: Vec<Seat> = to.map(seat).collect();
    for number in from {
        world.input(seat(number), Input::Wish(seats.clone()));
    }
}

#[test]
fn who_has_slept_through_every_change_of_members_finds_the_group_again() {
    let settings = Settings { checkpoint_every: 5, recent_max: 10, ..Settings::default() };
    let mut world = World::new(settings, 1);
    let mut next = 0;
    for (from, to) in [(0..1, 0..4), (0..4, 0..7), (0..7, 4..8)] {
        reseat(&mut world, from, to);
        for _ in 0..50 {
            world.command(world.leader(), next);
            next += 1;
            world.run(millis(20));
        }
        world.run(Duration::from_secs(3));
    }
    let tip = world.members[&seat(4)].replica.tip().clone();
    assert_eq!((tip.seats.len(), tip.lineage.changes().len(), tip.unproven), (4, 3, None));
    // Whom it has known are all gone.
    world.down.extend((0..4).map(seat));
    world.add(9, Tip::first(vec![seat(0)]).unwrap());
    world.run(Duration::from_secs(3));
    assert!(world.members[&seat(9)].state.is_empty());
    world.input(seat(9), Input::Hint((4..8).map(seat).collect()));
    world.run(Duration::from_secs(3));
    assert_eq!(world.members[&seat(9)].replica.tip().seats, tip.seats);
    assert_eq!(world.members[&seat(9)].state.len() as u32, next);
}

#[test]
fn who_leaves_out_what_proves_a_change_of_members_is_not_followed() {
    let mut world = World::new(Settings::default(), 1);
    reseat(&mut world, 0..1, 0..4);
    let is_told = |world: &World| (1..4).find(|n| world.members[&seat(*n)].replica.proof.is_some());
    let told = loop {
        world.run(HOP / 5);
        if let Some(told) = is_told(&world) {
            break told;
        }
    };
    let replica = &world.members[&seat(told)].replica;
    let height = replica.tip().height + 1;
    let mut leaders = (0..4).map(|round| (round, *replica.members().leader(round)));
    let (round, leader) = leaders.find(|(_, leader)| *leader != seat(told)).unwrap();
    let number = (0..4).find(|number| seat(*number) == leader).unwrap();
    let (time, proof) = (replica.time(world.now), replica.proof.clone().unwrap());
    let mut left_out = batch(replica.tip(), number, time);
    let since = world.log_len(told);
    for change in [None, Some(Change::Prove(proof))] {
        left_out.change = change;
        // Each in a later round that this member leads.
        let round = round + if left_out.change.is_some() { 8 } else { 4 };
        let message = proposal_at(height, number, round, None, &left_out);
        world.input(seat(told), Input::Heard { from: leader, message, is_fit: true });
    }
    assert_eq!(judgements(&world, told, since), [(round + 4, false), (round + 8, true)]);
}

#[test]
fn a_liar_that_proposes_many_batches_leaves_room_for_those_of_others() {
    let mut world = World::new(Settings::default(), 4);
    let leader = world.leader();
    let liar = (0..4).find(|number| seat(*number) != leader).unwrap();
    for number in (0..4).filter(|number| *number != liar) {
        let tip = world.members[&seat(number)].replica.tip().clone();
        for nanos in 0..100 {
            let batch = batch(&tip, liar, Instant::from_nanos(nanos));
            for round in 0..4 {
                let message = proposal(liar, round, None, &batch);
                let from = seat(liar);
                world.input(seat(number), Input::Heard { from, message, is_fit: true });
            }
        }
        // One of the liar's, and perhaps one of its own.
        assert!(world.members[&seat(number)].replica.sizes().batches <= 2);
    }
    world.command(leader, 7);
    world.run(Duration::from_secs(2));
    assert_eq!(world.states(), vec![numbers(7..8); 4]);
}

#[test]
fn to_say_that_a_quorum_has_seen_a_batch_does_not_make_its_time_plausible_later() {
    let mut world = World::new(Settings::default(), 4);
    let members = world.members[&seat(0)].replica.members().clone();
    let liar = (0..4).find(|number| seat(*number) == *members.leader(1)).unwrap();
    let honest = (0..4).find(|number| seat(*number) == *members.leader(2)).unwrap();
    let tip = world.members[&seat(honest)].replica.tip();
    let early = batch(tip, liar, Instant::from_secs(3_600));
    let since = world.log_len(honest);
    for (round, valid_round) in [(1, Some(0)), (5, None)] {
        let message = proposal(liar, round, valid_round, &early);
        world.input(seat(honest), Input::Heard { from: seat(liar), message, is_fit: true });
    }
    assert_eq!(judgements(&world, honest, since), [(1, true), (5, false)]);
}

#[test]
fn a_vote_at_no_height_at_all_is_harmless() {
    let mut world = World::new(Settings::default(), 4);
    let vote = Vote { height: 0, round: 0, step: Step::Prevote, value: None, seat: seat(1) };
    let vote = Sealed { what: vote, seal: Seal([0; 64]) };
    let message = Message::Word(Word::Vote(vote, true), None);
    world.input(seat(0), Input::Heard { from: seat(1), message, is_fit: true });
}

#[test]
fn a_state_that_nobody_has_any_more_is_not_asked_for_for_ever() {
    let settings = Settings { checkpoint_every: 50, recent_max: 100, ..Settings::default() };
    let mut world = World::new(settings, 4);
    let away = (0..4).map(seat).find(|seat| *seat != world.leader()).unwrap();
    world.down.insert(away);
    for number in 0..10 {
        world.command(world.leader(), number);
        world.run(millis(5));
    }
    world.down.remove(&away);
    let tip = Tip { height: 500, ..world.members[&world.leader()].replica.tip().clone() };
    let summary = Summary { tip, state: world::group(), bytes: 1 << 20 };
    let sources: Vec<Seat> = (0..4).map(seat).filter(|seat| *seat != away).take(2).collect();
    for from in &sources {
        let message = Message::Offer(summary.clone(), None);
        world.input(away, Input::Heard { from: *from, message, is_fit: true });
    }
    // What brings it no further does not keep it waiting either.
    let message = Message::Piece { height: 500, from: 0, bytes: Vec::new() };
    world.input(away, Input::Heard { from: sources[0], message, is_fit: true });
    world.run(Duration::from_secs(8));
    world.command(world.leader(), 10);
    world.run(Duration::from_secs(2));
    assert_eq!(world.states(), vec![numbers(0..11); 4]);
}

#[test]
fn members_that_have_started_again_still_have_a_state_for_those_that_are_behind() {
    let settings = Settings { checkpoint_every: 5, recent_max: 10, ..Settings::default() };
    let mut world = World::new(settings.clone(), 4);
    for number in 0..42 {
        world.command(world.leader(), number);
        world.run(millis(5));
    }
    let member = &world.members[&world.leader()];
    let tip = member.replica.tip().clone();
    let state: Arc<[u8]> = base::encode(&member.state).into();
    let (now, notary, mut out) = (world.now, world::notary(0), Vec::new());
    let mut replica =
        Replica::recover(settings, world::group(), seat(0), notary, tip, [], 0, now, &mut out)
            .unwrap();
    replica.hold_state(replica.tip().clone(), state);
    let input = Input::Heard {
        from: seat(1),
        message: Message::Behind { height: 3, epoch: 1 },
        is_fit: true,
    };
    replica.step(now, input, &mut out);
    let is_offer = |one: &Output| matches!(one, Output::Send { message: Message::Offer(..), .. });
    assert!(out.iter().any(is_offer), "{out:?}");
}

#[test]
fn who_starts_again_with_a_state_and_the_rest_of_its_log_still_has_the_last_decision() {
    let mut world = World::new(Settings::default(), 4);
    for number in 0..5 {
        world.command(world.leader(), number);
        world.run(millis(5));
    }
    for number in 0..4 {
        let replica = &world.members[&seat(number)].replica;
        let (tip, mark) = (replica.tip().clone(), replica.mark_behind(5));
        assert!(mark > 0);
        let log = world.log(number)[mark as usize..].iter().map(Vec::as_slice);
        let (settings, notary, now) = (Settings::default(), world::notary(number), world.now);
        let mut out = Vec::new();
        let me = seat(number);
        let mut replica =
            Replica::recover(settings, world::group(), me, notary, tip, log, mark, now, &mut out)
                .unwrap();
        assert_eq!(replica.mark_behind(5), mark);
        out.clear();
        let (from, message) = (seat((number + 1) % 4), Message::Behind { height: 4, epoch: 1 });
        replica.step(now, Input::Heard { from, message, is_fit: true }, &mut out);
        let told = out.iter().find_map(|output| match output {
            Output::Send { message: Message::Decisions(decisions), .. } => Some(decisions),
            _ => None,
        });
        assert_eq!(told.map(|decisions| decisions[0].height), Some(5));
    }
}

#[test]
fn one_alone_that_has_not_heard_that_its_log_is_safe_needs_what_is_in_it() {
    let (tip, now) = (Tip::first(vec![seat(0)]).unwrap(), Instant::from_secs(1));
    let (settings, notary) = (Settings::default(), world::notary(0));
    let mut replica = Replica::new(settings, world::group(), seat(0), notary, tip, now);
    let mut out = Vec::new();
    let from = seat(0).key;
    replica.step(now, Input::Command { from, command: vec![1] }, &mut out);
    replica.step(now, Input::Command { from, command: vec![2] }, &mut out);
    assert_eq!((replica.tip().height, replica.mark_behind(0)), (2, 0));
    replica.step(now, Input::Persisted { mark: 1 }, &mut out);
    assert_eq!(replica.mark_behind(1), 1, "one has taken effect");
    assert_eq!(replica.mark_behind(0), 0, "and is not stored");
}

/// A vote of this member in the first round at the first height.
fn vote(number: u8, step: Step, value: Digest) -> Message {
    let what = Vote { height: 1, round: 0, step, value: Some(value), seat: seat(number) };
    let seal = world::notary(number).seal(&what.sealed_bytes(&world::group()));
    Message::Word(Word::Vote(Sealed { what, seal }, false), None)
}

#[test]
fn a_decision_that_rests_on_an_own_vote_waits_until_the_vote_is_safe() {
    for voters in [2, 3] {
        let (tip, now) = (Tip::first((0..4).map(seat).collect()).unwrap(), Instant::from_secs(1));
        let leader = (0..4).find(|number| seat(*number) == tip.leader).unwrap();
        let me = (0..4).find(|number| *number != leader).unwrap();
        let others: Vec<u8> = (0..4).filter(|number| *number != me).take(voters).collect();
        let (settings, notary) = (Settings::default(), world::notary(me));
        let mut replica = Replica::new(settings, world::group(), seat(me), notary, tip, now);
        let mut out = Vec::new();
        let hear = |replica: &mut Replica<_>, number: u8, message, out: &mut Vec<Output>| {
            let from = seat(number);
            replica.step(now, Input::Heard { from, message, is_fit: true }, out);
        };
        let batch = batch(replica.tip(), leader, replica.time(now));
        hear(&mut replica, leader, proposal(leader, 0, None, &batch), &mut out);
        for step in [Step::Prevote, Step::Precommit] {
            for number in &others {
                hear(&mut replica, *number, vote(*number, step, batch.digest()), &mut out);
            }
        }
        let is_decided = |out: &[Output]| out.iter().any(|one| matches!(one, Output::Decided(_)));
        let is_told = |out: &[Output]| {
            let message = Message::Decisions(Vec::new());
            !out.contains(&Output::Send { to: seat(leader), message })
        };
        assert_eq!(replica.tip().height, 1);
        assert!(!is_decided(&out), "its own vote is one of three");
        out.clear();
        hear(&mut replica, leader, Message::Behind { height: 0, epoch: 1 }, &mut out);
        assert!(!is_told(&out), "nobody is told either");
        out.clear();
        replica.step(now, Input::Persisted { mark: replica.mark }, &mut out);
        assert!(is_decided(&out));
        out.clear();
        hear(&mut replica, leader, Message::Behind { height: 0, epoch: 1 }, &mut out);
        assert!(is_told(&out));
    }
}

#[test]
fn who_was_welcomed_by_enough_of_those_who_stay_need_not_be_welcomed_again() {
    let mut world = World::new(Settings::default(), 1);
    reseat(&mut world, 0..1, 0..7);
    world.run(Duration::from_secs(3));
    let keep = world.log_len(6);
    world.down.extend([seat(1), seat(2)]);
    world.restart(6, keep);
    // Three of the six others answer, and two of them stay; seven members want four answers.
    for number in [0, 3] {
        let message = Message::Welcome {
            nonce: world.now.as_nanos(),
            time: Instant::START,
            height: 0,
            seen: None,
        };
        world.input(seat(6), Input::Heard { from: seat(number), message, is_fit: true });
    }
    let replica = &mut world.members.get_mut(&seat(6)).unwrap().replica;
    assert!(replica.greeting.is_some());
    let four = [0, 3, 4, 6].map(seat).to_vec();
    replica.tip.seats = crate::Seats::new(four).unwrap().list().to_vec();
    replica.members = replica.tip.members();
    replica.on_new_epoch();
    assert!(replica.greeting.is_none());
}

#[test]
fn seals_on_votes_of_one_round_prove_nothing_about_another() {
    let mut world = World::new(Settings::default(), 4);
    let mut votes = Vec::new();
    for number in [1, 2] {
        let (step, value) = (Step::Prevote, None);
        let what = Vote { height: 1, round: 0, step, value, seat: seat(number) };
        let seal = world::notary(number).seal(&what.sealed_bytes(&world::group()));
        let message = Message::Word(Word::Vote(Sealed { what, seal }, false), None);
        world.input(seat(0), Input::Heard { from: seat(number), message, is_fit: true });
        votes.push((step, value, seat(number), seal));
    }
    let passage = crate::ballot::Passage { height: 1, round: 100, is_precommit: false, votes };
    let message = Message::Word(Word::Passage(passage), None);
    world.input(seat(0), Input::Heard { from: seat(3), message, is_fit: true });
    assert_eq!(world.members[&seat(0)].replica.engine.round(), 0);
}

#[test]
fn a_liar_can_not_fill_the_log_with_proofs_of_its_lies() {
    let mut world = World::new(Settings::default(), 4);
    let liar = (0..4).find(|number| seat(*number) != world.leader()).unwrap();
    for command in 0..50 {
        for number in (0..4).filter(|number| *number != liar) {
            let height = world.members[&seat(number)].replica.tip().height + 1;
            for value in 0..20 {
                let (step, value) = (Step::Prevote, Some(Digest::from_bytes([value; 32])));
                let what = Vote { height, round: 0, step, value, seat: seat(liar) };
                let seal = world::notary(liar).seal(&what.sealed_bytes(&world::group()));
                let message = Message::Word(Word::Vote(Sealed { what, seal }, false), None);
                world.input(seat(number), Input::Heard { from: seat(liar), message, is_fit: true });
            }
        }
        world.command(world.leader(), command);
        world.run(Duration::from_secs(1));
    }
    for number in (0..4).filter(|number| *number != liar) {
        let replica = &world.members[&seat(number)].replica;
        assert!(replica.tip().height >= 50);
        assert_eq!(replica.evidence().count(), PROOFS_EACH_MAX);
        let records = world.log(number).iter();
        let records =
            records.flat_map(|record| base::decode::<Vec<Record>>(record, record.len()).unwrap());
        let proofs = records.filter(|record| matches!(record, Record::Evidence(_)));
        assert_eq!(proofs.count(), PROOFS_EACH_MAX, "in the log of member {number}");
    }
}

#[test]
fn no_round_follows_the_last_whatever_others_say() {
    let with = |rounds_max| {
        let settings = Settings { rounds_max, ..Settings::default() };
        let mut world = World::new(settings, 4);
        let (leader, members) = (world.leader(), world.members[&seat(0)].replica.members().clone());
        world.down.insert(leader);
        world.command(*members.leader(1), 7);
        world.run(Duration::from_secs(20));
        world
    };
    let world = with(2);
    assert_eq!(world.states(), vec![numbers(7..8); 3], "the second round has another leader");
    let mut world = with(1);
    assert_eq!(world.states(), vec![numbers(0..0); 3]);
    let up: Vec<Seat> = (0..4).map(seat).filter(|seat| !world.down.contains(seat)).collect();
    let votes: Vec<_> = (0..4_u8)
        .filter(|number| up.contains(&seat(*number)))
        .map(|number| {
            let (step, value, seat) = (Step::Precommit, None, seat(number));
            let what = Vote { height: 1, round: 0, step, value, seat };
            (step, value, seat, world::notary(number).seal(&what.sealed_bytes(&world::group())))
        })
        .collect();
    let passage = crate::ballot::Passage { height: 1, round: 0, is_precommit: true, votes };
    let message = Message::Word(Word::Passage(passage), None);
    world.input(up[0], Input::Heard { from: up[1], message, is_fit: true });
    for seat in up {
        let replica = &world.members[&seat].replica;
        assert_eq!((replica.engine.round(), replica.sizes().cast <= 2), (0, true));
    }
}
