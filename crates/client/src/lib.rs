//! A file system as a program sees it.
//!
//! Reading order: a [`Call`] is what a program asks, a [`Client`] is what answers it. The client does
//! what it is asked on what it knows (`view`, `facts`), under leases; what it does not know it finds out
//! (`attempt`, `questions`), and what will be missed next along with it (`ahead`); what it does takes effect here at once and is pushed to the group later
//! (`outcome`, `pending`, `merge`). Where things wait, and how long a wait can get, says [`graph`].
//!
//! Where we deviate from the paper and from POSIX:
//! - A file is closed when nobody else can believe any more that it is open: closing may take a message
//!   if somebody has asked meanwhile whether it is. The file is let go later, by whoever closed it last.
//! - Create and unlink of a file that nobody has heard of leave no trace, not even in the times of the
//!   directory.

mod call;
mod client;
pub mod graph;

mod facts;
mod handles;
mod supply;
mod view;

mod ahead;
mod attempt;
mod look;
mod questions;
mod queue;

mod merge;
mod outcome;
mod pending;

mod heard;

pub use call::{Call, Failure, Modes, Reply, Ways};
pub use client::{Client, Input, Output, Settings, Wanted};

#[cfg(test)]
mod script;
#[cfg(test)]
mod tests;
