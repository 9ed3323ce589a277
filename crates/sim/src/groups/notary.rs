//! Seals that are cheap, or real ones.

use std::rc::Rc;

use base::{Digest, PublicKey, Rng, SecretKey};
use group::{Charter, Ed25519, Notary, Rescue, Seal, Sealable as _, Sealed};

/// A hash under a secret: nobody makes one without it, by chance or by mistake. Nobody here tries harder.
pub(crate) fn keyed(secret: u64, bytes: &[u8]) -> u64 {
    let mut state = secret ^ 0x9e37_79b9_7f4a_7c15;
    let mut mix = |word: u64| {
        state = (state.rotate_left(23) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
        state ^= state >> 32;
    };
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        mix(u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
    }
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    mix(u64::from_le_bytes(last));
    mix(bytes.len() as u64);
    state
}

/// All machines' secrets, and at last the authority's. Only a notary looks into it, and it seals with one of them.
#[derive(Debug)]
pub(crate) struct Safe {
    is_real: bool,
    secrets: Vec<u64>,
    keys: Vec<PublicKey>,
}

impl Safe {
    pub(crate) fn new(count: usize, is_real: bool, rng: &mut Rng) -> Rc<Safe> {
        let secrets: Vec<u64> = (0..=count).map(|_| rng.next_u64()).collect();
        let keys = secrets.iter().enumerate().map(|(index, secret)| match is_real {
            true => real(*secret).public(),
            false => PublicKey::from_bytes([index as u8 + 1; 32]),
        });
        let keys = keys.collect();
        Rc::new(Safe { is_real, keys, secrets })
    }

    pub(crate) fn key(&self, index: usize) -> PublicKey {
        self.keys[index]
    }

    /// What the group of this world is known by.
    pub(crate) fn charter(&self) -> Charter {
        Charter { group: group(), authority: self.keys.last().copied() }
    }

    /// The authority's word, for whoever has got hold of it.
    pub(crate) fn leak(self: &Rc<Safe>, what: Rescue) -> Sealed<Rescue> {
        let stamp = Stamp::new(self, self.keys.len() - 1);
        let seal = stamp.seal(&what.sealed_bytes(&group()));
        Sealed { what, seal }
    }

    /// Whose key it is.
    pub(crate) fn index(&self, key: &PublicKey) -> Option<usize> {
        self.keys.iter().position(|known| known == key)
    }
}

fn real(secret: u64) -> SecretKey {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&secret.to_le_bytes());
    SecretKey::from_seed(seed)
}

/// One machine's notary.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    safe: Rc<Safe>,
    index: usize,
    real: Option<Ed25519>,
}

impl Stamp {
    pub(crate) fn new(safe: &Rc<Safe>, index: usize) -> Stamp {
        let real = safe.is_real.then(|| Ed25519::new(real(safe.secrets[index])));
        Stamp { safe: Rc::clone(safe), index, real }
    }
}

impl Notary for Stamp {
    fn seal(&self, bytes: &[u8]) -> Seal {
        match &self.real {
            Some(real) => real.seal(bytes),
            None => stub(self.safe.secrets[self.index], bytes),
        }
    }

    fn is_sealed(&self, by: &PublicKey, bytes: &[u8], seal: &Seal) -> bool {
        match &self.real {
            Some(real) => real.is_sealed(by, bytes, seal),
            None => self
                .safe
                .index(by)
                .is_some_and(|index| stub(self.safe.secrets[index], bytes) == *seal),
        }
    }
}

fn stub(secret: u64, bytes: &[u8]) -> Seal {
    let mut seal = Seal([0; 64]);
    seal.0[..8].copy_from_slice(&keyed(secret, bytes).to_le_bytes());
    seal.0[8..16].copy_from_slice(&keyed(!secret, bytes).to_le_bytes());
    seal
}

/// The group of this world.
pub(crate) fn group() -> Digest {
    Digest::from_bytes([7; 32])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_seals_for_another_and_no_seal_stands_under_anything_else() {
        for is_real in [false, true] {
            let safe = Safe::new(2, is_real, &mut Rng::new(1));
            let (one, other) = (Stamp::new(&safe, 0), Stamp::new(&safe, 1));
            let seal = one.seal(b"this and that");
            assert!(other.is_sealed(&safe.key(0), b"this and that", &seal));
            assert!(!other.is_sealed(&safe.key(1), b"this and that", &seal));
            assert!(!other.is_sealed(&safe.key(0), b"this and thaT", &seal));
            assert!(!other.is_sealed(&safe.key(0), b"this and that\0", &seal));
        }
    }
}
