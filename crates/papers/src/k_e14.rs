//! Success over time: Threshold's against the length of its ways, Transfer's against births and deaths
//! (sections VI-M and VI-N, figures 20 to 22).

use crate::{
    Failure, Trial,
    swarm::{
        contest::{Contest, SUCCESS},
        course::{Course, Figures},
        scheme::Contender,
        tally::{Tally, correlation},
    },
};

/// A correlation of less is none.
const MATTERS: f64 = 0.1;

/// Measures both.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let mut contest = Contest::default();
    let threshold = Course::synthetic(trial, trial.constant("life_s"));
    let transfer = Course::trace(trial).with_skew(trial.constant("skew"));
    contest.add("threshold", threshold, Contender::Threshold);
    contest.add("transfer", transfer, Contender::Transfer);
    // Ablations: machines that can do little, and machines that come and go together.
    let classes = Course::classes(trial, trial.constant("life_s"));
    contest.add("classes/threshold", classes, Contender::Threshold);
    let bursts = transfer.in_bursts(trial.constant("burst_s") as u32);
    contest.add("bursts/transfer", bursts, Contender::Transfer);
    let outcomes = contest.run(trial, &[SUCCESS]);

    let threshold = outcomes.get("threshold");
    let (with_hops, hops) = with_hops(threshold);
    trial.number("threshold/correlation-with-hops", with_hops);
    let over_time = |values: &[f64]| -> Vec<[f64; 2]> {
        (0u32..).zip(values).map(|(minute, value)| [f64::from(minute), *value]).collect()
    };
    trial.curve("threshold/success", over_time(&threshold.successes()));
    trial.curve("threshold/hops", over_time(&hops));

    let (with_hops, _) = self::with_hops(outcomes.get("classes/threshold"));
    trial.number("classes/threshold/correlation-with-hops", with_hops);
    trial.truth("classes/threshold/falls-with-hops", with_hops <= -MATTERS);

    let transfer = outcomes.get("transfer");
    let (with_churn, churn) = with_churn(transfer);
    trial.number("transfer/deviation", transfer.unrest());
    trial.curve("transfer/success", over_time(&transfer.successes()));
    trial.curve("transfer/churn", over_time(&churn));
    trial.number("transfer/correlation-of-change-and-churn", with_churn);
    let (with_churn, _) = self::with_churn(outcomes.get("bursts/transfer"));
    trial.number("bursts/transfer/correlation-of-change-and-churn", with_churn);
    trial.truth("bursts/transfer/changes-with-churn", with_churn >= MATTERS);
    Ok(())
}

/// How success goes with the length of ways, and that length in each minute.
fn with_hops(figures: &Figures) -> (f64, Vec<f64>) {
    let hops: Vec<f64> = figures.windows.iter().map(Tally::path).collect();
    (correlation(&figures.successes(), &hops), hops)
}

/// How changes of success go with the servers that come and go, and how many do in each minute but the first.
fn with_churn(figures: &Figures) -> (f64, Vec<f64>) {
    let changes = figures.successes();
    let changes: Vec<f64> = changes.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let churn: Vec<f64> =
        figures.windows.iter().skip(1).map(|window| window.churn as f64).collect();
    (correlation(&changes, &churn), churn)
}

#[cfg(test)]
mod tests {
    use crate::{Verdict, registry::tests::check};

    #[test]
    fn a_small_network_differs_in_both_and_ablations_show_why() {
        let report = check("K-E14", 0.06, &[]);
        assert_eq!(report.count(Verdict::Explained), 2, "{report}");
    }
}
