//! The envelope of everything one machine may say to another.
//!
//! Bytes are canonical: each message has one encoding, and every other is refused. A test pins the hash
//! of a specimen of each, so that a change of format never goes unnoticed.

mod envelope;
mod word;

pub use envelope::{Audience, BYTES_MAX, Message, VERSION, open, seal};
pub use word::{Said, Slot, Word};

#[cfg(test)]
mod specimens;
