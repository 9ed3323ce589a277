//! One machine's server roles, wired together.
//!
//! Today there is one role: the directory, in a group of one. `order` is the seam: it turns commands
//! into decisions, each with its place and an agreed time, and hands them back once they are safe. A
//! group of one has its log for that. [`member`] is the same for a group of several, which decide together; it
//! can be alone too, and will take the place of the other.

pub mod member;
mod node;
mod order;
mod recovery;

pub use node::{Checkpoint, Input, Loaded, Node, Output, Page, Settings};
pub use order::Decision;
pub use recovery::Recovery;

#[cfg(test)]
mod tests;
