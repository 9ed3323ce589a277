//! A place on the ring, and why nobody can choose theirs.

use std::fmt;

use base::{Digest, Domain, Hasher};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{certificate::Vouched, refused::Refused};

const PLACE: Domain = Domain::new("position on the ring v1");

/// A point of the ring of 2^64 points, which closes: after the last comes the first.
///
/// Two of 100,000 machines with eight positions each share a point once in 60 million cells; whoever comes
/// second takes another of its positions, as if the first were used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Position(pub u64);

impl Position {
    /// Where the machine with this number may stand, for each index below κ (K3).
    ///
    /// The paper hashes x + i. Ours hashes x followed by i, so that the machine whose number is one more
    /// does not have nearly the same positions.
    pub fn of(number: &Digest, index: u32) -> Position {
        let mut hasher = Hasher::new(PLACE);
        hasher.update(number.as_bytes());
        hasher.update(&index.to_le_bytes());
        let digest = hasher.finish();
        let (first, _) = digest.as_bytes().split_first_chunk().expect("a digest has 32 bytes");
        Position(u64::from_le_bytes(*first))
    }

    /// How far it is from here up to there, clockwise; nothing from a point to itself.
    pub const fn to(self, there: Position) -> u64 {
        there.0.wrapping_sub(self.0)
    }

    /// The point this far on.
    pub const fn on(self, distance: u64) -> Position {
        Position(self.0.wrapping_add(distance))
    }

    /// How far it is from here up to there if one has to leave: from a point to itself it is all the way
    /// round. As a float, because it is only ever divided by another.
    pub fn way(self, there: Position) -> f64 {
        match self.to(there) {
            0 => WHOLE,
            distance => distance as f64,
        }
    }
}

/// The length of the ring.
pub const WHOLE: f64 = 18_446_744_073_709_551_616.0;

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a machine says of one of its virtual servers. It is worth as much as the certificate beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Claim {
    /// Which of its positions.
    pub index: u32,
    /// Where that is.
    pub position: Position,
}

impl Claim {
    /// The claim that holds for this machine at this index.
    pub fn new(number: &Digest, index: u32) -> Claim {
        Claim { index, position: Position::of(number, index) }
    }
}

impl Vouched<'_> {
    /// Whether the machine, which was admitted as this one of its invitation, may stand where it says that it does, if
    /// each may choose among so many (K3).
    pub fn verify_claim(&self, place: u32, claim: &Claim, choices: u32) -> Result<(), Refused> {
        let is_theirs = || Position::of(&self.number(place), claim.index) == claim.position;
        match claim.index < choices && is_theirs() {
            true => Ok(()),
            false => Err(Refused::PositionForged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(seed: u8) -> Digest {
        Digest::from_bytes([seed; 32])
    }

    #[test]
    fn the_ring_closes() {
        let (low, high) = (Position(5), Position(u64::MAX - 4));
        assert_eq!((low.to(high), high.to(low)), (u64::MAX - 9, 10));
        assert_eq!(high.on(10), low);
        assert_eq!((low.to(low), low.way(low)), (0, WHOLE));
    }

    #[test]
    fn positions_depend_on_every_bit_of_the_number_and_of_the_index() {
        let mut seen = std::collections::BTreeSet::new();
        for bit in 0..256 {
            let mut bytes = [7; 32];
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(seen.insert(Position::of(&Digest::from_bytes(bytes), 3)));
        }
        for bit in 0..32 {
            assert!(seen.insert(Position::of(&number(7), 3 ^ (1 << bit))));
        }
    }

    #[test]
    fn a_position_stays_what_it_is_for_ever() {
        let pinned = [0, 1, 7].map(|index| Position::of(&number(1), index).to_string());
        assert_eq!(pinned, ["664a2b6f2dbc9dee", "439a4c710061cd16", "b8458677458a3178"]);
    }
}
