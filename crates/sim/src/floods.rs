//! A world of machines that need time for what they are told, some of which send all that they can.
//!
//! Four machines sit in a group, and each wants something decided now and then. A fifth has no vote and is honest: it
//! would take the seat of a member that is not heard any more. The others have no vote either, and flood the four. The
//! real members, mailrooms and budgets run here; only the cost of work and the windows of connections are made up.
//!
//! Reading order: `machine` is one machine, `flooder` one that floods, `run` a world and what must hold in it,
//! `tamper` what a mutant does differently.

mod flooder;
mod machine;
mod run;
mod tamper;

pub use run::{explain, run};

#[cfg(test)]
mod tests;
