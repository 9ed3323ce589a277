//! Shared vocabulary: identifiers, time as data, hashing, signing, canonical bytes, seeded chance.
//!
//! Reading order: [`FileId`] and [`FileMap`] are the heart (D9 to D14 of the papers' mechanisms: how
//! every file is named, and which names belong together); [`Machine`] is the shape of everything
//! that decides; the rest is what those need.
//!
//! Where we deviate from the paper:
//! - D12 leaves the variant of γ′ open. Ours ends the unary part with a zero, so that the order of
//!   bits is the order of sequences.
//! - Identifiers have a stated maximum, [`FileId::BITS_MAX`]; the paper's are unbounded.

mod bits;
mod word;

mod codec;
mod file_id;
mod file_map;
mod gamma;
mod hash;
mod key;
mod machine;
mod rng;
mod sign;
mod time;

pub use codec::{Malformed, decode, encode};
pub use file_id::{BadId, Components, FileId, TooLong};
pub use file_map::{FileMap, NotOwner, Region};
pub use hash::{Digest, Domain, Hasher};
pub use machine::Machine;
pub use rng::Rng;
pub use sign::{BadSignature, PublicKey, SecretKey, Signature};
pub use time::{Duration, Instant};
