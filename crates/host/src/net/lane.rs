//! What goes over a connection, and what goes first.

use serde::Serialize;

/// A kind of traffic. Each has a stream of its own, so that what is lost or large on one holds up no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// Small and waited for: votes, recalls.
    Urgent,
    /// Everything else that somebody waits for.
    Ordinary,
    /// Copies: whatever room is left.
    Bulk,
}

impl Lane {
    /// All, the most urgent first.
    pub const ALL: [Lane; 3] = [Lane::Urgent, Lane::Ordinary, Lane::Bulk];

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The greater goes first.
    pub(crate) fn priority(self) -> i32 {
        -(self as i32)
    }

    /// The first byte of its stream.
    pub(crate) fn mark(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_mark(mark: u8) -> Option<Lane> {
        Lane::ALL.into_iter().find(|lane| lane.mark() == mark)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Lane::Urgent => "urgent",
            Lane::Ordinary => "ordinary",
            Lane::Bulk => "bulk",
        }
    }
}
