//! What an issuer of a cell allows whoever has an invitation.

use base::{Digest, Domain, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    cell::Cell,
    issuer::{Issuable, Power},
    patrons::Patrons,
    refused::Refused,
    signed::Statement,
};

const NUMBER: Domain = Domain::new("number of a machine v1");

/// What an issuer allows whoever has the key of an invitation: to certify one machine.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Permit {
    /// The root key of the cell, which has to have certified whoever has signed this.
    pub authority: PublicKey,
    /// The key of the invitation.
    pub invitation: PublicKey,
    /// A machine has to be registered before this moment, in seconds since 1970.
    pub expires: u64,
    /// A certificate may last until this moment and no longer, in seconds since 1970.
    pub certificate_expires_max: u64,
    /// The users that the machine may act for.
    pub patrons: Patrons,
}

impl Permit {
    /// The cell that it is for, if an issuer of that has signed it.
    pub fn cell(&self) -> Cell {
        Cell::of(&self.authority)
    }

    /// The random number of the machine, from which follows where it may stand. It comes out of the
    /// invitation, so no machine chooses its own (K3).
    pub fn number(&self) -> Digest {
        Digest::of(NUMBER, self.invitation.as_bytes())
    }
}

impl Statement for Permit {
    const SIGNED: Domain = Domain::new("permit of an invitation v3");
    const NAMED: Domain = Domain::new("name of a permit v1");
    // Two keys, two moments, and for whom.
    const BYTES_MAX: usize = 64 + 16 + Patrons::BYTES_MAX;
}

impl Issuable for Permit {
    const POWER: Power = Power::Invite;
    const FORGED: Refused = Refused::PermitForged;

    fn authority(&self) -> &PublicKey {
        &self.authority
    }
}
