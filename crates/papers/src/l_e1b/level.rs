//! How much is in a place, and was at most.

use load::{Spec, reservoir::Meter};

/// The most that was ever in a place, beside what the graph declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The place's short label.
    pub label: &'static str,
    /// What may be there.
    pub capacity: u64,
    /// What was there at most.
    pub level: u64,
}

impl Peak {
    /// From a reservoir's own numbers.
    pub fn new(spec: &Spec, meter: Meter) -> Peak {
        Peak { label: spec.label, capacity: spec.capacity, level: meter.level_max }
    }

    /// Whether the place kept to what is declared.
    pub fn is_within(&self) -> bool {
        self.level <= self.capacity
    }
}

/// The level of a place that nothing protects: it only counts.
#[derive(Debug)]
pub struct Level {
    spec: Spec,
    now: u64,
    max: u64,
}

impl Level {
    /// Nothing yet, at this place.
    pub fn new(spec: Spec) -> Level {
        Level { spec, now: 0, max: 0 }
    }

    /// One more.
    pub fn enter(&mut self) {
        self.now += 1;
        self.max = self.max.max(self.now);
    }

    /// One less.
    pub fn leave(&mut self) {
        self.now -= 1;
    }

    /// The most that was ever there.
    pub fn peak(&self) -> Peak {
        Peak { label: self.spec.label, capacity: self.spec.capacity, level: self.max }
    }
}
