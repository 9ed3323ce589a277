//! Bounded loads against k-Choices: how even they make work, what they move, and what they have to know.

use std::collections::BTreeMap;

use base::Rng;
use overlay::{Policy, Position};

use crate::{
    Failure, Trial,
    swarm::{
        course::{Course, SAMPLE},
        crew::{self, Progress},
        network::{MachineId, Network, ServerId},
        popularity::Popularity,
        population::{Capacities, Lives},
        scheme::{KChoices, None, Scheme},
        tally::spread,
        turnover::Turnover,
        world::Setup,
    },
};

/// Places have the same popularity, but for a trace that nobody notices, or that of Zipf.
const SKEWS: [(&str, f64); 2] = [("even", 1e-9), ("zipf-1.2", 1.2)];
/// When balancing begins.
const ACTIVATION: u32 = 60;

/// How places find their machines.
#[derive(Clone, Copy)]
enum Way {
    None,
    KChoices(Policy),
    /// The first machine with room, where no machine takes more than its share of all work and this part more.
    Bounded(f64),
}

const WAYS: [&str; 5] = ["none", "passive", "k-choices", "bounded-0.25", "bounded-1"];

/// What came out in the second half.
struct Outcome {
    p95: f64,
    success: f64,
    /// Places in a minute that went to another machine while theirs was still there, and their part of all work.
    moved: f64,
    moved_work: f64,
    /// Places in a minute whose machine died.
    orphaned: f64,
    /// Machines that a place passes until it finds its own.
    passed: f64,
}

/// Measures the table.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let course = Course {
        machines: trial.size("machines") as usize,
        seconds: trial.duration("seconds") as u32,
        capacities: Capacities::Gnutella,
        lives: Lives::Pareto { mean: trial.constant("life_s"), correlation: 0.0 },
        burst: 1,
        skew: 0.0,
        points: trial.size("places") as usize,
        setup: Setup {
            rate: trial.constant("rate"),
            activation: ACTIVATION,
            seed: trial.rng().next_u64(),
            ..Setup::default()
        },
    };
    let policy = |is_active| Policy { is_active, ..Policy::default() };
    let ways = [
        Way::None,
        Way::KChoices(policy(false)),
        Way::KChoices(policy(true)),
        Way::Bounded(0.25),
        Way::Bounded(1.0),
    ];
    let cells: Vec<(String, f64, Way)> = SKEWS
        .iter()
        .flat_map(|(skew, alpha)| {
            WAYS.iter().zip(ways).map(move |(name, way)| (format!("{skew}/{name}"), *alpha, way))
        })
        .collect();
    let outcomes = crew::all(trial, &cells, |(name, skew, way), progress| {
        progress.say(name.clone());
        Field::new(course.with_skew(*skew), *way).run(name, progress)
    });
    for ((name, ..), outcome) in cells.iter().zip(&outcomes) {
        trial.number(format!("{name}/p95"), outcome.p95);
        trial.number(format!("{name}/success"), outcome.success);
        trial.number(format!("{name}/moved-a-minute"), outcome.moved);
        trial.number(format!("{name}/moved-work-a-minute"), outcome.moved_work);
        trial.number(format!("{name}/orphaned-a-minute"), outcome.orphaned);
        trial.number(format!("{name}/machines-passed"), outcome.passed);
    }
    for ((skew, _), outcomes) in SKEWS.iter().zip(outcomes.chunks(WAYS.len())) {
        let [none, _, choices, tight, loose] = outcomes else { unreachable!("five ways") };
        trial.truth(format!("{skew}/k-choices-below-none"), choices.p95 < none.p95);
        let is_most_even = tight.p95 < choices.p95 && tight.p95 < loose.p95;
        trial.truth(format!("{skew}/bounded-is-most-even"), is_most_even);
        let moves_least = choices.moved < tight.moved && choices.moved < loose.moved;
        trial.truth(format!("{skew}/k-choices-moves-least"), moves_least);
    }
    Ok(())
}

