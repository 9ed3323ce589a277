//! A key with which its holder, alone, makes machines those of the cell: as many as its permit says.

use std::fmt;

use base::{Digest, Domain, PublicKey, SecretKey};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    certificate::Certificate,
    issuer::{Issued, Issuer},
    patrons::Patrons,
    permit::Permit,
    refused::Refused,
    wiped::wipe,
};

const SEED: Domain = Domain::new("seed of an invitation v1");

/// What an issuer allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How many machines may come.
    pub count: u32,
    /// Until when the invitation can be used, in seconds since 1970.
    pub expires: u64,
    /// Until when a certificate made with it may last, in seconds since 1970.
    pub certificate_expires_max: u64,
    /// For whom a machine may act.
    pub patrons: Patrons,
}

/// From what the key of an invitation is made: 128 bits, so that a code can be short. Never printed, and wiped.
pub struct Secret([u8; Secret::SIZE]);

impl Secret {
    pub(crate) const SIZE: usize = 16;

    /// Of fresh entropy, used for nothing else.
    pub const fn new(bytes: [u8; Secret::SIZE]) -> Secret {
        Secret(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; Secret::SIZE] {
        &self.0
    }

    fn key(&self) -> SecretKey {
        SecretKey::from_seed(*Digest::of(SEED, &self.0).as_bytes())
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A permit as its issuer has signed it: of use only to whoever has the secret of its invitation.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Offer(Issued<Permit>);

impl Offer {
    /// What it allows, if an issuer of its cell has signed it.
    pub fn permit(&self) -> &Permit {
        self.0.claim()
    }

    /// The invitation, for whoever has its secret, if an issuer of its cell has made it.
    pub fn accept(self, secret: &Secret) -> Result<Invitation, Refused> {
        Invitation::join(secret.key(), self.0)
    }
}

/// A permit with the key that it names. Whoever has it can make machines those of the cell.
pub struct Invitation {
    key: SecretKey,
    /// Its invitation is `key`, and an issuer of its cell has signed it.
    permit: Issued<Permit>,
}

impl Invitation {
    /// Invites as many machines as the terms say.
    pub fn new(issuer: &Issuer, secret: &Secret, terms: Terms) -> Result<Invitation, Refused> {
        let Terms { count, expires, certificate_expires_max, patrons } = terms;
        if !patrons.is_bounded() {
            return Err(Refused::UsersTooMany);
        }
        if !(1..=Permit::COUNT_MAX).contains(&count) {
            return Err(Refused::CountUnfit);
        }
        let key = secret.key();
        let (authority, invitation) = (*issuer.authority(), key.public());
        let permit =
            Permit { authority, invitation, count, expires, certificate_expires_max, patrons };
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

    /// The same as its issuer has signed it, without the key.
    pub fn offer(&self) -> Offer {
        Offer(self.permit.clone())
    }

    /// The root key of the cell.
    pub fn authority(&self) -> &PublicKey {
        &self.permit().authority
    }

    /// Whether it can no longer be used, at this moment in seconds since 1970.
    pub fn is_expired(&self, now: u64) -> bool {
        now >= self.permit().expires
    }

    /// Makes a machine one of the cell until a moment in seconds since 1970, if it is registered as one of those that
    /// this invitation is for.
    pub fn certify(&self, machine: &SecretKey, expires: u64) -> Result<Certificate, Refused> {
        if expires > self.permit().certificate_expires_max {
            return Err(Refused::CertificateTooLong);
        }
        Ok(Certificate::new(&self.permit, &self.key, machine, expires))
    }

    #[cfg(test)]
    pub(crate) fn parts(&self) -> (&SecretKey, &Issued<Permit>) {
        (&self.key, &self.permit)
    }
}

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Invitation").field(self.permit()).finish_non_exhaustive()
    }
}
