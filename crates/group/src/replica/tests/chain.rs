//! Whoever is alone at first and decides different things for different newcomers: they can't decide together, and who
//! was told something else than the others finds out.

use base::Domain;

use super::{world::Pen, *};
use crate::ballot::Proposal;

/// Who is alone at first, and lies.
const LIAR: u8 = 0;
/// Whom it tells something else than the others.
const MISLED: u8 = 3;
/// What it decides for that one alone.
const LIE: u32 = 666;

fn settings(recent_max: usize) -> Settings {
    Settings { checkpoint_every: 5, recent_max, ..Settings::default() }
}

/// A cell of four as its founder has it made: it decides so many things alone while the others come, and those.
fn grown(settings: &Settings, alone: std::ops::Range<u32>) -> World<Wax> {
    let mut world = World::<Wax>::sealed(settings.clone(), 1);
    world.command(seat(LIAR), 0);
    reseat(&mut world, 0..1, 0..4);
    for number in alone {
        world.command(seat(LIAR), number);
    }
    // Until all sit there, and have decided nothing since.
    while world.members.values().any(|member| member.replica.tip().seats.len() < 4) {
        world.run(HOP / 10);
    }
    world
}

/// Three of four know one history, and the fourth another one, of which the founder has given it a seat too.
fn parted(
    settings: &Settings,
    one: std::ops::Range<u32>,
    other: std::ops::Range<u32>,
) -> World<Wax> {
    let mut lied = grown(settings, other);
    let mut world = grown(settings, one);
    let misled = lied.members.remove(&seat(MISLED)).unwrap();
    assert_eq!(misled.replica.tip().seats, world.members[&seat(1)].replica.tip().seats);
    assert_ne!(misled.replica.tip().last, world.members[&seat(1)].replica.tip().last);
    assert_eq!(
        misled.replica.tip().epoch,
        misled.replica.tip().height + 1,
        "it has decided nothing"
    );
    assert!(misled.replica.is_member() && misled.state.contains(&LIE.to_be_bytes().to_vec()));
    world.members.insert(seat(MISLED), misled);
    world
}

#[test]
fn who_was_told_something_else_by_a_founder_that_is_alone_never_decides_with_the_others_before_it_has_found_out()
 {
    // With fewer decisions alone than the others were told, as many, and more; and whether the others still have
    // what they have decided, or only what it has led to.
    for others in [1..2, 1..4, 1..9] {
        for recent_max in [2, 100] {
            let settings = settings(recent_max);
            let mut world = parted(&settings, others.clone(), LIE..LIE + 3);
            for number in 100..140 {
                world.command(world.leader(), number);
                for _ in 0..10 {
                    world.run(millis(5));
                    let (misled, right) = (&world.members[&seat(MISLED)], &world.members[&seat(1)]);
                    let is_false = misled.state.contains(&LIE.to_be_bytes().to_vec());
                    let decided = misled.state.iter().any(|one| right.state[1..].contains(one));
                    assert!(!(is_false && decided), "it has decided on top of what it was told");
                }
            }
            world.run(Duration::from_secs(10));
            let misled = &world.members[&seat(MISLED)];
            assert_eq!(misled.state, world.members[&seat(1)].state, "{others:?} {recent_max}");
            let is_well = misled.replica.is_member() && !misled.is_stale && misled.installs > 0;
            let (installs, forgotten) = (misled.installs, misled.forgotten);
            assert!(
                is_well,
                "{others:?} {recent_max} {installs} {forgotten} {:?}",
                misled.replica.tip()
            );
            // The founder goes, and the other three are enough.
            world.down.insert(seat(LIAR));
            world.command(seat(MISLED), 200);
            world.run(Duration::from_secs(10));
            let states = world.states();
            assert!(states.iter().all(|state| state.last() == Some(&200)), "{states:?}");
        }
    }
}

