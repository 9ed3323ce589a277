//! Flows: how load comes in, moves between places and goes out.

use base::Duration;

use crate::place::{Place, Technique};

/// Which flow of which graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId {
    /// The name of the graph, so that another takes no id for its own.
    pub(crate) graph: &'static str,
    pub(crate) at: usize,
}

/// A flow of load, and what its pace depends on.
///
/// A flow without a source enters the graph, one without a sink leaves it (L19).
#[derive(Clone, Debug)]
pub struct Flow {
    pub(crate) name: &'static str,
    pub(crate) from: Option<&'static str>,
    pub(crate) to: Option<&'static str>,
    /// Comes from another machine. Never set if it also has a source, unless it is itinerant.
    pub(crate) is_foreign: bool,
    /// Leaves this machine and comes back. Then it has a source and a sink.
    pub(crate) is_itinerant: bool,
    pub(crate) delay: Duration,
    pub(crate) gain: u32,
    pub(crate) waits_for: Option<&'static str>,
    pub(crate) is_disk_bound: bool,
    pub(crate) is_by_chance: bool,
    pub(crate) unstoppable: Option<&'static str>,
    pub(crate) needs: Vec<FlowId>,
}

impl Flow {
    const fn new(name: &'static str, from: Option<&'static str>, to: Option<&'static str>) -> Flow {
        Flow {
            name,
            from,
            to,
            is_foreign: false,
            is_itinerant: false,
            delay: Duration::ZERO,
            gain: 1,
            waits_for: None,
            is_disk_bound: false,
            is_by_chance: false,
            unstoppable: None,
            needs: Vec::new(),
        }
    }

    /// Load that a program on this machine causes.
    pub fn entry<T: Technique>(name: &'static str, to: Place<T>) -> Flow {
        Flow::new(name, None, Some(to.label()))
    }

    /// Load that another machine sends. This machine has no means to stop it (L18).
    pub fn arrival<T: Technique>(name: &'static str, to: Place<T>) -> Flow {
        Flow { is_foreign: true, ..Flow::new(name, None, Some(to.label())) }
    }

    /// Load that goes from one place to another.
    ///
    /// # Panics
    /// If both are the same place.
    pub fn between<T: Technique, U: Technique>(
        name: &'static str,
        from: Place<T>,
        to: Place<U>,
    ) -> Flow {
        assert!(from.label() != to.label(), "flow {name:?} leads from {} to itself", from.label());
        Flow::new(name, Some(from.label()), Some(to.label()))
    }

    /// Load that leaves.
    pub fn exit<T: Technique>(name: &'static str, from: Place<T>) -> Flow {
        Flow::new(name, Some(from.label()), None)
    }

    /// Load that leaves this machine, passes through others and comes back (L20).
    ///
    /// What comes back counts as load from another machine.
    ///
    /// # Panics
    /// If both are the same place.
    pub fn itinerant<T: Technique, U: Technique>(
        name: &'static str,
        from: Place<T>,
        to: Place<U>,
    ) -> Flow {
        Flow { is_foreign: true, is_itinerant: true, ..Flow::between(name, from, to) }
    }

    /// Load stays this long at its source, by design, before it takes this flow.
    #[must_use]
    pub fn after(self, delay: Duration) -> Flow {
        Flow { delay, ..self }
    }

    /// Each item that enters the flow becomes this many.
    ///
    /// # Panics
    /// If that is none: such a flow is an exit.
    #[must_use]
    pub fn times(self, gain: u32) -> Flow {
        assert!(gain > 0, "flow {:?} makes nothing of its load; declare an exit", self.name);
        Flow { gain, ..self }
    }

    /// Load moves only when this remote party answers.
    #[must_use]
    pub fn waits_for(self, party: &'static str) -> Flow {
        Flow { waits_for: Some(party), ..self }
    }

    /// Each item costs slow work on the disk. Deleting a file does not count as slow (L25).
    #[must_use]
    pub fn disk_bound(self) -> Flow {
        Flow { is_disk_bound: true, ..self }
    }

    /// Load takes this flow only if somebody happens to want that; no place can count on it.
    #[must_use]
    pub fn by_chance(self) -> Flow {
        Flow { is_by_chance: true, ..self }
    }

    /// Nothing may stop the flow, for this reason.
    #[must_use]
    pub fn unstoppable(self, because: &'static str) -> Flow {
        Flow { unstoppable: Some(because), ..self }
    }

    /// This flow moves only if that one does: whoever waits there holds what flows here.
    #[must_use]
    pub fn needs(mut self, other: FlowId) -> Flow {
        self.needs.push(other);
        self
    }

    /// What the flow is called.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The label of the place where it starts, unless it enters.
    pub fn from(&self) -> Option<&'static str> {
        self.from
    }

    /// The label of the place where it ends, unless it leaves.
    pub fn to(&self) -> Option<&'static str> {
        self.to
    }

    /// Whether it leaves this machine and comes back.
    pub fn is_itinerant(&self) -> bool {
        self.is_itinerant
    }

    /// Whether what arrives is load that no other place of the graph answers for.
    pub(crate) fn is_source(&self) -> bool {
        // L18: the return of an itinerant flow depends on other machines, as an arrival does.
        self.from.is_none() || self.is_itinerant
    }
}
