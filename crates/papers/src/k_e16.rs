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
        tally::{Tally, quantile},
        world::{Setup, World},
    },
};

/// Measures one network.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let machines = trial.size("machines") as usize;
    let [rate, skew, points, life, warm, minutes] =
        ["rate", "skew", "points", "life_s", "warm_s", "minutes"].map(|name| trial.constant(name));
    let seconds = warm as u32 + 60 * minutes as u32;
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
    let start = Instant::now();
    let mut total = Tally::default();
    for minute in 0..minutes as u32 {
        trial.say(&format!("minute {minute} of {minutes}"));
        total += world.run(60);
    }
    let took = start.elapsed().as_secs_f64();
    let network = &world.network;
    let mut utilisations: Vec<f64> =
        network.alive().iter().map(|machine| network.utilisation(*machine)).collect();
    trial.number("wall/minute-s", took / minutes);
    trial.number("wall/warm-up-s", warmed);
    trial.number(
        "wall/million-messages-a-second",
        (total.hops + total.maintenance) as f64 / took / 1e6,
    );
    trial.number("wall/memory-mib", resident_mib());
    trial.number("success", total.success());
    trial.number("hops", total.path());
    trial.number("utilisation-p95", quantile(&mut utilisations, 0.95));
    trial.number("servers-each", network.ring().count() as f64 / machines as f64);
    trial.number("deaths-and-births-a-second", total.churn as f64 / total.seconds as f64);
    trial.number("actions-a-second", total.actions() as f64 / total.seconds as f64);
    trial.number("stale-fingers", network.stale_fingers());
    Ok(())
}

/// What the process has in memory, as Linux tells; nothing where nobody does.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

#[cfg(test)]
mod tests {
    use crate::{Verdict, find};

    #[test]
    fn a_small_network_runs_as_the_plan_says() {
        let report = find("K-E16").unwrap().run(0.01, &mut |_| ()).unwrap();
        assert_eq!(report.verdict, Verdict::Holds, "{report}");
    }
}
