//! Walks through a graph: what can reach what, and how.
//!
//! Graphs are declared by hand and have a dozen places, so plain searches will do.

use std::collections::{BTreeSet, VecDeque};

use base::Duration;

use super::finding::{Origin, Path};
use crate::graph::{Flow, FlowId, Graph, Node};

/// The shortest path by which load from outside gets to a place without the flows in `cut`.
pub fn path(graph: &Graph, to: &'static str, cut: &[FlowId]) -> Option<Path> {
    let flows = || graph.flow_ids().filter(|(id, _)| !cut.contains(id)).map(|(_, flow)| flow);
    let mut seen = BTreeSet::new();
    let mut queue = VecDeque::new();
    for flow in flows().filter(|flow| flow.is_source()) {
        if let Some(label) = flow.to.filter(|label| seen.insert(*label)) {
            queue.push_back(Path {
                origin: Origin::of(flow),
                flow: flow.name,
                places: vec![label],
            });
        }
    }
    while let Some(path) = queue.pop_front() {
        let here = path.places.last().copied();
        if here == Some(to) {
            return Some(path);
        }
        for flow in flows().filter(|flow| flow.from == here && !flow.is_source()) {
            if let Some(label) = flow.to.filter(|label| seen.insert(*label)) {
                let mut longer = path.clone();
                longer.places.push(label);
                queue.push_back(longer);
            }
        }
    }
    None
}

/// The places whose load can still get to this one after it has closed its throttle.
///
/// L23 says "all reservoirs between the throttled link and R". This also counts what came through R
/// and can come back, so the bound holds in graphs with cycles.
pub fn feeders<'a>(graph: &'a Graph, node: &Node) -> Vec<&'a Node> {
    let mut found = BTreeSet::from([node.label]);
    loop {
        let more: Vec<_> = links(graph, node.throttled())
            .filter(|&(from, to, _)| found.contains(to) && !found.contains(from))
            .map(|(from, _, _)| from)
            .collect();
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    found.remove(node.label);
    graph.nodes().iter().filter(|node| found.contains(node.label)).collect()
}

/// A path from a throttled flow to the place that throttles it, and the delay on it.
pub struct Walk {
    pub path: Path,
    pub delay: Duration,
}

/// The slowest path from a throttled flow to the place that throttles it.
pub fn slowest(graph: &Graph, node: &Node, throttled: FlowId) -> Option<Walk> {
    let flow = graph.flow_of(throttled);
    let places = vec![flow.to?];
    let start = Path { origin: Origin::of(flow), flow: flow.name, places };
    // Load waits for its flow at the source, so the throttled flow's own delay lies before it.
    let mut walks = vec![Walk { path: start, delay: Duration::ZERO }];
    let mut slowest: Option<Walk> = None;
    while let Some(walk) = walks.pop() {
        let here = walk.path.places.last().copied();
        if here == Some(node.label) {
            if slowest.as_ref().is_none_or(|other| walk.delay > other.delay) {
                slowest = Some(walk);
            }
            continue;
        }
        for (_, to, flow) in links(graph, node.throttled()).filter(|link| Some(link.0) == here) {
            if !walk.path.places.contains(&to) {
                let mut path = walk.path.clone();
                path.places.push(to);
                walks.push(Walk { path, delay: walk.delay.saturating_add(flow.delay) });
            }
        }
    }
    slowest
}

/// A flow that multiplies load between a throttled flow and the place that throttles it.
pub fn multiplier<'a>(graph: &'a Graph, node: &'a Node, throttled: FlowId) -> Option<&'a Flow> {
    let flow = graph.flow_of(throttled);
    if flow.gain > 1 {
        return Some(flow);
    }
    let mut near: BTreeSet<_> = feeders(graph, node).iter().map(|node| node.label).collect();
    near.insert(node.label);
    // What goes out of the place counts too, for it may come back as more.
    links(graph, node.throttled())
        .find(|&(from, to, flow)| flow.gain > 1 && near.contains(from) && near.contains(to))
        .map(|(_, _, flow)| flow)
}

