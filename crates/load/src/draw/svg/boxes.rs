//! The boxes of a drawing: places, and the names of flows.

use super::ink::{Align, BLUE, Font, GREY, INK, Ink, Point, RED, measure, wrap};
use crate::{
    check::{self, Standing, Verdict},
    draw::{
        layout::{Cell, Layout, Size, What},
        text::pace,
    },
    graph::{
        FlowId, Graph, Node, Protection,
        words::{amount, bare},
    },
};

/// The height of a place's frame.
pub const FRAME: f64 = 82.0;
/// How far apart the arrows of several throttles on one flow are.
pub const SLOT: f64 = 13.0;

const LABEL: Font = Font::bold(15.0, INK);
const NAME: Font = Font::new(13.0, INK);
const NOTE: Font = Font::new(11.0, GREY);
const INFINITY: Font = Font::bold(22.0, INK);
const SHED_ARROW: f64 = 26.0;
const SHED_WIDTH: f64 = 170.0;
const ROW: f64 = 14.0;

/// How large a box is.
pub fn size(graph: &Graph, what: What) -> Size {
    match what {
        What::Place(at) => place_size(graph, &graph.nodes()[at]),
        What::Tag(id) => tag_size(graph, id),
        What::Bend => Size { width: 0.0, height: ROW, anchor: ROW / 2.0 },
    }
}

fn place_size(graph: &Graph, node: &Node) -> Size {
    let is_infinite = node.protection.is_infinite();
    let infinity = if is_infinite { measure("∞", INFINITY) + 8.0 } else { 0.0 };
    let heading = (measure(node.label, LABEL) + infinity).max(measure(node.name, NAME));
    let notes = notes(graph, node).iter().map(|note| measure(note, NOTE)).fold(0.0, f64::max);
    let shed = shed_lines(node);
    let below = if shed.is_empty() { 0.0 } else { SHED_ARROW + 4.0 + ROW * shed.len() as f64 };
    let width = heading.max(notes).max(if shed.is_empty() { 0.0 } else { SHED_WIDTH });
    Size { width: width + 24.0, height: FRAME + below, anchor: FRAME / 2.0 }
}

fn tag_size(graph: &Graph, id: FlowId) -> Size {
    let flow = graph.flow_of(id);
    let notes = pace(flow);
    let widths = notes.iter().map(|note| measure(note, NOTE));
    let width = widths.fold(measure(flow.name, NAME), f64::max);
    let above = 22.0 + ROW * notes.len() as f64;
    let below = 8.0 + SLOT * graph.throttlers(id).count() as f64;
    Size { width: width + 14.0, height: above + below, anchor: above }
}

fn notes(graph: &Graph, node: &Node) -> [String; 2] {
    let most = format!("at most {}", amount(node.capacity, node.unit));
    let expected = format!("expected {}", amount(node.capacity, node.unit));
    match node.protection {
        Protection::Throttle { .. } => {
            let threshold = bare(check::threshold(graph, node), node.unit);
            [most, format!("stops flow at {threshold}")]
        }
        Protection::Unprotected { .. } => [expected, "known exception".to_owned()],
        Protection::Removed => [expected, "protection removed".to_owned()],
        Protection::Shed { .. } => [most, "sheds when full".to_owned()],
        _ => [most, node.kind.to_string()],
    }
}

fn shed_lines(node: &Node) -> Vec<String> {
    match node.protection {
        Protection::Shed { rectified_by } => wrap(rectified_by, SHED_WIDTH, NOTE),
        _ => Vec::new(),
    }
}

/// Draws all boxes.
pub fn draw(ink: &mut Ink, graph: &Graph, verdict: &Verdict, layout: &Layout) {
    for cell in &layout.cells {
        match cell.what {
            What::Place(at) => draw_place(ink, graph, verdict, &graph.nodes()[at], cell),
            What::Tag(id) => draw_tag(ink, graph, id, cell),
            What::Bend => {}
        }
    }
}

fn draw_place(ink: &mut Ink, graph: &Graph, verdict: &Verdict, node: &Node, cell: &Cell) {
    let (stroke, fill, text) = match verdict.standing(node.label) {
        Standing::Immune => (BLUE, "#eef4fb", INK),
        Standing::Exception | Standing::Vulnerable => (RED, "#fdecec", RED),
    };
    let (x, y, width) = (cell.x, cell.y, cell.size.width);
    ink.element(format_args!(
        "<rect class=\"place\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{FRAME}\" \
         rx=\"9\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.6\"/>"
    ));
    let left = x + 12.0;
    ink.text(left, y + 22.0, node.label, Align::Left, Font { colour: text, ..LABEL });
    ink.text(left, y + 41.0, node.name, Align::Left, Font { colour: text, ..NAME });
    for (row, note) in notes(graph, node).iter().enumerate() {
        let note_y = y + 58.0 + ROW * row as f64;
        ink.text(left, note_y, note, Align::Left, NOTE);
    }
    if node.protection.is_infinite() {
        let infinity_x = x + width - 8.0 - measure("∞", INFINITY) / 2.0;
        ink.text(infinity_x, y + 24.0, "∞", Align::Middle, INFINITY);
    }
    draw_shed(ink, node, cell);
}

fn draw_shed(ink: &mut Ink, node: &Node, cell: &Cell) {
    let lines = shed_lines(node);
    if lines.is_empty() {
        return;
    }
    let (middle, top) = (cell.x + cell.size.width / 2.0, cell.y + FRAME);
    let tip = top + SHED_ARROW;
    let data = format!("M {middle:.1} {top:.1} V {:.1}", tip - 6.0);
    ink.path("shed", &data, INK, 2.0, "stroke-dasharray=\"1.5 4\" stroke-linecap=\"round\"");
    ink.head(middle, tip, Point::Down, INK);
    for (row, line) in lines.iter().enumerate() {
        ink.text(middle, tip + ROW * (row + 1) as f64, line, Align::Middle, NOTE);
    }
}

fn draw_tag(ink: &mut Ink, graph: &Graph, id: FlowId, cell: &Cell) {
    let flow = graph.flow_of(id);
    let middle = cell.x + cell.size.width / 2.0;
    let notes = pace(flow);
    let mut y = cell.line_y() - 7.0;
    for note in notes.iter().rev() {
        ink.text(middle, y, note, Align::Middle, NOTE);
        y -= ROW;
    }
    ink.text(middle, y, flow.name, Align::Middle, NAME);
}
