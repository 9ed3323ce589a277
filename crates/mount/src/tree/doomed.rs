//! What can be done only when the group knows of something: until then a crash could undo it.
//!
//! Bytes of files that are no more are removed, and those that were written behind our back are taken from
//! the disk's list of such.

use std::{collections::VecDeque, sync::Mutex};

use client::Call;
use directory::Actor;

use super::{Tree, lock};

/// The most that wait.
const WAITING_MAX: usize = 65_536;

/// Each with the place of the operation that has to be pushed first, and the inode; in the order of places.
#[derive(Default)]
pub(super) struct Doomed {
    /// Whose bytes are to be removed. At most [`WAITING_MAX`].
    waiting: Mutex<VecDeque<(u64, u64)>>,
    /// Which were written and are closed. At most [`WAITING_MAX`].
    written: Mutex<VecDeque<(u64, u64)>>,
}

impl Tree {
    /// A file has gone, and nobody has it open.
    pub(super) fn doom(&self, inode: u64) {
        if self.inodes.is_bare(inode) {
            return;
        }
        let place = self.desk.place();
        let mut waiting = lock(&self.doomed.waiting);
        waiting.push_back((place, inode));
        let is_full = waiting.len() >= WAITING_MAX;
        drop(waiting);
        if is_full {
            // Whoever removes so much waits until some of it is gone.
            let _ = self.desk.call(&Actor::ROOT, Call::Sync { handle: None });
            self.remove_doomed();
            // What was lost with a session never is pushed. Rather bytes too many than a file without.
            let mut waiting = lock(&self.doomed.waiting);
            let excess = waiting.len().saturating_sub(WAITING_MAX / 2);
            waiting.drain(..excess);
        }
    }

    /// A backing file was written and is closed.
    pub(super) fn written(&self, inode: u64) {
        let place = self.desk.place();
        let mut written = lock(&self.doomed.written);
        written.push_back((place, inode));
        if written.len() > WAITING_MAX {
            // A file too many on the list costs a look at it, after a crash.
            written.pop_front();
        }
    }

    /// Removes what may be removed.
    pub(super) fn remove_doomed(&self) {
        self.each_pushed(&self.doomed.waiting, &mut |inode| {
            lock(&self.stale).remove(&inode);
            if let Err(failure) = self.content.remove(inode) {
                eprintln!("croft: can't remove the bytes of inode {inode}: {failure}");
            }
        });
        self.each_pushed(&self.doomed.written, &mut |inode| {
            let hold = self.hold(inode);
            // Nobody opens it to write while this is held.
            let inner = hold.as_ref().ok().map(|hold| hold.lock());
            if inner.as_ref().is_none_or(|inner| !inner.is_noted)
                && let Err(failure) = self.content.note_written(inode)
            {
                eprintln!("croft: can't note that inode {inode} is written: {failure}");
            }
        });
    }

    fn each_pushed(&self, queue: &Mutex<VecDeque<(u64, u64)>>, act: &mut dyn FnMut(u64)) {
        let mut known = 0;
        loop {
            let Some((place, inode)) = lock(queue).front().copied() else { return };
            // Places come in order: what is pushed once is pushed for all before it.
            if place > known {
                if !self.desk.is_pushed(place) {
                    return;
                }
                known = place;
            }
            if lock(queue).pop_front_if(|front| *front == (place, inode)).is_some() {
                act(inode);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn doomed_count(&self) -> usize {
        lock(&self.doomed.waiting).len()
    }
}
