//! What a program asks of its file system, and what it is told.

use base::FileId;
use directory::{Account, Act, Actor, Entry, File, Quota, Refusal, record::Lock};
use lease::{Mode, Name};
use triomphe::Arc;

/// What a program asks for. Files are named by identifier: whoever walks a path looks up each name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// What a name in a directory stands for; who asks must be able to go through the directory.
    Lookup {
        /// The directory.
        directory: FileId,
        /// The name.
        name: Name,
    },
    /// A file's record.
    GetAttr {
        /// The file.
        file: FileId,
    },
    /// The names in a directory, in order.
    List {
        /// The directory.
        directory: FileId,
        /// Those after this one; all, if none.
        after: Option<Name>,
        /// At most so many.
        count: usize,
    },
    /// Where a symbolic link leads.
    ReadLink {
        /// The link.
        file: FileId,
    },
    /// The value of an extended attribute.
    GetXattr {
        /// The file.
        file: FileId,
        /// Which attribute.
        name: Vec<u8>,
    },
    /// The names of all extended attributes.
    ListXattr {
        /// The file.
        file: FileId,
    },
    /// Whose lock keeps this one from being had.
    TestLock {
        /// The file.
        file: FileId,
        /// Who asks, on this machine.
        owner: u64,
        /// The first byte.
        start: u64,
        /// The last byte.
        end: u64,
        /// Whether nobody else might have one.
        is_exclusive: bool,
    },
    /// Returns a file's record when the content in it is right, and goes on being right until it is said
    /// to be forgotten.
    Hold {
        /// The file.
        file: FileId,
        /// And nobody else may have it to read: the content is about to change.
        writes: bool,
    },
    /// Something changes. What the client decides (identifiers of new files, whether something is
    /// open) may be left at its default: it is filled in.
    Do(Act),
    /// A file is opened.
    Open {
        /// The file.
        file: FileId,
        /// For what, and what others may not do meanwhile.
        modes: Modes,
    },
    /// An open file is closed. Never fails, unless the handle was lost with its session.
    Close {
        /// What `Open` returned.
        handle: u64,
    },
    /// Keeps bytes for a file to grow, so that what is written to it can be told: it may come to take at least so
    /// many in all, and more if that costs nothing. None, if it will not grow any more.
    Reserve {
        /// The file.
        file: FileId,
        /// If there are not so many, it is refused.
        least: u64,
        /// But not more than this.
        most: u64,
    },
    /// How an owner of files stood when the group last said so, and what is left of what is set aside for them here.
    Account {
        /// Their number.
        uid: u32,
    },
    /// Returns when the group has applied everything that was done before, or tells that something was
    /// lost: through a handle that was lost, always; through one that was opened after a loss of which
    /// nobody had been told yet, once; without a handle once after each loss.
    Sync {
        /// An open file, as for `fsync`; none as for `syncfs`.
        handle: Option<u64>,
    },
    /// Returns when the group has applied everything that was done before and is not lost. For whoever tidies up:
    /// it takes no loss upon itself of which a program has to be told.
    Settle,
}

/// What an open file is open for, and what others may not open it for meanwhile (D25).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Modes {
    /// What for.
    pub access: Ways,
    /// What others may not do. None is a POSIX open: it denies nothing, is denied nothing and takes no
    /// part in share modes.
    pub deny: Option<Ways>,
}

/// Ways of using an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ways {
    /// Reading.
    pub read: bool,
    /// Writing.
    pub write: bool,
    /// Deleting.
    pub delete: bool,
}

impl Modes {
    /// As `open(2)` does it.
    pub fn posix(read: bool, write: bool) -> Modes {
        Modes { access: Ways { read, write, delete: false }, deny: None }
    }

