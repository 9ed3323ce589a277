//! The files of a page, and what all of them say alike.

use serde::Serialize;

use super::{chart, markdown, page};
use crate::{EXPERIMENTS, Expect, Experiment, Line, Outcome, Report, Value, Verdict};

/// All that a page is made of.
pub struct Gallery<'a> {
    /// How it was run.
    pub circumstances: Circumstances,
    /// Experiments that have run, in the order of the papers.
    pub entries: &'a [Entry],
}

/// An experiment that has run.
pub struct Entry {
    /// Which.
    pub experiment: &'static Experiment,
    /// What came out.
    pub report: Report,
    /// By which builds of the program, where a page has runs of several.
    pub builds: Vec<String>,
    /// What came out of a smaller run with more seeds.
    pub smaller: Option<Report>,
}

/// How a run was made.
#[derive(Clone, Debug, Serialize)]
pub struct Circumstances {
    /// Of the program.
    pub version: String,
    /// Which build of it.
    pub program: String,
    /// What it ran on.
    pub computer: String,
    /// What was asked for.
    pub command: String,
    /// What it took of processors with all seeds, in seconds.
    pub processor_s: f64,
    /// Whether the page shows the largest runs that there are, whenever they were made.
    pub is_gathered: bool,
}

/// Experiments of the papers that are not here, and what they wait for.
pub(super) const NOT_YET: &[(&str, &str)] = &[
    ("L-E2", "58 machines for 100 hours: file contents that are kept on several machines"),
    ("D-E2", "renames across six servers: a tree that is divided among groups"),
    ("D-E3b, D-E7, D-E8", "programs that share files in many ways, at basis rates: a divided tree"),
    ("D-E5, D-E6", "load that is balanced among 1 to 20 servers: a divided tree"),
];

/// A drawn figure.
pub(super) struct Picture {
    /// In `figures/`.
    pub(super) file: String,
    pub(super) caption: String,
    pub(super) svg: String,
}

impl Entry {
    /// Seeds, scale and builds, for people.
    pub(super) fn circumstances(&self) -> String {
        let words = if self.builds.len() > 1 { "builds" } else { "build" };
        let builds = match &*self.builds {
            [] => String::new(),
            builds => format!("; {words} {}", builds.join(", ")),
        };
        self.report.circumstances() + &builds
    }
}

impl Gallery<'_> {
    /// Experiments that were not asked for, or are still to come.
    pub(super) fn missing(&self) -> String {
        let plans = EXPERIMENTS.iter().map(|experiment| experiment.plan().id);
        let is_missing = |id: &String| self.entries.iter().all(|entry| entry.report.id != *id);
        plans.filter(is_missing).collect::<Vec<_>>().join(", ")
    }

    /// Which were not run at full size, and what one seed of each would take; nothing if all were.
    pub(super) fn not_full(&self) -> String {
        let small = self.entries.iter().filter(|entry| !entry.report.scale.is_full());
        let takes: Vec<(String, f64)> = small
            .map(|entry| entry.experiment.plan())
            .map(|plan| (format!("{} {}", plan.id, span(plan.full_minutes)), plan.full_minutes))
            .collect();
        let hours = takes.iter().map(|(_, minutes)| minutes).sum::<f64>() / 60.0;
        if takes.is_empty() {
            return String::new();
        }
        let takes: Vec<String> = takes.into_iter().map(|(take, _)| take).collect();
        format!(
            "Not at full size, for which one seed takes so much of a processor: {}; together {hours:.0} h.",
            takes.join(", ")
        )
    }

    /// What readers have to know of all numbers.
    pub(super) fn reading(&self) -> String {
        let gathered = if self.circumstances.is_gathered {
            "Of each experiment the largest run is shown that was made with what its plan says; where a smaller one has \
             more seeds, it stands below. "
        } else {
            ""
        };
        format!(
            "{gathered}Each experiment says at which scale it was run: rows that are for a larger one only are not \
             judged there, and make it partial. Numbers are means over seeds, with the half of their 95 % interval; \
             a relation holds if it does with every seed."
        )
    }

    /// Files by their paths, all of them text.
    pub fn files(&self) -> Vec<(String, String)> {
        let mut files = vec![
            ("index.html".into(), page::html(self)),
            ("README.md".into(), markdown::text(self)),
            ("results.json".into(), self.json()),
        ];
        for Entry { experiment, report, .. } in self.entries {
            let pictures = pictures(experiment, report).into_iter();
            files
                .extend(pictures.map(|picture| (format!("figures/{}", picture.file), picture.svg)));
        }
        files
    }

    fn json(&self) -> String {
        let reports: Vec<&Report> = self.entries.iter().map(|entry| &entry.report).collect();
        let smaller: Vec<&Report> =
            self.entries.iter().filter_map(|entry| entry.smaller.as_ref()).collect();
        let all = serde_json::json!({
            "circumstances": self.circumstances, "experiments": reports, "smaller": smaller,
        });
        serde_json::to_string_pretty(&all).expect("a report has string keys only") + "\n"
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.entries.iter().filter(|entry| entry.report.verdict == outcome).count()
    }

    /// How many experiments came out how.
    pub(super) fn summary(&self) -> String {
        format!(
            "{} experiments: {} hold, {} differ as explained, {} partial, {} differ",
            self.entries.len(),
            self.count(Outcome::Holds),
            self.count(Outcome::Explained),
            self.count(Outcome::Partial),
            self.count(Outcome::Differs),
        )
    }
}

