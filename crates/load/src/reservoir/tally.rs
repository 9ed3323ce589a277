//! A throttling reservoir that counts what lives elsewhere.

use base::{Duration, Instant};

use super::{
    Full,
    meter::{Count, Meter},
};
use crate::Spec;

/// How much there is of something that is kept elsewhere, and whether more may come.
///
/// Amounts are in the place's unit. Where that is items, each is 1; where it is bytes, a flow asks
/// [`has_room`](Tally::has_room) for what it brings, since a large arrival may not fit into an open place.
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

    /// Whether so much more fits.
    #[inline]
    pub fn has_room(&self, amount: u64) -> bool {
        amount <= self.spec.capacity - self.level()
    }

    /// Counts so much more, or refuses all of it if it does not fit.
    #[inline]
    pub fn enter(&mut self, now: Instant, amount: u64) -> Result<(), Full<u64>> {
        if !self.has_room(amount) {
            self.refuse();
            return Err(Full(amount));
        }
        let was_open = self.is_open();
        self.count.enter(amount);
        if was_open && !self.is_open() {
            self.closed_at = now;
        }
        Ok(())
    }

    /// Counts so much less.
    ///
    /// # Panics
    /// If there is not so much.
    #[inline]
    pub fn leave(&mut self, now: Instant, amount: u64) {
        let was_open = self.is_open();
        self.count.leave(amount);
        if !was_open && self.is_open() {
            self.throttled = self.throttled.saturating_add(now.since(self.closed_at));
        }
    }

    /// Counts an arrival that found no room.
    pub(super) fn refuse(&mut self) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A place for bytes, such as 6E.
    fn bytes() -> Tally {
        Tally::new(Spec { label: "6E", name: "dirty files", capacity: 100, threshold: 60 })
    }

    #[test]
    fn amounts_are_counted_in_the_places_unit() {
        let (mut tally, at) = (bytes(), Instant::from_secs);
        assert_eq!(tally.enter(at(0), 50), Ok(()));
        assert!(tally.is_open());
        assert_eq!(tally.enter(at(1), 30), Ok(()));
        assert!(!tally.is_open() && tally.has_room(20) && !tally.has_room(21));
        tally.leave(at(4), 50);
        let meter = tally.meter(at(9));
        assert_eq!((meter.level, meter.level_max, meter.entered, meter.left), (30, 80, 80, 50));
        assert_eq!(meter.throttled, Duration::from_secs(3), "the threshold was jumped over twice");
    }

    #[test]
    fn nothing_enters_beyond_the_capacity() {
        let (mut tally, now) = (bytes(), Instant::START);
        assert_eq!(tally.enter(now, 100), Ok(()));
        assert_eq!(tally.enter(now, 1), Err(Full(1)));
        assert_eq!(tally.enter(now, u64::MAX), Err(Full(u64::MAX)));
        assert_eq!((tally.level(), tally.meter(now).refused), (100, 2));
    }

    #[test]
    #[should_panic(expected = "3 cannot leave where 2 are")]
    fn no_more_leaves_than_there_is() {
        let mut tally = bytes();
        tally.enter(Instant::START, 2).expect("it has room");
        tally.leave(Instant::START, 3);
    }
}
