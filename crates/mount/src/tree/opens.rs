//! What is open, or being worked on: one for each inode, however often it is open.

use std::{
    collections::BTreeMap,
    fs::File,
    ops::Deref,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use base::FileId;
use content::Seen;
use lease::{Field, Scope};

use crate::front::{Errno, Registration};

use super::{
    Tree,
    body::{Body, Held, look_at},
    lock,
    opening::maps,
};

/// An inode that is open, or that somebody works on.
pub(super) struct Open {
    pub(super) inode: u64,
    pub(super) file: FileId,
    /// It has lost its last name, when so many sessions less one had been lost: nobody needs its bytes
    /// when it is closed. 0 if it has a name.
    unlinked: AtomicU64,
    /// The kernel may have pages of it, since it was first opened. For a tree that others have too.
    has_pages: AtomicBool,
    inner: Mutex<Inner>,
}

/// What changes about it.
pub(super) struct Inner {
    /// Its bytes, and all that decides about them.
    pub(super) bytes: content::File<Held, Arc<File>>,
    /// Under which handles the kernel has it open. All these go the same way, where nobody else has the tree.
    pub(super) handles: Vec<u64>,
    /// There while the kernel uses the backing file by itself.
    pub(super) registration: Option<Registration>,
    /// Its bytes go past the kernel's cache while it is open, and still through us.
    pub(super) is_direct: bool,
    /// The kernel does not take the privileges of what is written directly away: that is for us to do.
    pub(super) has_capability: bool,
    /// The process that has created it, until what it wrote is closed; else 0.
    pub(super) creator: u32,
    /// Who last opened it to write, or changed its size: user and group.
    pub(super) writer: (u32, u32),
    /// So many bytes it may come to take, as the client has said when so many sessions had been lost.
    pub(super) covered: (u64, u64),
    /// So many it took when the directory was last told.
    pub(super) told_bytes: u64,
    /// The kernel has written more by itself than its owner may have: whoever closes or syncs it has to hear of it.
    pub(super) is_over: bool,
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
    /// And it is one of those whose number is bounded.
    is_counted: bool,
}

impl Open {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// The kernel is given pages of it, or may keep some of what is written.
    pub(super) fn note_pages(&self) {
        self.has_pages.store(true, Ordering::Release);
    }

    pub(super) fn has_pages(&self) -> bool {
        self.has_pages.load(Ordering::Acquire)
    }

    /// Whether somebody may write into it by way of mapped memory.
    pub(super) fn may_be_mapped(&self) -> bool {
        self.has_pages() && self.lock().handles.iter().copied().any(maps)
    }
}

impl Inner {
    /// Whether nobody has it open any more, and the kernel used its bytes by itself.
    pub(super) fn is_left_home(&self) -> bool {
        self.handles.is_empty() && self.bytes.is_home()
    }

    /// Whether something was written that the directory was not told.
    pub(super) fn has_news(&self) -> Result<bool, Errno> {
        Ok(self.bytes.has_news(self.seen()?))
    }

    /// Its backing file as it is now, if it has one.
    pub(super) fn seen(&self) -> Result<Option<Seen>, Errno> {
        match self.bytes.body() {
            Body::File { file, .. } => look_at(file).map(Some),
            Body::Rest | Body::Memory(_) => Ok(None),
        }
    }
}

/// The most backing files that are kept open because the directory could not be told of them.
const RETAINED_FILES_MAX: usize = 256;

/// At most as many as the client has handles, calls under way and files that could not be stored; of the
/// last the memory is bounded by the reservoir, and the others by [`RETAINED_FILES_MAX`].
#[derive(Default)]
pub(super) struct Opens {
    slots: Mutex<BTreeMap<u64, Slot>>,
    retained_files: AtomicUsize,
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
                unlinked: AtomicU64::new(0),
                has_pages: AtomicBool::new(false),
                inner: Mutex::new(Inner {
                    bytes: content::File::default(),
                    handles: Vec::new(),
                    registration: None,
                    is_direct: false,
                    has_capability: false,
                    creator: 0,
                    writer: (0, 0),
                    covered: (0, 0),
                    told_bytes: 0,
                    is_over: false,
                    has_suid: false,
                    is_noted: false,
                    settles: 0,
                    age: 0,
                    is_retained: false,
                    is_counted: false,
                }),
            }),
            holds: 0,
        });
        slot.holds += 1;
        Arc::clone(&slot.open)
    }

    /// Gives up a hold. If that was the last one of a file without a name: how many sessions had been lost
    /// when it lost it.
    fn let_go(&self, inode: u64) -> Option<u64> {
        let mut slots = lock(&self.slots);
        let slot = slots.get_mut(&inode)?;
        slot.holds -= 1;
        if slot.holds > 0 {
            return None;
        }
        let unlinked = slot.open.unlinked.load(Ordering::Acquire);
        slots.remove(&inode);
        unlinked.checked_sub(1)
    }

    pub(super) fn get(&self, inode: u64) -> Option<Arc<Open>> {
        lock(&self.slots).get(&inode).map(|slot| Arc::clone(&slot.open))
    }

    /// Those of which the content, or what it takes to change it, is in a scope, in order.
    pub(super) fn within(&self, scope: &Scope) -> Vec<Arc<Open>> {
        let slots = lock(&self.slots);
        let opens = slots.values().map(|slot| &slot.open);
        let fields = [Field::Content, Field::Times, Field::Access];
        let is_within = |open: &&Arc<Open>| {
            fields.iter().any(|field| scope.contains(&field.clone().of(&open.file)))
        };
        opens.filter(is_within).cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.slots).is_empty()
    }

    pub(super) fn all(&self) -> Vec<Arc<Open>> {
        lock(&self.slots).values().map(|slot| Arc::clone(&slot.open)).collect()
    }

    /// Notes that an inode has no name any more since so many sessions were lost; whether it is open, so
    /// that it lives on.
    pub(super) fn unlink(&self, inode: u64, losses: u64) -> bool {
        let slots = lock(&self.slots);
        let slot = slots.get(&inode);
        if let Some(slot) = slot {
            slot.open.unlinked.store(losses + 1, Ordering::Release);
        }
        slot.is_some()
    }
}

