//! A digest of whatever can be hashed, the same on every machine.

use std::hash::Hasher;

use base::{Digest, Domain};

/// A digest in the making, as the standard library's hashing sees it.
///
/// Integers go in by their little-endian bytes, whatever the machine's order and word.
pub(crate) struct Folded {
    hasher: base::Hasher,
    buffer: Vec<u8>,
}

/// So many bytes are handed on at once.
const BYTES_MAX: usize = 16 * 1_024;

impl Folded {
    pub(crate) fn new(domain: Domain) -> Folded {
        Folded { hasher: base::Hasher::new(domain), buffer: Vec::with_capacity(BYTES_MAX) }
    }

    pub(crate) fn digest(mut self) -> Digest {
        self.hasher.update(&self.buffer);
        self.hasher.finish()
    }
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BYTES_MAX {
            self.hasher.update(&self.buffer);
            self.buffer.clear();
        }
    }

    fn write_u16(&mut self, word: u16) {
        self.write(&word.to_le_bytes());
    }

    fn write_u32(&mut self, word: u32) {
        self.write(&word.to_le_bytes());
    }

    fn write_u64(&mut self, word: u64) {
        self.write(&word.to_le_bytes());
    }

    fn write_u128(&mut self, word: u128) {
        self.write(&word.to_le_bytes());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        let mut hasher = self.hasher.clone();
        hasher.update(&self.buffer);
        let digest = hasher.finish();
        u64::from_le_bytes(digest.as_bytes()[..8].try_into().expect("it has eight bytes"))
    }
}
