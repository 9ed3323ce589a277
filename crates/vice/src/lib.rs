//! How a member of a group lies, for simulations and tests.
//!
//! A liar runs the product's machine and holds its own key only; what it says, to whom and when is up to it.
//! Whoever runs the machine has [`Vice`] change what goes in and out.

mod lie;
mod state;
mod vice;

pub use lie::Lie;
pub use state::digest_of;
pub use vice::Vice;
