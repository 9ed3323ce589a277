//! What came out: paper, ours, verdict; as a table or as JSON.

use std::fmt;

use serde::Serialize;

use crate::{
    Differs, Expect, Outcome, Plan, Printed, Run, Scale, Value, Verdict, sample::Sample,
    verdict::judge,
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
    /// What the plan's sizes and durations were multiplied by.
    pub scale: Scale,
    /// The seeds of everything random; none where nothing is left to chance.
    pub seeds: Vec<u64>,
    /// The plan's rows in its order, then the measurements that no row judges.
    pub rows: Vec<Line>,
    /// Points of figures that no row judges.
    pub curves: Vec<Curve>,
    /// That of the worst row.
    pub verdict: Outcome,
}

/// Points of a figure, by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// As the figure calls it.
    pub name: String,
    /// The means of all seeds, if all have the same places; else those of the first.
    pub points: Vec<[f64; 2]>,
}

/// One row of a report.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The measurement.
    pub name: String,
    /// What the paper prints.
    pub paper: Option<Printed>,
    /// What we measured: the mean over seeds, or whether it is so with every seed.
    pub ours: Option<Value>,
    /// The interval in which the true mean lies with a probability of 95 %.
    pub interval: Option<[f64; 2]>,
    /// With each seed, if there are several.
    pub each: Vec<Value>,
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
    /// Judges what came out. All runs are at this scale.
    pub fn new(plan: &Plan, scale: Scale, runs: &[Run]) -> Report {
        let judged = plan.rows.iter().map(|row| {
            let (sample, verdict, why) = judge(plan, row, scale, runs);
            let line = Line::unjudged(row.name.clone(), sample.as_ref());
            Line {
                paper: row.paper,
                expected: Some(row.expect.clone()),
                verdict,
                differs: row.differs.clone(),
                note: join(&[&why, &row.note]),
                ..line
            }
        });
        let is_planned = |name: &str| plan.rows.iter().any(|row| row.name == name);
        let all = runs.first().map(|run| &*run.findings.measurements).unwrap_or_default();
        let rest = all
            .iter()
            .filter(|(name, _)| !is_planned(name))
            .map(|(name, _)| Line::unjudged(name.clone(), Sample::gather(runs, name).as_ref()));
        let rows: Vec<Line> = judged.chain(rest).collect();
        Report {
            id: plan.id.clone(),
            title: plan.title.clone(),
            section: plan.section.clone(),
            scale,
            seeds: runs.iter().filter_map(|run| run.seed).collect(),
            verdict: Outcome::of_rows(rows.iter().map(|row| row.verdict)),
            rows,
            curves: curves(runs),
        }
    }

    /// The seeds and the scale, for people.
    pub fn circumstances(&self) -> String {
        let seeds = match *self.seeds {
            [] => "without chance".into(),
            [seed] => format!("seed {seed}"),
            [first, .., last] if last - first == self.seeds.len() as u64 - 1 => {
                format!("seeds {first} to {last}")
            }
            ref several => {
                let several: Vec<String> = several.iter().map(u64::to_string).collect();
                format!("seeds {}", several.join(", "))
            }
        };
        format!("{seeds}, {}", self.scale)
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

fn curves(runs: &[Run]) -> Vec<Curve> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let of_first = first.findings.curves.iter();
    of_first
        .map(|(name, points)| {
            let of = |run: &Run| {
                let found = run.findings.curves.iter().find(|(other, _)| other == name)?;
                let is_alike = |(one, other): (&[f64; 2], &[f64; 2])| one[0] == other[0];
                let fits =
                    found.1.len() == points.len() && found.1.iter().zip(points).all(is_alike);
                fits.then(|| found.1.clone())
            };
            let mut sum = points.clone();
            let all: Option<Vec<_>> = others.iter().map(of).collect();
            if let Some(all) = all {
                let count = 1.0 + all.len() as f64;
                all.iter().for_each(|other| {
                    sum.iter_mut().zip(other).for_each(|(point, other)| point[1] += other[1]);
                });
                sum.iter_mut().for_each(|point| point[1] /= count);
            }
            Curve { name: name.clone(), points: sum }
        })
        .collect()
}

impl Line {
    fn unjudged(name: String, sample: Option<&Sample>) -> Line {
        let ours = sample.map(Sample::value);
        let interval = sample.and_then(|sample| {
            let (half, mean) = (sample.half_width()?, sample.value().number()?);
            Some([mean - half, mean + half])
        });
        let several = sample.map(Sample::values).filter(|values| values.len() > 1);
        Line {
            name,
            paper: None,
            ours,
            interval,
            each: several.unwrap_or_default().to_vec(),
            expected: None,
            verdict: Verdict::Beside,
            differs: None,
            note: String::new(),
        }
    }

