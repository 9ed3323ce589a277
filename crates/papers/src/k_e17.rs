//! What κ choices of a position are worth to somebody who wants more seats in a group than it can bear.

use base::{Digest, Domain, Rng};
use overlay::{Policy, Position};

use crate::{
    Failure, Trial,
    swarm::{
        crew::{self, Progress},
        popularity::Popularity,
        population::{Capacities, Lives, population},
        scheme::KChoices,
        world::{Setup, World},
    },
};

const NUMBER: Domain = Domain::new("number of a machine that attacks v1");
const CHOICES: [u32; 3] = [1, 8, 16];
/// Parts of all machines that are bad.
const SHARES: [(&str, f64); 3] = [("0.1%", 0.001), ("1%", 0.01), ("5%", 0.05)];
/// Members of a group, and how many bad ones it can bear.
const GROUPS: [(usize, usize); 2] = [(4, 1), (7, 2)];

/// Where a server stands, and whose it is.
type Seat = (Position, u32);

/// Honest machines as k-Choices has placed them.
struct Honest {
    choices: u32,
    /// In the order of positions.
    servers: Vec<Seat>,
    /// Everybody's first position, whether somebody stands there or not.
    homes: Vec<Seat>,
}

/// How the members of a server's group are found.
#[derive(Clone, Copy)]
enum Rule {
    /// The server's machine, and the next distinct machines of servers around the ring.
    Ring,
    /// The server's machine, and the next distinct machines by first position, where nobody chooses.
    Homes,
}

/// What one attacker with its certificates has captured.
#[derive(Clone, Copy, Default)]
struct Captured {
    /// The part of the ring whose groups are captured.
    part: f64,
    /// How many groups are.
    groups: usize,
}

/// Over all attackers with as many certificates: of each rule and size of group.
struct Outcome {
    part: f64,
    groups: f64,
    /// The part of attackers with at least one group.
    any: f64,
}

/// Measures the table.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let (machines, draws) = (trial.size("machines") as u32, trial.size("draws") as u32);
    let constants = ["rate", "skew", "points", "seconds"].map(|name| trial.constant(name));
    let seed = trial.rng().next_u64();
    let honest = crew::all(trial, &CHOICES, |choices, progress| {
        place(*choices, machines, constants, seed, progress)
    });
    let cells: Vec<(&Honest, &str, f64)> = honest
        .iter()
        .flat_map(|honest| SHARES.map(|(name, share)| (honest, name, share)))
        .collect();
    let outcomes = crew::all(trial, &cells, |(honest, name, share), progress| {
        progress.say(format!("κ = {}, {name} of {machines} are bad", honest.choices));
        let bad = (f64::from(machines) * share).round().max(1.0) as u32;
        (attack(honest, machines, bad, draws, seed), bad)
    });
    let mut rings = Vec::new();
    for ((honest, share, _), (outcomes, bad)) in cells.iter().zip(&outcomes) {
        let (choices, bad) = (f64::from(honest.choices), f64::from(*bad));
        let chance = bad / f64::from(machines);
        // The honest ones that are left, and every position of every bad one.
        let standing = honest.servers.len() as f64 * (1.0 - chance);
        let seats = choices * bad / (choices * bad + standing);
        for ((size, faulty), [ring, homes]) in GROUPS.iter().zip(outcomes) {
            let name = format!("{share}/{size}/{}", honest.choices);
            let (bound, by_seats) = (above(*size, *faulty, chance), above(*size, *faulty, seats));
            trial.number(format!("{name}/captured-ppm"), ring.part * 1e6);
            trial.number(format!("{name}/random-ppm"), bound * 1e6);
            trial.number(format!("{name}/to-random"), ring.part / bound);
            trial.number(format!("{name}/to-seats"), ring.part / by_seats);
            trial.number(format!("{name}/groups"), ring.groups);
            trial.number(format!("{name}/any"), ring.any);
            trial.number(format!("{name}/homes-ppm"), homes.part * 1e6);
            trial.number(format!("{name}/homes-to-random"), homes.part / bound);
            rings.push(((*share, *size, honest.choices), ring.part, homes.part));
        }
    }
    for honest in &honest {
        let each = honest.servers.len() as f64 / f64::from(machines);
        trial.number(format!("servers-each/{}", honest.choices), each);
    }
    let of = |share: &str, size: usize, choices: u32| {
        let found = rings.iter().find(|(key, ..)| *key == (share, size, choices));
        let (_, ring, homes) = found.expect("every cell is measured");
        (*ring, *homes)
    };
    for (share, size) in [("1%", 4), ("5%", 4), ("5%", 7)] {
        let (one, eight, sixteen) = (of(share, size, 1), of(share, size, 8), of(share, size, 16));
        let name = format!("{share}/{size}");
        trial.truth(format!("{name}/choices-cost"), one.0 < eight.0 && eight.0 < sixteen.0);
        trial.truth(format!("{name}/homes-help"), eight.1 < eight.0 && sixteen.1 < sixteen.0);
    }
    Ok(())
}

