//! What programs do, and what they see: the words that the product and the reference share.

use base::FileId;
use directory::{
    operation::{Changes, Over, When},
    record::Sort,
};
use lease::Name;

/// One thing that a program does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Lookup { directory: FileId, name: Name },
    Stat { file: FileId },
    List { directory: FileId },
    ReadLink { file: FileId },
    Create { directory: FileId, name: Name, mode: u16 },
    Mkdir { directory: FileId, name: Name, mode: u16 },
    Symlink { directory: FileId, name: Name, target: Vec<u8> },
    Link { file: FileId, directory: FileId, name: Name },
    Unlink { directory: FileId, name: Name },
    Rmdir { directory: FileId, name: Name },
    Rename { from: FileId, from_name: Name, to: FileId, to_name: Name, over: Over },
    SetAttr { file: FileId, changes: Changes },
    SetXattr { file: FileId, name: Vec<u8>, value: Option<Vec<u8>>, when: When },
    GetXattr { file: FileId, name: Vec<u8> },
    Write { file: FileId, bytes: Vec<u8> },
    Open { file: FileId, writes: bool },
    Close { handle: u64 },
    Lock { file: FileId, handle: u64, owner: u64, start: u64, end: u64, hold: Option<bool> },
    Sync,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It went well.
    Seen(Seen),
    /// It was refused, with this error.
    Refused(&'static str),
    /// The system gave up: a session was lost, or there was too much to do.
    Failed,
}

/// What a program sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    File(FileId),
    Handle(u64),
    Bytes(Vec<u8>),
    Names(Vec<(Name, FileId)>),
    Stat(Stat),
}

/// What a program sees of a file. Times are not compared; nor is what directories count in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) sort: Sort,
    pub(crate) mode: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Of a file that is no directory.
    pub(crate) links: Option<u32>,
    /// Size and hash of the content, of a regular file.
    pub(crate) content: Option<(u64, Option<base::Digest>)>,
}

impl Step {
    /// The file that it is about, if it names one and not a place in a directory.
    pub(crate) fn file(&self) -> Option<&FileId> {
        match self {
            Step::Stat { file }
            | Step::ReadLink { file }
            | Step::SetAttr { file, .. }
            | Step::SetXattr { file, .. }
            | Step::GetXattr { file, .. }
            | Step::Write { file, .. }
            | Step::Open { file, .. }
            | Step::Link { file, .. } => Some(file),
            _ => None,
        }
    }

    /// The directories in which it names places.
    pub(crate) fn directories(&self) -> Vec<&FileId> {
        match self {
            Step::Lookup { directory, .. }
            | Step::List { directory }
            | Step::Create { directory, .. }
            | Step::Mkdir { directory, .. }
            | Step::Symlink { directory, .. }
            | Step::Link { directory, .. }
            | Step::Unlink { directory, .. }
            | Step::Rmdir { directory, .. } => vec![directory],
            Step::Rename { from, to, .. } => vec![from, to],
            _ => Vec::new(),
        }
    }

    /// Whether it would change something that others can see.
    pub(crate) fn is_change(&self) -> bool {
        if let Step::Rename { from, from_name, to, to_name, .. } = self {
            return (from, from_name) != (to, to_name);
        }
        !matches!(
            self,
            Step::Lookup { .. }
                | Step::Stat { .. }
                | Step::List { .. }
                | Step::ReadLink { .. }
                | Step::GetXattr { .. }
                | Step::Open { .. }
                | Step::Close { .. }
                | Step::Sync
        )
    }
}

/// The hash that stands for these bytes.
pub(crate) fn manifest(bytes: &[u8]) -> base::Digest {
    base::Digest::of(base::Domain::new("simulated content"), bytes)
}
