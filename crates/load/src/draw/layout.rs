//! Where the boxes of a drawing go: columns from left to right, as load flows.
//!
//! Places stand in odd columns and the tags of flows (their names) in even ones, so that every name
//! has room of its own. A line that passes a column where it has no box gets a bend there, which is a
//! box too, so nothing is drawn across anything but other lines. Inside a column the order is chosen
//! to cross few lines, and the heights to keep lines straight.

mod heights;
mod order;

use crate::graph::{Flow, FlowId, Graph};

/// What a box of the drawing stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A place, by its index in the graph.
    Place(usize),
    /// The name of a flow.
    Tag(FlowId),
    /// Where a line passes a column.
    Bend,
}

/// A box and where it stands.
#[derive(Clone, Debug)]
pub struct Cell {
    pub what: What,
    pub column: usize,
    pub size: Size,
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
}

/// How large a box is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub width: f64,
    pub height: f64,
    /// How far below the upper edge its lines connect.
    pub anchor: f64,
}

impl Cell {
    /// The height at which lines connect.
    pub fn line_y(&self) -> f64 {
        self.y + self.size.anchor
    }

    pub fn right(&self) -> f64 {
        self.x + self.size.width
    }
}

/// A line of the drawing, along boxes in adjacent columns from left to right.
#[derive(Clone, Debug)]
pub struct Line {
    pub kind: LineKind,
    /// Indices of boxes.
    pub cells: Vec<usize>,
}

/// What a line of the drawing stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// A flow; backward if it leads from right to left.
    Flow { id: FlowId, is_backward: bool },
    /// A throttle, from a place to a flow.
    Throttle { flow: FlowId },
}

/// Boxes and lines with their places.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub cells: Vec<Cell>,
    pub lines: Vec<Line>,
    /// The boxes of each column, from top to bottom.
    columns: Vec<Vec<usize>>,
}

const BEND: Size = Size { width: 0.0, height: 14.0, anchor: 7.0 };
const GAP_X: f64 = 42.0;
const GAP_Y: f64 = 18.0;

impl Layout {
    /// Arranges the places in `members` and all flows that touch them; `size` measures boxes.
    pub fn new(graph: &Graph, members: &[usize], size: &dyn Fn(What) -> Size) -> Layout {
        let mut layout = Layout::default();
        let layers = layers(graph, members);
        let column_of = |label: Option<&str>| {
            members
                .iter()
                .position(|&at| Some(graph.nodes()[at].label) == label)
                .map(|at| (at, 2 * layers[at] + 1))
        };
        for (at, &member) in members.iter().enumerate() {
            let what = What::Place(member);
            layout.add(what, 2 * layers[at] + 1, size(what));
        }
        let mut tags = Vec::new();
        for (id, flow) in graph.flow_ids() {
            let (from, to) = (column_of(flow.from), column_of(flow.to));
            let column = match (from, to) {
                (None, None) => continue,
                (None, Some((_, to))) => to - 1,
                (Some((_, from)), Some((_, to))) if to < from => from - 1,
                (Some((_, from)), _) => from + 1,
            };
            let what = What::Tag(id);
            let tag = layout.add(what, column, size(what));
            tags.push((id, tag));
            let is_backward = matches!((from, to), (Some((_, from)), Some((_, to))) if to < from);
            let ends = [from, to].map(|end| end.map(|(at, _)| at));
            let (left, right) = if is_backward { (ends[1], ends[0]) } else { (ends[0], ends[1]) };
            let mut stops: Vec<_> = left.into_iter().collect();
            stops.push(tag);
            stops.extend(right);
            layout.join(LineKind::Flow { id, is_backward }, &stops);
        }
        for (at, &member) in members.iter().enumerate() {
            for &flow in graph.nodes()[member].throttled() {
                let Some(&(_, tag)) = tags.iter().find(|(id, _)| *id == flow) else { continue };
                let is_left = layout.cells[at].column < layout.cells[tag].column;
                let stops = if is_left { [at, tag] } else { [tag, at] };
                layout.join(LineKind::Throttle { flow }, &stops);
            }
        }
        order::choose(&mut layout);
        heights::choose(&mut layout);
        layout.choose_widths();
        layout
    }

    /// The right and lower edge.
    pub fn extent(&self) -> (f64, f64) {
        self.cells.iter().fold((0.0, 0.0), |(x, y), cell| {
            (f64::max(x, cell.right()), f64::max(y, cell.y + cell.size.height))
        })
    }

    fn add(&mut self, what: What, column: usize, size: Size) -> usize {
        let at = self.cells.len();
        self.cells.push(Cell { what, column, size, x: 0.0, y: 0.0 });
        if self.columns.len() <= column {
            self.columns.resize(column + 1, Vec::new());
        }
        self.columns[column].push(at);
        at
    }

    /// Adds a line through these boxes, with bends in the columns between them.
    fn join(&mut self, kind: LineKind, stops: &[usize]) {
        let mut cells: Vec<usize> = Vec::new();
        for &stop in stops {
            if let Some(&last) = cells.last() {
                for column in self.cells[last].column + 1..self.cells[stop].column {
                    let bend = self.add(What::Bend, column, BEND);
                    cells.push(bend);
                }
            }
            cells.push(stop);
        }
        self.lines.push(Line { kind, cells });
    }

