//! A one-use key with which its holder, alone, makes a machine one of the cell.

use std::fmt;

use base::{PublicKey, SecretKey};

use crate::{
    certificate::{Certificate, verify_permit},
    patrons::Patrons,
    permit::Permit,
    refused::Refused,
    signed::Signed,
};

/// What an authority allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Until when the invitation can be used, in seconds since 1970.
    pub expires: u64,
    /// Until when a certificate made with it may last, in seconds since 1970.
    pub certificate_expires_max: u64,
    /// For whom the machine may act.
    pub patrons: Patrons,
}

/// A permit with the key that it names. Whoever has it can make a machine one of the cell, once.
pub struct Invitation {
    key: SecretKey,
    /// Its invitation is `key`, and its authority has signed it.
    permit: Signed<Permit>,
}

impl Invitation {
    /// Invites one machine. The seed is fresh entropy, used for nothing else.
    pub fn new(authority: &SecretKey, seed: [u8; 32], terms: Terms) -> Result<Invitation, Refused> {
        let Terms { expires, certificate_expires_max, patrons } = terms;
        if !patrons.is_bounded() {
            return Err(Refused::UsersTooMany);
        }
        let key = SecretKey::from_seed(seed);
        let (authority_key, invitation) = (authority.public(), key.public());
        let permit = Permit {
            authority: authority_key,
            invitation,
            expires,
            certificate_expires_max,
            patrons,
        };
        Ok(Invitation { permit: Signed::new(permit, authority), key })
    }

    /// An invitation that came from somewhere, if its parts belong together and its authority has made it.
    pub(crate) fn join(key: SecretKey, permit: Signed<Permit>) -> Result<Invitation, Refused> {
        let claim = verify_permit(&permit, &permit.claim().authority)?;
        if claim.invitation != key.public() {
            return Err(Refused::KeyOther);
        }
        Ok(Invitation { key, permit })
    }

    /// What it allows.
    pub fn permit(&self) -> &Permit {
        self.permit.claim()
    }

    /// The key of the cell's authority.
    pub fn authority(&self) -> &PublicKey {
        &self.permit().authority
    }

    /// Whether it can no longer be used, at this moment in seconds since 1970.
    pub fn is_expired(&self, now: u64) -> bool {
        now >= self.permit().expires
    }

    /// Makes a machine one of the cell until a moment in seconds since 1970, if it is registered as the
    /// first one with this invitation.
    pub fn certify(&self, machine: &SecretKey, expires: u64) -> Result<Certificate, Refused> {
        if expires > self.permit().certificate_expires_max {
            return Err(Refused::CertificateTooLong);
        }
        Ok(Certificate::new(&self.permit, &self.key, machine, expires))
    }

    pub(crate) fn parts(&self) -> (&SecretKey, &Signed<Permit>) {
        (&self.key, &self.permit)
    }
}

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Invitation").field(self.permit()).finish_non_exhaustive()
    }
}
