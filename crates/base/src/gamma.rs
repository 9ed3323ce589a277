//! γ′ codes of positive integers (D12), in two forms.
//!
//! With k the place of the leading one of n, the code of n is k ones, a zero, and the k bits below
//! the leading one: 2k + 1 bits. More ones mean a greater n, so codes compare as integers do; no code
//! is a prefix of another, so a sequence is a prefix of another exactly where its bits are.
//!
//! ```text
//! n          1    2    3    4      5      ...
//! code       0    100  101  11000  11001
//! key code   10   1100 1101 111000 111001        0 ends the sequence
//! ```
//!
//! A bit string in memory knows its length. Bytes do not, and padding would make ⟨1⟩, ⟨1.1⟩ and
//! ⟨1.1.1⟩ the same. So in keys each code starts with one more one, which frees the code `0` for the
//! end of the sequence: it sorts before every continuation, so a parent sorts before its children.

use std::num::NonZeroU64;

/// The code of an integer, in the lowest bits, and how many there are: at most 127.
pub(crate) fn code(n: NonZeroU64) -> (u128, usize) {
    let k = n.ilog2();
    let ones = (1u128 << k) - 1;
    let below = u128::from(n.get() ^ 1 << k);
    (ones << (k + 1) | below, 2 * k as usize + 1)
}

/// The code of an integer within a key, in the lowest bits, and how many there are: at most 128.
pub(crate) fn key_code(n: NonZeroU64) -> (u128, usize) {
    let (code, len) = code(n);
    (code | 1 << len, len + 1)
}

/// The integer with `ones` ones before the zero, and these bits below its leading one.
pub(crate) fn integer(ones: u32, below: u64) -> NonZeroU64 {
    NonZeroU64::new(1 << ones | below).expect("the leading one is set")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text((code, len): (u128, usize)) -> String {
        format!("{code:0len$b}")
    }

    #[test]
    fn codes_are_those_of_the_table() {
        let codes = |form: fn(NonZeroU64) -> (u128, usize)| {
            (1..=5).map(|n| text(form(NonZeroU64::new(n).unwrap()))).collect::<Vec<_>>()
        };
        assert_eq!(codes(code), ["0", "100", "101", "11000", "11001"]);
        assert_eq!(codes(key_code), ["10", "1100", "1101", "111000", "111001"]);
    }

    #[test]
    fn the_greatest_integer_has_the_longest_code() {
        let (code, len) = code(NonZeroU64::MAX);
        assert_eq!((len, code.count_ones()), (127, 126));
        assert_eq!(key_code(NonZeroU64::MAX).1, 128);
        assert_eq!(integer(63, (1 << 63) - 1), NonZeroU64::MAX);
    }
}
