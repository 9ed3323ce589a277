//! What can be done only when the group knows of something: until then a crash could undo it.
//!
//! Bytes of files that are no more are removed, and those that were written behind our back are taken from
//! the disk's list of such.

use std::{collections::VecDeque, sync::Mutex};

use base::FileId;
use client::Call;
use directory::Actor;

use crate::front::Errno;

use super::{Tree, lock};

/// The most that wait.
const WAITING_MAX: usize = 65_536;

/// So many files are looked at in one round that others may have open.
const LOOKS_MAX: usize = 64;

/// What waits, in the order of places.
type Queue = Mutex<VecDeque<Waiting>>;

#[derive(Clone, PartialEq, Eq)]
struct Waiting {
    /// The place of the operation that has to be pushed first.
    place: u64,
    /// How many sessions had been lost before that operation. Another loss may have undone it.
    losses: u64,
    inode: u64,
    /// It goes only when this file is no more: another machine may have it open.
    file: Option<FileId>,
}

#[derive(Default)]
pub(super) struct Doomed {
    /// Whose bytes are to be removed. At most [`WAITING_MAX`].
    waiting: Queue,
    /// Which were written and are closed. At most [`WAITING_MAX`].
    written: Queue,
}

impl Tree {
    /// A file has gone since so many sessions were lost, and nobody has it open.
    /// It may be one that another machine still has open.
    pub(super) fn doom(&self, inode: u64, file: Option<FileId>, losses: u64) {
        if self.inodes.is_bare(inode) {
            return;
        }
        let place = self.desk.place();
        let mut waiting = lock(&self.doomed.waiting);
        waiting.push_back(Waiting { place, losses, inode, file });
        let is_full = waiting.len() >= WAITING_MAX;
        drop(waiting);
        if is_full {
            // Whoever removes so much waits until some of it is gone.
            let _ = self.desk.call(&Actor::ROOT, Call::Settle);
            self.remove_doomed();
            // If the group does not answer: rather bytes too many than a file without.
            let mut waiting = lock(&self.doomed.waiting);
            let excess = waiting.len().saturating_sub(WAITING_MAX / 2);
            waiting.drain(..excess);
        }
    }

    /// A backing file was written and is closed. The directory was told when so many sessions were lost,
    /// if there was anything to tell.
    pub(super) fn written(&self, inode: u64, reported: Option<u64>) {
        let losses = reported.unwrap_or_else(|| self.desk.losses());
        let place = self.desk.place();
        let mut written = lock(&self.doomed.written);
        written.push_back(Waiting { place, losses, inode, file: None });
        if written.len() > WAITING_MAX {
            // A file too many on the list costs a look at it, after a crash.
            written.pop_front();
        }
    }

    /// Removes what may be removed.
    pub(super) fn remove_doomed(&self) {
        let mut alive = Vec::new();
        let mut looks = 0;
        self.each_pushed(&self.doomed.waiting, &mut |waiting| {
            let Waiting { inode, ref file, .. } = waiting;
            let mut is_there = |file: &FileId| {
                looks += 1;
                looks > LOOKS_MAX || self.record(file) != Err(Errno::STALE)
            };
            if file.as_ref().is_some_and(&mut is_there) {
                return alive.push(waiting);
            }
            lock(&self.stale).remove(&inode);
            if let Err(failure) = self.content.remove(inode) {
                eprintln!("croft: can't remove the bytes of inode {inode}: {failure}");
            }
        });
        lock(&self.doomed.waiting).extend(alive);
        self.each_pushed(&self.doomed.written, &mut |Waiting { inode, .. }| {
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

    fn each_pushed(&self, queue: &Queue, act: &mut dyn FnMut(Waiting)) {
        let mut known = 0;
        loop {
            let Some(first) = lock(queue).front().cloned() else { return };
            let is_doubtful = first.losses != self.desk.losses();
            // Places come in order: what is pushed once is pushed for all before it.
            if !is_doubtful && first.place > known {
                if !self.desk.is_pushed(first.place) {
                    return;
                }
                known = first.place;
            }
            let is_first = lock(queue).pop_front_if(|front| *front == first).is_some();
            // What may be undone stays as it is: bytes too many, or a look too many after a crash.
            if is_first && !is_doubtful {
                act(first);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn doomed_count(&self) -> usize {
        lock(&self.doomed.waiting).len()
    }
}
