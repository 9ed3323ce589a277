//! The file system behind a front end: inode numbers, what is open, and where its bytes are.
//!
//! Order of locks: that of an open file, then any other; never two open files at once. Nobody holds the
//! lock of a table while something is asked of the client or of a disk.

mod attributes;
mod away;
mod body;
mod contended;
mod data;
mod doomed;
mod early;
mod extended;
mod habits;
mod home;
mod inodes;
mod listing;
mod locks;
mod names;
mod opening;
mod opens;
mod outlived;
mod regain;
mod room;
mod shared;
mod who;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use base::FileId;
use client::{Call, Failure, Reply};
use content::{Contests, Silence};
use directory::{Act, Actor, File as Record, Refusal};
use host::{Content, Desk, Machine, Memory, Neighbours};
use lease::{Name, Scope};

use crate::{
    errno,
    front::{Caller, Change, Errno},
};

use body::Reservoir;
use doomed::Doomed;
use early::Early;
use habits::Habits;
use inodes::Inodes;
use listing::Listings;
use locks::Locks;
use opens::Opens;
use outlived::Outlived;
use room::Gauge;

/// How a tree behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Files up to this size need no backing file, in bytes.
    pub small_max: usize,
    /// The most bytes of open files that are kept in memory.
    pub memory_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { small_max: 128 << 10, memory_max: 64 << 20 }
    }
}

