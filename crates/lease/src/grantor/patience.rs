//! How long a client's sessions last: less and less for one that keeps what is wanted back.
//!
//! A recall may take as long as a session, so whoever answers none has everybody else wait for that long, each time
//! anew. Whoever has kept something for more than half of the time gets half of it from then on, again and again
//! down to a floor, and nothing beyond what it asks for. This is forgiven step by step, as time goes by without
//! another one.

use base::{Duration, Instant};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::Terms;

/// After so many full sessions one lateness is forgiven.
pub(super) const FORGIVEN_AFTER: u32 = 30;
/// More of them make nothing worse.
const LATE_MAX: u32 = 4;

/// One for each client, whatever becomes of its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub(super) struct Patience {
    /// How often it was late, less what was forgiven. At most [`LATE_MAX`].
    late: u32,
    /// When it was late last, or was forgiven.
    since: Option<Instant>,
}

impl Patience {
    /// How long a session goes on from when its client is heard, and how long a recall may take.
    pub(super) fn session(&self, terms: &Terms) -> Duration {
        let mut session = terms.session;
        for _ in 0..self.late {
            let half = Terms { session: session / 2, ..*terms };
            // It has to hear of the next session before it has to stop believing in this one.
            if half.believed_until(Instant::START, half.session)
                <= Instant::START + 2 * terms.repeat
            {
                break;
            }
            session = half.session;
        }
        session
    }

    /// Whether it gets no more than it asks for.
    pub(super) fn is_strained(&self) -> bool {
        self.late > 0
    }

    /// It was late with something; with many things at a time counts once.
    pub(super) fn note_late(&mut self, now: Instant, terms: &Terms) {
        if self.since.is_none_or(|since| now.since(since) >= self.session(terms)) {
            (self.late, self.since) = ((self.late + 1).min(LATE_MAX), Some(now));
        }
    }

    /// Forgives what is long ago.
    pub(super) fn forgive(&mut self, now: Instant, terms: &Terms) {
        let span = terms.session * FORGIVEN_AFTER;
        while self.late > 0
            && let Some(since) = self.since.filter(|since| now.since(*since) >= span)
        {
            (self.late, self.since) = (self.late - 1, Some(since + span));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(patience: &Patience) -> u64 {
        patience.session(&Terms::default()).as_secs()
    }

    #[test]
    fn who_is_late_again_and_again_has_half_the_time_down_to_a_floor() {
        let (mut patience, terms) = (Patience::default(), Terms::default());
        let mut spans = vec![seconds(&patience)];
        for time in 1..=4 {
            let now = Instant::from_secs(100 * time);
            patience.note_late(now, &terms);
            patience.note_late(now + Duration::from_secs(1), &terms);
            spans.push(seconds(&patience));
        }
        assert_eq!(spans, [20, 10, 5, 5, 5]);
        assert!(patience.is_strained());
    }

    #[test]
    fn what_is_long_ago_is_forgiven_step_by_step() {
        let (mut patience, terms) = (Patience::default(), Terms::default());
        for time in [0, 100] {
            patience.note_late(Instant::from_secs(time), &terms);
        }
        let mut after = |time: u64| {
            patience.forgive(Instant::from_secs(100 + time), &terms);
            seconds(&patience)
        };
        assert_eq!([599, 600, 1_199, 1_200].map(&mut after), [5, 10, 10, 20]);
        assert!(!patience.is_strained());
    }

    #[test]
    fn no_session_is_too_short_to_be_believed() {
        let terms = Terms { session: Duration::from_secs(3), ..Terms::default() };
        let mut patience = Patience::default();
        patience.note_late(Instant::START, &terms);
        assert_eq!(patience.session(&terms), terms.session);
    }
}
