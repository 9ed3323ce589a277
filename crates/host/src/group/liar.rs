//! A member that lies, for tests: what a real machine hears and says goes through its vice.

use base::{Digest, Rng, SecretKey};
use directory::{Command, message::Request};
use group::{Decision, Message as Words, Roll, Seal, Seat};
use lease::message::{Up, Upward};
use node::Order;
use vice::{Lie, Vice};
use wire::{About, Answer, Frame, Message, Query, Word};

use super::*;

/// A liar with the key of the machine that it has taken over.
pub(crate) struct Liar {
    vice: Vice,
    manner: Manner,
    seat: Seat,
    notary: Ed25519,
    /// Who sits in the group, as the machine itself knows.
    roll: Roll,
    /// What a frame for a member begins with.
    head: Vec<u8>,
    rng: Rng,
}

/// What a liar does that is no matter of single messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Nothing.
    Plain,
    /// It says both things to each, so that everybody has the proof.
    ToTheFace,
    /// It adds frames that are none, and frames as long as a frame can be.
    Noisy,
    /// It says nothing to anybody.
    Silent,
    /// It tells clients of other names, and of the same as all others who lie like this.
    Concerted,
}

/// How a machine is to lie.
pub(crate) struct Corruption {
    pub(crate) lies: Vec<Lie>,
    pub(crate) manner: Manner,
    /// How often it lies when it could.
    pub(crate) zeal: f64,
    pub(crate) seed: u64,
    /// Of the machine.
    pub(crate) key: SecretKey,
    /// That it sits in.
    pub(crate) group: Digest,
}

/// A long frame goes out with one in so many.
const LONG_EVERY: u64 = 50;
/// As many bytes as a message may have, and one more.
const LONG: usize = Frame::BYTES_MAX + 1;

impl Liar {
    fn new(corruption: Corruption, member: &Member<Ed25519>) -> Liar {
        let Corruption { lies, manner, zeal, seed, key, group } = corruption;
        let mut rng = Rng::new(seed);
        let lies = lies.into_iter().collect();
        let slack = group::Settings::default().doubt.slack;
        let vice = Vice::new(lies, zeal, slack, group, invented, &mut rng);
        let (seat, roll) = (member.replica().seat(), Roll::from(member.replica().tip()));
        let mut head = member.about().encode(Message::Member(Box::new(Words::Commands(vec![]))));
        // All but what is said.
        head.truncate(head.len() - 5);
        Liar { vice, manner, seat, notary: Ed25519::new(key), roll, head, rng }
    }

    /// The frames that go to a machine in place of this one.
    pub(super) fn outward(&mut self, to: &PublicKey, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        if self.manner == Manner::Silent {
            return Vec::new();
        }
        let mut frames = match wire::decode(&bytes) {
            Ok(Frame::Group(about, Message::Member(words))) => self.words(to, about, *words),
            Ok(Frame::Group(about, Message::Word(word))) => self.word(about, word),
            Ok(Frame::Group(about, Message::Changes(changes))) => {
                vec![self.changes(about, changes)]
            }
            // What its own client wants, it wants in earnest.
            _ => return vec![bytes],
        };
        for frame in &mut frames {
            *frame = self.vice.maul(std::mem::take(frame));
        }
        if self.manner == Manner::Noisy {
            frames.extend(self.noise());
        }
        frames
    }

    fn words(&mut self, to: &PublicKey, about: About, words: Words) -> Vec<Vec<u8>> {
        let honest = (self.manner == Manner::ToTheFace).then(|| words.clone());
        let number = match honest {
            // One who hears the lies.
            Some(_) => (0..64).find(|number| self.vice.side(*number) == 1).unwrap_or(0),
            None => u16::from(to.as_bytes()[0]),
        };
        let said = self.vice.outward(number, words, self.seat, &self.notary);
        let all = honest.into_iter().chain(said);
        all.map(|words| about.encode(Message::Member(Box::new(words)))).collect()
    }

