//! Canonical, bounded bytes: each value has one encoding, and decoding refuses every other.
//!
//! The format is borsh, the one format we tried that refuses second encodings by itself. Still, hash
//! and sign bytes as they were received, never a value encoded anew.
//!
//! No message type may be recursive: decoding one could use up the stack.

use std::{borrow::Cow, fmt, io};

use borsh::{BorshDeserialize, BorshSerialize};

/// Bytes that nobody honest has made. Evidence, never a reason to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    what: Cow<'static, str>,
}

impl Malformed {
    /// Says what is wrong with the bytes.
    pub const fn new(what: &'static str) -> Malformed {
        Malformed { what: Cow::Borrowed(what) }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed bytes: {}", self.what)
    }
}

impl std::error::Error for Malformed {}

impl From<Malformed> for io::Error {
    fn from(malformed: Malformed) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, malformed)
    }
}

impl From<io::Error> for Malformed {
    fn from(error: io::Error) -> Malformed {
        match error.downcast::<Malformed>() {
            Ok(malformed) => malformed,
            Err(error) => Malformed { what: Cow::Owned(error.to_string()) },
        }
    }
}

/// The bytes of a value.
///
/// # Panics
///
/// If the value has no canonical bytes: a float that is not a number, a list of things without size.
pub fn encode<T: BorshSerialize>(value: &T) -> Vec<u8> {
    borsh::to_vec(value).expect("a message has canonical bytes")
}

/// The value of these bytes, all of them, if there are at most `bytes_max`.
///
/// What decoding allocates is bounded by the bytes given, not by what they claim: a list grows as its
/// elements arrive, and for a string of bytes at most 1 MiB is set aside before they do.
pub fn decode<T: BorshDeserialize>(bytes: &[u8], bytes_max: usize) -> Result<T, Malformed> {
    if bytes.len() > bytes_max {
        let what = format!("{} bytes where at most {bytes_max} may stand", bytes.len());
        return Err(Malformed { what: Cow::Owned(what) });
    }
    Ok(borsh::from_slice(bytes)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::FileId;

    type Message = (u64, Vec<FileId>, BTreeMap<String, Option<bool>>);

    fn message() -> Message {
        let ids = ["root", "1", "1.1", "4.1000000.7"].map(|id| id.parse().unwrap());
        let flags = [("a", Some(true)), ("b", None)].map(|(name, flag)| (name.to_owned(), flag));
        (7, ids.to_vec(), flags.into())
    }

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        let bytes = encode(&message());
        assert_eq!(decode::<Message>(&bytes, bytes.len()), Ok(message()));
    }

    #[test]
    fn the_bound_comes_before_the_work() {
        let bytes = encode(&message());
        let refusal = decode::<Message>(&bytes, bytes.len() - 1).unwrap_err();
        assert_eq!(refusal.to_string(), "malformed bytes: 39 bytes where at most 38 may stand");
    }

    #[test]
    fn every_cut_and_every_extra_byte_is_refused() {
        let mut bytes = encode(&message());
        for cut in 0..bytes.len() {
            assert!(decode::<Message>(&bytes[..cut], 1_000).is_err(), "cut at {cut}");
        }
        bytes.push(0);
        assert!(decode::<Message>(&bytes, 1_000).is_err());
    }

    #[test]
    fn second_encodings_are_refused() {
        let unordered = [&[2, 0, 0, 0][..], &[9, 0], &[8, 0]].concat();
        assert!(decode::<BTreeMap<u8, u8>>(&unordered, 100).is_err());
        let twice = [&[2, 0, 0, 0][..], &[9, 0], &[9, 0]].concat();
        assert!(decode::<BTreeMap<u8, u8>>(&twice, 100).is_err());
        assert!(decode::<Option<u8>>(&[2, 0], 100).is_err());
        assert!(decode::<bool>(&[2], 100).is_err());
    }

    #[test]
    fn a_claim_of_four_billion_elements_is_refused_when_they_do_not_come() {
        let claim = [0xff; 4];
        assert!(decode::<Vec<u8>>(&claim, 100).is_err());
        assert!(decode::<String>(&claim, 100).is_err());
        assert!(decode::<Vec<FileId>>(&claim, 100).is_err());
        assert!(decode::<BTreeMap<u64, u64>>(&claim, 100).is_err());
    }

    #[test]
    fn a_reason_survives_the_way_through_the_codec() {
        let refusal = decode::<FileId>(&[0b1000_0001], 100).unwrap_err();
        assert_eq!(refusal, Malformed::new("an identifier is not padded with zeros"));
    }
}
