//! What members vote with: proposals and votes, and the certificates made of them.

use base::Digest;
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    seal::{Notary, Seal, Sealable, Sealed},
    seat::{Seat, Seats},
};

/// The two votes of a round.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Step {
    /// "I have seen this, and it may be decided."
    Prevote,
    /// "I have seen a quorum that says so."
    Precommit,
}

/// A vote.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Vote {
    /// The place in the order that is voted on.
    pub height: u64,
    /// Which attempt.
    pub round: u32,
    /// Which of the two votes.
    pub step: Step,
    /// For what. None is against everything.
    pub value: Option<Digest>,
    /// Whose vote.
    pub seat: Seat,
}

impl Vote {
    /// Later votes are greater.
    pub fn order(&self) -> (u64, u32, Step) {
        (self.height, self.round, self.step)
    }
}

impl Sealable for Vote {
    const KIND: u8 = 1;
}

/// What a leader wants decided.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Proposal {
    /// The place in the order.
    pub height: u64,
    /// Which attempt.
    pub round: u32,
    /// The digest of the batch.
    pub value: Digest,
    /// The attempt in which a quorum has seen it already.
    pub valid_round: Option<u32>,
    /// The leader.
    pub seat: Seat,
}

impl Sealable for Proposal {
    const KIND: u8 = 2;
}

/// Votes of a quorum for one value: prevotes or precommits.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Certificate {
    /// The place in the order.
    pub height: u64,
    /// Which attempt.
    pub round: u32,
    /// Which votes.
    pub step: Step,
    /// For what.
    pub value: Digest,
    /// Whose, in order, with their seals.
    pub seals: Vec<(Seat, Seal)>,
}

impl Certificate {
    /// Whether a quorum of the members has voted so.
    pub fn is_valid<N: Notary>(&self, group: &Digest, seats: &Seats, notary: &N) -> bool {
        let is_quorum = (seats.quorum()..=Seats::COUNT_MAX).contains(&self.seals.len());
        is_quorum
            && self.seals.is_sorted_by(|(one, _), (other, _)| one < other)
            && self.seals.iter().all(|(seat, seal)| {
                let value = Some(self.value);
                let (height, round, step) = (self.height, self.round, self.step);
                let vote = Vote { height, round, step, value, seat: *seat };
                seats.contains(seat) && notary.is_sealed(&seat.key, &vote.sealed_bytes(group), seal)
            })
    }
}

/// Why a round was entered: votes of the round before, or of this one.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Passage {
    /// The place in the order.
    pub height: u64,
    /// The round of the votes.
    pub round: u32,
    /// Whether they are precommits of a quorum, or any votes of enough to be believed.
    pub is_precommit: bool,
    /// The votes.
    pub votes: Vec<(Step, Option<Digest>, Seat, Seal)>,
}

impl Passage {
    /// The votes, whole.
    pub(crate) fn sealed_votes(&self) -> impl Iterator<Item = Sealed<Vote>> {
        let (height, round) = (self.height, self.round);
        self.votes.iter().map(move |&(step, value, seat, seal)| {
            let what = Vote { height, round, step, value, seat };
            Sealed { what, seal }
        })
    }
}
