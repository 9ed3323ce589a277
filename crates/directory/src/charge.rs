//! What a change of records costs, and whom: a client and its group reckon it alike.
//!
//! A file and the bytes that it takes are charged to its owner, as on a local file system. Whoever changes
//! something pays from what was set aside for that owner, and is given back what comes of bytes that it has itself;
//! what comes of another machine's bytes is free for all.

use lease::Client;

use crate::record::File;

/// So many files and so many bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, borsh::BorshSerialize, borsh::BorshDeserialize,
)]
pub struct Quota {
    /// Files, and directories and whatever else has an inode number.
    pub files: u64,
    /// Bytes on disks.
    pub bytes: u64,
}

impl Quota {
    /// As much of everything as there can be.
    pub const MAX: Quota = Quota { files: u64::MAX, bytes: u64::MAX };

    /// The smaller of each.
    pub fn min(self, other: Quota) -> Quota {
        Quota { files: self.files.min(other.files), bytes: self.bytes.min(other.bytes) }
    }

    pub(crate) fn add(&mut self, other: Quota) {
        self.files = self.files.saturating_add(other.files);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    pub(crate) fn less(self, other: Quota) -> Quota {
        Quota {
            files: self.files.saturating_sub(other.files),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// What a file costs: whom, how many bytes, and where these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) uid: u32,
    pub(crate) bytes: u64,
    pub(crate) home: Option<Client>,
}

impl Cost {
    /// Of a file, if it costs anything: the root is nobody's doing.
    pub(crate) fn of(file: &File) -> Option<Cost> {
        (file.serial != crate::directory::ROOT_SERIAL).then_some(Cost {
            uid: file.access.uid,
            bytes: file.content.allocated,
            home: file.content.home,
        })
    }
}

/// What an operation takes for each owner from what its client has, or gives back to it if negative.
///
/// An operation changes the files of two owners at the most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charges(Vec<(u32, i64, i64)>);

impl Charges {
    /// Adds what it costs that a client replaces a record by another. That a file gets another owner costs nobody
    /// anything: only the superuser may do that, and may exceed what others may have, as on a local file system.
    pub fn note(&mut self, me: Client, before: Option<&File>, after: Option<&File>) {
        let (before, after) = (before.and_then(Cost::of), after.and_then(Cost::of));
        let has_moved = before.zip(after).is_some_and(|(before, after)| before.uid != after.uid);
        if before == after || has_moved {
            return;
        }
        if let Some(Cost { uid, bytes, home }) = before {
            let bytes = if home == Some(me) { bytes } else { 0 };
            self.add(uid, -1, -i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        if let Some(Cost { uid, bytes, .. }) = after {
            self.add(uid, 1, i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    fn add(&mut self, uid: u32, files: i64, bytes: i64) {
        if !self.0.iter().any(|(known, ..)| *known == uid) {
            self.0.push((uid, 0, 0));
        }
        for (known, all_files, all_bytes) in &mut self.0 {
            if *known == uid {
                *all_files = all_files.saturating_add(files);
                *all_bytes = all_bytes.saturating_add(bytes);
            }
        }
    }

    /// Adds others.
    pub fn join(&mut self, others: &Charges) {
        others.iter().for_each(|(uid, files, bytes)| self.add(uid, files, bytes));
    }

    /// For each owner, files and bytes.
    pub fn iter(&self) -> impl Iterator<Item = (u32, i64, i64)> {
        self.0.iter().copied().filter(|(_, files, bytes)| (*files, *bytes) != (0, 0))
    }

    /// For one owner.
    pub fn of(&self, uid: u32) -> (i64, i64) {
        let mut all = self.iter();
        all.find(|(of, ..)| *of == uid).map_or((0, 0), |(_, files, bytes)| (files, bytes))
    }

    /// Whether anything is given back.
    pub fn gives(&self) -> bool {
        self.iter().any(|(_, files, bytes)| files < 0 || bytes < 0)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
