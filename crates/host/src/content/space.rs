//! How much room the disk beneath has.

use std::path::Path;

use crate::Failure;

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
}
