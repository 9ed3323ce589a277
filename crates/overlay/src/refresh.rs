//! When a finger is looked up anew: the paper's four policies (K17, K19), and two of ours.
//!
//! The paper's timers are memoryless. Where nothing but time decides, one draw in each second says which of a
//! server's fingers are due. Where use decides too, each finger has a timer, which stands in the place where the
//! other policies note when it was last known to be good.

use base::Rng;

use crate::fingers::Fingers;

/// Which fingers are looked up anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// Every finger, used or not ("No suppression").
    Always,
    /// Each use with success draws the time of the next look-up anew ("Suppression"; what the paper uses). It is
    /// often sooner than the old one.
    Redrawn,
    /// The same, but the later of the old and the new time counts ("Suppression, pick maximum").
    Latest,
    /// Every finger, with an interval that follows how many are found to be wrong ("Interval adjustment").
    Adjusted,
    /// Ours: a finger that is due is left alone if it has been used with success for the time of an interval.
    Unused,
    /// Ours: as many, but each time that which was not confirmed for the longest.
    Stalest,
}

impl Refresh {
    /// Whether each finger has a timer of its own.
    pub fn is_timed(self) -> bool {
        matches!(self, Refresh::Redrawn | Refresh::Latest)
    }

    /// What is noted of a finger that is good at this moment, if it was just looked up: its timer, or the moment.
    pub fn note(self, now: u32, mean: f64, rng: &mut Rng) -> u32 {
        if self.is_timed() { now.saturating_add(draw(mean, rng)) } else { now }
    }

    /// A message went well along a finger.
    pub fn used<T: Copy>(
        self,
        fingers: &mut Fingers<T>,
        level: usize,
        now: u32,
        mean: f64,
        rng: &mut Rng,
    ) {
        let note = self.note(now, mean, rng);
        if self != Refresh::Latest || fingers.confirmed(level) < note {
            fingers.confirm(level, note);
        }
    }
}

/// A memoryless time with this mean, in whole seconds and at least one.
fn draw(mean: f64, rng: &mut Rng) -> u32 {
    (-mean * (1.0 - rng.unit()).ln()).ceil().max(1.0) as u32
}

/// Bounds of the part of fingers that may be wrong, for [`Refresh::Adjusted`].
const WRONG_MIN: f64 = 0.005;
const WRONG_MAX: f64 = 0.02;
/// What the last look-up weighs in the smoothed part of fingers that were wrong.
const WRONG_WEIGHT: f64 = 0.02;
/// How fast an interval follows: by a tenth in as many look-ups as are remembered. One that followed faster would swing
/// from bound to bound, before what it goes by has changed.
const ADJUST: f64 = 1.0 + 0.1 * WRONG_WEIGHT;
/// An interval stays within these, in seconds.
const INTERVAL_MIN: f64 = 2.0;
const INTERVAL_MAX: f64 = 300.0;

/// The timers of one virtual server's fingers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refresher {
    policy: Refresh,
    /// The mean time between two look-ups of a finger, in seconds.
    interval: f64,
    /// The smoothed part of look-ups that found another than before.
    wrong: f64,
}

impl Refresher {
    /// Timers with this mean, in seconds.
    pub fn new(policy: Refresh, interval: f64) -> Refresher {
        let interval = interval.clamp(INTERVAL_MIN, INTERVAL_MAX);
        Refresher { policy, interval, wrong: (WRONG_MIN + WRONG_MAX) / 2.0 }
    }

    /// The mean time between two look-ups of a finger, in seconds.
    pub fn interval(&self) -> f64 {
        self.interval
    }

    /// A level to look up anew in this second, if any. To be called once for each second, or where fingers have
    /// timers until there is none; else a server with more levels than its interval has seconds looks up one of
    /// them in each.
    pub fn due<T: Copy>(&self, fingers: &Fingers<T>, now: u32, rng: &mut Rng) -> Option<usize> {
        if self.policy.is_timed() {
            return fingers.stalest().filter(|level| fingers.confirmed(*level) <= now);
        }
        let draw = rng.unit() * self.interval;
        let level = draw as usize;
        let count = fingers.levels();
        if level >= count {
            return None;
        }
        // Uniform below the interval: where there are more levels, all of them have to have their turn.
        let level = if count as f64 > self.interval { rng.index(count) } else { level };
        let is_left_alone = |level: &usize| {
            fingers.get(*level).is_some()
                && f64::from(now.saturating_sub(fingers.confirmed(*level))) < self.interval
        };
        match self.policy {
            Refresh::Unused => Some(level).filter(|level| !is_left_alone(level)),
            Refresh::Stalest => fingers.stalest().filter(|level| !is_left_alone(level)),
            _ => Some(level),
        }
    }

