//! Every scheme on the trace, as the load grows tenfold and tenfold again (figure 13).

use crate::{
    Failure, Trial,
    swarm::{
        contest::{Contest, HOPS, SERVERS_P95, SUCCESS},
        course::Course,
        scheme::Contender,
    },
};

/// κ in this figure.
const CHOICES: u32 = 16;
/// Queries of each machine in a second.
const RATES: [u32; 3] = [1, 10, 100];
const SKEWS: [(&str, f64); 2] = [("uniform", 0.0), ("zipf-1.2", 1.2)];
/// Baselines under which a machine can still prove that it may stand where it stands.
const VERIFIABLE: [&str; 3] = ["none", "log-n", "proportion"];

/// Measures the figure.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let trace = Course::trace(trial);
    let mut contest = Contest::default();
    for (name, skew) in SKEWS {
        let course = trace.with_skew(skew);
        for rate in RATES {
            for contender in Contender::all(CHOICES) {
                let course = course.with_rate(f64::from(rate));
                contest.add(format!("{name}/{rate}/{}", contender.name()), course, contender);
            }
        }
    }
    let classes = Course::classes(trial, trial.constant("life_s")).with_skew(1.2);
    for contender in Contender::all(CHOICES) {
        contest.add(format!("classes/10/{}", contender.name()), classes.with_rate(10.0), contender);
    }
    for choices in [8, 64] {
        let contender = Contender::passive(choices);
        contest.add(format!("uniform/10/passive-{choices}"), trace.with_rate(10.0), contender);
    }
    let outcomes = contest.run(trial, &[SUCCESS, HOPS, SERVERS_P95]);
    let success = |name: &str| outcomes.success(name);

    let is_last = |others: &[&str]| {
        let least = others.iter().map(|name| success(&format!("uniform/10/{name}")));
        least.fold(1.0, f64::min) > success("uniform/10/threshold")
    };
    let balancing = ["proportion", "transfer", "active"];
    let others = ["none", "log-n", "proportion", "transfer", "passive", "active"];
    trial.truth("uniform/threshold-last", is_last(&others));
    trial.truth("uniform/threshold-last-of-those-that-balance", is_last(&balancing));
    let servers = |name: &str| outcomes.get(format!("uniform/100/{name}")).servers_p95;
    let (proportion, transfer) = (servers("proportion"), servers("transfer"));
    trial.number("servers/proportion-to-transfer", proportion / transfer);
    trial.number("servers/transfer-to-active", transfer / servers("active"));
    let passive = ["uniform/10/passive", "uniform/100/passive"].map(success);
    trial.truth("uniform/passive-declines", passive[1] < passive[0]);
    let [eight, sixteen, more] =
        ["passive-8", "passive", "passive-64"].map(|name| success(&format!("uniform/10/{name}")));
    trial.number("uniform/passive-8-to-16", eight / sixteen);
    trial.number("uniform/passive-64-to-16", more / sixteen);
    trial.truth("uniform/more-choices-more-success", eight < sixteen && sixteen < more);

    let skewed = |name: &str| success(&format!("zipf-1.2/10/{name}"));
    let high = skewed("active").min(skewed("transfer"));
    let is_high = |name: &&str| skewed(name) < high;
    trial.truth(
        "zipf-1.2/two-are-high",
        ["none", "log-n", "proportion", "threshold", "passive"].iter().all(is_high),
    );
    trial.truth("zipf-1.2/log-n-below-none", skewed("log-n") < skewed("none"));
    for heat in ["classes/10", "zipf-1.2/1", "zipf-1.2/10", "zipf-1.2/100"] {
        let active = success(&format!("{heat}/active"));
        let best = VERIFIABLE.map(|name| success(&format!("{heat}/{name}"))).into_iter();
        let best = best.fold(0.0, f64::max);
        trial.number(format!("{heat}/ahead-of-verifiable"), active - best);
        trial.truth(format!("{heat}/is-ahead-of-verifiable"), active > best);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_figure_has_the_shape_that_the_plan_says_but_that_threshold_is_not_last() {
        check("K-E3", 0.01, &["uniform/threshold-last"]);
    }
}
