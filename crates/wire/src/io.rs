//! Reads and writes of a file whose bytes change at another machine.

use borsh::{BorshDeserialize, BorshSerialize};

/// What is asked of the machine where the bytes of a file change without a word, by whoever has it open elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Io {
    /// Bytes are read: fewer than so many only at the end.
    Read {
        /// The first one.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// Bytes are written.
    Write {
        /// Where; at the end if it is not said.
        offset: Option<u64>,
        /// Which.
        bytes: Vec<u8>,
    },
    /// The file gets another size.
    Resize(u64),
    /// What was written is made safe.
    Sync,
    /// The directory is told what it does not know.
    Tell,
}

impl Io {
    /// The most bytes that are read or written at once: a query and an answer have room for them.
    pub const BYTES_MAX: usize = 512 << 10;

    /// Whether it changes the bytes.
    pub fn is_change(&self) -> bool {
        matches!(self, Io::Write { .. } | Io::Resize(_))
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum IoReply {
    /// These were read.
    Bytes(Vec<u8>),
    /// It is done.
    Done,
    /// It was refused, with this errno.
    Refused(u16),
    /// The bytes do not change here without a word, or not any more.
    Away,
    /// There is too much to do just now.
    Busy,
}
