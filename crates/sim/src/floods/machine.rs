//! A machine with its member, its mailroom and somebody who wants something; and what its work costs.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    rc::Rc,
};

use base::{Digest, Duration, Instant, Machine as _, PublicKey};
use directory::message::Request;
use group::{Sealable as _, Seat, Tip};
use lease::{
    Client,
    message::{Up, Upward},
};
use node::{
    Identity, Input, Limits, Mailroom, Member, Output, Settings,
    mailroom::{Kind, Sender},
};
use wire::{About, Audience, Frame, Join, Message, Said};

use super::{
    run::{Note, Out, Site},
    tamper::Tamper,
};
use crate::{Node, files::Stamp};

/// What it costs to take up a letter, or to send one.
const LETTER: Duration = Duration::from_micros(20);
/// Bytes that are read or sent in a microsecond.
const BYTES_PER_US: usize = 128;
/// What it costs to check the seal of a command, or of a vote.
const SEAL: Duration = Duration::from_micros(60);
/// What it costs to make the log safe.
const SYNC: Duration = Duration::from_micros(500);
/// So many bytes, and letters, of one machine are on their way and not read. Whoever has filled that can't send.
const WINDOW: (usize, usize) = (1 << 20, 256);
/// Somebody who wants something asks everybody after this time.
const REPEAT: Duration = Duration::from_millis(500);

/// What travels: a frame, or what somebody wants who joins.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Letter {
    Frame(Rc<[u8]>),
    Join(Rc<[u8]>),
}

impl Letter {
    fn bytes(&self) -> &[u8] {
        match self {
            Letter::Frame(bytes) | Letter::Join(bytes) => bytes,
        }
    }

    fn kind(&self) -> Kind {
        match (self, Audience::of(self.bytes())) {
            (Letter::Join(_), _) | (_, Some(Audience::Group(_))) => Kind::Wish,
            _ => Kind::Word,
        }
    }
}

pub(crate) struct Machine<T> {
    site: Rc<Site>,
    node: Node,
    key: PublicKey,
    pub(crate) member: Member<Stamp>,
    mailroom: Mailroom<(Option<PublicKey>, Letter)>,
    /// What has come of each and was not read yet, and until when nothing more is.
    unread: BTreeMap<Node, (VecDeque<Letter>, usize)>,
    rests: BTreeMap<Node, Instant>,
    /// Read, and to be looked at.
    round: VecDeque<(Sender, (Option<PublicKey>, Letter))>,
    /// Until when it is at work, and what comes of that.
    busy_until: Option<Instant>,
    results: Vec<Output>,
    /// Who wants something decided here, if anybody.
    writer: Option<Writer>,
    /// Bytes of decisions and states that were told to each machine.
    pub(crate) told: BTreeMap<Node, usize>,
    tamper: T,
}

/// Somebody who wants one thing after another.
pub(crate) struct Writer {
    pub(crate) pace: Duration,
    number: u64,
    /// Since when it waits for what it wants, and when it says it again.
    waiting: Option<(Instant, Instant)>,
    next_at: Instant,
}

impl<T: Tamper> Machine<T> {
    pub(crate) fn new(
        site: Rc<Site>,
        node: Node,
        pace: Option<Duration>,
        now: Instant,
        tamper: T,
    ) -> Machine<T> {
        let seat = site.seat(node);
        let group = tamper.settings(site.settings.clone());
        let identity = Identity {
            group: site.group,
            seat,
            authority: Some(site.authority),
            notary: Stamp(seat.key),
        };
        let mut member =
            Member::new(Settings::default(), group.clone(), identity, site.first.clone(), now);
        member.attend(site.seating.clone(), now);
        let mut mailroom = Mailroom::new(Limits::planned(group));
        let seated: BTreeSet<PublicKey> = site.first.seats.iter().map(|seat| seat.key).collect();
        mailroom.seat(tamper.seated(seated));
        let start = now + Duration::from_millis(500);
        let writer = |pace| Writer { pace, number: 0, waiting: None, next_at: start };
        let mut machine = Machine {
            node,
            key: seat.key,
            member,
            mailroom,
            unread: BTreeMap::new(),
            rests: BTreeMap::new(),
            round: VecDeque::new(),
            busy_until: None,
            results: Vec::new(),
            writer: pace.map(writer),
            told: BTreeMap::new(),
            tamper,
            site,
        };
        if node == Node(0) {
            for join in machine.site.joins.clone() {
                machine.put(now, Sender::Own, None, Letter::Join(join));
            }
        }
        machine
    }

    /// Since when somebody waits here for what it wants.
    pub(crate) fn waits_since(&self) -> Option<Instant> {
        self.writer.as_ref()?.waiting.map(|(since, _)| since)
    }

    pub(crate) fn deliver(&mut self, now: Instant, from: Node, letter: Letter, out: &mut Out<T>) {
        let (unread, bytes) = self.unread.entry(from).or_default();
        let more = *bytes + letter.bytes().len();
        if more > WINDOW.0 || unread.len() >= WINDOW.1 {
            return;
        }
        *bytes = more;
        unread.push_back(letter);
        self.read(now, from);
        self.work(now, out);
    }

