//! How long liars who lead can keep a group waiting: as slow as they may be, or deaf to somebody.
//!
//! Nothing else goes wrong, and members behave as the product's do; so what is seen here is what they can do at most.

use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, Rng};
use group::Settings;
use vice::Lie;

use crate::{Faults, Outcome};

use super::{
    customer::Habit,
    ledger::liars_max,
    member::Hardware,
    run::{Plan, nodes, play},
    tamper::{Honest, Tamper},
};

/// A client says to all members what the leader has not answered for so long.
const ALL_AFTER: Duration = Duration::from_secs(1);
/// Where all members hear at once of all that is wanted.
const SOON: Duration = Duration::from_millis(30);

/// Runs this seed of a world whose first leaders lie.
pub fn run(seed: u64) -> Outcome {
    run_tampered(seed, &Honest, 0)
}

/// Runs this seed again, and keeps the last things that happened in words.
pub fn explain(seed: u64, lines_max: usize) -> Outcome {
    run_tampered(seed, &Honest, lines_max)
}

pub(crate) fn run_tampered(seed: u64, tamper: &impl Tamper, lines_max: usize) -> Outcome {
    let mut rng = Rng::new(seed);
    let plan = draw(&mut rng);
    play(&plan, &mut rng, tamper, lines_max)
}

fn draw(rng: &mut Rng) -> Plan {
    let latency_max = Duration::from_millis(1 + rng.below(10));
    let faults = Faults { latency_max, ..Faults::none() };
    let count = *rng.pick(&[4, 7]);
    // Somebody alone, whose command the others hear of late; many, whose commands all know; or one of many is ignored.
    let (lie, customers, patience) =
        *rng.pick(&[(Lie::Slow, 1, ALL_AFTER), (Lie::Slow, 6, SOON), (Lie::Picky, 4, ALL_AFTER)]);
    // As many as may lie, and they lead one after another.
    let liars = nodes(0..liars_max(count) as u16).into_iter();
    let liars = liars.map(|node| (node, (BTreeSet::from([lie]), 1.0))).collect::<BTreeMap<_, _>>();
    let pace = Duration::from_millis(1 + rng.below(100));
    let hardware =
        Hardware { sync_max: Duration::from_millis(5), loss: 0.0, rollback: 0.0, backups: 0.0 };
    // In half of the worlds the first of them is alone at first, and lets the others come.
    let mut circles = vec![nodes(0..count as u16)];
    if rng.chance(0.5) {
        circles.insert(0, nodes(0..1));
    }
    Plan {
        faults,
        settings: Settings::default(),
        count,
        circles,
        liars,
        drifter: None,
        habits: vec![Habit { pace, patience }; customers],
        hardware,
        is_real: false,
        is_timed: true,
        leaks: false,
        span: Duration::from_secs(30),
    }
}
