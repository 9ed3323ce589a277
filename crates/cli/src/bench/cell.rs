//! `croft bench cell`: four machines on this computer, and one that is alone, doing the same in one run.

use std::{
    fs::{self, File},
    io::{Write, stderr, stdout},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, ExitCode},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use group::Bare;
use host::Machine;

use crate::{daemon, machine};

use super::{
    meter::{Meter, Spent, own, resident_mib, threads},
    workload::{TREE, make_archive, untar},
};

#[derive(clap::Args)]
pub struct Args {
    /// Where to work: an empty directory
    #[arg(long = "dir", value_name = "DIR")]
    directory: PathBuf,
    /// How many files are created and made safe, one after the other
    #[arg(long, value_name = "N", default_value = "500", value_parser = clap::value_parser!(u64).range(1..))]
    commits: u64,
    /// How long to look at a cell that has nothing to do, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = clap::value_parser!(u64).range(1..))]
    idle: u64,
    /// How often an archive is unpacked on both, in turns
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const MACHINES: usize = 4;
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// How long a cell may take to form.
const FORMING_MAX: Duration = Duration::from_secs(60);
/// Threads of a daemon whose work is that of the group, and those that speak with other machines.
const GROUP: &str = "group";
const NETWORK: &str = "net";
/// So many decisions of the bare engine are measured at a time.
const BARE: u32 = 100;

/// Machines, the first of which is mounted.
struct Cell {
    homes: Vec<PathBuf>,
    children: Vec<Child>,
    mount: PathBuf,
}

impl Cell {
    fn start(base: &Path, count: usize) -> anyhow::Result<Cell> {
        let homes: Vec<PathBuf> =
            (1..=count).map(|number| base.join(format!("machine-{number}"))).collect();
        let mount = base.join("mnt");
        fs::create_dir_all(&mount).with_context(|| format!("can't make {}", mount.display()))?;
        Machine::init(&homes[0], (count > 1).then_some(LOOPBACK))?;
        let mut cell = Cell { children: vec![daemon::start(&homes[0], &mount)?], homes, mount };
        for home in &cell.homes[1..] {
            let code = Machine::invite(&cell.homes[0], FORMING_MAX)?;
            Machine::join(home, code.reveal(), LOOPBACK)?;
            let mut child =
                daemon::command(home, None)?.spawn().context("can't start a machine")?;
            if !daemon::await_ready(&mut child) {
                bail!("a machine did not start; what it said stands above");
            }
            cell.children.push(child);
        }
        let start = Instant::now();
        while count >= MACHINES && cell.group(0)?["members"] != MACHINES {
            if start.elapsed() > FORMING_MAX {
                bail!(
                    "the group did not grow to {MACHINES} members; look at the load of this computer"
                );
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(cell)
    }

    fn group(&self, index: usize) -> anyhow::Result<serde_json::Value> {
        Ok(machine::look(&self.homes[index])?["group"].clone())
    }

    fn height(&self) -> anyhow::Result<u64> {
        self.group(0)?["height"].as_u64().context("a group has a height")
    }

    /// Microseconds of processor time so far that the logs of all machines have taken.
    fn logged(&self) -> anyhow::Result<f64> {
        let of = |index| self.group(index)?["log_us"].as_f64().context("a group has a log");
        (0..self.homes.len()).map(of).sum()
    }

    fn pids(&self) -> impl Iterator<Item = u32> {
        self.children.iter().map(Child::id)
    }

    /// Microseconds of processor time so far of all threads with a name that begins so.
    fn used(&self, name: &str) -> anyhow::Result<f64> {
        let mut used = 0.0;
        for pid in self.pids() {
            used += threads(pid)?
                .filter(|(thread, _)| thread.starts_with(name))
                .map(|(_, us)| us)
                .sum::<f64>();
        }
        Ok(used)
    }

    fn stop(mut self) -> anyhow::Result<()> {
        // The last that joined goes first: those that are left can still decide.
        while let Some(child) = self.children.pop() {
            daemon::stop(child)?;
        }
        Ok(())
    }
}

/// What one kind of cell costs.
#[derive(serde::Serialize)]
struct Figures {
    machines: usize,
    commit_ms_p50: f64,
    commit_ms_p99: f64,
    commits_per_second: f64,
    decisions: u64,
    /// Of each machine: engine and directory, log, and what other machines are told.
    member_us_per_decision: f64,
    log_us_per_decision: f64,
    network_us_per_decision: f64,
    /// Medians of all rounds.
    untar_us_cpu_per_file: f64,
    untar_seconds: f64,
    idle_cpu_percent_per_machine: f64,
    resident_mib_per_machine: f64,
}

impl Figures {
    /// What a decision costs a machine in all.
    fn us_per_decision(&self) -> f64 {
        self.member_us_per_decision + self.log_us_per_decision + self.network_us_per_decision
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let base = std::path::absolute(&args.directory)?;
    let start = |count| Cell::start(&base.join(format!("of-{count}")), count);
    let cells = [start(1)?, start(MACHINES)?];
    let measured = measure_all(args, &cells);
    for cell in cells {
        cell.stop()?;
    }
    let (all, bare) = measured?;
    report(args, &all, bare)?;
    Ok(ExitCode::SUCCESS)
}

/// What each cell costs, and what a decision costs the bare engine, in microseconds.
fn measure_all(args: &Args, cells: &[Cell]) -> anyhow::Result<(Vec<Figures>, f64)> {
    let mut all: Vec<Figures> =
        cells.iter().map(|cell| measure(args, cell)).collect::<anyhow::Result<_>>()?;
    let mut bare = Vec::new();
    // In turns: other work on this computer, and what wakes whom where, must not fall to one of them.
    let mut spent: Vec<Vec<Spent>> = cells.iter().map(|_| Vec::new()).collect();
    for round in 0..args.rounds {
        for (cell, spent) in cells.iter().zip(&mut spent) {
            spent.push(unpack(cell, round)?);
            bare.push(decide_barely());
        }
    }
    for (figures, spent) in all.iter_mut().zip(&spent) {
        figures.untar_us_cpu_per_file = median(spent.iter().map(Spent::cpu)) / TREE as f64;
        figures.untar_seconds = median(spent.iter().map(|spent| spent.wall)) / 1e6;
    }
    Ok((all, median(bare.into_iter())))
}

/// What a decision costs each of four engines that have nothing around them, in microseconds of processor time.
fn decide_barely() -> f64 {
    let mut bare = Bare::new(MACHINES as u8);
    bare.decide();
    let before = own();
    (0..BARE).for_each(|_| bare.decide());
    (own() - before) / f64::from(BARE) / MACHINES as f64
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Unpacks an archive where a cell is mounted, and makes it safe.
fn unpack(cell: &Cell, round: u64) -> anyhow::Result<Spent> {
    let work = cell.mount.join(format!("untar-{round}"));
    fs::create_dir(&work)?;
    make_archive(&work)?;
    File::open(&work)?.sync_all()?;
    let meter = Meter::start(cell.children[0].id())?;
    untar(&work)?;
    File::open(&work)?.sync_all()?;
    let spent = meter.stop()?;
    fs::remove_dir_all(&work)?;
    File::open(&cell.mount)?.sync_all()?;
    Ok(spent)
}

fn measure(args: &Args, cell: &Cell) -> anyhow::Result<Figures> {
    let machines = cell.homes.len();
    // First, while it is as it was made: nothing to do, nothing cached.
    let idle = Duration::from_secs(args.idle);
    let before = cell.used("")?;
    thread::sleep(idle);
    let idle_used = cell.used("")? - before;
    let resident = cell.pids().map(resident_mib).sum::<anyhow::Result<f64>>()?;

    let (height, log) = (cell.height()?, cell.logged()?);
    let (group, network) = (cell.used(GROUP)?, cell.used(NETWORK)?);
    let mut waits = Vec::new();
    let start = Instant::now();
    for number in 0..args.commits {
        let start = Instant::now();
        File::create_new(cell.mount.join(format!("commit-{number}")))?.sync_all()?;
        waits.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let elapsed = start.elapsed().as_secs_f64();
    waits.sort_by(f64::total_cmp);
    let decisions = cell.height()? - height;
    let per_decision = |used: f64| used / decisions.max(1) as f64 / machines as f64;
    let (group, network) = (cell.used(GROUP)? - group, cell.used(NETWORK)? - network);
    let log = cell.logged()? - log;

    Ok(Figures {
        machines,
        commit_ms_p50: waits[waits.len() / 2],
        commit_ms_p99: waits[waits.len() * 99 / 100],
        commits_per_second: args.commits as f64 / elapsed,
        decisions,
        member_us_per_decision: per_decision(group - log),
        log_us_per_decision: per_decision(log),
        network_us_per_decision: per_decision(network),
        untar_us_cpu_per_file: 0.0,
        untar_seconds: 0.0,
        idle_cpu_percent_per_machine: idle_used / machines as f64 / idle.as_secs_f64() / 1e4,
        resident_mib_per_machine: resident / machines as f64,
    })
}

fn report(args: &Args, all: &[Figures], bare: f64) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    if args.json {
        writeln!(
            out,
            "{}",
            serde_json::json!({ "bench": "cell", "bare_engine_us_per_decision": bare, "cells": all })
        )?;
        return Ok(());
    }
    let [alone, four] = all else { bail!("two cells are compared") };
    let mut row = |what: &str, of: &dyn Fn(&Figures) -> f64| {
        let (one, other) = (of(alone), of(four));
        writeln!(out, "{what:40} {one:>9.2} {other:>9.2} {:>7.2}", other / one)
    };
    row("machines", &|figures| figures.machines as f64)?;
    row("create and fsync, ms, median", &|figures| figures.commit_ms_p50)?;
    row("create and fsync, ms, 99 in 100", &|figures| figures.commit_ms_p99)?;
    row("creates and fsyncs a second", &|figures| figures.commits_per_second)?;
    row("decisions for them", &|figures| figures.decisions as f64)?;
    row("us cpu a decision, engine and directory", &|figures| figures.member_us_per_decision)?;
    row("us cpu a decision, log", &|figures| figures.log_us_per_decision)?;
    row("us cpu a decision, network", &|figures| figures.network_us_per_decision)?;
    row("us cpu a decision, all, to bare engine's", &|figures| figures.us_per_decision() / bare)?;
    row("untar, us cpu a file where it is mounted", &|figures| figures.untar_us_cpu_per_file)?;
    row("untar and sync, seconds", &|figures| figures.untar_seconds)?;
    row("idle, % of a core a machine", &|figures| figures.idle_cpu_percent_per_machine)?;
    row("resident, MiB a machine, fresh", &|figures| figures.resident_mib_per_machine)?;
    writeln!(
        stderr(),
        "cpu of a decision is that of each machine; the bare engine takes {bare:.0} us. One that is alone has no \
         engine, so what it spends there is the directory's"
    )?;
    Ok(())
}
