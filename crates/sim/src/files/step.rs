//! What programs do, and what they see: the words that the product and the reference share.

use base::FileId;
use client::Modes;
use directory::{
    operation::{Changes, Over, When},
    record::Sort,
};
use lease::{Client, Name};

/// One thing that a program does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Lookup {
        directory: FileId,
        name: Name,
    },
    Stat {
        file: FileId,
    },
    List {
        directory: FileId,
        after: Option<Name>,
        count: usize,
    },
    ReadLink {
        file: FileId,
    },
    Create {
        directory: FileId,
        name: Name,
        mode: u16,
    },
    Mkdir {
        directory: FileId,
        name: Name,
        mode: u16,
    },
    Symlink {
        directory: FileId,
        name: Name,
        target: Vec<u8>,
    },
    Link {
        file: FileId,
        directory: FileId,
        name: Name,
    },
    Unlink {
        directory: FileId,
        name: Name,
    },
    Rmdir {
        directory: FileId,
        name: Name,
    },
    Rename {
        from: FileId,
        from_name: Name,
        to: FileId,
        to_name: Name,
        over: Over,
    },
    SetAttr {
        file: FileId,
        changes: Changes,
    },
    SetXattr {
        file: FileId,
        name: Vec<u8>,
        value: Option<Vec<u8>>,
        when: When,
    },
    GetXattr {
        file: FileId,
        name: Vec<u8>,
    },
    ListXattr {
        file: FileId,
    },
    /// All of the content is new: these bytes, and zeros up to this size.
    Write {
        file: FileId,
        bytes: Vec<u8>,
        size: u64,
    },
    Open {
        file: FileId,
        modes: Modes,
    },
    Close {
        handle: u64,
    },
    Lock {
        file: FileId,
        handle: u64,
        owner: u64,
        start: u64,
        end: u64,
        hold: Option<bool>,
    },
    TestLock {
        file: FileId,
        handle: u64,
        owner: u64,
        start: u64,
        end: u64,
        is_exclusive: bool,
    },
    Sync,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It went well.
    Seen(Seen),
    /// It was refused, with this error.
    Refused(&'static str),
    /// A session was lost, and this with it.
    Lost,
    /// There was too much to do, or to hold open.
    Busy,
    /// Nobody waited for it any more, and nothing was done.
    Cancelled,
}

/// What a program sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    File(FileId),
    Handle(u64),
    Bytes(Vec<u8>),
    /// Names in a directory, and whether there are no more.
    Names(Vec<(Name, FileId)>, bool),
    Attributes(Vec<Vec<u8>>),
    /// A lock that is in the way, if one is.
    Lock(Option<Held>),
    Stat(Stat),
}

/// A lock that somebody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) client: Client,
    pub(crate) owner: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) is_exclusive: bool,
}

/// What a program sees of a file. What directories count in their links and times is not compared.
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
    /// When it was last read and modified, of a regular file. When anything of it last changed is a
    /// consequence, which others may see late.
    pub(crate) times: Option<(i64, i64)>,
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
            | Step::ListXattr { file }
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
            | Step::List { directory, .. }
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

    /// The handle that it goes through.
    pub(crate) fn handle(&self) -> Option<u64> {
        match self {
            Step::Close { handle } | Step::Lock { handle, .. } | Step::TestLock { handle, .. } => {
                Some(*handle)
            }
            _ => None,
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
                | Step::ListXattr { .. }
                | Step::TestLock { .. }
                | Step::Open { .. }
                | Step::Close { .. }
                | Step::Sync
        )
    }
}

/// The hash that stands for these bytes and zeros up to this size; none for a file without content.
pub(crate) fn digest(bytes: &[u8], size: u64) -> Option<base::Digest> {
    (size > 0).then(|| base::Digest::of(base::Domain::new("simulated content"), bytes))
}
