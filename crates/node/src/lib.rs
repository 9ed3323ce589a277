//! One machine's server roles, wired together.
//!
//! Today there is one role: the directory, in a group of one. `order` is the seam: it turns commands
//! into decisions, each with its place and an agreed time, and hands them back once they are safe. A
//! group of one has its log for that; a replicated group will have its members' votes.

mod node;
mod order;
mod recovery;

pub use node::{Checkpoint, Input, Loaded, Node, Output, Page, Settings};
pub use order::Decision;
pub use recovery::Recovery;

#[cfg(test)]
mod tests;
