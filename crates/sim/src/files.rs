//! The file world: a group that manages one tree, machines that use it, and people who run programs.

mod actor;
mod circle;
mod desk;
mod disk;
mod ending;
mod history;
mod member;
mod oracle;
mod program;
mod register;
mod run;
mod spoken;
mod step;
mod tamper;
mod witness;

pub(crate) use circle::Stamp;
pub use run::{explain, explain_replicated, run, run_replicated};

#[cfg(test)]
mod tests;
