//! What a filter knows of a path: 128 bits, from which every position is computed.

use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;

/// The key of a cell's prints. All machines of a cell have it and nobody else does, so that who can only
/// choose names can't choose where they fall.
#[derive(Clone, Debug)]
pub struct Salt(SipHasher13);

impl Salt {
    /// The salt of these bytes.
    pub fn new(bytes: [u8; 16]) -> Salt {
        Salt(SipHasher13::new_with_key(&bytes))
    }
}

/// The print of a full path (H8): one hash of 128 bits. Equal names in different directories differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Print {
    pub(crate) first: u64,
    pub(crate) second: u64,
}

impl Print {
    /// The print of this path in the cell of this salt.
    pub fn of(salt: &Salt, path: &[u8]) -> Print {
        let mut hasher = salt.0;
        hasher.write(path);
        let hash = hasher.finish128();
        Print { first: hash.h1, second: hash.h2 }
    }

    /// The print with these words, where something else has hashed already.
    pub const fn from_words(first: u64, second: u64) -> Print {
        Print { first, second }
    }

    /// Its words.
    pub const fn words(self) -> (u64, u64) {
        (self.first, self.second)
    }

    /// A position below `rows` for each probe. H8: double hashing, so two words do for any number.
    pub(crate) fn position(self, probe: u8, rows: u32) -> u32 {
        let word = self.first.wrapping_add((self.second | 1).wrapping_mul(u64::from(probe)));
        below(word, rows)
    }

    /// The print that a filter sees under this seed; under the first, the print itself.
    pub(crate) fn seeded(self, seed: u8) -> Print {
        if seed == 0 {
            return self;
        }
        let shift = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let first = mix(self.first.wrapping_add(shift));
        Print { first, second: mix(self.second ^ first) }
    }
}

/// A fair word as a number below `bound`.
pub(crate) fn below(word: u64, bound: u32) -> u32 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u32
}

fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word = (word ^ (word >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_print_is_siphash_1_3_of_the_path_for_ever() {
        let salt = Salt::new([7; 16]);
        assert_eq!(
            Print::of(&salt, b"/a/b"),
            Print::from_words(17_245_927_057_946_494_372, 15_836_973_488_487_836_085)
        );
    }

    #[test]
    fn equal_names_in_different_directories_and_cells_differ() {
        let (salt, other) = (Salt::new([7; 16]), Salt::new([8; 16]));
        let print = Print::of(&salt, b"/a/name");
        assert_ne!(print, Print::of(&salt, b"/b/name"));
        assert_ne!(print, Print::of(&other, b"/a/name"));
    }

    #[test]
    fn positions_are_fair_and_below_the_bound() {
        let salt = Salt::new([7; 16]);
        let mut counts = [0u32; 10];
        for number in 0..10_000u32 {
            let print = Print::of(&salt, &number.to_le_bytes());
            for probe in 0..7 {
                counts[print.position(probe, 10) as usize] += 1;
            }
        }
        assert!(counts.iter().all(|count| (6_700..7_300).contains(count)), "{counts:?}");
    }
}
