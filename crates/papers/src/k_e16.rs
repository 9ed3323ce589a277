//! A hundred thousand machines that come and go, under the product's policy: what it costs to simulate them.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures what the computer takes, which is not part of any decision"
)]

use std::time::Instant;

use overlay::Policy;

use crate::{
    Failure, Trial,
    swarm::{
        popularity::Popularity,
        population::{Capacities, Lives, population},
        scheme::KChoices,
        tally::Tally,
        world::{Setup, World},
    },
};

/// Measures one network at the plan's two rates of queries.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let [rate, busy, minutes] = ["rate", "busy_rate", "minutes"].map(|name| trial.constant(name));
    measure(trial, "", rate, minutes as u32);
    measure(trial, "busy/", busy, 1);
    Ok(())
}

fn measure(trial: &mut Trial, part: &str, rate: f64, minutes: u32) {
    let machines = trial.size("machines") as usize;
    let [skew, points, life, warm] =
        ["skew", "points", "life_s", "warm_s"].map(|name| trial.constant(name));
    let seconds = warm as u32 + 60 * minutes;
    let mut rng = trial.rng();
    let lives = Lives::Pareto { mean: life, correlation: 0.0 };
    let lives = population(machines, seconds, Capacities::Gnutella, lives, &mut rng);
    let popularity = Popularity::new(skew, points as usize, &mut rng);
    let setup = Setup { rate, seed: rng.next_u64(), activation: 10, ..Setup::default() };
    let scheme = Box::new(KChoices::new(Policy::default()));
    trial.say(&format!("{machines} machines come to stand"));
    let mut world = World::new(setup, lives, popularity, scheme);
    let start = Instant::now();
    for second in 0..warm as u32 {
        trial.say(&format!("warming up: {second} of {warm} s"));
        world.step();
    }
    let warmed = start.elapsed().as_secs_f64();
    let (start, before) = (Instant::now(), processor_s());
    let mut total = Tally::default();
    for minute in 0..minutes {
        trial.say(&format!("minute {minute} of {minutes}"));
        total += world.run(60);
    }
    let took = start.elapsed().as_secs_f64();
    let processor = processor_s() - before;
    let network = &world.network;
    let messages = (total.hops + total.maintenance) as f64;
    let mut number = |name: &str, value| trial.number(format!("{part}{name}"), value);
    number("wall/minute-s", took / f64::from(minutes));
    number("wall/processor-minute-s", processor / f64::from(minutes));
    number("wall/warm-up-s", warmed);
    number("wall/million-messages-a-second", messages / took / 1e6);
    number("wall/memory-mib", resident_mib());
    number("success", total.success());
    number("hops", total.path());
    number("utilisation-p95", network.utilisation_quantile(0.95));
    number("servers-each", network.ring().count() as f64 / machines as f64);
    number("deaths-and-births-a-second", total.churn as f64 / total.seconds as f64);
    number("actions-a-second", total.actions() as f64 / total.seconds as f64);
    number("stale-fingers", network.stale_fingers());
}

/// What the process has in memory, as Linux tells; nothing where nobody does.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

/// What the process has had of processors, in seconds, as Linux tells; nothing where nobody does.
fn processor_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program comes first, in brackets, and may have spaces; then the third field.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_network_runs_as_the_plan_says() {
        check("K-E16", 0.01, &[]);
    }
}
