//! What happened, folded into one digest: a seed replays to the same one for ever.

use std::hash::{Hash, Hasher};

use base::{Digest, Domain, Instant};

const PURPOSE: Domain = Domain::new("simulated world v1");
/// As many bytes are handed to the digest at once; large enough for its fast path.
const BYTES_MAX: usize = 16 * 1024;

/// A digest over every event so far.
pub(crate) struct Fold {
    digest: base::Hasher,
    buffer: Vec<u8>,
}

impl Fold {
    pub(crate) fn new() -> Fold {
        Fold { digest: base::Hasher::new(PURPOSE), buffer: Vec::with_capacity(BYTES_MAX) }
    }

    pub(crate) fn event(&mut self, at: Instant, node: u16, kind: u8, content: &impl Hash) {
        let mut hasher = Quick::default();
        content.hash(&mut hasher);
        let place = u64::from(node) << 8 | u64::from(kind);
        for word in [at.as_nanos(), place, hasher.finish()] {
            self.buffer.extend_from_slice(&word.to_le_bytes());
        }
        if self.buffer.len() > BYTES_MAX - 24 {
            self.digest.update(&self.buffer);
            self.buffer.clear();
        }
    }

    pub(crate) fn finish(&self) -> Digest {
        let mut digest = self.digest.clone();
        digest.update(&self.buffer);
        digest.finish()
    }
}

/// A fast hash of 64 bits without secrets: rotate, mix in, multiply. It guards against accidents, not
/// against anybody.
#[derive(Default)]
struct Quick(u64);

impl Quick {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
        self.mix(bytes.len() as u64);
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.mix(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.mix(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(events: &[(u64, u16, u8, &str)]) -> Digest {
        let mut fold = Fold::new();
        for (at, node, kind, content) in events {
            fold.event(Instant::from_nanos(*at), *node, *kind, content);
        }
        fold.finish()
    }

    #[test]
    fn every_part_of_an_event_counts() {
        let one = fold(&[(1, 2, 3, "four"), (5, 6, 7, "eight")]);
        assert_eq!(one, fold(&[(1, 2, 3, "four"), (5, 6, 7, "eight")]));
        for other in [
            [(2, 2, 3, "four"), (5, 6, 7, "eight")],
            [(1, 3, 3, "four"), (5, 6, 7, "eight")],
            [(1, 2, 4, "four"), (5, 6, 7, "eight")],
            [(1, 2, 3, "five"), (5, 6, 7, "eight")],
            [(5, 6, 7, "eight"), (1, 2, 3, "four")],
        ] {
            assert_ne!(one, fold(&other));
        }
    }

    #[test]
    fn the_quick_hash_is_pinned() {
        let mut hasher = Quick::default();
        (1u8, 2u64, "three", [4u16, 5]).hash(&mut hasher);
        assert_eq!(hasher.finish(), 8226455734287767930);
    }
}
