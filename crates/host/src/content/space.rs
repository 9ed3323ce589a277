//! How much room the disk beneath has.

use std::path::Path;

use crate::Failure;

/// What goes only as a whole is at most this part of a disk, so that what is dead in it is no great loss.
const PIECES: u64 = 64;
/// But not smaller than this.
const PIECE_MIN: u64 = 256 << 10;
/// There is little room with less than this, and less than this part of the disk: more than what is kept
/// for the group.
const TIGHT_BYTES: u64 = 256 << 20;
const TIGHT_PART: u64 = 4;

/// Room on the disk beneath, in bytes and in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The size of a block.
    pub block_bytes: u64,
    /// All of it.
    pub total_bytes: u64,
    /// What nobody uses.
    pub free_bytes: u64,
    /// What ordinary users may still use.
    pub available_bytes: u64,
    /// How many files there can be.
    pub files: u64,
    /// How many more.
    pub files_free: u64,
}

impl Space {
    /// Of the disk that a path is on.
    pub(crate) fn of(path: &Path) -> Result<Space, Failure> {
        let found = rustix::fs::statvfs(path)
            .map_err(|errno| Failure::of("can't look at", path)(errno.into()))?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Space {
            block_bytes: found.f_frsize,
            total_bytes: bytes(found.f_blocks),
            free_bytes: bytes(found.f_bfree),
            available_bytes: bytes(found.f_bavail),
            files: found.f_files,
            files_free: found.f_ffree,
        })
    }

    /// With so many bytes less that can be had.
    pub(crate) fn without(self, bytes: u64) -> Space {
        let less = |room: u64| room.saturating_sub(bytes);
        let (free_bytes, available_bytes) = (less(self.free_bytes), less(self.available_bytes));
        Space { free_bytes, available_bytes, ..self }
    }

    /// How large a file may get that goes only as a whole, on the disk that a path is on.
    pub(crate) fn piece_max(path: &Path, most: u64) -> u64 {
        // A disk that does not tell is taken for a large one.
        let total = Space::of(path).map_or(u64::MAX, |space| space.total_bytes);
        most.min((total / PIECES).max(PIECE_MIN))
    }

    /// Whether there is so little room that even a little is worth some work.
    pub(crate) fn is_tight(&self) -> bool {
        self.available_bytes < TIGHT_BYTES.min(self.total_bytes / TIGHT_PART)
    }
}