/// Machines on a ring, and places that have work for them. There is no routing: all work is at its place.
struct Field {
    course: Course,
    way: Way,
    network: Network,
    scheme: Box<dyn Scheme>,
    popularity: Popularity,
    rng: Rng,
    /// Where each place is, by rank, and the work that is to be expected of it in a second.
    places: Vec<(Position, f64)>,
    ranks: BTreeMap<Position, usize>,
    /// Whose each place is.
    owners: Vec<Option<(ServerId, MachineId)>>,
    turnover: Turnover,
    passed: u64,
}

impl Field {
    fn new(course: Course, way: Way) -> Field {
        let (lives, popularity, rng) = course.draw();
        let weights = (1..=course.points).map(|rank| (rank as f64).powf(-course.skew));
        let all: f64 = weights.clone().sum();
        let whole = course.setup.rate * course.machines as f64;
        let places: Vec<(Position, f64)> =
            popularity.places().iter().copied().zip(weights.map(|w| w / all * whole)).collect();
        let scheme: Box<dyn Scheme> = match way {
            Way::KChoices(policy) => Box::new(KChoices::new(policy)),
            Way::None | Way::Bounded(_) => Box::new(None),
        };
        let ranks = places.iter().enumerate().map(|(rank, (at, _))| (*at, rank)).collect();
        let owners = vec![Option::None; places.len()];
        Field {
            course,
            way,
            network: Network::new(course.setup.wiring, course.setup.seed),
            scheme,
            popularity,
            rng,
            places,
            ranks,
            owners,
            turnover: Turnover::new(lives),
            passed: 0,
        }
    }

    fn run(mut self, name: &str, progress: &Progress) -> Outcome {
        let Course { machines, seconds, setup, .. } = self.course;
        let (mut samples, mut asked, mut done) = (Vec::new(), 0u64, 0u64);
        let (mut moved, mut moved_work, mut orphaned) = (0u64, 0.0, 0u64);
        let half = seconds / 2;
        for second in 0..seconds {
            let is_new = self.churn();
            let before = self.owners.clone();
            match self.way {
                Way::Bounded(extra) if is_new => self.bound(extra),
                Way::Bounded(_) => {}
                Way::None | Way::KChoices(_) => self.follow(),
            }
            let counts = second >= half;
            if counts {
                for (rank, (was, is)) in before.iter().zip(&self.owners).enumerate() {
                    let (Some((_, was)), Some((_, is))) = (was, is) else { continue };
                    if self.network.machine(*was).servers.is_empty() {
                        orphaned += 1;
                    } else if was != is {
                        moved += 1;
                        moved_work += self.places[rank].1;
                    }
                }
            }
            for _ in 0..(setup.rate * machines as f64) as u64 {
                let rank = self.ranks[&self.popularity.draw(&mut self.rng)];
                let Some((server, _)) = self.owners[rank] else { continue };
                let is_done = self.network.charge(server);
                asked += u64::from(counts);
                done += u64::from(counts && is_done);
            }
            if self.is_active() {
                self.scheme.check_some(&mut self.network, setup.check_s, &mut self.rng);
            }
            self.network.end_second();
            if counts && second % SAMPLE == 0 {
                samples.push(self.network.utilisation_quantile(0.95));
                progress.say(format!("{name}: {second} of {seconds} s"));
            }
        }
        let minutes = f64::from(seconds - half) / 60.0;
        let whole: f64 = self.places.iter().map(|(_, work)| work).sum();
        Outcome {
            p95: spread(&samples).0,
            success: done as f64 / asked.max(1) as f64,
            moved: moved as f64 / minutes,
            moved_work: moved_work / whole / minutes,
            orphaned: orphaned as f64 / minutes,
            passed: self.passed as f64 / self.places.len() as f64,
        }
    }

    fn is_active(&self) -> bool {
        self.network.now >= self.course.setup.activation
    }

    /// Who has to go goes, who is to come comes. Whether anybody did.
    fn churn(&mut self) -> bool {
        let is_active = self.is_active();
        self.turnover.step(&mut self.network, &mut *self.scheme, is_active, &mut self.rng)
    }

