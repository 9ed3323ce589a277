//! What came out: paper, ours, verdict; as a table or as JSON.

use std::fmt;

use serde::Serialize;

use crate::{
    Differs, Expect, Outcome, Plan, Printed, Value, Verdict, trial::Findings, verdict::judge,
};

/// The outcome of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The experiment's id.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Where the paper reports it.
    pub section: String,
    /// What the plan's sizes were multiplied by.
    pub scale: f64,
    /// The seed of everything random.
    pub seed: u64,
    /// The plan's rows in its order, then the measurements that no row judges.
    pub rows: Vec<Line>,
    /// That of the worst row.
    pub verdict: Outcome,
}

/// One row of a report.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The measurement.
    pub name: String,
    /// What the paper prints.
    pub paper: Option<Printed>,
    /// What we measured.
    pub ours: Option<Value>,
    /// What the plan expects.
    pub expected: Option<Expect>,
    /// Whether that came out.
    pub verdict: Verdict,
    /// That it is known not to come out, and why.
    pub differs: Option<Differs>,
    /// Why not, and the plan's remark.
    pub note: String,
}

impl Report {
    pub(crate) fn new(plan: &Plan, scale: f64, findings: &Findings) -> Report {
        let judged = plan.rows.iter().map(|row| {
            let (ours, verdict, why) = judge(plan, row, scale, findings);
            Line {
                name: row.name.clone(),
                paper: row.paper,
                ours,
                expected: Some(row.expect.clone()),
                verdict,
                differs: row.differs.clone(),
                note: join(&[&why, &row.note]),
            }
        });
        let is_planned = |name: &str| plan.rows.iter().any(|row| row.name == name);
        let rest = findings.measurements.iter().filter(|(name, _)| !is_planned(name));
        let rest = rest.map(|(name, ours)| Line {
            name: name.clone(),
            paper: None,
            ours: Some(*ours),
            expected: None,
            verdict: Verdict::Beside,
            differs: None,
            note: String::new(),
        });
        let rows: Vec<Line> = judged.chain(rest).collect();
        Report {
            id: plan.id.clone(),
            title: plan.title.clone(),
            section: plan.section.clone(),
            scale,
            seed: plan.seed,
            verdict: Outcome::of_rows(rows.iter().map(|row| row.verdict)),
            rows,
        }
    }

    /// The report as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a report has string keys only")
    }

    /// Which rows differ, and the plan does not explain it.
    pub fn differing(&self) -> Vec<&str> {
        let differing = self.rows.iter().filter(|row| row.verdict == Verdict::Differs);
        differing.map(|row| row.name.as_str()).collect()
    }

    /// How many rows have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }
}

/// The parts that say something.
fn join(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}

