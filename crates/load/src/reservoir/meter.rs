//! What a reservoir has seen, as numbers.

use base::Duration;

/// A reservoir's numbers at one moment.
///
/// What entered has left or is still there: `entered == left + level`, always. What was refused or
/// shed never entered.
///
/// Amounts are in the place's unit: items, or bytes where the place counts bytes. Arrivals are counted
/// one by one, however large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// How much is there now.
    pub level: u64,
    /// The most that was ever there.
    pub level_max: u64,
    /// How much has come in.
    pub entered: u64,
    /// How much has gone out, in whatever way.
    pub left: u64,
    /// Of what has left: released before its time to make room (L25).
    pub released: u64,
    /// Of what has left: taken out too late to be of use (L53).
    pub expired: u64,
    /// Arrivals that were shed so far, each handed back to be rectified (L17). Whether it was, is not
    /// known here: this never falls.
    pub shed: u64,
    /// Arrivals that were handed back for want of room.
    pub refused: u64,
    /// How long the flows that it throttles have had to stand still, until now.
    pub throttled: Duration,
}

/// The counting that every reservoir does on every push and pop.
#[derive(Clone, Debug, Default)]
pub(super) struct Count {
    level: u64,
    level_max: u64,
    entered: u64,
}

impl Count {
    #[inline]
    pub(super) fn level(&self) -> u64 {
        self.level
    }

    #[inline]
    pub(super) fn enter(&mut self, amount: u64) {
        self.entered += amount;
        self.level += amount;
        self.level_max = self.level_max.max(self.level);
    }

    #[inline]
    pub(super) fn leave(&mut self, amount: u64) {
        assert!(amount <= self.level, "{amount} cannot leave where {} are", self.level);
        self.level -= amount;
    }

    /// Counts what comes in and goes out again at once.
    pub(super) fn pass(&mut self, amount: u64) {
        self.entered += amount;
    }

    /// The numbers known here; the others are zero.
    pub(super) fn meter(&self) -> Meter {
        Meter {
            level: self.level,
            level_max: self.level_max,
            entered: self.entered,
            left: self.entered - self.level,
            ..Meter::default()
        }
    }
}
