//! No scheme survives if nearly all queries go to one place (figure 16).

use crate::{
    Failure, Trial,
    swarm::{
        contest::{Contest, Figure, SUCCESS},
        course::{Course, Figures},
        scheme::Contender,
    },
};

/// κ, as everywhere where the paper says nothing else.
const CHOICES: u32 = 8;
const SKEWS: [f64; 5] = [0.0, 0.8, 1.2, 2.4, 4.8];
const DEVIATION: Figure = ("deviation", Figures::unrest);

/// Measures the figure.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let course = Course::synthetic(trial, trial.constant("life_s"));
    let mut contest = Contest::default();
    for skew in SKEWS {
        for contender in Contender::all(CHOICES) {
            contest.add(format!("{}/{skew}", contender.name()), course.with_skew(skew), contender);
        }
    }
    contest.add("active-16/4.8", course.with_skew(4.8), Contender::active(16));
    let outcomes = contest.run(trial, &[SUCCESS, DEVIATION]);

    let active = SKEWS.map(|skew| outcomes.get(format!("active/{skew}")));
    let falls = active.is_sorted_by(|one, next| one.success() > next.success());
    trial.truth("active/falls", falls);
    let falls = active[2..].is_sorted_by(|one, next| one.success() > next.success());
    trial.truth("active/falls-from-1.2", falls);
    // How much success there is bounds how much it can vary, so that the deviation is told against it.
    let relative = |figures: &Figures| figures.unrest() / figures.success().max(1e-9);
    trial.number("active/relative-deviation/0", relative(active[0]));
    trial.number("active/relative-deviation/4.8", relative(active[4]));
    trial.truth("active/deviation-grows", active[0].unrest() < active[4].unrest());
    trial.truth("active/relative-deviation-grows", relative(active[0]) < relative(active[4]));
    let sixteen = outcomes.get("active-16/4.8").unrest();
    trial.truth("active/deviation-grows-with-choices", active[4].unrest() < sixteen);
    let survives = |contender: &Contender| {
        let [without, with] =
            ["0", "4.8"].map(|skew| outcomes.success(format!("{}/{skew}", contender.name())));
        with >= without / 2.0
    };
    trial.truth("none-survive", !Contender::all(CHOICES).iter().any(survives));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::find;

    #[test]
    fn a_small_figure_measures_every_row() {
        let report = find("K-E6").unwrap().run(0.03, &mut |_| ()).unwrap();
        assert!(report.rows.iter().all(|row| row.ours.is_some()), "{report}");
    }
}
