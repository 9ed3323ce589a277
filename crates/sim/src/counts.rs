//! How often each kind of thing happened.

use std::ops::{Index, IndexMut};

/// A kind of thing that happens in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message reached its node.
    Deliver,
    /// A node was woken by its clock.
    Wake,
    /// A node stood still.
    Pause,
    /// A node went on.
    Thaw,
    /// A node crashed.
    Crash,
    /// A node started again.
    Restart,
    /// Links were cut.
    Split,
    /// Links were mended.
    Mend,
    /// A message was lost on the way. Not an event of its own.
    Lost,
    /// A message was sent over a cut link. Not an event of its own.
    Cut,
    /// A message came to a node that was down or had too many waiting. Not an event of its own.
    Missed,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 11] = [
        Kind::Deliver,
        Kind::Wake,
        Kind::Pause,
        Kind::Thaw,
        Kind::Crash,
        Kind::Restart,
        Kind::Split,
        Kind::Mend,
        Kind::Lost,
        Kind::Cut,
        Kind::Missed,
    ];

    /// Whether it is an event: it has its own place in the order of things and in the digest.
    pub fn is_event(self) -> bool {
        !matches!(self, Kind::Lost | Kind::Cut | Kind::Missed)
    }
}

/// A count for each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Kind::ALL.len()]);

impl Counts {
    /// How many events there were.
    pub fn events(&self) -> u64 {
        Kind::ALL.into_iter().filter(|kind| kind.is_event()).map(|kind| self[kind]).sum()
    }

    /// Adds what happened elsewhere.
    pub fn merge(&mut self, other: &Counts) {
        for kind in Kind::ALL {
            self[kind] += other[kind];
        }
    }
}

impl Index<Kind> for Counts {
    type Output = u64;

    fn index(&self, kind: Kind) -> &u64 {
        &self.0[kind as usize]
    }
}

impl IndexMut<Kind> for Counts {
    fn index_mut(&mut self, kind: Kind) -> &mut u64 {
        &mut self.0[kind as usize]
    }
}
