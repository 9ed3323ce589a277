//! The judgement of one row.

use std::fmt;

use serde::Serialize;

use crate::{Differs, Expect, Plan, Row, Run, Scale, Value, plan::namespace, sample::Sample};

/// Whether what came out is what a row expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// It is.
    #[serde(rename = "holds")]
    Holds,
    /// It is what came out last time, which says nothing of the paper.
    #[serde(rename = "as before")]
    AsBefore,
    /// It is not, as the plan expects, and what the plan says shows the cause has come out.
    #[serde(rename = "explained")]
    Explained,
    /// It is not, or nothing came out.
    #[serde(rename = "differs")]
    Differs,
    /// Nobody can say on this machine or at this scale.
    #[serde(rename = "not judged")]
    NotJudged,
    /// It was measured, and no row asks for it.
    #[serde(rename = "beside")]
    Beside,
}

/// The verdict on an experiment, or on several; from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Outcome {
    /// Every row holds, or guards what came out last time.
    #[serde(rename = "holds")]
    Holds,
    /// Rows differ, all of them for reasons that were shown.
    #[serde(rename = "differs as explained")]
    Explained,
    /// Some rows were not judged, or nothing that could be reproduced was.
    #[serde(rename = "partial")]
    Partial,
    /// A row differs, and nobody knows why.
    #[serde(rename = "differs")]
    Differs,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Holds => "holds",
            Verdict::AsBefore => "as before",
            Verdict::Explained => "explained",
            Verdict::Differs => "differs",
            Verdict::NotJudged => "not judged",
            Verdict::Beside => "beside",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Outcome::Holds => "holds",
            Outcome::Explained => "differs as explained",
            Outcome::Partial => "is partial",
            Outcome::Differs => "differs",
        })
    }
}

impl Outcome {
    /// The verdict on an experiment with these rows: the worst of them, and where nothing was judged nothing
    /// holds.
    pub fn of_rows(verdicts: impl IntoIterator<Item = Verdict>) -> Outcome {
        let (mut worst, mut is_any_judged) = (Outcome::Holds, false);
        for verdict in verdicts {
            is_any_judged |= matches!(verdict, Verdict::Holds | Verdict::Explained);
            worst = worst.max(match verdict {
                Verdict::Holds | Verdict::AsBefore | Verdict::Beside => Outcome::Holds,
                Verdict::Explained => Outcome::Explained,
                Verdict::NotJudged => Outcome::Partial,
                Verdict::Differs => Outcome::Differs,
            });
        }
        if is_any_judged { worst } else { worst.max(Outcome::Partial) }
    }
}

/// Judges one row by all runs: what was measured, the verdict, and why if that is not plain.
pub(crate) fn judge(
    plan: &Plan,
    row: &Row,
    scale: Scale,
    runs: &[Run],
) -> (Option<Sample>, Verdict, String) {
    let of_pin: Vec<Run>;
    let runs = if matches!(row.expect, Expect::Pin(_)) {
        of_pin = runs.iter().filter(|run| run.seed == plan.seed).cloned().collect();
        if of_pin.is_empty() {
            let seed = plan.seed.unwrap_or_default();
            return (None, Verdict::NotJudged, format!("it is pinned for seed {seed}"));
        }
        &of_pin
    } else {
        runs
    };
    let Some(sample) = Sample::gather(runs, &row.name) else {
        let (verdict, why) = judge_missing(plan, row, runs);
        return (None, verdict, why);
    };
    let (verdict, why) = if row.full_size && !scale.is_full() {
        (Verdict::NotJudged, "judged at scale 1 only".into())
    } else if scale.size.min(scale.time) < row.scale_min {
        (Verdict::NotJudged, format!("judged from scale {} on", row.scale_min))
    } else {
        match (meets(&row.expect, &sample), &row.expect) {
            (Some(true), Expect::Pin(_)) => (Verdict::AsBefore, String::new()),
            (Some(true), _) => (Verdict::Holds, doubt(&row.expect, &sample)),
            (Some(false), _) => judge_difference(plan, row, scale, runs),
            (None, _) => {
                (Verdict::Differs, "the plan and the code disagree on what this is".into())
            }
        }
    };
    (Some(sample), verdict, why)
}

