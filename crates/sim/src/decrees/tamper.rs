//! The seam at which tests plant mutants. In the product's worlds nobody tampers.

use overlay::Tidings;

/// Changes what passes between the machines and their world.
pub(crate) trait Tamper: Clone {
    /// Whether a machine compares what it knows when it meets another.
    fn greets(&self) -> bool {
        true
    }

    /// Whether this is said to a machine, which may have a vote.
    fn says(&self, _to_member: bool, _tidings: &Tidings) -> bool {
        true
    }
}

/// Changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Honest;

impl Tamper for Honest {}
