//! How long promises last, and how much sooner they stop being believed.

use base::{Duration, Instant};

/// The terms of a contract. Both sides must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// A client that has not been heard for this long may lose its leases to whoever wants them. Also
    /// the longest that an unanswered recall delays anybody.
    pub session: Duration,
    /// No lease lasts longer than this without being asked for again (D6).
    pub lease: Duration,
    /// After this long without an answer a message is sent again.
    pub repeat: Duration,
    /// How far a group's agreed clock may be from the time of any correct member.
    pub slack: Duration,
    /// How much faster or slower than another a correct clock may run, in parts per million.
    pub drift_ppm: u32,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            session: Duration::from_secs(20),
            lease: Duration::from_secs(2 * 60 * 60),
            repeat: Duration::from_secs(1),
            slack: Duration::from_millis(500),
            drift_ppm: 1_000,
        }
    }
}

impl Terms {
    /// Until when, on its own clock, a holder may believe what it was promised for `span`, counted
    /// from some moment after it sent what it stamped with `stamp`.
    ///
    /// The grantor counts from later, on a clock that may be ahead by the slack when it starts and
    /// behind by the slack when it ends, and that may run faster.
    pub fn believed_until(&self, stamp: Instant, span: Duration) -> Instant {
        let drift = span * self.drift_ppm / 1_000_000;
        stamp + span.saturating_sub(drift).saturating_sub(2 * self.slack)
    }

    /// Whether a promise of a whole session can be believed for any time at all.
    pub fn is_sound(&self) -> bool {
        self.drift_ppm < 1_000_000
            && self.believed_until(Instant::START, self.session) > Instant::START + self.repeat
            && self.lease >= self.session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_stops_believing_before_the_promise_ends() {
        let terms = Terms::default();
        let until = terms.believed_until(Instant::from_secs(100), terms.session);
        assert_eq!(until, Instant::from_secs(120) - Duration::from_millis(1_020));
    }

    #[test]
    fn a_promise_shorter_than_the_doubt_is_not_believed_at_all() {
        let stamp = Instant::from_secs(100);
        assert_eq!(Terms::default().believed_until(stamp, Duration::from_millis(900)), stamp);
    }

    #[test]
    fn terms_that_could_never_be_believed_are_unsound() {
        assert!(Terms::default().is_sound());
        assert!(!Terms { session: Duration::from_secs(2), ..Terms::default() }.is_sound());
        assert!(!Terms { drift_ppm: 2_000_000, ..Terms::default() }.is_sound());
        assert!(!Terms { lease: Duration::from_secs(1), ..Terms::default() }.is_sound());
    }
}
