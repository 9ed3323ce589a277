//! One seed of the world of bytes: faults, then none, then everything closed and judged.

use base::{Duration, Instant, Rng};
use client::Settings as ClientSettings;
use directory::Settings;
use lease::{Client, Policy, Terms};

use crate::{Clock, Faults, Marks, Outcome, Violation, World};

use super::{
    actor::Party,
    group::Group,
    machine::Machine,
    oracle::Oracle,
    program::Habit,
    tamper::{Honest, Tamper},
};

/// What must have happened in a good number of seeds.
pub(crate) const MARKS: &[&str] = &[
    "a machine becomes a home",
    "a machine starts again",
    "a program does something",
    "a program is refused",
    "a session is lost",
    "bytes are asked for that the directory has not heard of",
    "bytes are fetched",
    "bytes are told before they are given up",
    "something is done at a home elsewhere",
    "the kernel writes by itself",
    "what the directory had not heard is told again",
    "what was overtaken is kept aside",
    "what was told is lost with its session",
    "what was written is safe",
    JUDGED,
];

const JUDGED: &str = "what a program finds is judged";

/// How long faults go on.
const FAULTS_SPAN: Duration = Duration::from_secs(90);

/// Runs this seed of the world of bytes.
pub fn run(seed: u64) -> Outcome {
    run_tampered(seed, &Honest, 0)
}

/// Runs this seed again, and keeps the last things that happened in words.
pub fn explain(seed: u64, lines_max: usize) -> Outcome {
    run_tampered(seed, &Honest, lines_max)
}

pub(crate) fn run_tampered(seed: u64, tamper: &impl Tamper, lines_max: usize) -> Outcome {
    let mut rng = Rng::new(seed);
    let plan = Plan::draw(&mut rng);
    let (mut world, mut oracle) = (plan.build(&mut rng, tamper), Oracle::default());
    if lines_max > 0 {
        world.keep_trace(lines_max);
    }
    let violation = play(&mut world, &mut oracle, &plan).err();
    let mut outcome = Outcome::of(&world, violation);
    outcome.marks.pass_many(JUDGED, oracle.judged);
    outcome
}

fn play<T: Tamper>(
    world: &mut World<Party<T>>,
    oracle: &mut Oracle,
    plan: &Plan,
) -> Result<(), Violation> {
    let healed_at = Instant::START + FAULTS_SPAN;
    world.run_until(healed_at, oracle)?;
    world.heal();
    // Work goes on for a while without faults, then everybody finishes.
    let rest_at = healed_at + 2 * plan.terms.session;
    world.run_until(rest_at, oracle)?;
    for node in world.nodes() {
        world.tell(node, |party, _, _| {
            if let Party::Machine(machine) = party {
                machine.rest();
            }
        });
    }
    // Whoever has to look for long, or waits for others who do, is through by then.
    let end_at = rest_at + 3 * plan.terms.session + Duration::from_secs(180);
    world.run_until(end_at, oracle)?;
    oracle.judge_end(world).map_err(|broken| Violation { broken, at: end_at })
}

/// What a seed's world is like.
struct Plan {
    faults: Faults,
    terms: Terms,
    policy: Policy,
    machines: Vec<Vec<Habit>>,
    push_after: Duration,
}

impl Plan {
    fn draw(rng: &mut Rng) -> Plan {
        let faults = if rng.chance(0.15) { Faults::none() } else { Faults::draw(rng) };
        let terms = Terms {
            session: Duration::from_secs(4 + rng.below(8)),
            lease: Duration::from_secs(7_200),
            repeat: Duration::from_millis(300 + rng.below(1_000)),
            slack: Duration::from_millis(*rng.pick(&[0, 50, 500])),
            drift_ppm: 1_000,
        };
        let policy = Policy { is_generous: rng.chance(0.5), ..Policy::default() };
        let habit = Habit {
            pace: Duration::from_millis(*rng.pick(&[20, 100, 400])),
            files: 1 + rng.below(3),
            writes: *rng.pick(&[0.2, 0.5, 0.9]),
            syncs: *rng.pick(&[0.0, 0.05, 0.2]),
            long: *rng.pick(&[6, 20, 40]),
        };
        let count = 2 + rng.index(3);
        let machines = (0..count).map(|_| vec![habit; 1 + rng.index(2)]).collect();
        let push_after = Duration::from_millis(*rng.pick(&[20, 1_000, 3_000]));
        Plan { faults, terms, policy, machines, push_after }
    }

    fn build<T: Tamper>(&self, rng: &mut Rng, tamper: &T) -> World<Party<T>> {
        let settings = Settings {
            terms: self.terms,
            policy: self.policy,
            admits_anybody: true,
            ..Settings::default()
        };
        let group = Party::Group(Box::new(Group::new(settings)));
        let mut nodes = vec![(group, Clock::draw(&self.faults, rng))];
        for (index, habits) in self.machines.iter().enumerate() {
            let settings = ClientSettings {
                terms: self.terms,
                push_after: self.push_after,
                has_memory: true,
                ..ClientSettings::of(Client(index as u32 + 1))
            };
            let machine = Machine::new(settings, habits.clone(), rng.fork(), tamper.clone());
            nodes.push((Party::Machine(Box::new(machine)), Clock::draw(&self.faults, rng)));
        }
        World::new(self.faults, nodes, Marks::new(MARKS), rng)
    }
}