/// Somebody works on an inode. When the last lets go of what nobody has open, its bytes come to rest.
pub(super) struct Hold<'a> {
    tree: &'a Tree,
    open: Arc<Open>,
    is_kept: bool,
}

impl Hold<'_> {
    /// It goes on until the kernel says that it has closed the file.
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Deref for Hold<'_> {
    type Target = Open;

    fn deref(&self) -> &Open {
        &self.open
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.tree.let_go(&self.open);
        }
    }
}

impl Tree {
    pub(super) fn hold(&self, inode: u64) -> Result<Hold<'_>, Errno> {
        let file = self.inodes.file(inode)?;
        Ok(self.hold_file(inode, &file))
    }

    pub(super) fn hold_file(&self, inode: u64, file: &FileId) -> Hold<'_> {
        Hold { tree: self, open: self.opens.hold(inode, file), is_kept: false }
    }

    /// Gives up a hold.
    pub(super) fn let_go(&self, open: &Open) {
        if open.lock().is_left_home() {
            self.end_home(open);
        }
        let mut inner = open.lock();
        if inner.handles.is_empty() && !inner.is_retained && !self.rest(open, &mut inner) {
            // This hold stays, until it can be stored.
            inner.is_retained = true;
            if inner.bytes.body().is_file() {
                inner.is_counted = true;
                self.opens.retained_files.fetch_add(1, Ordering::Relaxed);
            }
            return;
        }
        drop(inner);
        if let Some(losses) = self.opens.let_go(open.inode) {
            let file = self.is_shared.then(|| open.file.clone());
            self.doom(open.inode, file, losses);
        }
    }

    /// Whether a file has no name, as far as can be known: what took it away may be lost with a session.
    pub(super) fn is_unlinked(&self, open: &Open) -> bool {
        // Another machine may have it open, and want its bytes.
        if self.is_shared {
            return false;
        }
        let Some(losses) = open.unlinked.load(Ordering::Acquire).checked_sub(1) else {
            return false;
        };
        let losses_now = self.desk.losses();
        if losses == losses_now {
            return true;
        }
        let is_unlinked = match self.record(&open.file) {
            Ok(record) => record.links == 0,
            Err(Errno::STALE) => true,
            // Rather bytes too many than a file without. The next who asks may hear more.
            Err(_) => return false,
        };
        let unlinked = if is_unlinked { losses_now + 1 } else { 0 };
        open.unlinked.store(unlinked, Ordering::Release);
        is_unlinked
    }

    /// Stores what is not stored and tells the directory; whether nothing has to be kept.
    fn rest(&self, open: &Open, inner: &mut Inner) -> bool {
        if inner.bytes.is_home() {
            // Others believe that its bytes change here, and ask for them.
            return false;
        }
        let is_unlinked = self.is_unlinked(open);
        let mut is_told = true;
        if !is_unlinked && let Err(errno) = self.settle(open, inner) {
            let is_in_file = inner.bytes.body().is_file();
            let retained = self.opens.retained_files.load(Ordering::Relaxed);
            if !is_in_file || inner.is_retained || retained < RETAINED_FILES_MAX {
                if !inner.is_retained {
                    let inode = open.inode;
                    eprintln!(
                        "croft: can't store what was written to inode {inode} ({errno}); trying again"
                    );
                }
                return false;
            }
            // It stays on the disk's list of what is being written: the next life looks at it.
            is_told = false;
        }
        let reported = inner.bytes.rest();
        self.uncover(open, inner);
        inner.registration = None;
        if std::mem::take(&mut inner.is_noted) && is_told {
            self.written(open.inode, reported);
        }
        true
    }

    /// A hold that was kept because something could not be stored goes on no more.
    fn end_retention(&self, inner: &mut Inner) {
        inner.is_retained = false;
        if std::mem::take(&mut inner.is_counted) {
            self.opens.retained_files.fetch_sub(1, Ordering::Relaxed);
        }
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
        inner.bytes.confirm(&self.said(&open.file));
        if self.is_shared && inner.has_news() == Ok(true) {
            drop(inner);
            if self.regain(open).is_err() {
                return;
            }
            inner = open.lock();
        }
        if inner.is_retained && inner.handles.is_empty() {
            if inner.bytes.is_home() {
                drop(inner);
                self.end_home(open);
                inner = open.lock();
            }
            if self.rest(open, &mut inner) {
                self.end_retention(&mut inner);
                drop(inner);
                self.let_go(open);
            }
            return;
        }
        if self.settle(open, &mut inner) == Ok(true) {
            drop(inner);
            if !self.is_doubted(open.inode) {
                self.changed(open.inode);
            }
        }
    }

    /// Stores a file, makes its bytes safe and closes it, under whatever handles it is open: the kernel may
    /// have gone without saying so of each.
    pub(super) fn finish_open(&self, open: &Open) -> Result<(), Errno> {
        self.finish_home(open);
        let is_home = open.lock().bytes.is_home();
        if !is_home {
            self.regain(open)?;
        }
        let mut inner = open.lock();
        if is_home {
            inner.sync_file()?;
            // Programs that have it open may go on, so to others nothing ends. It stays on the disk's list.
            inner.bytes.abandon();
            (inner.registration, inner.is_noted) = (None, false);
        } else if !self.is_unlinked(open) {
            self.settle(open, &mut inner)?;
            inner.sync_file()?;
        }
        let handles = std::mem::take(&mut inner.handles);
        let was_retained = inner.is_retained;
        self.end_retention(&mut inner);
        drop(inner);
        for handle in handles {
            self.close_handle(handle);
            self.let_go(open);
        }
        if was_retained {
            self.let_go(open);
        }
        Ok(())
    }
}
