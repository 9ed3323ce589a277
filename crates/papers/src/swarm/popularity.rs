//! Where queries go: anywhere alike, or to a few places far more often (G4).

use base::Rng;
use overlay::Position;

/// Destinations, and how often each is asked for.
#[derive(Clone, Debug)]
pub enum Popularity {
    /// Every point of the ring alike.
    Uniform,
    /// Some points, the one of rank r in proportion to r^-α.
    Zipf(Zipf),
}

/// Points by rank, and a table to draw from them in one step (Walker's alias method).
#[derive(Clone, Debug)]
pub struct Zipf {
    points: Vec<Position>,
    /// For each rank: below which part of its column it is meant itself, and which rank else.
    columns: Vec<(f64, u32)>,
}

impl Popularity {
    /// So many points at random places, with this skew; none is uniform. The paper defines skew as the ratio
    /// of neighbouring ranks, but its figures are those of the power law.
    pub fn new(skew: f64, points: usize, rng: &mut Rng) -> Popularity {
        if skew == 0.0 {
            return Popularity::Uniform;
        }
        let weights: Vec<f64> = (1..=points).map(|rank| (rank as f64).powf(-skew)).collect();
        let points = (0..points).map(|_| Position(rng.next_u64())).collect();
        Popularity::Zipf(Zipf { points, columns: columns(&weights) })
    }

    /// Where the next query goes.
    pub fn draw(&self, rng: &mut Rng) -> Position {
        match self {
            Popularity::Uniform => Position(rng.next_u64()),
            Popularity::Zipf(Zipf { points, columns }) => {
                let column = rng.index(columns.len());
                let (part, other) = columns[column];
                points[if rng.unit() < part { column } else { other as usize }]
            }
        }
    }

    /// The places that queries go to, if they are not everywhere.
    pub fn places(&self) -> &[Position] {
        match self {
            Popularity::Uniform => &[],
            Popularity::Zipf(Zipf { points, .. }) => points,
        }
    }

    /// What was asked for often may now be asked for rarely: ranks are dealt anew (K4).
    pub fn shift(&mut self, rng: &mut Rng) {
        if let Popularity::Zipf(Zipf { points, .. }) = self {
            rng.shuffle(points);
        }
    }
}

fn columns(weights: &[f64]) -> Vec<(f64, u32)> {
    let total: f64 = weights.iter().sum();
    let count = weights.len();
    let mut parts: Vec<f64> = weights.iter().map(|w| w * count as f64 / total).collect();
    let mut columns: Vec<(f64, u32)> = (0..count as u32).map(|own| (1.0, own)).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..count).partition(|rank| parts[*rank] < 1.0);
    while let (Some(low), Some(high)) = (small.pop(), large.pop()) {
        columns[low] = (parts[low], high as u32);
        parts[high] -= 1.0 - parts[low];
        if parts[high] < 1.0 { small.push(high) } else { large.push(high) }
    }
    columns
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn counts(popularity: &Popularity, draws: usize) -> BTreeMap<Position, usize> {
        let mut rng = Rng::new(5);
        let mut counts = BTreeMap::new();
        (0..draws).for_each(|_| *counts.entry(popularity.draw(&mut rng)).or_default() += 1);
        counts
    }

    #[test]
    fn ranks_are_drawn_by_the_power_law() {
        let popularity = Popularity::new(1.2, 50, &mut Rng::new(1));
        let Popularity::Zipf(Zipf { points, .. }) = &popularity else { panic!() };
        let total: f64 = (1..=50).map(|rank| f64::from(rank).powf(-1.2)).sum();
        let counts = counts(&popularity, 200_000);
        for (rank, point) in points.iter().enumerate() {
            let expected = 200_000.0 * (rank as f64 + 1.0).powf(-1.2) / total;
            let found = counts[point] as f64;
            assert!((found - expected).abs() < 6.0 * expected.sqrt(), "{rank}: {found} {expected}");
        }
    }

    #[test]
    fn a_shift_keeps_the_points_and_changes_their_ranks() {
        let mut popularity = Popularity::new(2.4, 50, &mut Rng::new(1));
        let top = |counts: &BTreeMap<Position, usize>| {
            counts.iter().max_by_key(|(_, count)| **count).map(|(point, _)| *point)
        };
        let before = top(&counts(&popularity, 1_000));
        popularity.shift(&mut Rng::new(2));
        assert_ne!(top(&counts(&popularity, 1_000)), before);
    }

    #[test]
    fn without_skew_no_point_is_asked_for_twice() {
        let popularity = Popularity::new(0.0, 50, &mut Rng::new(1));
        assert_eq!(counts(&popularity, 1_000).len(), 1_000);
    }
}
