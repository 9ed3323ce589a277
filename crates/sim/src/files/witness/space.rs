//! How much there is in the reference, and whether the system may say that there is no room for more.

use std::collections::BTreeMap;

use directory::{Quota, operation::Changes};

use crate::{Broken, reference::Ino};

use super::{
    super::{history::Deed, step::Step},
    Witness,
};

/// What there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) files_max: u64,
    /// On all machines.
    pub(crate) bytes_max: u64,
    /// What a user may have.
    pub(crate) share: Quota,
    /// Whether more than one client may have some of it set aside.
    pub(crate) is_shared: bool,
}

/// Files and bytes of each owner; of all of them, under none.
pub(super) type Amounts = BTreeMap<Option<u32>, (u64, u64)>;

impl Space {
    /// More than anybody needs.
    const ENOUGH: u64 = 1 << 40;

    /// Whether it could ever be used up.
    fn is_scarce(&self) -> bool {
        let (files, bytes) = self.most(Some(1));
        files < Space::ENOUGH / 2 || bytes < Space::ENOUGH / 2
    }

    /// What an owner may have, or all together.
    fn most(&self, owner: Option<u32>) -> (u64, u64) {
        match owner {
            None | Some(0) => (self.files_max, self.bytes_max),
            // There is always something left for others.
            Some(_) => (
                self.share.files.min(self.files_max - self.files_max / 16),
                self.share.bytes.min(self.bytes_max - self.bytes_max / 16),
            ),
        }
    }
}

impl Witness {
    /// There is never more than there is room for, and nobody takes more than their share.
    pub(super) fn check_space(&self, deed: &Deed) -> Result<(), Broken> {
        if !self.space.is_scarce() || !deed.is_changed() {
            return Ok(());
        }
        let used = self.used(|links| links > 0);
        let payer = self.payer(deed).filter(|uid| !self.gifted.contains(uid));
        for owner in [None].into_iter().chain(payer.map(Some)) {
            let (files, bytes) = used.get(&owner).copied().unwrap_or_default();
            let (files_max, bytes_max) = self.space.most(owner);
            if files > files_max || bytes > bytes_max {
                let what =
                    format!("{files} files and {bytes} bytes of {owner:?} with {:?}", self.space);
                return Err(Broken::new("quota", what));
            }
        }
        Ok(())
    }

    /// Who owns what comes of this, if it needs room.
    fn payer(&self, deed: &Deed) -> Option<u32> {
        match &deed.step {
            Step::Create { .. } | Step::Mkdir { .. } | Step::Symlink { .. } => Some(deed.actor.uid),
            Step::Write { file, .. } => Some(self.files.getattr(self.known(file)).ok()?.uid),
            _ => None,
        }
    }

    /// Whether there may be no room for this. A client that is told so by the group looks no further: so
    /// it matters how much there was at any time, and not what else is wrong by now.
    pub(super) fn may_lack_space(&self, deed: &Deed) -> bool {
        self.may_lack(deed, None)
    }

    /// The same of what its owner may have.
    pub(super) fn may_lack_share(&self, deed: &Deed) -> bool {
        let owner = self.payer(deed);
        owner.is_some_and(|uid| uid != 0) && self.may_lack(deed, owner)
    }

    fn may_lack(&self, deed: &Deed, owner: Option<u32>) -> bool {
        let (files, bytes) = match &deed.step {
            Step::Create { .. } | Step::Mkdir { .. } | Step::Symlink { .. } => (1, 0),
            Step::Write { bytes, .. } => (0, bytes.len() as u64),
            _ => return false,
        };
        // Somebody else may have what is left, for a life that has not been as it seemed or was not
        // tidied up yet.
        if self.space.is_shared || self.has_ended {
            return self.space.is_scarce();
        }
        let of = |amounts: &Amounts| amounts.get(&owner).copied().unwrap_or_default();
        let (peak, kept, most) = (of(&self.peak), of(&self.kept), self.space.most(owner));
        files > 0 && peak.0 + kept.0 + files > most.0
            || bytes > 0 && peak.1 + kept.1 + bytes > most.1
    }

    /// Files but for the root, and bytes that are not holes, of inodes with such links.
    fn used(&self, counts: impl Fn(u32) -> bool) -> Amounts {
        let attrs = self.files.inos().filter_map(|ino| self.files.getattr(ino).ok());
        let mut used = Amounts::new();
        for attr in attrs.filter(|attr| attr.ino != Ino::ROOT && counts(attr.nlink)) {
            let bytes = self.written(attr.ino).len() as u64;
            for owner in [None, Some(attr.uid)] {
                let (all_files, all_bytes) = used.entry(owner).or_default();
                (*all_files, *all_bytes) = (*all_files + 1, *all_bytes + bytes);
            }
        }
        used
    }

    /// Notes how much there was at the most, and what has no name any more and was open: it may be let
    /// go later than its last handle.
    pub(super) fn note_space(&mut self, deed: &Deed) {
        if let Step::SetAttr { changes: Changes { uid: Some(uid), .. }, .. } = &deed.step {
            self.gifted.insert(*uid);
        }
        if self.space.is_shared || !self.space.is_scarce() || !deed.is_changed() {
            return;
        }
        for (owner, (files, bytes)) in self.used(|_| true) {
            let peak = self.peak.entry(owner).or_default();
            *peak = (peak.0.max(files), peak.1.max(bytes));
        }
        if let Step::Unlink { .. } | Step::Rename { .. } = deed.step {
            for (owner, (files, bytes)) in self.used(|links| links == 0) {
                let kept = self.kept.entry(owner).or_default();
                *kept = (kept.0 + files, kept.1 + bytes);
            }
        }
    }
}
