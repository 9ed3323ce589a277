//! What the runs of several seeds measured together: a mean, and how sure it is.

use serde::{Deserialize, Serialize};

use crate::{Value, trial::Findings};

/// What came out with one seed; without one, nothing was left to chance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Which.
    pub seed: Option<u64>,
    /// What came out.
    pub findings: Findings,
}

/// One measurement of all runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample(Vec<Value>);

/// Student's t for a two-sided interval of 95 %, from two values (one degree of freedom) on. Beyond these it is
/// that of a normal distribution, within five hundredths.
const STUDENT: [f64; 19] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
];
const STUDENT_OF_MANY: f64 = 1.96;

impl Sample {
    /// What all runs measured by this name; `None` if any did not.
    pub(crate) fn gather(runs: &[Run], name: &str) -> Option<Sample> {
        let of = |run: &Run| run.findings.value(name);
        let values: Option<Vec<Value>> = runs.iter().map(of).collect();
        values.filter(|values| !values.is_empty()).map(Sample)
    }

    /// Of each seed.
    pub(crate) fn values(&self) -> &[Value] {
        &self.0
    }

    /// The mean of numbers; of relations, whether it is so with every seed.
    pub(crate) fn value(&self) -> Value {
        match self.numbers() {
            Some(numbers) => Value::rounded(mean(&numbers)),
            None => Value::Truth(self.0.iter().all(|value| *value == Value::Truth(true))),
        }
    }

    /// How far the ends of the interval are from the mean in which the true one lies with a probability of 95 %, if
    /// seeds are alike; `None` for relations, and where a single value says nothing about that.
    pub(crate) fn half_width(&self) -> Option<f64> {
        let numbers = self.numbers().filter(|numbers| numbers.len() > 1)?;
        let (count, mean) = (numbers.len(), mean(&numbers));
        let squares = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>();
        let error = (squares / (count - 1) as f64 / count as f64).sqrt();
        Some(error * STUDENT.get(count - 2).copied().unwrap_or(STUDENT_OF_MANY))
    }

    fn numbers(&self) -> Option<Vec<f64>> {
        self.0.iter().map(|value| value.number()).collect()
    }
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[Value]) -> Sample {
        let run = |value: &Value| {
            let measurements = vec![("a".into(), *value)];
            Run { seed: None, findings: Findings { measurements, ..Findings::default() } }
        };
        Sample::gather(&values.iter().map(run).collect::<Vec<_>>(), "a").unwrap()
    }

    #[test]
    fn the_interval_is_students() {
        let of = |numbers: &[f64]| {
            let sample = sample(&numbers.iter().map(|n| Value::Number(*n)).collect::<Vec<_>>());
            (sample.value(), sample.half_width())
        };
        assert_eq!(of(&[5.0]), (Value::Number(5.0), None));
        assert_eq!(of(&[4.0, 4.0, 4.0]), (Value::Number(4.0), Some(0.0)));
        // The textbook's: 1, 2, 3 have a standard error of 1 / √3.
        let (mean, half) = of(&[1.0, 2.0, 3.0]);
        assert_eq!(mean, Value::Number(2.0));
        assert!((half.unwrap() - 4.303 / 3f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_relation_is_so_if_it_is_so_with_every_seed() {
        let (yes, no) = (Value::Truth(true), Value::Truth(false));
        assert_eq!(sample(&[yes, yes]).value(), yes);
        assert_eq!(sample(&[yes, no]).value(), no);
        assert_eq!(sample(&[yes, Value::Number(1.0)]).value(), no, "a number is no relation");
        assert_eq!(sample(&[yes, no]).half_width(), None);
    }

    #[test]
    fn what_one_seed_lacks_is_not_measured() {
        let measured = Findings {
            measurements: vec![("a".into(), Value::Number(1.0))],
            ..Findings::default()
        };
        let runs = [measured, Findings::default()].map(|findings| Run { seed: None, findings });
        assert_eq!(Sample::gather(&runs, "a"), None);
        assert!(Sample::gather(&runs[..1], "a").is_some());
        assert_eq!(Sample::gather(&[], "a"), None);
    }
}
