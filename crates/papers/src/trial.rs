//! One run of an experiment, from the experiment's side: what it may ask and where it answers.

use std::{collections::BTreeMap, fmt};

use base::{Rng, TooLong};
use serde::{Deserialize, Serialize};

use crate::{Plan, Printed};

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number, rounded to four decimals so that it can be pinned.
    Number(f64),
    /// Whether a relation holds.
    Truth(bool),
}

impl Value {
    /// With four decimals.
    pub(crate) fn rounded(number: f64) -> Value {
        Value::Number(rounded(number))
    }

    /// The number, if it is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(number),
            Value::Truth(_) => None,
        }
    }
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

/// What a run multiplies the plan's numbers by. Durations apart from the rest: a network of a tenth of the machines
/// that lives as long is the same experiment in small, and one that lives for a tenth of the time is another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Of how many there are.
    pub size: f64,
    /// Of how long it lasts.
    pub time: f64,
}

/// What an experiment found with one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// In the order of arrival; no name occurs twice.
    pub(crate) measurements: Vec<(String, Value)>,
    /// What was measured over time, or along something else, for figures alone: no row judges them.
    pub(crate) curves: Vec<(String, Vec<[f64; 2]>)>,
    /// Namespaces that this machine lacks, and what would bring them.
    pub(crate) absent: BTreeMap<String, String>,
}

impl Findings {
    /// What was measured by this name.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        let found = self.measurements.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| *value)
    }
}

/// A run under way.
pub struct Trial<'a> {
    plan: &'a Plan,
    scale: Scale,
    seed: Option<u64>,
    progress: &'a mut dyn FnMut(&str),
    findings: Findings,
}

impl Scale {
    /// As the plan says.
    pub const FULL: Scale = Scale { size: 1.0, time: 1.0 };

    /// Whether it changes nothing.
    pub fn is_full(self) -> bool {
        self == Scale::FULL
    }

    /// Whether both are positive numbers.
    pub fn is_positive(self) -> bool {
        [self.size, self.time].iter().all(|factor| factor.is_finite() && *factor > 0.0)
    }
}

/// The same of everything.
impl From<f64> for Scale {
    fn from(factor: f64) -> Scale {
        Scale { size: factor, time: factor }
    }
}

impl<'a> Trial<'a> {
    /// With the plan's seed.
    pub(crate) fn new(
        plan: &'a Plan,
        scale: impl Into<Scale>,
        progress: &'a mut dyn FnMut(&str),
    ) -> Trial<'a> {
        let scale = scale.into();
        assert!(scale.is_positive(), "a scale is positive");
        Trial { plan, scale, seed: plan.seed, progress, findings: Findings::default() }
    }

    /// The same with another seed. Where nothing is left to chance, none makes a difference.
    pub(crate) fn with_seed(self, seed: u64) -> Trial<'a> {
        Trial { seed: self.seed.map(|_| seed), ..self }
    }

    pub(crate) fn finish(self) -> Findings {
        self.findings
    }

    /// The chance of this run. Each call starts the same stream again.
    pub fn rng(&self) -> Rng {
        Rng::new(self.seed.expect("a plan without a seed leaves nothing to chance"))
    }

    /// A size of the plan at the scale of this run; at least one.
    pub fn size(&self, name: &str) -> u64 {
        let size = *self.plan.sizes.get(name).expect("the plan states every size");
        scaled(size, self.scale.size)
    }

    /// A duration of the plan at the scale of this run; at least one.
    pub fn duration(&self, name: &str) -> u64 {
        let duration = *self.plan.durations.get(name).expect("the plan states every duration");
        scaled(duration, self.scale.time)
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
        match self.findings.value(name) {
            Some(Value::Number(number)) => number,
            _ => panic!("{name} has not been measured"),
        }
    }

    /// What a whole of this many becomes at the scale of this run: at least one, and no more than the
    /// whole.
    pub fn scaled_part(&self, whole: u64) -> u64 {
        scaled(whole, self.scale.size).min(whole)
    }

    /// Tells people what goes on.
    pub fn say(&mut self, what: &str) {
        (self.progress)(what);
    }

    /// Notes a number.
    pub fn number(&mut self, name: impl Into<String>, value: f64) {
        self.note(name.into(), Value::rounded(value));
    }

    /// Notes whether a relation holds.
    pub fn truth(&mut self, name: impl Into<String>, holds: bool) {
        self.note(name.into(), Value::Truth(holds));
    }

    /// Notes points of a figure.
    pub fn curve(&mut self, name: impl Into<String>, points: Vec<[f64; 2]>) {
        let points = points.into_iter().map(|point| point.map(rounded)).collect();
        self.findings.curves.push((name.into(), points));
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

/// With four decimals, which JSON gives back as they were.
fn rounded(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

fn scaled(number: u64, factor: f64) -> u64 {
    ((number as f64 * factor).round() as u64).max(1)
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.size == self.time {
            write!(f, "scale {}", self.size)
        } else {
            write!(f, "scale {}, durations {}", self.size, self.time)
        }
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
             [sizes]\nfiles = 100\n[durations]\nseconds = 60\n[constants]\nshape = 0.5\n[[rows]]\nname = 'a'\nexact = 1",
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
    fn durations_are_scaled_apart() {
        let plan = plan();
        let mut quiet = |_: &str| ();
        let trial = Trial::new(&plan, Scale { size: 0.5, time: 0.1 }, &mut quiet);
        assert_eq!((trial.size("files"), trial.duration("seconds")), (50, 6));
    }

    #[test]
    fn another_seed_is_another_chance_and_without_one_there_is_none() {
        let mut plan = plan();
        let first = |plan: &Plan, seed: u64| {
            let mut quiet = |_: &str| ();
            Trial::new(plan, 1.0, &mut quiet).with_seed(seed).rng().next_u64()
        };
        assert_eq!(first(&plan, 7), first(&plan, 7));
        assert_ne!(first(&plan, 7), first(&plan, 8));
        plan.seed = None;
        assert!(std::panic::catch_unwind(|| first(&plan, 7)).is_err());
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