    fn owner(&self, point: Position) -> Option<(Position, ServerId, MachineId)> {
        let (at, server) = self.network.ring().at_or_after(point)?;
        Some((at, server, self.network.owner(server)))
    }

    /// Each place belongs to the server after it.
    fn follow(&mut self) {
        for rank in 0..self.places.len() {
            let owner = self.owner(self.places[rank].0);
            self.owners[rank] = owner.map(|(_, server, machine)| (server, machine));
        }
    }

    /// Each place, the heaviest first, belongs to the first machine after it that has room. That depends on
    /// who is there and on all weights only, not on what was before, so whoever knows these can check it.
    fn bound(&mut self, extra: f64) {
        let alive = self.network.alive();
        let whole: f64 = self.places.iter().map(|(_, work)| work).sum();
        let capacity: f64 = alive.iter().map(|m| self.network.machine(*m).capacity).sum();
        let last = alive.iter().max().map_or(0, |machine| *machine as usize + 1);
        let mut room = vec![0.0; last];
        for machine in alive {
            let share = self.network.machine(*machine).capacity / capacity;
            room[*machine as usize] = (1.0 + extra) * share * whole;
        }
        self.passed = 0;
        for rank in 0..self.places.len() {
            let (place, work) = self.places[rank];
            self.owners[rank] = self.first_with_room(place, work, &room);
            if let Some((_, machine)) = self.owners[rank] {
                room[machine as usize] -= work;
            }
        }
    }

    fn first_with_room(
        &mut self,
        place: Position,
        work: f64,
        room: &[f64],
    ) -> Option<(ServerId, MachineId)> {
        let (mut point, mut roomiest) = (place, Option::None);
        for _ in 0..self.network.alive().len() {
            let (at, server, machine) = self.owner(point)?;
            let left = room[machine as usize];
            if left >= work {
                return Some((server, machine));
            }
            if roomiest.is_none_or(|(most, _)| left > most) {
                roomiest = Some((left, (server, machine)));
            }
            self.passed += 1;
            point = at.on(1);
        }
        // A place that is too much for everybody goes to whoever has the most room.
        roomiest.map(|(_, owner)| owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::check;

    fn course() -> Course {
        Course {
            machines: 60,
            seconds: 100,
            capacities: Capacities::Gnutella,
            lives: Lives::Pareto { mean: 300.0, correlation: 0.0 },
            burst: 1,
            skew: 1e-9,
            points: 3_000,
            setup: Setup { rate: 20.0, activation: ACTIVATION, seed: 5, ..Setup::default() },
        }
    }

    #[test]
    fn a_small_table_comes_out_as_the_plan_says() {
        check("K-E18", 0.15, &[]);
    }

    #[test]
    fn nobody_is_given_more_than_the_bound_while_places_are_small() {
        let mut field = Field::new(course(), Way::Bounded(0.25));
        field.churn();
        field.bound(0.25);
        let whole: f64 = field.places.iter().map(|(_, work)| work).sum();
        let network = &field.network;
        let capacity: f64 = network.alive().iter().map(|m| network.machine(*m).capacity).sum();
        let mut given = 0.0;
        for machine in network.alive() {
            let of = |rank: &usize| field.owners[*rank].is_some_and(|(_, owner)| owner == *machine);
            let ranks = (0..field.places.len()).filter(of);
            let work: f64 = ranks.map(|rank| field.places[rank].1).sum();
            let share = network.machine(*machine).capacity / capacity * whole;
            assert!(work <= 1.25 * share + 1e-9, "{work} of {share}");
            given += work;
        }
        assert!((given / whole - 1.0).abs() < 1e-9, "every place has its machine");
    }

    #[test]
    fn where_there_is_room_for_all_a_bound_changes_nothing() {
        let mut field = Field::new(course(), Way::Bounded(1e9));
        field.churn();
        field.bound(1e9);
        let bounded = field.owners.clone();
        field.follow();
        assert_eq!((bounded, field.passed), (field.owners.clone(), 0));
    }
}
