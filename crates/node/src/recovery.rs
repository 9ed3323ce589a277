//! A node that goes through its log after a start.

use base::{Instant, Malformed};
use directory::{Absent, Directory};

use crate::{
    node::{Loaded, Node, Settings},
    order::{Decision, Order},
};

/// Applies what the log has after the last checkpoint. What was said back then is not said again: who
/// missed it will ask again.
pub struct Recovery {
    directory: Directory,
    height: u64,
    time: Instant,
    /// The decision that lacks records.
    applying: Option<Decision>,
}

impl Recovery {
    /// From nothing, or from a [`crate::Checkpoint`]'s state.
    pub fn new(settings: Settings, state: Option<&[u8]>) -> Result<Recovery, Malformed> {
        let (height, time, directory) = match state {
            None => (0, Instant::START, Directory::new(settings, Instant::START)),
            Some(state) => {
                let (height, time, rest): (u64, Instant, Vec<u8>) =
                    base::decode(state, state.len())?;
                (height, time, Directory::restore(settings, &rest)?)
            }
        };
        Ok(Recovery { directory, height, time, applying: None })
    }

    /// The place of the last decision that was applied.
    pub fn height(&self) -> u64 {
        self.height
    }

    /// Applies the next record. One that the checkpoint has in it is passed over. If records are absent
    /// they have to be supplied before anything else.
    pub fn replay(&mut self, record: &[u8]) -> Result<Option<Absent>, Malformed> {
        let decision = Decision::of(record)?;
        if decision.height <= self.height {
            return Ok(None);
        }
        if decision.height != self.height + 1 || decision.time < self.time {
            return Err(Malformed::new("a log whose records do not follow one another"));
        }
        self.applying = Some(decision);
        Ok(self.go_on())
    }

    /// Takes what was absent, and goes on. More may be.
    pub fn supply(&mut self, loaded: Loaded) -> Option<Absent> {
        loaded.hand_to(&mut self.directory);
        self.go_on()
    }

    fn go_on(&mut self) -> Option<Absent> {
        let decision = self.applying.as_ref()?;
        let applied = self.directory.apply(decision.time, &decision.command, &mut Vec::new());
        if let Err(absent) = applied {
            return Some(absent);
        }
        (self.height, self.time) = (decision.height, decision.time);
        self.applying = None;
        None
    }

    /// The node as its log has left it.
    ///
    /// # Panics
    ///
    /// If records are still absent.
    pub fn finish(self, now: Instant) -> Node {
        assert!(self.applying.is_none(), "a decision is not applied yet");
        Node::with(self.directory, Order::after(self.height, self.time, now), self.height)
    }
}
