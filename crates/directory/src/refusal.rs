//! The ways in which an operation is refused, and what a program is told.

use borsh::{BorshDeserialize, BorshSerialize};

/// Why not. A value in a reply: it is replicated and replayed like any other.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Refusal {
    /// There is no such name.
    NotFound,
    /// The name is taken.
    NameTaken,
    /// It is not a directory.
    NotDirectory,
    /// It is a directory.
    IsDirectory,
    /// It is a symbolic link.
    IsSymlink,
    /// Files of this sort have no such thing.
    Unsupported,
    /// The directory is not empty.
    NotEmpty,
    /// The mode bits say no.
    Access,
    /// Only the owner, or only the superuser, may do this.
    NotOwner,
    /// It makes no sense: a directory below itself, a size that can't be.
    Senseless,
    /// The identifier of the new file would be too long: the tree is too deep.
    TooDeep,
    /// The file has as many names as it can have.
    TooManyLinks,
    /// No space is left for files or for bytes.
    NoSpace,
    /// Their owner has as many files or bytes as they may have.
    OverShare,
    /// A file can't be so long.
    TooLong,
    /// There is no such attribute.
    NoAttribute,
    /// The attribute, or all of them together, would be too large.
    AttributeTooLarge,
    /// Somebody else has locked it.
    Locked,
    /// The file has as many locks as it can have.
    TooManyLocks,
    /// Somebody else has it open in a way that excludes this.
    Sharing,
    /// The file is no more.
    Gone,
    /// The client was not promised what it would have had to know (D35). No honest client does this.
    Unknown,
    /// The identifier or the serial number of the new file was never the client's to give.
    NotYours,
    /// The machine may not act for this user, or not in this group. An honest one is told so by its group only if
    /// it has not heard yet that somebody was removed.
    NotYourUser,
    /// More of something than a message may carry.
    TooMuch,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Refusal; 25] = [
        Refusal::NotFound,
        Refusal::NameTaken,
        Refusal::NotDirectory,
        Refusal::IsDirectory,
        Refusal::IsSymlink,
        Refusal::Unsupported,
        Refusal::NotEmpty,
        Refusal::Access,
        Refusal::NotOwner,
        Refusal::Senseless,
        Refusal::TooDeep,
        Refusal::TooManyLinks,
        Refusal::NoSpace,
        Refusal::OverShare,
        Refusal::TooLong,
        Refusal::NoAttribute,
        Refusal::AttributeTooLarge,
        Refusal::Locked,
        Refusal::TooManyLocks,
        Refusal::Sharing,
        Refusal::Gone,
        Refusal::Unknown,
        Refusal::NotYours,
        Refusal::NotYourUser,
        Refusal::TooMuch,
    ];

    /// What a program is told.
    pub fn errno(self) -> &'static str {
        match self {
            Refusal::NotFound => "ENOENT",
            Refusal::NameTaken => "EEXIST",
            Refusal::NotDirectory => "ENOTDIR",
            Refusal::IsDirectory => "EISDIR",
            Refusal::IsSymlink => "ELOOP",
            Refusal::Unsupported => "EOPNOTSUPP",
            Refusal::NotEmpty => "ENOTEMPTY",
            Refusal::Access => "EACCES",
            Refusal::NotOwner | Refusal::NotYourUser => "EPERM",
            Refusal::Senseless => "EINVAL",
            Refusal::TooDeep => "ENAMETOOLONG",
            Refusal::TooManyLinks => "EMLINK",
            Refusal::NoSpace => "ENOSPC",
            Refusal::OverShare => "EDQUOT",
            Refusal::TooLong => "EFBIG",
            Refusal::NoAttribute => "ENODATA",
            Refusal::AttributeTooLarge => "E2BIG",
            Refusal::Locked => "EAGAIN",
            Refusal::TooManyLocks => "ENOLCK",
            Refusal::Sharing => "EBUSY",
            Refusal::Gone => "ESTALE",
            Refusal::Unknown | Refusal::NotYours | Refusal::TooMuch => "EIO",
        }
    }

    /// Whether only a client that lies, or that we have built wrong, is told this.
    pub fn is_evidence(self) -> bool {
        matches!(self, Refusal::Unknown | Refusal::NotYours | Refusal::TooMuch)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_refusal_has_one_errno_and_is_listed_once() {
        let all: BTreeSet<Refusal> = Refusal::ALL.into_iter().collect();
        assert_eq!(all.len(), Refusal::ALL.len());
        for (index, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal as usize, index);
            assert!(refusal.errno().starts_with('E'));
            assert_eq!(refusal.is_evidence(), refusal.errno() == "EIO");
        }
    }
}
