//! What k-Choices leaves on the table: its mismatch against that of machines that may stand anywhere (K9).

use base::Rng;
use overlay::{Joining, Load, Policy, Position, Standing, optimal::optimal};

use crate::{
    Failure, Trial,
    swarm::{
        course::Course,
        crew::{self, Progress},
        network::{MachineId, Network},
        scheme::{KChoices, None, Scheme},
        tally::spread,
    },
};

const SKEWS: [(&str, f64); 2] = [("uniform", 0.0), ("zipf-1.2", 1.2)];
/// The part of a run after which balancing begins.
const ACTIVATION: u32 = 27;

/// How machines take their places in one run.
#[derive(Clone, Copy)]
enum Way {
    None,
    KChoices(Policy),
    Anywhere(Policy, Weighing),
}

/// How a machine that may stand anywhere counts cost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weighing {
    /// In messages, as the paper's closed form does (K9).
    Plain,
    /// Each machine's mismatch as a part of its capacity, as k-Choices does (K6).
    ByCapacity,
}

/// What came out: mean mismatch by capacity and in messages, and success.
struct Outcome {
    mismatch: f64,
    plain: f64,
    success: f64,
}

/// Measures the gaps.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let course = Course::classes(trial, trial.constant("life_s"));
    let course = course.with_activation(course.seconds / ACTIVATION);
    let policy = |choices, is_active| Policy { choices, is_active, ..Policy::paper() };
    let ways = [
        ("none", Way::None),
        ("8", Way::KChoices(policy(8, false))),
        ("16", Way::KChoices(policy(16, false))),
        ("active-8", Way::KChoices(policy(8, true))),
        ("optimal", Way::Anywhere(policy(8, false), Weighing::ByCapacity)),
        ("optimal-plain", Way::Anywhere(policy(8, false), Weighing::Plain)),
    ];
    let all: Vec<(String, f64, Way)> = SKEWS
        .iter()
        .flat_map(|(skew, alpha)| ways.map(|(name, way)| (format!("{skew}/{name}"), *alpha, way)))
        .collect();
    let outcomes = crew::all(trial, &all, |(name, skew, way), progress| {
        measure(name, course.with_skew(*skew), *way, progress)
    });
    for ((name, ..), outcome) in all.iter().zip(&outcomes) {
        trial.number(format!("{name}/mismatch"), outcome.mismatch);
        trial.number(format!("{name}/mismatch-messages"), outcome.plain);
        trial.number(format!("{name}/success"), outcome.success);
    }
    for ((skew, _), outcomes) in SKEWS.iter().zip(outcomes.chunks(ways.len())) {
        let [none, eight, sixteen, _, optimal, _] = outcomes else { unreachable!("six ways") };
        let gap = |of: &Outcome| of.mismatch - optimal.mismatch;
        trial.number(format!("{skew}/gap-8"), gap(eight));
        trial.number(format!("{skew}/gap-16"), gap(sixteen));
        trial.truth(format!("{skew}/optimal-is-least"), gap(eight).min(gap(sixteen)) > 0.0);
        trial.truth(format!("{skew}/more-choices-come-nearer"), gap(sixteen) < gap(eight));
        // The part of what the optimal position gains that eight choices gain too.
        trial.number(
            format!("{skew}/reached-8"),
            (none.mismatch - eight.mismatch) / (none.mismatch - optimal.mismatch),
        );
    }
    Ok(())
}

fn measure(name: &str, course: Course, way: Way, progress: &Progress) -> Outcome {
    progress.say(name.to_owned());
    let scheme: Box<dyn Scheme> = match way {
        Way::None => Box::new(None),
        Way::KChoices(policy) => Box::new(KChoices::new(policy)),
        Way::Anywhere(policy, weighing) => Box::new(Anywhere { policy, weighing }),
    };
    let (mut samples, mut plain) = (Vec::new(), Vec::new());
    let total = course.watch(scheme, |network| {
        let policy = Policy::paper();
        let all = network.alive().iter().map(|machine| network.standing(&policy, *machine));
        let [mut by_capacity, mut in_messages] = [Vec::new(), Vec::new()];
        for standing in all {
            by_capacity.push(standing.mismatch());
            in_messages.push(standing.mismatch() * standing.capacity);
        }
        samples.push(spread(&by_capacity).0);
        plain.push(spread(&in_messages).0);
        progress.say(format!("{name}: {} of {} s", network.now, course.seconds));
    });
    Outcome { mismatch: spread(&samples).0, plain: spread(&plain).0, success: total.success() }
}

