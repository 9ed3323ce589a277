//! Who said it: seals on what members say.

use std::fmt;

use base::{Digest, Domain, PublicKey, SecretKey, Signature};
use borsh::{BorshDeserialize, BorshSerialize};

/// What proves that somebody said something. For Ed25519 its 64 bytes are the signature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Seal(pub [u8; 64]);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seal({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// Makes seals with a key of its own and checks those of others. A simulator may have a cheaper kind, as
/// long as nobody can make the seal of a key that it does not have.
pub trait Notary {
    /// Seals with its own key.
    fn seal(&self, bytes: &[u8]) -> Seal;

    /// Whether the owner of the key has sealed these bytes.
    fn is_sealed(&self, by: &PublicKey, bytes: &[u8], seal: &Seal) -> bool;
}

const DOMAIN: Domain = Domain::new("group member v1");

/// Seals with Ed25519.
#[derive(Clone, Debug)]
pub struct Ed25519(SecretKey);

impl Ed25519 {
    /// With this key.
    pub fn new(key: SecretKey) -> Ed25519 {
        Ed25519(key)
    }
}

impl Notary for Ed25519 {
    fn seal(&self, bytes: &[u8]) -> Seal {
        let mut seal = Seal([0; 64]);
        seal.0.copy_from_slice(&base::encode(&self.0.sign(DOMAIN, bytes)));
        seal
    }

    fn is_sealed(&self, by: &PublicKey, bytes: &[u8], seal: &Seal) -> bool {
        let signature = base::decode::<Signature>(&seal.0, seal.0.len());
        signature.is_ok_and(|signature| by.verify(DOMAIN, bytes, &signature).is_ok())
    }
}

/// Something that a member has said, with its seal.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Sealed<T> {
    /// What was said.
    pub what: T,
    /// The seal on it.
    pub seal: Seal,
}

/// What can be sealed: it says for which group it is meant and what it is, so that no seal can stand
/// under anything else.
pub trait Sealable: BorshSerialize {
    /// A number for each kind of thing.
    const KIND: u8;

    /// What is sealed.
    fn sealed_bytes(&self, group: &Digest) -> Vec<u8> {
        base::encode(&(group, Self::KIND, self))
    }
}