pub(super) fn pictures(experiment: &Experiment, report: &Report) -> Vec<Picture> {
    let plan = experiment.plan();
    let figures = plan.figures.iter().enumerate();
    figures
        .filter_map(|(at, figure)| {
            let svg = chart::svg(figure, report)?;
            let file = format!("{}-{}.svg", plan.id, at + 1);
            Some(Picture { file, caption: format!("{}: {}", figure.of, figure.title), svg })
        })
        .collect()
}

/// What stands in a row: what was measured, paper, ours, verdict, what is expected and why not.
pub(super) fn cells(line: &Line) -> [String; 5] {
    let expected = line.expected.as_ref().map(ToString::to_string).unwrap_or_default();
    let remark = match (&*expected, &*line.note) {
        (expected, "") => expected.to_owned(),
        ("", note) => note.to_owned(),
        (expected, note) => format!("{expected}; {note}"),
    };
    [
        line.name.clone(),
        line.paper.map(|paper| paper.to_string()).unwrap_or_default(),
        line.measured(),
        line.verdict.to_string(),
        remark,
    ]
}

/// Whether a row says something of the paper, and does not only guard our own numbers or stand beside.
pub(super) fn is_of_paper(line: &Line) -> bool {
    !matches!(line.expected, None | Some(Expect::Pin(_)))
}

/// What came out of an experiment, in numbers.
pub(super) fn counts(report: &Report) -> String {
    let all = [
        (Verdict::Holds, "hold"),
        (Verdict::Explained, "explained"),
        (Verdict::Differs, "differ"),
        (Verdict::NotJudged, "not judged"),
    ];
    let counted = all.map(|(verdict, word)| (report.count(verdict), word));
    let said = counted.iter().filter(|(count, _)| *count > 0);
    said.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// The verdict on an experiment, as it stands alone.
pub(super) fn outcome(report: &Report) -> String {
    report.verdict.to_string().trim_start_matches("is ").to_owned()
}

/// How large a run was, and what it would take as large as the plan says.
pub(super) fn size(experiment: &Experiment, report: &Report, smaller: Option<&Report>) -> String {
    let seeds = |report: &Report| match report.seeds.len() {
        0 => String::new(),
        1 => ", one seed".into(),
        many => format!(", {many} seeds"),
    };
    let (size, takes) = if report.scale.is_full() {
        ("full size".to_owned(), String::new())
    } else {
        let takes = span(experiment.plan().full_minutes);
        (
            report.scale.to_string(),
            format!(" (full size takes {takes} of a processor with one seed)"),
        )
    };
    let more = smaller.map(|smaller| format!("; {}{}", smaller.scale, seeds(smaller)));
    format!("{size}{}{takes}{}", seeds(report), more.unwrap_or_default())
}

/// A time of so many minutes, roughly.
fn span(minutes: f64) -> String {
    if minutes < 90.0 {
        format!("{} min", minutes.ceil())
    } else {
        format!("{:.0} h", minutes / 60.0)
    }
}

/// With each seed.
pub(super) fn each(line: &Line) -> String {
    line.each.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}
