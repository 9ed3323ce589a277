//! A machine on the ring that looks up places for its program and keeps its fingers true.
//!
//! It knows no clock and no socket, so that it can be run by either: what it asks for depends on deadlines and
//! on its chance only, and what others ask of it on what it is told.

use std::collections::BTreeMap;

use base::Rng;
use overlay::{Fingers, Hop, Link, Position, Ring, aim, levels};
use serde::{Deserialize, Serialize};

/// How often a program asks and a finger is looked up, in microseconds in the mean.
const QUERY_US: u64 = 100_000;
const REFRESH_US: u64 = 200_000;
/// What the answer to a program's query carries, about as much as a packet of the paper's.
const BODY: usize = 1_400;
/// The most octets of a message: kind, place, machine, number, length and body.
pub const OCTETS_MAX: usize = 1 + 8 + 1 + 4 + 4 + BODY;

/// What a machine has counted: messages and octets each way, queries asked and those that were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    pub packets_in: u64,
    pub octets_in: u64,
    pub packets_out: u64,
    pub octets_out: u64,
    pub queries: u64,
    pub answers: u64,
}

/// Octets for somebody.
pub struct Send {
    pub to: usize,
    pub octets: Vec<u8>,
}

/// The kinds of messages.
const LOOK_UP: u8 = 0;
const QUERY: u8 = 1;
const FOUND: u8 = 2;
const ANSWER: u8 = 3;
/// Kind, place, machine (who asks, or who is there), number, body.
type Message = (u8, u64, u8, u32, Vec<u8>);

/// One of them.
pub struct Peer {
    own: usize,
    /// How many there are.
    count: usize,
    position: Position,
    before: Position,
    successor: Link<usize>,
    fingers: Fingers<usize>,
    rng: Rng,
    query_at: u64,
    refresh_at: u64,
    /// Levels that are being looked up, by number; at most one for each level.
    asked: BTreeMap<u32, usize>,
    number: u32,
    pub traffic: Traffic,
}

impl Peer {
    /// So many of them, each knowing its neighbours and nobody else.
    pub fn network(count: usize, seed: u64) -> Vec<Peer> {
        let mut rng = Rng::new(seed);
        let mut ring = Ring::new();
        let mut positions = Vec::new();
        while positions.len() < count {
            let position = Position(rng.next_u64());
            if ring.insert(position, positions.len()) {
                positions.push(position);
            }
        }
        let peer = |(own, position): (usize, Position)| {
            let (before, _) = ring.before(position).expect("it stands there itself");
            let (after, server) = ring.after(position).expect("it stands there itself");
            let mut fingers = Fingers::default();
            fingers.resize(levels(position, after));
            let mut rng = rng.fork();
            Peer {
                own,
                count,
                position,
                before,
                successor: Link { position: after, server },
                fingers,
                query_at: rng.below(QUERY_US),
                refresh_at: rng.below(REFRESH_US),
                rng,
                asked: BTreeMap::new(),
                number: 0,
                traffic: Traffic::default(),
            }
        };
        positions.into_iter().enumerate().map(peer).collect()
    }

    /// The next moment at which it does something of its own accord.
    pub fn wake_at(&self) -> u64 {
        self.query_at.min(self.refresh_at)
    }

    /// Does what is due.
    pub fn tick(&mut self, now: u64, out: &mut Vec<Send>) {
        while self.wake_at() <= now {
            self.number += 1;
            if self.query_at <= self.refresh_at {
                self.query_at += QUERY_US / 2 + self.rng.below(QUERY_US);
                self.traffic.queries += 1;
                let key = Position(self.rng.next_u64());
                self.pass((QUERY, key.0, self.own as u8, self.number, Vec::new()), out);
            } else {
                self.refresh_at += REFRESH_US / 2 + self.rng.below(REFRESH_US);
                if self.fingers.levels() > 0 {
                    let level = self.number as usize % self.fingers.levels();
                    self.asked.retain(|_, asked| *asked != level);
                    self.asked.insert(self.number, level);
                    let key = aim(self.position, level);
                    self.pass((LOOK_UP, key.0, self.own as u8, self.number, Vec::new()), out);
                }
            }
        }
    }

    /// Takes what has come. What nobody of the network would send is counted and has no effect.
    pub fn take(&mut self, now: u64, octets: &[u8], out: &mut Vec<Send>) {
        self.traffic.packets_in += 1;
        self.traffic.octets_in += octets.len() as u64;
        let Ok(message) = base::decode::<Message>(octets, OCTETS_MAX) else { return };
        let (kind, place, server, number, _) = message;
        if usize::from(server) >= self.count {
            return;
        }
        match kind {
            LOOK_UP | QUERY => self.pass(message, out),
            FOUND => {
                if let Some(level) = self.asked.remove(&number) {
                    let link = Link { position: Position(place), server: usize::from(server) };
                    self.fingers.set(level, Some(link), (now / 1_000_000) as u32);
                }
            }
            ANSWER => self.traffic.answers += 1,
            _ => {}
        }
    }

    /// Answers if the place is its own, else sends the question on.
    fn pass(&mut self, message: Message, out: &mut Vec<Send>) {
        let (kind, place, asker, number, _) = message;
        let key = Position(place);
        if self.before.to(key).wrapping_sub(1) < self.before.to(self.position) {
            let answer = match kind {
                LOOK_UP => (FOUND, self.position.0, self.own as u8, number, Vec::new()),
                _ => (ANSWER, self.position.0, self.own as u8, number, vec![0; BODY]),
            };
            return self.send(usize::from(asker), answer, out);
        }
        let to = match self.fingers.next_hop(self.position, self.successor.position, key) {
            Hop::Successor { .. } => self.successor.server,
            Hop::Finger { link, .. } => link.server,
        };
        self.send(to, message, out);
    }

    fn send(&mut self, to: usize, message: Message, out: &mut Vec<Send>) {
        if to == self.own {
            // Its own place: nothing goes over a line, and a finger to itself leads nowhere.
            self.traffic.answers += u64::from(message.0 == ANSWER);
            return;
        }
        let octets = base::encode(&message);
        self.traffic.packets_out += 1;
        self.traffic.octets_out += octets.len() as u64;
        out.push(Send { to, octets });
    }
}
