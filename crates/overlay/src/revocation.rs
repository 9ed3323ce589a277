//! That a machine or a user is no longer of a cell.

use base::{Domain, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    issuer::{Issuable, Issued, Issuer, Power, Tenure},
    refused::Refused,
    signed::Statement,
};

#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Withdrawal {
    authority: PublicKey,
    machine: PublicKey,
    at: u64,
}

impl Statement for Withdrawal {
    const SIGNED: Domain = Domain::new("revocation of a machine v2");
    const NAMED: Domain = Domain::new("name of a revocation v1");
    const BYTES_MAX: usize = 32 + 32 + 8;
}

impl Issuable for Withdrawal {
    const POWER: Power = Power::Revoke;
    const FORGED: Refused = Refused::RevocationForged;

    fn authority(&self) -> &PublicKey {
        &self.authority
    }
}

/// An issuer's word that a key, of a machine or of a user, is no longer of its cell. It holds for every
/// certificate of that key, also for later ones: who has been sent away comes back with a new key.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Revocation(Issued<Withdrawal>);

impl Revocation {
    /// The most bytes that one takes.
    pub const BYTES_MAX: usize = Issued::<Withdrawal>::BYTES_MAX;

    /// Sends a machine away, at this moment in seconds since 1970.
    pub fn new(issuer: &Issuer, machine: PublicKey, at: u64) -> Revocation {
        let withdrawal = Withdrawal { authority: *issuer.authority(), machine, at };
        Revocation(Issued::new(withdrawal, issuer))
    }

    /// The key that it is about, if it is good.
    pub fn subject(&self) -> PublicKey {
        self.0.claim().machine
    }

    /// Which machine was sent away and when, and who says so, if that is an issuer of this cell.
    pub fn verify(&self, authority: &PublicKey) -> Result<(PublicKey, u64, Tenure), Refused> {
        let (withdrawal, tenure) = self.0.verify(authority)?;
        Ok((withdrawal.machine, withdrawal.at, tenure))
    }
}
