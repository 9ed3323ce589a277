//! Workflow graphs: the places of one machine where load piles up, and the flows between them.
//!
//! A graph is declared once. It can be checked ([`Graph::check`]), drawn (`draw`) and run
//! ([`Graph::plan`]), so that what is proven, shown and executed is the same thing.

mod flow;
mod plan;
pub(crate) mod words;

pub use flow::{Flow, FlowId};
pub use plan::{NotImmune, Plan};

use crate::{
    check::{self, Verdict},
    place::{Bounded, ClownCar, Kind, Place, Release, Shed, Technique, Throttle, Unprotected},
};

/// A workflow graph of one machine, or of a part of one (L18 to L20).
///
/// ```
/// use load::{Flow, Graph, Place, Shed, Throttle};
///
/// const QUEUE: Place<Throttle> = Place::new("1A", "queue").of("jobs");
///
/// let mut graph = Graph::new("demo", "jobs of one program");
/// let submit = graph.flow(Flow::entry("submit", QUEUE));
/// graph.flow(Flow::exit("done", QUEUE));
/// graph.throttle(QUEUE, 16, &[submit]);
/// assert!(graph.check().is_immune());
///
/// let mut plan = graph.plan().unwrap();
/// assert_eq!(plan.spec(QUEUE).threshold, 16);
/// plan.finish();
/// ```
#[derive(Clone, Debug)]
pub struct Graph {
    name: &'static str,
    title: &'static str,
    /// In order of declaration, each label once.
    nodes: Vec<Node>,
    flows: Vec<Flow>,
}

/// A place as its graph declares it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub label: &'static str,
    pub name: &'static str,
    pub unit: &'static str,
    pub kind: Kind,
    pub capacity: u64,
    pub protection: Protection,
}

/// What keeps a place from overflowing, with what the technique asks for.
#[derive(Clone, Debug)]
pub(crate) enum Protection {
    Throttle {
        flows: Vec<FlowId>,
    },
    Release {
        along: FlowId,
    },
    ClownCar {
        objects: &'static str,
    },
    Shed {
        rectified_by: &'static str,
    },
    Bounded {
        because: &'static str,
    },
    Unprotected {
        because: &'static str,
    },
    /// Taken away, to see what happens without it.
    Removed,
}

impl Protection {
    /// L21: infinite-load management other than shedding.
    pub fn is_infinite(&self) -> bool {
        matches!(self, Protection::Release { .. } | Protection::ClownCar { .. })
    }
}

impl Node {
    /// The flows that this place throttles.
    pub fn throttled(&self) -> &[FlowId] {
        match &self.protection {
            Protection::Throttle { flows } => flows,
            _ => &[],
        }
    }
}

impl Graph {
    /// An empty graph, with the name that `croft graph` knows it by and a title for people.
    pub fn new(name: &'static str, title: &'static str) -> Graph {
        Graph { name, title, nodes: Vec::new(), flows: Vec::new() }
    }

    /// Adds a flow. The places at its ends can be declared later.
    ///
    /// # Panics
    /// If it needs a flow of a graph with another name.
    pub fn flow(&mut self, flow: Flow) -> FlowId {
        flow.needs.iter().for_each(|&id| self.assert_owns(id));
        self.flows.push(flow);
        FlowId { graph: self.name, at: self.flows.len() - 1 }
    }

    /// Declares a place that stops these flows when it fills up (L17).
    ///
    /// # Panics
    /// As every declaration of a place: if its label is taken, or a flow is of a graph with another
    /// name.
    pub fn throttle(&mut self, place: Place<Throttle>, capacity: u64, flows: &[FlowId]) {
        flows.iter().for_each(|&id| self.assert_owns(id));
        self.declare(place, capacity, Protection::Throttle { flows: flows.to_vec() });
    }

    /// Declares a place that lets load go along a flow at once when it is full (L25).
    pub fn release(&mut self, place: Place<Release>, capacity: u64, along: FlowId) {
        self.assert_owns(along);
        self.declare(place, capacity, Protection::Release { along });
    }

