//! Downloads over narrow and wide lines, with and without k-Choices at the join (Table II).

mod lines;
mod pastry;

use base::Rng;

use crate::{
    Failure, Trial,
    swarm::{crew, tally::spread},
};

use lines::{Load, downloads};
use pastry::Pastry;

/// The lines of the testbed in megabits a second, a quarter of the machines each.
const CLASSES: [(&str, f64); 4] = [("0.4", 0.4), ("1", 1.0), ("4", 4.0), ("40", 40.0)];

/// One trial: how many positions a machine chooses among, what a download weighs, and the seed.
struct Run {
    choices: u32,
    octets: f64,
    seed: u64,
}

/// Measures the table, once with downloads as the paper says and once with as many octets as fit its totals.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let seconds = trial.duration("seconds") as u32;
    let [machines, choices, trials, literal, fitted] =
        ["machines", "choices", "trials", "octets", "octets_fitted"]
            .map(|name| trial.constant(name));
    let seeds: Vec<u64> = {
        let mut rng = trial.rng();
        (0..trials as u32).map(|_| rng.next_u64()).collect()
    };
    let sizes = [("fitted", fitted), ("literal", literal)];
    let runs: Vec<Run> = sizes
        .iter()
        .flat_map(|(_, octets)| [1, choices as u32].map(|choices| (*octets, choices)))
        .flat_map(|(octets, choices)| {
            seeds.iter().map(move |seed| Run { choices, octets, seed: *seed })
        })
        .collect();
    let outcomes = crew::all(trial, &runs, |run, progress| {
        progress.say(format!("κ = {}, {} octets", run.choices, run.octets));
        let mut rng = Rng::new(run.seed);
        let mut bandwidths: Vec<f64> =
            (0..machines as usize).map(|at| CLASSES[at % CLASSES.len()].1).collect();
        rng.shuffle(&mut bandwidths);
        let pastry = Pastry::new(&bandwidths, run.choices, &mut rng);
        let load = Load { octets: run.octets, seconds };
        let done = downloads(&pastry, &bandwidths, load, &mut rng);
        let of = |class: f64| {
            let by = done.answered.iter().zip(&bandwidths);
            by.filter(|(_, of)| **of == class).map(|(count, _)| f64::from(*count)).sum::<f64>()
        };
        (CLASSES.map(|(_, class)| of(class)), done.hops, done.interval)
    });
    for ((name, _), outcomes) in sizes.iter().zip(outcomes.chunks(2 * seeds.len())) {
        let (without, with) = outcomes.split_at(seeds.len());
        let mean = |runs: &[([f64; 4], f64, f64)], class: usize| {
            spread(&runs.iter().map(|(classes, ..)| classes[class]).collect::<Vec<_>>()).0
        };
        let (mut totals, mut gains) = (Vec::new(), Vec::new());
        for (class, (word, _)) in CLASSES.iter().enumerate() {
            let (before, after) = (mean(without, class), mean(with, class));
            trial.number(format!("{name}/{word}/without"), before);
            trial.number(format!("{name}/{word}/with"), after);
            trial.number(format!("{name}/{word}/gain"), after / before - 1.0);
            gains.push(after / before);
            totals.push((before, after));
        }
        let before: f64 = totals.iter().map(|(before, _)| before).sum();
        let after: f64 = totals.iter().map(|(_, after)| after).sum();
        trial.number(format!("{name}/total/without"), before);
        trial.number(format!("{name}/total/with"), after);
        trial.number(format!("{name}/total/gain"), after / before - 1.0);
        let slowest = gains.iter().skip(1).all(|gain| *gain < gains[0]);
        trial.truth(format!("{name}/slowest-gains-most"), slowest);
        trial.truth(format!("{name}/gains"), after > before);
        trial.truth(format!("{name}/every-class-gains"), gains.iter().all(|gain| *gain > 1.0));
        trial.number(format!("{name}/hops"), spread(&[with[0].1, without[0].1]).0);
        trial.number(format!("{name}/interval-at-the-end-s"), without[0].2);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Verdict, find};

    #[test]
    fn ten_minutes_measure_every_row_and_more_comes_through_full_lines() {
        let report = find("K-E7").unwrap().run(0.17, &mut |_| ()).unwrap();
        assert!(report.rows.iter().all(|row| row.ours.is_some()), "{report}");
        let gain = report.rows.iter().find(|row| row.name == "fitted/gains").unwrap();
        assert_eq!(gain.verdict, Verdict::Holds, "{report}");
    }
}
