//! What is kept for those who come too late.
//!
//! The kernel does most things in two steps, by name and then by number. If somebody else takes the last name away
//! in between, the number stands for nothing; the kernel tries once more, and then gives up. So whoever has come
//! too late once has what they look up last kept, until they open a file or some seconds have passed: a file is held
//! open, and of anything else it is remembered what it was like, which is all that is asked of it by number.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use base::FileId;
use directory::Sort;

use crate::front::{Attributes, Errno, Purpose};

use super::{Tree, lock};

/// So many threads can have come too late at a time; of more, the first are forgotten.
const LATE_MAX: usize = 64;
/// So much is kept for each: of two names that are looked up one after the other, as for a rename, both count.
const HELD_MAX: usize = 2;
/// Rounds of tidying, of about a second each, for which it is remembered that somebody was, or something is held.
const AGE_MAX: u32 = 5;

/// A thread that has come too late.
struct Late {
    pid: u32,
    age: u32,
    /// Of the last look-ups, at most [`HELD_MAX`], the last one last.
    held: Vec<Held>,
}

/// What is kept for it.
enum Held {
    /// A file is open.
    Open { inode: u64, handle: u64 },
    /// What something else was like.
    Seen(Attributes),
}

impl Held {
    fn inode(&self) -> u64 {
        match self {
            Held::Open { inode, .. } => *inode,
            Held::Seen(seen) => seen.inode,
        }
    }
}

#[derive(Default)]
pub(super) struct Early {
    late: Mutex<Vec<Late>>,
    /// Whether there is anybody: it is asked at every look-up.
    is_used: AtomicBool,
}

impl Early {
    fn is_late(&self, pid: u32) -> bool {
        self.is_used.load(Ordering::Relaxed) && lock(&self.late).iter().any(|late| late.pid == pid)
    }

    /// Changes who was late.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Late>) -> T) -> T {
        let mut late = lock(&self.late);
        let result = change(&mut late);
        self.is_used.store(!late.is_empty(), Ordering::Relaxed);
        result
    }

    /// A thread has come too late; what is held for nobody any more.
    fn note(&self, pid: u32) -> Vec<Held> {
        self.change(|all| {
            let place = all.iter().position(|late| late.pid == pid);
            let place = place.or_else(|| (all.len() >= LATE_MAX).then_some(0));
            let before = place.map(|place| all.remove(place));
            all.push(Late { pid, age: 0, held: Vec::new() });
            before.map(|late| late.held).unwrap_or_default()
        })
    }

    /// Something is held for a thread; what is held for nobody any more.
    fn hold(&self, pid: u32, held: Held) -> Option<Held> {
        self.change(|all| match all.iter_mut().find(|late| late.pid == pid) {
            Some(late) => {
                late.age = 0;
                let inode = held.inode();
                let place = late.held.iter().position(|before| before.inode() == inode);
                let place = place.or_else(|| (late.held.len() >= HELD_MAX).then_some(0));
                let before = place.map(|place| late.held.remove(place));
                late.held.push(held);
                before
            }
            None => Some(held),
        })
    }

    /// What an inode was like that a thread has looked up.
    fn seen(&self, pid: u32, inode: u64) -> Option<Attributes> {
        let all = lock(&self.late);
        let late = all.iter().find(|late| late.pid == pid)?;
        late.held.iter().find_map(|held| match held {
            Held::Seen(seen) if seen.inode == inode => Some(*seen),
            _ => None,
        })
    }

    /// A thread was in time; what was held for it.
    fn end(&self, pid: u32) -> Vec<Held> {
        self.change(|all| {
            let place = all.iter().position(|late| late.pid == pid);
            place.map(|place| all.remove(place).held).unwrap_or_default()
        })
    }

    /// Time has passed; what is held for nobody any more.
    fn age(&self, age_max: u32) -> Vec<Held> {
        self.change(|all| {
            all.iter_mut().for_each(|late| late.age += 1);
            let old = all.extract_if(.., |late| late.age > age_max);
            old.flat_map(|late| late.held).collect()
        })
    }
}