    /// What a client hears.
    fn word(&mut self, mut about: About, mut word: Word) -> Vec<Vec<u8>> {
        let Some(bytes) = self.vice.speak(word.bytes) else { return Vec::new() };
        word.bytes = bytes;
        if self.manner == Manner::Concerted {
            rename(&mut word.bytes);
        }
        let mut said = Vec::new();
        if self.vice.misanswers() {
            if self.rng.below(8) == 0 {
                said.push(self.changes(about, Vec::new()));
            }
            match self.rng.below(4) {
                0 => about.epoch += 1 + self.rng.below(9),
                1 => word.slot.height += 1 + self.rng.below(9),
                2 => word.slot.index += 1,
                _ => word.leader = self.seat,
            }
        }
        said.push(about.encode(Message::Word(word)));
        said
    }

    /// How it says that the members have changed.
    fn changes(&mut self, about: About, mut changes: Vec<Decision>) -> Vec<u8> {
        self.vice.rewrite(&mut changes, &self.roll, self.seat, &self.notary);
        about.encode(Message::Changes(changes))
    }

    fn noise(&mut self) -> Vec<Vec<u8>> {
        let mut bytes: Vec<u8> =
            (0..self.rng.below(200)).map(|_| self.rng.below(256) as u8).collect();
        if self.rng.chance(0.5) {
            // Nearly a message: of the right version and for somebody.
            let mut head = self.head.clone();
            *head.last_mut().expect("it says for whom it is") = self.rng.below(8) as u8;
            bytes.splice(0..0, head);
        }
        let mut frames = vec![bytes];
        if self.rng.below(LONG_EVERY) == 0 {
            let mut long = vec![0xff; LONG - self.rng.below(3) as usize];
            long[..self.head.len()].copy_from_slice(&self.head);
            frames.push(long);
        }
        frames
    }
}

impl Group {
    /// From now on it lies.
    pub(super) fn corrupt(&mut self, corruption: Corruption) {
        let liar = Liar::new(corruption, &self.member);
        if let Some(peers) = &mut self.peers {
            peers.misanswer();
            peers.liar = Some(liar.into());
        }
    }

    /// Whether a liar listens; it may have something to say to that.
    pub(super) fn heeds(&mut self, from: &PublicKey, bytes: &[u8]) -> bool {
        let Some(peers) = &self.peers else { return true };
        let Some(liar) = &peers.liar else { return true };
        let Ok(Frame::Group(about, Message::Member(words))) = wire::decode(bytes) else {
            return true;
        };
        let replica = self.member.replica();
        let (tip, time) = (replica.tip(), replica.time(self.clock.now()));
        let mut liar = liar.borrow_mut();
        let Liar { vice, seat, notary, roll, .. } = &mut *liar;
        *roll = Roll::from(tip);
        let false_state = || b"nobody has this state".to_vec();
        let heard = Some((tip.seat_of(from), &*words));
        let said = vice.scheme(heard, tip, &false_state, time, *seat, notary);
        for (to, words) in said.into_iter().filter(|(to, _)| to != seat) {
            let bytes = vice.maul(about.encode(Message::Member(Box::new(words))));
            peers.send_frame(&to.key, bytes);
        }
        vice.hears(&words)
    }
}

/// Calls every file by another name of the same length: `n7` is `m7` then.
fn rename(bytes: &mut [u8]) {
    let name = [2, b'n'];
    for at in 0..bytes.len().saturating_sub(name.len()) {
        if bytes[at..].starts_with(&name) {
            bytes[at + name.len() - 1] = b'm';
        }
    }
}

/// What a liar answers out of turn: it knows who is meant, and has every byte that anybody wants.
pub(super) fn misanswer(query: &[u8], answer: Answer) -> Answer {
    match (wire::decode(query), answer) {
        (Ok(Query::Read { length, .. }), _) => Answer::Bytes(vec![0; length as usize]),
        (_, Answer::Machine(mut machine)) => {
            machine.addresses = vec![([127, 0, 0, 1], 9).into()];
            Answer::Machine(machine)
        }
        (_, answer) => answer,
    }
}

/// A command that nobody wants.
fn invented(rng: &mut Rng) -> Vec<u8> {
    let client = Client(1 + rng.below(4) as u32);
    let command = match rng.chance(0.5) {
        true => Command::Admit { client: Client(99), users: directory::Users::Any },
        false => {
            let lease = Upward { session: 1, stamp: Instant::START, body: Up::Renew };
            Command::Heard { client, request: Request { lease, ask: None } }
        }
    };
    let by = rng.chance(0.5).then(|| (PublicKey::from_bytes([0xcc; 32]), Seal([7; 64])));
    base::encode(&Order::Do { command, by })
}
