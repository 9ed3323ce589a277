//! Too many are lost: one goes on from what it has, everybody else follows it, and nobody forks.

use base::Rng;

use super::{world::Pen, *};
use crate::{lineage::Roll, rescue::Rescue};

/// The authority's word that this member goes on from where it stands.
fn rescue_of<N: Pen>(world: &World<N>, number: u32, survivor: Seat) -> Sealed<Rescue> {
    let replica = &world.members[&survivor].replica;
    let (height, time) = (replica.tip().height, replica.time(world.now));
    let what = Rescue { number, seat: survivor, height, time, at: 7 };
    let seal = N::of(world::AUTHORITY).seal(&what.sealed_bytes(&world::group()));
    Sealed { what, seal }
}

fn rescue<N: Pen>(world: &mut World<N>, number: u32, survivor: Seat) {
    let rescue = rescue_of(world, number, survivor);
    world.input(survivor, Input::Rescue(rescue));
}

/// Four members, of whom all have decided this much, and the last two are lost.
fn halved() -> (World<Wax>, Seat, Seat) {
    let mut world = World::<Wax>::sealed(Settings::default(), 4);
    for number in 0..5 {
        world.command(world.leader(), number);
        world.run(millis(20));
    }
    let seats: Vec<Seat> = world.members.keys().copied().collect();
    world.down.extend([seats[2], seats[3]]);
    (world, seats[0], seats[1])
}

/// All others are shown the last rescue of a survivor, and told by whoever runs them to obey.
fn obey<N: Pen>(world: &mut World<N>, survivor: Seat) {
    let link = replica(world, survivor).last_rescue().unwrap().clone();
    let others: Vec<Seat> = world.members.keys().copied().collect();
    for seat in others.into_iter().filter(|seat| *seat != survivor) {
        world.input(seat, Input::Changes(vec![link.clone()]));
        world.input(seat, Input::Obey);
    }
}

fn number_of(whose: Seat) -> u8 {
    (0..4).find(|number| seat(*number) == whose).unwrap()
}

fn replica<N>(world: &World<N>, seat: Seat) -> &Replica<N> {
    &world.members[&seat].replica
}

#[test]
fn the_survivor_goes_on_alone_and_the_others_take_what_it_has() {
    let (mut world, survivor, other) = halved();
    world.command(survivor, 5);
    world.run(Duration::from_secs(2));
    assert_eq!(replica(&world, survivor).tip().height, 5, "two of four decide nothing");
    let time = replica(&world, survivor).time(world.now);
    rescue(&mut world, 1, survivor);
    world.run(Duration::from_secs(25));
    assert!(replica(&world, other).is_member(), "it still asks whether so many are left");
    world.run(Duration::from_secs(10));
    let tip = replica(&world, survivor).tip().clone();
    assert!(replica(&world, survivor).is_alone() && tip.time >= time);
    assert_eq!(Rescue::number_at(tip.height), 1);
    assert!(!replica(&world, other).is_member(), "it was told by what it said to the survivor");
    let lost: Vec<Seat> = world.down.iter().copied().collect();
    world.down.clear();
    world.run(Duration::from_secs(5));
    // Who has heard nothing yet says something when it wants something decided.
    for seat in lost.iter().chain([&other]) {
        world.command(*seat, 99);
    }
    world.run(Duration::from_secs(40));
    for seat in lost.iter().chain([&other]) {
        assert!(!replica(&world, *seat).is_member());
    }
    assert!(world.states().iter().all(|state| state.starts_with(&numbers(0..5))));
    assert_eq!(replica(&world, survivor).tip().seats, [survivor]);
    // By the ordinary way they are members again.
    let all: Vec<Seat> = world.members.keys().copied().collect();
    world.input(survivor, Input::Wish(all.clone()));
    world.run(Duration::from_secs(5));
    assert!(all.iter().all(|seat| replica(&world, *seat).is_member()));
    world.down.insert(survivor);
    let [one, ..] = lost[..] else { panic!("two were lost") };
    world.command(one, 6);
    world.run(Duration::from_secs(5));
    assert!(world.states().iter().all(|state| state.ends_with(&[6])), "{:?}", world.states());
}

