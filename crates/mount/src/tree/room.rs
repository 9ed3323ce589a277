//! Room on the disk: who writes hears at once when there is none, and some is kept for what must go on.
//!
//! When a disk is full the group must still be able to note that something was removed, and what is in
//! memory must find its place. So bytes and names are refused before there is nothing left at all. What the
//! kernel writes by itself can't be refused: when room gets scarce, nothing more is opened in that way.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use client::{Call, Reply};
use directory::{Account, Actor, Quota};
use host::Content;
use lease::Name;

use crate::{
    errno,
    front::{Errno, Room},
};

use super::{
    Tree,
    body::{Body, Reservoir, look_at},
    opening::writes,
    opens::{Inner, Open},
};

/// Kept for the group, but not more than an eighth of the disk.
const RESERVE: u64 = 32 << 20;
/// After so many bytes the disk is looked at again.
const LOOK_AFTER: u64 = 8 << 20;

/// A file that grows is given so much more than it needs at the most.
const AHEAD_MAX: u64 = 64 << 20;
/// What a disk may take for a write beyond its bytes: a block at each end, and its own notes.
pub(super) const SLACK: u64 = 64 << 10;
/// The kernel writes a file by itself only if it may grow by so much, and is given up to so much: more than it can
/// write until it is looked at again.
const GROWTH_MIN: u64 = 64 << 20;
const GROWTH_MAX: u64 = 1 << 30;

/// What was last seen of the disk.
#[derive(Default)]
pub(super) struct Gauge {
    /// Bytes written since.
    spent: AtomicU64,
    /// There is so little left that each write has to look.
    is_tight: AtomicBool,
}

/// Room on the disk, beyond what is kept.
struct Left {
    bytes: u64,
    reserve: u64,
}

impl Gauge {
    pub(super) fn is_tight(&self) -> bool {
        self.is_tight.load(Ordering::Relaxed)
    }

    fn look(&self, content: &Content, reservoir: &Reservoir) -> Result<Left, Errno> {
        let space = content.space().map_err(errno::of_host)?;
        let reserve = RESERVE.min(space.total_bytes / 8);
        // What is in memory will need its place.
        let bytes = space.available_bytes.saturating_sub(reservoir.used() as u64);
        let is_tight = bytes < reserve + 2 * reservoir.size_max() as u64;
        self.spent.store(0, Ordering::Relaxed);
        self.is_tight.store(is_tight, Ordering::Relaxed);
        Ok(Left { bytes, reserve })
    }
}

impl Tree {
    /// What there is room for, for a user: no more than they may have, as far as that is known here.
    pub fn statfs(&self, uid: u32) -> Result<Room, Errno> {
        /// Small files share files of the disk: until the group has said how many there may be, a number that no
        /// program takes for "full".
        const FILES: u64 = 1 << 32;
        let reply = self.ask(&Actor::ROOT, Call::Account { uid })?;
        let (all, left) = match reply {
            Reply::Account(Some((Account { share, used, escrow }, here))) => {
                let left = |share: u64, gone: u64, here: u64| {
                    share.saturating_sub(gone).saturating_add(here).min(share)
                };
                let gone = (used.files + escrow.files, used.bytes.saturating_add(escrow.bytes));
                let files = left(share.files, gone.0, here.files);
                (share, Quota { files, bytes: left(share.bytes, gone.1, here.bytes) })
            }
            _ => (Quota { files: FILES, ..Quota::MAX }, Quota { files: FILES, ..Quota::MAX }),
        };
        let space = self.content.space().map_err(errno::of_host)?;
        let block_size = space.block_bytes.clamp(512, 1 << 20);
        let reserve = RESERVE.min(space.total_bytes / 8);
        Ok(Room {
            block_size: block_size as u32,
            blocks: space.total_bytes.min(all.bytes) / block_size,
            blocks_free: space.free_bytes.saturating_sub(reserve).min(left.bytes) / block_size,
            blocks_available: space.available_bytes.saturating_sub(reserve).min(left.bytes)
                / block_size,
            files: all.files,
            files_free: left.files,
            name_max: Name::BYTES_MAX as u32,
        })
    }

    /// Looks at the disk, and says how much fits onto it.
    pub(super) fn look_at_room(&self) {
        // If that fails, whoever writes will hear why.
        if let Ok(left) = self.gauge.look(&self.content, &self.reservoir) {
            self.desk.has_room(left.bytes.saturating_sub(left.reserve));
        }
    }