#[test]
fn two_that_were_told_different_things_decide_nothing_with_one_that_agrees_with_both() {
    let settings = settings(100);
    let mut world = parted(&settings, 1..3, LIE..LIE + 2);
    // One of three that are there was told something else, and they need each other.
    world.down.insert(seat(2));
    let before = world.states();
    world.command(seat(1), 7);
    world.command(seat(MISLED), 8);
    world.run(Duration::from_secs(20));
    assert_eq!(world.states(), before, "no quorum has the same history");
}

#[test]
fn a_batch_on_top_of_something_else_gets_no_vote_and_is_not_taken() {
    let mut world = World::<Wax>::sealed(Settings::default(), 4);
    world.command(world.leader(), 0);
    world.run(Duration::from_secs(1));
    let honest = (0..4).find(|number| seat(*number) != world.leader()).unwrap();
    let replica = &world.members[&seat(honest)].replica;
    let (tip, time) = (replica.tip().clone(), replica.time(world.now));
    let height = tip.height + 1;
    let number_of = |round| (0..4).find(|one| seat(*one) == *tip.members().leader(round)).unwrap();
    let rounds = (0..10).filter(|round| number_of(*round) != honest);
    let other = Digest::of(Domain::new("test history v1"), b"other");
    let since = world.log_len(honest);
    let mut judged = Vec::new();
    for (round, (before, epoch, is_fit)) in rounds.zip([
        (other, tip.epoch, false),
        (tip.last, tip.epoch + 1, false),
        (tip.last, tip.epoch, true),
    ]) {
        let leader = number_of(round);
        let batch = Batch { before, epoch, ..batch(&tip, leader, time) };
        let (value, by) = (batch.digest(), seat(leader));
        let what = Proposal { height, round, value, valid_round: None, seat: by };
        let seal = Wax::of(leader).seal(&what.sealed_bytes(&world::group()));
        let message = Message::Word(Word::Proposal(Sealed { what, seal }), Some(batch.clone()));
        world.input(seat(honest), Input::Heard { from: by, message, is_fit: true });
        judged.push((round, is_fit));
        // A quorum that has decided it all the same is none of those who have what is here.
        let certificate = certificate(height, value, tip.seats.iter().copied());
        let decision = Decision { height, batch, certificate };
        assert_eq!(decision.follows(&tip, &world::group(), &Wax::of(1)), is_fit);
    }
    assert_eq!(judgements(&world, honest, since), judged);
}

fn certificate(
    height: u64,
    value: Digest,
    by: impl Iterator<Item = Seat>,
) -> crate::ballot::Certificate {
    let (round, step) = (0, Step::Precommit);
    let seal = |seat: Seat| {
        let vote = Vote { height, round, step, value: Some(value), seat };
        let number = (0..4).find(|number| super::seat(*number) == seat).unwrap();
        (seat, Wax::of(number).seal(&vote.sealed_bytes(&world::group())))
    };
    let seals = by.map(seal).collect();
    crate::ballot::Certificate { height, round, step, value, seals }
}

#[test]
fn a_log_goes_on_only_from_the_history_that_it_is_of() {
    let mut world = World::new(Settings::default(), 1);
    for number in 0..3 {
        world.command(seat(0), number);
    }
    let log: Vec<Vec<u8>> = world.log(0).to_vec();
    let first = Tip::first(vec![seat(0)]).unwrap();
    let other = Tip { last: Digest::of(Domain::new("test history v1"), b"other"), ..first.clone() };
    for (tip, is_read) in [(first, true), (other, false)] {
        let (settings, now, mut out) = (Settings::default(), world.now, Vec::new());
        let log = log.iter().map(Vec::as_slice);
        let recovered = Replica::recover(
            settings,
            world::charter(),
            seat(0),
            world::notary(0),
            tip,
            log,
            0,
            now,
            &mut out,
        );
        assert_eq!(recovered.is_ok(), is_read);
    }
}
