//! How long a member leads: none can be slow, or keep somebody's commands out, for ever.

use base::{Duration, Instant};
use borsh::{BorshDeserialize, BorshSerialize};

/// When who leads began to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Term {
    /// The place in the order.
    pub height: u64,
    /// The agreed time there.
    pub time: Instant,
}

impl Term {
    /// So long by the agreed time. A leader may be wrong about that by the slack at either end.
    const SPAN: Duration = Duration::from_secs(6);
    /// Nobody's term ends before so many decisions: where little is to be decided, the lead would wander for
    /// nothing, and each time that it came to a machine that is away somebody would wait.
    const DECISIONS_MIN: u64 = 4;
    /// It ends after so many, however quick they were.
    const DECISIONS_MAX: u64 = 4_096;

    /// Before the first decision.
    pub const FIRST: Term = Term { height: 0, time: Instant::START };

    /// Whether it ends with a decision at this place, for this time.
    pub(crate) fn is_over(self, height: u64, time: Instant) -> bool {
        let decisions = height.saturating_sub(self.height);
        decisions >= Term::DECISIONS_MAX
            || decisions >= Term::DECISIONS_MIN && time.since(self.time) >= Term::SPAN
    }
}

#[cfg(test)]
mod tests {
    use base::PublicKey;

    use crate::{Batch, Seat, Tip};

    use super::*;

    fn seat(n: u8) -> Seat {
        Seat { key: PublicKey::from_bytes([n; 32]), incarnation: 0 }
    }

    /// How many decisions the first of four makes, so long after one another, before another leads.
    fn decisions(apart: Duration) -> u64 {
        let mut tip = Tip::first((0..4).map(seat).collect()).unwrap();
        let (first, mut time) = (tip.leader, Instant::START);
        while tip.leader == first {
            time = time + apart;
            tip = after(&tip, &batch(&tip, time));
        }
        assert_eq!(tip.term, Term { height: tip.height, time });
        tip.height
    }

    fn batch(tip: &Tip, time: Instant) -> Batch {
        Batch::after(tip, tip.leader, time, Vec::new(), None)
    }

    fn after(tip: &Tip, batch: &Batch) -> Tip {
        tip.after(batch, batch.digest())
    }

    #[test]
    fn a_term_ends_after_six_seconds_but_not_before_four_decisions() {
        assert_eq!(decisions(Duration::from_millis(200)), 30);
        assert_eq!(decisions(Duration::from_millis(1_200)), 5);
        assert_eq!(decisions(Duration::from_secs(60)), 4);
    }

    #[test]
    fn a_term_of_very_quick_decisions_ends_too() {
        assert_eq!(decisions(Duration::from_millis(1)), Term::DECISIONS_MAX);
    }

    #[test]
    fn whoever_takes_the_lead_has_a_term_of_its_own() {
        let first = Tip::first((0..4).map(seat).collect()).unwrap();
        let tip = after(&first, &batch(&first, Instant::from_secs(1)));
        let taken = Batch { leader: seat(2), ..batch(&tip, Instant::from_secs(50)) };
        let tip = after(&tip, &taken);
        assert_eq!(tip.leader, seat(2));
        assert_eq!(tip.term, Term { height: 2, time: Instant::from_secs(50) });
    }
}
