//! Whom a client asks in a group of several members, and whom it believes.
//!
//! The leader is asked first, and all when nothing came that can be believed. What enough members say is so:
//! one of them is honest, and members say only what follows from decisions.

use std::collections::BTreeSet;

use crate::{About, Message, Said, Word};
use base::{Duration, Instant, PublicKey};
use directory::message::Request;
use group::{Charter, Decision, Notary, Roll, Sealable as _, Seat, Trust};

/// A client's side of a group of several.
#[derive(Debug)]
pub struct Ear<N> {
    client: lease::Client,
    charter: Charter,
    notary: N,
    trust: Trust,
    /// Who leads, as whoever was believed last has said.
    leader: Seat,
    repeat: Duration,
    /// Since when nothing was believed although something was asked.
    unanswered_since: Option<Instant>,
    /// Members who say that there have been changes of members. At most as many as there are.
    ahead: BTreeSet<Seat>,
}

impl<N: Notary> Ear<N> {
    /// For a client of a group whose members are known. After `repeat` without an answer that can be believed
    /// all are asked. None if such members can't be a group.
    pub fn new(
        client: lease::Client,
        charter: impl Into<Charter>,
        roll: Roll,
        notary: N,
        repeat: Duration,
    ) -> Option<Ear<N>> {
        let leader = roll.leader;
        let trust = Trust::new(roll)?;
        let (charter, unanswered_since, ahead) = (charter.into(), None, BTreeSet::new());
        Some(Ear { client, charter, notary, trust, leader, repeat, unanswered_since, ahead })
    }

    /// The members, as far as is known.
    pub fn seats(&self) -> &[Seat] {
        self.trust.seats().list()
    }

    /// Who sits there since when, as far as is known.
    pub fn roll(&self) -> Roll {
        Roll { epoch: self.trust.epoch(), seats: self.seats().to_vec(), leader: self.leader }
    }

    /// Who leads, as far as is known.
    pub fn leader(&self) -> Seat {
        self.leader
    }

    /// Its group, and since when it knows these members.
    fn about(&self) -> About {
        About { group: self.charter.group, epoch: self.trust.epoch() }
    }

    /// "Who has come to sit there since?"
    pub fn whose(&self) -> Vec<u8> {
        self.about().encode(Message::Whose)
    }

    /// A request as members want it.
    pub fn seal(&self, request: Request) -> Vec<u8> {
        let said = Said { client: self.client, request: &request };
        let seal = self.notary.seal(&said.sealed_bytes(&self.charter.group));
        self.about().encode(Message::Sealed(request, seal))
    }

    /// Tells whom it may concern something that is sealed, and asks who sits there if that is in doubt.
    pub fn say(&mut self, now: Instant, bytes: Vec<u8>, out: &mut Vec<(Seat, Vec<u8>)>) {
        let since = *self.unanswered_since.get_or_insert(now);
        let is_unanswered = now.since(since) >= self.repeat;
        let is_behind = self.ahead.len() >= self.trust.seats().witnesses();
        if !(is_unanswered || is_behind) {
            return out.push((self.leader, bytes));
        }
        let whose = self.whose();
        for seat in self.trust.seats().list() {
            out.push((*seat, bytes.clone()));
            out.push((*seat, whose.clone()));
        }
    }

    /// Whether nothing came that can be believed for so long. Then all those who are known may be gone, and
    /// anybody else may know who sits there now.
    pub fn is_unheard(&self, now: Instant, span: Duration) -> bool {
        self.unanswered_since.is_some_and(|since| now.since(since) >= span)
    }

    /// A machine says something as a member. The bytes of a response, if it can be believed now; it is once. What
    /// is said for another group is passed over.
    pub fn on_word(&mut self, from: &PublicKey, about: About, word: Word) -> Option<Vec<u8>> {
        if about.group != self.charter.group {
            return None;
        }
        let seat = *self.trust.seats().list().iter().find(|seat| seat.key == *from)?;
        let Word { slot, leader, bytes } = word;
        if about.epoch > self.trust.epoch() {
            self.ahead.insert(seat);
        }
        if !self.trust.on_word(seat, slot.height, slot.index, &bytes) {
            return None;
        }
        self.unanswered_since = None;
        // A hint of one, who may lie.
        if self.trust.seats().contains(&leader) {
            self.leader = leader;
        }
        Some(bytes)
    }

