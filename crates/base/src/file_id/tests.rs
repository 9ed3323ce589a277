//! What identifiers promise, checked against plain sequences of integers.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
    num::NonZeroU64,
};

use proptest::{collection::vec, prelude::*};

use crate::{FileId, Malformed, Rng, TooLong, decode, encode};

fn id(text: &str) -> FileId {
    text.parse().unwrap()
}

fn of(components: &[u64]) -> FileId {
    let components: Vec<_> = components.iter().map(|&n| NonZeroU64::new(n).unwrap()).collect();
    FileId::try_from(&components[..]).unwrap()
}

fn hash(id: &FileId) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// The published length of a code, computed from the decimal digits alone.
fn gamma_prime_len(n: u64) -> usize {
    let mut power = 1u128;
    let mut log = 0;
    while power * 2 <= u128::from(n) {
        power *= 2;
        log += 1;
    }
    2 * log + 1
}

/// Mostly small integers, as in real trees, but every size up to the greatest.
fn component() -> impl Strategy<Value = u64> {
    (0u32..64, any::<u64>()).prop_map(|(shift, bits)| ((bits | 1 << 63) >> (63 - shift)).max(1))
}

/// Short ones, long ones, and some that leave room for just one more integer of any size.
fn components() -> impl Strategy<Value = Vec<u64>> {
    let longest = vec(1u64..6, 600..650).prop_map(|mut components| {
        let bits =
            |components: &[u64]| components.iter().map(|&n| gamma_prime_len(n)).sum::<usize>();
        while bits(&components) > FileId::BITS_MAX - 127 {
            components.pop();
        }
        components
    });
    prop_oneof![4 => vec(1u64..6, 0..12), 4 => vec(component(), 0..12), 1 => longest]
}

#[test]
fn identifiers_are_one_word() {
    assert_eq!(size_of::<FileId>(), 8);
}

#[test]
fn identifiers_print_and_parse_as_dotted_integers() {
    for text in ["root", "1", "1.3.5", "18446744073709551615.1"] {
        assert_eq!(id(text).to_string(), text);
    }
    assert_eq!(format!("{:?}", id("1.3")), "⟨1.3⟩");
}

#[test]
fn texts_with_a_second_reading_are_refused() {
    for text in [
        "",
        ".",
        "1.",
        ".1",
        "1..2",
        "0",
        "1.0",
        "01",
        "+1",
        "-1",
        " 1",
        "1 ",
        "1.a",
        "Root",
        "18446744073709551616",
    ] {
        assert!(text.parse::<FileId>().is_err(), "{text:?}");
    }
    assert_eq!(
        "1.x".parse::<FileId>().unwrap_err().to_string(),
        "not an identifier: `x` in `1.x` is not an integer from 1 to 2^64 - 1; write it like 1.3.5, or root"
    );
}

#[test]
fn ones_all_the_way_down_stay_apart_in_memory_and_in_keys() {
    let mut chain = vec![FileId::ROOT];
    for _ in 0..200 {
        chain.push(chain.last().unwrap().child(NonZeroU64::MIN).unwrap());
    }
    assert!(chain.is_sorted_by(|a, b| a < b));
    let keys: Vec<_> = chain.iter().map(FileId::to_key).collect();
    assert!(keys.is_sorted_by(|a, b| a < b));
    assert_eq!(chain.iter().map(hash).collect::<BTreeSet<_>>().len(), chain.len());
}

#[test]
fn keys_are_the_documented_bytes() {
    assert_eq!(FileId::ROOT.to_key(), [0b0000_0000]);
    assert_eq!(id("1").to_key(), [0b1000_0000]);
    assert_eq!(id("1.1").to_key(), [0b1010_0000]);
    assert_eq!(id("1.3.5").to_key(), [0b1011_0111, 0b1001_0000]);
    assert_eq!(id("1.1.1.1").to_key(), [0b1010_1010, 0b0000_0000]);
}

#[test]
fn the_longest_identifier_is_stated_and_beyond_it_a_child_is_refused() {
    let mut longest = FileId::ROOT;
    while let Ok(child) = longest.child(NonZeroU64::MIN) {
        longest = child;
    }
    assert_eq!(longest.bit_len(), FileId::BITS_MAX);
    assert_eq!(longest.child(NonZeroU64::MIN), Err(TooLong));
    assert_eq!(longest.next_sibling(), None, "the code of 2 is two bits longer");
    let third_last = longest.prefixes().nth(FileId::BITS_MAX - 2).unwrap();
    assert_eq!(longest.region_end(), third_last.next_sibling(), "the first that has room");
    let key = longest.to_key();
    assert_eq!(key.len(), FileId::KEY_MAX);
    assert_eq!(FileId::from_key(&key), Ok(longest.clone()));
    assert_eq!(longest.to_string().parse(), Ok(longest.clone()));

    let one_more = [&[0b1010_1010; 512][..], &[0b1000_0000]].concat();
    assert!(FileId::from_key(&one_more).is_err());
    assert!(format!("{longest}.1").parse::<FileId>().is_err());
}

