//! `croft simulate`: worlds of our own machines under faults, one for each seed.

use std::{
    collections::BTreeMap,
    io::{IsTerminal, Write, stderr, stdout},
    process::ExitCode,
    time::Duration,
};

use sim::{Kind, Summary, WORKLOADS, Workload};

#[derive(clap::Args)]
pub struct Args {
    /// Which world: files, bytes, cells, decrees, floods, groups, growth, leaders, leases, twins
    #[arg(long, value_name = "NAME", default_value = "files", value_parser = parse_workload)]
    workload: &'static Workload,
    /// The first seed; each seed is one world, for ever
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// How many seeds
    #[arg(long, value_name = "K", default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// How many of the last things that happened to show when a single seed fails
    #[arg(long, value_name = "LINES", default_value = "60")]
    trace: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// After so many seeds people at a terminal are told.
const PROGRESS: u64 = 100;

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let start = Watch::start();
    let mut summary = Summary::default();
    for seed in args.seed..=args.seed.saturating_add(args.count - 1) {
        summary.add(seed, &(args.workload.run)(seed));
        if !summary.is_clean() {
            break;
        }
        if summary.seeds.is_multiple_of(PROGRESS) {
            progress(summary.seeds, args.count);
        }
    }
    let speed = summary.counts.events() as f64 / start.spent().as_secs_f64().max(1e-9);
    let mut out = stdout().lock();
    match args.json {
        true => writeln!(out, "{}", to_json(args, &summary, speed))?,
        false => print(&mut out, args, &summary, speed)?,
    }
    if let Some((seed, ..)) = summary.failure
        && args.count == 1
    {
        for line in (args.workload.explain)(seed, args.trace).trace {
            writeln!(stderr(), "{line}")?;
        }
    }
    Ok(if summary.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn parse_workload(name: &str) -> Result<&'static Workload, String> {
    sim::find(name).ok_or_else(|| {
        let known: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
        format!("there are: {}", known.join(", "))
    })
}

fn replay(args: &Args, seed: u64) -> String {
    format!("croft simulate --workload {} --seed {seed}", args.workload.name)
}

fn print(out: &mut impl Write, args: &Args, summary: &Summary, speed: f64) -> std::io::Result<()> {
    let (name, first) = (args.workload.name, args.seed);
    let last = first + summary.seeds - 1;
    match &summary.failure {
        None => writeln!(out, "{name}: seeds {first} to {last} are clean")?,
        Some((seed, violation, digest)) => {
            writeln!(out, "{name}: seed {seed} is broken: {violation}")?;
            writeln!(out, "  its digest  {digest}")?;
            writeln!(out, "  replay      {}", replay(args, *seed))?;
        }
    }
    writeln!(out, "  simulated   {:.1} h", summary.simulated.as_secs_f64() / 3_600.0)?;
    writeln!(out, "  events      {}", summary.counts.events())?;
    writeln!(out, "  speed       {speed:.0} events per CPU-second")?;
    writeln!(out, "  digest      {}", summary.digest())?;
    writeln!(out, "  happened")?;
    for kind in Kind::ALL {
        writeln!(out, "  {:>12}  {kind:?}", summary.counts[kind])?;
    }
    writeln!(out, "  marks")?;
    for (mark, count) in summary.marks.iter() {
        writeln!(out, "  {count:>12}  {mark}")?;
    }
    if summary.longest.iter().next().is_some() {
        writeln!(out, "  at the most")?;
    }
    for (what, took) in summary.longest.iter() {
        writeln!(out, "  {:>10.2} s  {what}", took.as_secs_f64())?;
    }
    Ok(())
}

fn to_json(args: &Args, summary: &Summary, speed: f64) -> serde_json::Value {
    let counts = Kind::ALL.map(|kind| (format!("{kind:?}").to_lowercase(), summary.counts[kind]));
    let failure = summary.failure.as_ref().map(|(seed, violation, digest)| {
        serde_json::json!({
            "seed": seed,
            "invariant": violation.broken.invariant,
            "what": violation.broken.what,
            "at_ns": violation.at.as_nanos(),
            "digest": digest.to_string(),
            "replay": replay(args, *seed),
        })
    });
    let longest = summary.longest.iter().map(|(what, took)| (what, took.as_millis() as u64));
    serde_json::json!({
        "workload": args.workload.name,
        "seed": args.seed,
        "count": summary.seeds,
        "clean": summary.is_clean(),
        "failure": failure,
        "simulated_hours": summary.simulated.as_secs_f64() / 3_600.0,
        "events": summary.counts.events(),
        "events_per_cpu_second": speed.round(),
        "digest": summary.digest().to_string(),
        "counts": counts.into_iter().collect::<BTreeMap<_, _>>(),
        "marks": summary.marks.iter().collect::<BTreeMap<_, _>>(),
        "longest_ms": longest.collect::<BTreeMap<_, _>>(),
        "marks_missed": summary.marks.missed().collect::<Vec<_>>(),
    })
}

/// Tells people at a terminal what goes on, and nobody else.
fn progress(done: u64, count: u64) {
    let mut err = stderr();
    if err.is_terminal() {
        // Talk that cannot be heard is no reason to stop.
        let _ = writeln!(err, "{done} of {count} seeds");
    }
}

/// Measures the time that this process has spent on a processor, or just time where that is unknown.
#[expect(clippy::disallowed_types, reason = "a shell: it has the clock")]
struct Watch {
    cpu: Option<Duration>,
    wall: std::time::Instant,
}

#[expect(clippy::disallowed_types, reason = "a shell: it has the clock")]
impl Watch {
    fn start() -> Watch {
        Watch { cpu: cpu_time(), wall: std::time::Instant::now() }
    }

    fn spent(&self) -> Duration {
        match (self.cpu, cpu_time()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => self.wall.elapsed(),
        }
    }
}

fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