impl Tree {
    /// Passes on what came of something that a thread wanted by number, and notes if that was too late.
    pub(super) fn in_time<T>(&self, pid: u32, result: Result<T, Errno>) -> Result<T, Errno> {
        match result {
            Err(Errno::STALE) if pid != 0 => self.drop_held(self.early.note(pid)),
            Ok(_) if self.early.is_late(pid) => self.drop_held(self.early.end(pid)),
            _ => {}
        }
        result
    }

    /// What an inode was like that is no more, if a thread has come too late before; else notes that it has.
    pub(super) fn seen_early(&self, pid: u32, inode: u64) -> Result<Attributes, Errno> {
        let seen = self.early.seen(pid, inode).ok_or(Errno::STALE);
        if seen.is_err() && pid != 0 {
            self.drop_held(self.early.note(pid));
        }
        seen
    }

    /// Keeps what a thread looks up that has come too late before.
    pub(super) fn keep_early(
        &self,
        pid: u32,
        file: &FileId,
        seen: &Attributes,
    ) -> Result<(), Errno> {
        if !self.early.is_late(pid) {
            return Ok(());
        }
        let held = if seen.sort == Sort::Regular {
            let hold = self.hold_file(seen.inode, file);
            let handle = self.open_handle(file, Purpose { reads: true, ..Purpose::default() })?;
            hold.keep();
            Held::Open { inode: seen.inode, handle }
        } else {
            Held::Seen(*seen)
        };
        self.drop_held(self.early.hold(pid, held));
        Ok(())
    }

    /// Time has passed: what nobody has opened is let go of.
    pub(super) fn drop_early(&self) {
        self.drop_held(self.early.age(AGE_MAX));
    }

    /// Lets go of all that is held for anybody.
    pub(super) fn finish_early(&self) {
        self.drop_held(self.early.age(0));
    }

    fn drop_held(&self, held: impl IntoIterator<Item = Held>) {
        for held in held {
            let Held::Open { inode, handle } = held else { continue };
            self.close_handle(handle);
            if let Some(open) = self.opens.get(inode) {
                self.let_go(&open);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(inode: u64) -> Held {
        Held::Open { inode, handle: inode * 4 }
    }

    fn seen(inode: u64) -> Held {
        Held::Seen(Attributes {
            inode,
            sort: Sort::Directory,
            mode: 0o755,
            links: 2,
            uid: 0,
            gid: 0,
            size: 0,
            blocks: 0,
            accessed: 0,
            modified: 0,
            changed: 0,
        })
    }

    fn inodes(held: impl IntoIterator<Item = Held>) -> Vec<u64> {
        held.into_iter().map(|held| held.inode()).collect()
    }

    #[test]
    fn nothing_is_held_for_whoever_was_not_late_or_is_forgotten() {
        let early = Early::default();
        assert!(early.hold(7, held(1)).is_some());
        assert!(early.note(7).is_empty() && early.hold(7, held(1)).is_none());
        assert_eq!(inodes(early.note(7)), [1]);
        assert!(early.hold(7, held(2)).is_none());
        assert_eq!(inodes(early.end(7)), [2]);
        assert!(!early.is_late(7) && early.hold(7, held(3)).is_some());
    }

    #[test]
    fn whoever_renames_one_directory_onto_another_is_told_what_both_were_like() {
        let early = Early::default();
        early.note(7);
        assert!([1, 2].into_iter().all(|inode| early.hold(7, seen(inode)).is_none()));
        assert!([1, 2].into_iter().all(|inode| early.seen(7, inode).is_some()));
        assert_eq!(inodes(early.hold(7, seen(1))), [1], "looked up again");
        assert_eq!(inodes(early.hold(7, seen(3))), [2], "the one before that goes");
        assert!(early.seen(7, 1).is_some() && early.seen(7, 2).is_none());
        assert!(early.seen(8, 1).is_none());
        assert_eq!(inodes(early.end(7)), [1, 3]);
    }

    #[test]
    fn so_many_are_remembered_and_each_for_some_time() {
        let early = Early::default();
        for pid in 1..=LATE_MAX as u32 + 1 {
            early.note(pid);
        }
        assert!(!early.is_late(1) && early.is_late(2));
        early.hold(2, held(1));
        assert!((0..AGE_MAX).all(|_| early.age(AGE_MAX).is_empty()));
        assert_eq!(early.age(AGE_MAX).len(), 1);
        assert!(!early.is_late(2) && !early.is_used.load(Ordering::Relaxed));
    }
}
