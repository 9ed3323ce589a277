//! What an issuer of a cell allows whoever has an invitation.

use base::{Digest, Domain, Hasher, Malformed, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize, io};

use crate::{
    cell::Cell,
    issuer::{Issuable, Power},
    patrons::Patrons,
    refused::Refused,
    signed::Statement,
};

const NUMBER: Domain = Domain::new("number of a machine v2");

/// What an issuer allows whoever has the key of an invitation: to certify so many machines.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Permit {
    /// The root key of the cell, which has to have certified whoever has signed this.
    pub authority: PublicKey,
    /// The key of the invitation.
    pub invitation: PublicKey,
    /// How many machines may come with it: at least one, and at most [`Permit::COUNT_MAX`].
    #[borsh(deserialize_with = "read_count")]
    pub count: u32,
    /// A machine has to be registered before this moment, in seconds since 1970.
    pub expires: u64,
    /// A certificate may last until this moment and no longer, in seconds since 1970.
    pub certificate_expires_max: u64,
    /// The users that a machine may act for.
    pub patrons: Patrons,
}

impl Permit {
    /// No invitation serves more machines.
    pub const COUNT_MAX: u32 = 1_000;

    /// The cell that it is for, if an issuer of that has signed it.
    pub fn cell(&self) -> Cell {
        Cell::of(&self.authority)
    }

    /// The random number of the machine that was admitted as this one of those that came with the invitation, from
    /// which follows where it may stand. So no machine chooses its own (K3).
    pub fn number(&self, place: u32) -> Digest {
        let mut hasher = Hasher::new(NUMBER);
        hasher.update(self.invitation.as_bytes());
        hasher.update(&place.to_le_bytes());
        hasher.finish()
    }
}

impl Statement for Permit {
    const SIGNED: Domain = Domain::new("permit of an invitation v4");
    const NAMED: Domain = Domain::new("name of a permit v1");
    // Two keys, for how many, two moments, and for whom.
    const BYTES_MAX: usize = 64 + 4 + 16 + Patrons::BYTES_MAX;
}

impl Issuable for Permit {
    const POWER: Power = Power::Invite;
    const FORGED: Refused = Refused::PermitForged;

    fn authority(&self) -> &PublicKey {
        &self.authority
    }
}

fn read_count<R: io::Read>(reader: &mut R) -> io::Result<u32> {
    let count = u32::deserialize_reader(reader)?;
    match (1..=Permit::COUNT_MAX).contains(&count) {
        true => Ok(count),
        false => Err(Malformed::new("a permit for no machine, or for more than may be").into()),
    }
}
