//! What k-Choices decides, and that no other choice would have been better.

use base::Rng;

use super::*;
use crate::{
    position::Position,
    ring::Ring,
    rule::{BEYOND_MAX, Gap, Neighbour},
};

const PAPER: Policy = Policy {
    rule: Rule::Successor,
    choices: 8,
    is_active: true,
    gain_min: 0.25,
    upper: 0.95,
    lower: 0.05,
    small: 10.0,
    weight: 0.1,
    is_farsighted: false,
};
const POLICY: Policy = Policy { is_farsighted: true, ..PAPER };

fn standing(work: f64, capacity: f64) -> Standing {
    POLICY.standing(work, capacity)
}

#[test]
fn the_default_is_what_the_paper_uses_but_sees_further() {
    assert_eq!(Policy::paper(), PAPER);
    assert_eq!(Policy::default(), POLICY);
}

#[test]
fn balance_is_between_the_bounds_and_small_machines_only_have_to_cope() {
    let check = |work, capacity| POLICY.balance(&standing(work, capacity));
    assert_eq!(check(96.0, 100.0), Balance::Over);
    assert_eq!(check(95.0, 100.0), Balance::Even);
    assert_eq!(check(5.0, 100.0), Balance::Even);
    assert_eq!(check(4.0, 100.0), Balance::Under);
    assert_eq!(check(9.0, 9.0), Balance::Even);
    assert_eq!(check(9.1, 9.0), Balance::Over);
    assert_eq!(check(0.0, 9.0), Balance::Even);
}

#[test]
fn a_joining_machine_stops_when_it_expects_its_target_or_has_half_of_its_choices() {
    let mut joining = Joining::new(&POLICY, 100.0);
    joining.joined(20.0);
    assert_eq!(joining.next(), Some(standing(20.0, 100.0)));
    joining.joined(30.0);
    assert_eq!(joining.next(), None);
    let mut joining = Joining::new(&POLICY, 100.0);
    for _ in 0..4 {
        assert!(joining.next().is_some());
        joining.joined(1.0);
    }
    assert_eq!(joining.next(), None);
    assert!(Joining::new(&Policy { choices: 1, ..POLICY }, 100.0).next().is_some());
}

#[test]
fn who_stays_out_of_balance_for_more_checks_than_it_has_servers_makes_or_drops_one() {
    let check = |work: f64, servers: u32| {
        let mut restless = Restless::default();
        let standing = standing(work, 100.0);
        [(); 4].map(|()| restless.check(&POLICY, &standing, servers))
    };
    let (heavy, light) = (Step::Move(Pick::Heaviest), Step::Move(Pick::Lightest));
    assert_eq!(check(200.0, 2), [heavy, heavy, Step::Destroy, heavy]);
    assert_eq!(check(200.0, 1), [heavy; 4]);
    assert_eq!(check(1.0, 2), [light, light, Step::Create, light]);
    assert_eq!(check(1.0, 8), [light; 4]);
    assert_eq!(check(50.0, 2), [Step::Rest; 4]);
}

#[test]
fn a_quiet_check_starts_the_count_again() {
    let mut restless = Restless::default();
    let (over, even) = (standing(200.0, 100.0), standing(50.0, 100.0));
    let steps = [over, over, even, over, over, over].map(|s| restless.check(&POLICY, &s, 2));
    assert_eq!(steps[2], Step::Rest);
    assert_eq!(steps[4], Step::Move(Pick::Heaviest));
    assert_eq!(steps[5], Step::Destroy);
}

#[test]
fn who_is_passive_or_has_no_choice_rests_whatever_happens() {
    for policy in [Policy { is_active: false, ..POLICY }, Policy { choices: 1, ..POLICY }] {
        let mut restless = Restless::default();
        assert_eq!(restless.check(&policy, &standing(900.0, 100.0), 1), Step::Rest);
    }
}

#[test]
fn the_heaviest_and_the_lightest_are_picked() {
    let servers = [(3, 5.0), (4, 9.0), (5, 1.0), (6, 9.0)];
    assert_eq!(Pick::Heaviest.choose(servers), Some(4));
    assert_eq!(Pick::Lightest.choose(servers), Some(5));
    assert_eq!(Pick::Lightest.choose([]), None);
}

/// A ring of machines with one server each, which can be asked for its mismatch as a whole.
struct World {
    ring: Ring<u32>,
    works: Vec<f64>,
    capacities: Vec<f64>,
}

impl World {
    fn new(seed: u64, count: u32) -> World {
        let mut rng = Rng::new(seed);
        let mut world = World { ring: Ring::new(), works: Vec::new(), capacities: Vec::new() };
        for machine in 0..count {
            assert!(world.ring.insert(Position(rng.next_u64()), machine));
            world.works.push(100.0 * rng.unit());
            world.capacities.push([1.0, 10.0, 100.0][rng.index(3)]);
        }
        world
    }

    fn neighbour(&self, (position, machine): (Position, u32)) -> Neighbour {
        let (work, capacity) = (self.works[machine as usize], self.capacities[machine as usize]);
        let standing = Some(standing(work, capacity));
        Neighbour { position, beyond: position, load: Load::of(work), standing }
    }

    fn gap(&self, position: Position) -> Gap {
        let (before, after) = (self.ring.before(position), self.ring.at_or_after(position));
        Gap {
            before: self.neighbour(before.expect("there is somebody")),
            after: self.neighbour(after.expect("there is somebody")),
            beyond_before: [None; BEYOND_MAX],
            beyond_after: [None; BEYOND_MAX],
        }
    }

