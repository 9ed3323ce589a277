//! What a member can show to prove what it has: a place in the order, and all that has led to it in short.

use base::{Digest, Domain};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::message::Summary;

const POINT: Domain = Domain::new("group point v1");

/// Two machines that have the same point have the same roll and the same state there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Point {
    /// The last place that was decided.
    pub height: u64,
    /// Of who sits here, how they came to, and the state.
    pub digest: Digest,
}

impl From<&Summary> for Point {
    fn from(summary: &Summary) -> Point {
        let digest = Digest::of(POINT, &base::encode(summary));
        Point { height: summary.tip.height, digest }
    }
}
