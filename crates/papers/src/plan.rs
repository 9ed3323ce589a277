//! A plan: what an experiment runs with and what it must show.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// One experiment as its TOML file states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// As in `D-E1`: the paper's letter, E, a number, and a letter if there are several parts.
    pub id: String,
    /// What is shown, in a few words.
    pub title: String,
    /// Authors and place.
    pub paper: String,
    /// Where the paper reports it.
    pub section: String,
    /// How the paper's words were read, and what was chosen where they leave a choice.
    pub about: String,
    /// The seed of everything random.
    pub seed: u64,
    /// Namespaces (the part of a measurement's name before the first slash) that a machine may lack.
    #[serde(default)]
    pub may_be_absent: Vec<String>,
    /// Sizes, which `--scale` multiplies.
    #[serde(default)]
    pub sizes: BTreeMap<String, u64>,
    /// Constants, which it does not.
    #[serde(default)]
    pub constants: BTreeMap<String, f64>,
    /// What is expected, in the order of the report.
    pub rows: Vec<Row>,
}

/// One expectation. Several rows may judge the same measurement.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawRow")]
pub struct Row {
    /// The measurement that is judged.
    pub name: String,
    /// What the paper reports.
    pub paper: Option<f64>,
    /// What must come out.
    pub expect: Expect,
    /// Judged at scale 1 only.
    pub full_size: bool,
    /// A remark for the reader.
    pub note: String,
}

/// A judgement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Expect {
    /// This number: analytic, or pinned against regressions. Always at full size only.
    Exact(f64),
    /// A number between these, both included.
    Band(f64, f64),
    /// A relation, which the code computes and this sentence states.
    Shape(String),
}

/// A row as it is written: exactly one of `exact`, `band` and `shape`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    name: String,
    paper: Option<f64>,
    exact: Option<f64>,
    band: Option<[f64; 2]>,
    shape: Option<String>,
    #[serde(default)]
    full_size: bool,
    #[serde(default)]
    note: String,
}

impl Plan {
    /// Reads a plan. The message says what is wrong with it.
    pub fn parse(text: &str) -> Result<Plan, String> {
        let plan: Plan = toml::from_str(text).map_err(|error| error.to_string())?;
        if plan.rows.is_empty() {
            return Err(format!("plan {} expects nothing", plan.id));
        }
        Ok(plan)
    }
}

impl TryFrom<RawRow> for Row {
    type Error = String;

    fn try_from(raw: RawRow) -> Result<Row, String> {
        let expect = match (raw.exact, raw.band, raw.shape) {
            (Some(value), None, None) if value.is_finite() => Expect::Exact(value),
            (None, Some([low, high]), None) if low <= high => Expect::Band(low, high),
            (None, None, Some(sentence)) if !sentence.is_empty() => Expect::Shape(sentence),
            _ => {
                return Err(format!(
                    "row {} needs one of exact, band [low, high], shape",
                    raw.name
                ));
            }
        };
        let full_size = raw.full_size || matches!(expect, Expect::Exact(_));
        Ok(Row { name: raw.name, paper: raw.paper, expect, full_size, note: raw.note })
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expect::Exact(value) => write!(f, "exactly {value}"),
            Expect::Band(low, high) => write!(f, "{low} to {high}"),
            Expect::Shape(sentence) => f.write_str(sentence),
        }
    }
}

/// The part of a measurement's name before the first slash.
pub(crate) fn namespace(name: &str) -> &str {
    name.split_once('/').map_or(name, |(namespace, _)| namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(rows: &str) -> Result<Plan, String> {
        Plan::parse(&format!(
            "id = 'X-E1'\ntitle = 't'\npaper = 'p'\nsection = 's'\nabout = ''\nseed = 1\n{rows}"
        ))
    }

    #[test]
    fn a_row_has_one_judgement() {
        let plan = plan(
            "[[rows]]\nname = 'a'\npaper = 5\nexact = 4\n
             [[rows]]\nname = 'a'\nband = [1, 2.5]\n
             [[rows]]\nname = 'b'\nshape = 'it falls'\nfull_size = true",
        )
        .unwrap();
        let expects: Vec<&Expect> = plan.rows.iter().map(|row| &row.expect).collect();
        let shape = Expect::Shape("it falls".into());
        assert_eq!(expects, [&Expect::Exact(4.0), &Expect::Band(1.0, 2.5), &shape]);
        assert_eq!(plan.rows.iter().map(|r| r.full_size).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(plan.rows[0].paper, Some(5.0));
    }

    #[test]
    fn a_row_that_cannot_judge_is_no_row() {
        for judgement in [
            "",
            "exact = 1\nband = [1, 2]",
            "band = [2, 1]",
            "band = [nan, 1]",
            "exact = nan",
            "exact = inf",
            "shape = ''",
            "exakt = 1",
        ] {
            assert!(plan(&format!("[[rows]]\nname = 'a'\n{judgement}")).is_err(), "{judgement}");
        }
    }

    #[test]
    fn a_plan_that_expects_nothing_is_no_plan() {
        assert!(plan("rows = []").is_err());
    }
}