/// The probability that more than so many of a group are bad if each is with this chance.
fn above(size: usize, faulty: usize, chance: f64) -> f64 {
    let term = |bad: usize| {
        let ways = (0..bad).fold(1.0, |ways, at| ways * (size - at) as f64 / (at + 1) as f64);
        ways * chance.powi(bad as i32) * (1.0 - chance).powi((size - bad) as i32)
    };
    (faulty + 1..=size).map(term).sum()
}

fn place(
    choices: u32,
    machines: u32,
    [rate, skew, points, seconds]: [f64; 4],
    seed: u64,
    progress: &Progress,
) -> Honest {
    progress.say(format!("κ = {choices}: honest machines come to stand"));
    let (mut rng, seconds) = (Rng::new(seed), seconds as u32);
    let capacities = Capacities::Gnutella;
    let lives = population(machines as usize, seconds, capacities, Lives::Endless, &mut rng);
    let popularity = Popularity::new(skew, points as usize, &mut rng);
    let setup = Setup { rate, activation: 10, seed, ..Setup::default() };
    let policy = Policy { choices, ..Policy::default() };
    let mut world = World::new(setup, lives, popularity, Box::new(KChoices::new(policy)));
    world.run(seconds);
    let network = &mut world.network;
    let seats = network.ring().iter().map(|(at, server)| (at, network.owner(server)));
    let servers = seats.collect();
    let mut homes: Vec<Seat> = (0..machines).map(|m| (network.position(m, 0), m)).collect();
    homes.sort_unstable();
    Honest { choices, servers, homes }
}

/// Lets attackers with so many certificates each take the places of as many honest machines.
fn attack(
    honest: &Honest,
    machines: u32,
    bad: u32,
    draws: u32,
    seed: u64,
) -> [[Outcome; 2]; GROUPS.len()] {
    let mut rng = Rng::new(seed ^ u64::from(bad) ^ u64::from(honest.choices) << 32);
    let mut sums = [[(0.0, 0, 0); 2]; GROUPS.len()];
    let mut deck: Vec<u32> = (0..machines).collect();
    for draw in 0..draws {
        rng.shuffle(&mut deck);
        let mut is_bad = vec![false; machines as usize];
        deck[..bad as usize].iter().for_each(|machine| is_bad[*machine as usize] = true);
        let honest_only = |seat: &&Seat| !is_bad[seat.1 as usize];
        let mut servers: Vec<Seat> = honest.servers.iter().filter(honest_only).copied().collect();
        let mut homes: Vec<Seat> = honest.homes.iter().filter(honest_only).copied().collect();
        for &machine in &deck[..bad as usize] {
            let place = |index| (Position::of(&number(seed, draw, machine), index), machine);
            // Whoever stands on all of its positions has every group that it could have by any choice among
            // them: one more bad server never takes a bad machine out of a group (see the test).
            servers.extend((0..honest.choices).map(place));
            homes.push(place(0));
        }
        servers.sort_unstable();
        homes.sort_unstable();
        for (sums, group) in sums.iter_mut().zip(GROUPS) {
            for (sum, rule) in sums.iter_mut().zip([Rule::Ring, Rule::Homes]) {
                let captured = captured(&servers, &homes, &is_bad, group, rule);
                sum.0 += captured.part;
                sum.1 += captured.groups;
                sum.2 += usize::from(captured.groups > 0);
            }
        }
    }
    let mean = |sum: usize| sum as f64 / f64::from(draws);
    sums.map(|rules| {
        rules.map(|(part, groups, any)| Outcome {
            part: part / f64::from(draws),
            groups: mean(groups),
            any: mean(any),
        })
    })
}

