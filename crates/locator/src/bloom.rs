//! A plain Bloom filter, as it goes over the wire: a shape and its bits.

use std::io::{self, Read};

use base::Malformed;
use borsh::{BorshDeserialize, BorshSerialize};

use crate::Print;

/// How many bits, and how many of them a path sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize)]
pub struct Shape {
    bits: u32,
    probes: u8,
}

impl Shape {
    /// The most bits: 4 MiB, which with the rest of a message fits into a frame.
    pub const BITS_MAX: u32 = 1 << 25;
    /// The most probes; the best number for 46 bits a file.
    pub const PROBES_MAX: u8 = 32;

    /// A shape, if it is one that may be.
    pub const fn new(bits: u32, probes: u8) -> Option<Shape> {
        let may_be =
            0 < bits && bits <= Shape::BITS_MAX && 0 < probes && probes <= Shape::PROBES_MAX;
        if may_be { Some(Shape { bits, probes }) } else { None }
    }

    /// The shape for this many files with this many bits each, and H3's best number of probes, bits a
    /// file times ln 2. No more than may be.
    pub fn for_files(files: u64, bits_per_file: u32) -> Shape {
        let bits = files.max(1).saturating_mul(u64::from(bits_per_file.max(1)));
        let bits = bits.min(u64::from(Shape::BITS_MAX)) as u32;
        let probes = (u64::from(bits_per_file) * 6_931 + 5_000) / 10_000;
        Shape { bits, probes: probes.clamp(1, u64::from(Shape::PROBES_MAX)) as u8 }
    }

    /// How many bits there are.
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// How many of them a path sets.
    pub const fn probes(self) -> u8 {
        self.probes
    }

    /// Where a path sets them.
    pub(crate) fn positions(self, print: Print) -> impl Iterator<Item = u32> {
        (0..self.probes).map(move |probe| print.position(probe, self.bits))
    }

    pub(crate) fn words(self) -> usize {
        self.bits.div_ceil(64) as usize
    }
}

/// The bits of a filter. There is nothing set behind the last.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize)]
pub struct Bits {
    shape: Shape,
    words: Vec<u64>,
}

impl Bits {
    /// The filter that knows nothing.
    pub fn empty(shape: Shape) -> Bits {
        Bits { shape, words: vec![0; shape.words()] }
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Its bits, 64 to a word from the lowest on.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Whether it knows the path, or takes it for one that it knows.
    pub fn contains(&self, print: Print) -> bool {
        self.shape.positions(print).all(|at| self.get(at))
    }

    /// How many bits are set.
    pub fn ones(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether a bit is set.
    pub(crate) fn get(&self, at: u32) -> bool {
        self.words[at as usize / 64] >> (at % 64) & 1 == 1
    }

    /// Makes a bit what it was not.
    pub(crate) fn flip(&mut self, at: u32) {
        self.words[at as usize / 64] ^= 1 << (at % 64);
    }
}

impl BorshDeserialize for Shape {
    fn deserialize_reader<R: Read>(reader: &mut R) -> io::Result<Shape> {
        let bits = u32::deserialize_reader(reader)?;
        let probes = u8::deserialize_reader(reader)?;
        let shape = Shape::new(bits, probes);
        Ok(shape.ok_or(Malformed::new("a filter of a shape that no filter has"))?)
    }
}

impl BorshDeserialize for Bits {
    fn deserialize_reader<R: Read>(reader: &mut R) -> io::Result<Bits> {
        let shape = Shape::deserialize_reader(reader)?;
        let words = Vec::<u64>::deserialize_reader(reader)?;
        let spare = (64 - shape.bits % 64) % 64;
        let is_clean = words.last().is_some_and(|last| spare == 0 || last >> (64 - spare) == 0);
        if words.len() != shape.words() || !is_clean {
            return Err(Malformed::new("a filter has as many bits as its shape says").into());
        }
        Ok(Bits { shape, words })
    }
}

#[cfg(test)]
mod tests {
    use base::{decode, encode};

    use super::*;

    #[test]
    fn the_best_number_of_probes_is_the_papers() {
        let probes = [8, 12, 16, 20].map(|bits| Shape::for_files(1_000, bits).probes());
        assert_eq!(probes, [6, 8, 11, 14]);
        assert_eq!(Shape::for_files(1_600, 20).bits(), 32_000);
    }

    #[test]
    fn a_shape_stays_within_what_may_be() {
        assert_eq!(Shape::for_files(u64::MAX, 200), Shape::new(1 << 25, 32).unwrap());
        assert_eq!(Shape::for_files(0, 0), Shape::new(1, 1).unwrap());
        for (bits, probes) in [(0, 1), (1, 0), ((1 << 25) + 1, 1), (1, 33)] {
            assert_eq!(Shape::new(bits, probes), None);
        }
    }

    #[test]
    fn bits_that_do_not_fit_the_shape_are_refused() {
        let mut bits = Bits::empty(Shape::new(70, 3).unwrap());
        assert_eq!(decode::<Bits>(&encode(&bits), 100).as_ref(), Ok(&bits));
        bits.words[1] = 1 << 6;
        assert!(decode::<Bits>(&encode(&bits), 100).is_err(), "a bit behind the last");
        bits.words[1] = 0;
        bits.words.push(0);
        assert!(decode::<Bits>(&encode(&bits), 100).is_err(), "a word too many");
        bits.words.truncate(1);
        assert!(decode::<Bits>(&encode(&bits), 100).is_err(), "a word too few");
    }
}
