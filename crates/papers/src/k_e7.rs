//! Downloads over narrow and wide lines, with and without k-Choices at the join (Table II).

mod lines;
mod pastry;

use base::Rng;

use crate::{
    Failure, Trial,
    swarm::{crew, tally::spread},
};

use lines::{Load, downloads};
use pastry::{Pastry, View};

/// The lines of the testbed in megabits a second, a quarter of the machines each.
const CLASSES: [(&str, f64); 4] = [("0.4", 0.4), ("1", 1.0), ("4", 4.0), ("40", 40.0)];

/// One trial: how many positions a machine chooses among and by which view, what a message weighs, and the seed.
struct Run {
    choices: u32,
    view: View,
    octets: f64,
    seed: u64,
}

/// What came out of it: downloads and parts of the ring by class, hops, and the interval at the end.
struct Outcome {
    downloads: [f64; CLASSES.len()],
    parts: [f64; CLASSES.len()],
    hops: f64,
    interval: f64,
}

/// Measures the table: with as many octets as fit its total, the same where those who join see what one machine
/// knows, and with downloads as the paper says.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let seconds = trial.duration("seconds") as u32;
    let [machines, choices, trials, literal, fitted] =
        ["machines", "choices", "trials", "octets", "octets_fitted"]
            .map(|name| trial.constant(name));
    let seeds: Vec<u64> = {
        let mut rng = trial.rng();
        (0..trials as u32).map(|_| rng.next_u64()).collect()
    };
    let sets = [
        ("fitted", fitted, View::Ring),
        ("bootstrap", fitted, View::Bootstrap),
        ("literal", literal, View::Ring),
    ];
    let runs: Vec<Run> = sets
        .iter()
        .flat_map(|(_, octets, view)| [1, choices as u32].map(|choices| (*octets, *view, choices)))
        .flat_map(|(octets, view, choices)| {
            seeds.iter().map(move |seed| Run { choices, view, octets, seed: *seed })
        })
        .collect();
    let outcomes = crew::all(trial, &runs, |run, progress| {
        progress.say(format!("κ = {}, {} octets", run.choices, run.octets));
        let mut rng = Rng::new(run.seed);
        let mut bandwidths: Vec<f64> =
            (0..machines as usize).map(|at| CLASSES[at % CLASSES.len()].1).collect();
        rng.shuffle(&mut bandwidths);
        let pastry = Pastry::new(&bandwidths, run.choices, run.view, &mut rng);
        let load = Load { octets: run.octets, seconds };
        let done = downloads(&pastry, &bandwidths, load, &mut rng);
        let of = |values: &[f64], class: f64| {
            let by = values.iter().zip(&bandwidths);
            by.filter(|(_, of)| **of == class).map(|(value, _)| value).sum::<f64>()
        };
        let answered: Vec<f64> = done.answered.iter().map(|count| f64::from(*count)).collect();
        let parts = pastry.parts();
        Outcome {
            downloads: CLASSES.map(|(_, class)| of(&answered, class)),
            parts: CLASSES.map(|(_, class)| of(&parts, class)),
            hops: done.hops,
            interval: done.interval,
        }
    });
    for ((name, ..), outcomes) in sets.iter().zip(outcomes.chunks(2 * seeds.len())) {
        let (without, with) = outcomes.split_at(seeds.len());
        let mean = |runs: &[Outcome], of: &dyn Fn(&Outcome) -> f64| {
            spread(&runs.iter().map(of).collect::<Vec<_>>()).0
        };
        let (mut totals, mut gains) = (Vec::new(), Vec::new());
        for (class, (word, _)) in CLASSES.iter().enumerate() {
            let [before, after] =
                [without, with].map(|runs| mean(runs, &|outcome| outcome.downloads[class]));
            trial.number(format!("{name}/{word}/without"), before);
            trial.number(format!("{name}/{word}/with"), after);
            trial.number(format!("{name}/{word}/gain"), after / before - 1.0);
            trial
                .number(format!("{name}/{word}/part"), mean(with, &|outcome| outcome.parts[class]));
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
        trial.number(format!("{name}/hops"), spread(&[with[0].hops, without[0].hops]).0);
        trial.number(format!("{name}/interval-at-the-end-s"), without[0].interval);
    }
    // How much of the ring joiners see is the difference between these two, and the paper's build is one of those
    // that see less than all.
    let both = |trial: &Trial, what: &str| {
        ["fitted", "bootstrap"].map(|name| trial.measured(&format!("{name}/{what}")))
    };
    let [all, part] = both(trial, "40/part");
    trial.truth("bootstrap/favours-wide-less", part < all);
    for what in ["total", "0.4", "1", "4", "40"] {
        let [all, part] = both(trial, &format!("{what}/gain"));
        let papers = trial.printed(&format!("fitted/{what}/gain"));
        trial.truth(format!("bootstrap/{what}/passes-the-paper"), part < papers && papers < all);
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
