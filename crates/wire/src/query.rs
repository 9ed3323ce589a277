//! What one machine asks another out of turn.

use base::{Digest, FileId, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize};
use group::Decision;
use lease::Client;
use overlay::Decree;

use crate::{io::Io, join::Join};

/// What one machine asks another, out of turn.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Query {
    /// "I want to be one of you."
    Join(Box<Join>),
    /// "I have the code with this digest. Where does it lead?"
    Invited(Digest),
    /// "What are these bytes of the file?"
    Read {
        /// The number of the file.
        serial: u64,
        /// The file.
        file: FileId,
        /// The first byte.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// "Which file of the group has this number?"
    Find {
        /// The group.
        group: Digest,
        /// The number.
        serial: u64,
    },
    /// "What you sent of this file is not what the directory says. Look at it."
    Look(FileId),
    /// "Who is that?"
    Who(Whom),
    /// "This was decreed."
    Decree(Box<Decree>),
    /// "How much of the group's decisions do you have?"
    Survivor {
        /// The group.
        group: Digest,
    },
    /// "The members of the group have changed like this."
    Changes {
        /// The group.
        group: Digest,
        /// Like this.
        changes: Vec<Decision>,
    },
    /// "Who are the users of the cell?"
    People,
    /// "My certificate has to be renewed."
    Renew,
    /// "Do this to the bytes of the file, which change where you are."
    Io {
        /// The number of the file.
        serial: u64,
        /// The file.
        file: FileId,
        /// On whose behalf: user and group.
        who: (u32, u32),
        /// What.
        io: Io,
    },
    /// "For whom does this machine act, and who may use this file of the group how?"
    Rights {
        /// The group.
        group: Digest,
        /// The machine.
        machine: PublicKey,
        /// The number of the file.
        serial: u64,
        /// The file.
        file: FileId,
    },
}

impl Query {
    /// The most bytes of one.
    pub const BYTES_MAX: usize = Io::BYTES_MAX + (64 << 10);

    /// The group that it is for, if it is for one.
    pub fn group(&self) -> Option<&Digest> {
        match self {
            Query::Find { group, .. }
            | Query::Survivor { group }
            | Query::Changes { group, .. }
            | Query::Rights { group, .. } => Some(group),
            _ => None,
        }
    }
}

/// How somebody is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Whom {
    /// The machine that is this client.
    Client(Client),
    /// The machine with this key.
    Key(PublicKey),
}
