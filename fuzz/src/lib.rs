//! What hostile bytes may never do, for a fuzzer and for the test suite.
//!
//! Each target takes any bytes and panics if a promise is broken. `cargo fuzz run NAME` drives it with
//! coverage; the tests here drive it with seeded noise, so that a target never rots.

mod codec;
mod file_id;
mod locator;
mod overlay;
mod wire;

pub use self::{locator::locator, overlay::overlay, wire::wire};
pub use codec::codec;
pub use file_id::file_id;
