//! How high the boxes of a column stand: as level with their neighbours as their order allows.

use super::{GAP_Y, Layout, LineKind, What};

const ROUNDS: usize = 200;

/// Gives every box its upper edge; the highest stands at 0.
pub fn choose(layout: &mut Layout) {
    for column in layout.columns.clone() {
        let mut y = 0.0;
        for at in column {
            layout.cells[at].y = y;
            y += layout.cells[at].size.height + GAP_Y;
        }
    }
    let joints: Vec<_> = layout.joints().collect();
    for round in 0..ROUNDS {
        let count = layout.columns.len();
        for step in 0..count {
            let column = if round % 2 == 0 { step } else { count - 1 - step };
            level_column(layout, column, &joints);
        }
    }
    for line in 0..layout.lines.len() {
        level_run(layout, line);
    }
    let top = layout.cells.iter().map(|cell| cell.y).fold(f64::INFINITY, f64::min);
    layout.cells.iter_mut().for_each(|cell| cell.y -= top);
}

/// Moves each box of a column to the mean height of its neighbours, as near as the others let it.
fn level_column(layout: &mut Layout, column: usize, joints: &[(usize, usize, f64)]) {
    let cells = &layout.cells;
    let mut blocks: Vec<Block> = Vec::new();
    let mut offset = 0.0;
    for &at in &layout.columns[column] {
        let (mut sum, mut weight) = (0.0, 0.0);
        for &(left, right, pull) in joints {
            let neighbour = match at {
                _ if left == at => right,
                _ if right == at => left,
                _ => continue,
            };
            sum += pull * (cells[neighbour].line_y() - cells[at].size.anchor - offset);
            weight += pull;
        }
        if weight == 0.0 {
            (sum, weight) = (cells[at].y - offset, 1.0);
        }
        blocks.push(Block { sum, weight, members: vec![(at, offset)] });
        offset += cells[at].size.height + GAP_Y;
        // Boxes that would overlap form a block, which moves as one.
        while blocks.len() > 1 && blocks[blocks.len() - 2].y() > blocks[blocks.len() - 1].y() {
            if let (Some(lower), Some(upper)) = (blocks.pop(), blocks.last_mut()) {
                upper.sum += lower.sum;
                upper.weight += lower.weight;
                upper.members.extend(lower.members);
            }
        }
    }
    for block in blocks {
        for &(at, offset) in &block.members {
            layout.cells[at].y = block.y() + offset;
        }
    }
}

/// Draws a long line level, if the boxes above and below it leave room for that.
fn level_run(layout: &mut Layout, line: usize) {
    let line = &layout.lines[line];
    // The tag of a throttled flow belongs to the flow and not to the throttle.
    let is_free = |what| match line.kind {
        LineKind::Flow { .. } => !matches!(what, What::Place(_)),
        LineKind::Throttle { .. } => what == What::Bend,
    };
    let cells = line.cells.iter().copied();
    let run: Vec<_> = cells.filter(|&at| is_free(layout.cells[at].what)).collect();
    let (mut upper, mut lower) = (f64::NEG_INFINITY, f64::INFINITY);
    for &at in &run {
        let (highest, lowest) = room(layout, at);
        (upper, lower) = (upper.max(highest), lower.min(lowest));
    }
    let mean = run.iter().map(|&at| layout.cells[at].line_y()).sum::<f64>() / run.len() as f64;
    if run.len() < 2 || upper > lower {
        return;
    }
    let y = mean.clamp(upper, lower);
    for at in run {
        layout.cells[at].y = y - layout.cells[at].size.anchor;
    }
}

/// The highest and the lowest line that a box can have between those above and below it.
fn room(layout: &Layout, at: usize) -> (f64, f64) {
    let cell = &layout.cells[at];
    let column = &layout.columns[cell.column];
    let rank = column.iter().position(|&other| other == at).unwrap_or(0);
    let above = rank.checked_sub(1).map(|rank| &layout.cells[column[rank]]);
    let below = column.get(rank + 1).map(|&other| &layout.cells[other]);
    let upper = above.map_or(f64::NEG_INFINITY, |other| other.y + other.size.height + GAP_Y);
    let lower = below.map_or(f64::INFINITY, |other| other.y - GAP_Y - cell.size.height);
    (upper + cell.size.anchor, lower + cell.size.anchor)
}

/// Boxes that touch, with the weighted sum of where they want to be.
struct Block {
    sum: f64,
    weight: f64,
    members: Vec<(usize, f64)>,
}

impl Block {
    fn y(&self) -> f64 {
        self.sum / self.weight
    }
}
