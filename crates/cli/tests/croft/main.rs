//! The real binary, as a black box.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "black-box tests start processes and read files"
)]

mod binary;
mod cell;
mod fsck;
mod graph;
mod help;
mod papers;
mod simulate;
mod status;
