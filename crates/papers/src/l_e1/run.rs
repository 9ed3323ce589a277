//! The run: disk-limited, CPU-limited and in between, each with the throttle on and off.

use base::Duration;
use load::{pager::Meters, settings::Pager as Settings};

use super::{computer::Setup, fleet::Fleet};
use crate::{Failure, Trial};

/// When the time series is told, in percent of the run.
const SERIES: [usize; 6] = [3, 6, 10, 25, 50, 100];
/// Samples in a run: two for each percent.
const SAMPLES: u32 = 200;

/// The same computers with the throttle on and off.
struct Pair {
    on: Fleet,
    off: Fleet,
}

/// Measures all three.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let settings = Settings::default();
    let time = Duration::from_secs(trial.duration("seconds"));
    let setup = Setup {
        settings,
        is_throttled: true,
        tasks_max: trial.constant("tasks") as usize,
        creation: Duration::ZERO,
        transfer: rate(trial.constant("disk_per_s")),
        objects_max: (trial.constant("memory_mib") * 1024.0 / trial.constant("object_kib")) as u64,
        time,
        sample_period: time / SAMPLES,
    };
    trial.truth("capacities-fit", capacity(&settings) <= setup.objects_max);
    for (name, cpu) in
        [("disk", "fast_cpu_per_s"), ("cpu", "slow_cpu_per_s"), ("busy", "busy_cpu_per_s")]
    {
        let setup = Setup { creation: rate(trial.constant(cpu)), ..setup };
        let pair = pair(trial, name, setup);
        match name {
            "disk" => disk_limited(trial, &pair, setup),
            _ => not_disk_limited(trial, name, &pair),
        }
    }
    Ok(())
}

/// The time for one of so many a second.
fn rate(per_second: f64) -> Duration {
    Duration::from_secs(1).div_f64(per_second)
}

/// The most objects that a pager can come to hold: all places at once but 9A, where lookups wait.
fn capacity(settings: &Settings) -> u64 {
    let Settings { referenced_expected, clean_max, writes_max, loads_max, .. } = settings;
    settings.dirty_max() + referenced_expected + clean_max + writes_max + loads_max
}

fn pair(trial: &mut Trial, name: &str, setup: Setup) -> Pair {
    let spread = trial.constant("spread");
    let mut fleet = |is_throttled: bool, word: &str| {
        trial.say(&format!("{name}: throttle {word}"));
        let fleet = Fleet::run(Setup { is_throttled, ..setup }, spread);
        trial.number(format!("{name}/{word}/directories"), fleet.directories() as f64);
        trial.number(format!("{name}/{word}/aborts"), fleet.aborts() as f64);
        trial.number(format!("{name}/{word}/dirty-peak"), fleet.dirty_peak() as f64);
        trial.number(format!("{name}/{word}/objects-peak"), fleet.objects_peak() as f64);
        fleet
    };
    let (off, on) = (fleet(false, "off"), fleet(true, "on"));
    trial.number(format!("{name}/on/matched-s"), on.matched().as_secs_f64());
    Pair { on, off }
}

fn disk_limited(trial: &mut Trial, pair: &Pair, setup: Setup) {
    let Pair { on, off } = pair;
    // Without an abort, the end of the run.
    let alive = off.alive(setup.time);
    for (name, time) in [("first", alive.iter().min()), ("last", alive.iter().max())] {
        let seconds = time.map(Duration::as_secs_f64).unwrap_or_default();
        trial.number(format!("disk/off/abort-{name}-s"), seconds);
    }
    trial.number("disk/on/dirty-low", on.dirty_low(setup.settings.dirty_threshold) as f64);
    let shapes = shapes(pair, setup);
    trial.truth("disk/off-grows-until-abort", shapes.grows_until_abort);
    trial.truth("disk/on-bounded", shapes.is_bounded);
    trial.truth("disk/on-within", shapes.stays_within);
    trial.truth("disk/on-slower", shapes.is_slower);
    trial.truth("disk/on-more-in-the-end", shapes.makes_more);
    for percent in SERIES {
        for (word, fleet) in [("off", off), ("on", on)] {
            let sample = fleet.sample(percent * SAMPLES as usize / 100);
            let name = format!("series/{percent:03}%/{word}");
            trial.number(format!("{name}/directories"), sample.directories as f64);
            trial.number(format!("{name}/dirty"), sample.dirty as f64);
        }
    }
}

fn not_disk_limited(trial: &mut Trial, name: &str, pair: &Pair) {
    let ratio = pair.on.directories() as f64 / pair.off.directories() as f64;
    trial.number(format!("{name}/on-to-off"), ratio);
}

/// What the paper's figure shows, in the disk-limited run.
#[derive(Debug, PartialEq, Eq)]
struct Shapes {
    grows_until_abort: bool,
    is_bounded: bool,
    stays_within: bool,
    is_slower: bool,
    makes_more: bool,
}

