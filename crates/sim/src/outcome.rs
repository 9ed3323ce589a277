//! What a run of one seed came to.

use base::{Digest, Duration, Instant};

use crate::{Actor, Counts, Longest, Marks, Violation, World};

/// What became of one world.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Everything that happened, in one number.
    pub digest: Digest,
    /// How long the world lasted, in its own time.
    pub simulated: Duration,
    /// How often each kind of thing happened.
    pub counts: Counts,
    /// Which marks were passed.
    pub marks: Marks,
    /// How long things took at the most.
    pub longest: Longest,
    /// What was broken, if anything was.
    pub violation: Option<Violation>,
    /// The last things that happened, if they were kept.
    pub trace: Vec<String>,
}

impl Outcome {
    /// The outcome of a world that has ended, or in which something was broken.
    pub fn of<A: Actor>(world: &World<A>, violation: Option<Violation>) -> Outcome {
        Outcome {
            digest: world.digest(),
            simulated: world.now().since(Instant::START),
            counts: *world.counts(),
            marks: world.marks().clone(),
            longest: Longest::default(),
            violation,
            trace: world.trace().map(str::to_owned).collect(),
        }
    }
}
