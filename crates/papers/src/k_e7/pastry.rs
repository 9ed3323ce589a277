//! Machines that all join before anybody asks, and know each other by prefixes, as in Pastry.

use base::{Digest, Domain, Rng};
use overlay::{BEYOND_MAX, Gap, Load, Neighbour, Policy, Position, Ring, Rule, Standing};

const NUMBER: Domain = Domain::new("number of a machine of a testbed v1");
/// Bits of a digit, and how many digits tables go down to.
const DIGIT: u32 = 4;
const ROWS: usize = 4;
/// Neighbours on either side that a machine knows.
const LEAVES: usize = 8;

/// By what machines that join choose among their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The ring as it is.
    Ring,
    /// What the bootstrap node knows, which was there first: its leaf set and its table (K20, K22). It is one for all,
    /// and of a part of the ring far from it it knows few machines, between which there seems to be much to do.
    Bootstrap,
}

/// Where each machine stands, and whom it knows.
pub struct Pastry {
    /// By machine.
    positions: Vec<Position>,
    /// Machines in the order of positions, and where each is in it.
    order: Vec<usize>,
    places: Vec<usize>,
    /// For each machine, a machine that agrees with it in so many digits and then goes on with this one.
    tables: Vec<Table>,
}

/// By the digits in which a machine agrees with another, and by the next one.
type Table = [[Option<usize>; 16]; ROWS];

impl Pastry {
    /// Machines with these capacities join one after the other, each at the best of so many positions. Work
    /// is not measured: it is expected to be as the part of the ring that a machine is responsible for, of as
    /// much as all that are there want together (K20).
    pub fn new(capacities: &[f64], choices: u32, view: View, rng: &mut Rng) -> Pastry {
        let policy = Policy { rule: Rule::Nearest, choices, ..Policy::paper() };
        let seed = rng.next_u64();
        let (mut ring, mut known): (Ring<usize>, Ring<usize>) = (Ring::new(), Ring::new());
        let mut bootstrap: Table = [[None; 16]; ROWS];
        let (mut positions, mut wanted): (Vec<Position>, f64) = (Vec::new(), 0.0);
        for (machine, capacity) in capacities.iter().enumerate() {
            wanted += policy.target(*capacity);
            let bytes = [seed.to_le_bytes(), (machine as u64).to_le_bytes()].concat();
            let number = Digest::of(NUMBER, &bytes);
            let standing = |of: usize, share: f64| policy.standing(share * wanted, capacities[of]);
            let seen = if view == View::Ring { &ring } else { &known };
            let is_free = |position| ring.get(position).is_none();
            let offers = (0..choices).filter_map(|index| {
                let position = Position::of(&number, index);
                let gap = gap(seen, position, wanted, &standing).filter(|_| is_free(position))?;
                Some((index, policy.rule.arrival(position, &gap)))
            });
            let joiner = policy.standing(0.0, *capacity);
            let chosen = policy.choose_join(joiner, offers).map_or(0, |choice| choice.index);
            let position = Position::of(&number, chosen);
            assert!(ring.insert(position, machine), "two of 4,096 positions of 2^64 are the same");
            positions.push(position);
            if view == View::Bootstrap {
                learn(&mut bootstrap, positions[0], position, machine);
                known = known_to(&ring, positions[0], &bootstrap, &positions);
            }
        }
        let order: Vec<usize> = ring.iter().map(|(_, machine)| machine).collect();
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, machine)| places[*machine] = place);
        let tables = positions.iter().map(|own| table(*own, &positions, rng)).collect();
        Pastry { positions, order, places, tables }
    }

    /// The machine nearest to a key.
    pub fn nearest(&self, key: Position) -> usize {
        let after = self.order.partition_point(|machine| self.positions[*machine] < key);
        let [next, last] = [after, after + self.order.len() - 1].map(|at| at % self.order.len());
        let (next, last) = (self.order[next], self.order[last]);
        let is_next = key.to(self.positions[next]) < self.positions[last].to(key);
        if is_next { next } else { last }
    }

    /// The part of the ring that each machine is responsible for.
    pub fn parts(&self) -> Vec<f64> {
        let mut parts = vec![0.0; self.positions.len()];
        let count = self.order.len();
        for (place, machine) in self.order.iter().enumerate() {
            let at = |place: usize| self.positions[self.order[place % count]];
            let (before, own, after) = (at(place + count - 1), at(place), at(place + 1));
            parts[*machine] = (before.way(own) + own.way(after)) / 2.0 / 2f64.powi(64);
        }
        parts
    }

    /// Where a machine sends a message for this key next; nothing if it is there.
    pub fn next(&self, from: usize, key: Position) -> Option<usize> {
        let goal = self.nearest(key);
        if goal == from {
            return None;
        }
        let count = self.order.len();
        let apart = (self.places[goal] + count - self.places[from]) % count;
        if apart <= LEAVES || count - apart <= LEAVES {
            return Some(goal);
        }
        let row = common(self.positions[from], key);
        let known = self.tables[from].get(row).and_then(|row_of| row_of[digit(key, row)]);
        Some(known.unwrap_or(goal))
    }
}