    pub(crate) fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        let rested: Vec<Node> =
            self.rests.iter().filter(|(_, at)| **at <= now).map(|(node, _)| *node).collect();
        for from in rested {
            self.rests.remove(&from);
            self.read(now, from);
        }
        self.want(now);
        self.work(now, out);
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let writer = self.writer.as_ref().map(|writer| match writer.waiting {
            Some((_, again_at)) => again_at,
            None => writer.next_at,
        });
        // While it is at work it looks at nothing else.
        let product = match self.busy_until {
            Some(until) => Some(until),
            None => self.member.wake_at(),
        };
        self.rests.values().copied().chain(writer).chain(product).min()
    }

    /// Takes in what has come of somebody, until that is to rest.
    fn read(&mut self, now: Instant, from: Node) {
        let key = self.site.seat(from).key;
        let sender = Sender::Machine(key);
        while !self.rests.contains_key(&from) {
            let Some((unread, bytes)) = self.unread.get_mut(&from) else { return };
            let Some(letter) = unread.pop_front() else { return };
            *bytes -= letter.bytes().len();
            self.put(now, sender, Some(key), letter);
            let rest = self.mailroom.rest(now, &self.tamper.sender(sender));
            if !rest.is_zero() {
                self.rests.insert(from, now + rest);
            }
        }
    }

    fn put(&mut self, now: Instant, from: Sender, key: Option<PublicKey>, letter: Letter) {
        let (kind, bytes) = (letter.kind(), letter.bytes().len());
        self.mailroom.put(now, self.tamper.sender(from), kind, bytes, (key, letter));
    }

    /// Somebody here wants something, or says it again.
    fn want(&mut self, now: Instant) {
        let Some(writer) = &mut self.writer else { return };
        let since = match writer.waiting {
            None if writer.next_at <= now => {
                writer.number += 1;
                now
            }
            Some((since, again_at)) if again_at <= now => since,
            _ => return,
        };
        writer.waiting = Some((since, now + REPEAT));
        let Some(client) = self.member.book().client(&self.key) else { return };
        let stamp = Instant::from_nanos(writer.number);
        let wish = wish(&self.site.group, self.key, client, stamp, None);
        self.put(now, Sender::Own, None, Letter::Frame(wish.into()));
    }

    /// Works until there is nothing to do, or it is busy for a while.
    fn work(&mut self, now: Instant, out: &mut Out<T>) {
        if self.busy_until.is_some_and(|until| until > now) {
            return;
        }
        if self.busy_until.take().is_some() {
            let results = std::mem::take(&mut self.results);
            self.send(now, results, out);
        }
        while self.busy_until.is_none() {
            if self.member.wake_at().is_some_and(|at| at <= now) {
                let mut results = Vec::new();
                self.member.tick(now, &mut results);
                self.finish(now, LETTER, results);
                continue;
            }
            if self.round.is_empty() {
                self.round = self.mailroom.take().into();
            }
            let Some((from, (key, letter))) = self.round.pop_front() else { return };
            let (cost, results) = self.look_at(now, key, letter, out);
            let whole = self.finish(now, cost, results);
            self.mailroom.charge(now, &from, whole);
        }
    }

    /// It takes so long until this can be said. How long, with all that it costs to say it.
    fn finish(&mut self, now: Instant, cost: Duration, results: Vec<Output>) -> Duration {
        let sends = results.iter().filter_map(|output| match output {
            Output::Tell { bytes, .. }
            | Output::Show { bytes, .. }
            | Output::Send { bytes, .. } => Some(LETTER + time_of(bytes.len())),
            _ => None,
        });
        let cost = cost + sends.sum::<Duration>();
        let has_sync = results.iter().any(|output| matches!(output, Output::Sync { .. }));
        let sync = if has_sync { SYNC } else { Duration::ZERO };
        self.results = results;
        self.busy_until = Some(now + (cost + sync).max(Duration::from_nanos(1)));
        cost
    }

    /// What comes of a letter, and what it costs to look at it.
    fn look_at(
        &mut self,
        now: Instant,
        key: Option<PublicKey>,
        letter: Letter,
        out: &mut Out<T>,
    ) -> (Duration, Vec<Output>) {
        let (cost, mut results) = (LETTER + time_of(letter.bytes().len()), Vec::new());
        let bytes = match letter {
            Letter::Join(bytes) => {
                if let Ok(join) = base::decode::<Join>(&bytes, bytes.len()) {
                    self.member.step(now, Input::Join(Box::new(join)), &mut results);
                }
                return (cost + 5 * SEAL, results);
            }
            Letter::Frame(bytes) => bytes,
        };
        let replica = self.member.replica();
        let me = self.key;
        match (Audience::of(&bytes), key) {
            (Some(Audience::Group(_)), None) => {
                // It is said to the leader and here, and to all when it was said in vain.
                let is_first = self.writer.as_ref().is_none_or(|writer| {
                    writer.waiting.is_none_or(|(since, again_at)| again_at.since(since) <= REPEAT)
                });
                let leader = replica.tip().leader;
                let members = replica.members().list().iter();
                let to = members.filter(|seat| seat.key != me && (!is_first || **seat == leader));
                for seat in to {
                    out.send(self.site.node(&seat.key), Letter::Frame(Rc::clone(&bytes)));
                }
                self.hear(now, me, bytes, &mut results);
            }
            (Some(Audience::Group(_)), Some(from)) => self.hear(now, from, bytes, &mut results),
            (Some(Audience::Member(_)), Some(from)) => {
                let seals = match wire::decode(&bytes) {
                    Ok(Frame::Group(_, Message::Member(message))) => {
                        let commands = message.commands().iter();
                        commands.filter(|command| !replica.is_pending(command)).count() + 1
                    }
                    _ => 1,
                };
                let from = replica.tip().seat_of(&from);
                let input = Input::Told { from, bytes: bytes.to_vec() };
                self.member.step(now, input, &mut results);
                return (cost + SEAL * seals as u32, results);
            }
            _ => {}
        }
        (cost + SEAL, results)
    }

    fn hear(&mut self, now: Instant, from: PublicKey, bytes: Rc<[u8]>, results: &mut Vec<Output>) {
        if let Some(client) = self.member.book().client(&from) {
            let input = Input::Heard { from: client, bytes: bytes.to_vec(), key: Some(from) };
            self.member.step(now, input, results);
        }
    }

    fn send(&mut self, now: Instant, results: Vec<Output>, out: &mut Out<T>) {
        let (mut safe, mut more) = (None, Vec::new());
        for output in results {
            match output {
                Output::Tell { to, bytes } => {
                    let to = self.site.node(&to.key);
                    if let Ok(Frame::Group(_, Message::Member(message))) = wire::decode(&bytes)
                        && matches!(
                            *message,
                            group::Message::Decisions(_)
                                | group::Message::Offer(..)
                                | group::Message::Piece { .. }
                        )
                    {
                        *self.told.entry(to).or_default() += bytes.len();
                    }
                    out.send(to, Letter::Frame(bytes.into()));
                }
                Output::Send { to, bytes, .. } => self.answer(now, to, bytes, out),
                Output::Sync { mark } => safe = Some(mark),
                _ => {}
            }
        }
        if let Some(mark) = safe {
            self.member.step(now, Input::Persisted { mark }, &mut more);
        }
        if !more.is_empty() {
            self.finish(now, LETTER, more);
        }
    }

    /// What was decided for a client: the own one has what it wanted, others are told.
    fn answer(&mut self, now: Instant, to: Client, bytes: Vec<u8>, out: &mut Out<T>) {
        let Some(key) = self.member.book().machine(to).map(|machine| machine.key) else { return };
        if key != self.key {
            let replica = self.member.replica();
            let (leader, height) = (replica.tip().leader, replica.tip().height);
            let slot = wire::Slot { height, index: 0 };
            let word = Message::Word(wire::Word { slot, leader, bytes });
            let word = self.member.about().encode(word);
            return out.send(self.site.node(&key), Letter::Frame(word.into()));
        }
        if let Some(writer) = &mut self.writer
            && let Some((since, _)) = writer.waiting.take()
        {
            writer.next_at = now + writer.pace;
            out.mark(super::run::DECIDED);
            out.note(Note::Served { node: self.node, took: now.since(since) });
        }
    }
}

