//! How many choices are enough: utilisation as κ grows, passive and active (figure 12).

use overlay::Policy;

use crate::{
    Failure, Trial,
    swarm::{
        course::Course,
        crew::{self, Progress},
        scheme::KChoices,
        tally::spread,
    },
};

/// The numbers of choices; with one there is nothing to choose, and active is passive.
const CHOICES: [u32; 7] = [1, 2, 4, 8, 16, 64, 256];
const SKEWS: [(&str, f64); 2] = [("uniform", 0.0), ("zipf-1.2", 1.2)];

/// One point of the figure.
struct Point {
    name: String,
    skew: f64,
    policy: Policy,
}

/// Measures the figure.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let course = Course::classes(trial, trial.constant("life_s"));
    let points = points();
    let outcomes = crew::all(trial, &points, |point, progress| {
        measure(point, course.with_skew(point.skew), progress)
    });
    for (point, (p95, success)) in points.iter().zip(&outcomes) {
        trial.number(format!("{}/p95", point.name), *p95);
        trial.number(format!("{}/success", point.name), *success);
    }
    let p95 = |name: String| {
        let at = points.iter().position(|point| point.name == name);
        outcomes[at.expect("every point is measured")].0
    };
    for (skew, _) in SKEWS {
        let none = p95(format!("{skew}/passive/1"));
        let [active, passive] = ["active", "passive"].map(|mode| {
            CHOICES[1..].iter().map(|k| p95(format!("{skew}/{mode}/{k}"))).collect::<Vec<_>>()
        });
        // Eight is the third of those with a choice, 256 the last.
        trial.number(format!("{skew}/active/8-to-1"), active[2] / none);
        trial.number(format!("{skew}/active/8-less-256"), (active[2] - active[5]) / none);
        let falls = |modes: &[f64]| modes[0] < none && modes.is_sorted_by(|one, next| one > next);
        trial.truth(format!("{skew}/active/falls"), falls(&active));
        trial.truth(format!("{skew}/passive/falls"), falls(&passive));
        trial.number(format!("{skew}/passive/256-to-1"), passive[5] / none);
        let is_ahead = active.iter().zip(&passive).all(|(active, passive)| active < passive);
        trial.truth(format!("{skew}/active-below-passive"), is_ahead);
    }
    let skewed = p95("zipf-1.2/active/8".into());
    trial.truth("skew-lowers-p95", skewed < p95("uniform/active/8".into()));
    Ok(())
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for (name, skew) in SKEWS {
        for choices in CHOICES {
            for (mode, is_active) in [("passive", false), ("active", true)] {
                if choices > 1 || !is_active {
                    let policy = Policy { choices, is_active, ..Policy::paper() };
                    points.push(Point { name: format!("{name}/{mode}/{choices}"), skew, policy });
                }
            }
        }
    }
    points
}

/// The 95th percentile of utilisation in the second half of the run, and the success of queries there.
fn measure(point: &Point, course: Course, progress: &Progress) -> (f64, f64) {
    progress.say(point.name.clone());
    let mut samples = Vec::new();
    let total = course.watch(Box::new(KChoices::new(point.policy)), |network| {
        samples.push(network.utilisation_quantile(0.95));
        progress.say(format!("{}: {} of {} s", point.name, network.now, course.seconds));
    });
    (spread(&samples).0, total.success())
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_figure_has_the_shape_that_the_plan_says() {
        check("K-E2", 0.03, &[]);
    }
}
