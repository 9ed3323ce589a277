//! The group's time, as one member sees it.
//!
//! A member knows how far the agreed time is ahead of its own clock, more or less. What it was told at a
//! start it believes if so many say so that one of them is honest. From then on its own clock runs it, and
//! each decision may pull at it, but by no more than two honest clocks may drift apart. So nobody can make the
//! agreed time run, or stand, by deciding often.

use std::collections::BTreeMap;

use base::{Duration, Instant};

use crate::seat::Seat;

/// How well clocks agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// How far the agreed time may be from the time of any honest member.
    pub slack: Duration,
    /// How much faster or slower than another an honest clock may run, in parts per million.
    pub drift_ppm: u32,
}

impl Default for Doubt {
    fn default() -> Doubt {
        Doubt { slack: Duration::from_millis(500), drift_ppm: 1_000 }
    }
}

/// The agreed time on one member's clock.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    doubt: Doubt,
    /// The agreed time was this much...
    time: Instant,
    /// ...when the member's own clock showed this.
    at: Instant,
    /// How far ahead of the own clock others say that it is. At most one for each member.
    said: BTreeMap<Seat, Duration>,
}

impl Clock {
    /// The agreed time is at least this, now.
    pub(crate) fn new(doubt: Doubt, time: Instant, now: Instant) -> Clock {
        Clock { doubt, time, at: now, said: BTreeMap::new() }
    }

    /// The agreed time.
    pub(crate) fn time(&self, now: Instant) -> Instant {
        self.time + now.since(self.at)
    }

    /// When the agreed time will be this, on the own clock.
    pub(crate) fn local(&self, time: Instant) -> Instant {
        self.at + time.since(self.time)
    }

    /// How far an honest member's clock may be from this one by now.
    fn doubt(&self, now: Instant) -> Duration {
        self.doubt.slack + self.drift(now)
    }

    fn drift(&self, now: Instant) -> Duration {
        now.since(self.at) * self.doubt.drift_ppm / 1_000_000
    }

    /// Whether an honest leader may have proposed this time.
    pub(crate) fn is_plausible(&self, time: Instant, now: Instant) -> bool {
        let (own, doubt) = (self.time(now), self.doubt(now));
        (own - doubt..=own + doubt).contains(&time)
    }

    /// A member says what time it is. Believed is what enough say, or less.
    pub(crate) fn on_said(&mut self, seat: Seat, time: Instant, witnesses: usize, now: Instant) {
        let ahead = time.since(now);
        let known = self.said.entry(seat).or_insert(ahead);
        *known = ahead.max(*known);
        let mut all: Vec<Duration> = self.said.values().copied().collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        let Some(believed) = all.get(witnesses - 1) else { return };
        let time = self.time(now).max(now + *believed);
        (self.time, self.at) = (time, now);
    }

    /// Members have changed.
    pub(crate) fn forget(&mut self, is_member: impl Fn(&Seat) -> bool) {
        self.said.retain(|seat, _| is_member(seat));
    }

    /// Something was decided for this time.
    pub(crate) fn on_decided(&mut self, time: Instant, now: Instant) {
        let (own, most) = (self.time(now), self.drift(now));
        let pulled = time.max(own - most).min(own + most);
        // Honest members have found it plausible, so it can't be earlier than this.
        (self.time, self.at) = (pulled.max(time - self.doubt(now)), now);
    }
}

#[cfg(test)]
mod tests {
    use base::PublicKey;

    use super::*;

    fn seat(n: u8) -> Seat {
        Seat { key: PublicKey::from_bytes([n; 32]), incarnation: 0 }
    }

    fn secs(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    #[test]
    fn one_liar_of_four_can_not_set_the_time() {
        let mut clock = Clock::new(Doubt::default(), secs(100), secs(5));
        clock.on_said(seat(1), secs(9_000), 2, secs(5));
        assert_eq!(clock.time(secs(5)), secs(100));
        clock.on_said(seat(2), secs(200), 2, secs(5));
        assert_eq!(clock.time(secs(6)), secs(201), "two say that it is at least this");
        clock.on_said(seat(3), secs(50), 2, secs(6));
        assert_eq!(clock.time(secs(6)), secs(201), "it never goes back");
    }

    #[test]
    fn deciding_often_does_not_make_time_run() {
        let doubt = Doubt::default();
        let mut clock = Clock::new(doubt, secs(0), secs(0));
        let mut now = secs(0);
        for _ in 0..10_000 {
            now = now + Duration::from_millis(1);
            let ahead = clock.time(now) + doubt.slack;
            assert!(clock.is_plausible(ahead, now));
            clock.on_decided(ahead, now);
        }
        let gained = clock.time(now).since(now);
        assert!(gained <= Duration::from_millis(11), "{gained:?} in ten seconds");
    }

    #[test]
    fn times_of_clocks_that_drift_are_plausible_also_after_a_long_silence() {
        let clock = Clock::new(Doubt::default(), secs(0), secs(0));
        let hour = 3_600;
        let others = secs(hour) + Duration::from_secs(hour) * 1_000 / 1_000_000;
        assert!(clock.is_plausible(others, secs(hour)));
        assert!(!clock.is_plausible(others + Duration::from_secs(1), secs(hour)));
        assert!(!clock.is_plausible(secs(hour - 5), secs(hour)));
    }

    #[test]
    fn a_moment_of_the_group_is_found_on_the_own_clock() {
        let clock = Clock::new(Doubt::default(), secs(100), secs(5));
        assert_eq!(clock.local(secs(103)), secs(8));
        assert_eq!(clock.time(clock.local(secs(103))), secs(103));
    }
}