#[test]
fn all_that_was_decided_is_kept_if_the_best_of_two_survivors_goes_on() {
    let (mut bound, mut rng) = (0, Rng::new(20));
    for round in 0..150 {
        let mut world = World::<Wax>::sealed(Settings::default(), 4);
        for number in 0..3 {
            world.command(world.leader(), number);
            world.run(millis(4));
        }
        // All stand still somewhere in the middle of the fourth decision.
        world.command(world.leader(), 3);
        world.run(Duration::from_micros(rng.below(2_000)));
        let mut seats: Vec<Seat> = world.members.keys().copied().collect();
        rng.shuffle(&mut seats);
        let survivor =
            *seats[..2].iter().max_by_key(|seat| replica(&world, **seat).reach()).unwrap();
        world.down.extend(seats[2..].iter().copied());
        if rng.chance(0.5) {
            world.restart(number_of(survivor), usize::MAX);
        }
        bound += usize::from(replica(&world, survivor).reach().bound.is_some());
        let known: Vec<_> = seats.iter().map(|seat| world.members[seat].state.clone()).collect();
        rescue(&mut world, 1, survivor);
        let kept = &world.members[&survivor].state;
        for state in &known {
            assert!(kept.starts_with(state), "round {round}: {state:?} of {kept:?}");
        }
        world.down.clear();
        world.command(survivor, 9);
        // They are as many as decide, so somebody has to say so on each.
        obey(&mut world, survivor);
        world.run(Duration::from_secs(3));
        let all: Vec<Seat> = world.members.keys().copied().collect();
        world.input(survivor, Input::Wish(all));
        world.run(Duration::from_secs(5));
        let states = world.states();
        assert!(states.iter().all(|state| *state == states[0]), "round {round}: {states:?}");
        assert!(states[0].starts_with(&[0, 1, 2]) && states[0].contains(&9));
    }
    assert!(bound > 10, "some had bound themselves to a batch: {bound}");
}

#[test]
fn members_that_were_given_up_decide_nothing_once_they_obey() {
    let (mut world, survivor, other) = halved();
    let mut lost: Vec<Seat> = world.down.iter().copied().collect();
    // The authority is wrong: three are well, and go on without the fourth.
    world.down = [survivor].into();
    world.command(other, 50);
    world.run(Duration::from_secs(2));
    assert_eq!(replica(&world, other).tip().height, 6);
    world.down = [other, lost[0], lost[1]].into();
    rescue(&mut world, 1, survivor);
    world.command(survivor, 60);
    world.run(Duration::from_secs(1));
    world.down.clear();
    lost.push(other);
    obey(&mut world, survivor);
    for seat in &lost {
        world.command(*seat, 51);
    }
    world.run(Duration::from_secs(5));
    assert!(lost.iter().all(|seat| !replica(&world, *seat).is_member()));
    assert!(world.states().iter().all(|state| !state.contains(&51)), "{:?}", world.states());
    assert!(
        lost.iter().all(|seat| !world.members[seat].state.contains(&50u32.to_be_bytes().to_vec()))
    );
}

#[test]
fn who_was_passed_over_knows_it_after_a_start_before_it_has_any_state() {
    let (mut world, survivor, other) = halved();
    let link = rescue_of(&world, 1, survivor).decision();
    world.down.insert(survivor);
    world.input(other, Input::Changes(vec![link]));
    world.input(other, Input::Obey);
    assert!(!replica(&world, other).is_member());
    let height = replica(&world, other).tip().height;
    let mark = replica(&world, other).mark_behind(height) as usize;
    assert!(mark < world.log_len(number_of(other)), "the log keeps it");
    world.restart(number_of(other), usize::MAX);
    world.run(Duration::from_secs(2));
    assert!(!replica(&world, other).is_member() && replica(&world, other).is_passed_over());
    assert_eq!(replica(&world, other).tip().height, height, "what it had is still there");
}

