//! A one-use key with which its holder, alone, makes a machine one of the cell.

use std::fmt;

use base::{PublicKey, SecretKey};

use crate::{
    certificate::Certificate,
    issuer::{Issued, Issuer},
    patrons::Patrons,
    permit::Permit,
    refused::Refused,
};

/// What an issuer allows.
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
    /// Its invitation is `key`, and an issuer of its cell has signed it.
    permit: Issued<Permit>,
}

impl Invitation {
    /// Invites one machine. The seed is fresh entropy, used for nothing else.
    pub fn new(issuer: &Issuer, seed: [u8; 32], terms: Terms) -> Result<Invitation, Refused> {
        let Terms { expires, certificate_expires_max, patrons } = terms;
        if !patrons.is_bounded() {
            return Err(Refused::UsersTooMany);
        }
        let key = SecretKey::from_seed(seed);
        let (authority, invitation) = (*issuer.authority(), key.public());
        let permit = Permit { authority, invitation, expires, certificate_expires_max, patrons };
        Ok(Invitation { permit: Issued::new(permit, issuer), key })
    }

    /// An invitation that came from somewhere, if its parts belong together and an issuer of its cell has made it.
    pub(crate) fn join(key: SecretKey, permit: Issued<Permit>) -> Result<Invitation, Refused> {
        let (claim, _) = permit.verify(&permit.claim().authority)?;
        if claim.invitation != key.public() {
            return Err(Refused::KeyOther);
        }
        Ok(Invitation { key, permit })
    }

    /// What it allows.
    pub fn permit(&self) -> &Permit {
        self.permit.claim()
    }

    /// The root key of the cell.
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

    pub(crate) fn parts(&self) -> (&SecretKey, &Issued<Permit>) {
        (&self.key, &self.permit)
    }
}

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Invitation").field(self.permit()).finish_non_exhaustive()
    }
}
