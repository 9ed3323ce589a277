//! The envelope of everything one machine may say to another.
//!
//! A [`Frame`] is said and needs no answer, a [`Query`] is asked out of turn and has an [`Answer`]. Each carries the
//! version of the format, and what is to or from a group says which. Bytes are canonical: each value has one
//! encoding, and every other is refused. A test pins the hash of a specimen of each, so that a change of format never
//! goes unnoticed. An [`Ear`] is what a client believes of a group, wherever it runs.

mod envelope;
mod frame;
mod word;

mod ear;

mod answer;
mod io;
mod join;
mod pin;
mod plain;
mod query;

pub use answer::{Answer, Lead, Neighbour, Person, Rights, Survivor, Ticket};
pub use ear::Ear;
pub use envelope::{Envelope, VERSION, decode, encode};
pub use frame::{About, Audience, Frame, Message};
pub use io::{Io, IoReply};
pub use join::{Join, Whereabouts};
pub use pin::Pin;
pub use plain::plain;
pub use query::{Query, Whom};
pub use word::{Said, Slot, Word};

#[cfg(test)]
mod specimens;
