//! What is known of a file, and how it is filed.
//!
//! A directory's own record, the names in it and, since a new file's identifier is its directory's and
//! one integer more (D11), the records of what was created in it lie side by side in key order.

use base::{Digest, FileId};
use borsh::{BorshDeserialize, BorshSerialize, io};
use lease::{Client, Field, Name, Scope};
use triomphe::Arc;

/// Where a record lies: a file's own without a name, an entry of a directory with one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Key {
    /// The file, or the directory.
    pub file: FileId,
    /// The name in the directory.
    pub name: Option<Name>,
}

impl Key {
    /// The key of a file's own record.
    pub fn file(file: &FileId) -> Key {
        Key { file: file.clone(), name: None }
    }

    /// The key of a name in a directory.
    pub fn entry(directory: &FileId, name: &Name) -> Key {
        Key { file: directory.clone(), name: Some(name.clone()) }
    }
}

/// A record of either sort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A file's own.
    File(Arc<File>),
    /// A name in a directory.
    Entry(Entry),
}

impl BorshSerialize for Record {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        match self {
            Record::File(file) => {
                0u8.serialize(writer)?;
                File::serialize(file, writer)
            }
            Record::Entry(entry) => {
                1u8.serialize(writer)?;
                entry.serialize(writer)
            }
        }
    }
}

impl BorshDeserialize for Record {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Record> {
        match u8::deserialize_reader(reader)? {
            0 => File::deserialize_reader(reader).map(|file| Record::File(Arc::new(file))),
            1 => Entry::deserialize_reader(reader).map(Record::Entry),
            _ => Err(base::Malformed::new("a record is a file's or an entry").into()),
        }
    }
}

/// What a name in a directory stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Entry {
    /// The file.
    pub file: FileId,
    /// What it is; never changes.
    pub sort: Sort,
}

/// What a file is. It never becomes anything else.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Sort {
    /// Bytes.
    Regular,
    /// Names.
    Directory,
    /// A path.
    Symlink,
    /// Something that only lies in the tree, for the kernel to make use of.
    Special(Special),
}

/// What lies in a tree and is no part of the file system but for that.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Special {
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device that is read and written byte by byte, by its number.
    Character(u32),
    /// A device that is read and written block by block, by its number.
    Block(u32),
}

impl Special {
    /// Whether it reaches past the file system, so that only the superuser may make one.
    pub fn is_device(self) -> bool {
        matches!(self, Special::Character(_) | Special::Block(_))
    }
}

/// Everything about a file but its names and its bytes. Each part belongs to one [`Field`].
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct File {
    /// The inode number; never changes.
    pub serial: u64,
    /// What it is; never changes.
    pub sort: Sort,
    /// [`Field::Access`].
    pub access: Access,
    /// [`Field::Times`].
    pub times: Times,
    /// [`Field::Content`].
    pub content: Content,
    /// How many names it has. [`Field::Parent`]. Of a directory 2, and 1 for each directory in it, which is
    /// a consequence of changes in it, as its times are, and known with them.
    pub links: u32,
    /// The directory that it lies in; of a file with several names, where it last got one.
    /// [`Field::Parent`].
    pub parent: FileId,
    /// Of a directory: how it numbers its children. Only the group has it right.
    pub numbering: Numbering,
    /// What few files have.
    pub rare: Option<Box<Rare>>,
}

/// Who may use a file how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Access {
    /// The twelve permission bits.
    pub mode: u16,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl Access {
    /// The permission bits.
    pub const MODE: u16 = 0o7777;
    pub(crate) const SETUID: u16 = 0o4000;
    pub(crate) const SETGID: u16 = 0o2000;
    pub(crate) const STICKY: u16 = 0o1000;
    pub(crate) const GROUP_RUNS: u16 = 0o010;

    /// Whether only owners may take files out of this directory.
    pub fn is_sticky(&self) -> bool {
        self.mode & Access::STICKY != 0
    }

    /// Takes away what a change by anybody takes away: running as the owner or the group.
    pub(crate) fn tame(&mut self) {
        self.mode &= !Access::SETUID;
        if self.mode & Access::GROUP_RUNS != 0 {
            self.mode &= !Access::SETGID;
        }
    }
}

/// Moments on the clock of whoever acted, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Times {
    /// Last read.
    pub accessed: i64,
    /// Content or names last changed.
    pub modified: i64,
    /// Anything last changed.
    pub changed: i64,
}

/// The content of a file, as far as a directory knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Content {
    /// How many bytes.
    pub size: u64,
    /// How many bytes they take where they are. Holes take none.
    pub allocated: u64,
    /// Who has them: the client that last changed them. None of a file that nobody has written.
    pub home: Option<Client>,
    /// Which of the contents that this client ever had it is. No two have the same number.
    pub version: u64,
    /// The hash of the bytes, if whoever has them has said it. Of a small content they must, see
    /// [`Content::lacks_digest`].
    pub digest: Option<Digest>,
    /// They change where they are without a word: whoever wants them asks there, each time.
    pub is_live: bool,
}

