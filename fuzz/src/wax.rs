//! Seals by a hash, quick to make. Whoever is played has only its own by the rules of the game.

use base::{Digest, Domain, PublicKey};
use group::{Notary, Seal, Seat};

/// Seals in the name of one key.
#[derive(Clone, Debug)]
pub(crate) struct Wax(pub(crate) PublicKey);

impl Notary for Wax {
    fn seal(&self, bytes: &[u8]) -> Seal {
        let both = [self.0.as_bytes(), bytes].concat();
        let mut seal = Seal([0; 64]);
        seal.0[..32].copy_from_slice(Digest::of(Domain::new("fuzz seal v1"), &both).as_bytes());
        seal
    }

    fn is_sealed(&self, by: &PublicKey, bytes: &[u8], seal: &Seal) -> bool {
        Wax(*by).seal(bytes) == *seal
    }
}

/// The seat of somebody, in the order of numbers.
pub(crate) fn seat(number: usize) -> Seat {
    Seat { key: PublicKey::from_bytes([number as u8 + 1; 32]), incarnation: 0 }
}

/// A group.
pub(crate) fn group() -> Digest {
    Digest::of(Domain::new("fuzz group v1"), b"")
}