    /// Notes whether a look-up found that a finger had pointed at somebody who is no longer right.
    pub fn found(&mut self, was_wrong: bool) {
        if self.policy != Refresh::Adjusted {
            return;
        }
        self.wrong += WRONG_WEIGHT * (f64::from(u8::from(was_wrong)) - self.wrong);
        let factor = if self.wrong > WRONG_MAX {
            1.0 / ADJUST
        } else if self.wrong < WRONG_MIN {
            ADJUST
        } else {
            1.0
        };
        self.interval = (self.interval * factor).clamp(INTERVAL_MIN, INTERVAL_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fingers::Link, position::Position};

    fn fingers(count: usize) -> Fingers<u32> {
        let mut fingers = Fingers::default();
        fingers.resize(count);
        for level in 0..count {
            fingers.set(level, Some(Link { position: Position(level as u64), server: 0 }), 0);
        }
        fingers
    }

    /// How often each level is looked up in so many seconds, while level 0 is in use all the time.
    fn counts(policy: Refresh, seconds: u32) -> Vec<u32> {
        let (mut fingers, mut rng) = (fingers(10), Rng::new(1));
        let refresher = Refresher::new(policy, 30.0);
        let mut counts = vec![0; 10];
        for now in 100..100 + seconds {
            fingers.confirm(0, now);
            if let Some(level) = refresher.due(&fingers, now, &mut rng) {
                counts[level] += 1;
                fingers.set(level, fingers.get(level), now);
            }
        }
        counts
    }

    #[test]
    fn each_finger_is_looked_up_once_in_an_interval_in_the_mean() {
        let counts = counts(Refresh::Always, 30_000);
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }

    /// How often a finger is looked up that is used every so many seconds, and what the mean is between look-ups.
    fn timed(policy: Refresh, use_every: u32) -> u32 {
        let (mut fingers, mut rng) = (fingers(1), Rng::new(4));
        let refresher = Refresher::new(policy, 30.0);
        let mut count = 0;
        for now in 0..60_000 {
            if let Some(level) = refresher.due(&fingers, now, &mut rng) {
                count += 1;
                let note = policy.note(now, 30.0, &mut rng);
                fingers.set(level, fingers.get(level), note);
            }
            // As in a network: first look-ups, then messages.
            if now % use_every == 0 {
                policy.used(&mut fingers, 0, now, 30.0, &mut rng);
            }
        }
        count
    }

    #[test]
    fn a_timer_that_is_drawn_anew_is_due_as_often_as_one_that_is_not() {
        for use_every in [5, 60, 100_000] {
            let count = timed(Refresh::Redrawn, use_every);
            assert!((1_800..2_150).contains(&count), "{use_every}: {count}");
        }
    }

    #[test]
    fn the_later_of_two_times_keeps_a_finger_in_use_from_being_looked_up() {
        assert!((1_800..2_150).contains(&timed(Refresh::Latest, 100_000)));
        assert!(timed(Refresh::Latest, 5) < 200);
    }

    #[test]
    fn an_empty_finger_with_a_timer_is_due_at_once() {
        let mut fingers = fingers(2);
        fingers.confirm(0, 500);
        fingers.set(1, None, 100);
        let refresher = Refresher::new(Refresh::Latest, 30.0);
        assert_eq!(refresher.due(&fingers, 100, &mut Rng::new(1)), Some(1));
        assert_eq!(refresher.due(&fingers, 99, &mut Rng::new(1)), None);
    }

    #[test]
    fn a_finger_in_use_is_left_alone_and_the_others_are_not() {
        for policy in [Refresh::Unused, Refresh::Stalest] {
            let counts = counts(policy, 30_000);
            assert_eq!(counts[0], 0, "{policy:?}");
            assert!(counts[1..].iter().all(|count| (400..1_050).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn an_empty_finger_is_looked_up_however_new_it_is() {
        let mut fingers = fingers(10);
        (0..10).for_each(|level| fingers.set(level, None, 100));
        let refresher = Refresher::new(Refresh::Unused, 30.0);
        let mut rng = Rng::new(2);
        assert!((0..50).any(|_| refresher.due(&fingers, 100, &mut rng).is_some()));
    }

    #[test]
    fn more_levels_than_seconds_all_have_their_turn() {
        let (fingers, mut rng) = (fingers(60), Rng::new(3));
        let refresher = Refresher::new(Refresh::Always, 10.0);
        let mut seen = [false; 60];
        (0..2_000)
            .filter_map(|_| refresher.due(&fingers, 9, &mut rng))
            .for_each(|l| seen[l] = true);
        assert!(seen.iter().all(|seen| *seen));
    }

    #[test]
    fn an_interval_shrinks_while_fingers_are_wrong_and_grows_while_they_are_right() {
        let mut refresher = Refresher::new(Refresh::Adjusted, 30.0);
        (0..1_000).for_each(|_| refresher.found(true));
        let short = refresher.interval();
        assert!((INTERVAL_MIN..15.0).contains(&short), "{short}");
        (0..4_000).for_each(|_| refresher.found(false));
        assert_eq!(refresher.interval(), INTERVAL_MAX);
        let mut fixed = Refresher::new(Refresh::Unused, 30.0);
        (0..20).for_each(|_| fixed.found(true));
        assert_eq!(fixed.interval(), 30.0);
    }

    #[test]
    fn an_interval_settles_where_as_many_are_wrong_as_may_be() {
        let (mut refresher, mut rng) = (Refresher::new(Refresh::Adjusted, 30.0), Rng::new(5));
        // Of those that live for 900 s, so many have died in an interval.
        let mut look = |refresher: &mut Refresher| {
            refresher.found(rng.chance(refresher.interval() / 900.0));
            refresher.interval()
        };
        for _ in 0..5_000 {
            look(&mut refresher);
        }
        let [low, high] = [WRONG_MIN, WRONG_MAX].map(|part| part * 900.0);
        for _ in 0..20_000 {
            let interval = look(&mut refresher);
            assert!((low / 2.0..2.0 * high).contains(&interval), "{interval}");
        }
    }
}
