//! Hashing, always for a stated purpose.

use std::{fmt, str::FromStr};

use borsh::{BorshDeserialize, BorshSerialize};

/// What a hash is for. Equal bytes hashed for two purposes give unrelated digests, so a signature for
/// one thing can never pass for another. Ends with a version: a changed layout is a new purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain(&'static str);

impl Domain {
    /// A purpose, like `"machine certificate v1"`.
    pub const fn new(purpose: &'static str) -> Domain {
        Domain(purpose)
    }
}

/// A BLAKE3 hash of 256 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes for this purpose.
    pub fn of(domain: Domain, bytes: &[u8]) -> Digest {
        let mut hasher = Hasher::new(domain);
        hasher.update(bytes);
        hasher.finish()
    }

    /// The digest with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A digest in the making.
#[derive(Clone)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    /// Starts a digest for this purpose.
    pub fn new(domain: Domain) -> Hasher {
        Hasher(blake3::Hasher::new_derive_key(domain.0))
    }

    /// Takes more bytes. Where they are split makes no difference.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    pub fn finish(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }

    /// Starts anew for the same purpose, which is cheaper than another one.
    pub fn restart(&mut self) {
        self.0.reset();
    }

    /// Any number of bytes that depend on all bytes so far: the digest, and then on.
    pub fn fill(&self, bytes: &mut [u8]) {
        self.0.finalize_xof().fill(bytes);
    }
}

impl FromStr for Digest {
    type Err = crate::Malformed;

    fn from_str(text: &str) -> Result<Digest, crate::Malformed> {
        const WRONG: crate::Malformed =
            crate::Malformed::new("a digest is 64 hexadecimal digits in lower case");
        let mut bytes = [0; 32];
        if text.len() != 64 || text.bytes().any(|b| !matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(WRONG);
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| WRONG)?;
        }
        Ok(Digest(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Domain = Domain::new("test one v1");
    const TWO: Domain = Domain::new("test two v1");

    #[test]
    fn purposes_do_not_mix() {
        assert_ne!(Digest::of(ONE, b"bytes"), Digest::of(TWO, b"bytes"));
        assert_ne!(Digest::of(ONE, b"bytes"), Digest::of(ONE, b"bytez"));
    }

    #[test]
    fn where_bytes_are_split_makes_no_difference() {
        let mut hasher = Hasher::new(ONE);
        hasher.update(b"by");
        hasher.update(b"tes");
        assert_eq!(hasher.finish(), Digest::of(ONE, b"bytes"));
    }

    #[test]
    fn what_starts_anew_has_forgotten_everything_but_its_purpose() {
        let mut hasher = Hasher::new(ONE);
        hasher.update(b"other");
        hasher.restart();
        hasher.update(b"bytes");
        assert_eq!(hasher.finish(), Digest::of(ONE, b"bytes"));
    }

    #[test]
    fn more_bytes_begin_with_the_digest() {
        let mut hasher = Hasher::new(ONE);
        hasher.update(b"bytes");
        let mut bytes = [0; 256];
        hasher.fill(&mut bytes);
        assert_eq!(bytes[..32], *hasher.finish().as_bytes());
    }

    #[test]
    fn a_digest_reads_back_as_it_prints() {
        let digest = Digest::of(ONE, b"bytes");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for bad in ["", "12", &"g".repeat(64), &"A".repeat(64), &"é".repeat(32)] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
