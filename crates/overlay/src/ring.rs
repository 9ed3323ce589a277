//! Who stands where on the ring, in order.
//!
//! Positions are hashes, so their first bits spread them: a bucket for each value of those bits, a few
//! entries in each. To find, put in or take out costs a look into a bucket or two, however many there are.
//! Where positions are not spread (a baseline lets machines choose) a bucket is searched by halves.

use crate::position::Position;

/// What stands on the ring: at most one of them on each position.
///
/// Its size is bounded by whoever fills it: κ for each machine of the cell.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// 2^bits of them; each in rising order, and all of them one after the other as well.
    buckets: Vec<Vec<(Position, T)>>,
    bits: u32,
    count: usize,
}

/// So many entries to a bucket, and the number of buckets is doubled.
const BUCKET_MEAN_MAX: usize = 8;

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring { buckets: vec![Vec::new()], bits: 0, count: 0 }
    }
}

impl<T: Copy> Ring<T> {
    /// A ring with nothing on it.
    pub fn new() -> Ring<T> {
        Ring::default()
    }

    /// How many stand on it.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether nobody does.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn bucket(&self, position: Position) -> usize {
        position.0.checked_shr(u64::BITS - self.bits).unwrap_or(0) as usize
    }

    fn find(&self, position: Position) -> (usize, Result<usize, usize>) {
        let bucket = self.bucket(position);
        (bucket, self.buckets[bucket].binary_search_by_key(&position, |(at, _)| *at))
    }

    /// What stands exactly here.
    pub fn get(&self, position: Position) -> Option<T> {
        let (bucket, found) = self.find(position);
        found.ok().map(|index| self.buckets[bucket][index].1)
    }

    /// Puts something on a position; false if that is taken, and then nothing changes.
    #[must_use]
    pub fn insert(&mut self, position: Position, value: T) -> bool {
        let (bucket, Err(index)) = self.find(position) else { return false };
        self.buckets[bucket].insert(index, (position, value));
        self.count += 1;
        if self.count > BUCKET_MEAN_MAX << self.bits {
            self.spread();
        }
        true
    }

    /// Takes away what stands exactly here.
    pub fn remove(&mut self, position: Position) -> Option<T> {
        let (bucket, Ok(index)) = self.find(position) else { return None };
        self.count -= 1;
        Some(self.buckets[bucket].remove(index).1)
    }

    fn spread(&mut self) {
        let old = std::mem::take(&mut self.buckets);
        self.bits += 2;
        self.buckets.resize_with(1 << self.bits, Vec::new);
        for (position, value) in old.into_iter().flatten() {
            let bucket = self.bucket(position);
            self.buckets[bucket].push((position, value));
        }
    }

    /// The first at or after this point: who is responsible for it (K2).
    pub fn at_or_after(&self, point: Position) -> Option<(Position, T)> {
        let (bucket, Ok(index) | Err(index)) = self.find(point);
        match self.buckets[bucket].get(index) {
            Some(entry) => Some(*entry),
            None => self.first_beyond(bucket),
        }
    }

    /// The first after this point; alone on the ring, that is who stands on it.
    pub fn after(&self, point: Position) -> Option<(Position, T)> {
        self.at_or_after(point.on(1))
    }

    /// The last before this point; alone on the ring, that is who stands on it.
    pub fn before(&self, point: Position) -> Option<(Position, T)> {
        let (bucket, Ok(index) | Err(index)) = self.find(point);
        match self.buckets[bucket][..index].last() {
            Some(entry) => Some(*entry),
            None => {
                let around = (0..bucket).rev().chain((bucket..self.buckets.len()).rev());
                around.map(|at| &self.buckets[at]).find_map(|b| b.last()).copied()
            }
        }
    }

    fn first_beyond(&self, bucket: usize) -> Option<(Position, T)> {
        let around = (bucket + 1..self.buckets.len()).chain(0..=bucket);
        around.map(|at| &self.buckets[at]).find_map(|b| b.first()).copied()
    }

    /// All of them, in the order of positions.
    pub fn iter(&self) -> impl Iterator<Item = (Position, T)> {
        self.buckets.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use base::Rng;

    use super::*;

    /// Does the same to a ring and to a plain map, and asks both the same.
    fn check(seed: u64, draw: fn(&mut Rng) -> u64) {
        let mut rng = Rng::new(seed);
        let (mut ring, mut model) = (Ring::new(), BTreeMap::new());
        for round in 0..4_000u32 {
            let point = draw(&mut rng);
            if rng.chance(0.6) {
                let is_free = !model.contains_key(&point);
                assert_eq!(ring.insert(Position(point), round), is_free);
                model.entry(point).or_insert(round);
            } else {
                let known = model.range(draw(&mut rng)..).next().map(|(at, _)| *at);
                let gone = known.filter(|_| rng.chance(0.9)).unwrap_or(point);
                assert_eq!(ring.remove(Position(gone)), model.remove(&gone));
            }
            let asked = draw(&mut rng);
            let entry = |(at, value): (&u64, &u32)| (Position(*at), *value);
            let first = || model.iter().next();
            let after = |from: u64| model.range(from..).next().or_else(first).map(entry);
            assert_eq!(ring.at_or_after(Position(asked)), after(asked));
            assert_eq!(ring.after(Position(asked)), after(asked.wrapping_add(1)));
            let before = model.range(..asked).next_back().or_else(|| model.iter().next_back());
            assert_eq!(ring.before(Position(asked)), before.map(entry));
            assert_eq!(ring.get(Position(asked)), model.get(&asked).copied());
            assert_eq!(ring.count(), model.len());
        }
        assert!(ring.iter().eq(model.iter().map(|(at, value)| (Position(*at), *value))));
        assert!(!ring.is_empty());
    }

    #[test]
    fn a_ring_answers_as_a_plain_map_does() {
        for seed in 0..4 {
            check(seed, Rng::next_u64);
            check(seed, |rng| rng.below(3_000));
            check(seed, |rng| u64::MAX - rng.below(40));
        }
    }

    #[test]
    fn an_empty_ring_has_nobody_and_one_alone_is_everybodys_neighbour() {
        let mut ring = Ring::new();
        assert_eq!(ring.at_or_after(Position(7)), None);
        assert_eq!(ring.before(Position(7)), None);
        assert!(ring.insert(Position(9), 'a') && !ring.insert(Position(9), 'b'));
        let alone = Some((Position(9), 'a'));
        for point in [0, 8, 9, 10, u64::MAX].map(Position) {
            assert_eq!((ring.at_or_after(point), ring.after(point)), (alone, alone));
            assert_eq!(ring.before(point), alone);
        }
    }
}
