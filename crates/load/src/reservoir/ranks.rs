//! A queue per rank, and every object in at most one of them (L45).

use super::{Meter, order::Order};
use crate::Spec;

/// How many copies there are once this one is made: the first copy has rank 1 (L30).
pub type Rank = u32;

/// Objects wait by rank: the lowest rank first, first in first out within a rank.
///
/// A clown car like [`Marks`](super::Marks): bounded by the number of objects. An object that is put
/// again where it is keeps its turn; one that moves goes behind those that are there already. So no
/// object is overtaken for ever by others of its rank.
#[derive(Clone, Debug)]
pub struct Ranks<K> {
    spec: Spec,
    order: Order<Rank, K, ()>,
}

impl<K: Clone + Ord> Ranks<K> {
    /// No object waits yet.
    pub fn new(spec: Spec) -> Ranks<K> {
        Ranks { spec, order: Order::new() }
    }

    /// What the graph says about it.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Lets an object wait at this rank and at no other.
    pub fn put(&mut self, key: K, rank: Rank) {
        self.order.put_once(key, rank, ());
    }

    /// The rank that an object waits at.
    pub fn rank(&self, key: &K) -> Option<Rank> {
        self.order.get(key).map(|(rank, _)| rank)
    }

    /// Lets an object wait no longer; whether it did.
    pub fn remove(&mut self, key: &K) -> bool {
        self.order.remove(key).is_some()
    }

    /// Takes the next object, if its rank is not above the ceiling (L31, L33).
    pub fn take(&mut self, ceiling: Rank) -> Option<(K, Rank)> {
        let rank = self.first().filter(|&rank| rank <= ceiling)?;
        self.order.pop().map(|(key, ())| (key, rank))
    }

    /// The rank of the next object.
    pub fn first(&self) -> Option<Rank> {
        self.order.first().map(|(rank, _)| rank)
    }

    /// All waiting objects with their ranks, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Rank, &K)> {
        self.order.iter()
    }

    /// How many objects wait.
    pub fn level(&self) -> u64 {
        self.order.level()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.level() == 0
    }

    /// Its numbers.
    pub fn meter(&self) -> Meter {
        self.order.meter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(puts: &[(char, Rank)]) -> Ranks<char> {
        let spec = Spec { label: "7B", name: "copies", capacity: 9, threshold: 9 };
        let mut ranks = Ranks::new(spec);
        for &(key, rank) in puts {
            ranks.put(key, rank);
        }
        ranks
    }

    fn drain(mut ranks: Ranks<char>, ceiling: Rank) -> String {
        std::iter::from_fn(|| ranks.take(ceiling)).map(|(key, _)| key).collect()
    }

    #[test]
    fn the_lowest_rank_goes_first_and_the_longest_waiting_within_it() {
        assert_eq!(drain(ranks(&[('a', 2), ('b', 1), ('c', 2), ('d', 1)]), 9), "bdac");
    }

    #[test]
    fn an_object_waits_once_and_keeps_its_turn_unless_it_moves() {
        assert_eq!(drain(ranks(&[('a', 1), ('b', 1), ('a', 1)]), 9), "ab");
        assert_eq!(drain(ranks(&[('a', 1), ('b', 2), ('c', 2), ('a', 2)]), 9), "bca");
    }

    #[test]
    fn nothing_above_the_ceiling_is_taken() {
        assert_eq!(drain(ranks(&[('a', 3), ('b', 1), ('c', 2)]), 2), "bc");
    }
}
