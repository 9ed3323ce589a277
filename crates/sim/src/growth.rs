//! A cell that grows from one machine, while the network fails and machines crash: it is `node::Server` that runs here.
//!
//! Who has founded the cell is alone at first. The others ask to join, one after another, say where they are, take
//! seats, and one of them is sent away in the end. The same machine decides all that in production; only disks,
//! connections and the threads that ask others are made up.
//!
//! Reading order: `machine` is one machine, `run` a world and what must hold in it, `tamper` what a mutant does
//! differently.

mod machine;
mod run;
mod tamper;

pub use run::{explain, run};

#[cfg(test)]
mod tests;
