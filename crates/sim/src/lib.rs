//! A deterministic world of machines, faults and checkers.
//!
//! It is a test of the product by the product's own code. Real clocks, disks and sockets have surprises
//! that no simulator draws; they are for black-box tests.
//!
//! Reading order: an [`Actor`] is a node's program around machines of the product; a [`World`] has
//! nodes, a [`Clock`] for each, a network between them and [`Faults`]; a [`Checker`] judges after every
//! event. Everything is drawn from a seed, and every event goes into a digest: what a seed shows, it
//! shows for ever.

mod actor;
mod clock;
mod counts;
mod faults;
mod fold;
mod longest;
mod marks;
mod network;
mod queue;

mod checker;
mod outcome;
mod world;

pub mod bytes;
pub mod decrees;
pub mod files;
pub mod floods;
pub mod groups;
pub mod growth;
pub mod leases;
pub mod reference;

mod summary;
mod workload;

pub use actor::{Actor, Node, Outbox};
pub use checker::{Broken, Checker, Violation};
pub use clock::Clock;
pub use counts::{Counts, Kind};
pub use faults::Faults;
pub use longest::Longest;
pub use marks::Marks;
pub use outcome::Outcome;
pub use summary::Summary;
pub use workload::{WORKLOADS, Workload, find};
pub use world::World;

#[cfg(test)]
mod tests;
