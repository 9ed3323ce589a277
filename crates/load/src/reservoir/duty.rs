//! A share of real time for work that must stay in the background (L55).

use base::{Duration, Instant};

/// Lets work run for at most a share of real time.
///
/// After each stretch of work comes a rest in proportion, so that from any start to the next the share
/// is kept. Rest is not saved up: after an idle night the work is as nice as ever.
///
/// No rest is longer than [`REST_MAX`]. A computer that sleeps during work is not working, but here it
/// looks the same, and ten days of that must not cost days of rest. So the share is kept only for
/// stretches that earn no longer rest, which at 80 % is up to four hours; break longer work up.
#[derive(Clone, Debug)]
pub struct Duty {
    percent: u32,
    state: State,
    worked: Duration,
}

/// The longest rest.
pub const REST_MAX: Duration = Duration::from_secs(3_600);

#[derive(Clone, Debug)]
enum State {
    Resting { until: Instant },
    Working { since: Instant },
}

/// The rest is not over, or the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "work that starts now would take more than its share"]
pub struct TooSoon;

impl Duty {
    /// A share of `percent` in a hundred, at least one.
    pub fn new(percent: u32) -> Duty {
        assert!((1..=100).contains(&percent), "{percent} % is no share");
        let state = State::Resting { until: Instant::START };
        Duty { percent, state, worked: Duration::ZERO }
    }

    /// When work may start; never, while it runs.
    pub fn may_start_at(&self) -> Option<Instant> {
        match self.state {
            State::Resting { until } => Some(until),
            State::Working { .. } => None,
        }
    }

    /// Starts a stretch of work, if it may start.
    pub fn begin(&mut self, now: Instant) -> Result<(), TooSoon> {
        self.may_start_at().filter(|&at| at <= now).ok_or(TooSoon)?;
        self.state = State::Working { since: now };
        Ok(())
    }

    /// Ends the stretch of work and starts the rest. Harmless when no work runs.
    pub fn end(&mut self, now: Instant) {
        let State::Working { since } = self.state else { return };
        let work = now.since(since);
        self.worked = self.worked.saturating_add(work);
        self.state = State::Resting { until: now + self.rest_after(work) };
    }

    /// How long work has run in all, not counting a stretch that still runs.
    pub fn worked(&self) -> Duration {
        self.worked
    }

    /// The shortest rest with which `work` is no more than the share, rounded up, or the longest rest.
    fn rest_after(&self, work: Duration) -> Duration {
        let percent = u128::from(self.percent);
        let nanos = (work.as_nanos() * (100 - percent)).div_ceil(percent);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(REST_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_seconds_of_work_earn_twenty_of_rest() {
        let mut duty = Duty::new(80);
        let at = Instant::from_secs;
        assert_eq!(duty.begin(at(0)), Ok(()));
        assert_eq!((duty.begin(at(1)), duty.may_start_at()), (Err(TooSoon), None));
        duty.end(at(80));
        assert_eq!(duty.may_start_at(), Some(at(100)));
        assert_eq!(duty.begin(at(99)), Err(TooSoon));
        assert_eq!(duty.begin(at(100)), Ok(()));
    }

    #[test]
    fn a_suspend_during_work_costs_no_more_than_the_longest_rest() {
        let mut duty = Duty::new(80);
        let woken_at = Instant::from_secs(10 * 86_400);
        assert_eq!(duty.begin(Instant::START), Ok(()));
        duty.end(woken_at);
        assert_eq!(duty.may_start_at(), Some(woken_at + REST_MAX));
    }

    #[test]
    fn idle_time_is_not_saved_up() {
        let mut duty = Duty::new(50);
        let at = Instant::from_secs;
        assert_eq!(duty.begin(at(1_000)), Ok(()));
        duty.end(at(1_010));
        assert_eq!(duty.may_start_at(), Some(at(1_020)));
    }
}
