//! When a waiting lookup may go on (L59).

use base::{Duration, Instant};

/// Matches the rate of lookups to the rate of cleaning while too much is dirty.
///
/// | State | Dirty objects | Lookups | The cleaner |
/// |---|---|---|---|
/// | free | up to the threshold | go on | waits for each object's timer |
/// | matching | over the threshold | stop | hurries |
/// | matching | from the threshold down to 1 | one for each object cleaned | hurries |
/// | free again | none | a batch goes on | waits for timers |
///
/// So entry has hysteresis: once out, it takes more than the threshold to match again. And exit is
/// prompt: when the cleaner has caught up, whoever waits goes on at once.
///
/// A lookup here is one that will bring an object into memory: those that want the same object are one.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    threshold: u64,
    batch_max: u64,
    is_matching: bool,
    /// How many lookups, from the front of the queue, may go on. Never more than wait.
    tickets: u64,
    matching_at: Instant,
    throttled: Duration,
}

impl Gate {
    pub(super) fn new(threshold: u64, batch_max: u64) -> Gate {
        assert!(batch_max > 0, "a batch of nothing never ends");
        Gate {
            threshold,
            batch_max,
            is_matching: false,
            tickets: 0,
            matching_at: Instant::START,
            throttled: Duration::ZERO,
        }
    }

    /// Whether lookups are matched to cleaning, and the cleaner ignores its timers.
    pub(super) fn is_matching(&self) -> bool {
        self.is_matching
    }

    /// How many of those that wait may go on once the store has room.
    pub(super) fn tickets(&self) -> u64 {
        self.tickets
    }

    /// How long it has matched in all.
    pub(super) fn throttled(&self, now: Instant) -> Duration {
        let present = if self.is_matching { now.since(self.matching_at) } else { Duration::ZERO };
        self.throttled.saturating_add(present)
    }

    /// Whether the first waiting lookup may go on.
    pub(super) fn may_release(&self, dirty: u64) -> bool {
        let is_stopped = self.is_matching && dirty > self.threshold;
        self.tickets > 0 && !is_stopped
    }

    /// The first waiting lookup has gone on.
    pub(super) fn on_release(&mut self) {
        self.tickets = self.tickets.saturating_sub(1);
    }

    /// A lookup has begun to wait, behind `waiting` others.
    pub(super) fn on_wait(&mut self, waiting: u64) {
        // While free it may go on, unless one before it may not: then a batch is under way.
        if !self.is_matching && self.tickets == waiting {
            self.tickets += 1;
        }
    }

    /// The number of dirty objects has changed.
    pub(super) fn on_dirty(&mut self, now: Instant, dirty: u64, waiting: u64) {
        if !self.is_matching && dirty > self.threshold {
            // L59: lookups stop, also those that were about to go on.
            self.is_matching = true;
            self.matching_at = now;
            self.tickets = 0;
        } else if self.is_matching && dirty == 0 {
            // L59: the cleaner's queue is empty; a batch goes on.
            self.throttled = self.throttled(now);
            self.is_matching = false;
            self.tickets = waiting.min(self.tickets.saturating_add(self.batch_max));
        }
    }

    /// An object has been cleaned.
    pub(super) fn on_cleaned(&mut self, dirty: u64, waiting: u64) {
        // L59: exactly one lookup, and none while there are too many dirty objects.
        if self.is_matching && dirty <= self.threshold && self.tickets < waiting {
            self.tickets += 1;
        }
    }

    /// All that went on has been loaded; if others wait although we are free, a next batch goes on.
    pub(super) fn on_loaded(&mut self, waiting: u64) {
        if !self.is_matching && self.tickets == 0 {
            self.tickets = waiting.min(self.batch_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_without_limit_is_all_that_wait() {
        let (mut gate, now) = (Gate::new(1, u64::MAX), Instant::START);
        gate.on_dirty(now, 2, 3);
        gate.on_cleaned(1, 3);
        gate.on_dirty(now, 0, 3);
        assert_eq!(gate.tickets(), 3);
    }
}