impl Content {
    /// A file has no more bytes, holes and all: as much as the kernel can address.
    pub const SIZE_MAX: u64 = i64::MAX as u64;

    /// A content is small up to here: its hash costs its writer less than the write. Nobody's bytes are believed
    /// without a hash up to this size.
    pub const SMALL_MAX: u64 = 128 << 10;

    /// Whether nobody could check its bytes though they are few. Of what changes without a word nothing can be said.
    pub fn lacks_digest(&self) -> bool {
        let is_small = (1..=Content::SMALL_MAX).contains(&self.size);
        is_small && !self.is_live && self.digest.is_none()
    }
}

/// How a directory numbers its children. No number is given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Numbering {
    /// How many names are in it.
    pub names: u64,
    /// The least number that nobody has been given.
    pub next: u64,
    /// Who created the directory: it numbers the first [`Numbering::BORN`] on its own.
    pub creator: u32,
    /// The least number that the creator has not used.
    pub creator_next: u64,
}

impl Numbering {
    /// Numbers below this are the creator's.
    pub const BORN: u64 = 4_096;

    /// Of a directory that this client creates.
    pub fn of(creator: Client) -> Numbering {
        Numbering { names: 0, next: Numbering::BORN, creator: creator.0, creator_next: 1 }
    }
}

/// What few files have.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Rare {
    /// Where a symbolic link leads; never changes.
    pub target: Vec<u8>,
    /// [`Field::Extended`]. By name.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// [`Field::Locks`].
    pub locks: Vec<Lock>,
}

/// A lock on a range of a file's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Lock {
    /// On which machine.
    pub client: Client,
    /// By whom there.
    pub owner: u64,
    /// The first byte.
    pub start: u64,
    /// The last byte.
    pub end: u64,
    /// Whether nobody else may have one.
    pub is_exclusive: bool,
}

impl File {
    /// What few files have, to change it.
    pub fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Takes over one field from a newer record of the same file.
    pub fn adopt(&mut self, field: &Field, newer: &File) {
        match field {
            Field::Access => self.access = newer.access,
            Field::Times => {
                self.times = newer.times;
                if self.sort == Sort::Directory {
                    self.links = newer.links;
                }
            }
            Field::Content => self.content = newer.content.clone(),
            Field::Parent => {
                if self.sort != Sort::Directory {
                    self.links = newer.links;
                }
                self.parent = newer.parent.clone();
            }
            Field::Extended => {
                let attributes = newer.rare.as_ref().map(|rare| rare.attributes.clone());
                self.set_attributes(attributes.unwrap_or_default());
            }
            Field::Locks => {
                let locks = newer.rare.as_ref().map(|rare| rare.locks.clone());
                self.set_locks(locks.unwrap_or_default());
            }
            Field::Deletion
            | Field::Handles
            | Field::Mode(_)
            | Field::Child(_)
            | Field::Children
            | Field::Whole
            | Field::Tree => {}
        }
    }

    /// Whether a name leads to it. A directory goes with its name; its links count other things.
    pub fn has_name(&self) -> bool {
        self.sort == Sort::Directory || self.links > 0
    }

    /// Its extended attributes, by name.
    pub fn attributes(&self) -> &[(Vec<u8>, Vec<u8>)] {
        self.rare.as_ref().map_or(&[], |rare| &rare.attributes)
    }

    /// The locks on it.
    pub fn locks(&self) -> &[Lock] {
        self.rare.as_ref().map_or(&[], |rare| &rare.locks)
    }

    pub(crate) fn set_attributes(&mut self, attributes: Vec<(Vec<u8>, Vec<u8>)>) {
        if self.rare.is_some() || !attributes.is_empty() {
            self.rare_mut().attributes = attributes;
        }
        self.tidy();
    }

    pub(crate) fn set_locks(&mut self, locks: Vec<Lock>) {
        if self.rare.is_some() || !locks.is_empty() {
            self.rare_mut().locks = locks;
        }
        self.tidy();
    }

    /// One form for each state: nothing rare is no box at all.
    fn tidy(&mut self) {
        self.rare = self.rare.take().filter(|rare| **rare != Rare::default());
    }

    /// The fields that [`File::adopt`] knows.
    pub const FIELDS: [Field; 6] =
        [Field::Access, Field::Times, Field::Content, Field::Parent, Field::Extended, Field::Locks];
}

/// The scope of a name in a directory.
pub fn name_scope(directory: &FileId, name: &Name) -> Scope {
    Field::Child(name.clone()).of(directory)
}
