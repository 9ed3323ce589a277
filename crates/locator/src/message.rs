//! What groups tell each other of their filters.

use std::io::{self, Read};

use base::Malformed;
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    bloom::{Bits, Shape},
    fuse::{Fuse, Grid},
};

/// Which filter of a group is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum Tier {
    /// First level: what was used recently, accurate.
    Recent,
    /// Second level: all paths, compact.
    All,
    /// Second level: paths that came since the filter of all was built, where that is static.
    Fresh,
}

impl Tier {
    /// Each of them.
    pub const EACH: [Tier; 3] = [Tier::Recent, Tier::All, Tier::Fresh];

    pub(crate) fn index(self) -> usize {
        match self {
            Tier::Recent => 0,
            Tier::All => 1,
            Tier::Fresh => 2,
        }
    }
}

/// News of one filter.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Update {
    /// Of which.
    pub tier: Tier,
    /// Which state this makes; each has a greater one than those before.
    pub version: u64,
    /// What is new.
    pub body: Body,
}

/// What is new of a filter.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Body {
    /// There is none, or none any more.
    Nothing,
    /// A Bloom filter, whole.
    Bits(Bits),
    /// Bits of the Bloom filter that are no longer what they were.
    Changes {
        /// The version that had them.
        since: u64,
        /// Where.
        places: Places,
    },
    /// A fuse filter, whole. Only of all paths.
    Fuse(Fuse),
}

impl Update {
    /// The longest update: the largest filter, with what stands before it.
    pub const BYTES_MAX: usize = {
        let bits = Shape::BITS_MAX as usize / 8;
        let cells = Grid::CELLS_MAX as usize;
        (if bits > cells { bits } else { cells }) + 64
    };
}

/// Positions in ascending order, as the gaps between them: seven bits to a byte, the lowest first, and the
/// highest bit set in all but the last byte of a gap.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize)]
pub struct Places(Vec<u8>);

impl Places {
    /// These positions, which ascend.
    pub fn new(places: &[u32]) -> Places {
        let mut bytes = Vec::with_capacity(places.len() + places.len() / 4);
        let mut next = 0;
        for &place in places {
            assert!(place >= next, "places ascend");
            let mut gap = place - next;
            while gap >= 0x80 {
                bytes.push(gap as u8 | 0x80);
                gap >>= 7;
            }
            bytes.push(gap as u8);
            next = place + 1;
        }
        Places(bytes)
    }

    /// The positions.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let mut bytes = self.0.as_slice();
        let mut next = 0u32;
        std::iter::from_fn(move || {
            let place = next.checked_add(take_gap(&mut bytes)?)?;
            next = place.checked_add(1)?;
            Some(place)
        })
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Whether every byte belongs to a gap in its one spelling, and the last place is below 2³² - 1.
    fn is_well_formed(&self) -> bool {
        let (mut bytes, mut next) = (self.0.as_slice(), 0u32);
        while !bytes.is_empty() {
            let place = take_gap(&mut bytes).and_then(|gap| next.checked_add(gap));
            match place.and_then(|place| place.checked_add(1)) {
                Some(behind) => next = behind,
                None => return false,
            }
        }
        true
    }
}

fn take_gap(bytes: &mut &[u8]) -> Option<u32> {
    let len = bytes.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let (gap, rest) = bytes.split_at(len);
    if len > 5 || (len > 1 && gap[len - 1] == 0) {
        return None;
    }
    let value = gap.iter().rev().fold(0u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
    *bytes = rest;
    u32::try_from(value).ok()
}

impl BorshDeserialize for Places {
    fn deserialize_reader<R: Read>(reader: &mut R) -> io::Result<Places> {
        let places = Places(Vec::deserialize_reader(reader)?);
        if !places.is_well_formed() {
            return Err(Malformed::new("places ascend, each in its one spelling").into());
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use base::{decode, encode};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_come_back_as_they_were(places in proptest::collection::btree_set(0..u32::MAX, 0..50)) {
            let places: Vec<u32> = places.into_iter().collect();
            let coded = Places::new(&places);
            prop_assert_eq!(coded.iter().collect::<Vec<_>>(), places);
            prop_assert_eq!(decode(&encode(&coded), 1_000), Ok(coded));
        }

        #[test]
        fn bytes_are_places_in_their_one_spelling_or_refused(bytes: Vec<u8>) {
            if let Ok(places) = decode::<Places>(&encode(&bytes), 1_000) {
                let list: Vec<u32> = places.iter().collect();
                prop_assert_eq!(Places::new(&list), places);
            }
        }
    }

    #[test]
    fn gaps_that_run_over_and_second_spellings_are_refused() {
        for bytes in [
            &[0x80][..],
            &[0x80, 0x00],
            &[0xff, 0xff, 0xff, 0xff, 0x1f],
            &[0xff, 0xff, 0xff, 0xff, 0x0f],
            &[0xfe, 0xff, 0xff, 0xff, 0x0f, 0x00],
            &[0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
        ] {
            assert!(decode::<Places>(&encode(&bytes.to_vec()), 100).is_err(), "{bytes:x?}");
        }
    }

    #[test]
    fn the_largest_filters_fit_into_an_update() {
        let bits = Bits::empty(Shape::for_files(u64::MAX, 8));
        let update = Update { tier: Tier::All, version: 1, body: Body::Bits(bits) };
        assert!(encode(&update).len() <= Update::BYTES_MAX);
    }
}
