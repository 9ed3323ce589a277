//! Who judges a world.

use std::fmt;

use base::Instant;

use crate::{Actor, Node, World};

/// Looks at the world after every event.
pub trait Checker<A: Actor> {
    /// Judges the world after this node has acted.
    fn check(&mut self, world: &World<A>, actor: Node) -> Result<(), Broken>;
}

/// What must hold and does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The invariant, like `inv-L1`.
    pub invariant: &'static str,
    /// What was seen.
    pub what: String,
}

impl Broken {
    /// This invariant, with what was seen.
    pub fn new(invariant: &'static str, what: impl Into<String>) -> Broken {
        Broken { invariant, what: what.into() }
    }
}

/// Something broken, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What.
    pub broken: Broken,
    /// When, in the world's time.
    pub at: Instant,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.broken.invariant, self.at, self.broken.what)
    }
}

/// Judges nothing.
impl<A: Actor> Checker<A> for () {
    fn check(&mut self, _: &World<A>, _: Node) -> Result<(), Broken> {
        Ok(())
    }
}
