//! A few movers on one ring, whose questions are answered from it.

use super::*;
use crate::{
    ring::Ring,
    rule::{BEYOND_MAX, Neighbour},
};

/// Computers whose servers stand on a ring. Each does the work of its part of the ring, of which there is a
/// thousand in all.
struct World {
    movers: Vec<Mover>,
    ring: Ring<usize>,
    now: Instant,
    moves: usize,
}

impl World {
    fn new(policy: Policy, capacities: &[f64]) -> World {
        let mover = |(seed, capacity): (usize, &f64)| {
            let number = Digest::from_bytes([seed as u8 + 1; 32]);
            Mover::new(policy, number, *capacity, Rng::new(seed as u64))
        };
        let movers = capacities.iter().enumerate().map(mover).collect();
        World { movers, ring: Ring::new(), now: Instant::START, moves: 0 }
    }

    fn work(&self, position: Position) -> f64 {
        let (before, _) = self.ring.before(position).unwrap();
        1_000.0 * before.way(position) / crate::position::WHOLE
    }

    fn neighbour(
        &self,
        asker: usize,
        (position, owner): (Position, usize),
        beyond: Position,
    ) -> Neighbour {
        let standing = (owner != asker).then(|| self.movers[owner].standing());
        Neighbour { position, beyond, load: Load::of(self.work(position)), standing }
    }

    fn gap(&self, asker: usize, position: Position) -> Option<Gap> {
        let (before, after) = (self.ring.before(position)?, self.ring.after(position)?);
        let beyond_before = self.ring.before(before.0)?.0;
        let beyond_after = self.ring.after(after.0)?.0;
        let is_free = self.ring.get(position).is_none_or(|owner| owner == asker);
        is_free.then(|| Gap {
            before: self.neighbour(asker, before, beyond_before),
            after: self.neighbour(asker, after, beyond_after),
            beyond_before: [None; BEYOND_MAX],
            beyond_after: [None; BEYOND_MAX],
        })
    }

    /// Does what a mover wants until it wants no more.
    fn serve(&mut self, mover: usize, mut wishes: Vec<Output>) {
        while !wishes.is_empty() {
            let mut next = Vec::new();
            for wish in wishes.drain(..) {
                let input = match wish {
                    Output::Ask { token, claim } => {
                        let gap = self.gap(mover, claim.position).map(Box::new);
                        Input::Answer { token, index: claim.index, gap }
                    }
                    Output::Stand(claim) => {
                        assert_eq!(claim, Claim::new(&self.movers[mover].number, claim.index));
                        Input::Done { is_done: self.ring.insert(claim.position, mover) }
                    }
                    Output::Leave(claim) => {
                        assert_eq!(self.ring.remove(claim.position), Some(mover));
                        Input::Done { is_done: true }
                    }
                    Output::Move { from, to } => {
                        self.moves += 1;
                        assert_eq!(self.ring.remove(from.position), Some(mover));
                        assert!(self.ring.insert(to.position, mover));
                        Input::Done { is_done: true }
                    }
                };
                self.movers[mover].step(self.now, input, &mut next);
            }
            wishes = next;
        }
    }

    fn join(&mut self) {
        // Somebody is there first: its position is its own choice, for want of others.
        let first = self.movers[0].claim(0);
        assert!(self.ring.insert(first.position, 0));
        self.movers[0].servers.insert(0, Work::anticipated(Load::of(1_000.0)));
        self.movers[0].wait(self.now);
        for mover in 1..self.movers.len() {
            let mut wishes = Vec::new();
            self.movers[mover].step(self.now, Input::Join, &mut wishes);
            self.serve(mover, wishes);
            self.observe(50);
        }
    }

    fn observe(&mut self, times: usize) {
        let works: Vec<_> = self
            .ring
            .iter()
            .map(|(position, owner)| (owner, self.work(position), position))
            .collect();
        for (owner, work, position) in works {
            let claims: Vec<_> = self.movers[owner].servers().map(|(claim, _)| claim).collect();
            let index = claims.iter().find(|c| c.position == position).unwrap().index;
            let done = Load::of(work);
            for _ in 0..times {
                self.movers[owner].step(self.now, Input::Did { index, done }, &mut Vec::new());
            }
        }
    }

