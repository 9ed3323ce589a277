//! The lines of a drawing: flows and throttles.

use std::fmt::Write;

use super::{
    boxes::{FRAME, SLOT},
    ink::{BROWN, INK, Ink, Point},
};
use crate::{
    draw::layout::{Cell, Layout, Line, LineKind, What},
    graph::{FlowId, Graph},
};

/// The smallest step in a line, less than the distance of two lines at a place.
const STEP_MIN: f64 = 6.0;

/// Which side of a box.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// Draws all lines.
pub fn draw(ink: &mut Ink, graph: &Graph, layout: &Layout) {
    for (at, line) in layout.lines.iter().enumerate() {
        match line.kind {
            LineKind::Flow { id, is_backward } => {
                draw_flow(ink, graph, layout, at, id, is_backward);
            }
            LineKind::Throttle { flow } => draw_throttle(ink, graph, layout, at, flow),
        }
    }
}

fn draw_flow(
    ink: &mut Ink,
    graph: &Graph,
    layout: &Layout,
    at: usize,
    id: FlowId,
    is_backward: bool,
) {
    let flow = graph.flow_of(id);
    let data = route(layout, at);
    if flow.is_itinerant {
        ink.path("itinerant", &data, INK, 5.0, "");
        ink.path("itinerant", &data, "white", 2.2, "");
    } else {
        ink.path("flow", &data, INK, 1.5, "");
    }
    let cells = &layout.lines[at].cells;
    let (Some(&first), Some(&last)) = (cells.first(), cells.last()) else { return };
    let mut head = |x, y, point| {
        if flow.is_itinerant {
            ink.large_head(x, y, point, INK);
        } else {
            ink.head(x, y, point, INK);
        }
    };
    if is_backward {
        let cell = &layout.cells[first];
        head(cell.right(), port(layout, at, first, Side::Right), Point::Left);
    } else {
        let cell = &layout.cells[last];
        // An exit ends where its name does; everything else at the edge of a place.
        let is_exit = matches!(cell.what, What::Tag(_));
        let x = if is_exit { cell.right() + 8.0 } else { cell.x };
        head(x, port(layout, at, last, Side::Left), Point::Right);
    }
}

fn draw_throttle(ink: &mut Ink, graph: &Graph, layout: &Layout, at: usize, flow: FlowId) {
    let Line { cells, .. } = &layout.lines[at];
    let is_tag = |cell: &&usize| layout.cells[**cell].what == What::Tag(flow);
    let Some(&tag) = cells.iter().find(is_tag) else { return };
    let tag_cell = &layout.cells[tag];
    let (slot, count) = (slot(layout, at, flow), graph.throttlers(flow).count());
    // Arrows that come from below stand side by side, the lowest line farthest from its place.
    let spread = 16.0 * (slot as f64 - (count as f64 - 1.0) / 2.0);
    let x = tag_cell.x + tag_cell.size.width / 2.0;
    let is_first = cells.first() == Some(&tag);
    let x = if is_first { x - spread } else { x + spread };
    let y = tag_cell.line_y() + SLOT * (slot as f64 + 1.0);
    let edge = if is_first { tag_cell.right() } else { tag_cell.x };
    let bend = if is_first { x + 5.0 } else { x - 5.0 };
    let line_y = tag_cell.line_y();
    let up = format!("M {edge:.1} {y:.1} H {bend:.1} Q {x:.1} {y:.1} {x:.1} {:.1}", y - 5.0);
    let data = format!("{} {up} V {:.1}", route(layout, at), line_y + 7.0);
    ink.path("throttle", &data, BROWN, 1.5, "stroke-dasharray=\"6 4\"");
    ink.head(x, line_y + 1.0, Point::Up, BROWN);
}

/// Path data along a line's boxes; a throttle stops at the edge of its flow's tag.
fn route(layout: &Layout, at: usize) -> String {
    let line = &layout.lines[at];
    let mut data = String::new();
    let is_throttle = matches!(line.kind, LineKind::Throttle { .. });
    for pair in line.cells.windows(2) {
        let (left, right) = (&layout.cells[pair[0]], &layout.cells[pair[1]]);
        let (x1, y1) = (left.right(), port(layout, at, pair[0], Side::Right));
        let (x2, y2) = (right.x, port(layout, at, pair[1], Side::Left));
        // Level where an arrowhead may stand.
        let (start, end) = (x1 + level(left), x2 - level(right));
        let middle = (start + end) / 2.0;
        let _ = write!(
            data,
            " M {x1:.1} {y1:.1} H {start:.1} C {middle:.1} {y1:.1} {middle:.1} {y2:.1} {end:.1} \
             {y2:.1} H {x2:.1}"
        );
    }
    for &cell_at in &line.cells {
        let cell = &layout.cells[cell_at];
        let is_across = match cell.what {
            What::Place(_) => false,
            What::Tag(_) => !is_throttle,
            What::Bend => true,
        };
        if is_across {
            let y = port(layout, at, cell_at, Side::Left);
            let _ = write!(data, " M {:.1} {y:.1} H {:.1}", cell.x, cell.right());
        }
    }
    data.trim_start().to_owned()
}

