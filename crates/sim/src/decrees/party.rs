//! A machine of the world of decrees: an honest one around `overlay::Decrees`, or the one that lies.

use std::{collections::BTreeSet, rc::Rc};

use base::{Duration, Instant, Machine as _, PublicKey, Rng};
use overlay::{Decree, Decrees, Tidings, decrees::Input, decrees::Output};

use crate::{Actor, Node, Outbox};

use super::tamper::Tamper;

/// The moment by every wall clock, in seconds since 1970.
pub(crate) const SECONDS: u64 = 1_000;
/// So many others are connected with a machine at most.
const CONNECTED_MAX: usize = 3;
/// How often a machine meets another, at most.
const MEETING_MAX: Duration = Duration::from_secs(60);

/// What all know, and who they are.
pub(crate) struct Cast {
    pub(crate) root: PublicKey,
    pub(crate) keys: Vec<PublicKey>,
    /// The first so many have a vote.
    pub(crate) members: usize,
    /// What the liar hands over: by nobody, and by an issuer who may no more.
    pub(crate) forged: Vec<Decree>,
    /// The issuer who may no more.
    pub(crate) spent: PublicKey,
}

impl Cast {
    fn node(&self, key: &PublicKey) -> Option<Node> {
        self.keys.iter().position(|known| known == key).map(|index| Node(index as u16))
    }

    pub(crate) fn key(&self, node: Node) -> PublicKey {
        self.keys[node.index()]
    }

    fn is_member(&self, node: Node) -> bool {
        node.index() < self.members
    }

    /// Whether the group takes it: members have heard that the issuer may no more.
    fn takes(&self, decree: &Decree) -> bool {
        let by = decree.tenure(&self.root).ok().flatten();
        by.is_none_or(|by| by.issuer != self.spent)
    }
}

/// What is said.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Message {
    /// There is a connection.
    Hello,
    /// What a machine says, as bytes.
    Said(Vec<u8>),
}

/// A machine.
pub(crate) struct Party<T> {
    me: Node,
    cast: Rc<Cast>,
    decrees: Decrees,
    disk: Vec<Decree>,
    /// The last that it has met.
    connected: Vec<Node>,
    meets_at: Instant,
    is_liar: bool,
    rng: Rng,
    tamper: T,
}

/// Where a node of this world puts what it wants done.
pub(crate) type Out<T> = Outbox<Party<T>>;

impl<T: Tamper> Party<T> {
    pub(crate) fn new(me: Node, cast: &Rc<Cast>, is_liar: bool, rng: Rng, tamper: T) -> Party<T> {
        let mut party = Party {
            me,
            decrees: Decrees::new(cast.root, cast.key(me), Vec::new()),
            cast: Rc::clone(cast),
            disk: Vec::new(),
            connected: Vec::new(),
            meets_at: Instant::START,
            is_liar,
            rng,
            tamper,
        };
        party.begin(Instant::START);
        party
    }

    /// What it has been told of the cell when it starts: whoever has no vote knows few machines, and needs none.
    fn begin(&mut self, now: Instant) {
        let key = self.cast.key(self.me);
        self.decrees = Decrees::new(self.cast.root, key, self.disk.clone());
        let machines: BTreeSet<PublicKey> = self.cast.keys.iter().copied().collect();
        let members = self.cast.keys[..self.cast.members].to_vec();
        self.decrees.step(now, Input::Cell { machines, members }, &mut Vec::new());
        self.meets_at = now + MEETING_MAX.mul_f64(self.rng.unit());
    }

    /// The group has decided it, as this member hears.
    pub(crate) fn decide(&mut self, now: Instant, decree: Decree, out: &mut Out<T>) {
        let mut outputs = Vec::new();
        self.decrees.step(now, Input::Decided(Box::new(decree)), &mut outputs);
        self.follow(now, outputs, out);
    }

    pub(crate) fn is_revoked(&self, key: &PublicKey) -> bool {
        self.decrees.is_revoked(key)
    }

    pub(crate) fn is_liar(&self) -> bool {
        self.is_liar
    }

