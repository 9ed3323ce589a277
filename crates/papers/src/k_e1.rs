//! Skew and unequal distances without balancing: what success is left (Table I).

use crate::{
    Failure, Trial,
    swarm::{
        crew::{self, Progress},
        popularity::Popularity,
        population::{Capacities, Lives, population},
        scheme::{Even, None, Scheme},
        tally::{Tally, correlation},
        world::{Setup, World},
    },
};

/// The skews of the table, by the names of its rows.
const SKEWS: [(&str, f64); 4] =
    [("uniform", 0.0), ("zipf-0.8", 0.8), ("zipf-1.2", 1.2), ("zipf-2.4", 2.4)];

/// One cell of the table.
struct Cell {
    name: String,
    skew: f64,
    is_even: bool,
}

/// What came out.
struct Outcome {
    tally: Tally,
    /// r² of a machine's part of the ring and its utilisation.
    r2: f64,
    utilisation_max: f64,
    utilisation_mean: f64,
    gap_max: f64,
    /// A machine's part of the ring, by that of the mean machine, and its utilisation; some of them.
    cloud: Vec<[f64; 2]>,
}

/// One machine in so many is drawn.
const DRAWN: usize = 8;

/// Measures the table.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let cells: Vec<Cell> = SKEWS
        .into_iter()
        .flat_map(|(name, skew)| {
            let cell = |word, is_even| Cell { name: format!("{name}/{word}"), skew, is_even };
            [cell("random", false), cell("balanced", true)]
        })
        .collect();
    let seconds = trial.duration("seconds") as u32;
    let [machines, points, capacity, rate] =
        ["machines", "points", "capacity", "rate"].map(|name| trial.constant(name));
    let seed = trial.rng().next_u64();
    let outcomes = crew::all(trial, &cells, |cell, progress| {
        measure(cell, (machines as u32, points as usize), (capacity, rate), seconds, seed, progress)
    });
    for (cell, outcome) in cells.iter().zip(&outcomes) {
        let name = &cell.name;
        trial.number(format!("{name}/success"), outcome.tally.success());
        if !cell.is_even {
            trial.number(format!("{name}/r2"), outcome.r2);
            trial.curve(format!("{name}/cloud"), outcome.cloud.clone());
        }
    }
    let [random, balanced] = [&outcomes[0], &outcomes[1]];
    trial.number("uniform/random/utilisation-max", random.utilisation_max);
    trial.number("uniform/random/gap-max", random.gap_max);
    trial.number("uniform/balanced/utilisation-mean", balanced.utilisation_mean);
    trial.number("uniform/balanced/hops", balanced.tally.path());
    let r2: Vec<f64> = outcomes.iter().step_by(2).map(|outcome| outcome.r2).collect();
    trial.truth("random/r2-falls", r2.is_sorted_by(|one, other| one > other));
    Ok(())
}

fn measure(
    cell: &Cell,
    (machines, points): (u32, usize),
    (capacity, rate): (f64, f64),
    seconds: u32,
    seed: u64,
    progress: &Progress,
) -> Outcome {
    progress.say(format!("{}: {machines} machines, {seconds} s", cell.name));
    let mut rng = base::Rng::new(seed);
    let capacities = Capacities::Equal(capacity);
    let lives = population(machines as usize, seconds, capacities, Lives::Endless, &mut rng);
    let popularity = Popularity::new(cell.skew, points, &mut rng);
    let scheme: Box<dyn Scheme> =
        if cell.is_even { Box::new(Even(machines)) } else { Box::new(None) };
    let mut world = World::new(Setup { rate, seed, ..Setup::default() }, lives, popularity, scheme);
    let tally = world.run(seconds);
    let network = &world.network;
    let servers = || network.ring().iter().map(|(_, server)| server);
    let shares: Vec<f64> = servers().map(|server| network.share(server)).collect();
    let utilisations: Vec<f64> =
        servers().map(|server| network.utilisation(network.owner(server))).collect();
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    Outcome {
        tally,
        r2: correlation(&shares, &utilisations).powi(2),
        utilisation_max: most(&utilisations),
        utilisation_mean: utilisations.iter().sum::<f64>() / utilisations.len() as f64,
        gap_max: most(&shares),
        cloud: {
            let all = shares.iter().zip(&utilisations).step_by(DRAWN);
            all.map(|(share, used)| [share * f64::from(machines), *used]).collect()
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::{find, registry::tests::check};

    #[test]
    fn the_table_comes_out_as_the_plan_says() {
        check("K-E1", 0.1, &[]);
    }

    #[test]
    fn the_table_is_the_same_each_time_whoever_runs_first() {
        let run = || find("K-E1").unwrap().run(0.03, &mut |_| ()).unwrap().to_json();
        assert_eq!(run(), run());
    }
}
