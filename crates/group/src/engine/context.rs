//! Our words in the engine's terms.

use std::fmt;

use base::{Digest, PublicKey};
use malachitebft_core_types as engine;
use malachitebft_core_types::{LinearTimeouts, NilOrVal, Round, SignedExtension, VoteType};

use crate::{
    ballot::{Proposal, Step, Vote},
    seal::Seal,
    seat::{Seat, Seats},
};

/// What the engine is told about us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Context;

/// A place in the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Height(pub(crate) u64);

impl fmt::Display for Height {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl engine::Height for Height {
    const ZERO: Height = Height(0);
    const INITIAL: Height = Height(1);

    fn increment_by(&self, n: u64) -> Height {
        Height(self.0 + n)
    }

    fn decrement_by(&self, n: u64) -> Option<Height> {
        self.0.checked_sub(n).map(Height)
    }

    fn as_u64(&self) -> u64 {
        self.0
    }
}

/// What is voted on: a batch, by its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Value(pub(crate) Digest);

impl engine::Value for Value {
    type Id = Digest;

    fn id(&self) -> Digest {
        self.0
    }
}

/// A vote. The engine wants to see the value in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cast {
    pub(crate) vote: Vote,
    value: NilOrVal<Digest>,
}

impl From<Vote> for Cast {
    fn from(vote: Vote) -> Cast {
        let value = vote.value.map_or(NilOrVal::Nil, NilOrVal::Val);
        Cast { vote, value }
    }
}

impl engine::Vote<Context> for Cast {
    fn height(&self) -> Height {
        Height(self.vote.height)
    }

    fn round(&self) -> Round {
        Round::new(self.vote.round)
    }

    fn value(&self) -> &NilOrVal<Digest> {
        &self.value
    }

    fn take_value(self) -> NilOrVal<Digest> {
        self.value
    }

    fn vote_type(&self) -> VoteType {
        match self.vote.step {
            Step::Prevote => VoteType::Prevote,
            Step::Precommit => VoteType::Precommit,
        }
    }

    fn validator_address(&self) -> &Seat {
        &self.vote.seat
    }

    fn extension(&self) -> Option<&SignedExtension<Context>> {
        None
    }

    fn take_extension(&mut self) -> Option<SignedExtension<Context>> {
        None
    }

    fn extend(self, _: SignedExtension<Context>) -> Cast {
        self
    }
}

/// A proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bid {
    pub(crate) proposal: Proposal,
    value: Value,
}

impl From<Proposal> for Bid {
    fn from(proposal: Proposal) -> Bid {
        let value = Value(proposal.value);
        Bid { proposal, value }
    }
}

impl engine::Proposal<Context> for Bid {
    fn height(&self) -> Height {
        Height(self.proposal.height)
    }

    fn round(&self) -> Round {
        Round::new(self.proposal.round)
    }

    fn value(&self) -> &Value {
        &self.value
    }

    fn take_value(self) -> Value {
        self.value
    }

    fn pol_round(&self) -> Round {
        Round::from(self.proposal.valid_round)
    }

    fn validator_address(&self) -> &Seat {
        &self.proposal.seat
    }
}

/// Batches travel beside proposals, not in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoPart;

impl engine::ProposalPart<Context> for NoPart {
    fn is_first(&self) -> bool {
        true
    }

    fn is_last(&self) -> bool {
        true
    }
}

impl engine::Address for Seat {}

impl engine::Validator<Context> for Seat {
    fn address(&self) -> &Seat {
        self
    }

    fn public_key(&self) -> &PublicKey {
        &self.key
    }

    fn voting_power(&self) -> u64 {
        1
    }
}

impl engine::ValidatorSet<Context> for Seats {
    fn count(&self) -> usize {
        self.list().len()
    }

    fn total_voting_power(&self) -> u64 {
        self.list().len() as u64
    }

    fn get_by_address(&self, address: &Seat) -> Option<&Seat> {
        let index = self.list().binary_search(address).ok()?;
        self.list().get(index)
    }

    fn get_by_index(&self, index: usize) -> Option<&Seat> {
        self.list().get(index)
    }
}

/// The engine never sees secret keys, and never encodes anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scheme;

impl engine::SigningScheme for Scheme {
    type DecodingError = base::Malformed;
    type Signature = Seal;
    type PublicKey = PublicKey;
    type PrivateKey = ();

    fn decode_signature(bytes: &[u8]) -> Result<Seal, base::Malformed> {
        base::decode(bytes, 64)
    }

    fn encode_signature(seal: &Seal) -> Vec<u8> {
        base::encode(seal)
    }

    fn decode_public_key(bytes: &[u8]) -> Result<PublicKey, base::Malformed> {
        base::decode(bytes, 32)
    }

    fn encode_public_key(key: &PublicKey) -> Vec<u8> {
        base::encode(key)
    }
}

impl engine::Context for Context {
    type Address = Seat;
    type Height = Height;
    type ProposalPart = NoPart;
    type Proposal = Bid;
    type Validator = Seat;
    type ValidatorSet = Seats;
    type Timeouts = LinearTimeouts;
    type Value = Value;
    type Vote = Cast;
    type Extension = ();
    type SigningScheme = Scheme;

    fn select_proposer<'a>(&self, seats: &'a Seats, _: Height, round: Round) -> &'a Seat {
        seats.leader(round.as_u32().unwrap_or(0))
    }

    fn new_proposal(
        &self,
        height: Height,
        round: Round,
        value: Value,
        valid_round: Round,
        seat: Seat,
    ) -> Bid {
        Bid::from(Proposal {
            height: height.0,
            round: number(round),
            value: value.0,
            valid_round: valid_round.as_u32(),
            seat,
        })
    }

    fn new_prevote(
        &self,
        height: Height,
        round: Round,
        value: NilOrVal<Digest>,
        seat: Seat,
    ) -> Cast {
        cast(height, round, Step::Prevote, value, seat)
    }

    fn new_precommit(
        &self,
        height: Height,
        round: Round,
        value: NilOrVal<Digest>,
        seat: Seat,
    ) -> Cast {
        cast(height, round, Step::Precommit, value, seat)
    }
}

fn cast(height: Height, round: Round, step: Step, value: NilOrVal<Digest>, seat: Seat) -> Cast {
    let value = match value {
        NilOrVal::Nil => None,
        NilOrVal::Val(value) => Some(value),
    };
    Cast::from(Vote { height: height.0, round: number(round), step, value, seat })
}

/// The engine votes only in rounds that have a number.
pub(crate) fn number(round: Round) -> u32 {
    round.as_u32().unwrap_or(0)
}

/// Which of the two votes.
pub(crate) fn step_of(kind: VoteType) -> Step {
    match kind {
        VoteType::Prevote => Step::Prevote,
        VoteType::Precommit => Step::Precommit,
    }
}
