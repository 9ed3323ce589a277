//! Every scheme as machines stay for a shorter or longer time, and what balancing adds to churn (figure 14).

use crate::{
    Failure, Trial,
    swarm::{
        contest::{ACTIONS, Contest, HOPS, SERVERS, SUCCESS},
        course::Course,
        scheme::Contender,
    },
};

/// κ, as everywhere where the paper says nothing else.
const CHOICES: u32 = 8;
/// Mean lives in minutes.
const LIVES: [u32; 3] = [15, 60, 240];
const SKEWS: [(&str, f64); 2] = [("uniform", 0.0), ("zipf-1.2", 1.2)];

/// Who answers at most so much less than another keeps up with it.
const KEEPS_UP: f64 = 0.1;

/// How much busier than k-Choices Proportion may be, where the paper has 5 to 10 times.
const EAGER: std::ops::RangeInclusive<f64> = 3.0..=15.0;

/// Measures the figure.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let mut contest = Contest::default();
    for (name, skew) in SKEWS {
        for life in LIVES {
            let course = Course::synthetic(trial, f64::from(60 * life)).with_skew(skew);
            for contender in Contender::all(CHOICES) {
                contest.add(format!("{name}/{life}/{}", contender.name()), course, contender);
            }
        }
    }
    // An ablation: what the paper's two conditions of Proportion may mean.
    for life in LIVES {
        let course = Course::synthetic(trial, f64::from(60 * life));
        contest.add(format!("uniform/{life}/eager"), course, Contender::Eager);
    }
    let outcomes = contest.run(trial, &[SUCCESS, HOPS, SERVERS, ACTIONS]);

    let success = |name: &str| outcomes.success(format!("zipf-1.2/15/{name}"));
    let others = ["none", "log-n", "proportion", "transfer", "threshold", "passive"];
    let best = others.map(success).into_iter().fold(0.0, f64::max);
    trial.number("zipf-1.2/15/active-less-best-other", success("active") - best);
    trial.truth("zipf-1.2/15/active-first", success("active") > best);
    let churn = |skew: &str, name: &str| {
        let actions = |name: &str| {
            let all = LIVES.map(|life| outcomes.get(format!("{skew}/{life}/{name}")).actions());
            all.iter().sum::<f64>()
        };
        actions(name) / actions("active")
    };
    for (skew, _) in SKEWS {
        for name in ["transfer", "proportion"] {
            trial.number(format!("{skew}/churn/{name}-to-active"), churn(skew, name));
        }
    }
    let ratio = churn("uniform", "eager");
    trial.number("uniform/churn/eager-to-active", ratio);
    trial.truth("eager/as-busy-as-the-paper", EAGER.contains(&ratio));
    let keeps_up = |name: &str| {
        let success = |name: &str| outcomes.success(format!("uniform/15/{name}"));
        success(name) > success("active") - KEEPS_UP
    };
    let keep_up = keeps_up("transfer") && keeps_up("proportion");
    trial.truth("uniform/15/transfer-and-proportion-keep-up", keep_up);
    for (skew, _) in SKEWS {
        let threshold = LIVES.map(|life| outcomes.get(format!("{skew}/{life}/threshold")));
        let falls = threshold.is_sorted_by(|one, next| one.success() > next.success());
        let rises = threshold.is_sorted_by(|one, next| one.path() < next.path());
        trial.truth(format!("{skew}/threshold-falls"), falls);
        trial.truth(format!("{skew}/threshold-hops-rise"), rises);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_figure_has_the_shape_that_the_plan_says_but_for_churn_and_threshold() {
        let known = [
            "uniform/churn/transfer-to-active",
            "uniform/threshold-falls",
            "uniform/threshold-hops-rise",
        ];
        check("K-E4", 0.06, &known);
    }
}