    /// Pairs of boxes that a line joins, the left one first, and how straight it wants to be.
    fn joints(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        self.lines.iter().flat_map(|line| {
            let pull = match line.kind {
                LineKind::Flow { is_backward: false, .. } => 4.0,
                LineKind::Flow { is_backward: true, .. } => 1.0,
                LineKind::Throttle { .. } => 0.1,
            };
            let is_bend = |at: usize| self.cells[at].what == What::Bend;
            line.cells.windows(2).map(move |pair| {
                let is_loose = is_bend(pair[0]) && is_bend(pair[1]);
                (pair[0], pair[1], if is_loose { 4.0 } else { pull })
            })
        })
    }

    /// Columns side by side. Tags and bends are as wide as their column, so that lines run level
    /// past whatever else stands there.
    fn choose_widths(&mut self) {
        let mut x = 0.0;
        for column in &self.columns {
            let widths = column.iter().map(|&at| self.cells[at].size.width);
            let width = widths.fold(0.0, f64::max);
            for &at in column {
                let cell = &mut self.cells[at];
                if !matches!(cell.what, What::Place(_)) {
                    cell.size.width = width;
                }
                cell.x = x + (width - cell.size.width) / 2.0;
            }
            if !column.is_empty() {
                x += width + GAP_X;
            }
        }
    }
}

/// How many places come before each member on the longest way, counting no flow that leads back.
fn layers(graph: &Graph, members: &[usize]) -> Vec<usize> {
    let index =
        |label: Option<&str>| members.iter().position(|&at| Some(graph.nodes()[at].label) == label);
    // What happens by chance is the most likely to lead back.
    let flows = || graph.flows().iter();
    let sorted = flows().filter(|f| !f.is_by_chance).chain(flows().filter(|f| f.is_by_chance));
    let ends = |flow: &Flow| Some((index(flow.from)?, index(flow.to)?));
    let mut forward: Vec<(usize, usize)> = Vec::new();
    for (from, to) in sorted.filter_map(ends) {
        if !leads(&forward, to, from) {
            forward.push((from, to));
        }
    }
    let mut layers = vec![0; members.len()];
    for _ in members {
        for &(from, to) in &forward {
            layers[to] = layers[to].max(layers[from] + 1);
        }
    }
    layers
}

/// Whether one can get from one to the other.
fn leads(edges: &[(usize, usize)], from: usize, to: usize) -> bool {
    from == to || edges.iter().any(|edge| edge.0 == from && leads(edges, edge.1, to))
}

/// The places of a graph in groups that no line joins, each in order of declaration.
pub fn components(graph: &Graph) -> Vec<Vec<usize>> {
    let index = |label: Option<&str>| graph.nodes().iter().position(|n| Some(n.label) == label);
    let mut group: Vec<usize> = (0..graph.nodes().len()).collect();
    let mut unite = |a: usize, b: usize| {
        let (old, new) = (group[a].max(group[b]), group[a].min(group[b]));
        group.iter_mut().filter(|at| **at == old).for_each(|at| *at = new);
    };
    for (id, flow) in graph.flow_ids() {
        let ends = [index(flow.from), index(flow.to)].into_iter().flatten();
        let throttlers = graph.throttlers(id).filter_map(|by| index(Some(by)));
        let touched: Vec<_> = ends.chain(throttlers).collect();
        touched.windows(2).for_each(|pair| unite(pair[0], pair[1]));
    }
    let mut groups = group.clone();
    groups.sort_unstable();
    groups.dedup();
    let members = |id| group.iter().enumerate().filter(move |&(_, &g)| g == id).map(|(at, _)| at);
    groups.into_iter().map(|id| members(id).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs;

    fn size(what: What) -> Size {
        match what {
            What::Place(_) => Size { width: 120.0, height: 90.0, anchor: 30.0 },
            What::Tag(_) => Size { width: 80.0, height: 40.0, anchor: 30.0 },
            What::Bend => BEND,
        }
    }

    fn layouts() -> Vec<Layout> {
        let layouts = |graph: &Graph| {
            let groups = components(graph);
            groups.iter().map(|members| Layout::new(graph, members, &size)).collect::<Vec<_>>()
        };
        graphs::all().iter().flat_map(layouts).collect()
    }

    #[test]
    fn boxes_keep_their_distance() {
        for layout in layouts() {
            for (at, a) in layout.cells.iter().enumerate() {
                for b in &layout.cells[..at] {
                    let apart_x = (a.x - b.right()).max(b.x - a.right());
                    let apart_y = (a.y - b.y - b.size.height).max(b.y - a.y - a.size.height);
                    let is_apart = apart_x > GAP_X - 0.01 || apart_y > GAP_Y - 0.01;
                    assert!(is_apart, "{a:?} touches {b:?}");
                }
            }
        }
    }

    #[test]
    fn lines_go_from_column_to_column() {
        for layout in layouts() {
            for line in &layout.lines {
                for pair in line.cells.windows(2) {
                    let [left, right] = [pair[0], pair[1]].map(|at| layout.cells[at].column);
                    assert_eq!(left + 1, right);
                }
            }
        }
    }

    #[test]
    fn what_no_line_joins_is_drawn_apart() {
        let groups: Vec<_> = graphs::all().iter().map(components).collect();
        assert_eq!(groups[0], [vec![0, 1, 2, 3], vec![4, 5]]);
        assert!(groups[1..].iter().all(|groups| groups.len() == 1));
    }
}
