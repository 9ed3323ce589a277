//! Room on the disk that is set aside, to be given up when there is none left.
//!
//! On a full disk the group still has to note what happens, also that something was removed.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use rustix::fs::{FallocateFlags, fallocate};

use crate::{Failure, content::Space};

/// So much, but not more than this part of the disk.
const BYTES: u64 = 16 << 20;
const PART: u64 = 16;
/// It is made only where it leaves several times as much, so that it does not come and go.
const LEFT: u64 = 4;

/// A file whose only use is that it can be removed.
pub(crate) struct Ballast {
    path: PathBuf,
    is_there: bool,
}

impl Ballast {
    /// The one of a machine that lives in a directory.
    pub(crate) fn of(home: &Path) -> Ballast {
        let path = home.join("reserve");
        // One that a crash left without its room is none.
        let is_there = fs::metadata(&path).is_ok_and(|found| found.len() > 0);
        Ballast { path, is_there }
    }

    /// Gives it up if there is hardly any room on the disk: before the store is opened, which needs some.
    pub(crate) fn free_if_tight(home: &Path) -> Result<(), Failure> {
        let space = Space::of(home)?;
        if space.available_bytes < Ballast::bytes(&space) {
            Ballast::of(home).free();
        }
        Ok(())
    }

    /// How much it takes, or would.
    pub(crate) fn bytes(space: &Space) -> u64 {
        BYTES.min(space.total_bytes / PART)
    }

    /// Sets room aside, if there is enough of it. Where a disk can't, there is no ballast.
    pub(crate) fn make(&mut self, space: &Space) {
        let bytes = Ballast::bytes(space);
        if self.is_there || space.available_bytes < (1 + LEFT) * bytes {
            return;
        }
        let made = File::create(&self.path)
            .and_then(|file| Ok(fallocate(&file, FallocateFlags::empty(), 0, bytes)?));
        match made {
            Ok(()) => self.is_there = true,
            Err(_) => _ = fs::remove_file(&self.path),
        }
    }

    /// Gives the room up. Whether there was any.
    pub(crate) fn free(&mut self) -> bool {
        let was_there = std::mem::take(&mut self.is_there);
        was_there && fs::remove_file(&self.path).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::scratch::Scratch;

    fn space(total: u64, available: u64) -> Space {
        Space {
            block_bytes: 4_096,
            total_bytes: total,
            free_bytes: available,
            available_bytes: available,
            files: 1,
            files_free: 1,
        }
    }

    #[test]
    fn room_is_set_aside_once_and_given_up_once() {
        let scratch = Scratch::new("ballast");
        let path = scratch.path.join("reserve");
        let mut ballast = Ballast::of(&scratch.path);
        let small = 8 << 20;
        ballast.make(&space(small, small / 4));
        assert!(!path.exists(), "it would take too much of what is left");
        ballast.make(&space(small, small));
        assert_eq!(fs::metadata(&path).unwrap().len(), small / PART);
        assert!(Ballast::of(&scratch.path).free(), "the next life finds it");
        ballast.make(&space(small, small));
        assert!(!path.exists(), "nobody but its owner removes it");
        assert!(!ballast.free());
        ballast.make(&space(small, small));
        assert!(ballast.free() && !path.exists());
    }
}
