//! Room on the disk: who writes hears at once when there is none, and some is kept for what must go on.
//!
//! When a disk is full the group must still be able to note that something was removed, and what is in
//! memory must find its place. So bytes and names are refused before there is nothing left at all. What the
//! kernel writes by itself can't be refused: when room gets scarce, nothing more is opened in that way.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use host::Content;
use lease::Name;

use crate::{
    errno,
    front::{Errno, Room},
};

use super::{Tree, body::Reservoir};

/// Kept for the group, but not more than an eighth of the disk.
const RESERVE: u64 = 32 << 20;
/// After so many bytes the disk is looked at again.
const LOOK_AFTER: u64 = 8 << 20;

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
    /// What there is room for.
    pub fn statfs(&self) -> Result<Room, Errno> {
        /// Small files share files of the disk, and nobody counts them yet: a number that no program takes
        /// for "full".
        const FILES: u64 = 1 << 32;
        let space = self.content.space().map_err(errno::of_host)?;
        let block_size = space.block_bytes.clamp(512, 1 << 20);
        let reserve = RESERVE.min(space.total_bytes / 8);
        Ok(Room {
            block_size: block_size as u32,
            blocks: space.total_bytes / block_size,
            blocks_free: space.free_bytes.saturating_sub(reserve) / block_size,
            blocks_available: space.available_bytes.saturating_sub(reserve) / block_size,
            files: FILES,
            name_max: Name::BYTES_MAX as u32,
        })
    }

    /// Looks at the disk.
    pub(super) fn look_at_room(&self) {
        // If that fails, whoever writes will hear why.
        let _ = self.gauge.look(&self.content, &self.reservoir);
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
