//! How many things may be under way at once, learnt from how long they take.

use base::{Duration, Instant};

/// An adaptive limit on concurrent work, under a hard ceiling.
///
/// Additive increase, multiplicative decrease. While work comes back within the target, a full round
/// of it raises the limit by one; a slow or failed piece takes a quarter off, at most once for what
/// was under way together. The limit rises only when it was reached: an idle afternoon is no evidence.
///
/// Why not a gradient against the best latency seen? That figure grows stale and must be probed for
/// again, which takes an experiment on the live system; and it has no meaning that an operator could
/// set. Why a quarter and not half? After a decrease we still use three quarters of what was too much,
/// and the ceiling already bounds the harm of a late one.
///
/// All signals are local (L14, L18): nobody else is asked, so nobody else can be wrong.
#[derive(Clone, Debug)]
pub struct Limit {
    ceiling: u32,
    target: Duration,
    /// From 1 to `ceiling`.
    limit: u32,
    running: u32,
    /// Good pieces since the limit last changed, at most a round of them.
    good: u32,
    /// Pieces that began before say nothing about the present limit.
    lowered_at: Option<Instant>,
}

/// Leave to do one piece of work; give it back to [`Limit::end`].
#[derive(Debug)]
#[must_use = "a permit that is not given back counts as work that never ends"]
pub struct Permit {
    began_at: Instant,
    /// Whether all leave was taken when this was.
    was_last: bool,
}

/// How a piece of work went, apart from how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was refused or timed out: whatever does it has too much to do.
    Overloaded,
    /// It ended for a reason that has nothing to do with load.
    Neutral,
}

impl Limit {
    /// Starts at one and never goes above `ceiling`; work should take no longer than `target`.
    pub fn new(ceiling: u32, target: Duration) -> Limit {
        assert!(ceiling > 0, "nothing could ever start");
        Limit { ceiling, target, limit: 1, running: 0, good: 0, lowered_at: None }
    }

    /// How many may be under way.
    pub fn get(&self) -> u32 {
        self.limit
    }

    /// How many are.
    pub fn running(&self) -> u32 {
        self.running
    }

    /// Leave for one piece of work, if there is any left.
    pub fn begin(&mut self, now: Instant) -> Option<Permit> {
        if self.running >= self.limit {
            return None;
        }
        self.running += 1;
        Some(Permit { began_at: now, was_last: self.running == self.limit })
    }

    /// A piece of work is over.
    pub fn end(&mut self, now: Instant, permit: Permit, outcome: Outcome) {
        self.running -= 1;
        let is_slow = now.since(permit.began_at) > self.target;
        match outcome {
            Outcome::Neutral => {}
            Outcome::Done if !is_slow => self.on_good(permit),
            Outcome::Done | Outcome::Overloaded => self.on_bad(now, permit),
        }
    }

    fn on_good(&mut self, permit: Permit) {
        if self.is_old_news(&permit) {
            return;
        }
        self.good = (self.good + 1).min(self.limit);
        if permit.was_last && self.good == self.limit && self.limit < self.ceiling {
            self.limit += 1;
            self.good = 0;
        }
    }

    fn on_bad(&mut self, now: Instant, permit: Permit) {
        if self.is_old_news(&permit) {
            return;
        }
        self.limit = (self.limit - self.limit.div_ceil(4)).max(1);
        self.good = 0;
        self.lowered_at = Some(now);
    }

    fn is_old_news(&self, permit: &Permit) -> bool {
        self.lowered_at.is_some_and(|at| permit.began_at <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of as much work as is allowed, each piece taking what `latency` says of the limit.
    fn limits(rounds: u64, latency: impl Fn(u32) -> u64) -> Vec<u32> {
        let mut limit = Limit::new(20, Duration::from_millis(100));
        let mut now = Instant::from_secs(1);
        let mut seen = Vec::new();
        for _ in 0..rounds {
            let permits: Vec<_> = std::iter::from_fn(|| limit.begin(now)).collect();
            now = now + Duration::from_millis(latency(limit.get()));
            permits.into_iter().for_each(|permit| limit.end(now, permit, Outcome::Done));
            now = now + Duration::from_millis(1);
            seen.push(limit.get());
        }
        seen
    }

    #[test]
    fn fast_work_raises_the_limit_by_one_a_round_up_to_the_ceiling() {
        assert_eq!(limits(5, |_| 10), [2, 3, 4, 5, 6]);
        assert_eq!(limits(100, |_| 10).last(), Some(&20));
    }

    #[test]
    fn slow_work_lowers_the_limit_once_a_round_down_to_one() {
        let seen = limits(40, |limit| if limit < 12 { 10 } else { 101 });
        assert_eq!(seen[9..15], [11, 12, 9, 10, 11, 12]);
        assert_eq!(limits(9, |_| 101), [1; 9]);
    }

    #[test]
    fn a_limit_that_is_not_reached_does_not_rise() {
        let mut limit = Limit::new(20, Duration::from_millis(100));
        let mut now = Instant::START;
        for _ in 0..50 {
            let permit = limit.begin(now).expect("little is under way");
            now = now + Duration::from_millis(10);
            limit.end(now, permit, Outcome::Done);
        }
        assert_eq!(limit.get(), 2, "one at a time reaches a limit of one, not of two");
    }

    #[test]
    fn what_has_nothing_to_do_with_load_changes_nothing() {
        let mut limit = Limit::new(20, Duration::from_millis(100));
        let permit = limit.begin(Instant::START).expect("nothing is under way");
        limit.end(Instant::from_secs(9), permit, Outcome::Neutral);
        assert_eq!((limit.get(), limit.running()), (1, 0));
    }
}
