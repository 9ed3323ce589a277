//! Fits a model with the reservoirs of its graph, one of them bare if its protection is removed.
//!
//! The limits are always those of the whole graph: `load` gives no plan for one that is not immune,
//! and what is removed is the protection of one place, not the limits of the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use load::{
    ClownCar, Graph, Place, Plan, Release, Shed, Technique, Throttle, Unprotected,
    reservoir::Watched,
};

use super::{
    level::Level,
    queues::{Buffer, Intake, Line},
    sets::{Awaited, Count, Kept, Resting, Tiers},
};

/// A plan, and the place whose protection is removed.
pub struct Fitting {
    plan: Plan,
    without: Option<&'static str>,
}

impl Fitting {
    /// For a model of this graph.
    pub fn new(graph: &Graph, without: Option<&'static str>) -> Fitting {
        let plan = graph.plan().expect("a test shows that all graphs are immune");
        Fitting { plan, without }
    }

    /// The place without protection, if it is this one.
    fn bare<T: Technique>(&mut self, place: Place<T>) -> Option<Level> {
        (self.without == Some(place.label())).then(|| Level::new(self.plan.spec(place)))
    }

    /// A queue that throttles.
    pub fn line<T>(&mut self, place: Place<Throttle>) -> Line<T> {
        match self.bare(place) {
            Some(level) => Line::Bare(VecDeque::new(), level),
            None => Line::Declared(self.plan.throttling(place)),
        }
    }

    /// A queue that releases prematurely.
    pub fn buffer<T>(&mut self, place: Place<Release>) -> Buffer<T> {
        match self.bare(place) {
            Some(level) => Buffer::Bare(VecDeque::new(), level),
            None => Buffer::Declared(self.plan.releasing(place)),
        }
    }

    /// A queue that sheds.
    pub fn intake<T>(&mut self, place: Place<Shed>) -> Intake<T> {
        match self.bare(place) {
            Some(level) => Intake::Bare(VecDeque::new(), level),
            None => Intake::Declared(self.plan.shedding(place)),
        }
    }

    /// A throttling set of what awaits an answer.
    pub fn awaited<T>(&mut self, place: Place<Throttle>) -> Awaited<T> {
        match self.bare(place) {
            Some(level) => Awaited::Bare(BTreeMap::new(), level),
            None => Awaited::Declared(self.plan.outstanding(place)),
        }
    }

    /// A throttling count of what lives elsewhere.
    pub fn count(&mut self, place: Place<Throttle>) -> Count {
        match self.bare(place) {
            Some(level) => Count::Bare(level),
            None => Count::Declared(self.plan.tally(place)),
        }
    }

    /// A set that releases prematurely.
    pub fn kept(&mut self, place: Place<Release>) -> Kept {
        match self.bare(place) {
            Some(level) => Kept::Bare(BTreeSet::new(), level),
            None => Kept::Declared(self.plan.cache(place)),
        }
    }

    /// A clown car of files that wait for their moment.
    pub fn resting(&mut self, place: Place<ClownCar>) -> Resting {
        match self.bare(place) {
            Some(level) => Resting::Bare(VecDeque::new(), level),
            None => Resting::Declared(self.plan.marks(place)),
        }
    }

    /// A clown car of files by rank.
    pub fn tiers(&mut self, place: Place<ClownCar>) -> Tiers {
        match self.bare(place) {
            Some(level) => Tiers::Bare(BTreeMap::new(), level),
            None => Tiers::Declared(self.plan.ranks(place)),
        }
    }

    /// A count that throttles nothing, for a place that cannot be protected.
    pub fn watched(&mut self, place: Place<Unprotected>) -> Watched {
        self.plan.watched(place)
    }

    /// Sees that every place has what stands there.
    pub fn finish(self) {
        self.plan.finish();
    }
}