/// Whether a measurement is as expected; `None` if it is of another kind. A band is for the mean of all seeds; an exact
/// number and a relation are for each of them.
fn meets(expect: &Expect, sample: &Sample) -> Option<bool> {
    match (expect, sample.value()) {
        (Expect::Shape(_), Value::Truth(truth)) => Some(truth),
        (Expect::Band(..), Value::Number(mean)) => expect.admits(mean),
        (expect, Value::Number(_)) => {
            let admitted = sample.values().iter().map(|value| expect.admits(value.number()?));
            admitted.collect::<Option<Vec<bool>>>().map(|all| all.into_iter().all(|is| is))
        }
        (_, Value::Truth(_)) => None,
    }
}

/// What is to be said where the mean lies in the band and the true one might not.
fn doubt(expect: &Expect, sample: &Sample) -> String {
    let (Expect::Band(low, high), Value::Number(mean)) = (expect, sample.value()) else {
        return String::new();
    };
    let half = sample.half_width().unwrap_or_default();
    if mean - half < *low || *high < mean + half {
        "the interval reaches beyond what holds".into()
    } else {
        String::new()
    }
}

/// A difference is explained if the plan expects it, and what shows its cause holds in these very runs.
fn judge_difference(plan: &Plan, row: &Row, scale: Scale, runs: &[Run]) -> (Verdict, String) {
    let Some(Differs { why, shown_by }) = &row.differs else {
        return (Verdict::Differs, String::new());
    };
    let shown = plan.rows.iter().filter(|other| other.name == *shown_by);
    let mut shown = shown.map(|other| judge(plan, other, scale, runs).1);
    if shown.all(|verdict| verdict == Verdict::Holds) {
        (Verdict::Explained, format!("{why}, as {shown_by} shows"))
    } else {
        (Verdict::Differs, format!("the plan's reason is not shown by {shown_by}: {why}"))
    }
}