    /// Somebody, be it who it may, shows how the members have changed. Whether they are others now than was
    /// known. A rescue is passed over: only this machine's member finds out whether it is to be obeyed.
    pub fn on_changes(&mut self, changes: &[Decision]) -> bool {
        let is_decided = |change: &&Decision| change.rescue().is_none();
        let decided: Vec<Decision> = changes.iter().filter(is_decided).cloned().collect();
        self.follow(&decided)
    }

    /// The member on this machine goes by these changes, be there a rescue among them or not. Whether they are others
    /// now than was known.
    pub fn follow(&mut self, changes: &[Decision]) -> bool {
        let is_news = self.trust.on_changes(changes, &self.charter, &self.notary);
        if is_news {
            self.ahead.clear();
            self.leader = *self.trust.seats().leader(0);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frame, Slot};
    use base::{Digest, Domain, SecretKey};
    use group::{Ed25519, Rescue, Sealed};
    use lease::message::{Up, Upward};

    const REPEAT: Duration = Duration::from_millis(500);

    fn seat(number: u8) -> Seat {
        Seat { key: SecretKey::from_seed([number; 32]).public(), incarnation: 0 }
    }

    fn ear() -> Ear<Ed25519> {
        let seats: Vec<Seat> = {
            let mut seats: Vec<Seat> = (1..=4).map(seat).collect();
            seats.sort_unstable();
            seats
        };
        let roll = Roll { epoch: 3, leader: seat(2), seats };
        let group = Digest::of(Domain::new("test group v1"), b"");
        let notary = Ed25519::new(SecretKey::from_seed([9; 32]));
        Ear::new(lease::Client(7), group, roll, notary, REPEAT).unwrap()
    }

    fn request() -> Request {
        let lease = Upward { session: 1, stamp: Instant::from_secs(1), body: Up::Renew };
        Request { lease, ask: None }
    }

    /// What a member says at a height, since this epoch.
    fn say(
        ear: &mut Ear<Ed25519>,
        from: u8,
        (epoch, height): (u64, u64),
        leader: u8,
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        let (slot, leader) = (Slot { height, index: 0 }, seat(leader));
        let about = About { epoch, ..ear.about() };
        ear.on_word(&seat(from).key, about, Word { slot, leader, bytes: bytes.to_vec() })
    }

    fn message(bytes: &[u8]) -> Option<Message> {
        match crate::decode(bytes) {
            Ok(Frame::Group(_, message)) => Some(message),
            _ => None,
        }
    }

    fn whom(ear: &mut Ear<Ed25519>, now: Instant) -> Vec<Seat> {
        let mut said = Vec::new();
        ear.say(now, ear.seal(request()), &mut said);
        let is_request = |bytes: &[u8]| matches!(message(bytes), Some(Message::Sealed(..)));
        said.into_iter().filter(|(_, bytes)| is_request(bytes)).map(|(seat, _)| seat).collect()
    }

    #[test]
    fn the_leader_is_asked_and_all_when_nothing_came_that_can_be_believed() {
        let (mut ear, now) = (ear(), Instant::from_secs(10));
        assert_eq!(whom(&mut ear, now), [seat(2)]);
        assert_eq!(say(&mut ear, 1, (3, 8), 1, b"yes"), None, "one may lie");
        assert_eq!(whom(&mut ear, now + REPEAT).len(), 4);
        assert_eq!(say(&mut ear, 4, (3, 8), 4, b"yes"), Some(b"yes".to_vec()));
        assert_eq!(whom(&mut ear, now + 2 * REPEAT), [seat(4)], "who is believed says who leads");
        say(&mut ear, 1, (3, 9), 77, b"no");
        say(&mut ear, 3, (3, 9), 77, b"no");
        assert_eq!(whom(&mut ear, now + 2 * REPEAT), [seat(4)], "a stranger leads nobody");
    }

    #[test]
    fn strangers_and_repetitions_convince_nobody() {
        let mut ear = ear();
        for _ in 0..3 {
            assert_eq!(say(&mut ear, 1, (3, 8), 1, b"lie"), None);
            assert_eq!(say(&mut ear, 8, (3, 8), 1, b"lie"), None);
        }
        assert!(say(&mut ear, 2, (3, 8), 2, b"truth").is_none());
        assert!(say(&mut ear, 3, (3, 8), 2, b"truth").is_some());
        assert!(say(&mut ear, 4, (3, 8), 2, b"truth").is_none(), "it is believed once");
    }

    #[test]
    fn what_is_said_for_another_group_is_passed_over() {
        let mut ear = ear();
        let elsewhere = Digest::of(Domain::new("test group v1"), b"other");
        for (group, is_believed) in [(elsewhere, false), (ear.charter.group, true)] {
            let about = About { group, epoch: 9 };
            let heard = [1, 3].map(|from| {
                let (slot, leader) = (Slot { height: 8, index: 0 }, seat(2));
                ear.on_word(&seat(from).key, about, Word { slot, leader, bytes: vec![1] })
            });
            assert_eq!(heard, [None, is_believed.then(|| vec![1])]);
            assert_eq!(ear.ahead.len(), if is_believed { 2 } else { 0 });
        }
    }

    #[test]
    fn who_hears_of_a_later_epoch_asks_who_sits_there_now() {
        let (mut ear, now) = (ear(), Instant::from_secs(10));
        say(&mut ear, 1, (9, 8), 1, b"yes");
        assert_eq!(whom(&mut ear, now).len(), 1, "one may lie");
        say(&mut ear, 3, (9, 8), 1, b"yes");
        let mut said = Vec::new();
        ear.say(now, ear.seal(request()), &mut said);
        let whose = ear.about().encode(Message::Whose);
        let asked = said.iter().filter(|(_, bytes)| *bytes == whose);
        assert_eq!(asked.count(), 4);
        assert!(!ear.on_changes(&[]), "that shows nothing");
        assert_eq!(whom(&mut ear, now).len(), 4);
    }

    #[test]
    fn a_rescue_by_the_authority_is_believed_of_this_machines_member_and_of_nobody_else() {
        let (mut ear, now) = (ear(), Instant::from_secs(10));
        let authority = SecretKey::from_seed([77; 32]);
        ear.charter.authority = Some(authority.public());
        let what = Rescue { number: 1, seat: seat(3), height: 40, time: now, at: 5 };
        let seal = |key: SecretKey| Ed25519::new(key).seal(&what.sealed_bytes(&ear.charter.group));
        let seals = [SecretKey::from_seed([3; 32]), authority].map(seal);
        let [forged, rescue] = seals.map(|seal| Sealed { what: what.clone(), seal }.decision());
        whom(&mut ear, now);
        assert!(!ear.is_unheard(now, REPEAT) && ear.is_unheard(now + REPEAT, REPEAT));
        assert!(!ear.follow(&[forged]));
        assert!(!ear.on_changes(std::slice::from_ref(&rescue)), "a quorum may be well");
        assert_eq!(ear.seats().len(), 4);
        assert!(ear.follow(std::slice::from_ref(&rescue)));
        assert!(!ear.follow(&[rescue]), "it is known");
        assert_eq!((ear.seats(), ear.leader()), (&[seat(3)][..], seat(3)));
        assert_eq!(say(&mut ear, 1, (3, 8), 1, b"old"), None);
        assert!(say(&mut ear, 3, ((1 << 44) + 1, 8), 3, b"yes").is_some());
    }

    #[test]
    fn a_request_is_sealed_for_its_client_and_group() {
        let ear = ear();
        let Some(Message::Sealed(request, seal)) = message(&ear.seal(request())) else {
            panic!("it is a sealed request");
        };
        let key = SecretKey::from_seed([9; 32]).public();
        let notary = Ed25519::new(SecretKey::from_seed([1; 32]));
        let is_sealed = |client, group: &Digest| {
            let bytes =
                Said { client: lease::Client(client), request: &request }.sealed_bytes(group);
            notary.is_sealed(&key, &bytes, &seal)
        };
        assert!(is_sealed(7, &ear.charter.group));
        assert!(!is_sealed(8, &ear.charter.group));
        assert!(!is_sealed(7, &Digest::of(Domain::new("test group v1"), b"other")));
    }
}
