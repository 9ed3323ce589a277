//! The bytes of files: reading, writing, changing size, holes, copies, and making them safe.

use std::{fs::File, os::unix::fs::FileExt, sync::Arc};

use client::Call;
use content::Need;
use directory::Actor;
use host::Io;
use rustix::fs::FallocateFlags;

use crate::{
    errno,
    front::{Allocation, Caller, Change, Errno, Manner},
};

use super::{
    Tree,
    body::{Body, SETTLES_MAX, look_at},
    home::append,
    opening::number_of,
    opens::{Hold, Inner, Open},
    room::SLACK,
};

/// The most bytes that are copied at once from file to file. Who wants more asks again.
const COPY_MAX: u64 = 64 << 20;
/// The most that is written at once; what lies between the old end and that is a hole.
const WRITE_MAX: u64 = 1 << 20;
/// And by way of our memory.
const COPY_MEMORY_MAX: u64 = 1 << 20;

impl Tree {
    /// Hands over bytes of an open file: fewer than asked for only at its end.
    pub fn read<T>(
        &self,
        inode: u64,
        offset: u64,
        size: usize,
        give: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, Errno> {
        let open = self.opens.get(inode).ok_or(Errno::BADF)?;
        self.read_open(&open, (offset, size), false, give)
    }

    /// The same for pages that the kernel keeps.
    pub fn read_pages<T>(
        &self,
        inode: u64,
        offset: u64,
        size: usize,
        give: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, Errno> {
        let open = self.opens.get(inode).ok_or(Errno::BADF)?;
        let _asking = self.asking(inode);
        open.note_pages();
        self.read_open(&open, (offset, size), true, give)
    }

    fn read_open<T>(
        &self,
        open: &Open,
        (offset, size): (u64, usize),
        has_pages: bool,
        give: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, Errno> {
        let was_at_rest = open.lock().bytes.body().is_at_rest();
        let mut inner = loop {
            if let Some(bytes) = self.read_at_home(open, offset, size)? {
                return Ok(give(&bytes));
            }
            match self.ready(open, Need::Read) {
                Err(Errno::REMOTE) => {}
                result => break result?,
            }
        };
        let file = match inner.bytes.body() {
            Body::File { file, .. } => Arc::clone(file),
            Body::Rest => return Err(Errno::IO),
            Body::Memory(held) => {
                let (part, is_whole) = part(held.bytes(), offset, size);
                let given = give(part);
                // The kernel has it now if it keeps pages, and asks again only if it needs the memory itself.
                let base = inner.bytes.base();
                let is_here = base.is_none_or(|base| !self.is_elsewhere(&open.file, base));
                let is_enough = is_whole && is_here && has_pages || !self.reservoir.may_take(0);
                if was_at_rest && is_enough {
                    inner.bytes.let_go();
                }
                return Ok(given);
            }
        };
        drop(inner);
        let given = give(&read_file(&file, offset, size)?);
        if has_pages && self.is_doubted(open.inode) {
            // They may be old already.
            self.tell(Change::Bytes(open.inode));
        }
        Ok(given)
    }

    /// Writes bytes.
    pub fn write(
        &self,
        inode: u64,
        mut offset: u64,
        mut data: &[u8],
        manner: Manner,
    ) -> Result<(), Errno> {
        // Not only what is open: pages of mapped memory may come late.
        let hold = self.hold(inode)?;
        let mut inner = loop {
            let at = (!manner.appends).then_some(offset);
            let written = self.write_at_home(&hold, at, data, &manner)?;
            (offset, data) = (offset.saturating_add(written as u64), &data[written..]);
            if data.is_empty() {
                return Ok(());
            }
            match self.ready(&hold, Need::Write) {
                Err(Errno::REMOTE) => {}
                result => break result?,
            }
        };
        if manner.appends && self.is_shared {
            // Where the end is, the kernel may not have heard.
            offset = size_of(&inner)?;
        }
        if let Some(caller) = manner.tamed_by.filter(|_| inner.has_suid) {
            self.tame(&hold, &mut inner, &caller)?;
        }
        if inner.has_capability {
            self.drop_capability(&hold, &mut inner)?;
        }
        let end = end_of(offset, data.len() as u64)?;
        self.must_have_room_until(&inner, end)?;
        if let Body::Memory(held) = inner.bytes.body() {
            let growth = (end as usize).saturating_sub(held.len());
            let fits = end <= self.settings.small_max as u64
                && inner.settles < SETTLES_MAX
                && self.reservoir.may_take(growth);
            if !fits {
                self.spill(&hold, &mut inner)?;
            }
        }
        if inner.bytes.body().is_file() {
            self.adopt(&hold, &mut inner)?;
            self.note(&hold, &mut inner)?;
        }
        self.cover_write(&hold, &mut inner, end, data.len() as u64)?;
        if let Some(held) = inner.bytes.memory_mut() {
            held.write(offset as usize, data);
            return Ok(());
        }
        match inner.bytes.body() {
            Body::File { file, .. } => {
                let file = Arc::clone(file);
                // Where others may want the content, it is not given up before this is done.
                let is_home = inner.bytes.is_home();
                let _kept = self.is_shared.then_some(inner);
                match manner.appends && is_home {
                    // The kernel may be appending too.
                    true => append(&file, data),
                    false => {
                        file.write_all_at(data, offset).map_err(|error| errno::of_file(&error))
                    }
                }
            }
            Body::Rest | Body::Memory(_) => Err(Errno::IO),
        }
    }

    /// Goes on only if there is room for a loaded file to reach so far.
    fn must_have_room_until(&self, inner: &Inner, end: u64) -> Result<(), Errno> {
        match end.saturating_sub(size_of(inner)?) {
            // What there is may be written anew.
            0 => Ok(()),
            growth => self.must_have_room(growth.min(WRITE_MAX)),
        }
    }

    /// Gives a loaded file another size and tells the directory.
    pub(super) fn set_size(&self, open: &Open, inner: &mut Inner, size: u64) -> Result<(), Errno> {
        end_of(size, 0)?;
        if let Body::Memory(held) = inner.bytes.body() {
            let growth = usize::try_from(size).unwrap_or(usize::MAX).saturating_sub(held.len());
            let is_small = size <= self.settings.small_max as u64;
            if !is_small || (growth > 0 && !self.reservoir.may_take(growth)) {
                self.spill(open, inner)?;
            }
        }
        if matches!(inner.bytes.body(), Body::Memory(held) if size > held.len() as u64) {
            self.cover(open, inner, size)?;
        }
        match inner.bytes.body() {
            Body::Memory(held) => {
                // Where the stored bytes were cut off before, old ones must not come back; and a size is told
                // only of bytes that are stored.
                let is_dirty = inner.bytes.is_dirty();
                let has_to_store = size > held.len() as u64 || is_dirty || self.is_shared;
                let is_change = size != held.len() as u64;
                // What came from another machine is not stored here.
                let base = inner.bytes.base();
                let is_fetched = base.is_some_and(|base| self.is_elsewhere(&open.file, base));
                if let Some(held) = inner.bytes.resize(is_change, is_fetched) {
                    held.resize(size as usize);
                }
                if has_to_store {
                    return self.settle(open, inner).map(drop);
                }
                // Nobody else has the tree, and nobody checks.
                self.report(open, inner, size, None)?;
                inner.bytes.note_settled(None);
                Ok(())
            }
            Body::File { file, .. } => {
                if size < look_at(file)?.size {
                    self.content.note_cut(open.inode, size).map_err(errno::of_host)?;
                }
                rustix::fs::ftruncate(&**file, size)?;
                // Also if it was of that size: `truncate` sets the time.
                inner.bytes.must_tell();
                self.settle(open, inner).map(drop)
            }
            Body::Rest => Err(Errno::IO),
        }
    }

    /// Returns when what was written is safe: here, and with the group.
    pub fn fsync(&self, inode: u64, handle: u64) -> Result<(), Errno> {
        if let Some(open) = self.opens.get(inode)
            && self.do_at_home(&open, &Io::Sync)?.is_none()
        {
            self.make_safe(&open)?;
        } else {
            self.content.sync().map_err(errno::of_host)?;
        }
        self.ask(&Actor::ROOT, Call::Sync { handle: Some(number_of(handle)) }).map(drop)
    }

    /// Makes what was written here safe, and tells the directory of it.
    pub(super) fn make_safe(&self, open: &Open) -> Result<(), Errno> {
        self.regain(open)?;
        let mut inner = open.lock();
        if inner.bytes.take_loss() {
            return Err(Errno::IO);
        }
        self.settle(open, &mut inner)?;
        let file = match inner.bytes.body() {
            Body::File { file, .. } => Some(Arc::clone(file)),
            Body::Rest | Body::Memory(_) => None,
        };
        drop(inner);
        if let Some(file) = file {
            rustix::fs::fsync(&*file)?;
        }
        self.content.sync().map_err(errno::of_host)
    }

    /// Takes room, or gives it back.
    pub fn fallocate(
        &self,
        inode: u64,
        (offset, len): (u64, u64),
        what: Allocation,
        caller: &Caller,
    ) -> Result<(), Errno> {
        let hold = self.hold(inode)?;
        let mut inner = self.ready(&hold, Need::Write).map_err(unsupported)?;
        end_of(offset, len)?;
        self.tame_for(&hold, &mut inner, caller)?;
        let file = self.spill(&hold, &mut inner)?;
        if !matches!(what, Allocation::Punch) {
            let bytes = inner.allocated()?.saturating_add(len);
            self.cover(&hold, &mut inner, bytes.saturating_add(SLACK))?;
            self.must_have_room(len)?;
        }
        let flags = match what {
            Allocation::Extend => FallocateFlags::empty(),
            Allocation::Keep => FallocateFlags::KEEP_SIZE,
            Allocation::Punch => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            Allocation::Zero => FallocateFlags::ZERO_RANGE,
            Allocation::ZeroKeep => FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE,
        };
        rustix::fs::fallocate(&*file, flags, offset, len)?;
        inner.bytes.must_tell();
        self.settle(&hold, &mut inner).map(drop)
    }

    /// Where the next bytes are, or the next hole.
    pub fn seek(&self, inode: u64, offset: u64, for_data: bool) -> Result<u64, Errno> {
        let hold = self.hold(inode)?;
        let inner = match self.ready(&hold, Need::Read) {
            Err(Errno::REMOTE) => {
                return seek_plain(self.fresh(&hold.file)?.size, offset, for_data);
            }
            result => result?,
        };
        match inner.bytes.body() {
            Body::File { file, .. } => {
                // Nobody uses the position of a backing file.
                let to = match for_data {
                    true => rustix::fs::SeekFrom::Data(offset),
                    false => rustix::fs::SeekFrom::Hole(offset),
                };
                rustix::fs::seek(&**file, to)
            }
            Body::Memory(held) => seek_plain(held.len() as u64, offset, for_data),
            Body::Rest => Err(Errno::IO),
        }
    }

    /// Copies bytes from one open file to another, or within one; how many. Maybe fewer than asked for.
    pub fn copy(
        &self,
        (from, from_offset): (u64, u64),
        (to, to_offset): (u64, u64),
        len: u64,
        caller: &Caller,
    ) -> Result<u64, Errno> {
        end_of(to_offset, len.min(COPY_MAX))?;
        // Where others may want the contents, both files would have to be kept at once.
        let source = if self.is_shared { None } else { self.source(from)? };
        let Some(source) = source else {
            return self.copy_in_memory((from, from_offset), (to, to_offset), len, caller);
        };
        let hold = self.hold(to)?;
        let mut inner = hold.lock();
        self.load(&hold, &mut inner)?;
        let end = to_offset.saturating_add(len);
        if matches!(inner.bytes.body(), Body::Memory(_)) && end <= self.settings.small_max as u64 {
            drop(inner);
            return self.copy_in_memory((from, from_offset), (to, to_offset), len, caller);
        }
        let target = self.spill(&hold, &mut inner)?;
        self.tame_for(&hold, &mut inner, caller)?;
        let most = len.min(look_at(&source)?.size).min(COPY_MAX);
        self.cover_write(&hold, &mut inner, end, most)?;
        drop(inner);
        self.must_have_room(most)?;
        let (mut from_offset, mut to_offset) = (from_offset, to_offset);
        let len = usize::try_from(len.min(COPY_MAX)).unwrap_or(usize::MAX);
        let copied = rustix::fs::copy_file_range(
            &*source,
            Some(&mut from_offset),
            &*target,
            Some(&mut to_offset),
            len,
        )?;
        Ok(copied as u64)
    }

    fn copy_in_memory(
        &self,
        (from, from_offset): (u64, u64),
        (to, to_offset): (u64, u64),
        len: u64,
        caller: &Caller,
    ) -> Result<u64, Errno> {
        let bytes =
            self.read(from, from_offset, len.min(COPY_MEMORY_MAX) as usize, <[u8]>::to_vec)?;
        if !bytes.is_empty() {
            let tamed_by = Some(*caller).filter(|caller| caller.uid != 0);
            self.write(to, to_offset, &bytes, Manner { tamed_by, appends: false })?;
        }
        Ok(bytes.len() as u64)
    }

    /// The backing file of what is copied from, if it has one.
    fn source(&self, inode: u64) -> Result<Option<Arc<File>>, Errno> {
        let hold: Hold<'_> = self.hold(inode)?;
        let mut inner = hold.lock();
        self.load(&hold, &mut inner)?;
        Ok(match inner.bytes.body() {
            Body::File { file, .. } => Some(Arc::clone(file)),
            Body::Rest | Body::Memory(_) => None,
        })
    }
}

/// How long a loaded file is.
fn size_of(inner: &Inner) -> Result<u64, Errno> {
    Ok(match inner.bytes.body() {
        Body::Rest => 0,
        Body::Memory(held) => held.len() as u64,
        Body::File { file, .. } => look_at(file)?.size,
    })
}

/// Where the next bytes are, or the end, in what has no holes.
fn seek_plain(size: u64, offset: u64, for_data: bool) -> Result<u64, Errno> {
    match offset < size {
        true => Ok(if for_data { offset } else { size }),
        false => Err(Errno::NXIO),
    }
}

/// What bytes that change on another machine can't be asked for, whoever asks does in another way.
fn unsupported(errno: Errno) -> Errno {
    if errno == Errno::REMOTE { Errno::OPNOTSUPP } else { errno }
}

/// The end of a range, if a file may be so long.
fn end_of(offset: u64, len: u64) -> Result<u64, Errno> {
    let end = offset.checked_add(len).filter(|end| i64::try_from(*end).is_ok());
    end.ok_or(Errno::FBIG)
}

/// What there is of a range, and whether that is everything.
fn part(bytes: &[u8], offset: u64, size: usize) -> (&[u8], bool) {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let end = start.saturating_add(size).min(bytes.len());
    (&bytes[start..end], start == 0 && end == bytes.len())
}

pub(super) fn read_file(file: &File, offset: u64, size: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        let at = offset.saturating_add(bytes.len() as u64);
        let spare = rustix::buffer::spare_capacity(&mut bytes);
        match rustix::io::pread(file, spare, at) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    bytes.truncate(size);
    Ok(bytes)
}
