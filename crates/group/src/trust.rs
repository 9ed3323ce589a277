//! What somebody outside believes of a group: what so many of its members say equally that one of them is
//! honest.
//!
//! Members answer only with outputs of decided commands, so one honest member is enough. They also say things
//! that nobody has asked for; those have a place in the order.

use std::collections::{BTreeMap, BTreeSet};

use base::{Digest, Domain};

use crate::{
    batch::Decision,
    lineage::Roll,
    rescue::Charter,
    seal::Notary,
    seat::{Seat, Seats},
};

const WORDS: Domain = Domain::new("group words v1");

/// So many requests can be open at once.
const SLOTS_MAX: usize = 1_024;
/// So many places of the order are remembered, the latest: of those where enough has been heard, and of each
/// member of those where it alone, or too few with it, have said something.
const PLACES_MAX: usize = 1_024;

/// A place of the order: a height and a number.
type Place = (u64, u32);

/// A group, as somebody outside knows it.
#[derive(Debug)]
pub struct Trust {
    epoch: u64,
    seats: Seats,
    /// Open requests. At most [`SLOTS_MAX`], each with one answer of each member.
    slots: BTreeMap<u64, Voices>,
    /// What is said at places of the order where not enough has been heard. Each has a member that speaks there.
    places: BTreeMap<Place, Voices>,
    /// Where each member speaks. At most [`PLACES_MAX`] of each, so that nobody crowds out anybody else.
    speaking: BTreeMap<Seat, BTreeSet<Place>>,
    /// Where enough has been heard. At most [`PLACES_MAX`].
    believed: BTreeSet<Place>,
    /// Up to here nothing is heard any more.
    past: Option<Place>,
    /// What each member says about who the members are, if it is news.
    news: BTreeMap<Seat, Roll>,
}

/// What each member says about one thing.
#[derive(Debug, Default)]
struct Voices(BTreeMap<Seat, Digest>);

impl Voices {
    /// Whether enough say this now.
    fn hear(&mut self, from: Seat, words: &[u8], seats: &Seats) -> bool {
        let digest = Digest::of(WORDS, words);
        self.0.insert(from, digest);
        self.0.values().filter(|other| **other == digest).count() >= seats.witnesses()
    }
}

impl Trust {
    /// A group with these members. None if they can't be a group.
    pub fn new(roll: Roll) -> Option<Trust> {
        let seats = Seats::new(roll.seats)?.led_by(roll.leader);
        let (slots, places, speaking, believed, past, news) = Default::default();
        let epoch = roll.epoch;
        Some(Trust { epoch, seats, slots, places, speaking, believed, past, news })
    }

    /// The members that it knows, with their leader.
    pub fn seats(&self) -> &Seats {
        &self.seats
    }

    /// Since when they are.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whom to tell a request with this number: the leader, and when it is said again all. Nobody if too much
    /// is open.
    pub fn ask(&mut self, slot: u64) -> &[Seat] {
        if self.slots.contains_key(&slot) {
            return self.seats.list();
        }
        if self.slots.len() >= SLOTS_MAX {
            return &[];
        }
        self.slots.insert(slot, Voices::default());
        std::slice::from_ref(self.seats.leader(0))
    }

    /// A member answers a request. Whether the answer can be believed now; then the request is over.
    pub fn on_answer(&mut self, from: Seat, slot: u64, answer: &[u8]) -> bool {
        let Some(open) = self.slots.get_mut(&slot).filter(|_| self.seats.contains(&from)) else {
            return false;
        };
        let is_believed = open.hear(from, answer, &self.seats);
        if is_believed {
            self.slots.remove(&slot);
        }
        is_believed
    }

    /// A member says something that follows from a decision, as its so-manyth consequence. Whether that is
    /// believed now; it is once.
    pub fn on_word(&mut self, from: Seat, height: u64, index: u32, words: &[u8]) -> bool {
        if !self.seats.contains(&from) {
            return false;
        }
        let place = (height, index);
        if self.past.is_some_and(|past| place <= past) || self.believed.contains(&place) {
            return false;
        }
        let is_believed = self.places.entry(place).or_default().hear(from, words, &self.seats);
        let speaking = self.speaking.entry(from).or_default();
        speaking.insert(place);
        if is_believed {
            self.believe(place);
        } else if speaking.len() > PLACES_MAX
            && let Some(first) = speaking.pop_first()
            && let Some(Voices(voices)) = self.places.get_mut(&first)
        {
            voices.remove(&from);
            if voices.is_empty() {
                self.places.remove(&first);
            }
        }
        is_believed
    }

