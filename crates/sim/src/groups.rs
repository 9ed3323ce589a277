//! The group world: members of one group, some of which lie, and customers who want things decided.
//!
//! Reading order: a `Tally` is what is replicated; a `Member` is a machine with a disk around the product's
//! `Replica`, and a `Vice` makes it lie; a `Customer` believes what `Trust` does; the `Oracle` judges.

mod actor;
mod customer;
mod disk;
mod leaders;
mod leading;
mod ledger;
mod member;
mod notary;
mod oracle;
mod run;
mod tally;
mod tamper;

pub use leaders::{explain as explain_leaders, run as run_leaders};
pub use run::{explain, explain_twins, run, run_twins};

#[cfg(test)]
mod tests;
