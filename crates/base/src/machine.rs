//! The one shape of everything that decides.
//!
//! A machine is told what happened and when, and answers what should happen next. It has no clock, no
//! thread, no entropy, no file and no socket, so a shell can run it in production and a simulator can
//! run the very same code through millions of schedules.

use crate::time::Instant;

/// A deterministic state machine: equal inputs at equal moments give equal outputs, always.
///
/// What must come from outside is an output with a token, and later an input with that token.
/// Durability is an output too: what depends on a record is withheld until the shell says that the
/// record is safe.
pub trait Machine {
    /// What can happen to it.
    type Input;
    /// What it can want done.
    type Output;

    /// Consumes one input; everything that it wants done goes into `out`, in order.
    ///
    /// `now` never runs backwards from one call to the next.
    fn step(&mut self, now: Instant, input: Self::Input, out: &mut Vec<Self::Output>);

    /// Lets due deadlines pass. Harmless when nothing is due.
    fn tick(&mut self, now: Instant, out: &mut Vec<Self::Output>);

    /// The earliest moment at which `tick` would do something.
    fn wake_at(&self) -> Option<Instant>;
}