    fn believe(&mut self, place: Place) {
        for seat in self.places.remove(&place).into_iter().flat_map(|Voices(voices)| voices) {
            if let Some(speaking) = self.speaking.get_mut(&seat.0) {
                speaking.remove(&place);
            }
        }
        self.believed.insert(place);
        if self.believed.len() > PLACES_MAX {
            self.past = self.past.max(self.believed.pop_first());
        }
    }

    /// Nobody waits for the answer any more.
    pub fn close(&mut self, slot: u64) {
        self.slots.remove(&slot);
    }

    /// A member says who the members are. Whether that is believed now, and was not known.
    pub fn on_roll(&mut self, from: Seat, roll: Roll) -> bool {
        if !self.seats.contains(&from) {
            return false;
        }
        let is_led_anew = roll.epoch == self.epoch
            && roll.seats == self.seats.list()
            && roll.leader != *self.seats.leader(0);
        if roll.epoch <= self.epoch && !is_led_anew {
            self.news.remove(&from);
            return false;
        }
        let Some(seats) = Seats::new(roll.seats.clone()) else { return false };
        let seats = seats.led_by(roll.leader);
        let equal = self.news.iter().filter(|(seat, other)| **seat != from && **other == roll);
        if equal.count() + 1 < self.seats.witnesses() {
            self.news.insert(from, roll);
            return false;
        }
        self.adopt(roll.epoch, seats);
        true
    }

    /// Somebody, be it who it may, shows how the members have changed. Whether they are others now than
    /// was known.
    pub fn on_changes<N: Notary>(
        &mut self,
        changes: &[Decision],
        charter: &Charter,
        notary: &N,
    ) -> bool {
        let (epoch, seats) = (self.epoch, self.seats.list().to_vec());
        let roll = Roll { epoch, seats, leader: *self.seats.leader(0) };
        let Roll { epoch, seats, leader } = roll.after(changes, charter, notary);
        let is_news = epoch > self.epoch;
        if let Some(seats) = Seats::new(seats).filter(|_| is_news) {
            self.adopt(epoch, seats.led_by(leader));
        }
        is_news
    }

    fn adopt(&mut self, epoch: u64, seats: Seats) {
        (self.epoch, self.seats) = (epoch, seats);
        self.news.clear();
        for Voices(voices) in self.slots.values_mut().chain(self.places.values_mut()) {
            voices.retain(|seat, _| self.seats.contains(seat));
        }
        self.places.retain(|_, Voices(voices)| !voices.is_empty());
        self.speaking.retain(|seat, _| self.seats.contains(seat));
    }
}

#[cfg(test)]
mod tests {
    use base::PublicKey;

    use super::*;

    fn seat(n: u8) -> Seat {
        Seat { key: PublicKey::from_bytes([n; 32]), incarnation: 0 }
    }

    fn roll(epoch: u64, seats: std::ops::Range<u8>, leader: u8) -> Roll {
        Roll { epoch, seats: seats.map(seat).collect(), leader: seat(leader) }
    }

    fn trust() -> Trust {
        Trust::new(roll(1, 0..4, 2)).unwrap()
    }

    #[test]
    fn the_leader_is_asked_first_and_then_all() {
        let mut trust = trust();
        assert_eq!(trust.ask(7), [seat(2)]);
        assert_eq!(trust.ask(7), [0, 1, 2, 3].map(seat));
        assert_eq!(trust.ask(8), [seat(2)]);
    }

    #[test]
    fn one_liar_of_four_is_not_believed_however_often_it_speaks() {
        let mut trust = trust();
        trust.ask(7);
        for _ in 0..5 {
            assert!(!trust.on_answer(seat(1), 7, b"lie"));
        }
        assert!(!trust.on_answer(seat(9), 7, b"lie"), "a stranger counts for nothing");
        assert!(!trust.on_answer(seat(0), 7, b"truth"));
        assert!(trust.on_answer(seat(3), 7, b"truth"));
        assert!(!trust.on_answer(seat(2), 7, b"truth"), "nobody asks any more");
    }