    /// The booleans that stand while it is open.
    pub fn own(&self) -> impl Iterator<Item = Mode> {
        let access = [
            (self.access.read, Mode::Read),
            (self.access.write, Mode::Write),
            (self.access.delete, Mode::Delete),
        ];
        let deny = self.deny.unwrap_or_default();
        let denied = [
            (deny.read, Mode::DenyRead),
            (deny.write, Mode::DenyWrite),
            (deny.delete, Mode::DenyDelete),
        ];
        let takes_part = self.deny.is_some();
        access
            .into_iter()
            .chain(denied)
            .filter(move |(is_set, _)| takes_part && *is_set)
            .map(|(_, mode)| mode)
    }

    /// Those of anybody else that keep it from being opened.
    pub fn conflicting(&self) -> impl Iterator<Item = Mode> {
        self.own().map(|mode| match mode {
            Mode::Read => Mode::DenyRead,
            Mode::Write => Mode::DenyWrite,
            Mode::Delete => Mode::DenyDelete,
            Mode::DenyRead => Mode::Read,
            Mode::DenyWrite => Mode::Write,
            Mode::DenyDelete => Mode::Delete,
        })
    }
}

/// What a program is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is done.
    Done,
    /// What a name stands for; also of a new file. With its record, if that is at hand.
    Entry(Entry, Option<Arc<File>>),
    /// It is done, and this file, as it was before, is no more.
    Gone(Arc<File>),
    /// It is done, and this file, as it was before, has lost its last name; somebody has it open.
    Nameless(Arc<File>),
    /// It is done, and this is the record of the file now.
    Changed(Arc<File>),
    /// A file's record. Its access, times, content and links are right.
    File(Arc<File>),
    /// Names in a directory.
    Names {
        /// The names in order, and what they stand for.
        entries: Vec<(Name, Entry)>,
        /// Whether there are no more.
        is_all: bool,
    },
    /// Where a symbolic link leads, or what an attribute says.
    Bytes(Vec<u8>),
    /// The names of attributes.
    Attributes(Vec<Vec<u8>>),
    /// A lock that is in the way, if any is.
    Lock(Option<Lock>),
    /// A handle of an open file.
    Handle(u64),
    /// So many bytes a file may come to take.
    Room(u64),
    /// How an owner of files stands, if anything was set aside for them here, and what is left of that.
    Account(Option<(Account, Quota)>),
}

/// Why a call did not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// The file system says no.
    Refused(Refusal),
    /// The session was lost, and with it work that was not pushed, or the handle.
    Lost,
    /// Too many calls at once.
    Busy,
    /// Too many open files.
    TooManyOpen,
    /// Whoever called does not wait any more.
    Cancelled,
}

impl Failure {
    /// What a program is told.
    pub fn errno(self) -> &'static str {
        match self {
            Failure::Refused(refusal) => refusal.errno(),
            Failure::Lost => "EIO",
            Failure::Busy => "EAGAIN",
            Failure::TooManyOpen => "ENFILE",
            Failure::Cancelled => "EINTR",
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(refusal)
    }
}

/// A call as it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) actor: Actor,
    pub(crate) time: i64,
    pub(crate) what: Call,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_an_errno() {
        let others = [Failure::Lost, Failure::Busy, Failure::TooManyOpen, Failure::Cancelled];
        let refusals = Refusal::ALL.into_iter().map(Failure::Refused);
        assert!(others.into_iter().chain(refusals).all(|failure| failure.errno().starts_with('E')));
    }

    #[test]
    fn what_conflicts_is_symmetric_and_a_posix_open_has_nothing_to_do_with_it() {
        let all = Ways { read: true, write: true, delete: true };
        let both = Modes { access: all, deny: Some(all) };
        assert_eq!(both.own().collect::<Vec<_>>(), Mode::ALL);
        let mut conflicting: Vec<_> = both.conflicting().collect();
        conflicting.sort();
        assert_eq!(conflicting, Mode::ALL);
        assert_eq!(Modes::posix(true, true).own().count(), 0);
        let reader =
            Modes { access: Ways { read: true, ..Ways::default() }, deny: Some(Ways::default()) };
        assert_eq!(reader.conflicting().collect::<Vec<_>>(), [Mode::DenyRead]);
    }
}
