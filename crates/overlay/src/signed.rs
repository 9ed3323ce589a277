//! A statement with a signature, and with its bytes as they came.

use std::fmt;

use base::{
    BadSignature, Digest, Domain, Malformed, PublicKey, SecretKey, Signature, decode, encode,
};
use borsh::{BorshDeserialize, BorshSerialize, io};

/// What can be signed.
pub(crate) trait Statement: BorshSerialize + BorshDeserialize {
    /// What its signature is for.
    const SIGNED: Domain;
    /// What its digest is for.
    const NAMED: Domain;
    /// The most bytes that it takes.
    const BYTES_MAX: usize;
}

/// A statement of which somebody says who has signed it. Nothing is known of that before it is checked.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Signed<T> {
    /// What is signed, as it came; at most [`Statement::BYTES_MAX`].
    bytes: Box<[u8]>,
    /// What they say.
    claim: T,
    signature: Signature,
}

impl<T: Statement> Signed<T> {
    /// Signs a statement.
    pub(crate) fn new(claim: T, key: &SecretKey) -> Signed<T> {
        let bytes = encode(&claim).into_boxed_slice();
        assert!(bytes.len() <= T::BYTES_MAX, "who makes a statement looks at its size before");
        let signature = key.sign(T::SIGNED, &bytes);
        Signed { bytes, claim, signature }
    }

    /// What it says, whoever says so.
    pub(crate) fn claim(&self) -> &T {
        &self.claim
    }

    /// What is signed.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A name for what is said, whoever says so.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(T::NAMED, &self.bytes)
    }

    /// Checks that the owner of this key has signed it.
    pub(crate) fn verify(&self, key: &PublicKey) -> Result<&T, BadSignature> {
        key.verify(T::SIGNED, &self.bytes, &self.signature).map(|()| &self.claim)
    }
}

impl<T: fmt::Debug> fmt::Debug for Signed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signed").field(&self.claim).field(&self.signature).finish()
    }
}

impl<T> BorshSerialize for Signed<T> {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        self.bytes.serialize(writer)?;
        self.signature.serialize(writer)
    }
}

impl<T: Statement> BorshDeserialize for Signed<T> {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Signed<T>> {
        let count = u32::deserialize_reader(reader)? as usize;
        if count > T::BYTES_MAX {
            return Err(Malformed::new("a statement is longer than any may be").into());
        }
        let mut bytes = vec![0; count].into_boxed_slice();
        reader.read_exact(&mut bytes)?;
        let claim = decode(&bytes, T::BYTES_MAX)?;
        Ok(Signed { bytes, claim, signature: Signature::deserialize_reader(reader)? })
    }
}
