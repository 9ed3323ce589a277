//! Who may stand where: certificates, verifiable ids, ring, k-Choices.
//!
//! Certificates first. Reading order: a [`Cell`] is known by its root key, which says by a [`Warrant`] what an
//! [`Issuer`] may do and until when. An issuer signs a [`Permit`]; an [`Invitation`] is a permit with the key that it
//! names, and whoever has it makes as many machines' [`Certificate`]s with it as it is for, while the issuer is away. The
//! [`Secret`] of that key travels as a [`Code`], the permit as an [`Offer`]. A [`Renewal`] lets a certificate last longer, and a [`Renewer`] knows when to ask for one. A [`Revocation`] takes a key back, a machine's or a user's; a [`Register`] is what the machines of a
//! cell agree on: which machines have used which invitation, and which keys are revoked, those of issuers among
//! them.
//!
//! Users: an issuer says by an [`Enrolment`] who somebody is, and a cell remembers that as its [`People`]. A
//! permit names a machine's [`Patrons`]; each of them has to agree, by a [`Consent`], before the machine acts for
//! them. A [`Decree`] is whatever an issuer, or the root key, says to a whole cell, and [`Decrees`] is the machine by which
//! all of that cell hear of those that end something.
//!
//! Then places. From a machine's number follow the [`Position`]s at which it may stand, and whoever sees its
//! certificate can check a [`Claim`] (K3). The [`Ring`] is who stands where; a [`Rule`] says who is responsible
//! for what; a [`Policy`] weighs what would change hands, by each machine's [`Standing`], and a [`Mover`] is the
//! machine that asks the neighbours and decides. [`Fingers`] find a place in cells too large to know everybody,
//! and a [`Refresher`] keeps them true.
//!
//! Where we deviate from the paper on k-Choices:
//! - K3: positions are h(x ‖ i) and not h(x + i); the ring has 2^64 points and not 2^160.
//! - K7 leaves open the target of a virtual server whose machine has several, and K8 which of them moves:
//!   see [`Standing::mismatch`] and [`Restless::check`].
//! - K5 takes all of a server's work to lie in its part of the ring, and so to be the successor's without it. What
//!   it only passes on to the successor is the predecessor's: see [`Load`].
//! - K8 weighs what the neighbour of a server that goes would have to do. If that is too much, the neighbour goes
//!   as well, and ours weighs what comes to those beyond it: see [`Policy::departure`]. Without this and the last
//!   it is [`Policy::paper`].
//! - K19: two policies of ours stand beside the paper's four, see [`Refresh`].
//!
//! Nobody here knows what time it is: `now` is handed in, in seconds since 1970 by the wall clock.

mod refused;
mod users;
mod wiped;

mod cell;
mod signed;

mod issuer;

mod certificate;
mod patrons;
mod permit;
mod renewal;
mod revocation;
mod share;
mod user;

mod decree;
pub mod decrees;

mod code;
mod invitation;
mod register;

mod position;
mod ring;

mod rule;
mod standing;

mod policy;

pub mod mover;

mod fingers;
mod refresh;

pub mod optimal;

pub use cell::Cell;
pub use certificate::{Certificate, Vouched};
pub use code::{Code, Text};
pub use decree::Decree;
pub use decrees::{Decrees, Tidings};
pub use fingers::{Fingers, Hop, LEVELS_MAX, Link, aim, levels};
pub use invitation::{Invitation, Offer, Secret, Terms};
pub use issuer::{Issuer, IssuerRevocation, Power, Tenure, Warrant};
pub use mover::Mover;
pub use patrons::{Patrons, UserName};
pub use permit::Permit;
pub use policy::{Balance, Choice, Joining, Pick, Policy, Restless, Step};
pub use position::{Claim, Position};
pub use refresh::{Refresh, Refresher};
pub use refused::Refused;
pub use register::{Admission, Register};
pub use renewal::{Renewal, Renewer};
pub use revocation::Revocation;
pub use ring::Ring;
pub use rule::{BEYOND_MAX, Beyond, Exchange, Gap, Neighbour, Rule};
pub use share::{Share, Sharer};
pub use standing::{Load, Standing, Work};
pub use user::{Consent, Enrolment, People, Profile};
pub use users::Users;

#[cfg(test)]
mod tests;
