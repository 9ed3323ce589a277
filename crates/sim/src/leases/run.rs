//! One seed of the lease world: faults, then none, then everybody content.

use std::rc::Rc;

use base::{Duration, Instant, Rng};
use lease::{Policy, Terms};

use crate::{Clock, Faults, Marks, Outcome, Violation, World};

use super::{
    actor::Party,
    oracle::Oracle,
    place::Place,
    server::Server,
    tamper::{Honest, Tamper},
    user::{BUNDLE_MAX, Habit, NEEDS_MAX, User},
};

/// What must have happened in a good number of seeds.
pub(crate) const MARKS: &[&str] = &[
    "a recall of a whole lease",
    "a recall of a part",
    "a recall lets reading go on",
    "a wide grant has exceptions",
    "a bundle is wanted whole",
    "a bundle may be split",
    "a lease is given back unasked",
    "a session is renewed for its own sake",
    "a session is lost",
    "what was given back is asked for again",
    "a late push is refused",
    "changes are lost with their session",
    "a change outlives its lease",
    "a client starts again",
    "another has it open",
    "nobody else has it open",
];

/// How often leases expire within the run.
const LEASE_SHORT: f64 = 0.3;

/// How long faults go on.
const FAULTS_SPAN: Duration = Duration::from_secs(120);

/// Runs this seed of the lease world.
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
    let (mut world, mut oracle) = plan.build(&mut rng, tamper);
    if lines_max > 0 {
        world.keep_trace(lines_max);
    }
    let violation = play(&mut world, &mut oracle, &plan).err();
    Outcome::of(&world, violation)
}

fn play<T: Tamper>(
    world: &mut World<Party<T>>,
    oracle: &mut Oracle,
    plan: &Plan,
) -> Result<(), Violation> {
    let healed_at = Instant::START + FAULTS_SPAN;
    world.run_until(healed_at, oracle)?;
    world.heal();
    oracle.heal(healed_at);
    // Wants go on for a while, then all must be met.
    let rest_at = healed_at + plan.terms.session;
    world.run_until(rest_at, oracle)?;
    for node in world.nodes().skip(1) {
        world.tell(node, |party, _, _| {
            if let Party::User(user) = party {
                user.rest();
            }
        });
    }
    let end_at = rest_at + plan.answer_max();
    world.run_until(end_at, oracle)?;
    oracle.judge_end(world).map_err(|broken| Violation { broken, at: end_at })
}

/// What a seed's world is like.
struct Plan {
    faults: Faults,
    terms: Terms,
    policy: Policy,
    habits: Vec<Habit>,
    place: Rc<Place>,
    sway_period: Duration,
}

impl Plan {
    fn draw(rng: &mut Rng) -> Plan {
        let place = Rc::new(Place::new());
        let faults = if rng.chance(0.1) { Faults::none() } else { Faults::draw(rng) };
        let slack = Duration::from_millis(*rng.pick(&[0, 50, 500]));
        let session = Duration::from_secs(5 + rng.below(16));
        let lease = if rng.chance(LEASE_SHORT) { session * 2 } else { Duration::from_secs(7_200) };
        let repeat = Duration::from_millis(300 + rng.below(1_000));
        let terms = Terms { session, lease, repeat, slack, drift_ppm: 1_000 };
        let is_generous = rng.chance(0.5);
        let policy = Policy { is_generous, ..Policy::default() };
        let pace = Duration::from_millis(*rng.pick(&[5, 20, 60, 300]));
        let users = 2 + rng.index(5);
        let habits = (0..users).map(|_| Habit::draw(&place, pace, rng)).collect();
        let sway_period = slack * (8 + rng.below(40) as u32);
        Plan { faults, terms, policy, habits, place, sway_period }
    }

    fn build<T: Tamper>(&self, rng: &mut Rng, tamper: &T) -> (World<Party<T>>, Oracle) {
        let place = &self.place;
        let server = Server::new(Rc::clone(place), self.terms, self.policy, tamper.clone());
        let agreed = Clock {
            sway: self.terms.slack,
            period: self.sway_period,
            ..Clock::draw(&self.faults, rng)
        };
        let mut nodes = vec![(Party::Server(Box::new(server)), agreed)];
        for habit in &self.habits {
            let (place, habit, tamper) = (Rc::clone(place), habit.clone(), tamper.clone());
            let user = User::new(place, self.terms, habit, rng.fork(), tamper);
            nodes.push((Party::User(Box::new(user)), Clock::draw(&self.faults, rng)));
        }
        let count = nodes.len();
        let world = World::new(self.faults, nodes, Marks::new(MARKS), rng);
        (world, Oracle::new(Rc::clone(place), count, self.answer_max()))
    }

    /// A request may be behind all that everybody else may want; what is in its way is recalled, pushed
    /// and given back; who does not answer delays it by a session.
    fn answer_max(&self) -> Duration {
        let ahead = (self.habits.len() * NEEDS_MAX * BUNDLE_MAX) as u32;
        let push_max = self.habits.iter().map(|habit| habit.push_max).max().unwrap_or_default();
        let turn = push_max + 12 * self.faults.latency_max + Duration::from_millis(10);
        2 * self.terms.session + 4 * self.terms.repeat + ahead * turn
    }
}
