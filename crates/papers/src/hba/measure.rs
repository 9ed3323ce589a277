//! Replays of a trace, and what is counted of them.

use locator::home::{Kind, Threshold};

use super::{Cell, Levels, Score, Trace, bloom, home_of};

/// What is replayed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) groups: u32,
    pub(crate) levels: Levels,
    pub(crate) kind: Kind,
    /// Paths of the first level of each group.
    pub(crate) recent: u64,
    pub(crate) threshold: Threshold,
}

impl Point {
    /// The paper's HBA with 8 bits a file and a threshold of 1 %.
    pub(crate) fn hba(groups: u32, recent: u64) -> Point {
        let (levels, kind) = (Levels::Both, bloom(8));
        Point { groups, levels, kind, recent, threshold: Threshold::PERCENT }
    }
}

impl Point {
    /// The same with a first level sixteen times as large, of which others are told at once: an ablation.
    pub(crate) fn roomy(self) -> Point {
        Point { recent: 16 * self.recent, threshold: threshold(1e-5), ..self }
    }
}

/// A part of a filter's bits, as a threshold.
pub(crate) fn threshold(part: f64) -> Threshold {
    Threshold((part * 1e9).round() as u32)
}

/// Replays a trace; the first half warms up.
pub(crate) fn replay(point: Point, trace: &Trace, cold: u64) -> Score {
    replay_from(trace.len() / 2, point, trace, cold)
}

/// Replays a trace and counts from this request on.
pub(crate) fn replay_from(first: usize, point: Point, trace: &Trace, cold: u64) -> Score {
    let mut cell = Cell::new(point, trace, cold, home_of);
    for (at, request) in trace.iter().enumerate() {
        if at == first {
            cell.score = Score::default();
        }
        cell.request(request, trace.prints[request.file as usize]);
    }
    cell.score
}

/// The hit rate of a pure Bloom array for the requests of a trace's second half. Its filters hardly change
/// meanwhile, so only the look-ups are made, of old files and one in eight.
pub(crate) fn pba(groups: u32, bits: u32, trace: &Trace, cold: u64) -> f64 {
    let point = Point { levels: Levels::All, kind: bloom(bits), ..Point::hba(groups, 1) };
    let cell = Cell::new(point, trace, cold, home_of);
    let is_old: Vec<bool> = {
        let mut is_old = vec![false; trace.prints.len()];
        trace.old().for_each(|file| is_old[file as usize] = true);
        is_old
    };
    let sample = trace.iter().skip(trace.len() / 2).step_by(8);
    let (mut hits, mut count) = (0u64, 0u64);
    for request in sample.filter(|request| is_old[request.file as usize]) {
        let hint = cell.array.look_up(trace.prints[request.file as usize]);
        let home = home_of(request.file, groups);
        hits += u64::from(hint.group().is_some_and(|group| group.0 == home));
        count += 1;
    }
    share(hits, count)
}

/// Of the look-ups in a trace's second half, the part that is not the first for its file: more no first level can
/// find, however large it is and however soon it is told.
pub(crate) fn seen_before(trace: &Trace) -> f64 {
    let mut is_seen = vec![false; trace.prints.len()];
    let (mut seen, mut count) = (0u64, 0u64);
    for (at, request) in trace.iter().enumerate() {
        let before = std::mem::replace(&mut is_seen[request.file as usize], true);
        if at >= trace.len() / 2 && !request.is_creation {
            seen += u64::from(before);
            count += 1;
        }
    }
    share(seen, count)
}

/// One number of another.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
