//! The group's time, as one member sees it.
//!
//! A member knows how far the agreed time is ahead of its own clock, more or less. What it was told at a
//! start, and when others propose times that it finds implausible, it believes if that lies among honest
//! clocks. From then on its own clock runs it, and each decision may pull at it, but by no more than two
//! honest clocks may drift apart. So nobody can make the agreed time run, or stand, by deciding often.

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
    /// What others say that it was, and when they did on the own clock. At most one for each member.
    said: BTreeMap<Seat, (Instant, Instant)>,
}

impl Clock {
    /// Something was decided for this time, some time ago. Honest members have found it plausible then, and
    /// that is all that is known.
    pub(crate) fn new(doubt: Doubt, decided: Instant, now: Instant) -> Clock {
        Clock { doubt, time: decided - doubt.slack, at: now, said: BTreeMap::new() }
    }

    /// The agreed time.
    pub(crate) fn time(&self, now: Instant) -> Instant {
        self.time + now.since(self.at)
    }

    /// When the agreed time will be this, on the own clock.
    pub(crate) fn local(&self, time: Instant) -> Instant {
        self.at + time.since(self.time)
    }

    /// What is said later than this after a question was asked says too little.
    pub(crate) fn answer_max(&self) -> Duration {
        2 * self.doubt.slack
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

    /// A member says what time it is. Once so many have that a quorum has with this one, what lies among
    /// honest clocks is believed if it is later than the own, or if the own is off.
    ///
    /// Time stands still for those that are off. If that was so for many, the few that were not go back to
    /// them; otherwise neither would find plausible what the other proposes, for ever.
    pub(crate) fn on_said(&mut self, seat: Seat, time: Instant, faults: usize, now: Instant) {
        let known = self.said.entry(seat).or_insert((time, now));
        if time > known.0 + now.since(known.1) {
            *known = (time, now);
        }
        if self.said.len() < (2 * faults).max(1) {
            return;
        }
        let own = self.time(now);
        let others = self.said.values().map(|(time, at)| *time + now.since(*at));
        let mut all: Vec<Instant> = others.chain([own]).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        let Some(believed) = all.get(faults).copied() else { return };
        if believed > own || own > believed + self.doubt(now) {
            (self.time, self.at) = (believed, now);
        }
    }

    /// What was said long ago says less the longer clocks have drifted apart.
    pub(crate) fn forget_said(&mut self) {
        self.said.clear();
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

    const PLAIN: Doubt = Doubt { slack: Duration::ZERO, drift_ppm: 1_000 };

    fn seat(n: u8) -> Seat {
        Seat { key: PublicKey::from_bytes([n; 32]), incarnation: 0 }
    }

    fn secs(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    #[test]
    fn one_liar_of_four_can_not_set_the_time() {
        let mut clock = Clock::new(PLAIN, secs(100), secs(5));
        clock.on_said(seat(1), secs(9_000), 1, secs(5));
        assert_eq!(clock.time(secs(5)), secs(100));
        clock.on_said(seat(2), secs(200), 1, secs(5));
        assert_eq!(clock.time(secs(6)), secs(201), "two say that it is at least this");
        clock.forget_said();
        clock.on_said(seat(1), secs(0), 1, secs(6));
        clock.on_said(seat(2), secs(201), 1, secs(6));
        assert_eq!(clock.time(secs(6)), secs(201), "nor back");
    }

    #[test]
    fn one_whose_time_went_on_alone_goes_back_to_those_for_whom_it_stood_still() {
        let mut clock = Clock::new(PLAIN, secs(100), secs(5));
        clock.on_said(seat(1), secs(60), 1, secs(5));
        clock.on_said(seat(2), secs(61), 1, secs(5));
        assert_eq!(clock.time(secs(5)), secs(61));
    }

    #[test]
    fn to_ask_often_does_not_slow_time_down() {
        let mut clock = Clock::new(Doubt::default(), secs(0), secs(1));
        for second in 1..1_000 {
            let (now, late) = (secs(second), secs(second - 1) - Duration::from_millis(50));
            clock.forget_said();
            for other in 1..4 {
                clock.on_said(seat(other), late, 1, now);
            }
        }
        assert_eq!(clock.time(secs(1_000)), secs(999));
    }

    #[test]
    fn a_group_that_is_younger_than_a_machine_keeps_its_time() {
        let mut clock = Clock::new(PLAIN, secs(3), secs(9_000));
        clock.on_said(seat(1), secs(5), 1, secs(9_001));
        clock.on_said(seat(2), secs(7), 1, secs(9_002));
        assert_eq!(clock.time(secs(9_002)), secs(6));
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
    fn starting_again_after_an_early_decision_does_not_make_it_early_twice() {
        let doubt = Doubt::default();
        let early = secs(100) + doubt.slack;
        let clock = Clock::new(doubt, early, secs(5));
        assert_eq!(clock.time(secs(5)), secs(100));
        assert!(clock.is_plausible(early, secs(5)));
        assert!(!clock.is_plausible(early + Duration::from_millis(1), secs(5)));
    }

    #[test]
    fn what_others_said_long_ago_does_not_count_with_what_they_say_now() {
        let mut clock = Clock::new(PLAIN, secs(0), secs(0));
        clock.on_said(seat(1), secs(100), 1, secs(0));
        clock.forget_said();
        clock.on_said(seat(2), secs(90_000), 1, secs(80_000));
        assert_eq!(clock.time(secs(80_000)), secs(80_000));
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
        let clock = Clock::new(PLAIN, secs(100), secs(5));
        assert_eq!(clock.local(secs(103)), secs(8));
        assert_eq!(clock.time(clock.local(secs(103))), secs(103));
    }
}
