//! A plan: what an experiment runs with and what it must show.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{Figure, Scale};

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
    /// The first seed of everything random; none where nothing is left to chance.
    pub seed: Option<u64>,
    /// Namespaces (the part of a measurement's name before the first slash) that a machine may lack.
    #[serde(default)]
    pub may_be_absent: Vec<String>,
    /// Sizes, which `--scale` multiplies.
    #[serde(default)]
    pub sizes: BTreeMap<String, u64>,
    /// Durations, which `--scale-time` multiplies.
    #[serde(default)]
    pub durations: BTreeMap<String, u64>,
    /// Constants, which it does not.
    #[serde(default)]
    pub constants: BTreeMap<String, f64>,
    /// How a quick run is made smaller, and what it takes.
    #[serde(default)]
    pub quick: Quick,
    /// Minutes of a processor that a run at full size takes with one seed.
    #[serde(default)]
    pub full_minutes: f64,
    /// What is expected, in the order of the report.
    pub rows: Vec<Row>,
    /// The paper's figures and tables, drawn from measurements.
    #[serde(default)]
    pub figures: Vec<Figure>,
}

/// A run that ends soon.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quick {
    /// What sizes are multiplied by.
    pub size: f64,
    /// What durations are multiplied by.
    pub time: f64,
    /// Seconds of a processor that it takes with one seed.
    pub seconds: f64,
}

/// One expectation. Several rows may judge the same measurement.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawRow")]
pub struct Row {
    /// The measurement that is judged.
    pub name: String,
    /// What the paper prints, and nothing else. What holds never excludes it.
    pub paper: Option<Printed>,
    /// What must come out.
    pub expect: Expect,
    /// That it is known not to come out, and why.
    pub differs: Option<Differs>,
    /// Judged at scale 1 only.
    pub full_size: bool,
    /// Judged from this scale on, of sizes and of durations.
    pub scale_min: f64,
    /// A remark for the reader.
    pub note: String,
}

/// What a paper prints: a number, or two between which its own lie.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Printed {
    /// A number.
    Number(f64),
    /// Two, as in "1.1 to 1.5".
    Range([f64; 2]),
}

/// A judgement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Expect {
    /// This number, which follows from the paper's own formula or from the set-up. Always at full size only.
    Exact(f64),
    /// A number between these, both included.
    Band(f64, f64),
    /// A relation, which the code computes and this sentence states.
    Shape(String),
    /// What came out last time. It guards against regressions and reproduces nothing. Always at full size only.
    Pin(f64),
}

/// A difference that is expected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Differs {
    /// Its cause.
    pub why: String,
    /// The measurement that shows the cause: without it, the difference is gone. A row of its own judges it.
    pub shown_by: String,
}

/// A row as it is written: exactly one of `exact`, `band`, `shape` and `pin`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    name: String,
    paper: Option<Printed>,
    exact: Option<f64>,
    band: Option<[f64; 2]>,
    shape: Option<String>,
    pin: Option<f64>,
    differs: Option<Differs>,
    #[serde(default)]
    full_size: bool,
    #[serde(default)]
    scale_min: f64,
    #[serde(default)]
    note: String,
}

/// At full size, in no time.
impl Default for Quick {
    fn default() -> Quick {
        Quick { size: 1.0, time: 1.0, seconds: 1.0 }
    }
}

impl Plan {
    /// Reads a plan. The message says what is wrong with it.
    pub fn parse(text: &str) -> Result<Plan, String> {
        let plan: Plan = toml::from_str(text).map_err(|error| error.to_string())?;
        if plan.rows.is_empty() {
            return Err(format!("plan {} expects nothing", plan.id));
        }
        for row in &plan.rows {
            plan.check_explanation(row)?;
        }
        for figure in &plan.figures {
            if let Some(fault) = figure.fault() {
                return Err(format!("{} of plan {} {fault}", figure.of, plan.id));
            }
        }
        if !plan.quick_scale().is_positive() {
            return Err(format!("plan {} has a quick run of no size", plan.id));
        }
        Ok(plan)
    }

    /// All that the code that runs it hears of it: seed, sizes, durations, constants, and the paper's numbers, with
    /// which some experiments compare.
    pub fn told(&self) -> String {
        let Plan { id, seed, sizes, durations, constants, rows, .. } = self;
        let printed: Vec<(&str, Printed)> =
            rows.iter().filter_map(|row| Some((&*row.name, row.paper?))).collect();
        format!("{id} {seed:?} {sizes:?} {durations:?} {constants:?} {printed:?}")
    }

    /// What a quick run multiplies its numbers by.
    pub fn quick_scale(&self) -> Scale {
        Scale { size: self.quick.size, time: self.quick.time }
    }

    /// Refuses an explanation that nothing shows.
    fn check_explanation(&self, row: &Row) -> Result<(), String> {
        let Some(differs) = &row.differs else { return Ok(()) };
        let is_shown = self.rows.iter().any(|other| {
            let is_shape = matches!(other.expect, Expect::Shape(_));
            other.name == differs.shown_by && is_shape && other.differs.is_none()
        });
        if differs.why.is_empty() || !is_shown || differs.shown_by == row.name {
            return Err(format!(
                "row {} differs for a reason that no shape of another row shows",
                row.name
            ));
        }
        Ok(())
    }
}

impl Expect {
    /// Whether a number is as expected; `None` where none is.
    pub fn admits(&self, number: f64) -> Option<bool> {
        match *self {
            Expect::Exact(value) | Expect::Pin(value) => Some(number == value),
            Expect::Band(low, high) => Some(low <= number && number <= high),
            Expect::Shape(_) => None,
        }
    }
}