/// How far a line runs level beside a box.
fn level(cell: &Cell) -> f64 {
    if matches!(cell.what, What::Place(_)) { 8.0 } else { 0.0 }
}

/// The height at which a line meets a side of a box.
fn port(layout: &Layout, at: usize, cell_at: usize, side: Side) -> f64 {
    let cell = &layout.cells[cell_at];
    match (cell.what, layout.lines[at].kind) {
        (What::Tag(id), LineKind::Throttle { flow }) if id == flow => {
            cell.line_y() + SLOT * (slot(layout, at, flow) as f64 + 1.0)
        }
        (What::Place(_), _) => {
            let y = cell.y + share(layout, at, cell_at, side) * FRAME;
            let ends = ends(layout, cell_at, side);
            let from = ends.iter().find(|end| end.0 == at).map_or(y, |end| end.1);
            // A step that is hardly seen is better not made.
            if (from - y).abs() < STEP_MIN { from } else { y }
        }
        _ => cell.line_y(),
    }
}

/// How far down a side of a place a line meets it, from 0 to 1.
///
/// Flows share the side evenly, so that a single one runs straight. Throttles fit in between.
fn share(layout: &Layout, at: usize, cell_at: usize, side: Side) -> f64 {
    let mut ends = ends(layout, cell_at, side);
    ends.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let is_flow = |line: usize| matches!(layout.lines[line].kind, LineKind::Flow { .. });
    let rank = ends.iter().position(|&(line, _)| line == at).unwrap_or(0);
    let flow_count = ends.iter().filter(|end| is_flow(end.0)).count();
    let flows_above = ends[..rank].iter().filter(|end| is_flow(end.0)).count();
    let step = 1.0 / (flow_count as f64 + 1.0);
    if is_flow(at) {
        return step * (flows_above as f64 + 1.0);
    }
    let throttles = |ends: &mut dyn Iterator<Item = &(usize, f64)>| {
        ends.take_while(|end| !is_flow(end.0)).count() as f64
    };
    let above = throttles(&mut ends[..rank].iter().rev());
    let below = throttles(&mut ends[rank..].iter());
    step * (flows_above as f64 + (above + 1.0) / (above + below + 1.0))
}

/// The lines that meet a side of a place, with the heights that they come from.
fn ends(layout: &Layout, cell_at: usize, side: Side) -> Vec<(usize, f64)> {
    let mut ends = Vec::new();
    for (at, line) in layout.lines.iter().enumerate() {
        let Some(position) = line.cells.iter().position(|&cell| cell == cell_at) else { continue };
        let neighbour = match side {
            Side::Left => position.checked_sub(1),
            Side::Right => Some(position + 1),
        };
        let Some(&neighbour) = neighbour.and_then(|neighbour| line.cells.get(neighbour)) else {
            continue;
        };
        let below = match line.kind {
            LineKind::Throttle { flow } if layout.cells[neighbour].what == What::Tag(flow) => {
                SLOT * (slot(layout, at, flow) as f64 + 1.0)
            }
            _ => 0.0,
        };
        ends.push((at, layout.cells[neighbour].line_y() + below));
    }
    ends
}

/// Which of the throttles on a flow a line is, counted from the flow downward.
///
/// The lower a line comes from, the lower it arrives, so that they do not cross.
fn slot(layout: &Layout, at: usize, flow: FlowId) -> usize {
    let lines = layout.lines.iter().enumerate();
    let throttles = lines.filter(|(_, line)| line.kind == LineKind::Throttle { flow });
    let mut sorted: Vec<_> = throttles
        .map(|(line_at, line)| {
            let others = line.cells.windows(2).filter_map(|pair| {
                let is_tag = |at: usize| layout.cells[at].what == What::Tag(flow);
                match (is_tag(pair[0]), is_tag(pair[1])) {
                    (true, _) => Some(pair[1]),
                    (_, true) => Some(pair[0]),
                    _ => None,
                }
            });
            let y = others.map(|other| layout.cells[other].line_y()).fold(0.0, f64::max);
            (y, line_at)
        })
        .collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    sorted.iter().position(|&(_, line_at)| line_at == at).unwrap_or(0)
}
