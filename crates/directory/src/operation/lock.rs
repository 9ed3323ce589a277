//! Locks on ranges of a file's bytes; the whole range is a lock on the file.

use base::FileId;
use lease::{Client, Field};

use crate::{
    actor::{Actor, Use},
    record::{Lock, Sort},
    refusal::Refusal,
    view::{Stop, View},
};

use super::{read, write};

/// The most locks on one file.
pub const LOCKS_MAX: usize = 1_024;

/// The first lock of somebody else that keeps this one from being had.
pub fn conflicting(
    locks: &[Lock],
    (client, owner): (Client, u64),
    (start, end): (u64, u64),
    is_exclusive: bool,
) -> Option<&Lock> {
    let others = locks.iter().filter(|lock| (lock.client, lock.owner) != (client, owner));
    others
        .filter(|lock| lock.start <= end && start <= lock.end)
        .find(|lock| lock.is_exclusive || is_exclusive)
}

pub(super) fn perform(
    view: &mut impl View,
    actor: &Actor,
    file: &FileId,
    owner: u64,
    (start, end): (u64, u64),
    hold: Option<bool>,
) -> Result<(), Stop> {
    if start > end {
        return Err(Refusal::Senseless.into());
    }
    view.know(&[write(Field::Locks.of(file))])?;
    if hold.is_some() {
        view.know(&[read(Field::Access.of(file))])?;
    }
    let mut record = (*view.file(file)?).clone();
    if record.sort != Sort::Regular {
        return Err(Refusal::Senseless.into());
    }
    // Whoever may open a file in any way may lock it, and not only for what it is open: see flock(2).
    let may_open = |usage| actor.may(&record.access, usage);
    if hold.is_some() && !actor.owns(&record.access) && !may_open(Use::Read) {
        actor.must(&record.access, Use::Write)?;
    }
    let client = view.client();
    if let Some(is_exclusive) = hold
        && conflicting(record.locks(), (client, owner), (start, end), is_exclusive).is_some()
    {
        return Err(Refusal::Locked.into());
    }
    let locks = change(record.locks(), (client, owner), (start, end), hold);
    if locks.len() > LOCKS_MAX {
        return Err(Refusal::TooManyLocks.into());
    }
    record.set_locks(locks);
    view.set_file(file, record);
    Ok(())
}

/// The locks after an owner has changed a range: what it had there goes, what sticks out stays, and
/// neighbours of one sort become one.
fn change(
    locks: &[Lock],
    (client, owner): (Client, u64),
    (start, end): (u64, u64),
    hold: Option<bool>,
) -> Vec<Lock> {
    let is_own = |lock: &Lock| (lock.client, lock.owner) == (client, owner);
    let mut all: Vec<Lock> = locks.iter().filter(|lock| !is_own(lock)).cloned().collect();
    let mut own: Vec<Lock> = Vec::new();
    for lock in locks.iter().filter(|lock| is_own(lock)) {
        if lock.start < start {
            own.push(Lock { end: lock.end.min(start - 1), ..lock.clone() });
        }
        if lock.end > end {
            own.push(Lock { start: lock.start.max(end + 1), ..lock.clone() });
        }
    }
    own.extend(hold.map(|is_exclusive| Lock { client, owner, start, end, is_exclusive }));
    own.sort_by_key(|lock| lock.start);
    let mut joined: Vec<Lock> = Vec::new();
    for lock in own {
        match joined.last_mut() {
            Some(last)
                if last.is_exclusive == lock.is_exclusive
                    && last.end.checked_add(1).is_some_and(|next| next >= lock.start) =>
            {
                last.end = last.end.max(lock.end);
            }
            _ => joined.push(lock),
        }
    }
    all.extend(joined);
    all.sort_by_key(|lock| (lock.start, lock.end, lock.client, lock.owner));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: (Client, u64) = (Client(1), 7);

    fn show(locks: &[Lock]) -> String {
        let one = |lock: &Lock| {
            let mark = if lock.is_exclusive { "x" } else { "s" };
            format!("{mark}{}-{}", lock.start, lock.end)
        };
        locks.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// Plays what one owner does, as in `x0-9` (exclusive), `s5-6` (shared), `-3-4` (unlock).
    #[track_caller]
    fn check(script: &str, expected: &str) {
        let mut locks = Vec::new();
        for step in script.split(' ') {
            let (mark, range) = step.split_at(1);
            let (start, end) = range.split_once('-').unwrap();
            let hold = match mark {
                "x" => Some(true),
                "s" => Some(false),
                _ => None,
            };
            locks = change(&locks, ME, (start.parse().unwrap(), end.parse().unwrap()), hold);
        }
        assert_eq!(show(&locks), expected, "{script}");
    }

    #[test]
    fn a_lock_over_another_takes_its_place_and_what_sticks_out_stays() {
        check("x0-9 s3-5", "x0-2 s3-5 x6-9");
        check("x0-9 -0-9", "");
        check("x5-9 -0-6", "x7-9");
        check("x5-9 -7-20", "x5-6");
        check("x5-9 -6-8", "x5-5 x9-9");
    }

    #[test]
    fn neighbours_of_one_sort_are_one_lock() {
        check("x0-4 x5-9", "x0-9");
        check("s0-4 s3-9", "s0-9");
        check("x0-4 s5-9", "x0-4 s5-9");
        check("x0-4 x6-9", "x0-4 x6-9");
        check("s0-18446744073709551615 s3-4", "s0-18446744073709551615");
    }

    #[test]
    fn only_others_are_in_the_way_and_readers_get_on() {
        let locks = change(&[], ME, (10, 20), Some(false));
        let other = (Client(2), 7);
        assert!(conflicting(&locks, other, (0, 9), true).is_none());
        assert!(conflicting(&locks, other, (0, 10), false).is_none());
        assert!(conflicting(&locks, other, (20, 30), true).is_some());
        assert!(conflicting(&locks, ME, (20, 30), true).is_none());
        assert!(conflicting(&locks, (Client(1), 8), (20, 30), true).is_some());
    }
}
