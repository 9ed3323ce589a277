//! What a mutant does differently: each hook is a place where a machine's shell could be built wrong.

use wire::Answer;

/// Hooks around the product's machine. The honest system leaves all as they are.
pub(crate) trait Tamper: Clone {
    /// Whether it has nothing to do any more with a machine that was sent away.
    fn lets_go(&self) -> bool {
        true
    }

    /// How often whoever waits is told what came of it.
    fn replies(&self, _: &Answer) -> usize {
        1
    }

    /// Whether it lets the server's deadlines pass.
    fn keeps_time(&self) -> bool {
        true
    }
}

/// Nothing is wrong.
#[derive(Clone, Debug)]
pub(crate) struct Honest;

impl Tamper for Honest {}