/// Machines that know the whole ring and may stand on any point of it. They do not move later, as k-Choices
/// in passive mode does not.
struct Anywhere {
    policy: Policy,
    weighing: Weighing,
}

impl Anywhere {
    /// The best point of the ring for one more server, and the work that is expected there.
    fn best(&self, network: &Network, own: MachineId, joiner: Standing) -> Option<(Position, f64)> {
        let mut best: Option<(f64, Position, f64)> = Option::None;
        for (after, id) in network.ring().iter() {
            let (server, work) = (network.server(id), network.work(id));
            let owner = network.owner(id);
            if owner == own || work <= 0.0 {
                continue;
            }
            let of = network.standing(&self.policy, owner);
            // What the joiner still wants, and what the successor wants of this server.
            let (take, keep) = (joiner.target - joiner.work, of.target - (of.work - work));
            let mut found = optimal(work, take, keep);
            if self.weighing == Weighing::ByCapacity {
                // With weights the least is where one of the two has what it wants.
                let cost = |share: f64| joiner.strain(share * work) + of.strain(-share * work);
                let [one, other] = [take / work, 1.0 - keep / work].map(|r| r.clamp(0.0, 1.0));
                found.share = if cost(one) <= cost(other) { one } else { other };
                found.cost = cost(found.share);
            }
            if best.is_none_or(|(cost, ..)| found.cost < cost)
                && let Some(position) = found.position(server.before, after)
            {
                best = Some((found.cost, position, found.share * work));
            }
        }
        best.map(|(_, position, work)| (position, work))
    }
}

impl Scheme for Anywhere {
    fn join(&mut self, network: &mut Network, machine: MachineId, is_active: bool, rng: &mut Rng) {
        if !is_active {
            return None.join(network, machine, is_active, rng);
        }
        let mut joining = Joining::new(&self.policy, network.machine(machine).capacity);
        while let Some(standing) = joining.next() {
            let Some((position, work)) = self.best(network, machine, standing) else { break };
            network.stand(machine, position, Option::None, Load::of(work));
            joining.joined(work);
        }
        if network.machine(machine).servers.is_empty() {
            None.join(network, machine, is_active, rng);
        }
    }

    fn check(&mut self, _: &mut Network, _: MachineId, _: &mut Rng) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{find, swarm::network::Wiring};

    #[test]
    fn a_small_run_measures_every_gap() {
        let report = find("K-E15").unwrap().run(0.1, &mut |_| ()).unwrap();
        assert!(report.differing().is_empty(), "{report}");
        assert!(report.rows.iter().all(|row| row.ours.is_some()), "{report}");
    }

    #[test]
    fn who_may_stand_anywhere_takes_half_of_who_has_twice_the_work() {
        for weighing in [Weighing::Plain, Weighing::ByCapacity] {
            let mut network = Network::new(Wiring::default(), 1);
            for (position, work) in [(0, 50.0), (1 << 62, 100.0), (1 << 63, 55.0)] {
                let machine = network.arrive(100.0);
                let place = Position(position);
                let server = network.stand(machine, place, Option::None, Load::default()).unwrap();
                network.shift_work(server, work);
            }
            let joiner = network.arrive(100.0);
            let policy = Policy::paper();
            let standing = network.standing(&policy, joiner);
            let (position, work) =
                Anywhere { policy, weighing }.best(&network, joiner, standing).unwrap();
            assert_eq!((position, work), (Position(1 << 61), 50.0));
        }
    }
}