fn shapes(Pair { on, off }: &Pair, setup: Setup) -> Shapes {
    let threshold = setup.settings.dirty_threshold;
    // When lookups stop, each task may still let go of two objects.
    let in_flight = 2 * setup.tasks_max as u64;
    let is_bounded = on.dirty_peak() <= threshold + in_flight;
    let grows_until_abort = off.0.iter().all(|outcome| {
        let high =
            outcome.samples.iter().map(|sample| sample.dirty).skip_while(|&l| l <= threshold);
        outcome.aborted_at.is_some() && high.is_sorted_by(|a, b| a < b)
    });
    let before_abort =
        off.0.iter().map(|outcome| outcome.samples.len()).min().unwrap_or_default().max(1);
    let at_abort = (on.sample(before_abort).directories, off.sample(before_abort).directories);
    Shapes {
        grows_until_abort,
        is_bounded,
        stays_within: on.0.iter().all(|o| o.aborted_at.is_none() && is_within(&o.meters, setup)),
        is_slower: at_abort.0 < at_abort.1,
        makes_more: on.directories() > off.directories(),
    }
}

/// Whether every place kept to the capacity that the graph declares, and 9B to what is expected.
fn is_within(meters: &Meters, setup: Setup) -> bool {
    let settings = setup.settings;
    [
        (meters.lookups, settings.lookups_max),
        (meters.referenced, settings.referenced_expected),
        (meters.dirty, settings.dirty_max()),
        (meters.clean, settings.clean_max),
        (meters.cleaning, settings.writes_max),
        (meters.loading, settings.loads_max),
    ]
    .iter()
    .all(|(meter, capacity)| meter.level_max <= *capacity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Report, Run, Scale, Value, Verdict, find};

    fn measure(scale: f64) -> Vec<(String, Value)> {
        let plan = find("L-E1").unwrap().plan();
        let mut quiet = |_: &str| ();
        let mut trial = Trial::new(&plan, scale, &mut quiet);
        run(&mut trial).unwrap();
        trial.finish().measurements
    }

    /// A small pair whose disk writes a quarter of what its processor makes.
    fn small(on_is_throttled: bool, off_is_throttled: bool) -> (Pair, Setup) {
        let setup = Setup {
            settings: Settings { dirty_threshold: 20, clean_max: 50, ..Settings::default() },
            is_throttled: true,
            tasks_max: 8,
            creation: Duration::from_millis(10),
            transfer: Duration::from_millis(40),
            objects_max: 500,
            time: Duration::from_secs(60),
            sample_period: Duration::from_secs(60) / SAMPLES,
        };
        let fleet = |is_throttled| Fleet::run(Setup { is_throttled, ..setup }, 0.05);
        (Pair { on: fleet(on_is_throttled), off: fleet(off_is_throttled) }, setup)
    }

    #[test]
    fn the_shapes_hold_and_each_can_fail() {
        let check = |(pair, setup): (Pair, Setup), expected: [bool; 5]| {
            let [grows_until_abort, is_bounded, stays_within, is_slower, makes_more] = expected;
            let expected =
                Shapes { grows_until_abort, is_bounded, stays_within, is_slower, makes_more };
            assert_eq!(shapes(&pair, setup), expected);
        };
        check(small(true, false), [true; 5]);
        check(small(false, false), [true, false, false, false, false]);
        check(small(true, true), [false, true, true, false, false]);
        // A place over its capacity is seen without an abort.
        let (pair, mut setup) = small(true, false);
        setup.settings.writes_max = 1;
        check((pair, setup), [true, true, false, true, true]);
    }

    #[test]
    fn a_processor_that_keeps_the_disk_busy_is_matched_and_one_that_does_not_is_not() {
        let measured = measure(0.1);
        let get = |name: &str| match measured.iter().find(|(other, _)| other == name) {
            Some((_, Value::Number(number))) => *number,
            other => panic!("{other:?}"),
        };
        assert_eq!(get("cpu/on/matched-s"), 0.0);
        assert!(get("busy/on/matched-s") > 1.0);
        assert!(get("disk/on/matched-s") > get("busy/on/matched-s"));
    }

    #[test]
    fn a_plan_gives_the_same_measurements_each_time() {
        assert_eq!(measure(0.05), measure(0.05));
        assert_ne!(measure(0.05), measure(0.1));
    }

    #[test]
    fn the_run_is_as_the_plan_says_at_full_size_and_at_a_tenth() {
        for (scale, outcome) in [(0.1, Outcome::Partial), (1.0, Outcome::Holds)] {
            let report = find("L-E1").unwrap().run(scale, &mut |_| ()).unwrap();
            assert_eq!(report.verdict, outcome, "{report}");
        }
    }

    #[test]
    fn a_throttle_that_does_nothing_is_noticed() {
        let plan = find("L-E1").unwrap().plan();
        let mut quiet = |_: &str| ();
        let mut trial = Trial::new(&plan, 1.0, &mut quiet);
        let (pair, setup) = small(false, false);
        disk_limited(&mut trial, &pair, setup);
        let report =
            Report::new(&plan, Scale::FULL, &[Run { seed: plan.seed, findings: trial.finish() }]);
        let differs = |name: &str| {
            report.rows.iter().any(|row| row.name == name && row.verdict == Verdict::Differs)
        };
        for name in ["on-bounded", "on-within", "on-slower", "on-more-in-the-end"] {
            assert!(differs(&format!("disk/{name}")), "{name}\n{report}");
        }
    }
}