    fn follow(&mut self, now: Instant, mut outputs: Vec<Output>, out: &mut Out<T>) {
        while !outputs.is_empty() {
            let mut later = Vec::new();
            for output in outputs.drain(..) {
                match output {
                    Output::Tell(to, tidings) => {
                        if let Some(to) = self.cast.node(&to) {
                            self.say(to, &tidings, out);
                        }
                    }
                    Output::TellAll(tidings) => {
                        out.mark("news are passed on without a vote");
                        for to in self.connected.clone() {
                            self.say(to, &tidings, out);
                        }
                    }
                    Output::Obey(decree) => self.disk.push(decree),
                    Output::Submit(decree) if self.cast.takes(&decree) => {
                        out.mark("a member hears it from elsewhere");
                        self.decrees.step(now, Input::Decided(Box::new(decree)), &mut later);
                    }
                    Output::Submit(_) => out.mark("the group refuses what a spent issuer says"),
                }
            }
            outputs = later;
        }
    }

    fn say(&mut self, to: Node, tidings: &Tidings, out: &mut Out<T>) {
        if self.tamper.says(self.cast.is_member(to), tidings) {
            match tidings {
                Tidings::Lacking(_) => out.mark("a greeting finds what one lacks"),
                Tidings::Compare(range, _) if !range.is_whole() => {
                    out.mark("a range is compared in parts");
                }
                _ => {}
            }
            out.send(to, Message::Said(base::encode(tidings)));
        }
    }

    fn meet(&mut self, now: Instant, other: Node, out: &mut Out<T>) {
        self.connected.retain(|known| *known != other);
        self.connected.push(other);
        let surplus = self.connected.len().saturating_sub(CONNECTED_MAX);
        self.connected.drain(..surplus);
        if self.tamper.greets() {
            let mut outputs = Vec::new();
            self.decrees.step(now, Input::Met(self.cast.key(other)), &mut outputs);
            self.follow(now, outputs, out);
        }
    }

    /// Says that it knows whatever the other knows, and hands over what nobody may say. It passes nothing on.
    fn lie(&mut self, to: Node, bytes: &[u8], out: &mut Out<T>) {
        let Ok(heard) = base::decode::<Tidings>(bytes, bytes.len()) else { return };
        out.mark("the liar hears something");
        if let Tidings::Compare(..) = heard {
            out.send(to, Message::Said(bytes.to_vec()));
        }
        // News are answered, and so it would go on for ever.
        if self.rng.chance(0.2) {
            let forged = Tidings::News(self.cast.forged.clone());
            out.send(to, Message::Said(base::encode(&forged)));
        }
    }
}

impl<T: Tamper> Actor for Party<T> {
    type Message = Message;
    type Note = ();

    fn deliver(&mut self, now: Instant, from: Node, message: Message, out: &mut Out<T>) {
        match message {
            Message::Hello if !self.is_liar => self.meet(now, from, out),
            Message::Hello => {}
            Message::Said(bytes) if self.is_liar => self.lie(from, &bytes, out),
            Message::Said(bytes) => {
                let Ok(tidings) = base::decode(&bytes, bytes.len()) else { return };
                let from = self.cast.key(from);
                let mut outputs = Vec::new();
                let input = Input::Heard { from, tidings, seconds: SECONDS };
                self.decrees.step(now, input, &mut outputs);
                self.follow(now, outputs, out);
            }
        }
    }

    fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        let mut outputs = Vec::new();
        if !self.is_liar {
            self.decrees.tick(now, &mut outputs);
        }
        self.follow(now, outputs, out);
        if now >= self.meets_at {
            self.meets_at = now + MEETING_MAX.mul_f64(0.1 + 0.9 * self.rng.unit());
            let other = Node(self.rng.below(self.cast.keys.len() as u64) as u16);
            if other != self.me {
                out.send(other, Message::Hello);
                if !self.is_liar {
                    self.meet(now, other, out);
                }
            }
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let calls = self.decrees.wake_at().filter(|_| !self.is_liar);
        Some(calls.map_or(self.meets_at, |at| at.min(self.meets_at)))
    }

    fn restart(&mut self, now: Instant, _: &mut Out<T>) {
        self.connected.clear();
        self.begin(now);
    }
}