/// The certified number of a bad machine: another one for each attacker.
fn number(seed: u64, draw: u32, machine: u32) -> Digest {
    let words = [seed, u64::from(draw) << 32 | u64::from(machine)];
    Digest::of(NUMBER, &words.map(u64::to_le_bytes).concat())
}

/// Looks at the group of every server.
fn captured(
    servers: &[Seat],
    homes: &[Seat],
    is_bad: &[bool],
    (size, faulty): (usize, usize),
    rule: Rule,
) -> Captured {
    let mut captured = Captured::default();
    let mut before = servers[servers.len() - 1].0;
    let mut members = Vec::with_capacity(size);
    for (at, (position, machine)) in servers.iter().enumerate() {
        members.clear();
        members.push(*machine);
        let (seats, from) = match rule {
            Rule::Ring => (servers, at + 1),
            Rule::Homes => (homes, homes.partition_point(|home| home.0 <= *position)),
        };
        for step in 0..seats.len() {
            let other = seats[(from + step) % seats.len()].1;
            if members.len() == size {
                break;
            }
            if !members.contains(&other) {
                members.push(other);
            }
        }
        let bad = members.iter().filter(|member| is_bad[**member as usize]).count();
        if bad > faulty {
            captured.part += before.way(*position) / 2f64.powi(64);
            captured.groups += 1;
        }
        before = *position;
    }
    captured
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::check;

    #[test]
    fn a_small_table_comes_out_as_the_plan_says() {
        check("K-E17", 0.1, &[]);
    }

    #[test]
    fn the_bound_is_that_of_the_design() {
        let ppm = |size, faulty, chance| (above(size, faulty, chance) * 1e6).round();
        assert_eq!((ppm(4, 1, 0.01), ppm(7, 2, 0.01)), (592.0, 34.0));
        assert_eq!((ppm(4, 1, 0.05), ppm(7, 2, 0.05)), (14_019.0, 3_757.0));
    }

    /// Whether the group of a point is captured when only these of the bad machines' positions are stood on.
    fn is_captured(point: Position, servers: &[Seat], is_bad: &[bool]) -> bool {
        let mut around = servers.to_vec();
        around.sort_by_key(|(position, _)| point.to(*position));
        let mut members: Vec<u32> = Vec::new();
        for (_, machine) in around {
            if members.len() < 4 && !members.contains(&machine) {
                members.push(machine);
            }
        }
        members.iter().filter(|member| is_bad[**member as usize]).count() > 1
    }

    #[test]
    fn standing_on_fewer_positions_never_captures_a_point_that_standing_on_all_does_not() {
        let mut rng = Rng::new(3);
        let mut captures = [0, 0];
        for _ in 0..200 {
            // Machines 0 to 5 are honest; 6, 7 and 8 are bad and may stand on two positions each.
            let is_bad: Vec<bool> = (0..9).map(|machine| machine > 5).collect();
            let mut seat = |machine| (Position(rng.next_u64()), machine);
            let honest: Vec<Seat> = (0..6).map(&mut seat).collect();
            let bad: Vec<Seat> = [6, 6, 7, 7, 8, 8].map(seat).to_vec();
            let all = is_captured(Position(0), &[&honest[..], &bad].concat(), &is_bad);
            for subset in 0..64 {
                let chosen = bad.iter().enumerate().filter(|(at, _)| subset & 1 << at != 0);
                let chosen: Vec<Seat> = chosen.map(|(_, seat)| *seat).collect();
                let some = is_captured(Position(0), &[&honest[..], &chosen].concat(), &is_bad);
                assert!(all || !some, "{subset:b}");
            }
            captures[usize::from(all)] += 1;
        }
        assert!(captures.iter().all(|count| *count > 20), "{captures:?}");
    }

    #[test]
    fn groups_are_counted_by_hand_on_a_small_ring() {
        let servers: Vec<Seat> = (0..8).map(|at| (Position(u64::from(at) << 61), at)).collect();
        let is_bad: Vec<bool> = (0..8).map(|machine| [2, 4].contains(&machine)).collect();
        // Groups of four that hold 2 and 4: those that begin at 1 and 2.
        for rule in [Rule::Ring, Rule::Homes] {
            let captured = captured(&servers, &servers, &is_bad, (4, 1), rule);
            assert_eq!((captured.groups, captured.part), (2, 0.25));
        }
        let none = captured(&servers, &servers, &[false; 8], (4, 1), Rule::Ring);
        assert_eq!(none.groups, 0);
    }
}
