//! When a finger is looked up anew: four policies (K17, K19).
//!
//! Timers are memoryless, so one draw in each second says which of a server's fingers are due, and no timer
//! has to be kept for each. For the same reason to reset a timer upon use would change nothing; what the
//! paper calls suppression is here that a due finger is left alone if it has done well since.

use base::Rng;

use crate::fingers::Fingers;

/// Which fingers are looked up anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// Every finger that is due.
    Always,
    /// A finger that is due and has not been used with success for the time of an interval ("Suppression").
    Unused,
    /// As many, but each time that which was not confirmed for the longest ("Suppression-pick-max").
    Stalest,
    /// As [`Refresh::Unused`], with an interval that follows how many fingers are found to be wrong.
    Adjusted,
}

/// Bounds of the part of fingers that may be wrong, for [`Refresh::Adjusted`].
const WRONG_MIN: f64 = 0.005;
const WRONG_MAX: f64 = 0.02;
/// How fast an interval follows.
const ADJUST: f64 = 1.1;
/// What the last look-up weighs in the smoothed part of fingers that were wrong.
const WRONG_WEIGHT: f64 = 0.02;
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

    /// A level to look up anew in this second, if any. To be called once for each second; a server with more
    /// levels than its interval has seconds looks up one of them in each.
    pub fn due<T: Copy>(&self, fingers: &Fingers<T>, now: u32, rng: &mut Rng) -> Option<usize> {
        let draw = rng.unit() * self.interval;
        let level = draw as usize;
        let count = fingers.levels();
        if level >= count {
            return None;
        }
        // Uniform below the interval: where there are more levels, all of them have to have their turn.
        let level = if count as f64 > self.interval { rng.index(count) } else { level };
        let age = |level| f64::from(now.saturating_sub(fingers.confirmed(level)));
        match self.policy {
            Refresh::Always => Some(level),
            Refresh::Unused | Refresh::Adjusted => {
                (fingers.get(level).is_none() || age(level) >= self.interval).then_some(level)
            }
            Refresh::Stalest => fingers
                .stalest()
                .filter(|level| fingers.get(*level).is_none() || age(*level) >= self.interval),
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
        (0..20).for_each(|_| refresher.found(true));
        let short = refresher.interval();
        assert!((INTERVAL_MIN..15.0).contains(&short), "{short}");
        (0..1_000).for_each(|_| refresher.found(false));
        assert_eq!(refresher.interval(), INTERVAL_MAX);
        let mut fixed = Refresher::new(Refresh::Unused, 30.0);
        (0..20).for_each(|_| fixed.found(true));
        assert_eq!(fixed.interval(), 30.0);
    }
}
