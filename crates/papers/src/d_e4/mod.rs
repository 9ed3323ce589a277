//! D-E4: disjunctive leases let many open one file without a word between them.

mod run;

pub(crate) use run::run;