fn judge_missing(plan: &Plan, row: &Row, runs: &[Run]) -> (Verdict, String) {
    let namespace = namespace(&row.name);
    match runs.iter().find_map(|run| run.findings.absent.get(namespace)) {
        None => (Verdict::Differs, "not measured".into()),
        Some(why) if plan.may_be_absent.iter().any(|name| name == namespace) => {
            (Verdict::NotJudged, why.clone())
        }
        Some(why) => (Verdict::Differs, format!("{why}; the plan does not let it be absent")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Findings;

    const TRUTH: Value = Value::Truth(true);
    const LIE: Value = Value::Truth(false);

    fn plan(rows: &str) -> Plan {
        Plan::parse(&format!(
            "id = ''\ntitle = ''\npaper = ''\nsection = ''\nabout = ''\nseed = 1
             may_be_absent = ['list', 'other']\n[[rows]]\n{rows}"
        ))
        .unwrap()
    }

    /// Judges a row when its measurement is `ours`. The machine lacks `list` and `tree`; the plan
    /// lets `list` and `other` be absent.
    #[track_caller]
    fn check(row: &str, ours: Option<Value>, scale: f64, expected: &str) {
        let plan = plan(row);
        let row = &plan.rows[0];
        let mut findings = Findings::default();
        findings.measurements.push(("unrelated".into(), Value::Number(1.0)));
        findings.measurements.extend(ours.map(|ours| (row.name.clone(), ours)));
        findings.absent.insert("list".into(), "no list".into());
        findings.absent.insert("tree".into(), "no tree".into());
        let runs = [Run { seed: plan.seed, findings }];
        let (sample, verdict, why) = judge(&plan, row, scale.into(), &runs);
        let value = sample.map(|sample| sample.value());
        assert_eq!(format!("{value:?}"), format!("{ours:?}"));
        let colon = if why.is_empty() { "" } else { ": " };
        assert_eq!(format!("{verdict}{colon}{why}"), expected);
    }

    fn number(number: f64) -> Option<Value> {
        Some(Value::Number(number))
    }

    #[test]
    fn exact_holds_only_for_the_same_number() {
        let row = "name = 'a/x'\nexact = 46.3";
        check(row, number(46.3), 1.0, "holds");
        check(row, number(46.3001), 1.0, "differs");
        check(row, number(f64::NAN), 1.0, "differs");
    }

    #[test]
    fn exact_is_judged_at_scale_one_only() {
        let row = "name = 'a/x'\nexact = 46.3";
        check(row, number(46.3), 0.5, "not judged: judged at scale 1 only");
        check(row, number(1.0), 2.0, "not judged: judged at scale 1 only");
        check(row, None, 0.5, "differs: not measured");
    }

    #[test]
    fn a_band_includes_its_ends_and_nothing_beyond() {
        let row = "name = 'a/x'\nband = [36, 60]";
        for inside in [36.0, 50.0, 60.0] {
            check(row, number(inside), 0.1, "holds");
        }
        for outside in [35.9999, 60.0001, f64::NAN, f64::INFINITY] {
            check(row, number(outside), 0.1, "differs");
        }
    }

    #[test]
    fn a_shape_holds_if_the_code_says_so() {
        let row = "name = 'a/x'\nshape = 'it falls'";
        check(row, Some(TRUTH), 0.1, "holds");
        check(row, Some(LIE), 0.1, "differs");
        let full = "name = 'a/x'\nshape = 'it falls'\nfull_size = true";
        check(full, Some(LIE), 0.1, "not judged: judged at scale 1 only");
        check(full, Some(LIE), 1.0, "differs");
    }

    #[test]
    fn a_row_may_be_judged_from_a_scale_on() {
        let row = "name = 'a/x'\nband = [36, 60]\nscale_min = 0.25";
        check(row, number(50.0), 0.2, "not judged: judged from scale 0.25 on");
        check(row, number(70.0), 0.2, "not judged: judged from scale 0.25 on");
        check(row, number(50.0), 0.25, "holds");
        check(row, number(70.0), 0.25, "differs");
        let plan = plan(row);
        let measurements = vec![("a/x".into(), Value::Number(70.0))];
        let runs =
            [Run { seed: Some(1), findings: Findings { measurements, ..Findings::default() } }];
        let short = Scale { size: 1.0, time: 0.1 };
        assert_eq!(judge(&plan, &plan.rows[0], short, &runs).1, Verdict::NotJudged);
    }

    #[test]
    fn a_number_is_no_truth() {
        let why = "differs: the plan and the code disagree on what this is";
        check("name = 'a/x'\nshape = 'it falls'", number(1.0), 1.0, why);
        check("name = 'a/x'\nband = [0, 1]", Some(TRUTH), 1.0, why);
        check("name = 'a/x'\nexact = 1", Some(TRUTH), 1.0, why);
    }

    #[test]
    fn a_missing_measurement_differs_unless_its_namespace_may_be_and_is_absent() {
        check("name = 'a/x'\nband = [0, 1]", None, 1.0, "differs: not measured");
        check("name = 'list/x'\nband = [0, 1]", None, 1.0, "not judged: no list");
        check("name = 'lists/x'\nband = [0, 1]", None, 1.0, "differs: not measured");
        check("name = 'other/x'\nband = [0, 1]", None, 1.0, "differs: not measured");
        let why = "differs: no tree; the plan does not let it be absent";
        check("name = 'tree/x'\nband = [0, 1]", None, 1.0, why);
    }

    #[test]
    fn a_pin_reproduces_nothing_and_can_differ() {
        let row = "name = 'a/x'\npin = 46.3";
        check(row, number(46.3), 1.0, "as before");
        check(row, number(46.3001), 1.0, "differs");
        check(row, number(46.3), 0.5, "not judged: judged at scale 1 only");
        check(row, Some(TRUTH), 1.0, "differs: the plan and the code disagree on what this is");
    }

    /// Judges a row when seeds 1, 2, … have brought these.
    #[track_caller]
    fn check_seeds(row: &str, values: &[Value], expected: &str) {
        let plan = plan(row);
        let run = |(at, value): (usize, &Value)| {
            let measurements = vec![(plan.rows[0].name.clone(), *value)];
            let findings = Findings { measurements, ..Findings::default() };
            Run { seed: Some(1 + at as u64), findings }
        };
        let runs: Vec<Run> = values.iter().enumerate().map(run).collect();
        let (_, verdict, why) = judge(&plan, &plan.rows[0], Scale::FULL, &runs);
        let colon = if why.is_empty() { "" } else { ": " };
        assert_eq!(format!("{verdict}{colon}{why}"), expected);
    }

    #[test]
    fn a_band_is_for_the_mean_of_all_seeds_and_their_interval_casts_doubt_on_it() {
        let row = "name = 'a/x'\nband = [4, 6]";
        let numbers = |numbers: [f64; 3]| numbers.map(Value::Number);
        check_seeds(row, &numbers([5.0, 5.1, 4.9]), "holds");
        let doubt = "holds: the interval reaches beyond what holds";
        check_seeds(row, &numbers([3.0, 5.0, 7.0]), doubt);
        check_seeds(row, &numbers([5.0, 6.0, 7.5]), "differs");
    }

    #[test]
    fn a_relation_and_an_exact_number_are_for_every_seed() {
        check_seeds("name = 'a/x'\nshape = 'it falls'", &[TRUTH, TRUTH], "holds");
        check_seeds("name = 'a/x'\nshape = 'it falls'", &[TRUTH, LIE], "differs");
        let row = "name = 'a/x'\nexact = 2";
        check_seeds(row, &[Value::Number(2.0), Value::Number(2.0)], "holds");
        check_seeds(row, &[Value::Number(1.0), Value::Number(3.0)], "differs");
    }

    #[test]
    fn a_pin_is_for_the_seed_that_it_was_made_with() {
        let row = "name = 'a/x'\npin = 2";
        check_seeds(row, &[Value::Number(2.0), Value::Number(3.0)], "as before");
        check_seeds(row, &[Value::Number(3.0), Value::Number(2.0)], "differs");
        let plan = plan(row);
        let (_, verdict, why) = judge(&plan, &plan.rows[0], Scale::FULL, &[]);
        assert_eq!((verdict, &*why), (Verdict::NotJudged, "it is pinned for seed 1"));
    }

    #[test]
    fn an_expected_difference_is_explained_only_if_its_cause_is_shown() {
        let rows = "name = 'a/x'\nband = [0, 1]\ndiffers = { why = 'so', shown_by = 'a/y' }
                    [[rows]]\nname = 'a/y'\nshape = 'without it, it is gone'";
        let judged = |ours: f64, shown: Option<bool>, full: bool| {
            let full = if full { "\nfull_size = true" } else { "" };
            let plan = plan(&format!("{rows}{full}"));
            let mut findings = Findings::default();
            findings.measurements.push(("a/x".into(), Value::Number(ours)));
            let shown = shown.map(|shown| ("a/y".into(), Value::Truth(shown)));
            findings.measurements.extend(shown);
            let runs = [Run { seed: Some(1), findings }];
            judge(&plan, &plan.rows[0], 0.5.into(), &runs).1
        };
        assert_eq!(judged(0.5, Some(true), false), Verdict::Holds, "not expected, and better");
        assert_eq!(judged(2.0, Some(true), false), Verdict::Explained);
        assert_eq!(judged(2.0, Some(false), false), Verdict::Differs);
        assert_eq!(judged(2.0, None, false), Verdict::Differs);
        assert_eq!(judged(2.0, Some(true), true), Verdict::Differs, "the cause was not judged");
    }

    #[test]
    fn an_experiment_is_as_good_as_its_worst_row() {
        use Verdict::{AsBefore, Beside, Differs, Explained, Holds, NotJudged};
        assert_eq!(Outcome::of_rows([Holds, AsBefore, Beside]), Outcome::Holds);
        assert_eq!(Outcome::of_rows([Holds, Explained]), Outcome::Explained);
        assert_eq!(Outcome::of_rows([Holds, Explained, NotJudged]), Outcome::Partial);
        assert_eq!(Outcome::of_rows([NotJudged, Differs, Holds]), Outcome::Differs);
        assert_eq!(Outcome::of_rows([AsBefore, Beside]), Outcome::Partial, "nothing reproduced");
        assert_eq!(Outcome::of_rows([]), Outcome::Partial);
    }
}
