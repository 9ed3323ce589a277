//! The lease world: one grantor, a few clients, a small tree, and everybody wants the same.

mod actor;
mod book;
mod oracle;
mod place;
mod run;
mod server;
mod tamper;
mod user;

pub use run::{explain, run};

#[cfg(test)]
mod tests;
