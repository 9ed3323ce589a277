//! Advisory locks: on ranges of bytes for an owner, and on whole files for a handle.
//!
//! The two kinds do not see each other, as on Linux.

use std::collections::BTreeMap;

use super::{Answer, Errno, FileSystem, Handle, setattr::SIZE_MAX};

/// Whoever holds locks on ranges: a process, or an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);

/// A lock's strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lock {
    /// Any number may hold it.
    Shared,
    /// Nobody else may hold any.
    Exclusive,
}

/// Bytes of a file, also beyond its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// The first.
    pub start: u64,
    /// The last.
    pub end: u64,
}

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Where.
    pub range: Range,
    /// By whom.
    pub owner: Owner,
    /// How.
    pub lock: Lock,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    /// Ranges of one owner are apart, and touch only if their strengths differ.
    spans: Vec<Span>,
    whole: BTreeMap<Handle, Lock>,
}

impl Range {
    /// Every byte that there can be.
    pub const ALL: Range = Range { start: 0, end: SIZE_MAX };

    fn meets(self, other: Range) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

impl Locks {
    pub(super) fn clear(&mut self) {
        *self = Locks::default();
    }

    pub(super) fn forget_handle(&mut self, handle: Handle) {
        self.whole.remove(&handle);
    }

    fn conflicts(&self, owner: Owner, range: Range, lock: Lock) -> Vec<Span> {
        let conflicts = |span: &&Span| {
            span.owner != owner
                && span.range.meets(range)
                && (span.lock == Lock::Exclusive || lock == Lock::Exclusive)
        };
        self.spans.iter().filter(conflicts).copied().collect()
    }

    /// Gives the range this lock, or none, whatever the owner held in it.
    fn replace(&mut self, owner: Owner, range: Range, lock: Option<Lock>) {
        let mut range = range;
        let mut spans = Vec::new();
        for span in self.spans.drain(..) {
            let Range { start, end } = span.range;
            let touches =
                start <= range.end.saturating_add(1) && range.start <= end.saturating_add(1);
            if span.owner != owner || !touches {
                spans.push(span);
            } else if Some(span.lock) == lock {
                range = Range { start: start.min(range.start), end: end.max(range.end) };
            } else {
                if start < range.start {
                    let end = end.min(range.start - 1);
                    spans.push(Span { range: Range { start, end }, ..span });
                }
                if end > range.end {
                    let start = start.max(range.end + 1);
                    spans.push(Span { range: Range { start, end }, ..span });
                }
            }
        }
        spans.extend(lock.map(|lock| Span { range, owner, lock }));
        spans.sort_unstable();
        self.spans = spans;
    }
}

impl FileSystem {
    /// Locks or unlocks a range for an owner, or answers `EAGAIN` if others hold some of it.
    pub fn set_lock(
        &mut self,
        handle: Handle,
        owner: Owner,
        range: Range,
        lock: Option<Lock>,
    ) -> Answer<()> {
        if range.start > range.end || range.end > SIZE_MAX {
            return Err(Errno::EINVAL);
        }
        let open = *self.opened(handle)?;
        let is_allowed = match lock {
            Some(Lock::Shared) => open.reads(),
            Some(Lock::Exclusive) => open.writes(),
            None => true,
        };
        if !is_allowed {
            return Err(Errno::EBADF);
        }
        let locks = &mut self.opened_inode(handle)?.locks;
        if lock.is_some_and(|lock| !locks.conflicts(owner, range, lock).is_empty()) {
            return Err(Errno::EAGAIN);
        }
        locks.replace(owner, range, lock);
        Ok(())
    }

    /// All locks of others that are in the way; the system call answers any one of them.
    pub fn test_lock(
        &self,
        handle: Handle,
        owner: Owner,
        range: Range,
        lock: Lock,
    ) -> Answer<Vec<Span>> {
        if range.start > range.end || range.end > SIZE_MAX {
            return Err(Errno::EINVAL);
        }
        Ok(self.inode(self.opened(handle)?.ino)?.locks.conflicts(owner, range, lock))
    }

    /// Locks or unlocks the whole file for a handle. Whoever asks for another strength gives the old
    /// one up first, and has none if that is refused.
    pub fn flock(&mut self, handle: Handle, lock: Option<Lock>) -> Answer<()> {
        let whole = &mut self.opened_inode(handle)?.locks.whole;
        let before = whole.get(&handle).copied();
        if before == lock {
            return Ok(());
        }
        whole.remove(&handle);
        let Some(lock) = lock else { return Ok(()) };
        if whole.values().any(|other| *other == Lock::Exclusive || lock == Lock::Exclusive) {
            return Err(Errno::EAGAIN);
        }
        whole.insert(handle, lock);
        Ok(())
    }

    /// Drops every lock that the owner has on the handle's file, as POSIX does at each close.
    pub fn flush(&mut self, handle: Handle, owner: Owner) -> Answer<()> {
        self.opened_inode(handle)?.locks.replace(owner, Range { start: 0, end: u64::MAX }, None);
        Ok(())
    }
}