    /// What we measured, for people: with how far the interval reaches, or with how many seeds it is so.
    pub fn measured(&self) -> String {
        let Some(ours) = self.ours else { return String::new() };
        let held = self.each.iter().filter(|value| **value == Value::Truth(true)).count();
        match (ours, self.interval) {
            (Value::Number(mean), Some([low, _])) if low < mean => {
                // Two digits say how sure it is.
                let half = mean - low;
                let digits = (1 - half.log10().floor() as i32).clamp(0, 4) as usize;
                format!("{mean:.digits$} ± {half:.digits$}")
            }
            (Value::Truth(_), _) if !self.each.is_empty() && held < self.each.len() => {
                format!("{held} of {}", self.each.len())
            }
            _ => ours.to_string(),
        }
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
        line.measured(),
        line.verdict.to_string(),
        format!("{expected} {mark}").trim().to_owned(),
    ]
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  {}", self.id, self.title)?;
        writeln!(f, "{}, {}\n", self.section, self.circumstances())?;
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
    use crate::Findings;

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
            ..Findings::default()
        };
        Report::new(&plan, Scale::FULL, &[Run { seed: Some(7), findings }])
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
                "id": "X-E1", "title": "Bits", "section": "§1",
                "scale": {"size": 1.0, "time": 1.0}, "seeds": [7],
                "verdict": "differs", "curves": [],
                "rows": [
                    {"name": "a/mean", "paper": 52.0, "ours": 46.3, "differs": null,
                     "interval": null, "each": [],
                     "expected": {"band": [36.0, 60.0]}, "verdict": "holds", "note": ""},
                    {"name": "a/max", "paper": null, "ours": 100.0, "differs": null,
                     "interval": null, "each": [],
                     "expected": {"pin": 107.0}, "verdict": "differs", "note": "pinned"},
                    {"name": "list/mean", "paper": null, "ours": null, "differs": null,
                     "interval": null, "each": [],
                     "expected": {"exact": 1.0}, "verdict": "not judged", "note": "no list here"},
                    {"name": "a/falls", "paper": null, "ours": true, "differs": null,
                     "interval": null, "each": [],
                     "expected": {"shape": "it falls"}, "verdict": "holds", "note": ""},
                    {"name": "a/wide", "paper": [1.0, 2.0], "ours": 4.0,
                     "interval": null, "each": [],
                     "expected": {"band": [1.0, 3.0]}, "verdict": "explained",
                     "differs": {"why": "it is wide", "shown_by": "a/falls"},
                     "note": "it is wide, as a/falls shows"},
                    {"name": "a/extra", "paper": null, "ours": 0.5, "differs": null,
                     "interval": null, "each": [],
                     "expected": null, "verdict": "beside", "note": ""},
                    {"name": "a/spare", "paper": null, "ours": true, "differs": null,
                     "interval": null, "each": [],
                     "expected": null, "verdict": "beside", "note": ""},
                ],
            })
        );
    }

    #[test]
    fn several_seeds_have_a_mean_an_interval_and_each_of_them() {
        let plan = Plan::parse(
            "id = 'X-E1'\ntitle = ''\npaper = ''\nsection = '§1'\nabout = ''\nseed = 7
             [[rows]]\nname = 'mean'\nband = [1, 3]\n[[rows]]\nname = 'falls'\nshape = 'it falls'",
        )
        .unwrap();
        let run = |(seed, number, truth): (u64, f64, bool)| {
            let number = ("mean".into(), Value::Number(number));
            let measurements = vec![number, ("falls".into(), Value::Truth(truth))];
            let findings = Findings { measurements, ..Findings::default() };
            Run { seed: Some(seed), findings }
        };
        let runs = [(7, 1.9, true), (8, 2.0, true), (9, 2.1, false)].map(run);
        let scale = Scale { size: 0.5, time: 0.1 };
        let report = Report::new(&plan, scale, &runs);
        assert_eq!(report.circumstances(), "seeds 7 to 9, scale 0.5, durations 0.1");
        assert_eq!(report.rows[0].measured(), "2.00 ± 0.25");
        assert_eq!(report.rows[0].each, [1.9, 2.0, 2.1].map(Value::Number));
        assert_eq!(
            (report.rows[0].verdict, report.rows[1].verdict),
            (Verdict::Holds, Verdict::Differs)
        );
        assert_eq!(report.rows[1].measured(), "2 of 3");
        assert_eq!(Report::new(&plan, scale, &runs[..1]).rows[0].measured(), "1.9");
    }
}