    /// Goes on only if a file may come to take so many bytes: what is written here can be told then.
    pub(super) fn cover(&self, open: &Open, inner: &mut Inner, bytes: u64) -> Result<(), Errno> {
        // Others grow too, and a little more costs nothing.
        let ahead = (bytes / 2).clamp(self.settings.small_max as u64, AHEAD_MAX);
        self.cover_with(open, inner, bytes, bytes.saturating_add(ahead))
    }

    fn cover_with(
        &self,
        open: &Open,
        inner: &mut Inner,
        least: u64,
        most: u64,
    ) -> Result<(), Errno> {
        let losses = self.desk.losses();
        if inner.covered.1 == losses && least <= inner.covered.0 {
            return Ok(());
        }
        let call = Call::Reserve { file: open.file.clone(), least, most };
        match self.ask(&Actor::ROOT, call) {
            Ok(Reply::Room(bytes)) if bytes >= least => {
                inner.covered = (bytes, losses);
                Ok(())
            }
            // What is written to a file that is no more nobody will ever be told of.
            Err(Errno::STALE) => Ok(()),
            Err(errno) => Err(errno),
            Ok(_) => Err(Errno::NOSPC),
        }
    }

    /// The same for bytes that are about to be written, up to an end.
    pub(super) fn cover_write(
        &self,
        open: &Open,
        inner: &mut Inner,
        end: u64,
        len: u64,
    ) -> Result<(), Errno> {
        let bytes = match inner.bytes.body() {
            Body::Rest => return Ok(()),
            Body::Memory(held) => end.max(held.len() as u64),
            Body::File { file, .. } => {
                let seen = look_at(file)?;
                // What has no holes does not grow where it is written anew.
                let is_solid = end <= seen.size && seen.allocated() >= seen.size;
                let growth = if is_solid { 0 } else { len.saturating_add(SLACK) };
                seen.allocated().saturating_add(growth)
            }
        };
        self.cover(open, inner, bytes)
    }

    /// Goes on only if a file that the kernel is to write by itself may grow for a while.
    pub(super) fn cover_kernel(&self, open: &Open, inner: &mut Inner) -> Result<(), Errno> {
        let least = inner.allocated()?.saturating_add(GROWTH_MIN);
        self.cover_with(open, inner, least, least.saturating_add(GROWTH_MAX))
    }

    /// Sees to it that what the kernel writes by itself is covered. It can't be stopped once its owner may have no
    /// more; but nobody is told that it is safe.
    pub(super) fn watch_growth(&self, open: &Open) {
        let mut inner = open.lock();
        if inner.registration.is_none() || !inner.handles.iter().copied().any(writes) {
            return;
        }
        if let Err(errno @ (Errno::DQUOT | Errno::NOSPC)) = self.cover_kernel(open, &mut inner) {
            let is_over = inner.allocated().is_ok_and(|bytes| bytes > inner.covered.0);
            if is_over && !std::mem::replace(&mut inner.is_over, true) {
                eprintln!(
                    "croft: inode {} has outgrown what its owner may have ({errno})",
                    open.inode
                );
            }
        }
    }

    /// Whether what was written to an open file may not be kept.
    pub fn flush(&self, inode: u64) -> Result<(), Errno> {
        let is_over = self.opens.get(inode).is_some_and(|open| open.lock().is_over);
        if is_over { Err(Errno::DQUOT) } else { Ok(()) }
    }

    /// Nobody works on a file any more: nothing is kept for it.
    pub(super) fn uncover(&self, open: &Open, inner: &mut Inner) {
        if std::mem::take(&mut inner.covered).0 > 0 {
            let call = Call::Reserve { file: open.file.clone(), least: 0, most: 0 };
            _ = self.desk.call(&Actor::ROOT, call);
        }
    }

    /// Goes on only if there is room for so many more bytes.
    pub(super) fn must_have_room(&self, bytes: u64) -> Result<(), Errno> {
        let spent = self.gauge.spent.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if spent < LOOK_AFTER && !self.gauge.is_tight() {
            return Ok(());
        }
        let left = self.gauge.look(&self.content, &self.reservoir)?;
        match left.bytes >= left.reserve.saturating_add(bytes) {
            true => Ok(()),
            false => Err(Errno::NOSPC),
        }
    }

    /// Goes on only if there is room for a new name, which takes little: what is kept for the group is
    /// enough for many, but not for any number.
    pub(super) fn must_have_room_for_name(&self) -> Result<(), Errno> {
        if !self.gauge.is_tight() {
            return Ok(());
        }
        let left = self.gauge.look(&self.content, &self.reservoir)?;
        match left.bytes >= left.reserve / 2 {
            true => Ok(()),
            false => Err(Errno::NOSPC),
        }
    }
}
