//! The digest by which members tell states apart, for those who make states up.

use base::{Digest, Domain};

const STATE: Domain = Domain::new("group state v1");

/// The digest of a state, as members vouch for it.
pub fn digest_of(state: &[u8]) -> Digest {
    Digest::of(STATE, state)
}
