//! What members say to one another.

use base::{Digest, Instant};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    ballot::{Certificate, Vote},
    batch::{Batch, Decision, Tip},
    engine::Word,
    point::Point,
    seal::{Seal, Sealable, Sealed},
    seat::Seat,
};

/// What one member says to another. Who says it is known from how it came.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Message {
    /// A word of the engine, and the batch that a proposal is about.
    Word(Word, Option<Batch>),
    /// Commands for the leader.
    Commands(Vec<Vec<u8>>),
    /// "I have started. What have you seen of me, and what time is it?"
    Hello {
        /// Tells hellos apart.
        nonce: u64,
    },
    /// The answer.
    Welcome {
        /// Of the hello.
        nonce: u64,
        /// The agreed time.
        time: Instant,
        /// The last place that was decided.
        height: u64,
        /// The last vote that came from the one who said hello.
        seen: Option<Sealed<Vote>>,
    },
    /// "I have this many decisions. What comes next?"
    Behind {
        /// The last place that is known.
        height: u64,
        /// Since when the members are those that are known. If that is later than the next place, a state is
        /// needed, since nothing else is known.
        epoch: u64,
    },
    /// What comes next, if it is still at hand.
    Decisions(Vec<Decision>),
    /// It is not at hand any more, but what all decisions up to some point have led to is; and what proves the last
    /// of them, if that is.
    Offer(Summary, Option<Certificate>),
    /// "Give me a piece of that."
    Fetch {
        /// The point.
        height: u64,
        /// From which byte on.
        from: u64,
    },
    /// A piece.
    Piece {
        /// The point.
        height: u64,
        /// From which byte on.
        from: u64,
        /// Not empty.
        bytes: Vec<u8>,
    },
    /// Who should sit here.
    Wish {
        /// Since when the members are as they are.
        epoch: u64,
        /// The members to be.
        seats: Vec<Seat>,
        /// Until when this counts, by the agreed time.
        until: Instant,
        /// The seal on a [`crate::Wish`].
        seal: Seal,
    },
    /// "I have caught up, and this is what I have."
    Ready {
        /// Since when the members are as they are.
        epoch: u64,
        /// The members to be.
        seats: Vec<Seat>,
        /// What whoever says it has.
        point: Point,
        /// The seal on a [`crate::Ready`].
        seal: Seal,
    },
    /// A command that has waited here too long. It is to be decided next.
    Overdue(Vec<u8>),
    /// What the decisions up to a point have led to here.
    Vouch(Sealed<Vouch>),
}

impl Message {
    /// The commands that whoever says this wants decided.
    pub fn commands(&self) -> &[Vec<u8>] {
        match self {
            Message::Word(_, Some(batch)) => &batch.commands,
            Message::Commands(commands) => commands,
            Message::Overdue(command) => std::slice::from_ref(command),
            _ => &[],
        }
    }
}

/// What all decisions up to some point have led to.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Summary {
    /// The point.
    pub tip: Tip,
    /// The digest of the state's bytes.
    pub state: Digest,
    /// How many there are.
    pub bytes: u64,
}

/// What all decisions up to some point have led to, as one member says.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Vouch {
    /// The point.
    pub height: u64,
    /// The digest of the state's bytes.
    pub state: Digest,
    /// Who says so.
    pub seat: Seat,
}

impl Sealable for Vouch {
    const KIND: u8 = 16;
}
