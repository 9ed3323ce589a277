//! Systems: several graphs of one machine that may overlap.

use super::{
    Verdict,
    finding::{Fault, Finding},
    reach,
};
use crate::graph::{Flow, Graph, Node, Protection};

/// Several graphs that together describe one machine.
///
/// A large graph may be cut into subsystems that overlap, and a flow that is cut becomes an exit of one
/// and an entry of the other, of the same name (L20). A place need only be immune in one of those that
/// contain it (L22), if that one has all that fills the place.
#[derive(Clone, Debug)]
pub struct System {
    name: &'static str,
    graphs: Vec<Graph>,
}

impl System {
    /// A system of these graphs. Equal labels mean the same place, and equal names of flows to the same
    /// place the same flow.
    pub fn new(name: &'static str, graphs: Vec<Graph>) -> System {
        System { name, graphs }
    }

    /// Whether every place is immune in some graph, and if not, why.
    pub fn check(&self) -> Verdict {
        let verdicts: Vec<_> = self.graphs.iter().map(|graph| (graph, graph.check())).collect();
        let mut whole = Verdict::new(self.name);
        for (at, second) in self.graphs.iter().enumerate() {
            for first in &self.graphs[..at] {
                whole.findings.extend(contradictions(first, second));
            }
        }
        let is_proven = |label: &str| {
            verdicts.iter().any(|(graph, verdict)| {
                let is_faulty = verdict.findings.iter().any(|finding| finding.place == label);
                let node = graph.node(label).filter(|_| !is_faulty);
                node.is_some_and(|node| self.missing(graph, node).is_none())
            })
        };
        for (_, verdict) in &verdicts {
            // Where a graph was cut, load seems to come round the throttle. A graph that has it all
            // knows better about that, but about nothing else.
            let is_refuted = |finding: &&Finding| {
                matches!(finding.fault, Fault::Unthrottled { .. }) && is_proven(finding.place)
            };
            let findings = verdict.findings.iter().filter(|finding| !is_refuted(finding));
            whole.findings.extend(findings.cloned());
            whole.cautions.extend(verdict.cautions.iter().cloned());
            for exception in &verdict.exceptions {
                if !whole.exceptions.iter().any(|other| other.place == exception.place) {
                    whole.exceptions.push(exception.clone());
                }
            }
        }
        for graph in &self.graphs {
            for node in graph.nodes() {
                let is_known = whole.findings.iter().any(|finding| finding.place == node.label);
                if !is_known && !is_proven(node.label) {
                    whole.findings.extend(self.missing(graph, node));
                }
            }
        }
        whole
    }

    /// What a graph would have to know to show that a place is immune, but does not.
    fn missing(&self, graph: &Graph, node: &Node) -> Option<Finding> {
        // The other techniques bear whatever comes (L22).
        let Protection::Throttle { .. } = node.protection else { return None };
        let feeders = reach::feeders(graph, node);
        let is_near = |label| label == node.label || feeders.iter().any(|near| near.label == label);
        self.graphs.iter().find_map(|other| {
            let mut filling = other.flows().iter().filter(|flow| flow.to.is_some_and(is_near));
            let is_here =
                |flow: &Flow| graph.flows().iter().any(|f| is_same(f, graph, flow, other));
            let flow = filling.find(|flow| !is_here(flow))?.name;
            let fault = Fault::Partial { graph: graph.name(), flow, other: other.name() };
            Some(Finding { place: node.label, name: node.name, fault })
        })
    }
}

/// Whether two flows of two graphs are one; either graph may have cut it (L20).
fn is_same(a: &Flow, in_a: &Graph, b: &Flow, in_b: &Graph) -> bool {
    let is_cut = |end: Option<&str>, there: Option<&str>, graph: &Graph| {
        end.is_none() && there.is_some_and(|label| graph.node(label).is_none())
    };
    let from = a.from == b.from || is_cut(a.from, b.from, in_a) || is_cut(b.from, a.from, in_b);
    a.name == b.name && a.to == b.to && from
}

/// What two graphs say differently of the same place.
fn contradictions(first: &Graph, second: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    let graphs = [first.name(), second.name()];
    for b in second.nodes() {
        let Some(a) = first.node(b.label) else { continue };
        let is_removed = |node: &Node| matches!(node.protection, Protection::Removed);
        let mut differences: Vec<_> = [
            ("its name", a.name != b.name),
            ("its unit", a.unit != b.unit),
            ("its technique", a.kind != b.kind || is_removed(a) != is_removed(b)),
            ("its capacity", a.capacity != b.capacity),
        ]
        .into_iter()
        .filter(|&(_, differs)| differs)
        .map(|(what, _)| what.to_owned())
        .collect();
        if differences.is_empty() {
            differences.extend(conduct(first, a, second, b));
        }
        for flow in second.flows().iter().filter(|flow| flow.to.or(flow.from) == Some(b.label)) {
            let ends = |f: &Flow| (f.name, f.from, f.to);
            let twins: Vec<_> = first.flows().iter().filter(|f| ends(f) == ends(flow)).collect();
            if !twins.is_empty() && !twins.iter().any(|twin| pace(twin) == pace(flow)) {
                differences.push(format!("\"{}\"", flow.name));
            }
        }
        let fault = |what| Fault::Contradiction { what, graphs };
        let finding = |what| Finding { place: b.label, name: b.name, fault: fault(what) };
        findings.extend(differences.into_iter().map(finding));
    }
    findings
}

/// What two graphs say differently of what the same place does to flows that both have.
fn conduct(first: &Graph, a: &Node, second: &Graph, b: &Node) -> Vec<String> {
    if let (Protection::Release { along: one }, Protection::Release { along: other }) =
        (&a.protection, &b.protection)
    {
        let [one, other] = [first.flow_of(*one), second.flow_of(*other)].map(|flow| flow.name);
        return if one == other { Vec::new() } else { vec!["what it releases along".to_owned()] };
    }
    let mut differences = Vec::new();
    for (id, flow) in second.flow_ids() {
        let mut twins =
            first.flow_ids().filter(|(_, f)| is_same(f, first, flow, second)).peekable();
        let is_throttled = b.throttled().contains(&id);
        if twins.peek().is_some()
            && !twins.any(|(id, _)| a.throttled().contains(&id) == is_throttled)
        {
            differences.push(format!("whether it throttles \"{}\"", flow.name));
        }
    }
    differences
}

/// All that the checker goes by in a flow, but for its ends and what it needs.
fn pace(flow: &Flow) -> impl PartialEq {
    let Flow { is_foreign, is_itinerant, delay, gain, .. } = *flow;
    let Flow { waits_for, is_disk_bound, is_by_chance, unstoppable, .. } = *flow;
    let kind = (is_foreign, is_itinerant, delay, gain);
    (kind, waits_for, is_disk_bound, is_by_chance, unstoppable)
}