    #[test]
    fn what_enough_say_at_one_place_is_believed_once() {
        let mut trust = trust();
        assert!(!trust.on_word(seat(0), 5, 0, b"lie"));
        assert!(!trust.on_word(seat(0), 5, 0, b"lie"), "one speaks for itself only");
        assert!(!trust.on_word(seat(7), 5, 0, b"lie"), "a stranger counts for nothing");
        assert!(!trust.on_word(seat(1), 5, 1, b"lie"), "that is another place");
        assert!(!trust.on_word(seat(1), 5, 0, b"truth"));
        assert!(trust.on_word(seat(2), 5, 0, b"truth"));
        assert!(!trust.on_word(seat(3), 5, 0, b"truth"));
    }

    #[test]
    fn the_oldest_places_are_forgotten() {
        let mut trust = trust();
        for height in 0..2 * PLACES_MAX as u64 {
            trust.on_word(seat(0), height, 0, b"lie");
        }
        assert_eq!(trust.places.len(), PLACES_MAX);
    }

    #[test]
    fn a_liar_with_much_to_say_of_the_future_keeps_nobody_from_being_heard() {
        let mut trust = trust();
        for height in 0..2 * PLACES_MAX as u64 {
            trust.on_word(seat(0), u64::MAX - height, 0, b"lie");
        }
        assert!(!trust.on_word(seat(1), 5, 0, b"truth"));
        assert!(trust.on_word(seat(2), 5, 0, b"truth"));
        assert!(!trust.on_word(seat(3), 5, 0, b"truth"), "it is believed once");
    }

    #[test]
    fn what_is_long_past_is_not_believed_again() {
        let mut trust = trust();
        for height in 0..2 * PLACES_MAX as u64 {
            trust.on_word(seat(0), height, 0, b"truth");
            assert!(trust.on_word(seat(1), height, 0, b"truth"));
        }
        assert!(!trust.on_word(seat(2), 3, 0, b"truth") && !trust.on_word(seat(3), 3, 0, b"truth"));
        assert_eq!((trust.places.len(), trust.believed.len()), (0, PLACES_MAX));
    }

    #[test]
    fn answers_to_one_request_are_not_answers_to_another() {
        let mut trust = trust();
        trust.ask(7);
        trust.ask(8);
        assert!(!trust.on_answer(seat(0), 7, b"yes"));
        assert!(!trust.on_answer(seat(1), 8, b"yes"));
        assert!(trust.on_answer(seat(1), 7, b"yes"));
    }

    #[test]
    fn new_members_are_learnt_from_enough_of_the_old() {
        let mut trust = trust();
        trust.ask(7);
        trust.on_answer(seat(0), 7, b"yes");
        assert!(!trust.on_roll(seat(1), roll(9, 4..8, 5)));
        assert!(!trust.on_roll(seat(1), roll(9, 4..8, 5)));
        assert!(!trust.on_roll(seat(5), roll(9, 4..8, 5)), "it is not known yet");
        assert!(trust.on_roll(seat(2), roll(9, 4..8, 5)));
        assert_eq!((trust.epoch(), trust.seats().leader(0)), (9, &seat(5)));
        assert!(!trust.on_answer(seat(4), 7, b"yes"), "what an old member said is forgotten");
        assert!(trust.on_answer(seat(5), 7, b"yes"));
        assert!(!trust.on_roll(seat(4), roll(1, 0..4, 2)), "nothing old is news");
    }

    #[test]
    fn another_leader_is_learnt_too() {
        let mut trust = trust();
        assert!(!trust.on_roll(seat(0), roll(1, 0..4, 3)));
        assert!(trust.on_roll(seat(1), roll(1, 0..4, 3)));
        assert_eq!(trust.ask(1), [seat(3)]);
    }

    #[test]
    fn no_more_requests_are_open_than_there_is_room_for() {
        let mut trust = trust();
        for slot in 0..SLOTS_MAX as u64 {
            assert_eq!(trust.ask(slot).len(), 1);
        }
        assert!(trust.ask(5_000).is_empty());
        trust.close(3);
        assert_eq!(trust.ask(5_000).len(), 1);
    }
}