    fn run(&mut self, checks: usize) {
        for _ in 0..checks * self.movers.len() {
            let due = (0..self.movers.len()).min_by_key(|m| self.movers[*m].wake_at()).unwrap();
            self.now = self.movers[due].wake_at().unwrap();
            let mut wishes = Vec::new();
            self.movers[due].tick(self.now, &mut wishes);
            self.serve(due, wishes);
            self.observe(50);
        }
    }

    fn worst(&self) -> f64 {
        let all = self.movers.iter().map(|mover| mover.standing().utilisation());
        all.fold(0.0, f64::max)
    }
}

const CAPACITIES: [f64; 12] =
    [100.0, 400.0, 50.0, 50.0, 400.0, 100.0, 20.0, 300.0, 200.0, 50.0, 20.0, 300.0];

#[test]
fn machines_come_to_stand_so_that_work_meets_capacity() {
    let mut active = World::new(Policy::default(), &CAPACITIES);
    active.join();
    let joined = active.worst();
    active.run(40);
    let mut none = World::new(Policy { choices: 1, ..Policy::default() }, &CAPACITIES);
    none.join();
    none.run(40);
    assert!(active.worst() < none.worst() / 2.0, "{} against {}", active.worst(), none.worst());
    assert!(active.worst() <= joined && active.moves > 0, "{} after {joined}", active.worst());
    assert_eq!(none.moves, 0);
}

#[test]
fn the_nearest_rule_works_as_well() {
    let policy = Policy { rule: crate::rule::Rule::Nearest, ..Policy::default() };
    let mut world = World::new(policy, &CAPACITIES);
    world.join();
    world.run(20);
    assert!(world.movers.iter().all(|mover| mover.servers().count() > 0));
}

#[test]
fn nobody_has_more_servers_than_choices_or_none() {
    for choices in [1, 2, 8] {
        let mut world = World::new(Policy { choices, ..Policy::default() }, &CAPACITIES);
        world.join();
        world.run(20);
        for mover in &world.movers {
            assert!((1..=choices as usize).contains(&mover.servers().count()));
        }
    }
}

#[test]
fn a_passive_machine_stays_where_it_joined() {
    let mut world = World::new(Policy { is_active: false, ..Policy::default() }, &CAPACITIES);
    world.join();
    let before: Vec<_> = world.ring.iter().collect();
    world.run(20);
    assert!(world.ring.iter().eq(before));
}

#[test]
fn answers_that_do_not_come_are_no_offers_and_late_ones_are_not_heard() {
    let mut world = World::new(Policy::default(), &CAPACITIES);
    let first = world.movers[0].claim(0);
    assert!(world.ring.insert(first.position, 0));
    let mut out = Vec::new();
    let asked = &mut world.movers[1].clone();
    asked.step(Instant::START, Input::Join, &mut out);
    assert_eq!(out.len(), 8);
    let Output::Ask { token, claim } = out[3] else { panic!("{out:?}") };
    let gap = world.gap(1, claim.position).map(Box::new);
    let answer = |token| Input::Answer { token, index: claim.index, gap: gap.clone() };
    asked.step(Instant::START, answer(token + 1), &mut out);
    asked.step(Instant::START, answer(token), &mut out);
    out.clear();
    let until = asked.wake_at().unwrap();
    asked.tick(until, &mut out);
    assert_eq!(out, [Output::Stand(claim)]);
    out.clear();
    asked.step(until, answer(token), &mut out);
    assert_eq!((out, asked.wake_at()), (vec![], None));
}

#[test]
fn who_could_not_stand_anywhere_tries_again() {
    let mut mover = World::new(Policy::default(), &[10.0]).movers.remove(0);
    let mut out = Vec::new();
    mover.step(Instant::START, Input::Join, &mut out);
    mover.tick(mover.wake_at().unwrap(), &mut out);
    out.clear();
    mover.tick(mover.wake_at().unwrap(), &mut out);
    assert_eq!(out.len(), 8);
}
