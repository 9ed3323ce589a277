//! That a machine or a user is no longer of a cell.

use base::{Domain, PublicKey, SecretKey};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    cell::check_cell,
    refused::Refused,
    signed::{Signed, Statement},
};

#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Withdrawal {
    authority: PublicKey,
    machine: PublicKey,
    at: u64,
}

impl Statement for Withdrawal {
    const SIGNED: Domain = Domain::new("revocation of a machine v1");
    const NAMED: Domain = Domain::new("name of a revocation v1");
    const BYTES_MAX: usize = 32 + 32 + 8;
}

/// The authority's word that a key, of a machine or of a user, is no longer of its cell. It holds for every
/// certificate of that key, also for later ones: who has been sent away comes back with a new key.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Revocation(Signed<Withdrawal>);

impl Revocation {
    /// The most bytes that one takes.
    pub const BYTES_MAX: usize = 4 + Withdrawal::BYTES_MAX + 64;

    /// Sends a machine away, at this moment in seconds since 1970.
    pub fn new(authority: &SecretKey, machine: PublicKey, at: u64) -> Revocation {
        let withdrawal = Withdrawal { authority: authority.public(), machine, at };
        Revocation(Signed::new(withdrawal, authority))
    }

    /// Which machine was sent away and when, if the authority of this cell says so.
    pub fn verify(&self, authority: &PublicKey) -> Result<(PublicKey, u64), Refused> {
        let claim = self.0.claim();
        check_cell(&claim.authority, authority)?;
        let withdrawal = self.0.verify(authority).map_err(|_| Refused::RevocationForged)?;
        Ok((withdrawal.machine, withdrawal.at))
    }
}