    /// Declares a place that keeps at most one item for each of so many objects; `objects` says what
    /// they are and what bounds them (L26).
    pub fn clown_car(&mut self, place: Place<ClownCar>, capacity: u64, objects: &'static str) {
        self.declare(place, capacity, Protection::ClownCar { objects });
    }

    /// Declares a place that drops what does not fit; `rectified_by` says what makes up for it (L16).
    pub fn shed(&mut self, place: Place<Shed>, capacity: u64, rectified_by: &'static str) {
        self.declare(place, capacity, Protection::Shed { rectified_by });
    }

    /// Declares a place that cannot hold more than this, for a written reason.
    pub fn bounded(&mut self, place: Place<Bounded>, capacity: u64, because: &'static str) {
        self.declare(place, capacity, Protection::Bounded { because });
    }

    /// Declares a place that nothing protects: a known exception, with its reason (L61).
    ///
    /// `expected` is what it should hold at most if the code keeps its discipline. Nothing enforces
    /// that, but the thresholds of other places count on it.
    pub fn unprotected(&mut self, place: Place<Unprotected>, expected: u64, because: &'static str) {
        self.declare(place, expected, Protection::Unprotected { because });
    }

    /// Whether the graph is immune to overload, and if not, why.
    pub fn check(&self) -> Verdict {
        check::check(self)
    }

    /// The limits for the code that runs this graph, if it is immune but for known exceptions.
    pub fn plan(&self) -> Result<Plan, NotImmune> {
        Plan::new(self)
    }

    /// The same graph with one place's protection taken away, for experiments and tests.
    ///
    /// # Panics
    /// If no place has this label.
    #[must_use]
    pub fn without_protection(&self, label: &str) -> Graph {
        let mut graph = self.clone();
        let Some(node) = graph.nodes.iter_mut().find(|node| node.label == label) else {
            panic!("graph {} has no place {label}", self.name);
        };
        node.protection = Protection::Removed;
        graph
    }

    /// The name that `croft graph` knows it by.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the graph is about.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// The labels of its places, in order of declaration.
    pub fn labels(&self) -> impl Iterator<Item = &'static str> {
        self.nodes.iter().map(|node| node.label)
    }

    /// Its flows, in order of declaration.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn node(&self, label: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.label == label)
    }

    pub(crate) fn flow_of(&self, id: FlowId) -> &Flow {
        &self.flows[id.at]
    }

    /// Every flow with its id.
    pub(crate) fn flow_ids(&self) -> impl Iterator<Item = (FlowId, &Flow)> {
        let id = |at| FlowId { graph: self.name, at };
        self.flows.iter().enumerate().map(move |(at, flow)| (id(at), flow))
    }

    /// The labels of the places that throttle this flow.
    pub(crate) fn throttlers(&self, id: FlowId) -> impl Iterator<Item = &'static str> {
        self.nodes.iter().filter(move |node| node.throttled().contains(&id)).map(|node| node.label)
    }

    fn declare<T: Technique>(&mut self, place: Place<T>, capacity: u64, protection: Protection) {
        let label = place.label();
        assert!(self.node(label).is_none(), "graph {} declares place {label} twice", self.name);
        self.nodes.push(Node {
            label,
            name: place.name(),
            unit: place.unit(),
            kind: place.kind(),
            capacity,
            protection,
        });
    }

    fn assert_owns(&self, id: FlowId) {
        let FlowId { graph, at } = id;
        assert!(graph == self.name, "a flow of graph {graph} was given to graph {}", self.name);
        assert!(at < self.flows.len(), "graph {} has no flow number {at}", self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: Place<Throttle> = Place::new("1A", "queue");

    #[test]
    #[should_panic(expected = "a flow of graph left was given to graph right")]
    fn a_flow_of_another_graph_is_a_bug() {
        let enter = Graph::new("left", "one").flow(Flow::entry("enter", QUEUE));
        let mut right = Graph::new("right", "another");
        right.flow(Flow::entry("enter", QUEUE));
        right.throttle(QUEUE, 10, &[enter]);
    }

    #[test]
    #[should_panic(expected = "flow \"enter\" makes nothing of its load")]
    fn a_flow_that_makes_nothing_of_its_load_is_a_bug() {
        let _ = Flow::entry("enter", QUEUE).times(0);
    }
}