#[test]
fn the_survivor_is_alone_after_a_start_too() {
    let (mut world, survivor, _) = halved();
    rescue(&mut world, 1, survivor);
    world.command(survivor, 7);
    world.run(millis(10));
    world.restart(number_of(survivor), usize::MAX);
    assert!(replica(&world, survivor).is_alone());
    world.command(survivor, 8);
    world.run(millis(10));
    assert_eq!(world.states()[0], [0, 1, 2, 3, 4, 7, 8]);
}

#[test]
fn a_rescue_that_is_forged_replayed_or_for_somebody_else_does_nothing() {
    let (mut world, survivor, other) = halved();
    let good = rescue_of(&world, 1, survivor);
    let forged = [
        Sealed { what: good.what.clone(), seal: Wax::of(3).seal(b"") },
        Sealed { what: Rescue { seat: other, ..good.what.clone() }, seal: good.seal },
        rescue_of(&world, 1, other),
        rescue_of(&world, 0, survivor),
        rescue_of(&world, Rescue::NUMBER_MAX + 1, survivor),
    ];
    for rescue in forged {
        world.input(survivor, Input::Rescue(rescue));
        assert!(!replica(&world, survivor).is_alone());
    }
    world.input(survivor, Input::Rescue(good.clone()));
    assert!(replica(&world, survivor).is_alone());
    let tip = replica(&world, survivor).tip().clone();
    world.input(survivor, Input::Rescue(good));
    assert_eq!(*replica(&world, survivor).tip(), tip, "once is enough");
}

#[test]
fn of_two_rescues_with_one_number_the_first_is_kept_and_a_greater_number_ends_it() {
    let (mut world, one, two) = halved();
    let [first, second] = [one, two].map(|seat| rescue_of(&world, 1, seat));
    world.input(one, Input::Rescue(first.clone()));
    world.input(two, Input::Rescue(second.clone()));
    world.input(one, Input::Changes(vec![second.decision()]));
    world.input(two, Input::Changes(vec![first.decision()]));
    assert!(replica(&world, one).is_alone() && replica(&world, two).is_alone());
    world.run(millis(100));
    rescue(&mut world, 2, one);
    world.down.clear();
    obey(&mut world, one);
    world.command(two, 77);
    world.run(Duration::from_secs(3));
    assert!(!replica(&world, two).is_member());
    assert_eq!(world.states()[0], world.states()[1]);
    assert!(!world.states()[1].contains(&77));
}

#[test]
fn a_survivor_whose_disk_is_from_before_it_went_on_is_stale() {
    let (mut world, survivor, other) = halved();
    let before = world.log_len(number_of(survivor));
    rescue(&mut world, 1, survivor);
    world.run(Duration::from_secs(2));
    let link = replica(&world, survivor).last_rescue().unwrap().clone();
    world.down.insert(other);
    world.restart(number_of(survivor), before);
    world.input(survivor, Input::Changes(vec![link]));
    assert!(!world.members[&survivor].is_stale, "others may be well");
    world.run(Duration::from_secs(31));
    assert!(world.members[&survivor].is_stale);
}

