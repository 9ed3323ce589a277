//! How much there is in the reference, and whether the system may say that there is no room for more.

use crate::{Broken, reference::Ino};

use super::{
    super::{history::Deed, step::Step},
    Witness,
};

/// What there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) files_max: u64,
    pub(crate) bytes_max: u64,
    /// Whether more than one client may have some of it set aside.
    pub(crate) is_shared: bool,
}

impl Space {
    /// More than anybody needs.
    const ENOUGH: u64 = 1 << 40;

    /// Whether it could ever be used up.
    fn is_scarce(&self) -> bool {
        self.files_max < Space::ENOUGH || self.bytes_max < Space::ENOUGH
    }
}

impl Witness {
    /// There is never more than there is room for.
    pub(super) fn check_space(&self, deed: &Deed) -> Result<(), Broken> {
        if !self.space.is_scarce() || !deed.is_changed() {
            return Ok(());
        }
        let (files, bytes) = self.used(|links| links > 0);
        match files <= self.space.files_max && bytes <= self.space.bytes_max {
            true => Ok(()),
            false => {
                let what = format!("{files} files and {bytes} bytes with {:?}", self.space);
                Err(Broken::new("quota", what))
            }
        }
    }

    /// Whether there may be no room for this. A client that is told so by the group looks no further: so
    /// it matters how much there was at any time, and not what else is wrong by now.
    pub(super) fn may_lack_space(&self, deed: &Deed) -> bool {
        let (files, bytes) = match &deed.step {
            Step::Create { .. } | Step::Mkdir { .. } => (1, 0),
            Step::Symlink { target, .. } => (1, target.len() as u64),
            Step::Write { size, .. } => (0, *size),
            _ => return false,
        };
        // Somebody else may have what is left, for a life that has not been as it seemed or was not
        // tidied up yet.
        if self.space.is_shared || self.has_ended {
            return self.space.is_scarce();
        }
        files > 0 && self.peak.0 + self.kept.0 + files > self.space.files_max
            || bytes > 0 && self.peak.1 + self.kept.1 + bytes > self.space.bytes_max
    }

    /// Files but for the root, and bytes, of inodes with such links.
    fn used(&self, counts: impl Fn(u32) -> bool) -> (u64, u64) {
        let attrs = self.files.inos().filter_map(|ino| self.files.getattr(ino).ok());
        let attrs = attrs.filter(|attr| attr.ino != Ino::ROOT && counts(attr.nlink));
        // Directories have no size.
        attrs.fold((0, 0), |(files, bytes), attr| (files + 1, bytes + attr.size))
    }

    /// Notes how much there was at the most, and what has no name any more and was open: it may be let
    /// go later than its last handle.
    pub(super) fn note_space(&mut self, deed: &Deed) {
        if self.space.is_shared || !self.space.is_scarce() || !deed.is_changed() {
            return;
        }
        let (files, bytes) = self.used(|_| true);
        self.peak = (self.peak.0.max(files), self.peak.1.max(bytes));
        if let Step::Unlink { .. } | Step::Rename { .. } = deed.step {
            let (files, bytes) = self.used(|links| links == 0);
            self.kept = (self.kept.0 + files, self.kept.1 + bytes);
        }
    }
}
