//! What a group keeps for each client: what it was given, and what it was last told, so that whatever
//! it repeats is done once.

use std::collections::{BTreeMap, BTreeSet};

use base::FileId;
use borsh::{BorshDeserialize, BorshSerialize};
use overlay::Users;

use crate::{
    charge::Quota,
    ledger::Free,
    message::{Answer, RANGES_MAX},
    refusal::Refusal,
};

/// So many numbers of a directory are given at a time.
pub const NUMBERS: u64 = 1_024;
/// So many inode numbers are given at a time.
pub const SERIALS: u64 = 65_536;
/// More inode numbers than can have been given out in decisions that were lost.
pub const SERIALS_PASSED: u64 = 1 << 32;
/// The most files that a client may have locks on. An honest one keeps to it by itself.
pub const LOCKED_MAX: usize = 16_384;
/// The most files that are given at a time.
pub const FILES_MAX: u64 = 65_536;
/// The most bytes that are given at a time.
pub const BYTES_MAX: u64 = 1 << 30;

/// For so many users a client may have something set aside at a time.
pub const ACCOUNTS_MAX: usize = 256;

/// A client that was admitted.
#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) struct Member {
    pub(crate) users: Users,
    pub(crate) session: Session,
    /// Files that it has locks on. At most [`LOCKED_MAX`], and those of one batch.
    pub(crate) locked: BTreeSet<FileId>,
}

impl Member {
    pub(crate) fn new(users: Users) -> Member {
        Member { users, session: Session::new(0), locked: BTreeSet::new() }
    }
}

/// What a client was given and told in its present session.
#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) struct Session {
    pub(crate) number: u64,
    /// Whether it goes on, as far as we have noticed.
    pub(crate) is_live: bool,
    /// The last batch that was applied.
    pub(crate) batch: u64,
    /// The last request for provisions that was met, and the answer.
    pub(crate) provided: Option<(u64, Answer)>,
    /// Numbers for new files in directories, other than what it created itself. At most [`RANGES_MAX`].
    pub(crate) ranges: BTreeMap<FileId, Spans>,
    /// Inode numbers for new files.
    pub(crate) serials: Spans,
    /// What it may still use up, for each user. At most [`ACCOUNTS_MAX`].
    pub(crate) escrow: BTreeMap<u32, Quota>,
}

impl Session {
    pub(crate) fn new(number: u64) -> Session {
        Session {
            number,
            is_live: false,
            batch: 0,
            provided: None,
            ranges: BTreeMap::new(),
            serials: Spans::default(),
            escrow: BTreeMap::new(),
        }
    }

    pub(crate) fn may_number(&self, directory: &FileId, number: u64) -> bool {
        self.ranges.get(directory).is_some_and(|spans| spans.contains(number))
    }

    pub(crate) fn use_number(&mut self, directory: &FileId, number: u64) {
        if let Some(spans) = self.ranges.get_mut(directory) {
            spans.use_up(number);
            if spans.is_empty() {
                self.ranges.remove(directory);
            }
        }
    }

    /// Whether it may have more numbers of a directory: it has few, and not for too many directories.
    pub(crate) fn may_have_numbers(&self, directory: &FileId) -> bool {
        match self.ranges.get(directory) {
            Some(spans) => spans.count() < NUMBERS / 2,
            None => self.ranges.len() < RANGES_MAX,
        }
    }

    pub(crate) fn may_have_serials(&self) -> bool {
        self.serials.count() < SERIALS / 2
    }
}

/// Numbers to be used in rising order, each at most once.
///
/// Since more are given only when less than half of what is given at a time is left, there are at most
/// two spans.
#[derive(Clone, Debug, Default, BorshSerialize, BorshDeserialize)]
pub(crate) struct Spans(Vec<(u64, u64)>);

