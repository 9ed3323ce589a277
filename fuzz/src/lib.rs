//! What hostile bytes may never do, for a fuzzer and for the test suite.
//!
//! Each target takes any bytes and panics if a promise is broken. `cargo fuzz run NAME` drives it with
//! coverage; the tests here drive it with seeded noise, so that a target never rots. Some read the bytes as
//! what they are, others as a script of what happens.

mod script;
mod wax;

mod checkpoint;
mod codec;
mod disk;
mod ear;
mod file_id;
mod locator;
mod member;
mod order;
mod overlay;
mod query;
mod wire;

#[cfg(test)]
mod noise;

pub use self::{locator::locator, overlay::overlay, wire::wire};
pub use checkpoint::checkpoint;
pub use codec::codec;
pub use disk::disk;
pub use ear::ear;
pub use file_id::file_id;
pub use member::member;
pub use order::order;
pub use query::query;
