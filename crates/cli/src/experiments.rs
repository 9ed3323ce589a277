//! `croft papers`: what experiments there are, and running them.

mod computer;
mod folder;

use std::{
    io::{IsTerminal, Write, stderr, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use papers::{Circumstances, EXPERIMENTS, Entry, Experiment, Gallery, Outcome, Report, Run, Scale};

use folder::{Folder, Kept};

/// Seeds of a run that is asked for by name, where chance plays a part.
const SEEDS_OF_A_PAGE: u32 = 3;

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the experiments, and what they take
    List {
        /// Print one JSON object for each experiment, one on a line
        #[arg(long)]
        json: bool,
    },
    /// Run experiments; exit with 0 if all holds, or differs for reasons that were shown
    ///
    /// A row of the plan holds; or is as before, where it guards our own number and says nothing of the paper's; or
    /// is explained, where it differs as the plan expects and what shows the cause came out too; or differs; or is
    /// not judged (its input is not on this machine, or the run is not at full size). With several seeds a band is
    /// for the mean, and a relation for each of them. An experiment is as good as
    /// its worst row. The exit code is 0 if all hold or differ as explained, 1 if any differs otherwise, and 3 if
    /// none does and some are partial: rows of theirs were not judged.
    Run(Order),
    /// Write the page of a folder anew, from all runs that it has, and run nothing
    ///
    /// Of each experiment the largest run is shown that was made with what its plan says now, by any build of the
    /// program; where a smaller one has more seeds, that stands below it. The exit code is that of `run`.
    Page {
        /// The folder, as `--out` of `croft papers run` named it
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Exit with 1 unless all hold
        #[arg(long)]
        strict: bool,
    },
    /// Be one machine of K-E13, whose parent is another `croft`
    #[command(hide = true)]
    Peer,
}

#[derive(clap::Args)]
pub struct Order {
    /// Which experiments, as `croft papers list` names them, or all
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Print one JSON object for each experiment, one on a line
    #[arg(long)]
    json: bool,
    /// Exit with 1 unless all hold
    #[arg(long)]
    strict: bool,
    /// Run each at the small size that its plan names; all together take less than 15 minutes
    #[arg(long, conflicts_with_all = ["full", "scale", "scale_time"])]
    quick: bool,
    /// Run each at full size; all together take days
    #[arg(long, conflicts_with_all = ["scale", "scale_time"])]
    full: bool,
    /// Multiply sizes, and durations too; exact rows are judged at scale 1 only
    #[arg(long, value_name = "F", default_value = "1", value_parser = parse_scale)]
    scale: f64,
    /// Multiply durations by this instead: a smaller network that lives as long is the same in small
    #[arg(long, value_name = "F", value_parser = parse_scale)]
    scale_time: Option<f64>,
    /// Begin with this seed instead of each plan's
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Run with so many seeds where anything is left to chance, and judge the mean [default: 1, and 3 with --quick or
    /// --full]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Write a page with figures of these runs to this folder (index.html, README.md, results.json); what it already
    /// has of them is not run again
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List { json } => list(*json),
        Command::Run(order) => match find(&order.ids) {
            Ok(experiments) => order.run(&experiments),
            Err(unknown) => {
                writeln!(stderr(), "croft: {unknown}")?;
                Ok(ExitCode::from(2))
            }
        },
        Command::Page { folder, strict } => page(folder, *strict),
        Command::Peer => {
            papers::live_as_peer()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn parse_scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if Scale::from(scale).is_positive() => Ok(scale),
        _ => Err("a scale is a positive number".into()),
    }
}

/// All of these experiments, or which are unknown.
fn find(ids: &[String]) -> Result<Vec<&'static Experiment>, String> {
    if ids == ["all"] {
        return Ok(EXPERIMENTS.iter().collect());
    }
    ids.iter()
        .map(|id| {
            papers::find(id).ok_or_else(|| {
                let known: Vec<String> = EXPERIMENTS.iter().map(|e| e.plan().id).collect();
                format!("no experiment is called {id}; there are: all, {}", known.join(", "))
            })
        })
        .collect()
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let mut out = stdout().lock();
    for plan in EXPERIMENTS.iter().map(Experiment::plan) {
        if json {
            let line = serde_json::json!({
                "id": plan.id, "title": plan.title, "paper": plan.paper, "section": plan.section,
                "quick_seconds": plan.quick.seconds, "full_minutes": plan.full_minutes,
            });
            writeln!(out, "{line}")?;
        } else {
            let takes = format!(
                "quick {}, full {}",
                said(plan.quick.seconds),
                said(60.0 * plan.full_minutes)
            );
            writeln!(
                out,
                "{:6} {} ({}, {}; {takes})",
                plan.id, plan.title, plan.paper, plan.section
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A time of this many seconds, roughly.
fn said(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{:.0} s", seconds.max(1.0)),
        ..5_400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3_600.0),
    }
}

impl Order {
    fn scale(&self, experiment: &Experiment) -> Scale {
        if self.quick {
            return experiment.plan().quick_scale();
        }
        Scale { size: self.scale, time: self.scale_time.unwrap_or(self.scale) }
    }

    /// With which seeds to run; once where nothing is left to chance.
    fn seeds(&self, experiment: &Experiment) -> Vec<Option<u64>> {
        let Some(own) = experiment.plan().seed else { return vec![None] };
        let default = if self.quick || self.full { SEEDS_OF_A_PAGE } else { 1 };
        let first = self.seed.unwrap_or(own);
        let count = u64::from(self.seeds.unwrap_or(default));
        (0..count).map(|more| Some(first.wrapping_add(more))).collect()
    }

    /// What a run with one seed takes of a processor, in seconds, if the plan knows.
    fn expected_s(&self, experiment: &Experiment) -> f64 {
        let plan = experiment.plan();
        if self.quick {
            plan.quick.seconds
        } else {
            60.0 * plan.full_minutes * self.scale(experiment).size * self.scale(experiment).time
        }
    }

    fn run(&self, experiments: &[&'static Experiment]) -> anyhow::Result<ExitCode> {
        let folder = self.out.as_deref().map(Folder::open).transpose()?;
        let mut entries: Vec<Entry> = Vec::new();
        let mut processor_s = 0.0;
        for (at, experiment) in experiments.iter().copied().enumerate() {
            let (report, took) = self.run_seeds(folder.as_ref(), &experiments[at..])?;
            processor_s += took;
            let mut out = stdout().lock();
            if self.json {
                writeln!(out, "{}", report.to_json())?;
            } else {
                writeln!(out, "{report}")?;
            }
            out.flush()?;
            entries.push(Entry { experiment, report, builds: Vec::new(), smaller: None });
            // Whoever is interrupted has a page of what was done.
            if let Some(folder) = &folder {
                let circumstances = self.circumstances(folder, processor_s);
                folder.write(&Gallery { circumstances, entries: &entries })?;
            }
        }
        let outcomes: Vec<Outcome> = entries.iter().map(|entry| entry.report.verdict).collect();
        if !self.json {
            writeln!(stdout(), "{}", summary(&outcomes))?;
        }
        Ok(ExitCode::from(exit_code(&outcomes, self.strict)))
    }

    /// Runs the first of these with each seed, and judges; and what that took of a processor. People are told how much
    /// is left with all of them.
    fn run_seeds(
        &self,
        folder: Option<&Folder>,
        experiments: &[&Experiment],
    ) -> anyhow::Result<(Report, f64)> {
        let experiment = experiments[0];
        let scale = self.scale(experiment);
        let left = |experiment: &&Experiment| {
            self.seeds(experiment).len() as f64 * self.expected_s(experiment)
        };
        let mut left_s = experiments.iter().map(left).sum::<f64>();
        let (mut runs, mut processor_s) = (Vec::new(), 0.0);
        for seed in self.seeds(experiment) {
            let takes_s = self.expected_s(experiment);
            progress(&format!(
                "{}{}: about {} of a processor; {} for all that is left",
                experiment.plan().id,
                seed.map(|seed| format!(", seed {seed}")).unwrap_or_default(),
                said(takes_s),
                said(left_s),
            ));
            left_s -= takes_s;
            let (run, took) = measure(folder, experiment, scale, seed)?;
            runs.push(run);
            processor_s += took;
        }
        Ok((Report::new(&experiment.plan(), scale, &runs), processor_s))
    }

    fn circumstances(&self, folder: &Folder, processor_s: f64) -> Circumstances {
        let mut command = format!("croft papers run {}", self.ids.join(" "));
        for (is_there, word) in [(self.quick, " --quick"), (self.full, " --full")] {
            command += if is_there { word } else { "" };
        }
        if self.scale != 1.0 {
            command += &format!(" --scale {}", self.scale);
        }
        for (word, value) in [
            ("scale-time", self.scale_time.map(|factor| factor.to_string())),
            ("seed", self.seed.map(|seed| seed.to_string())),
            ("seeds", self.seeds.map(|seeds| seeds.to_string())),
        ] {
            if let Some(value) = value {
                command += &format!(" --{word} {value}");
            }
        }
        Circumstances {
            version: env!("CARGO_PKG_VERSION").into(),
            program: folder.build().into(),
            computer: computer::describe(),
            command,
            processor_s,
            is_gathered: false,
        }
    }
}

/// Runs once, or takes what the folder has of the very same run; and what that took of a processor.
fn measure(
    folder: Option<&Folder>,
    experiment: &Experiment,
    scale: Scale,
    seed: Option<u64>,
) -> anyhow::Result<(Run, f64)> {
    if let Some(kept) = folder.and_then(|folder| folder.find(experiment, scale, seed)) {
        progress("  it is there already");
        return Ok((kept.run, kept.processor_s));
    }
    let before = computer::processor_s();
    let run = experiment.measure(scale, seed, &mut progress)?;
    // In hundredths, which JSON gives back as they were.
    let took = ((computer::processor_s() - before) * 100.0).round() / 100.0;
    let Some(folder) = folder else { return Ok((run, took)) };
    let kept = folder.keep(experiment, scale, run, took);
    let kept = kept.with_context(|| format!("cannot keep a run of {}", experiment.plan().id))?;
    Ok((kept.run, took))
}

/// Writes the page of all that a folder has.
fn page(folder: &Path, strict: bool) -> anyhow::Result<ExitCode> {
    if !folder.join("runs").is_dir() {
        anyhow::bail!(
            "{} has no runs; `croft papers run all --quick --out {}` makes some",
            folder.display(),
            folder.display()
        );
    }
    let at = Folder::open(folder)?;
    let (mut entries, mut shown) = (Vec::new(), Vec::new());
    for experiment in EXPERIMENTS {
        let (largest, smaller) = choose(at.all(experiment)?);
        let Some(first) = largest.first() else { continue };
        let report = |kept: &[Kept], scale: Scale| {
            let runs: Vec<Run> = kept.iter().map(|kept| kept.run.clone()).collect();
            Report::new(&experiment.plan(), scale, &runs)
        };
        entries.push(Entry {
            experiment,
            report: report(&largest, first.scale),
            builds: each_once(largest.iter().map(Kept::build)),
            smaller: smaller.first().map(|first| report(&smaller, first.scale)),
        });
        shown.extend(largest.into_iter().chain(smaller));
    }
    let circumstances = Circumstances {
        version: env!("CARGO_PKG_VERSION").into(),
        program: each_once(shown.iter().map(Kept::build)).join(", "),
        computer: each_once(shown.iter().map(|kept| &*kept.computer)).join("; "),
        command: "croft papers page".into(),
        processor_s: shown.iter().map(|kept| kept.processor_s).sum(),
        is_gathered: true,
    };
    at.write(&Gallery { circumstances, entries: &entries })?;
    let outcomes: Vec<Outcome> = entries.iter().map(|entry| entry.report.verdict).collect();
    writeln!(stdout(), "{}", summary(&outcomes))?;
    Ok(ExitCode::from(exit_code(&outcomes, strict)))
}

/// Of the runs of one experiment the largest ones, and others if those have more seeds.
fn choose(all: Vec<Kept>) -> (Vec<Kept>, Vec<Kept>) {
    let mut groups: Vec<Vec<Kept>> = Vec::new();
    for kept in all {
        match groups.iter_mut().find(|group| group[0].scale == kept.scale) {
            Some(group) => group.push(kept),
            None => groups.push(vec![kept]),
        }
    }
    let size = |group: &Vec<Kept>| group[0].scale.size * group[0].scale.time;
    groups.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let mut groups = groups.into_iter();
    let largest = groups.next().unwrap_or_default();
    let most = groups.filter(|group| group.len() > largest.len());
    let most = most.reduce(|one, other| if other.len() > one.len() { other } else { one });
    (largest, most.unwrap_or_default())
}

fn each_once<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for word in words {
        if !once.iter().any(|other| other == word) {
            once.push(word.into());
        }
    }
    once
}

/// The last line: how many experiments came out how.
fn summary(outcomes: &[Outcome]) -> String {
    let count = |outcome| outcomes.iter().filter(|other| **other == outcome).count();
    format!(
        "experiments: {} hold, {} differ as explained, {} partial, {} differ",
        count(Outcome::Holds),
        count(Outcome::Explained),
        count(Outcome::Partial),
        count(Outcome::Differs),
    )
}

/// That of the worst experiment.
fn exit_code(outcomes: &[Outcome], strict: bool) -> u8 {
    match outcomes.iter().max() {
        Some(Outcome::Holds) => 0,
        Some(_) if strict => 1,
        Some(Outcome::Explained) => 0,
        Some(Outcome::Partial) => 3,
        Some(Outcome::Differs) | None => 1,
    }
}

/// Tells people at a terminal what goes on, and nobody else.
fn progress(what: &str) {
    let mut err = stderr();
    if err.is_terminal() {
        // Talk that cannot be heard is no reason to stop.
        let _ = writeln!(err, "{what}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_that_of_the_worst_experiment() {
        use Outcome::{Differs, Explained, Holds, Partial};
        for (outcomes, code, strict_code) in [
            (&[Holds, Holds][..], 0, 0),
            (&[Holds, Explained], 0, 1),
            (&[Partial, Explained], 3, 1),
            (&[Partial, Differs, Holds], 1, 1),
        ] {
            assert_eq!(exit_code(outcomes, false), code, "{outcomes:?}");
            assert_eq!(exit_code(outcomes, true), strict_code, "{outcomes:?}");
        }
    }

    #[test]
    fn the_last_line_counts_every_kind() {
        use Outcome::{Differs, Explained, Holds, Partial};
        let all = [Holds, Holds, Holds, Explained, Explained, Partial, Differs, Holds];
        let expected = "experiments: 4 hold, 2 differ as explained, 1 partial, 1 differ";
        assert_eq!(summary(&all), expected);
    }

    #[test]
    fn quick_runs_of_all_with_three_seeds_are_expected_to_fit_into_a_quarter_of_an_hour() {
        let order = Order {
            ids: vec!["all".into()],
            json: false,
            strict: false,
            quick: true,
            full: false,
            scale: 1.0,
            scale_time: None,
            seed: None,
            seeds: None,
            out: None,
        };
        let expected = |e: &&Experiment| order.seeds(e).len() as f64 * order.expected_s(e);
        let all = find(&order.ids).unwrap().iter().map(expected).sum::<f64>();
        assert!(all < 900.0, "{all} s of a processor");
    }
}
