//! Files that are held open before the kernel opens them.
//!
//! The kernel opens a file in two steps, by name and then by number. If somebody else takes the last name away
//! in between, the number stands for nothing; the kernel tries once more, and then gives up. So whoever has
//! come too late once has what they look up next held open, until they open it or some seconds have passed.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use base::FileId;

use crate::front::{Errno, Purpose};

use super::{Tree, lock};

/// So many threads can have come too late at a time; of more, the first are forgotten.
const LATE_MAX: usize = 64;
/// Rounds of tidying, of about a second each, for which it is remembered that somebody was.
const AGE_MAX: u32 = 2;

/// A thread that has come too late.
struct Late {
    pid: u32,
    age: u32,
    held: Option<Held>,
}

/// What is held open for it.
struct Held {
    inode: u64,
    handle: u64,
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

    /// Changes who was late; what is held for nobody any more.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Late>) -> T) -> T {
        let mut late = lock(&self.late);
        let result = change(&mut late);
        self.is_used.store(!late.is_empty(), Ordering::Relaxed);
        result
    }

    /// A thread has come too late; what is held for nobody any more.
    fn note(&self, pid: u32) -> Option<Held> {
        self.change(|all| {
            let place = all.iter().position(|late| late.pid == pid);
            let place = place.or_else(|| (all.len() >= LATE_MAX).then_some(0));
            let before = place.map(|place| all.remove(place));
            all.push(Late { pid, age: 0, held: None });
            before.and_then(|late| late.held)
        })
    }

    /// Something is held for a thread; what is held for nobody any more.
    fn hold(&self, pid: u32, held: Held) -> Option<Held> {
        self.change(|all| match all.iter_mut().find(|late| late.pid == pid) {
            Some(late) => late.held.replace(held),
            None => Some(held),
        })
    }

    /// A thread was in time; what was held for it.
    fn end(&self, pid: u32) -> Option<Held> {
        self.change(|all| {
            let place = all.iter().position(|late| late.pid == pid)?;
            all.remove(place).held
        })
    }

    /// Time has passed; what is held for nobody any more.
    fn age(&self, age_max: u32) -> Vec<Held> {
        self.change(|all| {
            all.iter_mut().for_each(|late| late.age += 1);
            let old = all.extract_if(.., |late| late.age > age_max);
            old.filter_map(|late| late.held).collect()
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

    /// Holds a regular file open for a thread that has come too late before.
    pub(super) fn hold_early(&self, pid: u32, inode: u64, file: &FileId) -> Result<(), Errno> {
        if !self.early.is_late(pid) {
            return Ok(());
        }
        let hold = self.hold_file(inode, file);
        let handle = self.open_handle(file, Purpose { reads: true, ..Purpose::default() })?;
        hold.keep();
        self.drop_held(self.early.hold(pid, Held { inode, handle }));
        Ok(())
    }

    /// Time has passed: what nobody has opened is let go of.
    pub(super) fn drop_early(&self) {
        self.early.age(AGE_MAX).into_iter().for_each(|held| self.drop_held(Some(held)));
    }

    /// Lets go of all that is held for anybody.
    pub(super) fn finish_early(&self) {
        self.early.age(0).into_iter().for_each(|held| self.drop_held(Some(held)));
    }

    fn drop_held(&self, held: Option<Held>) {
        let Some(held) = held else { return };
        self.close_handle(held.handle);
        if let Some(open) = self.opens.get(held.inode) {
            self.let_go(&open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(inode: u64) -> Held {
        Held { inode, handle: inode * 4 }
    }

    #[test]
    fn nothing_is_held_for_whoever_was_not_late_or_is_forgotten() {
        let early = Early::default();
        assert!(early.hold(7, held(1)).is_some());
        assert!(early.note(7).is_none() && early.hold(7, held(1)).is_none());
        assert_eq!(early.hold(7, held(2)).map(|held| held.inode), Some(1));
        assert_eq!(early.end(7).map(|held| held.inode), Some(2));
        assert!(!early.is_late(7) && early.hold(7, held(3)).is_some());
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
