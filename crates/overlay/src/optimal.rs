//! The best position that there could be between two neighbours, for whoever may choose any (K9).
//!
//! Nobody may: positions follow from certificates. It is what k-Choices is measured against. Costs are not
//! normalised here, as in the paper.

use crate::position::Position;

/// Where to stand between a predecessor and its successor, and what that costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimal {
    /// The part of the successor's work to take, which is the part of the way from the predecessor.
    pub share: f64,
    /// The mismatch of both afterwards, less that of the successor before. No share costs less.
    pub cost: f64,
}

impl Optimal {
    /// The point between these two. Never one of the two, on which somebody stands; nothing if there is none.
    pub fn position(&self, before: Position, after: Position) -> Option<Position> {
        let distance = before.to(after).wrapping_sub(1);
        let step = (self.share * before.way(after)) as u64;
        (distance > 0).then(|| before.on(step.clamp(1, distance)))
    }
}

/// Finds the best share of a successor with this work, which is positive, and this target, for a joiner with
/// its own target. Targets may be negative: others' work can be more than a machine wants.
pub fn optimal(work: f64, target: f64, successor_target: f64) -> Optimal {
    // What the joiner wants, and what the successor wants to be rid of. Both get closer to their target up
    // to the lesser of the two, both get farther from it beyond the greater, and in between one wins what
    // the other loses: the paper's four cases, with shares that can't be taken left out.
    let [take, leave] = [target / work, 1.0 - successor_target / work].map(|r| r.clamp(0.0, 1.0));
    let share = (take + leave) / 2.0;
    Optimal { share, cost: cost(work, target, successor_target, share) }
}

/// What a share costs: K5, not normalised.
pub fn cost(work: f64, target: f64, successor_target: f64, share: f64) -> f64 {
    let (taken, left) = (share * work, (1.0 - share) * work);
    (target - taken).abs() + (successor_target - left).abs() - (successor_target - work).abs()
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;

    /// The least cost over a fine grid of shares.
    fn brute(work: f64, target: f64, successor_target: f64) -> f64 {
        let grid = (0..=1_000).map(|step| f64::from(step) / 1_000.0);
        let costs = grid.map(|share| cost(work, target, successor_target, share));
        costs.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn no_share_is_better_than_the_optimal_one_in_20_000_random_cases() {
        let mut rng = Rng::new(9);
        let mut cases = [0u32; 4];
        for _ in 0..20_000 {
            let work = 0.1 + 99.9 * rng.unit();
            let [target, other] = [(); 2].map(|()| 300.0 * rng.unit() - 100.0);
            let found = optimal(work, target, other);
            let best = brute(work, target, other);
            // The grid misses the best share by half a step at the most, and cost rises by 2w for each share.
            assert!(found.cost <= best + 1e-9, "{work} {target} {other}: {found:?} against {best}");
            assert!(found.cost >= best - work / 1_000.0, "{work} {target} {other}: {found:?}");
            assert!((0.0..=1.0).contains(&found.share));
            let paper = closed_form(work, target, other);
            assert!((found.cost - paper.1).abs() < 1e-9, "{work} {target} {other}: {paper:?}");
            cases[paper.0] += 1;
        }
        assert!(cases.iter().all(|&count| count > 500), "{cases:?}");
    }

    /// Which of the paper's four cases it is, and the cost by its formula.
    fn closed_form(work: f64, target: f64, other: f64) -> (usize, f64) {
        let before = (other - work).abs();
        // Where the paper's range of shares lies outside of the ring it is clipped, and its formula for the
        // cost is that of the clipped share.
        let clipped = |low: f64, high: f64| {
            let share = ((low + high) / 2.0).clamp(0.0, 1.0);
            let is_inside = low.max(high) > 0.0 && low.min(high) < 1.0;
            (!is_inside).then(|| cost(work, target, other, share))
        };
        let (take, leave) = (target / work, 1.0 - other / work);
        if other <= 0.0 && target >= work {
            (0, target - other + work - 2.0 * work - before)
        } else if target <= 0.0 && other >= work {
            (1, other - target - work - before)
        } else if target + other < work {
            (2, clipped(take, leave).unwrap_or(work - target - other - before))
        } else {
            (3, clipped(leave, take).unwrap_or(target + other - work - before))
        }
    }

    #[test]
    fn a_position_lies_between_its_neighbours_and_is_free() {
        let check = |share, before, after| {
            let optimal = Optimal { share, cost: 0.0 };
            optimal.position(Position(before), Position(after)).map(|position| position.0)
        };
        assert_eq!(check(0.5, 100, 200), Some(150));
        assert_eq!(check(0.0, 100, 200), Some(101));
        assert_eq!(check(1.0, 100, 200), Some(199));
        assert_eq!(check(1.0, u64::MAX, 2), Some(1));
        assert_eq!(check(0.5, 7, 8), None);
        assert_eq!(check(0.5, 7, 7), Some(7 + (1 << 63)));
        assert_eq!(check(1.0, 7, 7), Some(6));
    }

    #[test]
    fn the_brute_force_would_notice_a_share_that_is_not_the_best() {
        let (work, target, other) = (10.0, 4.0, 2.0);
        let wrong = cost(work, target, other, 0.9);
        assert!(wrong > brute(work, target, other) + 1.0);
        assert!(optimal(work, target, other).cost < wrong - 1.0);
    }
}
