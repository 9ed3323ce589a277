//! What is open, or being worked on: one for each inode, however often it is open.

use std::{
    collections::BTreeMap,
    ops::Deref,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use base::FileId;

use crate::front::{Errno, Registration};

use super::{Tree, body::Body, lock};

/// An inode that is open, or that somebody works on.
pub(super) struct Open {
    pub(super) inode: u64,
    pub(super) file: FileId,
    /// It has lost its last name: nobody needs its bytes when it is closed.
    is_unlinked: AtomicBool,
    inner: Mutex<Inner>,
}

/// What changes about it.
pub(super) struct Inner {
    pub(super) body: Body,
    /// How often the kernel has it open. All these go the same way.
    pub(super) opens: u32,
    /// There while the kernel uses the backing file by itself.
    pub(super) registration: Option<Registration>,
    /// Who last opened it to write, or changed its size: user and group.
    pub(super) writer: (u32, u32),
    /// Bytes in memory that are not stored.
    pub(super) is_dirty: bool,
    /// A size or a time that the directory was not told.
    pub(super) is_unreported: bool,
    /// It may run as its owner or group, which a write by others ends.
    pub(super) has_suid: bool,
    /// It is on the disk's list of what is being written.
    pub(super) is_noted: bool,
    /// How often its bytes went from memory to the store.
    pub(super) settles: u32,
    /// For how many rounds of tidying something was not stored.
    pub(super) age: u32,
    /// Nobody has it open, but it could not be stored: kept, and tried again.
    pub(super) is_retained: bool,
}

impl Open {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    pub(super) fn is_unlinked(&self) -> bool {
        self.is_unlinked.load(Ordering::Acquire)
    }
}

/// At most as many as the client has handles, calls under way and files that could not be stored; the
/// memory of the last is bounded by the reservoir.
#[derive(Default)]
pub(super) struct Opens {
    slots: Mutex<BTreeMap<u64, Slot>>,
}

struct Slot {
    open: Arc<Open>,
    holds: u32,
}

impl Opens {
    fn hold(&self, inode: u64, file: &FileId) -> Arc<Open> {
        let mut slots = lock(&self.slots);
        let slot = slots.entry(inode).or_insert_with(|| Slot {
            open: Arc::new(Open {
                inode,
                file: file.clone(),
                is_unlinked: AtomicBool::new(false),
                inner: Mutex::new(Inner {
                    body: Body::Rest,
                    opens: 0,
                    registration: None,
                    writer: (0, 0),
                    is_dirty: false,
                    is_unreported: false,
                    has_suid: false,
                    is_noted: false,
                    settles: 0,
                    age: 0,
                    is_retained: false,
                }),
            }),
            holds: 0,
        });
        slot.holds += 1;
        Arc::clone(&slot.open)
    }

    /// Gives up a hold; whether that was the last one of a file without a name.
    fn let_go(&self, inode: u64) -> bool {
        let mut slots = lock(&self.slots);
        let Some(slot) = slots.get_mut(&inode) else { return false };
        slot.holds -= 1;
        if slot.holds > 0 {
            return false;
        }
        let is_unlinked = slot.open.is_unlinked();
        slots.remove(&inode);
        is_unlinked
    }

    pub(super) fn get(&self, inode: u64) -> Option<Arc<Open>> {
        lock(&self.slots).get(&inode).map(|slot| Arc::clone(&slot.open))
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.slots).is_empty()
    }

    pub(super) fn all(&self) -> Vec<Arc<Open>> {
        lock(&self.slots).values().map(|slot| Arc::clone(&slot.open)).collect()
    }

    /// Notes that an inode has no name any more; whether it is open, so that it lives on.
    pub(super) fn unlink(&self, inode: u64) -> bool {
        let slots = lock(&self.slots);
        let slot = slots.get(&inode);
        if let Some(slot) = slot {
            slot.open.is_unlinked.store(true, Ordering::Release);
        }
        slot.is_some()
    }
}

/// Somebody works on an inode. When the last lets go of what nobody has open, its bytes come to rest.
pub(super) struct Hold<'a> {
    tree: &'a Tree,
    open: Arc<Open>,
}

impl Deref for Hold<'_> {
    type Target = Open;

    fn deref(&self) -> &Open {
        &self.open
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.tree.let_go(&self.open);
    }
}

impl Tree {
    pub(super) fn hold(&self, inode: u64) -> Result<Hold<'_>, Errno> {
        let file = self.inodes.file(inode)?;
        Ok(self.hold_file(inode, &file))
    }

    pub(super) fn hold_file(&self, inode: u64, file: &FileId) -> Hold<'_> {
        Hold { tree: self, open: self.opens.hold(inode, file) }
    }

    /// Gives up a hold.
    pub(super) fn let_go(&self, open: &Open) {
        let mut inner = open.lock();
        if inner.opens == 0 && !inner.is_retained && !self.rest(open, &mut inner) {
            // This hold stays, until it can be stored.
            inner.is_retained = true;
            return;
        }
        drop(inner);
        if self.opens.let_go(open.inode) {
            self.doom(open.inode);
        }
    }

    /// Stores what is not stored; whether nothing has to be kept in memory.
    fn rest(&self, open: &Open, inner: &mut Inner) -> bool {
        if !open.is_unlinked()
            && let Err(errno) = self.settle(open, inner)
        {
            let inode = open.inode;
            eprintln!(
                "croft: can't store what was written to inode {inode} ({errno}); trying again"
            );
            // What is in a backing file is there, and will be found to have changed.
            if inner.is_dirty {
                return false;
            }
        }
        inner.body = Body::Rest;
        inner.registration = None;
        inner.is_dirty = false;
        inner.is_unreported = false;
        if std::mem::take(&mut inner.is_noted) {
            self.written(open.inode);
        }
        true
    }

    /// Stores what has been in memory for long, and tries again what could not be stored.
    pub(super) fn settle_old(&self, open: &Open) {
        /// Rounds of tidying, of about a second each.
        const AGE_MAX: u32 = 5;
        let mut inner = open.lock();
        inner.age += 1;
        if inner.age < AGE_MAX {
            return;
        }
        inner.age = 0;
        if inner.is_retained && inner.opens == 0 {
            if self.rest(open, &mut inner) {
                inner.is_retained = false;
                drop(inner);
                self.let_go(open);
            }
            return;
        }
        if self.settle(open, &mut inner) == Ok(true) {
            drop(inner);
            self.changed(open.inode);
        }
    }
}
