//! A Bloom filter that can forget: it counts locally and shows plain bits (H6).

use crate::{
    Print,
    bloom::{Bits, Shape},
};

/// The count that is never left again. A bit may then stay set without a reason, which costs time; were
/// the count to wrap around, a path that is there could be missed.
const STICKY: u8 = 15;

/// A counting filter, and what others have been told of it.
#[derive(Clone, Debug)]
pub struct Counting {
    shape: Shape,
    /// Four bits for each position, two positions to a byte.
    counts: Vec<u8>,
    told: Bits,
    /// How many bits are not as told.
    changed: u32,
    /// Every position whose bit is not as told, and some that were so for a while.
    touched: Vec<u32>,
}

impl Counting {
    /// A filter that knows nothing, as others believe too.
    pub fn new(shape: Shape) -> Counting {
        let counts = vec![0; shape.bits().div_ceil(2) as usize];
        Counting { shape, counts, told: Bits::empty(shape), changed: 0, touched: Vec::new() }
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Takes a path in.
    pub fn add(&mut self, print: Print) {
        for at in self.shape.positions(print) {
            let count = self.count(at);
            if count < STICKY {
                self.set(at, count + 1);
            }
            if count == 0 {
                self.note(at, true);
            }
        }
    }

    /// Takes out a path that was taken in; any other could take bits from those that are there.
    pub fn remove(&mut self, print: Print) {
        for at in self.shape.positions(print) {
            let count = self.count(at);
            if count == 0 || count == STICKY {
                continue;
            }
            self.set(at, count - 1);
            if count == 1 {
                self.note(at, false);
            }
        }
    }

    /// How many bits are not as others were told.
    pub fn changed(&self) -> u32 {
        self.changed
    }

    /// The positions of bits that are not as others were told, in order. From now on others are told.
    pub fn take_changes(&mut self) -> Vec<u32> {
        let mut places = std::mem::take(&mut self.touched);
        places.sort_unstable();
        places.dedup();
        places.retain(|&at| (self.count(at) > 0) != self.told.get(at));
        places.iter().for_each(|&at| self.told.flip(at));
        self.changed = 0;
        places
    }

    /// The bits as others were told.
    pub fn told(&self) -> &Bits {
        &self.told
    }

    fn count(&self, at: u32) -> u8 {
        self.counts[at as usize / 2] >> (at % 2 * 4) & 15
    }

    fn set(&mut self, at: u32, count: u8) {
        let byte = &mut self.counts[at as usize / 2];
        *byte = *byte & !(15 << (at % 2 * 4)) | count << (at % 2 * 4);
    }

    fn note(&mut self, at: u32, is_set: bool) {
        if is_set == self.told.get(at) {
            self.changed -= 1;
            return;
        }
        self.changed += 1;
        self.touched.push(at);
        // What flips back and forth is noted each time. So that notes stay in proportion:
        if self.touched.len() > 2 * self.changed as usize + 1_024 {
            self.touched.sort_unstable();
            self.touched.dedup();
            let mut touched = std::mem::take(&mut self.touched);
            touched.retain(|&at| (self.count(at) > 0) != self.told.get(at));
            self.touched = touched;
        }
    }
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;

    fn print(number: u64) -> Print {
        let mut rng = Rng::new(number);
        Print::from_words(rng.next_u64(), rng.next_u64())
    }

    #[test]
    fn what_is_told_is_the_plain_filter_of_what_is_in() {
        let shape = Shape::for_files(100, 10);
        let mut rng = Rng::new(1);
        let (mut counting, mut present) = (Counting::new(shape), Vec::new());
        for round in 0..5_000u64 {
            if present.len() < 100 && rng.chance(0.5) {
                counting.add(print(round));
                present.push(round);
            } else if !present.is_empty() {
                let gone = present.swap_remove(rng.index(present.len()));
                counting.remove(print(gone));
            }
            if round % 97 == 0 {
                let mut expected = Bits::empty(shape);
                for at in present.iter().flat_map(|&number| shape.positions(print(number))) {
                    if !expected.get(at) {
                        expected.flip(at);
                    }
                }
                let before = counting.told().clone();
                let changed = counting.changed();
                let places = counting.take_changes();
                assert_eq!(places.len(), changed as usize);
                assert_eq!(counting.told(), &expected);
                let mut replica = before;
                places.iter().for_each(|&at| replica.flip(at));
                assert_eq!(replica, expected, "deltas lead to the same bits");
            }
        }
    }

    #[test]
    fn notes_stay_in_proportion_to_what_has_changed() {
        let mut counting = Counting::new(Shape::for_files(10, 10));
        for _ in 0..10_000 {
            counting.add(print(1));
            counting.remove(print(1));
        }
        assert_eq!(counting.changed(), 0);
        assert!(counting.touched.len() <= 1_100, "{}", counting.touched.len());
    }

    #[test]
    fn a_count_that_ran_over_never_loses_a_path() {
        let mut counting = Counting::new(Shape::for_files(10, 10));
        for _ in 0..40 {
            counting.add(print(1));
        }
        for _ in 0..39 {
            counting.remove(print(1));
        }
        counting.take_changes();
        assert!(counting.told().contains(print(1)));
    }
}
