//! One run of an experiment, from the experiment's side: what it may ask and where it answers.

use std::{collections::BTreeMap, fmt};

use base::{Rng, TooLong};
use serde::Serialize;

use crate::{Plan, Printed};

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number, rounded to four decimals so that it can be pinned.
    Number(f64),
    /// Whether a relation holds.
    Truth(bool),
}

/// The world let an experiment down.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// An input that is there could not be read.
    Input {
        /// Which.
        what: String,
        /// Why.
        reason: String,
    },
    /// A namespace is too deep for production identifiers.
    TooLong(TooLong),
}

/// What an experiment found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// In the order of arrival; no name occurs twice.
    pub(crate) measurements: Vec<(String, Value)>,
    /// Namespaces that this machine lacks, and what would bring them.
    pub(crate) absent: BTreeMap<String, String>,
}

/// A run under way.
pub struct Trial<'a> {
    plan: &'a Plan,
    scale: f64,
    progress: &'a mut dyn FnMut(&str),
    findings: Findings,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(plan: &'a Plan, scale: f64, progress: &'a mut dyn FnMut(&str)) -> Trial<'a> {
        assert!(scale.is_finite() && scale > 0.0, "a scale is positive");
        Trial { plan, scale, progress, findings: Findings::default() }
    }

    pub(crate) fn finish(self) -> Findings {
        self.findings
    }

    /// The plan's chance. Each call starts the same stream again.
    pub fn rng(&self) -> Rng {
        Rng::new(self.plan.seed)
    }

    /// A size of the plan at the scale of this run; at least one.
    pub fn size(&self, name: &str) -> u64 {
        let size = *self.plan.sizes.get(name).expect("the plan states every size");
        ((size as f64 * self.scale).round() as u64).max(1)
    }

    /// A constant of the plan.
    pub fn constant(&self, name: &str) -> f64 {
        *self.plan.constants.get(name).expect("the plan states every constant")
    }

    /// The number that the paper prints for a measurement, for experiments that compare with it.
    pub(crate) fn printed(&self, name: &str) -> f64 {
        let mut numbers = self.plan.rows.iter().filter(|row| row.name == name);
        match numbers.find_map(|row| row.paper) {
            Some(Printed::Number(number)) => number,
            _ => panic!("the plan has no number of the paper for {name}"),
        }
    }

    /// A number that has been measured.
    pub(crate) fn measured(&self, name: &str) -> f64 {
        match self.findings.measurements.iter().find(|(other, _)| other == name) {
            Some((_, Value::Number(number))) => *number,
            _ => panic!("{name} has not been measured"),
        }
    }

    /// What a whole of this many becomes at the scale of this run: at least one, and no more than the
    /// whole.
    pub fn scaled_part(&self, whole: u64) -> u64 {
        ((whole as f64 * self.scale).round() as u64).max(1).min(whole)
    }

    /// Tells people what goes on.
    pub fn say(&mut self, what: &str) {
        (self.progress)(what);
    }

    /// Notes a number.
    pub fn number(&mut self, name: impl Into<String>, value: f64) {
        self.note(name.into(), Value::Number((value * 1e4).round() / 1e4));
    }

    /// Notes whether a relation holds.
    pub fn truth(&mut self, name: impl Into<String>, holds: bool) {
        self.note(name.into(), Value::Truth(holds));
    }

    /// Notes that this machine lacks a namespace, and what would bring it.
    pub fn absent(&mut self, namespace: &str, why: &str) {
        self.findings.absent.insert(namespace.into(), why.into());
    }

    fn note(&mut self, name: String, value: Value) {
        let is_new = self.findings.measurements.iter().all(|(other, _)| *other != name);
        assert!(is_new, "{name} is measured twice");
        self.findings.measurements.push((name, value));
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Truth(true) => f.write_str("yes"),
            Value::Truth(false) => f.write_str("no"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Input { what, reason } => write!(f, "cannot read {what}: {reason}"),
            Failure::TooLong(_) => f.write_str("the namespace is too deep for our identifiers"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<TooLong> for Failure {
    fn from(too_long: TooLong) -> Failure {
        Failure::TooLong(too_long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan::parse(
            "id = 'X-E1'\ntitle = ''\npaper = ''\nsection = ''\nabout = ''\nseed = 7
             [sizes]\nfiles = 100\n[constants]\nshape = 0.5\n[[rows]]\nname = 'a'\nexact = 1",
        )
        .unwrap()
    }

    #[test]
    fn sizes_are_scaled_and_constants_are_not() {
        let plan = plan();
        for (scale, files) in [(1.0, 100), (0.25, 25), (3.0, 300), (1e-9, 1)] {
            let mut quiet = |_: &str| ();
            let trial = Trial::new(&plan, scale, &mut quiet);
            assert_eq!((trial.size("files"), trial.constant("shape")), (files, 0.5));
            assert_eq!(trial.scaled_part(100), files.min(100));
        }
    }

    #[test]
    fn progress_reaches_whoever_listens() {
        let plan = plan();
        let mut heard = Vec::new();
        let mut listen = |what: &str| heard.push(what.to_owned());
        Trial::new(&plan, 1.0, &mut listen).say("half way");
        assert_eq!(heard, ["half way"]);
    }

    #[test]
    #[should_panic(expected = "a is measured twice")]
    fn a_name_is_measured_once() {
        let plan = plan();
        let mut quiet = |_: &str| ();
        let mut trial = Trial::new(&plan, 1.0, &mut quiet);
        trial.number("a", 1.0);
        trial.truth("a", true);
    }
}
