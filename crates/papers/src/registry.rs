//! The list of experiments, and how one is run.

use crate::{Failure, Plan, Report, Run, Scale, Trial};

macro_rules! experiments {
    ($($module:ident $id:literal),* $(,)?) => {
        &[$(Experiment {
            plan: include_str!(concat!("../../../papers/", $id, ".toml")),
            run: crate::$module::run,
        }),*]
    };
}

/// Every experiment, in the order of the papers.
pub static EXPERIMENTS: &[Experiment] = experiments![
    l_e1 "L-E1",
    l_e1b "L-E1b",
    d_e1 "D-E1",
    d_e3 "D-E3",
    d_e4 "D-E4",
    k_e1 "K-E1",
    k_e2 "K-E2",
    k_e3 "K-E3",
    k_e4 "K-E4",
    k_e5 "K-E5",
    k_e6 "K-E6",
    k_e7 "K-E7",
    k_e8 "K-E8",
    k_e9 "K-E9",
    k_e10 "K-E10",
    k_e11 "K-E11",
    k_e12 "K-E12",
    k_e13 "K-E13",
    k_e14 "K-E14",
    k_e15 "K-E15",
    k_e16 "K-E16",
    k_e17 "K-E17",
    k_e18 "K-E18",
    k_e19 "K-E19",
    h_e1 "H-E1",
    h_e2 "H-E2",
    h_e3 "H-E3",
    h_e4 "H-E4",
    h_e5 "H-E5",
    h_e6 "H-E6",
    h_e7 "H-E7",
    h_e8 "H-E8",
    h_e9 "H-E9",
    h_e10 "H-E10",
    h_e11 "H-E11",
    h_e12 "H-E12",
];

/// A plan, and the function that makes its measurements.
pub struct Experiment {
    plan: &'static str,
    run: fn(&mut Trial) -> Result<(), Failure>,
}

impl Experiment {
    /// What is expected.
    pub fn plan(&self) -> Plan {
        Plan::parse(self.plan).expect("a test parses every plan")
    }

    /// What the plan was read from.
    pub fn source(&self) -> &'static str {
        self.plan
    }

    /// Runs once at this scale, which must be positive, with the plan's seed or with this one. `progress` is told
    /// what goes on, for people who wait.
    pub fn measure(
        &self,
        scale: Scale,
        seed: Option<u64>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Run, Failure> {
        let plan = self.plan();
        let seed = plan.seed.map(|own| seed.unwrap_or(own));
        let mut trial = Trial::new(&plan, scale, progress);
        if let Some(seed) = seed {
            trial = trial.with_seed(seed);
        }
        (self.run)(&mut trial)?;
        Ok(Run { seed, findings: trial.finish() })
    }

    /// Runs once with the plan's seed, and judges.
    pub fn run(
        &self,
        scale: impl Into<Scale>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Report, Failure> {
        let scale = scale.into();
        let run = self.measure(scale, None, progress)?;
        Ok(Report::new(&self.plan(), scale, &[run]))
    }
}

/// The experiment of this id.
pub fn find(id: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.plan().id == id)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Expect, Verdict};

    /// Runs an experiment small: something has to hold, these rows have to differ, and no other may.
    #[track_caller]
    pub(crate) fn check(id: &str, scale: f64, differing: &[&str]) -> Report {
        let report = find(id).unwrap().run(scale, &mut |_| ()).unwrap();
        assert_eq!(report.differing(), differing, "{report}");
        assert!(report.count(Verdict::Holds) > 0, "{report}");
        for figure in find(id).unwrap().plan().figures {
            for series in &figure.series {
                let is_drawn = !figure.points(series, &report).is_empty();
                assert!(is_drawn, "{series} in {}: {}", figure.of, figure.title);
            }
        }
        report
    }

    #[test]
    fn every_plan_can_be_read_and_found_by_its_id() {
        for experiment in EXPERIMENTS {
            let plan = Plan::parse(experiment.plan).unwrap();
            let found = find(&plan.id).unwrap();
            assert!(std::ptr::eq(found, experiment), "{} is used twice", plan.id);
        }
    }

    #[test]
    fn no_row_of_any_plan_holds_where_the_papers_own_number_would_not() {
        for Plan { id, rows, .. } in EXPERIMENTS.iter().map(Experiment::plan) {
            for row in &rows {
                let numbers = row.paper.iter().flat_map(|paper| paper.numbers());
                for number in numbers {
                    assert_eq!(row.expect.admits(number), Some(true), "{id} {}", row.name);
                    assert!(!matches!(row.expect, Expect::Pin(_)), "{id} {}", row.name);
                }
            }
        }
    }

    #[test]
    fn an_unknown_id_finds_nothing() {
        assert!(find("D-E0").is_none());
    }
}