    fn leave(&mut self, position: Position) {
        let machine = self.ring.remove(position).expect("it stands there") as usize;
        let (_, after) = self.ring.after(position).expect("there are others");
        self.works[after as usize] += std::mem::take(&mut self.works[machine]);
    }

    fn join(&mut self, position: Position, machine: u32) {
        let gap = self.gap(position);
        let (_, after) = self.ring.after(position).expect("there are others");
        let share = gap.before.position.way(position) / gap.before.position.way(gap.after.position);
        let taken = share * self.works[after as usize];
        self.works[after as usize] -= taken;
        self.works[machine as usize] += taken;
        assert!(self.ring.insert(position, machine));
    }

    fn mismatch(&self) -> f64 {
        let all = self.works.iter().zip(&self.capacities);
        all.map(|(work, capacity)| standing(*work, *capacity).mismatch()).sum()
    }
}

#[test]
fn a_move_gains_for_the_whole_ring_what_it_promises_and_no_other_gains_more() {
    let policy = Policy { gain_min: 0.0, ..POLICY };
    let mut moves = 0;
    for seed in 0..200 {
        let world = World::new(seed, 40);
        let mut rng = Rng::new(seed + 1_000);
        let (from, machine) = world.ring.iter().nth(rng.index(40)).unwrap();
        let positions: Vec<Position> = (0..8).map(|_| Position(rng.next_u64())).collect();
        let before = world.mismatch();
        let load = Load::of(world.works[machine as usize]);
        let mover = standing(load.work, world.capacities[machine as usize]);
        let mut hole = world.gap(from);
        hole.after = world.neighbour(world.ring.after(from).unwrap());
        let going = policy.departure(from, load, &hole);
        let offers: Vec<(u32, Exchange)> = (0..8)
            .map(|index| {
                let position = positions[index as usize];
                let going = Some((from, load, &hole));
                (index, policy.arrival(position, world.gap(position), going))
            })
            .collect();
        let mut without = world;
        without.leave(from);
        let gains: Vec<f64> = positions
            .iter()
            .map(|position| {
                let (ring, works) = (without.ring.clone(), without.works.clone());
                let mut world = World { ring, works, capacities: without.capacities.clone() };
                world.join(*position, machine);
                before - world.mismatch()
            })
            .collect();
        let best = gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match policy.choose_move(mover, &going, offers.iter().copied()) {
            Some(choice) => {
                moves += 1;
                assert!((gains[choice.index as usize] + choice.cost).abs() < 1e-9, "seed {seed}");
                assert!((best + choice.cost).abs() < 1e-9, "seed {seed}");
                let too_much = Policy { gain_min: -choice.cost, ..POLICY };
                assert_eq!(too_much.choose_move(mover, &going, offers), None);
            }
            None => assert!(best <= 1e-9, "seed {seed}: {best}"),
        }
    }
    assert!((20..180).contains(&moves), "{moves}");
}

#[test]
fn the_server_to_do_without_is_that_whose_work_does_the_least_harm() {
    let world = World::new(3, 10);
    let owner = standing(300.0, 100.0);
    let servers: Vec<(u32, Exchange)> = world
        .ring
        .iter()
        .map(|(position, machine)| {
            let mut gap = world.gap(position);
            gap.after = world.neighbour(world.ring.after(position).unwrap());
            (machine, POLICY.departure(position, Load::of(10.0), &gap))
        })
        .collect();
    let choice = POLICY.choose_destroy(owner, servers.iter().copied()).unwrap();
    let least = servers.iter().map(|(_, exchange)| exchange.cost_to_give(owner));
    assert_eq!(choice.cost, least.fold(f64::INFINITY, f64::min));
}

#[test]
fn a_small_machine_does_not_hold_the_one_before_it_if_there_is_room_beyond() {
    let neighbour = |work, capacity| Neighbour {
        position: Position(200),
        beyond: Position(300),
        load: Load::of(work),
        standing: Some(standing(work, capacity)),
    };
    let nobody = [None; BEYOND_MAX];
    let (before, after) = (neighbour(1.0, 100.0), neighbour(10.0, 30.0));
    let mut gap = Gap { before, after, beyond_before: nobody, beyond_after: nobody };
    let full = standing(900.0, 300.0);
    let free = [(1, POLICY.arrival(Position(250), gap, None))];
    let chosen = |policy: Policy, gap: &Gap| {
        let going = policy.departure(Position(150), Load::of(900.0), gap);
        policy.choose_move(full, &going, free).map(|choice| choice.index)
    };
    assert_eq!(chosen(POLICY, &gap), None);
    gap.beyond_after[0] = Some((5.0, standing(5.0, 2_000.0)));
    assert_eq!((chosen(POLICY, &gap), chosen(PAPER, &gap)), (Some(1), None));
}

#[test]
fn who_stands_before_a_hot_place_may_go_if_the_one_before_it_has_room() {
    let neighbour = |work, capacity| Neighbour {
        position: Position(200),
        beyond: Position(300),
        load: Load::of(work),
        standing: Some(standing(work, capacity)),
    };
    // The machine of the hot place has no room for as much again, and would not have more to do.
    let (before, after) = (neighbour(1.0, 2_000.0), neighbour(900.0, 1_000.0));
    let nobody = [None; BEYOND_MAX];
    let gap = Gap { before, after, beyond_before: nobody, beyond_after: nobody };
    let full = standing(900.0, 600.0);
    let load = Load { work: 900.0, passed: 890.0 };
    let cost = |policy: Policy| policy.departure(Position(150), load, &gap).cost_to_give(full);
    assert!(cost(POLICY) < -0.25 && cost(PAPER) > 0.25, "{} {}", cost(POLICY), cost(PAPER));
}
