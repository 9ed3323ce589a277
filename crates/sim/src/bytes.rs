//! The world of bytes: a few files, machines that hold their bytes, programs that read and write them.
//!
//! What decides about bytes is the product's: `content`, over the product's client, directory and leases. The shell
//! around it does what `mount` does, in the same order, and stands for the disk, the kernel and the threads.

mod actor;
mod disk;
mod errands;
mod group;
mod home;
mod house;
mod machine;
mod oracle;
mod program;
mod run;
mod shell;
mod tamper;
mod thread;
mod truth;

pub use run::{explain, run};

#[cfg(test)]
mod tests;
