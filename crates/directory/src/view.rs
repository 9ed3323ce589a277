//! What an operation sees and changes: in a client what it holds leases on, in a group everything.
//!
//! An operation is written once. A client performs it on what it knows and may have to ask first; the
//! group replays it (D33) and lets each step that asks for knowledge check that the client was promised
//! that knowledge (D35). So what an operation needs is said in one place, by the operation itself.

use base::FileId;
use borsh::{BorshDeserialize, BorshSerialize};
use lease::{Name, Scope, message::Want};
use triomphe::Arc;

use crate::{
    record::{Entry, File, Key, Sort},
    refusal::Refusal,
};

/// Why an operation did not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is refused; nothing has changed.
    Refused(Refusal),
    /// Something has to be found out first; nothing has changed.
    Missing(Missing),
}

/// What has to be found out before an operation can go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// In a client: knowledge that it has to ask for.
    pub wants: Vec<Want>,
    /// Records that are not at hand: in a client to be fetched from the group, in a group from its
    /// store.
    pub keys: Vec<Key>,
    /// In a client: a directory of which not all names are at hand.
    pub names: Option<FileId>,
    /// In a client: the directory for which it has no number left, or else no serial number.
    pub provision: Option<FileId>,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

/// The name of a new file and its inode number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Birth {
    /// Its identifier: its directory's and one integer more (D11).
    pub file: FileId,
    /// Its inode number.
    pub serial: u64,
    /// Whether a lease on all of it was born with it, or one that covers it was held before.
    pub is_leased: bool,
}

impl Default for Birth {
    fn default() -> Birth {
        Birth { file: FileId::ROOT, serial: 0, is_leased: false }
    }
}

/// What an operation sees and changes.
///
/// Changes take effect only if the operation ends well; an operation asks and checks before it changes. What they
/// cost follows from the changes ([`crate::Charges`]), and whether there is so much is found out last.
pub trait View {
    /// Goes on only if all of this is known.
    fn know(&mut self, wants: &[Want]) -> Result<(), Stop>;

    /// Whether this scope's value happens to be known already, so that it need not be asked for.
    fn knows_value(&self, scope: &Scope) -> bool;

    /// A file's record, of which only the fields that are known may be looked at.
    fn file(&mut self, file: &FileId) -> Result<Arc<File>, Stop>;

    /// What a name in a directory stands for.
    fn entry(&mut self, directory: &FileId, name: &Name) -> Result<Option<Entry>, Stop>;

    /// Whether no name in a directory stands for anything.
    fn is_empty(&mut self, directory: &FileId) -> Result<bool, Stop>;

    /// Changes a file's record.
    fn set_file(&mut self, file: &FileId, record: File);

    /// Changes what a name in a directory stands for.
    fn set_entry(&mut self, directory: &FileId, name: &Name, entry: Option<Entry>);

    /// Gives a new file its name and number, and everything about it to its creator. In a client this
    /// fills `birth`, in a group it is checked.
    fn bear(&mut self, directory: &FileId, sort: Sort, birth: &mut Birth) -> Result<(), Stop>;

    /// Takes a file out of the world.
    fn bury(&mut self, file: &FileId);

    /// Whether anybody has the file open. In a client this fills `is_open`; in a group it is checked
    /// that the client may know, if it says that nobody has.
    fn is_open(&mut self, file: &FileId, is_open: &mut bool) -> Result<(), Stop>;

    /// Whether anybody but the client that acts has the file open. A group says so unless the client may know that
    /// nobody has.
    fn is_open_elsewhere(&mut self, file: &FileId) -> Result<bool, Stop>;

    /// Whether there are others who may ask for bytes. Only a group knows; a client says no, and tells hashes as soon
    /// as it may come to have others.
    fn has_others(&self) -> bool;

    /// The client that acts.
    fn client(&self) -> lease::Client;
}
