//! Bit strings, most significant bit first, packed into 64-bit words with zeros behind the end.

use std::cmp::Ordering;

/// Words that the longest bit string needs.
pub(crate) const WORDS_MAX: usize = BITS_MAX / 64;
/// The longest bit string.
pub(crate) const BITS_MAX: usize = 2_048;

/// A borrowed bit string: its first word by value, because short ones live inside another word.
///
/// Every bit behind `len` is zero, and there is no word behind the last bit.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Bits<'a> {
    pub(crate) head: u64,
    pub(crate) tail: &'a [u64],
    pub(crate) len: usize,
}

impl<'a> Bits<'a> {
    pub(crate) fn word(&self, index: usize) -> u64 {
        match index.checked_sub(1) {
            None => self.head,
            Some(index) => self.tail.get(index).copied().unwrap_or(0),
        }
    }

    /// The 64 bits from `position` on, with zeros behind the end.
    pub(crate) fn window(&self, position: usize) -> u64 {
        let (index, shift) = (position / 64, position % 64);
        match shift {
            0 => self.word(index),
            _ => self.word(index) << shift | self.word(index + 1) >> (64 - shift),
        }
    }

    pub(crate) fn is_prefix_of(&self, other: &Bits<'_>) -> bool {
        if self.len > other.len {
            return false;
        }
        let (whole, rest) = (self.len / 64, self.len % 64);
        (0..whole).all(|index| self.word(index) == other.word(index))
            && (rest == 0 || (self.word(whole) ^ other.word(whole)) >> (64 - rest) == 0)
    }
}

/// Bit by bit, a prefix before what it is a prefix of.
impl Ord for Bits<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        // Where one runs out of words first, the other is longer, and so greater whether the words
        // that it has left are zeros or not: just what the order of slices says.
        self.head
            .cmp(&other.head)
            .then_with(|| self.tail.cmp(other.tail))
            .then_with(|| self.len.cmp(&other.len))
    }
}

impl PartialOrd for Bits<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A bit string under construction, on the stack.
pub(crate) struct Builder {
    words: [u64; WORDS_MAX],
    len: usize,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder { words: [0; WORDS_MAX], len: 0 }
    }

    /// Appends the lowest `count` bits of `value` (at most 128); false, and no change, if they no
    /// longer fit.
    #[must_use]
    pub(crate) fn push(&mut self, value: u128, count: usize) -> bool {
        if self.len + count > BITS_MAX {
            return false;
        }
        let first = self.len / 64;
        let behind = (self.len + count).div_ceil(64);
        for index in first..behind {
            self.words[index] |= placed(value, count, self.len, index);
        }
        self.len += count;
        true
    }

    pub(crate) fn bits(&self) -> Bits<'_> {
        let count = self.len.div_ceil(64);
        Bits { head: self.words[0], tail: &self.words[1..count.max(1)], len: self.len }
    }
}

/// What word `index` of a bit string holds of a value of `count` bits that starts at `position`.
pub(crate) fn placed(value: u128, count: usize, position: usize, index: usize) -> u64 {
    debug_assert!(count <= 128);
    if count == 0 {
        return 0;
    }
    let left = value << (128 - count);
    let start = 64 * index;
    let shifted = if position >= start {
        left.checked_shr((position - start) as u32)
    } else {
        left.checked_shl((start - position) as u32)
    };
    (shifted.unwrap_or(0) >> 64) as u64
}
