//! The judgement of one row.

use std::fmt;

use serde::Serialize;

use crate::{Expect, Plan, Row, Value, plan::namespace, trial::Findings};

/// Whether what came out is what the plan expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// It is.
    #[serde(rename = "holds")]
    Holds,
    /// It is not, or nothing came out.
    #[serde(rename = "differs")]
    Differs,
    /// Nobody can say on this machine or at this scale.
    #[serde(rename = "not judged")]
    NotJudged,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Holds => "holds",
            Verdict::Differs => "differs",
            Verdict::NotJudged => "not judged",
        })
    }
}

impl Verdict {
    /// The verdict on a whole: one difference decides, and where nothing was judged nothing holds.
    pub fn of_all(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
        verdicts.into_iter().fold(Verdict::NotJudged, |all, one| match (all, one) {
            (Verdict::Differs, _) | (_, Verdict::Differs) => Verdict::Differs,
            (Verdict::Holds, _) | (_, Verdict::Holds) => Verdict::Holds,
            _ => Verdict::NotJudged,
        })
    }
}

/// Judges one row: what was measured, the verdict, and why if that is not plain.
pub(crate) fn judge(
    plan: &Plan,
    row: &Row,
    scale: f64,
    findings: &Findings,
) -> (Option<Value>, Verdict, String) {
    let measured = findings.measurements.iter().find(|(name, _)| *name == row.name);
    let Some(&(_, ours)) = measured else {
        let (verdict, why) = judge_missing(plan, row, findings);
        return (None, verdict, why);
    };
    let (verdict, why) = if row.full_size && scale != 1.0 {
        (Verdict::NotJudged, "judged at scale 1 only".into())
    } else {
        match meets(&row.expect, ours) {
            Some(true) => (Verdict::Holds, String::new()),
            Some(false) => (Verdict::Differs, String::new()),
            None => (Verdict::Differs, "the plan and the code disagree on what this is".into()),
        }
    };
    (Some(ours), verdict, why)
}

/// Whether a value is as expected; `None` if it is of another kind.
fn meets(expect: &Expect, ours: Value) -> Option<bool> {
    match (expect, ours) {
        (Expect::Exact(value), Value::Number(number)) => Some(number == *value),
        (Expect::Band(low, high), Value::Number(number)) => Some(*low <= number && number <= *high),
        (Expect::Shape(_), Value::Truth(truth)) => Some(truth),
        _ => None,
    }
}

fn judge_missing(plan: &Plan, row: &Row, findings: &Findings) -> (Verdict, String) {
    let namespace = namespace(&row.name);
    match findings.absent.get(namespace) {
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

    const TRUTH: Value = Value::Truth(true);
    const LIE: Value = Value::Truth(false);

    /// Judges a row when its measurement is `ours`. The machine lacks `list` and `tree`; the plan
    /// lets `list` and `other` be absent.
    #[track_caller]
    fn check(row: &str, ours: Option<Value>, scale: f64, expected: &str) {
        let plan = Plan::parse(&format!(
            "id = ''\ntitle = ''\npaper = ''\nsection = ''\nabout = ''\nseed = 1
             may_be_absent = ['list', 'other']\n[[rows]]\n{row}"
        ))
        .unwrap();
        let row = &plan.rows[0];
        let mut findings = Findings::default();
        findings.measurements.push(("unrelated".into(), Value::Number(1.0)));
        findings.measurements.extend(ours.map(|ours| (row.name.clone(), ours)));
        findings.absent.insert("list".into(), "no list".into());
        findings.absent.insert("tree".into(), "no tree".into());
        let (value, verdict, why) = judge(&plan, row, scale, &findings);
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
    fn one_difference_decides_and_nothing_judged_holds_nothing() {
        use Verdict::{Differs, Holds, NotJudged};
        assert_eq!(Verdict::of_all([Holds, NotJudged, Holds]), Holds);
        assert_eq!(Verdict::of_all([Holds, Differs, NotJudged]), Differs);
        assert_eq!(Verdict::of_all([NotJudged, NotJudged]), NotJudged);
        assert_eq!(Verdict::of_all([]), NotJudged);
    }
}
