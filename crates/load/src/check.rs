//! The checker: which places of a graph are immune to overload, which are not, and why.
//!
//! Everything here is a sufficient rule over the declaration alone (L22 to L27). Reading order:
//! [`check`], then the rules in the order of the techniques, then `reach` for the walks.

mod finding;
mod reach;
mod system;
#[cfg(test)]
mod tests;
mod verdict;

pub use finding::{Fault, Finding, Origin, Path};
pub use system::System;
pub use verdict::{Exception, Standing, Verdict};

use base::Duration;

use crate::graph::{Flow, FlowId, Graph, Node, Protection};

/// The longest time that load may take from a throttled flow to the place that throttles it (L24).
///
/// The paper says "short" and forbids an hour; a client's seconds must be possible (L39).
pub const THROTTLE_DELAY_MAX: Duration = Duration::from_secs(60);

/// Checks a graph.
pub(crate) fn check(graph: &Graph) -> Verdict {
    let mut verdict = Verdict::new(graph.name());
    check_ends(graph, &mut verdict);
    for node in graph.nodes() {
        check_node(graph, node, &mut verdict);
        check_connection(graph, node, &mut verdict);
    }
    check_deadlock(graph, &mut verdict);
    verdict
}

/// The level at which a place stops what fills it (L23); its capacity unless it throttles.
pub(crate) fn threshold(graph: &Graph, node: &Node) -> u64 {
    match node.protection {
        Protection::Throttle { .. } => {
            let between = reach::feeders(graph, node);
            between.iter().fold(node.capacity, |left, feeder| left.saturating_sub(feeder.capacity))
        }
        _ => node.capacity,
    }
}

/// The places whose load counts against a throttling place's threshold, with their capacities.
pub(crate) fn between(graph: &Graph, node: &Node) -> Vec<(&'static str, u64)> {
    match node.protection {
        Protection::Throttle { .. } => {
            reach::feeders(graph, node).iter().map(|node| (node.label, node.capacity)).collect()
        }
        _ => Vec::new(),
    }
}

/// Flows lead from and to places that are declared.
fn check_ends(graph: &Graph, verdict: &mut Verdict) {
    for flow in graph.flows() {
        for label in [flow.from, flow.to].into_iter().flatten() {
            if graph.node(label).is_none() {
                let fault = Fault::Undeclared { flow: flow.name };
                verdict.findings.push(Finding { place: label, name: "undeclared", fault });
            }
        }
    }
}

fn check_node(graph: &Graph, node: &Node, verdict: &mut Verdict) {
    let fault = |fault| Finding { place: node.label, name: node.name, fault };
    if node.capacity == 0 {
        verdict.findings.push(fault(Fault::NoRoom));
    }
    match &node.protection {
        Protection::Throttle { flows } => {
            verdict.findings.extend(check_throttle(graph, node, flows).into_iter().map(fault));
            let shaky = reach::feeders(graph, node).into_iter().filter(|node| !is_held(node));
            let shaky = shaky.map(|feeder| Fault::CountsOn {
                feeder: feeder.label,
                capacity: feeder.capacity,
                unit: feeder.unit,
            });
            verdict.cautions.extend(shaky.map(fault));
            let aside = flows.iter().filter(|&&id| !reach::leads_to(graph, id, node.label));
            let aside = aside.map(|&id| Fault::ThrottlesAside { flow: graph.flow_of(id).name });
            verdict.cautions.extend(aside.map(fault));
        }
        Protection::Release { along } => {
            verdict.findings.extend(check_release(graph, node, *along).into_iter().map(fault));
        }
        Protection::ClownCar { objects: "" } => verdict.findings.push(fault(Fault::NoObjects)),
        Protection::Shed { rectified_by: "" } => verdict.findings.push(fault(Fault::NoRectifier)),
        Protection::Bounded { because: "" } | Protection::Unprotected { because: "" } => {
            verdict.findings.push(fault(Fault::NoReason));
        }
        // L22 (1): infinite-load management, shedding included.
        Protection::ClownCar { .. } | Protection::Shed { .. } | Protection::Bounded { .. } => {}
        // L61: the exception is known, and reported as what it is.
        Protection::Unprotected { because } => {
            if let Some(path) = reach::path(graph, node.label, &[]) {
                let exception = Exception { place: node.label, name: node.name, path, because };
                verdict.exceptions.push(exception);
            }
        }
        Protection::Removed => {
            let path = reach::path(graph, node.label, &[]);
            verdict.findings.extend(path.map(|path| fault(Fault::Unprotected { path })));
        }
    }
}

/// Whether something keeps the place at its capacity.
fn is_held(node: &Node) -> bool {
    !matches!(node.protection, Protection::Unprotected { .. } | Protection::Removed)
}

