//! The order of commands: each gets its place and a time, and takes effect when it is safe there.
//!
//! This is where a replicated group will stand. A group of one decides alone: a command has its place
//! as soon as it comes, and is safe as soon as the log says so.

use std::collections::VecDeque;

use base::{Duration, Instant, Malformed};
use borsh::{BorshDeserialize, BorshSerialize};
use directory::Command;

/// A command with its place in the order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Decision {
    /// Its place; the first is 1.
    pub height: u64,
    /// The agreed time. Never less than that of the decision before.
    pub time: Instant,
    /// What is to be done.
    pub command: Command,
}

/// As many decisions wait to be safe. What comes on top is dropped; who sent it will say it again.
const UNSAFE_MAX: usize = 1_024;
/// The most bytes of a decision in the log.
const DECISION_BYTES_MAX: usize = wire::BYTES_MAX + 1_024;

impl Decision {
    /// The decision that a record of the log holds.
    pub(crate) fn of(record: &[u8]) -> Result<Decision, Malformed> {
        base::decode(record, DECISION_BYTES_MAX)
    }
}

/// Decides alone.
#[derive(Debug)]
pub(crate) struct Order {
    /// The place of the last decision.
    height: u64,
    /// Its time.
    time: Instant,
    /// How far the agreed time is ahead of this machine's clock. It only grows: while a machine is
    /// down its group's time stands still, and promises last longer than was said, never shorter.
    ahead: Duration,
    /// Decided and not known to be safe. At most [`UNSAFE_MAX`].
    unsafe_yet: VecDeque<Decision>,
}

impl Order {
    /// The order after a last decision, if there was one, on a clock that shows `now`.
    pub(crate) fn after(height: u64, time: Instant, now: Instant) -> Order {
        Order { height, time, ahead: time.since(now), unsafe_yet: VecDeque::new() }
    }

    /// The agreed time, were something decided now.
    pub(crate) fn time(&self, now: Instant) -> Instant {
        self.time.max(now + self.ahead)
    }

    /// The first moment on this machine's clock at which the agreed time is at least this.
    pub(crate) fn local(&self, time: Instant) -> Instant {
        time - self.ahead
    }

    /// Gives a command its place; answers what has to be safe before it takes effect, and as which
    /// height that will be known.
    pub(crate) fn decide(&mut self, now: Instant, command: Command) -> Option<(u64, Vec<u8>)> {
        if self.unsafe_yet.len() == UNSAFE_MAX {
            return None;
        }
        self.time = self.time(now);
        self.height += 1;
        let decision = Decision { height: self.height, time: self.time, command };
        let record = base::encode(&decision);
        self.unsafe_yet.push_back(decision);
        Some((self.height, record))
    }

    /// The next decision that may take effect, now that all up to this height are safe.
    pub(crate) fn next_safe(&mut self, height: u64) -> Option<Decision> {
        let is_safe = self.unsafe_yet.front().is_some_and(|first| first.height <= height);
        if is_safe { self.unsafe_yet.pop_front() } else { None }
    }

    /// Whether something waits to be safe.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.unsafe_yet.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_take_effect_in_order_and_only_when_safe() {
        let mut order = Order::after(0, Instant::START, Instant::from_secs(5));
        let mut heights = Vec::new();
        for _ in 0..3 {
            heights.push(order.decide(Instant::from_secs(5), Command::Tick).unwrap().0);
        }
        assert_eq!(heights, [1, 2, 3]);
        assert!(order.next_safe(0).is_none());
        let mut safe = |height| order.next_safe(height).map(|decision| decision.height);
        assert_eq!([safe(2), safe(2), safe(2), safe(3)], [Some(1), Some(2), None, Some(3)]);
    }

    #[test]
    fn agreed_time_goes_on_where_it_was_after_a_restart_with_an_earlier_clock() {
        let mut order = Order::after(7, Instant::from_secs(100), Instant::from_secs(3));
        assert_eq!(order.time(Instant::from_secs(4)), Instant::from_secs(101));
        assert_eq!(order.local(Instant::from_secs(101)), Instant::from_secs(4));
        let (height, record) = order.decide(Instant::from_secs(4), Command::Tick).unwrap();
        let decision = Decision::of(&record).unwrap();
        assert_eq!((height, decision.height, decision.time), (8, 8, Instant::from_secs(101)));
    }

    #[test]
    fn more_than_can_be_made_safe_is_dropped() {
        let mut order = Order::after(0, Instant::START, Instant::START);
        for _ in 0..UNSAFE_MAX {
            assert!(order.decide(Instant::START, Command::Tick).is_some());
        }
        assert!(order.decide(Instant::START, Command::Tick).is_none());
        assert!(order.next_safe(1).is_some());
        assert!(order.decide(Instant::START, Command::Tick).is_some());
    }
}