fn time_of(bytes: usize) -> Duration {
    Duration::from_micros((bytes / BYTES_PER_US) as u64)
}

/// A wish of a client's, sealed with the key of its machine.
pub(crate) fn wish(
    group: &Digest,
    key: PublicKey,
    client: Client,
    stamp: Instant,
    ask: Option<directory::message::Ask>,
) -> Vec<u8> {
    use group::Notary as _;
    let request = Request { lease: Upward { session: 1, stamp, body: Up::Renew }, ask };
    let said = Said { client, request: &request };
    let seal = Stamp(key).seal(&said.sealed_bytes(group));
    About { group: *group, epoch: 0 }.encode(Message::Sealed(request, seal))
}

impl Site {
    pub(crate) fn seat(&self, node: Node) -> Seat {
        Seat { key: self.keys[node.index()], incarnation: 0 }
    }

    pub(crate) fn node(&self, key: &PublicKey) -> Node {
        let index = self.keys.iter().position(|known| known == key);
        Node(index.expect("only machines of the world are known") as u16)
    }

    /// The group as it begins.
    pub(crate) fn first(keys: &[PublicKey]) -> Tip {
        let seats = keys.iter().map(|key| Seat { key: *key, incarnation: 0 });
        Tip::first(seats.collect()).expect("four are a group")
    }
}
