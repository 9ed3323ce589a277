//! A machine on the ring that looks up places for its program and keeps its fingers true.
//!
//! It knows no clock and no socket, so that it can be run by either. Its program waits for an answer before it asks
//! again, as the paper's does (K20), so that how often it asks depends on how soon it is answered.

use std::collections::BTreeMap;

use base::Rng;
use overlay::{Fingers, Hop, Link, Position, Ring, aim, levels};
use serde::{Deserialize, Serialize};

/// A second, in microseconds, in which all times are.
const SECOND: u64 = 1_000_000;
/// Between an answer and the next query (K20): at first, at least, and how much more or less after a timeout and an
/// answer. What comes later than that and a patience is not waited for.
const START: u64 = 5 * SECOND;
const FLOOR: u64 = SECOND;
const STEP: u64 = SECOND;
const PATIENCE: u64 = 10 * SECOND;
/// How often a finger is looked up, in the mean.
const REFRESH: u64 = SECOND;
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
    /// Of what is asked and of fingers apart, so that the order in which they come to their turns changes neither.
    queries: Rng,
    rng: Rng,
    /// When the program asks next, or stops to wait.
    query_at: u64,
    /// Between its queries.
    interval: u64,
    /// What it waits for.
    open: Option<u32>,
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
                query_at: rng.below(START),
                interval: START,
                open: None,
                refresh_at: rng.below(REFRESH),
                queries: rng.fork(),
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
            if self.query_at <= self.refresh_at {
                self.ask(now, out);
            } else {
                self.refresh_at += REFRESH / 2 + self.rng.below(REFRESH);
                if self.fingers.levels() > 0 {
                    self.number += 1;
                    let level = self.number as usize % self.fingers.levels();
                    self.asked.retain(|_, asked| *asked != level);
                    self.asked.insert(self.number, level);
                    let key = aim(self.position, level);
                    self.pass((LOOK_UP, key.0, self.own as u8, self.number, Vec::new()), out);
                }
            }
        }
    }

    /// The program asks, whether it was answered or has waited for long enough.
    fn ask(&mut self, now: u64, out: &mut Vec<Send>) {
        if self.open.is_some() {
            self.interval += STEP;
        }
        self.query_at = now + self.interval + PATIENCE;
        self.traffic.queries += 1;
        let query = self.traffic.queries as u32;
        self.open = Some(query);
        let key = Position(self.queries.next_u64());
        self.pass((QUERY, key.0, self.own as u8, query, Vec::new()), out);
        if self.is_own(key) {
            self.answered(now, query);
        }
    }

    /// The program has an answer. One that it does not wait for any more changes nothing.
    fn answered(&mut self, now: u64, query: u32) {
        if self.open == Some(query) {
            self.open = None;
            self.interval = self.interval.saturating_sub(STEP).max(FLOOR);
            self.query_at = now + self.interval;
            self.traffic.answers += 1;
        }
    }

    fn is_own(&self, key: Position) -> bool {
        self.before.to(key).wrapping_sub(1) < self.before.to(self.position)
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
                    self.fingers.set(level, Some(link), (now / SECOND) as u32);
                }
            }
            ANSWER => self.answered(now, number),
            _ => {}
        }
    }

    /// Answers if the place is its own, else sends the question on.
    fn pass(&mut self, message: Message, out: &mut Vec<Send>) {
        let (kind, place, asker, number, _) = message;
        let key = Position(place);
        if self.is_own(key) {
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
            return;
        }
        let octets = base::encode(&message);
        self.traffic.packets_out += 1;
        self.traffic.octets_out += octets.len() as u64;
        out.push(Send { to, octets });
    }
}
