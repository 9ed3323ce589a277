//! A graph as DOT, for those who have Graphviz.
//!
//! The papers' symbols (L21) as near as DOT comes to them: a throttled flow has a small point on it,
//! where the dashed arrow of its throttle ends.

use std::fmt::Write;

use super::text::{pace, remarks};
use crate::{
    check::{self, Standing, Verdict},
    graph::{
        Flow, FlowId, Graph, Node, Protection,
        words::{amount, bare},
    },
};

/// A graph in the DOT language.
pub fn dot(graph: &Graph, verdict: &Verdict) -> String {
    let mut out = format!("digraph {} {{\n", quote(graph.name()));
    let label = format!("{}\n{}", graph.title(), verdict.summary());
    let label = remarks(verdict).iter().fold(label, |label, remark| label + "\n" + remark);
    let _ = writeln!(out, "  label={}; labelloc=b; labeljust=l; rankdir=LR;", quote(&label));
    out.push_str("  node [shape=box, style=rounded, fontname=sans];\n");
    out.push_str("  edge [fontname=sans, fontsize=10];\n");
    for node in graph.nodes() {
        push_place(&mut out, graph, verdict, node);
    }
    for (id, flow) in graph.flow_ids() {
        push_flow(&mut out, graph, id, flow);
    }
    for node in graph.nodes() {
        for id in node.throttled() {
            let (place, point) = (quote(node.label), unlabelled(graph, format!("flow{}", id.at)));
            let _ = writeln!(out, "  {place} -> {point} [style=dashed, constraint=false];");
        }
    }
    out.push_str("}\n");
    out
}

fn push_place(out: &mut String, graph: &Graph, verdict: &Verdict, node: &Node) {
    let mut label = format!("{} {}\n", node.label, node.name);
    match &node.protection {
        protection if protection.is_infinite() => label.push_str("∞ "),
        Protection::Throttle { .. } => {
            let _ =
                write!(label, "stops at {} of ", bare(check::threshold(graph, node), node.unit));
        }
        _ => {}
    }
    label.push_str(&amount(node.capacity, node.unit));
    let colour = match verdict.standing(node.label) {
        Standing::Immune => "",
        Standing::Exception | Standing::Vulnerable => ", color=red, fontcolor=red",
    };
    let _ = writeln!(out, "  {} [label={}{colour}];", quote(node.label), quote(&label));
    if let Protection::Shed { rectified_by } = node.protection {
        let shed = unlabelled(graph, format!("{} shed", node.label));
        let (place, shed) = (quote(node.label), quote(&shed));
        let rectified_by = quote(&format!("shed: {rectified_by}"));
        let _ = writeln!(out, "  {shed} [label={rectified_by}, shape=plaintext, fontsize=10];");
        let _ = writeln!(out, "  {place} -> {shed} [style=dotted];");
        let _ = writeln!(out, "  {{ rank=same; {place}; {shed}; }}");
    }
}

fn push_flow(out: &mut String, graph: &Graph, id: FlowId, flow: &Flow) {
    let mut end = |label: Option<&str>, side: &str| match label {
        Some(label) => quote(label),
        None => {
            let name = unlabelled(graph, format!("{side}{}", id.at));
            let _ = writeln!(out, "  {name} [shape=plaintext, label=\"\"];");
            name
        }
    };
    let (from, to) = (end(flow.from, "entry"), end(flow.to, "exit"));
    let label = std::iter::once(flow.name.to_owned()).chain(pace(flow)).collect::<Vec<_>>();
    let label = quote(&label.join("\n"));
    let style = if flow.is_itinerant { ", color=\"black:white:black\"" } else { "" };
    if graph.throttlers(id).next().is_none() {
        let _ = writeln!(out, "  {from} -> {to} [label={label}{style}];");
        return;
    }
    let point = unlabelled(graph, format!("flow{}", id.at));
    let _ = writeln!(out, "  {point} [shape=point, width=0.05];");
    let _ = writeln!(out, "  {from} -> {point} [label={label}, arrowhead=none{style}];");
    let _ = writeln!(out, "  {point} -> {to} [{}];", style.trim_start_matches(", "));
}

/// A name for a node that is no place, changed until no place has it as its label: to DOT, a name is
/// the same with quotes and without.
fn unlabelled(graph: &Graph, mut name: String) -> String {
    let ends = || graph.flows().iter().flat_map(|flow| [flow.from, flow.to]).flatten();
    while graph.labels().chain(ends()).any(|label| label == name) {
        name.push('_');
    }
    name
}

/// Text as a DOT string; its lines are flush left.
fn quote(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    let text = if text.contains('\n') { text.replace('\n', "\\l") + "\\l" } else { text };
    format!("\"{text}\"")
}
