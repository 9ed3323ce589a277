//! `croft bench`: ratios against a baseline that is measured in the same run.

mod cell;
mod meter;
mod workload;

use std::{
    fs,
    io::{Write, stderr, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use host::Machine;
use indicatif::{ProgressBar, ProgressDrawTarget};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

use crate::daemon;

use meter::{Meter, Spent};
use workload::{WORKLOADS, Workload};

#[derive(clap::Subcommand)]
pub enum Command {
    /// A mounted cell of one machine, and the file system beneath it
    Mount(Args),
    /// A cell of four machines on this computer, and a machine that is alone
    Cell(cell::Args),
}

#[derive(clap::Args)]
pub struct Args {
    /// Where to work: an empty directory on the file system to compare with
    #[arg(long = "dir", value_name = "DIR")]
    directory: PathBuf,
    /// How often each workload is run on both, in turns
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Use all processors; else everything runs on one, where waking each other up costs little
    #[arg(long)]
    spread: bool,
    /// Only workloads whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What one workload cost in one round.
struct Round {
    beneath: Spent,
    mounted: Spent,
}

pub fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let args = match command {
        Command::Mount(args) => args,
        Command::Cell(args) => return cell::run(args),
    };
    if !args.spread {
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        sched_setaffinity(None, &one)?;
    }
    let base = std::path::absolute(&args.directory)?;
    let [home, mount, beneath] = ["machine", "mnt", "beneath"].map(|name| base.join(name));
    Machine::init(&home, None)?;
    for directory in [&mount, &beneath] {
        fs::create_dir_all(directory)
            .with_context(|| format!("can't make {}", directory.display()))?;
    }
    let child = daemon::start(&home, &mount)?;
    let outcome = measure(args, child.id(), &mount, &beneath);
    daemon::stop(child)?;
    report(args, &outcome?)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(
    args: &Args,
    daemon: u32,
    mount: &Path,
    beneath: &Path,
) -> anyhow::Result<Vec<(&'static Workload, Vec<Round>)>> {
    let chosen: Vec<&Workload> =
        WORKLOADS.iter().filter(|workload| workload.name.contains(&args.only)).collect();
    let bar = ProgressBar::with_draw_target(
        Some(chosen.len() as u64 * args.rounds),
        ProgressDrawTarget::stderr(),
    );
    let mut all = Vec::new();
    for workload in chosen {
        let mut rounds = Vec::new();
        for round in 0..args.rounds {
            let once = |directory: &Path| -> anyhow::Result<Spent> {
                let work = directory.join(format!("{}-{round}", workload.name.replace(' ', "-")));
                fs::create_dir(&work)?;
                (workload.prepare)(&work)?;
                settle(&work)?;
                let meter = Meter::start(daemon)?;
                (workload.run)(&work)?;
                let spent = meter.stop()?;
                if work.exists() {
                    fs::remove_dir_all(&work)?;
                }
                settle(directory)?;
                Ok(spent)
            };
            rounds.push(Round { beneath: once(beneath)?, mounted: once(mount)? });
            bar.inc(1);
        }
        all.push((workload, rounds));
    }
    bar.finish_and_clear();
    Ok(all)
}

/// Lets what is still to be written be written, so that it is not counted for what comes next.
fn settle(directory: &Path) -> anyhow::Result<()> {
    fs::File::open(directory)?.sync_all()?;
    Ok(())
}

fn report(args: &Args, all: &[(&Workload, Vec<Round>)]) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    if args.json {
        let rows: Vec<_> = all.iter().map(|(workload, rounds)| to_json(workload, rounds)).collect();
        writeln!(out, "{}", serde_json::json!({ "bench": "mount", "workloads": rows }))?;
        return Ok(());
    }
    writeln!(
        out,
        "{:16} {:>9} {:>9} {:>7} {:>7} {:>12} {:>12}",
        "", "beneath", "mounted", "cpu", "time", "foreground", "background"
    )?;
    writeln!(
        out,
        "{:16} {:>9} {:>9} {:>7} {:>7} {:>12} {:>12}",
        "workload", "us cpu/op", "us cpu/op", "ratio", "ratio", "user us/op", "us/op"
    )?;
    for (workload, rounds) in all {
        let count = workload.count as f64;
        writeln!(
            out,
            "{:16} {:>9.1} {:>9.1} {:>7.2} {:>7.2} {:>12.1} {:>12.1}",
            workload.name,
            median(rounds, |round| round.beneath.cpu() / count),
            median(rounds, |round| round.mounted.cpu() / count),
            median(rounds, |round| round.mounted.cpu() / round.beneath.cpu()),
            median(rounds, |round| round.mounted.wall / round.beneath.wall),
            mean(rounds, |round| round.mounted.foreground_user / count),
            median(rounds, |round| round.mounted.background / count),
        )?;
    }
    writeln!(
        stderr(),
        "medians of {} rounds, for the foreground the mean; cpu counts application and daemon",
        args.rounds
    )?;
    Ok(())
}

fn to_json(workload: &Workload, rounds: &[Round]) -> serde_json::Value {
    let count = workload.count as f64;
    serde_json::json!({
        "name": workload.name,
        "operations": workload.count,
        "rounds": rounds.len(),
        "beneath_cpu_us_per_operation": median(rounds, |round| round.beneath.cpu() / count),
        "mounted_cpu_us_per_operation": median(rounds, |round| round.mounted.cpu() / count),
        "cpu_ratio": median(rounds, |round| round.mounted.cpu() / round.beneath.cpu()),
        "time_ratio": median(rounds, |round| round.mounted.wall / round.beneath.wall),
        "foreground_user_us_per_operation":
            mean(rounds, |round| round.mounted.foreground_user / count),
        "background_us_per_operation": median(rounds, |round| round.mounted.background / count),
    })
}

/// For what is counted in ticks, of which one round has a handful.
fn mean(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    rounds.iter().map(of).sum::<f64>() / rounds.len() as f64
}

fn median(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
