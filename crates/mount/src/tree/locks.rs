//! Locks on files: taken from the group, and who of this machine has some, so that they go when a file is
//! closed.
//!
//! Used only where other machines share the tree; else the kernel keeps all locks by itself.

use std::{collections::BTreeMap, sync::Mutex};

use client::{Call, Failure, Reply};
use directory::{Act, Actor, Refusal};

use crate::{
    errno,
    front::{Caller, Errno, Obstacle, Wish},
};

use super::{Tree, lock, who};

/// Who may have locks on which file: by inode and owner.
///
/// Noted before a lock is asked for, so whoever is not here has none. Bounded by the kernel: each of these
/// has the file open, and leaves when it closes it.
#[derive(Default)]
pub(super) struct Locks(Mutex<BTreeMap<(u64, u64), Holder>>);

#[derive(Clone, Copy)]
struct Holder {
    /// Through which the last lock was asked for.
    handle: u64,
    pid: u32,
}

impl Locks {
    /// Notes that somebody asks for a lock; whether they had none before.
    fn note(&self, wish: &Wish) -> bool {
        let holder = Holder { handle: wish.handle, pid: wish.pid };
        lock(&self.0).insert((wish.inode, wish.owner), holder).is_none()
    }

    fn forget(&self, inode: u64, owner: u64) {
        lock(&self.0).remove(&(inode, owner));
    }

    fn get(&self, inode: u64, owner: u64) -> Option<Holder> {
        lock(&self.0).get(&(inode, owner)).copied()
    }

    /// Whose locks on an inode go with a handle. An owner that is an open file has this one handle; one
    /// that is a process has closed its descriptors before, and so is not here any more.
    fn through(&self, inode: u64, handle: u64) -> Vec<u64> {
        let holders = lock(&self.0);
        let of_inode = holders.range((inode, u64::MIN)..=(inode, u64::MAX));
        let through = of_inode.filter(|(_, holder)| holder.handle == handle);
        through.map(|((_, owner), _)| *owner).collect()
    }
}

impl Tree {
    /// Takes, changes or gives up a lock. Never waits for whoever has it: EAGAIN says that it is had.
    pub fn lock(&self, wish: &Wish) -> Result<(), Errno> {
        let file = self.inodes.file(wish.inode)?;
        let is_new = wish.hold.is_some() && self.locks.note(wish);
        let Wish { owner, start, mut end, hold, pid, who: (uid, gid), .. } = *wish;
        // To the kernel a file ends here, so nothing of whoever gives that up is left.
        let is_all = hold.is_none() && start == 0 && end >= i64::MAX.cast_unsigned();
        if is_all {
            end = u64::MAX;
        }
        let act = Act::Lock { file, owner, start, end, hold };
        let mut actor = Actor { uid, gid, groups: Vec::new() };
        let mut result = self.desk.call(&actor, Call::Do(act.clone()));
        if matches!(result, Err(Failure::Refused(Refusal::Access))) {
            actor.groups = who::further_groups(&Caller { uid, gid, pid });
            result = self.desk.call(&actor, Call::Do(act));
        }
        let is_rid = match result {
            Ok(_) => is_all,
            // It may yet be done.
            Err(Failure::Cancelled) => false,
            Err(_) => is_new,
        };
        if is_rid {
            self.locks.forget(wish.inode, owner);
        }
        result.map(drop).map_err(errno::of_call)
    }

    /// A lock that keeps this one from being had, if any does.
    pub fn obstacle(&self, wish: &Wish) -> Result<Option<Obstacle>, Errno> {
        let file = self.inodes.file(wish.inode)?;
        let Wish { owner, start, end, hold, .. } = *wish;
        let is_exclusive = hold.unwrap_or(false);
        let call = Call::TestLock { file, owner, start, end, is_exclusive };
        let Reply::Lock(found) = self.ask(&Actor::ROOT, call)? else { return Err(Errno::IO) };
        Ok(found.map(|found| {
            // The kernel makes owners up from 64 random bits, so no other machine has this one by chance.
            let holder = self.locks.get(wish.inode, found.owner);
            Obstacle {
                start: found.start,
                end: found.end,
                is_exclusive: found.is_exclusive,
                owner: holder.map(|_| found.owner),
                pid: holder.map_or(0, |holder| holder.pid),
            }
        }))
    }

    /// Whether somebody may have locks on a file. Asks nobody.
    pub fn has_locks(&self, inode: u64, owner: u64) -> bool {
        self.locks.get(inode, owner).is_some()
    }

    /// Whether somebody may have locks that were taken through a handle. Asks nobody.
    pub fn has_locks_through(&self, inode: u64, handle: u64) -> bool {
        !self.locks.through(inode, handle).is_empty()
    }

    /// Somebody gives up all locks on a file. If that fails it can be tried again, and the last who closes
    /// the file takes them along.
    pub fn unlock(&self, inode: u64, owner: u64) -> Result<(), Errno> {
        if !self.has_locks(inode, owner) {
            return Ok(());
        }
        let (start, end, hold) = (0, u64::MAX, None);
        let who = (0, 0);
        let wish = Wish { inode, handle: 0, owner, pid: 0, who, start, end, hold };
        let given_up = self.lock(&wish);
        if matches!(given_up, Ok(()) | Err(Errno::STALE)) {
            self.locks.forget(inode, owner);
            return Ok(());
        }
        given_up
    }

    /// All locks that were taken through a handle are given up, as far as that is possible: it is about to
    /// be closed.
    pub fn unlock_through(&self, inode: u64, handle: u64) {
        for owner in self.locks.through(inode, handle) {
            let _ = self.unlock(inode, owner);
            // Nobody is left who would ask again.
            self.locks.forget(inode, owner);
        }
    }
}
