//! What a client and the members of a group of several say to one another.

use borsh::{BorshDeserialize, BorshSerialize};
use directory::message::Request;
use group::{Sealable, Seat};
use lease::Client;

/// What a client seals.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize)]
pub struct Said<'a> {
    /// Who it is.
    pub client: Client,
    /// What it wants.
    pub request: &'a Request,
}

impl Sealable for Said<'_> {
    const KIND: u8 = 5;
}

/// Where in the order something was said. Every honest member says the same there.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct Slot {
    /// The decision that it follows from.
    pub height: u64,
    /// Which of the things that follow.
    pub index: u32,
}

/// What a member says to a client.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Word {
    /// Where in the order.
    pub slot: Slot,
    /// Who leads, as far as this member knows. A hint.
    pub leader: Seat,
    /// The bytes of a [`directory::message::Response`].
    pub bytes: Vec<u8>,
}
