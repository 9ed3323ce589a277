//! Where the bytes of an open file are, and how they get from one place to another.
//!
//! The directory is told of a new size only after the bytes are where they belong, and everything that
//! makes the old size or time visible (`stat`, a new name, new attributes) tells it first. So nobody sees
//! a time that changes again by itself.

use std::{
    fs::File,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use base::Digest;
use client::{Call, Failure};
use content::{Seen, Settle};
use directory::{Act, Actor, Refusal, Sort, operation::Changes, record::Content};
use host::Neighbours;

use crate::{
    errno,
    front::{Caller, Change, Errno},
};

use super::{
    Tree,
    data::read_file,
    opens::{Inner, Open},
    who,
};

/// Running as the owner, or as the group.
pub(super) const SUID: u16 = 0o6000;
/// Whoever settles more often than this while a file is open gets a backing file: storing everything anew
/// each time costs more.
pub(super) const SETTLES_MAX: u32 = 4;

/// Where the bytes of a file are.
pub(super) type Body = content::Body<Held, Arc<File>>;

/// A backing file as it is now.
pub(super) fn look_at(file: &File) -> Result<Seen, Errno> {
    let stat = rustix::fs::fstat(file)?;
    Ok(Seen {
        size: u64::try_from(stat.st_size).unwrap_or(0),
        blocks: u64::try_from(stat.st_blocks).unwrap_or(0),
        modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
    })
}

/// How much may be in memory, of all files together.
pub(super) struct Reservoir {
    used: AtomicUsize,
    size_max: usize,
}

impl Reservoir {
    pub(super) fn new(size_max: usize) -> Reservoir {
        Reservoir { used: AtomicUsize::new(0), size_max }
    }

    pub(super) fn may_take(&self, bytes: usize) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        used.saturating_add(bytes) <= self.size_max
    }

    pub(super) fn size_max(&self) -> usize {
        self.size_max
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Bytes in memory, counted as long as they are there.
pub(super) struct Held {
    bytes: Vec<u8>,
    counted: usize,
    reservoir: Arc<Reservoir>,
}

impl Held {
    pub(super) fn new(bytes: Vec<u8>, reservoir: &Arc<Reservoir>) -> Held {
        let mut held = Held { bytes, counted: 0, reservoir: Arc::clone(reservoir) };
        held.count();
        held
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Zeros come after the old end.
    pub(super) fn resize(&mut self, size: usize) {
        self.bytes.resize(size, 0);
        if size < self.bytes.capacity() / 4 {
            self.bytes.shrink_to(size);
        }
        self.count();
    }

    pub(super) fn write(&mut self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        if end > self.bytes.len() {
            self.bytes.resize(offset.max(self.bytes.len()).min(end), 0);
            let inside = self.bytes.len() - offset;
            self.bytes[offset..].copy_from_slice(&data[..inside]);
            self.bytes.extend_from_slice(&data[inside..]);
            self.count();
        } else {
            self.bytes[offset..end].copy_from_slice(data);
        }
    }

    fn count(&mut self) {
        let (before, now) = (self.counted, self.bytes.capacity());
        self.counted = now;
        if now >= before {
            self.reservoir.used.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.reservoir.used.fetch_sub(before - now, Ordering::Relaxed);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.reservoir.used.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

impl Inner {
    /// How many bytes it takes where it is.
    pub(super) fn allocated(&self) -> Result<u64, Errno> {
        match self.bytes.body() {
            Body::Rest => Ok(0),
            Body::Memory(held) => Ok(held.len() as u64),
            Body::File { file, .. } => look_at(file).map(|seen| seen.allocated()),
        }
    }

    /// What others check the bytes at hand by, if they are few and so many.
    pub(super) fn digest_of(&self, size: u64) -> Result<Option<Digest>, Errno> {
        let (digest, found) = match self.bytes.body() {
            Body::Rest => return Ok(None),
            Body::Memory(held) => (Some(Neighbours::digest(held.bytes())), held.len() as u64),
            Body::File { file, .. } => {
                let mut found = look_at(file)?.size;
                (digest_of_few(file, &mut found)?, found)
            }
        };
        Ok(digest.filter(|_| found == size))
    }

    /// Makes sure that what is in the backing file survives.
    pub(super) fn sync_file(&self) -> Result<(), Errno> {
        match self.bytes.body() {
            Body::File { file, .. } => rustix::fs::fsync(file),
            Body::Rest | Body::Memory(_) => Ok(()),
        }
    }
}

impl Tree {
    /// Finds the bytes of a file that were at rest. What the directory says of its size is right: bytes
    /// beyond were cut off, and missing ones are zeros.
    pub(super) fn load(&self, open: &Open, inner: &mut Inner) -> Result<(), Errno> {
        if !inner.bytes.body().is_at_rest() {
            return Ok(());
        }
        let record = self.record(&open.file)?;
        inner.has_suid = record.access.mode & SUID != 0;
        self.load_bytes(open, inner, record.content.size)
    }

    /// Finds the bytes of a file that were at rest, and are here, if they are so many.
    pub(super) fn load_bytes(
        &self,
        open: &Open,
        inner: &mut Inner,
        size: u64,
    ) -> Result<(), Errno> {
        if self.is_shared && size == 0 {
            // Whatever is here is from before somebody else has emptied it.
            self.spare_outlived(open.inode)?;
            inner.bytes.load(Body::Memory(Held::new(Vec::new(), &self.reservoir)));
            return Ok(());
        }
        let body = match self.content.backing(open.inode).map_err(errno::of_host)? {
            Some(file) => Tree::file_body(file, size)?,
            None => {
                let bytes = self.packed(open.inode, size)?;
                if size <= self.settings.small_max as u64 {
                    Body::Memory(Held::new(bytes, &self.reservoir))
                } else {
                    let file = self.make_backing(open.inode, &bytes)?;
                    rustix::fs::ftruncate(&file, size)?;
                    Tree::file_body(file, size)?
                }
            }
        };
        inner.bytes.load(body);
        Ok(())
    }

    /// A backing file of which the directory says that it has this size.
    pub(super) fn file_body(file: File, size: u64) -> Result<Body, Errno> {
        let seen = Some(look_at(&file)?).filter(|seen| seen.size == size);
        Ok(Body::File { file: Arc::new(file), seen })
    }

    /// What is stored of a file without a backing file, as long as it should be, up to what is small.
    pub(super) fn packed(&self, inode: u64, size: u64) -> Result<Vec<u8>, Errno> {
        if size == 0 {
            return Ok(Vec::new());
        }
        let Some(mut bytes) = self.content.get(inode).map_err(errno::of_host)? else {
            eprintln!("croft: the {size} bytes of inode {inode} are missing");
            return Err(Errno::IO);
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        bytes.truncate(size);
        if size <= self.settings.small_max {
            bytes.resize(size, 0);
        }
        Ok(bytes)
    }

    pub(super) fn make_backing(&self, inode: u64, bytes: &[u8]) -> Result<File, Errno> {
        let file = self.content.make_backing(inode, bytes).map_err(errno::of_host)?;
        self.inodes.store(inode);
        Ok(file)
    }

    /// Gives a file a backing file, whatever it had.
    pub(super) fn spill(&self, open: &Open, inner: &mut Inner) -> Result<Arc<File>, Errno> {
        self.load(open, inner)?;
        self.adopt(open, inner)?;
        self.note(open, inner)?;
        if let Body::Memory(held) = inner.bytes.body() {
            let file = self.make_backing(open.inode, held.bytes())?;
            let now = look_at(&file)?;
            inner.bytes.spill(Arc::new(file), now);
        }
        match inner.bytes.body() {
            Body::File { file, .. } => Ok(Arc::clone(file)),
            Body::Rest | Body::Memory(_) => Err(Errno::IO),
        }
    }

    /// Notes on the disk that a backing file is about to be written: its size may be news to the directory
    /// after a crash.
    pub(super) fn note(&self, open: &Open, inner: &mut Inner) -> Result<(), Errno> {
        if !inner.is_noted {
            self.content.note_writing(open.inode).map_err(errno::of_host)?;
            inner.is_noted = true;
        }
        Ok(())
    }

    /// Stores what is only in memory and tells the directory what it does not know; whether there was
    /// anything to tell.
    pub(super) fn settle(&self, open: &Open, inner: &mut Inner) -> Result<bool, Errno> {
        let (said, seen) = (self.said(&open.file), inner.seen()?);
        let mut settle = inner.bytes.settle(&said, seen);
        if let Settle::Follow(now, losses) = &settle {
            self.follow_at_home(open, inner, now, *losses)?;
            settle = inner.bytes.settle_now(&said, seen);
        }
        match settle {
            Settle::Nothing | Settle::Follow(..) => Ok(false),
            // `Tree::regain` finds out.
            Settle::Regain => Err(Errno::AGAIN),
            Settle::Memory { stores, tells } => {
                let Body::Memory(held) = inner.bytes.body() else { return Ok(false) };
                let size = held.len() as u64;
                let digest = self.is_shared.then(|| Neighbours::digest(held.bytes()));
                // The bytes of what has no name are of no use after a crash.
                if stores && !self.is_unlinked(open) {
                    if size > 0 || !self.inodes.is_bare(open.inode) {
                        self.content.put(open.inode, held.bytes()).map_err(errno::of_host)?;
                        self.inodes.store(open.inode);
                    }
                    inner.bytes.note_stored();
                    inner.settles += 1;
                }
                if tells {
                    self.report(open, inner, size, digest)?;
                    inner.bytes.note_settled(None);
                }
                Ok(tells)
            }
            Settle::File { is_checked } => {
                let (Body::File { file, .. }, Some(mut now)) = (inner.bytes.body(), seen) else {
                    return Ok(false);
                };
                let file = Arc::clone(file);
                if !self.is_unlinked(open) {
                    self.content.settle(open.inode);
                }
                let digest = match is_checked {
                    // What is told is what was hashed. If it has changed since, it is told once more.
                    true => digest_of_few(&file, &mut now.size)?,
                    false => None,
                };
                self.report(open, inner, now.size, digest)?;
                inner.bytes.note_settled(Some(now));
                self.note_seen(open.inode, now);
                Ok(true)
            }
        }
    }

    /// Tells the directory that the bytes have changed.
    pub(super) fn report(
        &self,
        open: &Open,
        inner: &mut Inner,
        size: u64,
        digest: Option<Digest>,
    ) -> Result<(), Errno> {
        let (uid, gid) = inner.writer;
        let actor = Actor { uid, gid, groups: Vec::new() };
        let (home, version) = match self.is_shared {
            true => (Some(self.desk.me()), self.desk.version()),
            false => (None, 0),
        };
        let is_live = inner.bytes.tells_live();
        let allocated = inner.allocated()?;
        let content = Content { size, allocated, home, version, digest, is_live };
        let call = Call::Do(Act::SetContent { file: open.file.clone(), content: content.clone() });
        #[cfg(test)]
        if self.unreportable.load(Ordering::Relaxed) == open.inode {
            return Err(Errno::AGAIN);
        }
        let losses = self.desk.losses();
        match self.desk.call(&actor, call.clone()) {
            Ok(_) => {
                self.note_told(open, inner, content, losses);
                if inner.has_suid && uid != 0 {
                    inner.has_suid = false;
                    self.tell_now(Change::Inode(open.inode));
                }
                Ok(())
            }
            // Whoever has opened a file may write it, whatever its mode has become and in whatever further
            // group they are: the kernel has looked.
            Err(Failure::Refused(Refusal::Access | Refusal::NotOwner)) => {
                self.ask(&Actor::ROOT, call)?;
                self.note_told(open, inner, content, losses);
                self.tame(open, inner, &Caller { uid, gid, pid: 0 })
            }
            Err(Failure::Refused(Refusal::Gone)) => Ok(()),
            Err(failure) => Err(errno::of_call(failure)),
        }
    }

    /// The directory was told of this content when so many sessions were lost.
    fn note_told(&self, open: &Open, inner: &mut Inner, content: Content, losses: u64) {
        self.told.fetch_add(1, Ordering::Release);
        if content.allocated < std::mem::replace(&mut inner.told_bytes, content.allocated) {
            // What it gave back is not kept for it.
            inner.covered = (0, 0);
        }
        inner.is_over = false;
        inner.bytes.note_told(content, losses, &self.said(&open.file));
    }

    /// The same for whoever changes bytes in another way than by writing.
    pub(super) fn tame_for(
        &self,
        open: &Open,
        inner: &mut Inner,
        caller: &Caller,
    ) -> Result<(), Errno> {
        if caller.uid == 0 { Ok(()) } else { self.tame(open, inner, caller) }
    }

    /// Takes away what a write by anybody but the superuser takes away: running as the owner or the group.
    pub(super) fn tame(
        &self,
        open: &Open,
        inner: &mut Inner,
        caller: &Caller,
    ) -> Result<(), Errno> {
        let record = self.record(&open.file)?;
        inner.has_suid = false;
        if record.sort != Sort::Regular || record.access.mode & SUID == 0 {
            return Ok(());
        }
        let gid = record.access.gid;
        let is_in_group = || caller.gid == gid || who::further_groups(caller).contains(&gid);
        let Some(mode) = tamed(record.access.mode, is_in_group) else { return Ok(()) };
        let changes = Changes { mode: Some(mode), ..Changes::default() };
        let act = Act::SetAttr { file: open.file.clone(), changes };
        match self.desk.call(&Actor::ROOT, Call::Do(act)) {
            // Where the superuser is not acted for, it goes when the directory hears of the bytes.
            Err(Failure::Refused(Refusal::NotYourUser)) => {}
            done => _ = done.map_err(errno::of_call)?,
        }
        // The kernel believes that the mode is as before, and would say so to whoever asks next.
        self.tell_now(Change::Inode(open.inode));
        Ok(())
    }
}

/// What others check the bytes of a file by, and how many those are, if the directory has to hear that of so many.
pub(super) fn digest_of_few(file: &File, size: &mut u64) -> Result<Option<Digest>, Errno> {
    if *size > Content::SMALL_MAX {
        return Ok(None);
    }
    let bytes = read_file(file, 0, Content::SMALL_MAX as usize)?;
    *size = bytes.len() as u64;
    Ok(Some(Neighbours::digest(&bytes)))
}

/// The mode without what runs as somebody else, if that makes a difference. Running as the group may stay for its own
/// members where nobody of it may run the file: then it means something else.
fn tamed(mode: u16, is_in_group: impl FnOnce() -> bool) -> Option<u16> {
    const GROUP_RUNS: u16 = 0o010;
    const SGID: u16 = 0o2000;
    let keeps_group = mode & SGID != 0 && mode & GROUP_RUNS == 0 && is_in_group();
    let gone = if keeps_group { SUID & !SGID } else { SUID };
    Some(mode & !gone).filter(|tamed| *tamed != mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(bytes: &[u8]) -> (Held, Arc<Reservoir>) {
        let reservoir = Arc::new(Reservoir::new(1_000));
        (Held::new(bytes.to_vec(), &reservoir), reservoir)
    }

    #[test]
    fn a_write_beyond_the_end_leaves_zeros_between() {
        let (mut held, _) = held(b"ab");
        held.write(4, b"cd");
        assert_eq!(held.bytes(), b"ab\0\0cd");
        held.write(1, b"xyz");
        assert_eq!(held.bytes(), b"axyzcd");
        held.write(5, b"12");
        assert_eq!(held.bytes(), b"axyzc12");
        held.write(7, b"!");
        assert_eq!(held.bytes(), b"axyzc12!");
    }

    #[test]
    fn what_is_in_memory_is_counted_until_it_goes() {
        let (mut held, reservoir) = held(b"");
        assert!(reservoir.may_take(1_000));
        held.write(0, &[7; 600]);
        assert!(reservoir.used() >= 600 && !reservoir.may_take(401));
        held.resize(0);
        assert!(reservoir.may_take(1_000));
        held.write(0, &[7; 600]);
        drop(held);
        assert_eq!(reservoir.used(), 0);
    }

    #[test]
    fn taming_leaves_the_groups_bit_only_to_its_members_where_nobody_of_it_runs_the_file() {
        let modes = [0o6755, 0o6744, 0o2644, 0o4644, 0o755];
        let members = modes.map(|mode| tamed(mode, || true));
        assert_eq!(members, [Some(0o755), Some(0o2744), None, Some(0o644), None]);
        let others = modes.map(|mode| tamed(mode, || false));
        assert_eq!(others, [Some(0o755), Some(0o744), Some(0o644), Some(0o644), None]);
    }
}