/// What stands in the table's columns. Each distinct note is told once, below the table.
fn cells<'a>(line: &'a Line, notes: &mut Vec<&'a str>) -> [String; 5] {
    let expected = line.expected.as_ref().map(Expect::to_string).unwrap_or_default();
    let mark = if line.note.is_empty() {
        String::new()
    } else {
        let known = notes.iter().position(|note| *note == line.note);
        let index = known.unwrap_or_else(|| {
            notes.push(&line.note);
            notes.len() - 1
        });
        format!("[{}]", index + 1)
    };
    [
        line.name.clone(),
        line.paper.map(|paper| paper.to_string()).unwrap_or_default(),
        line.ours.map(|ours| ours.to_string()).unwrap_or_default(),
        line.verdict.to_string(),
        format!("{expected} {mark}").trim().to_owned(),
    ]
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  {}", self.id, self.title)?;
        writeln!(f, "{}, seed {}, scale {}\n", self.section, self.seed, self.scale)?;
        let mut notes = Vec::new();
        let mut table =
            vec![["measurement", "paper", "ours", "verdict", "expected"].map(String::from)];
        table.extend(self.rows.iter().map(|row| cells(row, &mut notes)));
        let width = |column: usize| {
            table.iter().map(|cells| cells[column].chars().count()).max().unwrap_or_default()
        };
        let [name_width, paper_width, ours_width, verdict_width] = [0, 1, 2, 3].map(width);
        for [name, paper, ours, verdict, expected] in &table {
            let line = format!(
                "{name:name_width$}  {paper:>paper_width$}  {ours:>ours_width$}  \
                 {verdict:verdict_width$}  {expected}"
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(f)?;
        for (index, note) in notes.iter().enumerate() {
            writeln!(f, "[{}] {note}", index + 1)?;
        }
        writeln!(
            f,
            "{} {}: {} hold, {} differ as explained, {} differ, {} not judged; {} as before",
            self.id,
            self.verdict,
            self.count(Verdict::Holds),
            self.count(Verdict::Explained),
            self.count(Verdict::Differs),
            self.count(Verdict::NotJudged),
            self.count(Verdict::AsBefore),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let plan = Plan::parse(
            "id = 'X-E1'\ntitle = 'Bits'\npaper = ''\nsection = '§1'\nabout = ''\nseed = 7
             may_be_absent = ['list']
             [[rows]]\nname = 'a/mean'\npaper = 52\nband = [36, 60]
             [[rows]]\nname = 'a/max'\npin = 107\nnote = 'pinned'
             [[rows]]\nname = 'list/mean'\nexact = 1
             [[rows]]\nname = 'a/falls'\nshape = 'it falls'
             [[rows]]\nname = 'a/wide'\npaper = [1, 2]\nband = [1, 3]
             differs = { why = 'it is wide', shown_by = 'a/falls' }",
        )
        .unwrap();
        let findings = Findings {
            measurements: vec![
                ("a/falls".into(), Value::Truth(true)),
                ("a/extra".into(), Value::Number(0.5)),
                ("a/mean".into(), Value::Number(46.3)),
                ("a/spare".into(), Value::Truth(true)),
                ("a/max".into(), Value::Number(100.0)),
                ("a/wide".into(), Value::Number(4.0)),
            ],
            absent: [("list".into(), "no list here".into())].into(),
        };
        Report::new(&plan, 1.0, &findings)
    }

    #[test]
    fn the_table_is_aligned_and_complete() {
        let expected = "\
X-E1  Bits
§1, seed 7, scale 1

measurement   paper  ours  verdict     expected
a/mean           52  46.3  holds       36 to 60
a/max                 100  differs     107 last time [1]
list/mean                  not judged  exactly 1 [2]
a/falls               yes  holds       it falls
a/wide       1 to 2     4  explained   1 to 3 [3]
a/extra               0.5  beside
a/spare               yes  beside

[1] pinned
[2] no list here
[3] it is wide, as a/falls shows
X-E1 differs: 2 hold, 1 differ as explained, 1 differ, 1 not judged; 0 as before
";
        assert_eq!(report().to_string(), expected);
    }

    #[test]
    fn rows_that_differ_can_be_named() {
        assert_eq!(report().differing(), ["a/max"]);
    }

    #[test]
    fn json_says_the_same() {
        let json: serde_json::Value = serde_json::from_str(&report().to_json()).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "id": "X-E1", "title": "Bits", "section": "§1", "scale": 1.0, "seed": 7,
                "verdict": "differs",
                "rows": [
                    {"name": "a/mean", "paper": 52.0, "ours": 46.3, "differs": null,
                     "expected": {"band": [36.0, 60.0]}, "verdict": "holds", "note": ""},
                    {"name": "a/max", "paper": null, "ours": 100.0, "differs": null,
                     "expected": {"pin": 107.0}, "verdict": "differs", "note": "pinned"},
                    {"name": "list/mean", "paper": null, "ours": null, "differs": null,
                     "expected": {"exact": 1.0}, "verdict": "not judged", "note": "no list here"},
                    {"name": "a/falls", "paper": null, "ours": true, "differs": null,
                     "expected": {"shape": "it falls"}, "verdict": "holds", "note": ""},
                    {"name": "a/wide", "paper": [1.0, 2.0], "ours": 4.0,
                     "expected": {"band": [1.0, 3.0]}, "verdict": "explained",
                     "differs": {"why": "it is wide", "shown_by": "a/falls"},
                     "note": "it is wide, as a/falls shows"},
                    {"name": "a/extra", "paper": null, "ours": 0.5, "differs": null,
                     "expected": null, "verdict": "beside", "note": ""},
                    {"name": "a/spare", "paper": null, "ours": true, "differs": null,
                     "expected": null, "verdict": "beside", "note": ""},
                ],
            })
        );
    }
}
