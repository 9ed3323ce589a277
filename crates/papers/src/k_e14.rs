//! Success over time: Threshold's against the length of its ways, Transfer's against births and deaths
//! (sections VI-M and VI-N, figures 20 to 22).

use crate::{
    Failure, Trial,
    swarm::{
        contest::{Contest, SUCCESS},
        course::Course,
        scheme::Contender,
        tally::{Tally, correlation},
    },
};

/// Measures both.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let mut contest = Contest::default();
    let threshold = Course::synthetic(trial, trial.constant("life_s"));
    let transfer = Course::trace(trial).with_skew(trial.constant("skew"));
    contest.add("threshold", threshold, Contender::Threshold);
    contest.add("transfer", transfer, Contender::Transfer);
    let outcomes = contest.run(trial, &[SUCCESS]);

    let threshold = outcomes.get("threshold");
    let hops: Vec<f64> = threshold.windows.iter().map(Tally::path).collect();
    let with_hops = correlation(&threshold.successes(), &hops);
    trial.number("threshold/correlation-with-hops", with_hops);
    let over_time = |values: &[f64]| -> Vec<[f64; 2]> {
        (0u32..).zip(values).map(|(minute, value)| [f64::from(minute), *value]).collect()
    };
    trial.curve("threshold/success", over_time(&threshold.successes()));
    trial.curve("threshold/hops", over_time(&hops));

    let transfer = outcomes.get("transfer");
    let changes: Vec<f64> =
        transfer.successes().windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let churn: Vec<f64> =
        transfer.windows.iter().skip(1).map(|window| window.churn as f64).collect();
    trial.number("transfer/deviation", transfer.unrest());
    trial.curve("transfer/success", over_time(&transfer.successes()));
    trial.curve("transfer/churn", over_time(&churn));
    trial.number("transfer/correlation-of-change-and-churn", correlation(&changes, &churn));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::find;

    #[test]
    fn a_small_network_measures_both_and_neither_is_as_the_plan_says() {
        let report = find("K-E14").unwrap().run(0.06, &mut |_| ()).unwrap();
        let both = ["threshold/correlation-with-hops", "transfer/correlation-of-change-and-churn"];
        assert_eq!(report.differing(), both, "{report}");
    }
}
