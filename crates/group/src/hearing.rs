//! What somebody outside hears from a group's members: it is believed when so many say the same at the same
//! place of the order that one of them is honest.

use std::collections::BTreeMap;

use base::{Digest, Domain};

use crate::seat::{Seat, Seats};

const WORDS: Domain = Domain::new("group words v1");

/// So many places of the order are remembered, the latest.
const PLACES_MAX: usize = 1_024;

/// Listens to the members of one epoch.
#[derive(Debug)]
pub struct Hearing {
    seats: Seats,
    /// At most [`PLACES_MAX`]. None where enough has been heard.
    places: BTreeMap<(u64, u32), Option<BTreeMap<Seat, Digest>>>,
}

impl Hearing {
    /// To these members.
    pub fn new(seats: Seats) -> Hearing {
        Hearing { seats, places: BTreeMap::new() }
    }

    /// A member says something that follows from a decision, as its so-manyth consequence. Whether that is
    /// believed now; it is once.
    pub fn on_word(&mut self, from: Seat, height: u64, index: u32, words: &[u8]) -> bool {
        if !self.seats.contains(&from) {
            return false;
        }
        let place = self.places.entry((height, index)).or_insert_with(|| Some(BTreeMap::new()));
        let Some(said) = place else { return false };
        let digest = Digest::of(WORDS, words);
        said.insert(from, digest);
        let is_believed =
            said.values().filter(|other| **other == digest).count() >= self.seats.witnesses();
        if is_believed {
            *place = None;
        }
        if self.places.len() > PLACES_MAX {
            self.places.pop_first();
        }
        is_believed
    }
}

#[cfg(test)]
mod tests {
    use base::PublicKey;

    use super::*;

    fn seat(n: u8) -> Seat {
        Seat { key: PublicKey::from_bytes([n; 32]), incarnation: 0 }
    }

    #[test]
    fn what_enough_say_at_one_place_is_believed_once() {
        let mut hearing = Hearing::new(Seats::new((0..4).map(seat).collect()).unwrap());
        assert!(!hearing.on_word(seat(0), 5, 0, b"lie"));
        assert!(!hearing.on_word(seat(0), 5, 0, b"lie"), "one speaks for itself only");
        assert!(!hearing.on_word(seat(7), 5, 0, b"lie"), "a stranger counts for nothing");
        assert!(!hearing.on_word(seat(1), 5, 1, b"lie"), "that is another place");
        assert!(!hearing.on_word(seat(1), 5, 0, b"truth"));
        assert!(hearing.on_word(seat(2), 5, 0, b"truth"));
        assert!(!hearing.on_word(seat(3), 5, 0, b"truth"));
    }

    #[test]
    fn the_oldest_places_are_forgotten() {
        let mut hearing = Hearing::new(Seats::new((0..4).map(seat).collect()).unwrap());
        for height in 0..2 * PLACES_MAX as u64 {
            hearing.on_word(seat(0), height, 0, b"lie");
        }
        assert_eq!(hearing.places.len(), PLACES_MAX);
    }
}
