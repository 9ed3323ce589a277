//! The world of decrees: members and machines without a vote, some of them away, one of which was sent away and lies.

mod party;
mod run;
mod tamper;

pub use run::{explain, run};

#[cfg(test)]
mod tests;
