//! Plans: the limits of a checked graph, handed out to the code that runs it.

use std::fmt;

use crate::{
    check::{self, Exception, Verdict},
    graph::Graph,
    place::{Kind, Place, Spec, Technique},
};

/// The limits of a graph that passed its check, each to be claimed once.
///
/// Asking for a place that is not in the graph, or twice for the same, is a bug, and so is leaving
/// one unclaimed: then the code and its graph are not the same program any more.
#[derive(Debug)]
#[must_use = "the places of a plan are claimed with `spec`, and `finish` sees that all were"]
pub struct Plan {
    graph: &'static str,
    slots: Vec<Slot>,
    exceptions: Vec<Exception>,
}

#[derive(Debug)]
struct Slot {
    spec: Spec,
    kind: Kind,
    unit: &'static str,
    is_claimed: bool,
}

impl Plan {
    pub(super) fn new(graph: &Graph) -> Result<Plan, NotImmune> {
        let verdict = graph.check();
        if !verdict.is_immune() {
            return Err(NotImmune(verdict));
        }
        let slots = graph.nodes().iter().map(|node| Slot {
            spec: Spec {
                label: node.label,
                name: node.name,
                capacity: node.capacity,
                threshold: check::threshold(graph, node),
            },
            kind: node.kind,
            unit: node.unit,
            is_claimed: false,
        });
        let slots = slots.collect();
        Ok(Plan { graph: graph.name(), slots, exceptions: verdict.exceptions })
    }

    /// The limits of this place.
    ///
    /// # Panics
    /// If the graph does not have this very place, or if it was already asked for.
    pub fn spec<T: Technique>(&mut self, place: Place<T>) -> Spec {
        let (graph, label) = (self.graph, place.label());
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.spec.label == label) else {
            panic!("graph {graph} has no place {label}; declare it before making its reservoir");
        };
        assert!(
            slot.kind == place.kind() && slot.spec.name == place.name(),
            "graph {graph} knows {label} as {} ({}), not as {} ({})",
            slot.spec.name,
            slot.kind,
            place.name(),
            place.kind(),
        );
        assert!(
            slot.unit == place.unit(),
            "graph {graph} counts {} in {label}, not {}",
            slot.unit,
            place.unit(),
        );
        assert!(!slot.is_claimed, "place {label} of graph {graph} already has its reservoir");
        slot.is_claimed = true;
        slot.spec
    }

    /// The places that are not immune, which is known.
    pub fn exceptions(&self) -> &[Exception] {
        &self.exceptions
    }

    /// Sees that every place has its reservoir.
    ///
    /// # Panics
    /// If nobody asked for some of the places.
    pub fn finish(self) {
        let left = self.slots.iter().filter(|slot| !slot.is_claimed);
        let left: Vec<_> = left.map(|slot| slot.spec.label).collect();
        let graph = self.graph;
        assert!(left.is_empty(), "nobody made reservoirs for {} of graph {graph}", left.join(", "));
    }
}

/// Why there is no plan: the graph is not immune.
#[derive(Clone, Debug)]
pub struct NotImmune(
    /// What the check found.
    pub Verdict,
);

impl fmt::Display for NotImmune {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "graph {} is {}", self.0.graph, self.0.summary())?;
        self.0.findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

impl std::error::Error for NotImmune {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flow, Release, Shed, Throttle, Unprotected};

    const BUFFER: Place<Release> = Place::new("1A", "buffer");
    const SET: Place<Throttle> = Place::new("1B", "set");

    fn chain(buffer: u64, set: u64) -> Graph {
        let mut graph = Graph::new("chain", "a buffer and a set");
        let enter = graph.flow(Flow::entry("enter", BUFFER));
        let flush = graph.flow(Flow::between("flush", BUFFER, SET));
        graph.flow(Flow::exit("done", SET));
        graph.release(BUFFER, buffer, flush);
        graph.throttle(SET, set, &[enter]);
        graph
    }

    #[test]
    fn a_plan_hands_out_capacities_and_thresholds() {
        let mut plan = chain(10, 100).plan().unwrap();
        let set = Spec { label: "1B", name: "set", capacity: 100, threshold: 90 };
        assert_eq!(plan.spec(SET), set);
        let buffer = Spec { label: "1A", name: "buffer", capacity: 10, threshold: 10 };
        assert_eq!(plan.spec(BUFFER), buffer);
        assert!(plan.exceptions().is_empty());
        plan.finish();
    }

    #[test]
    fn there_is_no_plan_for_a_graph_that_is_not_immune() {
        let refusal = chain(10, 10).plan().unwrap_err().to_string();
        assert!(refusal.starts_with("graph chain is not immune: 1B\n1B (set): "), "{refusal}");
    }

    #[test]
    fn known_exceptions_do_not_prevent_a_plan() {
        const HELD: Place<Unprotected> = Place::new("1A", "held");
        let mut graph = Graph::new("held", "what is held");
        graph.flow(Flow::entry("take", HELD));
        graph.flow(Flow::exit("drop", HELD));
        graph.unprotected(HELD, 5, "whoever holds one may need another");
        let mut plan = graph.plan().unwrap();
        assert_eq!(plan.exceptions().len(), 1);
        assert_eq!(plan.spec(HELD).capacity, 5);
        plan.finish();
    }

    #[test]
    #[should_panic(expected = "graph chain has no place 1C")]
    fn a_place_outside_the_graph_is_a_bug() {
        const STRAY: Place<Shed> = Place::new("1C", "stray");
        let _ = chain(10, 100).plan().unwrap().spec(STRAY);
    }

    #[test]
    #[should_panic(expected = "knows 1A as buffer (premature release), not as buffer (shed)")]
    fn a_namesake_is_a_bug() {
        const NAMESAKE: Place<Shed> = Place::new("1A", "buffer");
        let _ = chain(10, 100).plan().unwrap().spec(NAMESAKE);
    }

    #[test]
    #[should_panic(expected = "graph chain counts items in 1A, not bytes")]
    fn another_unit_is_a_bug() {
        const OF_BYTES: Place<Release> = Place::new("1A", "buffer").of("bytes");
        let _ = chain(10, 100).plan().unwrap().spec(OF_BYTES);
    }

    #[test]
    #[should_panic(expected = "place 1A of graph chain already has its reservoir")]
    fn two_reservoirs_at_one_place_are_a_bug() {
        let mut plan = chain(10, 100).plan().unwrap();
        plan.spec(BUFFER);
        plan.spec(BUFFER);
    }

    #[test]
    #[should_panic(expected = "nobody made reservoirs for 1A of graph chain")]
    fn a_place_without_a_reservoir_is_a_bug() {
        let mut plan = chain(10, 100).plan().unwrap();
        plan.spec(SET);
        plan.finish();
    }
}
