//! A count of what nothing protects (L61).

use super::meter::{Count, Meter};
use crate::Spec;

/// How much there is of something that is kept elsewhere and that nothing can stop.
///
/// It takes everything and throttles nothing. The place's capacity is what is expected, and its meter
/// shows whether that holds.
#[derive(Clone, Debug)]
pub struct Watched {
    spec: Spec,
    count: Count,
}

impl Watched {
    /// Nothing yet, at this place.
    pub fn new(spec: Spec) -> Watched {
        Watched { spec, count: Count::default() }
    }

    /// What the graph says about it.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How much there is.
    #[inline]
    pub fn level(&self) -> u64 {
        self.count.level()
    }

    /// Counts so much more.
    #[inline]
    pub fn enter(&mut self, amount: u64) {
        self.count.enter(amount);
    }

    /// Counts so much less.
    ///
    /// # Panics
    /// If there is not so much.
    #[inline]
    pub fn leave(&mut self, amount: u64) {
        self.count.leave(amount);
    }

    /// Its numbers.
    pub fn meter(&self) -> Meter {
        self.count.meter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_beyond_what_is_expected_and_throttles_nothing() {
        let spec = Spec { label: "9B", name: "referenced", capacity: 2, threshold: 2 };
        let mut watched = Watched::new(spec);
        (0..5).for_each(|_| watched.enter(1));
        watched.leave(2);
        let expected = Meter { level: 3, level_max: 5, entered: 5, left: 2, ..Meter::default() };
        assert_eq!(watched.meter(), expected);
    }
}