#[test]
fn keys_that_nobody_wrote_are_refused() {
    let refused = |key: &[u8]| FileId::from_key(key).unwrap_err();
    let cut = Malformed::new("an identifier ends before its end mark");
    assert_eq!(refused(&[]), cut);
    assert_eq!(refused(&[0b1010_1010]), cut);
    assert_eq!(refused(&[0b1110_0000][..0]), cut);
    assert_eq!(refused(&[0xff]), cut);
    let padding = Malformed::new("an identifier is not padded with zeros");
    assert_eq!(refused(&[0b0000_0001]), padding);
    assert_eq!(refused(&[0b1010_0100]), padding);
    let extra = Malformed::new("bytes follow the end of an identifier");
    assert_eq!(refused(&[0, 0]), extra);
    let over = Malformed::new("an integer of an identifier is over 2^64 - 1");
    assert_eq!(refused(&[0xff; 40]), over);
}

#[test]
fn a_key_in_a_longer_text_takes_only_its_own_bytes() {
    let mut bytes = id("1.3.5").to_key();
    id("7").append_key(&mut bytes);
    bytes.push(99);
    let mut rest = &bytes[..];
    assert_eq!(FileId::read_key(&mut rest), Ok(id("1.3.5")));
    assert_eq!(FileId::read_key(&mut rest), Ok(id("7")));
    assert!(FileId::read_key(&mut rest).is_err());
    assert_eq!(rest, [99], "what is no identifier stays");
}

#[test]
fn millions_of_random_identifiers_survive_every_way_there_and_back() {
    let mut rng = Rng::new(20_061_106);
    for round in 0..2_000_000u32 {
        let mut expected = Vec::with_capacity(16);
        for _ in 0..rng.below(if round % 8 == 0 { 16 } else { 8 }) {
            let shift = rng.below(if round % 16 == 0 { 64 } else { 8 });
            expected.push((rng.next_u64() | 1 << 63) >> (63 - shift));
        }
        let id = of(&expected);
        assert!(id.components().map(NonZeroU64::get).eq(expected.iter().copied()), "{expected:?}");
        assert_eq!(id.bit_len(), expected.iter().map(|&n| gamma_prime_len(n)).sum::<usize>());
        assert_eq!(FileId::from_key(&id.to_key()).as_ref(), Ok(&id), "{expected:?}");
    }
}

proptest! {
    #[test]
    fn identifiers_compare_as_their_sequences_do(a in components(), b in components()) {
        let (x, y) = (of(&a), of(&b));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x == y, a == b);
        prop_assert_eq!(x.to_key().cmp(&y.to_key()), a.cmp(&b));
        if a == b {
            prop_assert_eq!(hash(&x), hash(&y));
        }
    }

    #[test]
    fn a_bit_prefix_is_a_sequence_prefix(a in components(), b in components(), cut in any::<prop::sample::Index>()) {
        prop_assert_eq!(of(&a).is_prefix_of(&of(&b)), b.starts_with(&a));
        let start = &b[..cut.index(b.len() + 1)];
        prop_assert!(of(start).is_prefix_of(&of(&b)));
    }

    #[test]
    fn family_ties_are_those_of_sequences(a in components(), n in component()) {
        let parent = of(&a);
        let child = parent.child(NonZeroU64::new(n).unwrap()).unwrap();
        prop_assert_eq!(&child, &of(&[&a[..], &[n]].concat()));
        prop_assert_eq!(child.parent(), Some(parent.clone()));
        prop_assert_eq!(child.number().map(NonZeroU64::get), Some(n));
        prop_assert!(parent < child);
        let next = n.checked_add(1).map(|n| of(&[&a[..], &[n]].concat()));
        prop_assert_eq!(child.next_sibling(), next);
        let prefixes: Vec<_> = (0..=a.len()).map(|len| of(&a[..len])).collect();
        prop_assert_eq!(parent.prefixes().collect::<Vec<_>>(), prefixes);
    }

    #[test]
    fn a_region_is_one_contiguous_range(a in components(), b in components()) {
        let (prefix, other) = (of(&a), of(&b));
        let inside = other >= prefix && prefix.region_end().is_none_or(|end| other < end);
        prop_assert_eq!(inside, prefix.is_prefix_of(&other));
    }

    #[test]
    fn no_key_is_a_prefix_of_another(a in components(), b in components()) {
        prop_assert!(a == b || !of(&b).to_key().starts_with(&of(&a).to_key()));
    }

    #[test]
    fn identifiers_travel_through_the_codec(ids in vec(components().prop_map(|c| of(&c)), 0..8)) {
        prop_assert_eq!(decode::<Vec<FileId>>(&encode(&ids), 100_000), Ok(ids));
    }

    #[test]
    fn whatever_bytes_decode_are_the_bytes_that_encode(bytes in vec(any::<u8>(), 0..24)) {
        if let Ok(id) = FileId::from_key(&bytes) {
            prop_assert_eq!(id.to_key(), bytes);
        }
    }

    #[test]
    fn clones_of_long_identifiers_outlive_their_source(a in vec(component(), 8..12)) {
        let source = of(&a);
        let clones = vec![source.clone(); 3];
        drop(source);
        prop_assert!(clones.iter().all(|clone| *clone == of(&a)));
    }
}
