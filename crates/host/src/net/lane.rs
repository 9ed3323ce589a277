//! What goes over a connection, and what goes first.

use serde::Serialize;

/// Up to this size something counts as small.
const SMALL_BYTES_MAX: usize = 64 << 10;

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

    /// Of a frame of so many bytes.
    pub(crate) fn of_frame(size: usize) -> Lane {
        if size <= SMALL_BYTES_MAX { Lane::Urgent } else { Lane::Ordinary }
    }

    /// With which a request or an answer of so many bytes goes, on its own stream: behind votes, and behind all else
    /// if it is the bytes of a file.
    pub(crate) fn of_request(size: usize) -> Lane {
        if size <= SMALL_BYTES_MAX { Lane::Ordinary } else { Lane::Bulk }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_asked_or_answered_goes_before_a_vote_and_bytes_of_files_go_last() {
        let [vote, query, bytes] =
            [Lane::of_frame(300), Lane::of_request(300), Lane::of_request(wire::Io::BYTES_MAX)];
        assert!(vote.priority() > query.priority() && query.priority() > bytes.priority());
        assert_eq!(bytes, Lane::Bulk);
    }
}
