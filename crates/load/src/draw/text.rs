//! A graph as text: its places, its flows and the verdict.

use std::fmt::Write;

use crate::{
    check::{self, Standing, Verdict},
    graph::{
        Flow, FlowId, Graph, Node, Protection,
        words::{amount, bare, span},
    },
};

/// A graph as lines to read.
pub fn text(graph: &Graph, verdict: &Verdict) -> String {
    let mut out = format!("{}: {}\n", graph.name(), graph.title());
    out.push_str("\nplaces\n");
    push_table(&mut out, graph.nodes().iter().map(|node| place_row(graph, verdict, node)));
    out.push_str("\nflows\n");
    push_table(&mut out, graph.flow_ids().map(|(id, flow)| flow_row(graph, id, flow)));
    let _ = write!(out, "\nverdict\n  {}\n", verdict.summary());
    for line in remarks(verdict) {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// All that there is to say about a graph beyond its summary.
pub(super) fn remarks(verdict: &Verdict) -> Vec<String> {
    let findings = verdict.findings.iter().map(ToString::to_string);
    let exceptions = verdict.exceptions.iter().map(ToString::to_string);
    let cautions = verdict.cautions.iter().map(|caution| format!("caution: {caution}"));
    findings.chain(exceptions).chain(cautions).collect()
}

fn place_row(graph: &Graph, verdict: &Verdict, node: &Node) -> Vec<String> {
    let mark = match verdict.standing(node.label) {
        Standing::Immune => "",
        Standing::Exception => " (exception)",
        Standing::Vulnerable => " (NOT IMMUNE)",
    };
    vec![
        format!("{}{mark}", node.label),
        node.name.to_owned(),
        amount(node.capacity, node.unit),
        protection(graph, node),
    ]
}

/// A place's technique and what it asks for.
fn protection(graph: &Graph, node: &Node) -> String {
    let name = |id: FlowId| format!("\"{}\"", graph.flow_of(id).name);
    match &node.protection {
        Protection::Throttle { flows } => {
            let flows: Vec<_> = flows.iter().map(|&id| name(id)).collect();
            format!("throttles {} at {}", flows.join(", "), threshold(graph, node))
        }
        Protection::Release { along } => format!("releases prematurely along {}", name(*along)),
        Protection::ClownCar { objects } => format!("clown car: one for each of the {objects}"),
        Protection::Shed { rectified_by } => format!("sheds; {rectified_by}"),
        Protection::Bounded { because } => format!("bounded by design: {because}"),
        Protection::Unprotected { .. } => "unprotected, as is known".to_owned(),
        Protection::Removed => "protection removed".to_owned(),
    }
}

/// A threshold and how it follows from the capacities (L23): `15,360 = 16,384 − 1,024 (6A)`.
fn threshold(graph: &Graph, node: &Node) -> String {
    let mut text = bare(check::threshold(graph, node), node.unit);
    let between = check::between(graph, node);
    if !between.is_empty() {
        let _ = write!(text, " = {}", bare(node.capacity, node.unit));
    }
    for (label, capacity) in between {
        let _ = write!(text, " − {} ({label})", bare(capacity, node.unit));
    }
    text
}

fn flow_row(graph: &Graph, id: FlowId, flow: &Flow) -> Vec<String> {
    let arrow = if flow.is_itinerant { "⇒" } else { "→" };
    let from = flow.from.unwrap_or(if flow.is_foreign { "another machine" } else { "here" });
    let route = format!("{from} {arrow} {}", flow.to.unwrap_or("out"));
    let mut notes = pace(flow);
    notes.extend(graph.throttlers(id).map(|by| format!("stopped by {by}")));
    vec![format!("\"{}\"", flow.name), route, notes.join(", ")]
}

/// What a flow's pace depends on, in a few words each.
pub(super) fn pace(flow: &Flow) -> Vec<String> {
    let mut notes = Vec::new();
    if !flow.delay.is_zero() {
        notes.push(format!("after {}", span(flow.delay)));
    }
    if flow.gain > 1 {
        notes.push(format!("× {}", flow.gain));
    }
    if let Some(party) = flow.waits_for {
        notes.push(format!("waits for {party}"));
    }
    if flow.is_disk_bound {
        notes.push("disk work".to_owned());
    }
    if flow.is_by_chance {
        notes.push("by chance".to_owned());
    }
    notes
}

/// Adds rows with their columns aligned.
fn push_table(out: &mut String, rows: impl Iterator<Item = Vec<String>>) {
    let rows: Vec<_> = rows.collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<_> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("  {cell:width$}"));
        let line: String = cells.collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
