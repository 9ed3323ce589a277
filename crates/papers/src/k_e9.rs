//! What a move has to gain, and how far from its capacity a machine rests (figure 18).

use overlay::Policy;

use crate::{
    Failure, Trial,
    swarm::{
        contest::{ACTIONS, Contest, HOPS, SERVERS, SUCCESS},
        course::Course,
        scheme::Contender,
    },
};

/// ε.
const GAINS: [f64; 4] = [0.0, 0.25, 0.5, 1.0];
/// The upper and the lower bound, in parts of a capacity.
const BOUNDS: [(f64, f64); 3] = [(0.80, 0.20), (0.95, 0.05), (0.99, 0.01)];
/// The ε of the product is good if none is better by more than this.
const GOOD: f64 = 0.05;

/// Measures the figure.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let course = Course::trace(trial).with_skew(trial.constant("skew"));
    let mut contest = Contest::default();
    for gain_min in GAINS {
        for (upper, lower) in BOUNDS {
            let policy = Policy { gain_min, upper, lower, ..Policy::paper() };
            let name = format!("{upper}-{lower}/{gain_min}");
            contest.add(name, course, Contender::KChoices(policy));
        }
    }
    let outcomes = contest.run(trial, &[SUCCESS, HOPS, SERVERS, ACTIONS]);

    let gains = GAINS.map(|gain| outcomes.success(format!("0.95-0.05/{gain}")));
    let best = gains.into_iter().fold(0.0, f64::max);
    trial.number("best-less-a-quarter", best - gains[1]);
    trial.truth("a-quarter-is-good", best - gains[1] <= GOOD);
    let [narrow, wide] = ["0.8-0.2/0.25", "0.99-0.01/0.25"].map(|name| outcomes.get(name));
    trial.number("servers/wide-to-narrow", wide.servers_mean / narrow.servers_mean);
    trial.truth("wide-needs-fewer-servers", wide.servers_mean < narrow.servers_mean);
    trial.truth("wide-has-shorter-ways", wide.path() < narrow.path());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_figure_has_the_shape_that_the_plan_says() {
        check("K-E9", 0.03, &[]);
    }
}
