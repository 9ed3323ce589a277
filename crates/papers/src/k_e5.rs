//! What was popular is so no longer: how deep a scheme falls, and how soon it is back (figure 15).

use overlay::Policy;

use crate::{
    Failure, Trial,
    swarm::{
        course::{Course, Figures, WINDOW},
        crew,
        scheme::Contender,
        tally::spread,
    },
};

/// κ, as everywhere where the paper says nothing else.
const CHOICES: u32 = 8;
/// Being back is to be within so much of the success before.
const BACK: f64 = 0.1;
/// How many windows together have to be back: one alone may be so by chance.
const STEADY: usize = 3;

/// The least that counts as the paper's ten times as busy.
const BUSY_MIN: f64 = 5.0;

/// Measures the figure.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let course = Course::trace(trial).with_skew(trial.constant("skew"));
    let mut contenders =
        Contender::all(CHOICES).map(|contender| (contender.name(), contender)).to_vec();
    // An ablation: any gain is enough to move.
    let eager = Policy { choices: CHOICES, gain_min: 0.0, ..Policy::paper() };
    contenders.push(("eager", Contender::KChoices(eager)));
    let results = crew::all(trial, &contenders, |(name, contender), progress| {
        progress.say(format!("{name} begins"));
        let mut world = course.begin(contender.scheme(course.machines));
        world.run(course.seconds / 4);
        let before = Figures::of(&mut world, course.seconds / 4);
        world.shift();
        let after = Figures::of(&mut world, course.seconds / 2);
        progress.say(format!("{name}: {:.3} then {:.3}", before.success(), after.success()));
        (before, after)
    });
    let result = |name: &str| {
        let at = contenders.iter().position(|(other, _)| *other == name);
        &results[at.expect("all have run")]
    };
    for ((name, _), (before, after)) in contenders.iter().zip(&results) {
        for (when, figures) in [("before", before), ("after", after)] {
            trial.number(format!("{name}/{when}/success"), figures.success());
            trial.number(format!("{name}/{when}/hops"), figures.path());
            trial.number(format!("{name}/{when}/actions"), figures.actions());
        }
        trial.number(format!("{name}/minutes-to-be-back"), minutes_to_be_back(before, after));
        let start = course.seconds / 4 / WINDOW;
        let successes = [before.successes(), after.successes()].concat();
        let minutes = (start..).map(|window| f64::from(window * WINDOW) / 60.0);
        let points = minutes.zip(successes).map(|(minute, success)| [minute, success]);
        trial.curve(format!("{name}/success"), points.collect());
    }
    let ((before, after), (passive, _)) = (result("active"), result("passive"));
    trial.truth("active/longer-ways", before.path() < after.path());
    trial.number("active-less-passive", before.success() - passive.success());
    trial.number("activity/active-to-passive", activity(before) / activity(passive));
    let eager = activity(&result("eager").0) / activity(passive);
    trial.number("activity/eager-to-passive", eager);
    trial.truth("activity/eager-as-the-paper", eager >= BUSY_MIN);
    Ok(())
}

/// Until success is steadily as it was; as long as the run if it never is.
fn minutes_to_be_back(before: &Figures, after: &Figures) -> f64 {
    let bound = before.success() - BACK;
    let successes = after.successes();
    let is_back = |windows: &[f64]| spread(windows).0 >= bound;
    let at = successes.windows(STEADY).position(is_back).unwrap_or(successes.len());
    at as f64 * f64::from(WINDOW) / 60.0
}

/// What happens to servers, of its own accord or not.
fn activity(figures: &Figures) -> f64 {
    (figures.total.actions() + figures.total.churn) as f64
}

#[cfg(test)]
mod tests {
    use crate::{Verdict, registry::tests::check};

    #[test]
    fn a_small_figure_has_the_shape_that_the_plan_says_but_that_servers_are_less_busy_and_why() {
        let report = check("K-E5", 0.03, &[]);
        assert_eq!(report.count(Verdict::Explained), 1, "{report}");
    }
}