#[test]
fn nothing_is_told_of_a_rescue_that_is_not_safe_in_the_log() {
    let (world, survivor, other) = halved();
    let sealed = rescue_of(&world, 1, survivor);
    let log: Vec<&[u8]> = world.log(number_of(survivor)).iter().map(Vec::as_slice).collect();
    let (settings, now, mut out) = (Settings::default(), world.now, Vec::new());
    let tip = Tip::first((0..4).map(seat).collect()).unwrap();
    let notary = Wax::of(number_of(survivor));
    let charter = world::charter();
    let mut replica =
        Replica::recover(settings, charter, survivor, notary, tip, log, 0, now, &mut out).unwrap();
    out.clear();
    replica.step(now, Input::Rescue(sealed), &mut out);
    assert!(!out.iter().any(|output| matches!(output, Output::Decided(_))));
    let hello = Message::Hello { nonce: 1 };
    replica.step(now, Input::Heard { from: other, message: hello, is_fit: true }, &mut out);
    let tells = |out: &[Output]| {
        out.iter().any(|one| matches!(one, Output::Send { message: Message::Decisions(_), .. }))
    };
    assert!(!tells(&out), "{out:?}");
    replica.step(now, Input::Persisted { mark: replica.mark }, &mut out);
    assert!(out.iter().any(|output| matches!(output, Output::Decided(_))));
    let hello = Message::Hello { nonce: 2 };
    replica.step(now, Input::Heard { from: other, message: hello, is_fit: true }, &mut out);
    assert!(tells(&out));
}

#[test]
fn a_rescue_that_leaks_while_a_quorum_is_well_is_not_obeyed() {
    let mut world = World::<Wax>::sealed(Settings::default(), 4);
    world.command(world.leader(), 0);
    world.run(millis(20));
    // Somebody has the authority's word that one of them goes on alone, and shows it to all again and again.
    let asked = world.leader();
    let liar = (0..4).map(seat).find(|seat| *seat != asked).unwrap();
    let leaked = rescue_of(&world, 1, liar).decision();
    world.down.insert(liar);
    for number in 1..100 {
        for seat in (0..4).map(seat).filter(|seat| *seat != liar) {
            world.input(seat, Input::Changes(vec![leaked.clone()]));
            let message = Message::Decisions(vec![leaked.clone()]);
            world.input(seat, Input::Heard { from: liar, message, is_fit: true });
        }
        world.command(asked, number);
        world.run(Duration::from_secs(1));
    }
    world.run(Duration::from_secs(2));
    assert_eq!(world.states(), vec![numbers(0..100); 3]);
    for seat in (0..4).map(seat).filter(|seat| *seat != liar) {
        assert!(replica(&world, seat).is_member());
        assert!(replica(&world, seat).hesitation().unwrap().is_refuted(), "and it can be seen");
    }
}

#[test]
fn a_rescue_names_no_healthy_member_stale() {
    let mut world = World::<Wax>::sealed(Settings::default(), 4);
    world.command(world.leader(), 0);
    world.run(millis(20));
    let named = world.leader();
    let leaked = rescue_of(&world, 1, named).decision();
    world.input(named, Input::Changes(vec![leaked]));
    world.run(Duration::from_secs(60));
    assert!(!world.members[&named].is_stale && replica(&world, named).is_member());
}

#[test]
fn whoever_runs_a_machine_can_have_it_obey_at_once() {
    let (mut world, survivor, other) = halved();
    rescue(&mut world, 1, survivor);
    world.command(survivor, 7);
    world.input(other, Input::Obey);
    assert!(replica(&world, other).is_member(), "it has heard of nothing to obey");
    obey(&mut world, survivor);
    world.run(Duration::from_secs(3));
    assert_eq!(replica(&world, other).tip().seats, [survivor], "it has the state of that one");
}

#[test]
fn a_newcomer_that_hears_of_a_rescue_asks_those_who_sit_there_first() {
    for is_well in [true, false] {
        let mut world = World::<Wax>::sealed(Settings::default(), 4);
        world.command(world.leader(), 0);
        world.run(millis(20));
        let (survivor, roll) = (seat(0), Roll::from(world.members[&seat(1)].replica.tip()));
        let leaked = rescue_of(&world, 1, survivor).decision();
        if !is_well {
            world.down.extend([seat(1), seat(2)]);
        }
        world.add(9, Tip::pinned(&roll).unwrap());
        world.input(seat(9), Input::Changes(vec![leaked]));
        world.run(Duration::from_secs(40));
        assert_eq!(replica(&world, seat(9)).is_passed_over(), !is_well);
    }
}
