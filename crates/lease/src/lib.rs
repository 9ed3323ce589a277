//! Both halves of the lease contract: what a group promises and what a client may believe.
//!
//! Reading order: [`Scope`] says what can be known, [`Kind`] how two ways of knowing it get on,
//! [`Terms`] how long a promise lasts on either side. The [`Grantor`] hands out knowledge and never
//! contradicts itself; the [`Holder`] acts on it and stops believing before the grantor stops
//! promising. They meet in [`message`] alone.
//!
//! Where we deviate from the paper (D23 to D26):
//! - A lease may cover a whole file or a whole subtree, less a stated few: what a client has created
//!   itself costs one entry. The paper has this for child names only.
//! - A lease is capped by its client's session, so a dead machine delays others by seconds.
//! - Who creates a file holds every field of it from birth, without asking: see `grantor::birth`.
//! - The grantor may answer with more than was asked. [`Policy`] has the paper's rules as switches.

mod scope;

mod kind;
mod terms;

pub mod message;

mod disjunction;
pub mod grantor;
pub mod holder;
mod index;

pub use grantor::{Grantor, Policy, Rule};
pub use holder::{Holder, Knowledge};
pub use kind::Kind;
pub use message::Client;
pub use scope::{Field, Mode, Name, Scope};
pub use terms::Terms;

#[cfg(test)]
mod script;
#[cfg(test)]
mod tests;
