//! The list of experiments, and how one is run.

use crate::{
    Failure, Plan, Report, Trial, d_e1, d_e3, d_e4, k_e1, k_e2, k_e7, k_e8, k_e15, k_e16, k_e17,
    k_e18, l_e1, l_e1b,
};
use crate::{h_e1, h_e2, h_e3, h_e4, h_e5, h_e6, h_e7, h_e8, h_e9, h_e10, h_e11, h_e12};

/// Every experiment, in the order of the papers.
pub static EXPERIMENTS: &[Experiment] = &[
    Experiment { plan: include_str!("../../../papers/L-E1.toml"), run: l_e1::run },
    Experiment { plan: include_str!("../../../papers/L-E1b.toml"), run: l_e1b::run },
    Experiment { plan: include_str!("../../../papers/D-E1.toml"), run: d_e1::run },
    Experiment { plan: include_str!("../../../papers/D-E3.toml"), run: d_e3::run },
    Experiment { plan: include_str!("../../../papers/D-E4.toml"), run: d_e4::run },
    Experiment { plan: include_str!("../../../papers/K-E1.toml"), run: k_e1::run },
    Experiment { plan: include_str!("../../../papers/K-E2.toml"), run: k_e2::run },
    Experiment { plan: include_str!("../../../papers/K-E7.toml"), run: k_e7::run },
    Experiment { plan: include_str!("../../../papers/K-E8.toml"), run: k_e8::run },
    Experiment { plan: include_str!("../../../papers/K-E15.toml"), run: k_e15::run },
    Experiment { plan: include_str!("../../../papers/K-E16.toml"), run: k_e16::run },
    Experiment { plan: include_str!("../../../papers/K-E17.toml"), run: k_e17::run },
    Experiment { plan: include_str!("../../../papers/K-E18.toml"), run: k_e18::run },
    Experiment { plan: include_str!("../../../papers/H-E1.toml"), run: h_e1::run },
    Experiment { plan: include_str!("../../../papers/H-E2.toml"), run: h_e2::run },
    Experiment { plan: include_str!("../../../papers/H-E3.toml"), run: h_e3::run },
    Experiment { plan: include_str!("../../../papers/H-E4.toml"), run: h_e4::run },
    Experiment { plan: include_str!("../../../papers/H-E5.toml"), run: h_e5::run },
    Experiment { plan: include_str!("../../../papers/H-E6.toml"), run: h_e6::run },
    Experiment { plan: include_str!("../../../papers/H-E7.toml"), run: h_e7::run },
    Experiment { plan: include_str!("../../../papers/H-E8.toml"), run: h_e8::run },
    Experiment { plan: include_str!("../../../papers/H-E9.toml"), run: h_e9::run },
    Experiment { plan: include_str!("../../../papers/H-E10.toml"), run: h_e10::run },
    Experiment { plan: include_str!("../../../papers/H-E11.toml"), run: h_e11::run },
    Experiment { plan: include_str!("../../../papers/H-E12.toml"), run: h_e12::run },
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

    /// Runs at this scale of the plan's sizes, which must be positive. `progress` is told what
    /// goes on, for people who wait.
    pub fn run(&self, scale: f64, progress: &mut dyn FnMut(&str)) -> Result<Report, Failure> {
        let plan = self.plan();
        let mut trial = Trial::new(&plan, scale, progress);
        (self.run)(&mut trial)?;
        let findings = trial.finish();
        Ok(Report::new(&plan, scale, &findings))
    }
}

/// The experiment of this id.
pub fn find(id: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.plan().id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_can_be_read_and_found_by_its_id() {
        for experiment in EXPERIMENTS {
            let plan = Plan::parse(experiment.plan).unwrap();
            let found = find(&plan.id).unwrap();
            assert!(std::ptr::eq(found, experiment), "{} is used twice", plan.id);
        }
    }

    #[test]
    fn an_unknown_id_finds_nothing() {
        assert!(find("D-E0").is_none());
    }
}
