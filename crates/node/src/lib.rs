//! One machine's server roles, wired together.
//!
//! Today there is one role: a member of the directory's group. [`Member`] is both halves of it: `group` gives
//! commands their order and their time, `directory` applies them. A group of one is a group too, which has
//! nobody to ask. [`graph`] is where work can pile up in it, [`Mailroom`] decides who
//! is read first, and [`Queries`] who is answered first.

mod attendance;
mod book;
pub mod graph;
mod loaded;
pub mod mailroom;
mod member;
mod order;
pub mod queries;
mod recovery;

pub use attendance::Seating;
pub use book::{Book, Machine};
pub use directory::Settings;
pub use graph::Limits;
pub use loaded::{Loaded, Page};
pub use mailroom::Mailroom;
pub use member::{Checkpoint, Identity, Input, Member, Output};
pub use order::Order;
pub use queries::Queries;
pub use recovery::{Base, Recovery};

#[cfg(test)]
mod tests;
