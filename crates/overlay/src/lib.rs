//! Who may stand where: certificates, verifiable ids, ring, k-Choices.
//!
//! Only certificates are built so far. Reading order: a [`Cell`] is known by the key of its authority, which
//! signs a [`Permit`]; an [`Invitation`] is a permit with the one-use key that it names, and whoever has it
//! makes one machine's [`Certificate`] with it, while the authority is away. An invitation travels as a
//! [`Code`]. A [`Revocation`] takes a machine's certificates back; a [`Register`] is what the machines of a
//! cell agree on: which machine was first to use an invitation, and which are revoked.
//!
//! Nobody here knows what time it is: `now` is handed in, in seconds since 1970 by the wall clock.

mod refused;
mod users;
mod wiped;

mod cell;
mod signed;

mod certificate;
mod permit;
mod revocation;

mod code;
mod invitation;
mod register;

pub use cell::Cell;
pub use certificate::{Certificate, Vouched};
pub use code::{Code, Text};
pub use invitation::{Invitation, Terms};
pub use permit::Permit;
pub use refused::Refused;
pub use register::{Admission, Register};
pub use revocation::Revocation;
pub use users::Users;

#[cfg(test)]
mod tests;
