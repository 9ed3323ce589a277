//! What a client and a group say to each other.
//!
//! Messages may be lost, repeated and overtaken. A batch is applied at most once and in order; a request
//! is named in its answer; a value counts only under a lease that it came with or was fetched under.

use base::FileId;
use borsh::{BorshDeserialize, BorshSerialize};
use lease::{
    Name,
    message::{Downward, Upward},
};

use crate::{
    charge::Quota,
    ledger::Account,
    operation::Operation,
    record::{Entry, File, Key},
    refusal::Refusal,
};

/// From a client: a message to the group's grantor, and whatever else there is to say.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Request {
    /// What is said of leases; `Renew` if nothing is.
    pub lease: Upward,
    /// What else, within the session that `lease` names.
    pub ask: Option<Ask>,
}

/// What a client can say.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Ask {
    /// It has done this, in this order, under leases that it holds.
    Batch {
        /// The first batch of a session has number 1, and each next one 1 more.
        number: u64,
        /// At most [`OPERATIONS_MAX`].
        operations: Vec<Operation>,
    },
    /// Wants to see records that it holds leases on.
    Fetch {
        /// Names the request in the answer.
        request: u64,
        /// Which; at most [`KEYS_MAX`].
        keys: Vec<Key>,
    },
    /// Wants to see the names in a directory, all of which it holds a lease on.
    List {
        /// Names the request in the answer.
        request: u64,
        /// Which directory.
        directory: FileId,
        /// The last name that it has seen.
        after: Option<Name>,
    },
    /// Wants what new files and bytes need.
    Provide {
        /// Counted up with each; names the request in the answer.
        request: u64,
        /// What it is.
        needs: Needs,
    },
}

/// What a client lacks, and what it has no use for.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Needs {
    /// The directory for which it needs numbers.
    pub directory: Option<FileId>,
    /// The first number in that directory that it has not used, if it was given any; else 0.
    pub number: u64,
    /// The first inode number that it has not used, if it was given any; else 0.
    pub serial: u64,
    /// Directories for which it needs no numbers any more.
    pub release: Vec<FileId>,
    /// The owner of the files and bytes that it needs, if it needs any.
    pub owner: Option<u32>,
    /// So many bytes it needs for them at once.
    pub bytes: u64,
    /// Of what it was given for owners of files, so much comes back; or everything, and it has nothing for them any
    /// more.
    pub give_back: Vec<(u32, Option<Quota>)>,
    /// For so many bytes more its machine has room.
    pub free: Option<u64>,
}

/// From a group: a message of its grantor, and whatever else there is to say.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Response {
    /// What is said of leases; `Renewed` if nothing is.
    pub lease: Downward,
    /// For each grant in `lease`, in their order, what is so.
    pub values: Vec<Vec<Value>>,
    /// The client's last batch that was applied before: what is said to be so may lack those after it.
    pub applied: u64,
    /// What else, within the session that `lease` names.
    pub answer: Option<Answer>,
}

/// What a group can say.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Answer {
    /// A batch was applied.
    Applied {
        /// Which, and with it all before.
        number: u64,
        /// The first operation that was not, nor were those after it; the session is over.
        refused: Option<(u32, Refusal)>,
    },
    /// What was asked for with `Fetch`.
    Fetched {
        /// Which request.
        request: u64,
        /// What is so; nothing of what the client holds no lease on.
        values: Vec<Value>,
    },
    /// What was asked for with `List`.
    Listed {
        /// Which request.
        request: u64,
        /// What is so, if the client holds a lease on all names.
        value: Option<Value>,
    },
    /// What was asked for with `Provide`.
    Provided {
        /// Which request.
        request: u64,
        /// What was given.
        provision: Provision,
    },
}

/// Something that is so.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Value {
    /// A file's record, or that there is no such file any more.
    File {
        /// Which file.
        file: FileId,
        /// Its record.
        record: Option<File>,
    },
    /// What a name in a directory stands for.
    Entry {
        /// Which directory.
        directory: FileId,
        /// Which name.
        name: Name,
        /// What it stands for.
        entry: Option<Entry>,
    },
    /// All names in a directory that come after one, up to the last of these.
    Names {
        /// Which directory.
        directory: FileId,
        /// After which name; none for the first ones.
        after: Option<Name>,
        /// The names in order, and what they stand for. At most [`NAMES_MAX`].
        entries: Vec<(Name, Entry)>,
        /// Whether there are no more after the last of these.
        is_all: bool,
    },
}

/// What new files need: a client that has it can create without asking.
#[derive(Clone, Debug, PartialEq, Eq, Default, BorshSerialize, BorshDeserialize)]
pub struct Provision {
    /// For new files in this directory, numbers from the first up to before the last.
    pub numbers: Option<(FileId, u64, u64)>,
    /// Inode numbers from the first up to before the last.
    pub serials: Option<(u64, u64)>,
    /// For an owner of files, so many more may be created and so many bytes written.
    pub stock: Option<(u32, Quota)>,
    /// Whether there is no more of each because the owner may have no more: files, and bytes.
    pub is_over: (bool, bool),
    /// How the owner stands.
    pub account: Account,
}

/// The most operations in a batch.
pub const OPERATIONS_MAX: usize = 4_096;
/// The most keys in a fetch.
pub const KEYS_MAX: usize = 1_024;
/// The most names in one listing.
pub const NAMES_MAX: usize = 1_024;
/// The most directories for which a client has numbers beyond those it created.
pub const RANGES_MAX: usize = 1_024;
