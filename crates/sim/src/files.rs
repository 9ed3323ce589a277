//! The file world: a group that manages one tree, machines that use it, and people who run programs.

mod actor;
mod desk;
mod ending;
mod history;
mod oracle;
mod program;
mod run;
mod server;
mod spoken;
mod step;
mod tamper;
mod witness;

pub use run::{explain, run};

#[cfg(test)]
mod tests;
