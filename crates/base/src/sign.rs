//! Signatures, always for a stated purpose.
//!
//! What is signed is the digest of the bytes for that purpose, so a signature for one thing can never
//! pass for another. Keys are made from 32 bytes that somebody hands in: pure code has no entropy.

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};

use crate::{Digest, Domain};

/// An Ed25519 key that signs. It is wiped when dropped and never printed; the seed that it was made
/// from is its maker's to wipe.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// The key made from this seed, which is as secret as the key.
    pub fn from_seed(seed: [u8; 32]) -> SecretKey {
        SecretKey(SigningKey::from_bytes(&seed))
    }

    /// The seed that it was made from, for whoever writes the key down.
    pub fn as_seed(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// The key that others check against.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// Signs these bytes for this purpose.
    pub fn sign(&self, domain: Domain, bytes: &[u8]) -> Signature {
        Signature(self.0.sign(Digest::of(domain, bytes).as_bytes()).to_bytes())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {:?})", self.public())
    }
}

/// An Ed25519 key that checks. Any 32 bytes will do until something is checked with them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> PublicKey {
        PublicKey(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Checks that the owner of this key signed these bytes, as they were received, for this purpose.
    ///
    /// The check is the strict one: no second signature of the same bytes can be made from a first
    /// one, and keys of small order are refused.
    pub fn verify(
        &self,
        domain: Domain,
        bytes: &[u8],
        signature: &Signature,
    ) -> Result<(), BadSignature> {
        let key = VerifyingKey::from_bytes(&self.0).map_err(|_| BadSignature)?;
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        key.verify_strict(Digest::of(domain, bytes).as_bytes(), &signature)
            .map_err(|_| BadSignature)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…")
    }
}

/// An Ed25519 signature.
#[derive(Clone, Copy, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Signature([u8; 64]);

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// A signature that its alleged author did not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSignature;

impl fmt::Display for BadSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the signature does not belong to this key and these bytes")
    }
}

impl std::error::Error for BadSignature {}

#[cfg(test)]
mod tests {
    use super::*;

    const LETTER: Domain = Domain::new("test letter v1");
    const CHEQUE: Domain = Domain::new("test cheque v1");

    #[test]
    fn a_signature_binds_the_key_the_bytes_and_the_purpose() {
        let (alice, bob) = (SecretKey::from_seed([1; 32]), SecretKey::from_seed([2; 32]));
        let signature = alice.sign(LETTER, b"yours");
        assert_eq!(alice.public().verify(LETTER, b"yours", &signature), Ok(()));
        assert!(bob.public().verify(LETTER, b"yours", &signature).is_err());
        assert!(alice.public().verify(LETTER, b"mine", &signature).is_err());
        assert!(alice.public().verify(CHEQUE, b"yours", &signature).is_err());
    }

    #[test]
    fn every_flipped_bit_spoils_a_signature() {
        let key = SecretKey::from_seed([3; 32]);
        for bit in 0..512 {
            let mut signature = key.sign(LETTER, b"yours");
            signature.0[bit / 8] ^= 1 << (bit % 8);
            assert!(key.public().verify(LETTER, b"yours", &signature).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn bytes_that_are_no_key_verify_nothing() {
        let signature = SecretKey::from_seed([4; 32]).sign(LETTER, b"yours");
        for byte in [0, 1, 2, 0xff] {
            let key = PublicKey::from_bytes([byte; 32]);
            assert!(key.verify(LETTER, b"yours", &signature).is_err());
        }
    }

    #[test]
    fn a_key_is_its_seed() {
        assert_eq!(SecretKey::from_seed([5; 32]).as_seed(), &[5; 32]);
    }

    #[test]
    fn secrets_are_not_printed() {
        let key = SecretKey::from_seed([0xab; 32]);
        let text = format!("{key:?}");
        assert!(!text.contains("abab") && !text.contains("171"), "{text}");
    }
}
