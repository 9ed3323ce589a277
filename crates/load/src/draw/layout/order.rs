//! In which order the boxes of a column stand: the one that crosses the fewest lines.

use super::Layout;

const SWEEPS: usize = 12;

/// Orders every column, by sweeps towards the middle of the neighbours and swaps of adjacent boxes.
pub fn choose(layout: &mut Layout) {
    let mut best = layout.columns.clone();
    let mut fewest = crossings(layout);
    for sweep in 0..SWEEPS {
        let is_rightward = sweep % 2 == 0;
        let count = layout.columns.len();
        for step in 0..count {
            let column = if is_rightward { step } else { count - 1 - step };
            sort_column(layout, column, is_rightward);
        }
        swap_adjacent(layout);
        let crossings = crossings(layout);
        if crossings < fewest {
            (fewest, best) = (crossings, layout.columns.clone());
        }
    }
    layout.columns = best;
}

fn sort_column(layout: &mut Layout, column: usize, is_rightward: bool) {
    let ranks = ranks(layout);
    let mean = |cell: usize| {
        let neighbours = layout.joints().filter_map(|(left, right, _)| match is_rightward {
            true => (right == cell).then_some(ranks[left]),
            false => (left == cell).then_some(ranks[right]),
        });
        let (sum, count) = neighbours.fold((0.0, 0.0), |(sum, n), rank| (sum + rank, n + 1.0));
        if count > 0.0 { sum / count } else { ranks[cell] }
    };
    let mut sorted: Vec<_> = layout.columns[column].iter().map(|&at| (mean(at), at)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    layout.columns[column] = sorted.into_iter().map(|(_, at)| at).collect();
}

fn swap_adjacent(layout: &mut Layout) {
    let mut fewest = crossings(layout);
    for column in 0..layout.columns.len() {
        for at in 1..layout.columns[column].len() {
            layout.columns[column].swap(at - 1, at);
            let crossings = crossings(layout);
            if crossings < fewest {
                fewest = crossings;
            } else {
                layout.columns[column].swap(at - 1, at);
            }
        }
    }
}

/// How far down its column each box stands, from 0 to 1.
fn ranks(layout: &Layout) -> Vec<f64> {
    let mut ranks = vec![0.0; layout.cells.len()];
    for column in &layout.columns {
        for (at, &cell) in column.iter().enumerate() {
            ranks[cell] = (at as f64 + 0.5) / column.len() as f64;
        }
    }
    ranks
}

fn crossings(layout: &Layout) -> usize {
    let ranks = ranks(layout);
    let joints: Vec<_> = layout.joints().collect();
    let mut count = 0;
    for (at, &(a, b, _)) in joints.iter().enumerate() {
        for &(c, d, _) in &joints[..at] {
            let is_beside = layout.cells[a].column == layout.cells[c].column;
            if is_beside && (ranks[a] - ranks[c]) * (ranks[b] - ranks[d]) < 0.0 {
                count += 1;
            }
        }
    }
    count
}