fn check_throttle(graph: &Graph, node: &Node, flows: &[FlowId]) -> Vec<Fault> {
    let mut faults = Vec::new();
    // L22 (2): without the links that it throttles, no entry may lead to it.
    if let Some(path) = reach::path(graph, node.label, flows) {
        faults.push(Fault::Unthrottled { path });
    }
    faults.extend(check_threshold(graph, node));
    for &id in flows {
        let flow = graph.flow_of(id);
        faults.extend(stop_obstacle(flow).map(|why| Fault::Unstoppable { flow: flow.name, why }));
        // L24: a throttle across a long delay oscillates.
        if let Some(walk) = reach::slowest(graph, node, id)
            && walk.delay > THROTTLE_DELAY_MAX
        {
            faults.push(Fault::Delayed { flow: flow.name, delay: walk.delay, path: walk.path });
        }
        // L24: nor may a small leak become a flood on the way.
        faults.extend(reach::multiplier(graph, node, id).map(|by| Fault::Multiplied {
            flow: flow.name,
            by: by.name,
            gain: by.gain,
        }));
        // L24, L18: nor may the answer to a throttle depend on another machine.
        faults.extend(reach::remote(graph, node, id).map(|(by, party)| Fault::Remote {
            flow: flow.name,
            by: by.name,
            party,
        }));
    }
    faults
}

/// L23: everything that can still arrive after the throttle has closed must fit.
fn check_threshold(graph: &Graph, node: &Node) -> Vec<Fault> {
    let feeders = reach::feeders(graph, node);
    if let Some(feeder) = feeders.iter().find(|feeder| feeder.unit != node.unit) {
        let (feeder, feeder_unit) = (feeder.label, feeder.unit);
        return vec![Fault::Units { unit: node.unit, feeder, feeder_unit }];
    }
    let pending: u128 = feeders.iter().map(|feeder| u128::from(feeder.capacity)).sum();
    if node.capacity == 0 || u128::from(node.capacity) > pending {
        return Vec::new();
    }
    let between = feeders.iter().map(|feeder| (feeder.label, feeder.capacity)).collect();
    vec![Fault::Threshold { capacity: node.capacity, unit: node.unit, between }]
}

/// L24, L18: what is throttled can be stopped, here.
fn stop_obstacle(flow: &Flow) -> Option<String> {
    if flow.is_itinerant {
        return Some("it comes back by way of other machines".to_owned());
    }
    if flow.is_foreign {
        return Some("it starts on another machine".to_owned());
    }
    flow.unstoppable.map(str::to_owned)
}

/// L25: release must always be faster than what comes in.
fn check_release(graph: &Graph, node: &Node, along: FlowId) -> Vec<Fault> {
    let flow = graph.flow_of(along);
    let name = flow.name;
    let mut faults = Vec::new();
    if flow.from != Some(node.label) {
        faults.push(Fault::ReleaseElsewhere { flow: name });
    }
    let others = reach::needs(graph, along).into_iter().filter(|&id| id != along);
    for id in std::iter::once(along).chain(others) {
        let flow = graph.flow_of(id);
        let needed = (id != along).then_some(flow.name);
        for by in graph.throttlers(id) {
            faults.push(Fault::ReleaseThrottled { flow: name, needed, by });
        }
        if let Some(party) = flow.waits_for {
            faults.push(Fault::ReleaseWaits { flow: name, needed, party });
        } else if flow.is_itinerant {
            faults.push(Fault::ReleaseWaits { flow: name, needed, party: "other machines" });
        }
        if flow.is_disk_bound {
            faults.push(Fault::ReleaseDiskBound { flow: name, needed });
        }
        if flow.is_by_chance {
            faults.push(Fault::ReleaseByChance { flow: name, needed });
        }
    }
    faults.extend(release_circle(graph, node).map(|with| Fault::ReleaseCircle { with }));
    faults
}

/// The places that what this one releases passes, each releasing it in turn, until it is back.
fn release_circle(graph: &Graph, node: &Node) -> Option<Vec<&'static str>> {
    let mut passed = Vec::new();
    let mut here = node;
    while let Protection::Release { along } = here.protection {
        let flow = graph.flow_of(along);
        let next = flow.to.filter(|_| flow.from == Some(here.label))?;
        if next == node.label {
            return Some(passed);
        }
        // A circle farther on is the matter of those in it.
        if passed.contains(&next) {
            return None;
        }
        passed.push(next);
        here = graph.node(next)?;
    }
    None
}

/// A place that nothing reaches or nothing leaves is probably a mistake in the declaration.
fn check_connection(graph: &Graph, node: &Node, verdict: &mut Verdict) {
    let caution = |fault| Finding { place: node.label, name: node.name, fault };
    if reach::path(graph, node.label, &[]).is_none() {
        verdict.cautions.push(caution(Fault::Unreached));
    }
    if !reach::can_leave(graph, node.label) {
        verdict.cautions.push(caution(Fault::Undrained));
    }
}

/// A throttle must not stop, directly or in a circle, what drains the place that throttles.
fn check_deadlock(graph: &Graph, verdict: &mut Verdict) {
    let stuck = reach::stuck(graph);
    for node in graph.nodes().iter().filter(|node| stuck.contains(&node.label)) {
        if node.throttled().is_empty() {
            continue;
        }
        if !reach::has_drain(graph, node.label) {
            let fault = Fault::NoDrain;
            verdict.findings.push(Finding { place: node.label, name: node.name, fault });
            continue;
        }
        let others = stuck.iter().copied().filter(|&label| label != node.label).collect();
        let fault = Fault::Deadlock { with: others };
        verdict.findings.push(Finding { place: node.label, name: node.name, fault });
    }
}