/// Tells the front end what the kernel may not believe any more.
type Tell = dyn Fn(Change<'_>) + Send + Sync;
/// The same; whether the kernel knows what that is about.
type TellNow = dyn Fn(Change<'_>) -> bool + Send + Sync;

/// A file system, as a front end sees it. Inodes are named by number, names are bytes.
pub struct Tree {
    desk: Arc<Desk>,
    content: Arc<Content>,
    neighbours: Arc<Neighbours>,
    cell: String,
    /// Others may have the same tree, on other machines.
    is_shared: bool,
    settings: Settings,
    inodes: Inodes,
    opens: Opens,
    listings: Listings,
    locks: Locks,
    doomed: Doomed,
    early: Early,
    contended: Mutex<Contests>,
    /// Homes of files that did not answer.
    silence: Mutex<Silence>,
    reservoir: Arc<Reservoir>,
    gauge: Gauge,
    habits: Habits,
    /// Whether the kernel may be asked to use backing files by itself.
    has_passthrough: AtomicBool,
    /// Whether files may be read and written past the kernel's cache, and mapped all the same.
    has_direct: AtomicBool,
    /// Files that were being written when the daemon last ended without saying so: what the directory says
    /// of their size may be old. Taken out as they are looked at.
    stale: Mutex<BTreeSet<u64>>,
    has_stale: AtomicBool,
    outlived: Outlived,
    /// Nobody asks any more.
    is_finished: AtomicBool,
    /// Told when something changed that the kernel has not asked for.
    on_changed: OnceLock<Box<Tell>>,
    /// Told what the kernel must not believe from this moment on, without waiting for anything.
    on_forgotten: OnceLock<Box<TellNow>>,
    /// Has the kernel hand over and forget the bytes of an inode, and waits until it has.
    on_mapped: OnceLock<Box<Tell>>,
    /// How often the kernel had to forget something at once.
    forgotten: AtomicU64,
    /// Whoever tells the kernel of something that it may not know yet is within, and what has to be forgotten waits.
    gate: RwLock<()>,
    /// The kernel can't be told to forget names, so it may not remember any.
    has_no_memory: AtomicBool,
    /// What is just being given up to others. One at a time.
    yielding: Mutex<Vec<Scope>>,
    /// What the client knows of this tree.
    memory: OnceLock<Arc<dyn Memory>>,
    /// How often the directory was told of bytes.
    told: AtomicU64,
    /// How many sessions had been lost when the kernel was last told to forget everything.
    losses: AtomicU64,
    /// Telling the directory of the bytes of this inode fails.
    #[cfg(test)]
    unreportable: AtomicU64,
}

impl Tree {
    /// The tree that the client of a machine sees.
    pub fn new(machine: &Machine, settings: Settings) -> Tree {
        let (desk, content) = (Arc::clone(machine.desk()), Arc::clone(machine.content()));
        let neighbours = Arc::clone(machine.neighbours());
        let stale: BTreeSet<u64> = content.written_before().into_iter().collect();
        let tree = Tree {
            losses: AtomicU64::new(desk.losses()),
            desk,
            content,
            cell: machine.cell().to_owned(),
            is_shared: neighbours.can_be(),
            neighbours,
            settings,
            inodes: Inodes::new(),
            opens: Opens::default(),
            listings: Listings::default(),
            locks: Locks::default(),
            doomed: Doomed::default(),
            early: Early::default(),
            contended: Mutex::default(),
            silence: Mutex::default(),
            reservoir: Arc::new(Reservoir::new(settings.memory_max)),
            gauge: Gauge::default(),
            habits: Habits::new(),
            has_passthrough: AtomicBool::new(false),
            has_direct: AtomicBool::new(false),
            has_stale: AtomicBool::new(!stale.is_empty()),
            stale: Mutex::new(stale),
            outlived: Outlived::default(),
            is_finished: AtomicBool::new(false),
            on_changed: OnceLock::new(),
            on_forgotten: OnceLock::new(),
            on_mapped: OnceLock::new(),
            forgotten: AtomicU64::new(0),
            gate: RwLock::new(()),
            has_no_memory: AtomicBool::new(false),
            yielding: Mutex::default(),
            memory: OnceLock::new(),
            told: AtomicU64::new(0),
            #[cfg(test)]
            unreportable: AtomicU64::new(0),
        };
        tree.look_at_room();
        tree
    }

    /// The name of the cell whose tree it is.
    pub fn cell(&self) -> &str {
        &self.cell
    }

    /// Lets the kernel use backing files by itself, as far as it can.
    pub fn allow_passthrough(&self) {
        self.has_passthrough.store(true, Ordering::Relaxed);
    }

    fn has_passthrough(&self) -> bool {
        self.has_passthrough.load(Ordering::Relaxed)
    }

    /// Lets files be read and written past the kernel's cache.
    pub fn allow_direct(&self) {
        self.has_direct.store(true, Ordering::Relaxed);
    }

    /// Whom to tell when the kernel may believe what is not so any more. Only the first is told; in the
    /// midst of a request, so what the kernel may hold meanwhile must not be waited for.
    pub fn tell_changes(&self, tell: impl Fn(Change<'_>) + Send + Sync + 'static) {
        let _ = self.on_changed.set(Box::new(tell));
    }

    /// Whom to tell what has to be forgotten before anything else happens; whether the kernel knows what that is
    /// about. It may not wait for the kernel, nor use the tree.
    pub fn tell_forgotten(&self, tell: impl Fn(Change<'_>) -> bool + Send + Sync + 'static) {
        let _ = self.on_forgotten.set(Box::new(tell));
    }

    /// Whom to ask for what programs have written into mapped memory, before others may see the file.
    pub fn fetch_mapped_by(&self, fetch: impl Fn(Change<'_>) + Send + Sync + 'static) {
        let _ = self.on_mapped.set(Box::new(fetch));
    }

    /// Whether the machine acts for the user with this number.
    pub fn may_be(&self, uid: u32) -> bool {
        self.desk.may_be(uid)
    }

    /// Whether others may have the same tree, on other machines.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// To be called about once a second: what was written long ago is stored, what is of no use any more
    /// is removed, and the room that is left is looked at.
    pub fn tidy(&self) {
        self.look_at_room();
        self.look_at_losses();
        self.drop_early();
        self.tidy_contended();
        for open in self.opens.all() {
            self.watch_growth(&open);
            self.settle_old(&open);
            self.refresh_mapped(&open);
        }
        self.look_at_outlived();
        self.remove_doomed();
    }

    /// Everything that is still in memory is stored and made safe, and everything that is open is closed.
    /// To be called when nobody asks any more. What can't be stored stays, and keeps nothing else from
    /// being stored: the first error is told, and calling this again tries again.
    pub fn finish(&self) -> Result<(), Errno> {
        self.is_finished.store(true, Ordering::Release);
        self.finish_early();
        self.look_at_outlived();
        let mut stored = Ok(());
        for open in self.opens.all() {
            stored = stored.and(self.finish_open(&open));
        }
        self.content.sync().map_err(errno::of_host)?;
        self.ask(&Actor::ROOT, Call::Sync { handle: None })?;
        self.remove_doomed();
        stored?;
        // Of what nobody has looked at since, the size may still be old.
        match lock(&self.stale).is_empty() {
            true => self.content.forget_written_before().map_err(errno::of_host),
            false => Ok(()),
        }
    }

    /// What the kernel was told may be undone with a session that is lost.
    fn look_at_losses(&self) {
        let losses = self.desk.losses();
        if self.losses.swap(losses, Ordering::Relaxed) != losses {
            self.distrust();
        }
    }

    /// The kernel is told to believe nothing that it was told before.
    pub fn distrust(&self) {
        self.tell(Change::Names);
        for inode in self.inodes.numbers() {
            match self.is_shared {
                true => self.tell(Change::Bytes(inode)),
                false => self.changed(inode),
            }
        }
    }

    fn ask(&self, actor: &Actor, what: Call) -> Result<Reply, Errno> {
        self.desk.call(actor, what).map_err(errno::of_call)
    }

    /// What is known of a file.
    fn record(&self, file: &FileId) -> Result<triomphe::Arc<Record>, Errno> {
        match self.ask(&Actor::ROOT, Call::GetAttr { file: file.clone() })? {
            Reply::File(record) => Ok(record),
            _ => Err(Errno::IO),
        }
    }

    /// Does something on behalf of whoever asks. `groups_matter` says that further groups of theirs would
    /// change what is done, not only whether.
    fn act(&self, caller: &Caller, act: Act, groups_matter: bool) -> Result<Reply, Errno> {
        let mut actor = Actor { uid: caller.uid, gid: caller.gid, groups: Vec::new() };
        if actor.is_root() {
            return self.ask(&actor, Call::Do(act));
        }
        if groups_matter {
            actor.groups = who::further_groups(caller);
            return self.ask(&actor, Call::Do(act));
        }
        match self.desk.call(&actor, Call::Do(act.clone())) {
            Err(Failure::Refused(Refusal::Access | Refusal::NotOwner)) => {
                actor.groups = who::further_groups(caller);
                self.ask(&actor, Call::Do(act))
            }
            result => result.map_err(errno::of_call),
        }
    }

    fn changed(&self, inode: u64) {
        self.tell(Change::Inode(inode));
    }

    fn tell_now(&self, change: Change<'_>) -> bool {
        self.on_forgotten.get().is_none_or(|tell| tell(change))
    }

    fn tell(&self, change: Change<'_>) {
        if let Some(tell) = self.on_changed.get() {
            tell(change);
        }
    }
}

/// A name, if the bytes may be one.
fn name_of(bytes: &[u8]) -> Result<Name, Errno> {
    match Name::new(bytes) {
        Some(name) => Ok(name),
        None if bytes.len() > Name::BYTES_MAX => Err(Errno::NAMETOOLONG),
        None => Err(Errno::INVAL),
    }
}

/// A panic elsewhere has been answered with EIO, and leaves nothing half done that matters here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
