//! The reservoirs of a plan: each place gets one that keeps to the place's technique.

use super::{
    Cache, Fair, Marks, Outstanding, Ranks, Releasing, Shedding, Tally, Throttling, Watched,
};
use crate::{
    graph::Plan,
    place::{ClownCar, Place, Release, Shed, Throttle, Unprotected},
};

/// Makes the reservoir for a place. As [`Plan::spec`], each panics if the place is not in the graph
/// or has its reservoir already.
impl Plan {
    /// A queue that throttles.
    pub fn throttling<T>(&mut self, place: Place<Throttle>) -> Throttling<T> {
        Throttling::new(self.spec(place))
    }

    /// A queue that throttles and is fair to its sources. Panics also if the throttled flow does not
    /// end here.
    pub fn fair<S: Clone + Ord, T>(&mut self, place: Place<Throttle>) -> Fair<S, T> {
        Fair::new(self.spec(place))
    }

    /// A throttling set of what awaits an answer.
    pub fn outstanding<K: Clone + Ord, V>(&mut self, place: Place<Throttle>) -> Outstanding<K, V> {
        Outstanding::new(self.spec(place))
    }

    /// A throttling count of what lives elsewhere.
    pub fn tally(&mut self, place: Place<Throttle>) -> Tally {
        Tally::new(self.spec(place))
    }

    /// A queue that releases its oldest item early.
    pub fn releasing<T>(&mut self, place: Place<Release>) -> Releasing<T> {
        Releasing::new(self.spec(place))
    }

    /// A cache that releases the least recently used thing early.
    pub fn cache<K: Clone + Ord, V>(&mut self, place: Place<Release>) -> Cache<K, V> {
        Cache::new(self.spec(place))
    }

    /// A set of marked objects.
    pub fn marks<K: Clone + Ord, V>(&mut self, place: Place<ClownCar>) -> Marks<K, V> {
        Marks::new(self.spec(place))
    }

    /// Objects in queues by rank.
    pub fn ranks<K: Clone + Ord>(&mut self, place: Place<ClownCar>) -> Ranks<K> {
        Ranks::new(self.spec(place))
    }

    /// A queue that sheds.
    pub fn shedding<T>(&mut self, place: Place<Shed>) -> Shedding<T> {
        Shedding::new(self.spec(place))
    }

    /// A count of what nothing protects and lives elsewhere.
    pub fn watched(&mut self, place: Place<Unprotected>) -> Watched {
        Watched::new(self.spec(place))
    }
}