/// A flow between a throttled flow and the place that throttles it which waits for somebody else, and
/// for whom.
pub fn remote<'a>(
    graph: &'a Graph,
    node: &'a Node,
    throttled: FlowId,
) -> Option<(&'a Flow, &'static str)> {
    let start = graph.flow_of(throttled).to?;
    let cut = node.throttled();
    // Load that has come to the place is no longer on its way there.
    let ahead = reached(graph, start, cut, Some(node.label));
    let mut near: BTreeSet<_> = feeders(graph, node).iter().map(|node| node.label).collect();
    near.insert(node.label);
    graph
        .flow_ids()
        .filter(|(id, flow)| !cut.contains(id) && !flow.is_source())
        .filter(|(_, flow)| flow.from.is_some_and(|at| at != node.label && ahead.contains(at)))
        .filter(|(_, flow)| flow.to.is_some_and(|at| near.contains(at)))
        .find_map(|(id, flow)| {
            let mut needed = needs(graph, id).into_iter().map(|id| graph.flow_of(id));
            Some((flow, needed.find_map(|flow| flow.waits_for)?))
        })
}

/// Whether load of this flow can get to a place without leaving the machine.
pub fn leads_to(graph: &Graph, flow: FlowId, label: &str) -> bool {
    graph.flow_of(flow).to.is_some_and(|start| reached(graph, start, &[], None).contains(label))
}

/// The places that load gets to from a place, this one included, without the flows in `cut` and
/// without passing through `end`.
fn reached(
    graph: &Graph,
    start: &'static str,
    cut: &[FlowId],
    end: Option<&str>,
) -> BTreeSet<&'static str> {
    let mut seen = BTreeSet::from([start]);
    let mut queue = vec![start];
    while let Some(here) = queue.pop() {
        if Some(here) == end {
            continue;
        }
        let ahead = links(graph, cut).filter(|&(from, _, _)| from == here);
        queue.extend(ahead.map(|(_, to, _)| to).filter(|&to| seen.insert(to)));
    }
    seen
}

/// Whether load is sure to get from a place to somewhere outside.
pub fn can_leave(graph: &Graph, label: &'static str) -> bool {
    let mut seen = BTreeSet::from([label]);
    let mut queue = VecDeque::from([label]);
    while let Some(here) = queue.pop_front() {
        for flow in graph.flows().iter().filter(|flow| is_drain(flow, here)) {
            match flow.to.filter(|_| !flow.is_itinerant) {
                None => return true,
                Some(to) if seen.insert(to) => queue.push_back(to),
                Some(_) => {}
            }
        }
    }
    false
}

/// Whether a place can count on this flow to take load away from it.
fn is_drain(flow: &Flow, label: &str) -> bool {
    flow.from == Some(label) && !flow.is_by_chance
}

/// Whether a place can count on some flow to take load away from it.
pub fn has_drain(graph: &Graph, label: &str) -> bool {
    graph.flows().iter().any(|flow| is_drain(flow, label))
}

/// The places that might wait for each other for ever: each way out of one is stopped by another, or
/// one that throttles has no way out.
pub fn stuck(graph: &Graph) -> BTreeSet<&'static str> {
    let mut stuck: BTreeSet<_> = graph.labels().collect();
    loop {
        let is_stopped = |id: FlowId| {
            needs(graph, id).into_iter().any(|id| graph.throttlers(id).any(|by| stuck.contains(by)))
        };
        let is_drained = |label: &str| {
            graph.flow_ids().any(|(id, flow)| is_drain(flow, label) && !is_stopped(id))
        };
        // Nobody waits for a place that throttles nothing.
        let is_idle = |node: &Node| node.throttled().is_empty() && !has_drain(graph, node.label);
        let nodes = graph.nodes().iter().filter(|node| stuck.contains(node.label));
        let free = nodes.filter(|node| is_idle(node) || is_drained(node.label));
        let free: Vec<_> = free.map(|node| node.label).collect();
        if free.is_empty() {
            return stuck;
        }
        stuck.retain(|label| !free.contains(label));
    }
}

/// A flow and all that it needs to move.
pub fn needs(graph: &Graph, id: FlowId) -> BTreeSet<FlowId> {
    let mut found = BTreeSet::new();
    let mut queue = vec![id];
    while let Some(id) = queue.pop() {
        if found.insert(id) {
            queue.extend(&graph.flow_of(id).needs);
        }
    }
    found
}

/// Flows between places of this machine, less those in `cut`: from, to, flow.
fn links<'a>(
    graph: &'a Graph,
    cut: &'a [FlowId],
) -> impl Iterator<Item = (&'static str, &'static str, &'a Flow)> {
    graph
        .flow_ids()
        .filter(|(id, flow)| !cut.contains(id) && !flow.is_source())
        .filter_map(|(_, flow)| Some((flow.from?, flow.to?, flow)))
}
