//! `croft papers`: what experiments there are, and running them.

use std::{
    io::{IsTerminal, Write, stderr, stdout},
    process::ExitCode,
};

use papers::{EXPERIMENTS, Experiment, Outcome};

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the experiments
    List {
        /// Print one JSON object for each experiment, one on a line
        #[arg(long)]
        json: bool,
    },
    /// Run experiments; exit with 0 if all holds, or differs for reasons that were shown
    ///
    /// A row of the plan holds; or is as before, where it guards our own number and says nothing of the paper's; or
    /// is explained, where it differs as the plan expects and what shows the cause came out too; or differs; or is
    /// not judged (its input is not on this machine, or the run is not at full size). An experiment is as good as
    /// its worst row. The exit code is 0 if all hold or differ as explained, 1 if any differs otherwise, and 3 if
    /// none does and some are partial: rows of theirs were not judged.
    Run {
        /// Which experiments, as `croft papers list` names them
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Print one JSON object for each experiment, one on a line
        #[arg(long)]
        json: bool,
        /// Exit with 1 unless all hold
        #[arg(long)]
        strict: bool,
        /// Multiply the sizes; exact rows are judged at scale 1 only
        #[arg(long, value_name = "F", default_value = "1", value_parser = parse_scale)]
        scale: f64,
    },
    /// Be one machine of K-E13, whose parent is another `croft`
    #[command(hide = true)]
    Peer,
}

pub fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List { json } => list(*json),
        Command::Run { ids, json, strict, scale } => match find(ids) {
            Ok(experiments) => run_all(&experiments, *json, *strict, *scale),
            Err(unknown) => {
                writeln!(stderr(), "croft: {unknown}")?;
                Ok(ExitCode::from(2))
            }
        },
        Command::Peer => {
            papers::live_as_peer()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn parse_scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale.is_finite() && scale > 0.0 => Ok(scale),
        _ => Err("a scale is a positive number".into()),
    }
}

/// All of these experiments, or which are unknown.
fn find(ids: &[String]) -> Result<Vec<&'static Experiment>, String> {
    ids.iter()
        .map(|id| {
            papers::find(id).ok_or_else(|| {
                let known: Vec<String> = EXPERIMENTS.iter().map(|e| e.plan().id).collect();
                format!("no experiment is called {id}; there are: {}", known.join(", "))
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
            });
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "{:6} {} ({}, {})", plan.id, plan.title, plan.paper, plan.section)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run_all(
    experiments: &[&Experiment],
    json: bool,
    strict: bool,
    scale: f64,
) -> anyhow::Result<ExitCode> {
    let mut outcomes = Vec::new();
    for experiment in experiments {
        let report = experiment.run(scale, &mut progress)?;
        let mut out = stdout().lock();
        if json {
            writeln!(out, "{}", report.to_json())?;
        } else {
            writeln!(out, "{report}")?;
        }
        out.flush()?;
        outcomes.push(report.verdict);
    }
    if !json {
        writeln!(stdout(), "{}", summary(&outcomes))?;
    }
    Ok(ExitCode::from(exit_code(&outcomes, strict)))
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
}
