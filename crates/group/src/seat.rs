//! Who sits in a group.

use std::{fmt, sync::Arc};

use base::PublicKey;
use borsh::{BorshDeserialize, BorshSerialize};

/// A member: a machine, and how often it has begun anew. A machine that has lost its disk, or found an
/// old one, may have said things that it does not know of. So it sits down on another seat.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct Seat {
    /// The machine's key.
    pub key: PublicKey,
    /// How often it has begun anew.
    pub incarnation: u32,
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}#{}", self.key, self.incarnation)
    }
}

/// All members, in order, and which of them leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seats {
    list: Arc<[Seat]>,
    leader: usize,
}

impl Seats {
    /// No group has more members.
    pub const COUNT_MAX: usize = 16;

    /// These members, in order and each once. The first leads. None if there is none, or too many.
    pub fn new(mut list: Vec<Seat>) -> Option<Seats> {
        list.sort_unstable();
        list.dedup();
        let is_bounded = (1..=Seats::COUNT_MAX).contains(&list.len());
        is_bounded.then(|| Seats { list: list.into(), leader: 0 })
    }

    /// The same with this leader, if it is a member.
    #[must_use]
    pub fn led_by(&self, seat: Seat) -> Seats {
        let leader = self.list.binary_search(&seat).unwrap_or(self.leader);
        Seats { list: Arc::clone(&self.list), leader }
    }

    /// The same with the next one leading.
    #[must_use]
    pub fn rotated(&self) -> Seats {
        let leader = (self.leader + 1) % self.list.len();
        Seats { list: Arc::clone(&self.list), leader }
    }

    /// Who leads in a round.
    pub fn leader(&self, round: u32) -> &Seat {
        &self.list[(self.leader + round as usize) % self.list.len()]
    }

    /// The members, in order.
    pub fn list(&self) -> &[Seat] {
        &self.list
    }

    /// Whether this is a member.
    pub fn contains(&self, seat: &Seat) -> bool {
        self.list.binary_search(seat).is_ok()
    }

    /// How many may lie.
    pub fn faults(&self) -> usize {
        (self.list.len() - 1) / 3
    }

    /// How many decide. Any two such sets share an honest member.
    pub fn quorum(&self) -> usize {
        self.list.len() * 2 / 3 + 1
    }

    /// How many are believed: one of them is honest.
    pub fn witnesses(&self) -> usize {
        self.faults() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(count: u8) -> Seats {
        let seat = |n| Seat { key: PublicKey::from_bytes([n; 32]), incarnation: 0 };
        Seats::new((0..count).rev().map(seat).collect()).unwrap()
    }

    #[test]
    fn two_quorums_share_more_members_than_may_lie() {
        for count in 1..=Seats::COUNT_MAX as u8 {
            let seats = seats(count);
            let shared = 2 * seats.quorum() - usize::from(count);
            assert!(shared > seats.faults(), "{count}");
            assert!(usize::from(count) - seats.faults() >= seats.quorum(), "{count}");
        }
        assert_eq!([1, 4, 7].map(|n| seats(n).quorum()), [1, 3, 5]);
        assert_eq!([1, 4, 7].map(|n| seats(n).witnesses()), [1, 2, 3]);
    }

    #[test]
    fn members_are_in_order_and_leaders_take_turns() {
        let seats = seats(4);
        assert!(seats.list().is_sorted());
        let second = seats.list()[1];
        let led = seats.led_by(second);
        assert_eq!((led.leader(0), led.leader(3)), (&second, &seats.list()[0]));
        assert_eq!(led.rotated().leader(0), &seats.list()[2]);
        let stranger = Seat { incarnation: 9, ..second };
        assert_eq!(led.led_by(stranger), led, "a stranger leads nobody");
    }

    #[test]
    fn nobody_and_crowds_are_no_group() {
        assert!(Seats::new(Vec::new()).is_none());
        let seat = |n| Seat { key: PublicKey::from_bytes([n; 32]), incarnation: 0 };
        assert!(Seats::new((0..17).map(seat).collect()).is_none());
        assert_eq!(Seats::new(vec![seat(1), seat(1)]).unwrap().list().len(), 1);
    }
}
