//! Values of every shape that messages are made of: decoded from canonical bytes, or refused.

use std::collections::{BTreeMap, BTreeSet};

use base::{Digest, FileId, Instant, PublicKey, Signature, decode, encode};

type Shape = (
    (Instant, Option<Digest>, Vec<FileId>),
    BTreeMap<FileId, (PublicKey, Vec<Signature>)>,
    BTreeSet<String>,
    Result<Box<[u8]>, bool>,
);

/// Decodes the bytes as a value of many shapes; what is accepted must encode to the same bytes.
pub fn codec(bytes: &[u8]) {
    if let Ok(value) = decode::<Shape>(bytes, 4_096) {
        assert_eq!(encode(&value), bytes, "a second encoding");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Domain, Rng, SecretKey};

    fn sample() -> Vec<u8> {
        let digest = Digest::of(Domain::new("fuzz sample v1"), b"bytes");
        let key = SecretKey::from_seed([1; 32]);
        let ids = ["root", "1.3.5", "9.9.9.9.9.9.9.9.9.9"].map(|id| id.parse().unwrap());
        let signed = (key.public(), vec![key.sign(Domain::new("fuzz sample v1"), b"bytes")]);
        let value: Shape = (
            (Instant::from_secs(1), Some(digest), ids.to_vec()),
            ids.map(|id| (id, signed.clone())).into(),
            ["a".to_owned(), "b".to_owned()].into(),
            Ok(Box::new([1, 2, 3])),
        );
        encode(&value)
    }

    #[test]
    fn the_sample_is_accepted_whole() {
        assert!(decode::<Shape>(&sample(), 4_096).is_ok());
    }

    #[test]
    fn every_small_change_is_refused_or_canonical() {
        let mut rng = Rng::new(8);
        for _ in 0..20_000 {
            let mut bytes = sample();
            for _ in 0..=rng.below(3) {
                let at = rng.index(bytes.len());
                match rng.below(3) {
                    0 => bytes[at] ^= 1 << rng.below(8),
                    1 => bytes.truncate(at + 1),
                    _ => bytes.insert(at, rng.next_u64() as u8),
                }
            }
            codec(&bytes);
        }
    }
}
