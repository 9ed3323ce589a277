//! The order of commands: each gets its place and a time, and takes effect when it is safe there.
//!
//! This is where a replicated group will stand. A group of one decides alone: a command has its place
//! as soon as it comes, and is safe as soon as the log says so.

use std::collections::VecDeque;

use base::{Duration, Instant, Malformed};
use borsh::{BorshDeserialize, BorshSerialize};
use directory::Command;
use lease::Client;

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

/// As many decisions wait to be safe, and as many bytes of them. What comes on top is dropped; who sent it
/// will say it again.
const UNSAFE_MAX: usize = 1_024;
const UNSAFE_BYTES_MAX: usize = 64 << 20;
/// The most bytes of a decision in the log.
const DECISION_BYTES_MAX: usize = wire::BYTES_MAX + 1_024;
// Else there would be messages that are dropped each time that they are said.
const _: () = assert!(DECISION_BYTES_MAX <= UNSAFE_BYTES_MAX);

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
    /// Decided and not known to be safe, each with the bytes of its record. At most [`UNSAFE_MAX`].
    unsafe_yet: VecDeque<(Decision, usize)>,
    /// All of those bytes. At most [`UNSAFE_BYTES_MAX`].
    unsafe_bytes: usize,
}

impl Order {
    /// The order after a last decision, if there was one, on a clock that shows `now`.
    pub(crate) fn after(height: u64, time: Instant, now: Instant) -> Order {
        let (unsafe_yet, unsafe_bytes) = (VecDeque::new(), 0);
        Order { height, time, ahead: time.since(now), unsafe_yet, unsafe_bytes }
    }

    /// The time of the last decision.
    pub(crate) fn last(&self) -> Instant {
        self.time
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
        let decision = Decision { height: self.height + 1, time: self.time(now), command };
        let record = base::encode(&decision);
        if record.len() > UNSAFE_BYTES_MAX - self.unsafe_bytes {
            return None;
        }
        (self.height, self.time) = (decision.height, decision.time);
        self.unsafe_bytes += record.len();
        self.unsafe_yet.push_back((decision, record.len()));
        Some((self.height, record))
    }

    /// The next decision that may take effect, now that all up to this height are safe.
    pub(crate) fn next_safe(&mut self, height: u64) -> Option<Decision> {
        let (decision, bytes) =
            self.unsafe_yet.pop_front_if(|(first, _)| first.height <= height)?;
        self.unsafe_bytes -= bytes;
        Some(decision)
    }

    /// Whether a client is about to be admitted.
    pub(crate) fn is_admitting(&self, client: Client) -> bool {
        self.unsafe_yet.iter().any(|(decision, _)| match &decision.command {
            Command::Admit { client: admitted, .. } => *admitted == client,
            _ => false,
        })
    }

    /// Whether something waits to be safe.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.unsafe_yet.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use directory::Users;

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

    #[test]
    fn more_bytes_than_can_be_made_safe_are_dropped_and_leave_no_gap() {
        let mut order = Order::after(0, Instant::START, Instant::START);
        let gids = (0..Users::COUNT_MAX as u32).collect();
        let users = Users::These(BTreeMap::from([(7, gids)]));
        let large = Command::Admit { client: Client(1), users };
        let mut heights = Vec::new();
        while let Some((height, _)) = order.decide(Instant::START, large.clone()) {
            heights.push(height);
        }
        let last = heights.len() as u64;
        assert!(last < UNSAFE_MAX as u64 && order.unsafe_bytes <= UNSAFE_BYTES_MAX);
        let small = order.decide(Instant::START, Command::Tick).map(|(height, _)| height);
        assert_eq!(small, Some(last + 1), "there is room for little, at the next height");
        assert!(order.next_safe(1).is_some());
        assert!(order.decide(Instant::START, large).is_some());
        while order.next_safe(u64::MAX).is_some() {}
        assert_eq!(order.unsafe_bytes, 0);
    }
}
