//! Whether a formula foretells success: the part of the ring below its capacity, to the power of the hops (K21).

use crate::{
    Failure, Trial,
    swarm::{
        network::Network,
        popularity::Popularity,
        population::{Capacities, Lives, population},
        scheme::None,
        tally::{correlation, spread},
        world::{Setup, World},
    },
};

/// Measures one second of a network, twenty queries after twenty queries.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let machines = trial.size("machines") as usize;
    let [capacity, rate, warm, seconds, window] =
        ["capacity", "rate", "warm_s", "watched_s", "window"].map(|name| trial.constant(name));
    let mut rng = trial.rng();
    let all_s = (warm + seconds) as u32;
    let lives = population(machines, all_s, Capacities::Equal(capacity), Lives::Endless, &mut rng);
    let setup = Setup { rate, seed: rng.next_u64(), ..Setup::default() };
    let mut world = World::new(setup, lives, Popularity::Uniform, Box::new(None));
    for second in 0..warm as u32 {
        trial.say(&format!("second {second} of {all_s}"));
        world.step();
    }
    let hops = (machines as f64).log2() / 2.0;
    let (mut estimates, mut averages, mut last) = (Vec::new(), Vec::new(), Vec::new());
    for second in 0..seconds as u32 {
        trial.say(&format!("watching second {second} of {seconds}"));
        let (mut expected, mut before) = (open_part(&world.network).powf(hops), (0, 0));
        let mut averages_here = Vec::new();
        world.step_watched(&mut |network| {
            let now = (network.tally.queries, network.tally.answered);
            let asked = now.0 - before.0;
            if asked > 0 {
                // What was expected before these queries, and what came of them.
                estimates.push(expected);
                averages_here.push((now.1 - before.1) as f64 / asked as f64);
            }
            (expected, before) = (open_part(network).powf(hops), now);
        });
        last = averages_here.clone();
        averages.extend(averages_here);
    }
    trial.number("correlation", correlation(&estimates, &averages));
    let smooth = |values: &[f64]| -> Vec<f64> {
        values.chunks(window as usize).map(|chunk| spread(chunk).0).collect()
    };
    let curves = [("estimate", smooth(&estimates)), ("answered", smooth(&averages))];
    trial.number("correlation-of-means", correlation(&curves[0].1, &curves[1].1));
    for (name, points) in curves {
        let points = (0u32..).zip(points).map(|(at, point)| [f64::from(at), point]);
        trial.curve(name, points.collect());
    }
    trial.number("estimate-mean", spread(&estimates).0);
    trial.number("success-mean", spread(&averages).0);
    trial.number("success-at-the-start", spread(&last[..last.len() / 10]).0);
    trial.number("success-at-the-end", spread(&last[last.len() - last.len() / 10..]).0);
    trial.number("twenties", averages.len() as f64);
    Ok(())
}

/// The part of the ring whose machines can still do something in this second.
fn open_part(network: &Network) -> f64 {
    let open = network.ring().iter().filter(|(_, server)| {
        let machine = network.owner(*server);
        !network.is_spent(machine)
    });
    open.map(|(_, server)| network.share(server)).sum()
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_quarter_of_the_network_already_does_as_the_formula_says() {
        check("K-E8", 0.25, &[]);
    }
}
