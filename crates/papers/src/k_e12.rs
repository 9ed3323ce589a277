//! Where Threshold loses its queries: at dead fingers, or at machines with too much to do (section VI-M).

use crate::{
    Failure, Trial,
    swarm::{
        contest::{Contest, Figure, HOPS, SUCCESS},
        course::{Course, Figures},
        scheme::Contender,
    },
};

/// Mean lives in minutes: the first and the last of figure 14.
const LIVES: [u32; 2] = [15, 240];
const STALE: Figure = ("stale", |figures| each_hop(figures, figures.total.stale));
const OVERLOAD: Figure = ("overload", |figures| each_hop(figures, figures.total.overloads));
const LOSS: Figure =
    ("loss", |figures| each_hop(figures, figures.total.stale + figures.total.overloads));

fn each_hop(figures: &Figures, lost: u64) -> f64 {
    lost as f64 / figures.total.hops.max(1) as f64
}

/// Measures both.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let mut contest = Contest::default();
    for life in LIVES {
        let course = Course::synthetic(trial, f64::from(60 * life));
        contest.add(life.to_string(), course, Contender::Threshold);
    }
    let outcomes = contest.run(trial, &[SUCCESS, HOPS, LOSS, STALE, OVERLOAD]);
    for life in LIVES {
        let total = &outcomes.get(life.to_string()).total;
        trial.truth(format!("{life}/overload-above-stale"), total.overloads > total.stale);
    }
    // The paper does not say of which life its numbers are.
    for what in ["loss", "stale", "overload"] {
        let of = LIVES.map(|life| trial.measured(&format!("{life}/{what}")));
        let papers = trial.printed(&format!("15/{what}"));
        trial.truth(format!("both/{what}/passes-the-paper"), of[1] < papers && papers < of[0]);
        trial.number(format!("both/{what}"), of.iter().sum::<f64>() / LIVES.len() as f64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_network_shows_what_the_plan_says() {
        check("K-E12", 0.1, &[]);
    }
}
