//! What travels as it stands: the version of the format in front, one encoding of each value, and a greatest size.

use base::Malformed;
use borsh::{BorshDeserialize, BorshSerialize};
use directory::message::Response;

use crate::{answer::Answer, frame::Frame, query::Query};

/// The version of the format that is spoken here.
pub const VERSION: u16 = 9;

/// A kind of thing that travels.
pub trait Envelope: BorshSerialize + BorshDeserialize {
    /// The most bytes of one, its version included.
    const BYTES_MAX: usize;
}

impl Envelope for Frame {
    const BYTES_MAX: usize = Frame::BYTES_MAX;
}

impl Envelope for Query {
    const BYTES_MAX: usize = Query::BYTES_MAX;
}

impl Envelope for Answer {
    const BYTES_MAX: usize = Answer::BYTES_MAX;
}

/// Members hand it to a client in a [`crate::Word`]: so they say the same, byte for byte.
impl Envelope for Response {
    const BYTES_MAX: usize = Frame::BYTES_MAX;
}

/// The bytes of something that travels.
pub fn encode<E: Envelope>(envelope: &E) -> Vec<u8> {
    base::encode(&(VERSION, envelope))
}

/// What these bytes are.
pub fn decode<E: Envelope>(bytes: &[u8]) -> Result<E, Malformed> {
    let (version, _) = bytes.split_first_chunk().ok_or(Malformed::new("less than a version"))?;
    if u16::from_le_bytes(*version) != VERSION {
        return Err(Malformed::new("a version of the format that is not spoken here"));
    }
    let (_, envelope): (u16, E) = base::decode(bytes, E::BYTES_MAX)?;
    Ok(envelope)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;
    use crate::specimens::{answers, frames, queries};

    /// What a specimen is called, its bytes, and what they are taken for.
    type Specimen = (&'static str, Vec<u8>, fn(&[u8]) -> Option<Vec<u8>>);

    /// The bytes as they are written again, if they are one.
    fn again<E: Envelope>(bytes: &[u8]) -> Option<Vec<u8>> {
        decode::<E>(bytes).ok().map(|envelope| encode(&envelope))
    }

    fn specimens() -> Vec<Specimen> {
        fn of<E: Envelope>(all: Vec<(&'static str, E)>) -> impl Iterator<Item = Specimen> {
            let specimen = |(name, one)| (name, encode(&one), again::<E> as fn(&[u8]) -> _);
            all.into_iter().map(specimen)
        }
        of(frames()).chain(of(queries())).chain(of(answers())).collect()
    }

    fn same<E: Envelope + PartialEq + Debug>(all: Vec<(&'static str, E)>) {
        for (name, one) in all {
            assert_eq!(decode(&encode(&one)), Ok(one), "{name}");
        }
    }

    #[test]
    fn what_was_encoded_is_what_is_decoded() {
        same(frames());
        same(queries());
        same(answers());
    }

    #[test]
    fn what_has_another_version_is_malformed_whatever_follows() {
        for (name, mut bytes, again) in specimens() {
            bytes[0] += 1;
            assert_eq!(again(&bytes), None, "{name}");
        }
        let malformed = decode::<Frame>(&[VERSION as u8 + 1, 0, 1]).unwrap_err().to_string();
        assert_eq!(malformed, "malformed bytes: a version of the format that is not spoken here");
        assert!(decode::<Frame>(&[]).is_err() && decode::<Query>(&[1]).is_err());
    }

    #[test]
    fn what_is_cut_or_goes_on_is_malformed() {
        for (name, mut bytes, again) in specimens() {
            for cut in 0..bytes.len() {
                assert_eq!(again(&bytes[..cut]), None, "{name} cut at {cut}");
            }
            bytes.push(0);
            assert_eq!(again(&bytes), None, "{name} goes on");
        }
    }

    #[test]
    fn a_changed_byte_is_something_else_or_nothing() {
        for (name, bytes, again) in specimens() {
            for at in 0..bytes.len() {
                for flip in [1, 0x80] {
                    let mut changed = bytes.clone();
                    changed[at] ^= flip;
                    if let Some(again) = again(&changed) {
                        assert_eq!(again, changed, "{name} at {at} has two encodings");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_over_its_limit_is_not_even_looked_at() {
        fn check<E: Envelope + Debug>() {
            let mut bytes = vec![0; E::BYTES_MAX + 1];
            bytes[..2].copy_from_slice(&VERSION.to_le_bytes());
            let malformed = decode::<E>(&bytes).unwrap_err().to_string();
            let limit = format!("bytes where at most {} may stand", E::BYTES_MAX);
            assert!(malformed.contains(&limit), "{malformed}");
        }
        check::<Frame>();
        check::<Query>();
        check::<Answer>();
    }

    #[test]
    fn noise_in_a_specimen_breaks_nothing() {
        let (specimens, mut rng) = (specimens(), base::Rng::new(7));
        for _ in 0..100_000 {
            let (_, bytes, _) = rng.pick(&specimens);
            let mut bytes = bytes.clone();
            for _ in 0..rng.below(4) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.below(256) as u8;
            }
            bytes.truncate(rng.below(bytes.len() as u64 + 1).max(1) as usize);
            for again in [again::<Frame>, again::<Query>, again::<Answer>] {
                if let Some(again) = again(&bytes) {
                    assert_eq!(again, bytes, "a second encoding");
                }
            }
        }
    }
}
