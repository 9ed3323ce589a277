//! How much somebody may have of what the machines of a cell have room for, in an issuer's words.

use base::{Domain, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    issuer::{Issuable, Issued, Issuer, Power, Tenure},
    refused::Refused,
    signed::Statement,
};

/// Whose share it is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Sharer {
    /// Each user of whom nothing else is said.
    Everybody,
    /// The user with this number.
    User(u32),
    /// The machine with this key: bytes that are on it.
    Machine(PublicKey),
}

#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Grant {
    authority: PublicKey,
    sharer: Sharer,
    files: Option<u64>,
    bytes: Option<u64>,
    at: u64,
}

impl Statement for Grant {
    const SIGNED: Domain = Domain::new("share of a cell v1");
    const NAMED: Domain = Domain::new("name of a share v1");
    const BYTES_MAX: usize = 32 + 33 + 9 + 9 + 8;
}

impl Issuable for Grant {
    // Who says who the users are says what they may have.
    const POWER: Power = Power::Enrol;
    const FORGED: Refused = Refused::ShareForged;

    fn authority(&self) -> &PublicKey {
        &self.authority
    }
}

/// An issuer's word on how much somebody may have. Of two on the same the later counts.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Share(Issued<Grant>);

impl Share {
    /// The most bytes that one takes.
    pub const BYTES_MAX: usize = Issued::<Grant>::BYTES_MAX;
    /// So many are remembered.
    pub const COUNT_MAX: usize = 4_096;

    /// So many files and bytes, or as many as anybody, from this moment on in seconds since 1970.
    pub fn new(
        issuer: &Issuer,
        sharer: Sharer,
        files: Option<u64>,
        bytes: Option<u64>,
        at: u64,
    ) -> Share {
        let grant = Grant { authority: *issuer.authority(), sharer, files, bytes, at };
        Share(Issued::new(grant, issuer))
    }

    /// Whose share it is, how many files and bytes, since when and who says so, if that is an issuer of this cell.
    #[expect(clippy::type_complexity, reason = "the parts of one statement")]
    pub fn verify(
        &self,
        authority: &PublicKey,
    ) -> Result<(Sharer, Option<u64>, Option<u64>, u64, Tenure), Refused> {
        let (grant, tenure) = self.0.verify(authority)?;
        Ok((grant.sharer, grant.files, grant.bytes, grant.at, tenure))
    }
}

#[cfg(test)]
mod tests {
    use base::SecretKey;

    use super::*;

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_seed([seed; 32])
    }

    #[test]
    fn every_flipped_bit_of_a_share_is_refused_and_the_largest_fits_exactly() {
        let issuer = Issuer::by(&key(1), key(51), 1_000);
        let sharer = Sharer::Machine(key(3).public());
        let share = Share::new(&issuer, sharer, Some(5), Some(u64::MAX), 9);
        let said = share.verify(&key(1).public());
        assert_eq!(said, Ok((sharer, Some(5), Some(u64::MAX), 9, issuer.tenure())));
        let whole = base::encode(&share);
        assert_eq!(whole.len(), Share::BYTES_MAX);
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(read) = base::decode::<Share>(&bytes, Share::BYTES_MAX) else { continue };
            assert!(read.verify(&key(1).public()).is_err(), "bit {bit}");
        }
    }
}
