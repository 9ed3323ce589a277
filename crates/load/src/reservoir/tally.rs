//! A throttling reservoir that counts what lives elsewhere.

use base::{Duration, Instant};

use super::meter::{Count, Meter};
use crate::Spec;

/// How much there is of something that is kept elsewhere, and whether more may come.
///
/// It is open below its threshold and closed from there on, without hysteresis. Whoever asks is in
/// the same thread and asks before each item, so opening and closing cost nothing and there is no
/// delay to swing with (L24); a second, lower mark would only leave room unused. Where a restart has a
/// price, the gate is the owner's: see [`pager`](crate::pager) for one with hysteresis (L59).
///
/// The threshold lies below the capacity by what may still be on its way when it closes (L23).
#[derive(Clone, Debug)]
pub struct Tally {
    spec: Spec,
    count: Count,
    refused: u64,
    /// When the level last rose to the threshold; meaningful only while the level is not below it.
    closed_at: Instant,
    /// Of the closed times that are over.
    throttled: Duration,
}

impl Tally {
    /// Nothing yet, at this place.
    pub fn new(spec: Spec) -> Tally {
        assert!(spec.threshold > 0, "{} could never open", spec.label);
        assert!(spec.threshold <= spec.capacity, "{} could never close", spec.label);
        Tally {
            spec,
            count: Count::default(),
            refused: 0,
            closed_at: Instant::START,
            throttled: Duration::ZERO,
        }
    }

    /// What the graph says about it.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How much there is.
    #[inline]
    pub fn level(&self) -> u64 {
        self.count.level()
    }

    /// Whether the flows that it throttles may run.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.level() < self.spec.threshold
    }

    /// Whether nothing more may enter.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.level() >= self.spec.capacity
    }

    /// Counts one more.
    #[inline]
    pub fn enter(&mut self, now: Instant) {
        self.count.enter();
        if self.level() == self.spec.threshold {
            self.closed_at = now;
        }
    }

    /// Counts one less, of at least one.
    #[inline]
    pub fn leave(&mut self, now: Instant) {
        if self.level() == self.spec.threshold {
            self.throttled = self.throttled.saturating_add(now.since(self.closed_at));
        }
        self.count.leave();
    }

    /// Counts an arrival that found no room.
    pub fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Its numbers at this moment.
    pub fn meter(&self, now: Instant) -> Meter {
        let since = if self.is_open() { Duration::ZERO } else { now.since(self.closed_at) };
        Meter {
            refused: self.refused,
            throttled: self.throttled.saturating_add(since),
            ..self.count.meter()
        }
    }
}