impl Spans {
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.0.iter().any(|(next, end)| (*next..*end).contains(&number))
    }

    /// Uses a number that is in there; those below are passed over.
    pub(crate) fn use_up(&mut self, number: u64) {
        self.0.retain_mut(|(next, end)| {
            *next = (*next).max(number.saturating_add(1));
            next < end
        });
    }

    pub(crate) fn give(&mut self, next: u64, end: u64) {
        if next < end {
            self.0.push((next, end));
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|(next, end)| end - next).sum()
    }

    #[cfg(test)]
    pub(crate) fn first(&self) -> Option<u64> {
        self.0.first().map(|(next, _)| *next)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Takes from what a session has for a user, and what it lacks from what is free: an honest client has merged and
/// reordered what it did, and may be short for a moment. Gives back to the session. What it has then.
pub(crate) fn spend(own: Quota, free: &Free, files: i64, bytes: i64) -> Result<Quota, Refusal> {
    let Free { own: share, room } = free;
    Ok(Quota {
        files: spend_one(own.files, (share.files, room.files), files)?,
        bytes: spend_one(own.bytes, (share.bytes, room.bytes), bytes)?,
    })
}

fn spend_one(own: u64, (share, room): (u64, u64), amount: i64) -> Result<u64, Refusal> {
    let Ok(amount) = u64::try_from(amount) else {
        return Ok(own.saturating_add(amount.unsigned_abs()));
    };
    let lacking = amount.saturating_sub(own);
    match (lacking <= share, lacking <= room) {
        (true, true) => Ok(own.saturating_sub(amount)),
        (_, false) => Err(Refusal::NoSpace),
        (false, true) => Err(Refusal::OverShare),
    }
}

/// A bounded part of what is free, for one of so many clients, which has some already; and what it needs, if there is
/// so much. Whoever wants more than there is gets no more for that.
pub(crate) fn part(free: Quota, own: &Quota, clients: u64, bytes: u64) -> Quota {
    Quota {
        files: fair(free.files, own.files, clients, FILES_MAX),
        bytes: match bytes.saturating_sub(own.bytes) {
            lacking if lacking <= free.bytes => {
                lacking.max(fair(free.bytes, own.bytes, clients, BYTES_MAX))
            }
            _ => fair(free.bytes, own.bytes, clients, BYTES_MAX),
        },
    }
}

/// Whoever has enough gets no more, and nobody more than half of what is free for all, so that nobody can hoard
/// what others may come for.
fn fair(left: u64, own: u64, clients: u64, given_max: u64) -> u64 {
    if own >= given_max / 2 {
        return 0;
    }
    let part = left.saturating_add(own).div_ceil(clients.max(1).saturating_mul(2));
    part.saturating_sub(own).min(left).min(given_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_none_is_used_twice() {
        let mut spans = Spans::default();
        spans.give(10, 13);
        spans.give(20, 22);
        assert_eq!(
            [9, 10, 12, 13, 20].map(|n| spans.contains(n)),
            [false, true, true, false, true]
        );
        spans.use_up(11);
        assert_eq!([10, 11, 12].map(|n| spans.contains(n)), [false, false, true]);
        spans.use_up(20);
        assert_eq!([12, 20, 21].map(|n| spans.contains(n)), [false, false, true]);
        assert_eq!(spans.count(), 1);
        spans.use_up(21);
        assert!(spans.is_empty());
    }

    fn bytes(bytes: u64) -> Quota {
        Quota { files: bytes, bytes }
    }

    #[test]
    fn nobody_is_given_more_than_their_part_of_half_of_what_is_free() {
        let (mut free, mut own) = (bytes(100), Quota::default());
        for _ in 0..10 {
            let given = part(free, &own, 2, 0);
            own.add(given);
            free = free.less(given);
        }
        assert_eq!((own, free), (bytes(25), bytes(75)));
    }

    #[test]
    fn who_needs_more_than_is_given_at_a_time_gets_it_if_there_is_so_much_and_else_nothing_for_that()
     {
        let free = bytes(8 * BYTES_MAX);
        let own = bytes(BYTES_MAX);
        assert_eq!(part(free, &own, 3, 5 * BYTES_MAX).bytes, 4 * BYTES_MAX);
        assert_eq!(part(free, &own, 3, 10 * BYTES_MAX).bytes, 0);
        assert_eq!(part(free, &Quota::default(), 3, u64::MAX).bytes, BYTES_MAX);
    }

    #[test]
    fn the_last_file_can_be_had() {
        assert_eq!(part(bytes(1), &Quota::default(), 2, 1), bytes(1));
        assert_eq!(part(bytes(0), &Quota::default(), 2, 1), bytes(0));
    }

    #[test]
    fn what_a_session_lacks_comes_from_what_is_free_and_whose_limit_it_is_is_said() {
        let free = |own, room| Free { own: bytes(own), room: bytes(room) };
        assert_eq!(spend(bytes(3), &free(5, 5), 1, 8), Ok(Quota { files: 2, bytes: 0 }));
        assert_eq!(spend(bytes(3), &free(4, 5), 1, 8), Err(Refusal::OverShare));
        assert_eq!(spend(bytes(3), &free(4, 4), 1, 8), Err(Refusal::NoSpace));
        assert_eq!(spend(bytes(3), &free(4, 4), 8, 1), Err(Refusal::NoSpace));
        assert_eq!(spend(bytes(3), &free(9, 9), 0, i64::MAX), Err(Refusal::NoSpace));
        assert_eq!(
            spend(bytes(0), &Free::NONE, -2, i64::MIN),
            Ok(Quota { files: 2, bytes: 1 << 63 })
        );
    }
}