/// The neighbours of a position if work lies evenly on the ring; nothing on an empty ring.
fn gap(
    ring: &Ring<usize>,
    position: Position,
    wanted: f64,
    standing: &impl Fn(usize, f64) -> Standing,
) -> Option<Gap> {
    let (before, after) = (ring.before(position)?, ring.at_or_after(position)?);
    let neighbour = |(at, machine): (Position, usize), is_before: bool| {
        let (last, next) = (ring.before(at)?.0, ring.after(at)?.0);
        // Half of the way to either side; alone on the ring, all of it.
        let share = ((last.way(at) + at.way(next)) / 2.0 / 2f64.powi(64)).min(1.0);
        let beyond = if is_before { last } else { next };
        let standing = Some(standing(machine, share));
        Some(Neighbour { position: at, beyond, load: Load::of(share * wanted), standing })
    };
    let (before, after) = (neighbour(before, true)?, neighbour(after, false)?);
    let nobody = [None; BEYOND_MAX];
    Some(Gap { before, after, beyond_before: nobody, beyond_after: nobody })
}

fn digit(position: Position, row: usize) -> usize {
    (position.0 >> (64 - DIGIT * (row as u32 + 1))) as usize & 15
}

/// In how many digits two positions agree.
fn common(one: Position, other: Position) -> usize {
    ((one.0 ^ other.0).leading_zeros() / DIGIT) as usize
}

fn table(own: Position, all: &[Position], rng: &mut Rng) -> Table {
    let mut table = [[None; 16]; ROWS];
    let mut others: Vec<usize> = (0..all.len()).collect();
    rng.shuffle(&mut others);
    for machine in others {
        learn(&mut table, own, all[machine], machine);
    }
    table
}

/// Whoever is the first for its digits stays.
fn learn(table: &mut Table, own: Position, position: Position, machine: usize) {
    let row = common(own, position);
    if let Some(row_of) = table.get_mut(row) {
        row_of[digit(position, row)].get_or_insert(machine);
    }
}

/// The part of the ring that a machine knows: itself, its leaves and its table.
fn known_to(
    ring: &Ring<usize>,
    own: Position,
    table: &Table,
    positions: &[Position],
) -> Ring<usize> {
    let (mut before, mut after) = (own, own);
    let mut all: Vec<(Position, usize)> =
        ring.get(own).map(|machine| (own, machine)).into_iter().collect();
    for _ in 0..LEAVES {
        let (last, next) = (ring.before(before), ring.after(after));
        all.extend(last.into_iter().chain(next));
        before = last.map_or(before, |(position, _)| position);
        after = next.map_or(after, |(position, _)| position);
    }
    all.extend(table.iter().flatten().flatten().map(|machine| (positions[*machine], *machine)));
    let mut known = Ring::new();
    for (position, machine) in all {
        if known.get(position).is_none() {
            assert!(known.insert(position, machine), "it is free");
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacities() -> Vec<f64> {
        (0..256).map(|at| [0.4, 1.0, 4.0, 40.0][at % 4]).collect()
    }

    #[test]
    fn every_message_comes_to_the_nearest_in_about_two_hops() {
        let mut rng = Rng::new(1);
        let pastry = Pastry::new(&capacities(), 1, View::Ring, &mut rng);
        let mut hops = 0;
        for _ in 0..2_000 {
            let (mut at, key) = (rng.index(256), Position(rng.next_u64()));
            while let Some(next) = pastry.next(at, key) {
                (at, hops) = (next, hops + 1);
            }
            let way = |machine: &usize| {
                let position = pastry.positions[*machine];
                position.to(key).min(key.to(position))
            };
            let nearest = (0..256).min_by_key(way).unwrap();
            assert_eq!((at, pastry.nearest(key)), (nearest, nearest));
        }
        assert!((3_000..5_000).contains(&hops), "{hops}");
    }

    #[test]
    fn with_choices_wide_lines_have_more_of_the_ring() {
        let mut rng = Rng::new(2);
        let capacities = capacities();
        let mut part = |choices, view| {
            let pastry = Pastry::new(&capacities, choices, view, &mut rng);
            let keys = (0..20_000u64).map(|step| Position(step.wrapping_mul(u64::MAX / 20_000)));
            keys.filter(|key| capacities[pastry.nearest(*key)] == 40.0).count() as f64 / 20_000.0
        };
        let (one, sixteen) = (part(1, View::Ring), part(16, View::Ring));
        assert!((0.15..0.35).contains(&one) && sixteen > one + 0.05, "{one} {sixteen}");
        let told = part(16, View::Bootstrap);
        assert!(one < told && told < sixteen, "{one} {told} {sixteen}");
    }

    #[test]
    fn a_bootstrap_node_knows_its_neighbours_and_few_others() {
        let mut rng = Rng::new(3);
        let positions: Vec<Position> = (0..256).map(|_| Position(rng.next_u64())).collect();
        let mut ring = Ring::new();
        let mut bootstrap: Table = [[None; 16]; ROWS];
        for (machine, position) in positions.iter().enumerate() {
            assert!(ring.insert(*position, machine));
            learn(&mut bootstrap, positions[0], *position, machine);
        }
        let known = known_to(&ring, positions[0], &bootstrap, &positions);
        let (mut before, mut after) = (positions[0], positions[0]);
        for _ in 0..LEAVES {
            (before, after) = (ring.before(before).unwrap().0, ring.after(after).unwrap().0);
            assert!(known.get(before).is_some() && known.get(after).is_some());
        }
        let count = known.count();
        assert!((2 * LEAVES + 1..80).contains(&count), "{count}");
    }
}
