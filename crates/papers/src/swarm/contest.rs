//! Courses by name, run together and looked up again.

use std::collections::BTreeMap;

use super::{
    course::{Course, Figures},
    crew,
    scheme::Contender,
};
use crate::Trial;

/// Who runs where.
#[derive(Default)]
pub struct Contest {
    heats: Vec<(String, Course, Contender)>,
}

/// What came out, by name.
pub struct Outcomes(BTreeMap<String, Figures>);

/// What is told of each course: how it is called, and where it is found.
pub type Figure = (&'static str, fn(&Figures) -> f64);

/// The part of queries that were answered.
pub const SUCCESS: Figure = ("success", Figures::success);
/// Hops of an answered query.
pub const HOPS: Figure = ("hops", Figures::path);
/// Servers of a machine in the mean.
pub const SERVERS: Figure = ("servers", |figures| figures.servers_mean);
/// Servers that 95 of 100 machines do not exceed.
pub const SERVERS_P95: Figure = ("servers-p95", |figures| figures.servers_p95);
/// Actions of balancing in a second.
pub const ACTIONS: Figure = ("actions", Figures::actions);

impl Contest {
    /// One more course; its name must be new.
    pub fn add(&mut self, name: impl Into<String>, course: Course, contender: Contender) {
        self.heats.push((name.into(), course, contender));
    }

    /// Runs all of them, and notes these figures of each.
    pub fn run(self, trial: &mut Trial, figures: &[Figure]) -> Outcomes {
        let results = crew::all(trial, &self.heats, |(name, course, contender), progress| {
            progress.say(format!("{name} begins"));
            let result = course.run(contender.scheme(course.machines));
            progress.say(format!("{name}: {:.3} of queries answered", result.success()));
            result
        });
        let mut outcomes = BTreeMap::new();
        for ((name, ..), result) in self.heats.into_iter().zip(results) {
            for (figure, value) in figures {
                trial.number(format!("{name}/{figure}"), value(&result));
            }
            outcomes.insert(name, result);
        }
        Outcomes(outcomes)
    }
}

impl Outcomes {
    /// The figures of a course that was run.
    pub fn get(&self, name: impl AsRef<str>) -> &Figures {
        self.0.get(name.as_ref()).expect("every course that is asked for was run")
    }

    /// The part of queries that were answered.
    pub fn success(&self, name: impl AsRef<str>) -> f64 {
        self.get(name).success()
    }
}
