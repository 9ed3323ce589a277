//! The four graphs of the load paper (figures 6 to 9), complete, as functions of their settings.

mod catalogue;
pub mod client;
pub mod directory;
pub mod host;
pub mod pager;
#[cfg(test)]
mod tests;

pub use catalogue::{all, find};