impl Printed {
    /// The number, or both.
    pub fn numbers(&self) -> Vec<f64> {
        match *self {
            Printed::Number(number) => vec![number],
            Printed::Range(ends) => ends.to_vec(),
        }
    }
}

impl TryFrom<RawRow> for Row {
    type Error = String;

    fn try_from(raw: RawRow) -> Result<Row, String> {
        let expect = match (raw.exact, raw.band, raw.shape, raw.pin) {
            (Some(value), None, None, None) if value.is_finite() => Expect::Exact(value),
            (None, Some([low, high]), None, None) if low <= high => Expect::Band(low, high),
            (None, None, Some(sentence), None) if !sentence.is_empty() => Expect::Shape(sentence),
            (None, None, None, Some(value)) if value.is_finite() => Expect::Pin(value),
            _ => {
                return Err(format!(
                    "row {} needs one of exact, band [low, high], shape, pin",
                    raw.name
                ));
            }
        };
        let is_pin = matches!(expect, Expect::Pin(_));
        let admits = |number| !is_pin && expect.admits(number) == Some(true);
        if raw.paper.is_some_and(|paper| !paper.numbers().into_iter().all(admits)) {
            return Err(format!(
                "row {} would hold without the paper's own number; widen it, or say `differs`",
                raw.name
            ));
        }
        if is_pin && raw.differs.is_some() {
            return Err(format!(
                "row {} pins our own number, which can't be expected to differ",
                raw.name
            ));
        }
        let full_size = raw.full_size || is_pin || matches!(expect, Expect::Exact(_));
        let RawRow { name, paper, differs, scale_min, note, .. } = raw;
        if !(0.0..=1.0).contains(&scale_min) || (full_size && scale_min > 0.0) {
            return Err(format!("row {name} is judged from a part of full size on, or there only"));
        }
        Ok(Row { name, paper, expect, differs, full_size, scale_min, note })
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expect::Exact(value) => write!(f, "exactly {value}"),
            Expect::Band(low, high) => write!(f, "{low} to {high}"),
            Expect::Shape(sentence) => f.write_str(sentence),
            Expect::Pin(value) => write!(f, "{value} last time"),
        }
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Printed::Number(number) => write!(f, "{number}"),
            Printed::Range([low, high]) => write!(f, "{low} to {high}"),
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
            "[[rows]]\nname = 'a'\npaper = 4\nexact = 4\n
             [[rows]]\nname = 'a'\nband = [1, 2.5]\n
             [[rows]]\nname = 'b'\nshape = 'it falls'\nfull_size = true",
        )
        .unwrap();
        let expects: Vec<&Expect> = plan.rows.iter().map(|row| &row.expect).collect();
        let shape = Expect::Shape("it falls".into());
        assert_eq!(expects, [&Expect::Exact(4.0), &Expect::Band(1.0, 2.5), &shape]);
        assert_eq!(plan.rows.iter().map(|r| r.full_size).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(plan.rows[0].paper, Some(Printed::Number(4.0)));
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
            "pin = nan",
            "pin = 1\nexact = 1",
            "band = [1, 2]\nscale_min = 1.5",
            "band = [1, 2]\nscale_min = nan",
            "band = [1, 2]\nscale_min = 0.5\nfull_size = true",
        ] {
            assert!(plan(&format!("[[rows]]\nname = 'a'\n{judgement}")).is_err(), "{judgement}");
        }
    }

    #[test]
    fn a_plan_that_expects_nothing_is_no_plan() {
        assert!(plan("rows = []").is_err());
    }

    #[test]
    fn a_row_that_would_hold_without_the_papers_number_is_no_row() {
        for (row, is_row) in [
            ("paper = 5\nband = [4, 6]", true),
            ("paper = 6\nband = [4, 6]", true),
            ("paper = 6.1\nband = [4, 6]", false),
            ("paper = [4, 5]\nband = [4, 6]", true),
            ("paper = [4, 7]\nband = [4, 6]", false),
            ("paper = [3, 7]\nband = [4, 6]", false),
            ("paper = 5\nexact = 5", true),
            ("paper = 5\nexact = 5.1", false),
            ("paper = 5\npin = 5", false),
            ("paper = 5\nshape = 'it falls'", false),
            ("pin = 5", true),
        ] {
            assert_eq!(plan(&format!("[[rows]]\nname = 'a'\n{row}")).is_ok(), is_row, "{row}");
        }
    }

    #[test]
    fn an_explanation_needs_a_shape_that_shows_it() {
        let shown = |by: &str, shower: &str| {
            plan(&format!(
                "[[rows]]\nname = 'a'\nband = [1, 2]\ndiffers = {{ why = 'so', shown_by = '{by}' }}
                 [[rows]]\nname = 'b'\n{shower}"
            ))
            .is_ok()
        };
        assert!(shown("b", "shape = 'without it, it is gone'"));
        assert!(!shown("c", "shape = 'without it, it is gone'"));
        assert!(!shown("b", "band = [1, 2]"));
        assert!(!shown("a", "shape = 'without it, it is gone'"));
        assert!(!shown("b", "shape = 'it'\ndiffers = { why = 'so', shown_by = 'b' }"));
    }

    #[test]
    fn a_pin_is_not_expected_to_differ() {
        let rows = "[[rows]]\nname = 'a'\npin = 1\ndiffers = { why = 'so', shown_by = 'b' }
                    [[rows]]\nname = 'b'\nshape = 'it is gone'";
        assert!(plan(rows).is_err());
    }
}
