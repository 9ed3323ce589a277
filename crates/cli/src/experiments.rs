//! `croft papers`: what experiments there are, and running them.

use std::{
    io::{IsTerminal, Write, stderr, stdout},
    process::ExitCode,
};

use papers::{EXPERIMENTS, Experiment, Verdict};

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the experiments
    List {
        /// Print one JSON object for each experiment, one on a line
        #[arg(long)]
        json: bool,
    },
    /// Run experiments; exit with 0 only if every verdict holds
    ///
    /// A row of the plan holds, differs, or is not judged (its input is not on this machine, or the
    /// run is not at full size). An experiment holds if something was judged and nothing differs.
    Run {
        /// Which experiments, as `croft papers list` names them
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Print one JSON object for each experiment, one on a line
        #[arg(long)]
        json: bool,
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
        Command::Run { ids, json, scale } => match find(ids) {
            Ok(experiments) => run_all(&experiments, *json, *scale),
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

fn run_all(experiments: &[&Experiment], json: bool, scale: f64) -> anyhow::Result<ExitCode> {
    let mut verdicts = Vec::new();
    for experiment in experiments {
        let report = experiment.run(scale, &mut progress)?;
        let mut out = stdout().lock();
        if json {
            writeln!(out, "{}", report.to_json())?;
        } else {
            let gap = if verdicts.is_empty() { "" } else { "\n" };
            write!(out, "{gap}{report}")?;
        }
        out.flush()?;
        verdicts.push(report.verdict);
    }
    Ok(if do_all_hold(&verdicts) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn do_all_hold(verdicts: &[Verdict]) -> bool {
    verdicts.iter().all(|&verdict| verdict == Verdict::Holds)
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
    fn all_is_well_only_if_every_experiment_holds() {
        use Verdict::{Differs, Holds, NotJudged};
        assert!(do_all_hold(&[Holds, Holds]));
        assert!(!do_all_hold(&[Holds, Differs]));
        assert!(!do_all_hold(&[Holds, NotJudged]));
    }
}
