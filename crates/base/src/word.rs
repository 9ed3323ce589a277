//! A bit string in one machine word (D13): up to 48 bits sit in it, longer ones on the heap.
//!
//! This is the only module with `unsafe` in this crate. A member of a directory group keeps millions
//! of identifiers; an enum of "short" and "pointer" would take two words for each, this takes one.
//!
//! The lowest bit tells the two forms apart: it is one in the short form, and zero in a pointer,
//! because what it points to is aligned to at least eight bytes.
//!
//! ```text
//! short   63 ........ 16  15 ... 1  0
//!         the bits, left  length    1
//! long    pointer to (length, words)      lowest bit 0
//! ```
#![allow(unsafe_code, reason = "a word that is either an integer or a counted pointer")]

use std::mem::ManuallyDrop;

use triomphe::ThinArc;

use crate::bits::Bits;

/// Bits that fit without the heap.
pub(crate) const SHORT_MAX: usize = 48;

type Long = ThinArc<usize, u64>;

const _: () = assert!(size_of::<Long>() == 8, "identifiers need 64-bit pointers");
const _: () = assert!(size_of::<Word>() == 8, "one word is the point of it");
const _: () = assert!(align_of::<usize>() >= 2, "the lowest bit of a pointer must be free");

/// A bit string. Always in the short form if it can be.
#[repr(C)]
pub(crate) union Word {
    short: u64,
    long: ManuallyDrop<Long>,
}

impl Word {
    /// The empty bit string.
    pub(crate) const EMPTY: Word = Word { short: 1 };

    /// The bit string of `len` bits whose words `word` names; bits behind `len` must be zero.
    pub(crate) fn new(len: usize, word: impl Fn(usize) -> u64) -> Word {
        if len <= SHORT_MAX {
            return Word { short: word(0) | (len as u64) << 1 | 1 };
        }
        let words = (0..len.div_ceil(64)).map(word);
        Word { long: ManuallyDrop::new(Long::from_header_and_iter(len, words)) }
    }

    /// The word itself, in the short form. Such words compare as the bit strings do: equal bits are
    /// told apart by the length below them.
    #[inline]
    pub(crate) fn as_short(&self) -> Option<u64> {
        // SAFETY: both forms are 64 initialised bits; the bits of a pointer may be read as a number.
        let short = unsafe { self.short };
        (short & 1 == 1).then_some(short)
    }

    #[inline]
    fn as_long(&self) -> Option<&ManuallyDrop<Long>> {
        match self.as_short() {
            Some(_) => None,
            // SAFETY: the lowest bit is zero, so `new` or `clone` put a pointer here.
            None => Some(unsafe { &self.long }),
        }
    }

    pub(crate) fn bits(&self) -> Bits<'_> {
        match (self.as_short(), self.as_long()) {
            (_, Some(long)) => {
                Bits { head: long.slice[0], tail: &long.slice[1..], len: long.header.header }
            }
            (short, None) => {
                let short = short.unwrap_or(1);
                Bits { head: short & !0xffff, tail: &[], len: (short as u16 >> 1) as usize }
            }
        }
    }
}

impl Clone for Word {
    #[inline]
    fn clone(&self) -> Word {
        match self.as_long() {
            None => Word { short: self.as_short().unwrap_or(1) },
            Some(long) => Word { long: long.clone() },
        }
    }
}

impl Drop for Word {
    #[inline]
    fn drop(&mut self) {
        if self.as_short().is_none() {
            // SAFETY: the lowest bit is zero, so this is the pointer; it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.long) }
        }
    }
}
