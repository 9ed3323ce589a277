//! Four computers that do the same, with the throttle on or off.

use base::{Duration, Instant};

use super::computer::{Outcome, Sample, Setup, run};

/// How many computers there are.
pub const COMPUTERS: u32 = 4;

/// How it went with all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet(pub Vec<Outcome>);

impl Fleet {
    /// Runs computers around this one: their speeds differ by up to `spread` from it.
    pub fn run(setup: Setup, spread: f64) -> Fleet {
        let outcomes = (0..COMPUTERS).map(|at| {
            let middle = f64::from(COMPUTERS - 1) / 2.0;
            let speed = 1.0 + spread * (f64::from(at) - middle) / middle;
            let creation = setup.creation.div_f64(speed);
            let transfer = setup.transfer.div_f64(speed);
            run(Setup { creation, transfer, ..setup })
        });
        Fleet(outcomes.collect())
    }

    /// Directories that all have made.
    pub fn directories(&self) -> u64 {
        self.0.iter().map(|outcome| outcome.directories).sum()
    }

    /// How many have used up their memory.
    pub fn aborts(&self) -> usize {
        self.0.iter().filter(|outcome| outcome.aborted_at.is_some()).count()
    }

    /// How long each ran, of this time.
    pub fn alive(&self, time: Duration) -> Vec<Duration> {
        let end = |outcome: &Outcome| outcome.aborted_at.map(|at| at.since(Instant::START));
        self.0.iter().map(|outcome| end(outcome).unwrap_or(time)).collect()
    }

    /// The most dirty objects that nobody referenced, on any of them.
    pub fn dirty_peak(&self) -> u64 {
        self.0.iter().map(|outcome| outcome.meters.dirty.level_max).max().unwrap_or_default()
    }

    /// The fewest that were seen on any of them, once there had been as many as this.
    pub fn dirty_low(&self, threshold: u64) -> u64 {
        let seen = self.0.iter().flat_map(|outcome| {
            let dirty = outcome.samples.iter().map(|sample| sample.dirty);
            dirty.skip_while(move |&dirty| dirty < threshold)
        });
        seen.min().unwrap_or_default()
    }

    /// The most objects in the memory of any of them.
    pub fn objects_peak(&self) -> u64 {
        self.0.iter().map(|outcome| outcome.objects_peak).max().unwrap_or_default()
    }

    /// How long they matched the rate of lookups to that of cleaning, on average.
    pub fn matched(&self) -> Duration {
        let total: Duration = self.0.iter().map(|outcome| outcome.meters.dirty.throttled).sum();
        total / COMPUTERS
    }

    /// What could be seen at the end of this sample period, counted from 1: directories of all, and
    /// dirty objects on the first computer. One that has aborted stays as it was then.
    pub fn sample(&self, period: usize) -> Sample {
        let seen = self.0.iter().map(|outcome| {
            let last =
                Sample { directories: outcome.directories, dirty: outcome.meters.dirty.level };
            outcome.samples.get(period - 1).copied().unwrap_or(last)
        });
        let seen: Vec<_> = seen.collect();
        let directories = seen.iter().map(|sample| sample.directories).sum();
        Sample { directories, dirty: seen[0].dirty }
    }
}
