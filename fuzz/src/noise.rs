//! Small changes to bytes that are accepted, for tests.

use base::Rng;

/// Changes, cuts or adds a few.
pub(crate) fn small_change(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..=rng.below(3) {
        let at = rng.index(bytes.len().max(1));
        match rng.below(3) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            1 => bytes.truncate(at + 1),
            _ => bytes.insert(at.min(bytes.len()), rng.next_u64() as u8),
        }
    }
}
