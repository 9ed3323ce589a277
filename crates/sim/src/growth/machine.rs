//! One machine: the server that the product runs, a log that is as quick as can be, and whoever asks for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use base::{Duration, Instant, Machine as _, PublicKey, Rng};
use directory::{Settings, message::Request};
use group::{Charter, Roll, Seat, Tip};
use lease::{
    Client,
    message::{Up, Upward},
};
use node::{
    Base, Identity, Member, Recovery, Server,
    server::{Input, Others, Output, Token},
};
use overlay::{Decree, Decrees};
use wire::{Answer, Ear, Query};

use super::{
    run::{MARKS, Note, Out, SECONDS, Site},
    tamper::Tamper,
};
use crate::{Node, files::Stamp};

/// A client says again what it wants after this time.
const REPEAT: Duration = Duration::from_millis(500);
/// Whoever wants to join, or to have a decree decided, asks again after this time.
const ASK_AGAIN: Duration = Duration::from_secs(3);

/// What travels.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Letter {
    Frame(Vec<u8>),
    /// Something that is asked, with the asker's token.
    Query(Token, Vec<u8>),
    /// The answer, with that token.
    Answer(Token, Vec<u8>),
    /// There is a connection.
    Met,
}

pub(crate) struct Machine<T> {
    site: Rc<Site>,
    node: Node,
    key: PublicKey,
    /// None as long as it is not of the cell, or is not any more.
    server: Option<Server<Stamp>>,
    is_over: bool,
    disk: Option<Disk>,
    /// Who waits for an answer, by the token that the server has, and since when.
    owed: BTreeMap<Token, (Node, Token, Instant)>,
    token_next: Token,
    /// With whom it has nothing to do any more.
    gone: BTreeSet<PublicKey>,
    /// When it next asks to join, or wants something.
    want_at: Instant,
    /// Since when its client waits.
    waiting: Option<Instant>,
    wants: u64,
    greet_at: Instant,
    /// What it is to have decided, and when it asks next.
    decree: Option<(Decree, Instant)>,
    rng: Rng,
    tamper: T,
}

/// What survives a crash.
struct Disk {
    client: Client,
    roll: Roll,
    machines: BTreeSet<PublicKey>,
    decrees: Vec<Decree>,
    /// A state that was taken from others.
    base: Option<Vec<u8>>,
    /// The mark of the record before the first in the log.
    mark: u64,
    log: Vec<Vec<u8>>,
}

impl<T: Tamper> Machine<T> {
    /// One that wants to join at this moment; the first one has founded the cell.
    pub(crate) fn new(
        site: Rc<Site>,
        node: Node,
        now: Instant,
        join_at: Instant,
        rng: Rng,
        tamper: T,
    ) -> Machine<T> {
        let mut machine = Machine {
            key: site.keys[node.index()],
            site,
            node,
            server: None,
            is_over: false,
            disk: None,
            owed: BTreeMap::new(),
            token_next: 1 << 32,
            gone: BTreeSet::new(),
            want_at: join_at,
            waiting: None,
            wants: 0,
            greet_at: join_at,
            decree: None,
            rng,
            tamper,
        };
        if node == Node(0) {
            machine.disk = Some(Disk::new(Client(1), &machine.site, BTreeSet::new()));
            let mut out = Out::new(crate::Marks::new(MARKS));
            machine.start(now, &mut out);
        }
        machine
    }

    pub(crate) fn server(&self) -> Option<&Server<Stamp>> {
        self.server.as_ref()
    }

    /// Since when somebody waits here: another machine for an answer, this one's client for a word.
    pub(crate) fn owes_since(&self) -> Option<Instant> {
        self.owed.values().map(|(.., since)| *since).min()
    }

    pub(crate) fn waits_since(&self) -> Option<Instant> {
        self.waiting.filter(|_| self.server.is_some())
    }

    /// Whether it knows that a machine was sent away.
    pub(crate) fn is_gone(&self, key: &PublicKey) -> bool {
        self.gone.contains(key)
    }

    /// From now on it wants this decided.
    pub(crate) fn decree(&mut self, now: Instant, decree: Decree, out: &mut Out<T>) {
        self.decree = Some((decree, now));
        self.wake(now, out);
    }

    /// Goes on from its disk.
    fn start(&mut self, now: Instant, out: &mut Out<T>) {
        let Some(disk) = &self.disk else { return };
        let seat = Seat { key: self.key, incarnation: 0 };
        let (authority, charter) = (self.site.authority, self.site.charter());
        let notary = Stamp(self.key);
        let identity = Identity {
            group: charter.group,
            seat,
            authority: Some(authority),
            notary: notary.clone(),
        };
        let first = Tip::pinned(&self.site.first).expect("one is a group");
        let base = match &disk.base {
            Some(state) => Base::Whole(state),
            None => Base::First(&first),
        };
        let (settings, group) = (Settings::default(), self.site.settings.clone());
        let recovery = Recovery::new(settings, group, identity, base, disk.mark, now);
        let mut recovery = recovery.expect("what was kept can be read");
        for record in &disk.log {
            let absent = recovery.replay(record).expect("what was kept can be read");
            assert_eq!(absent, None, "every record is at hand");
        }
        let mut wanted = Vec::new();
        let member: Member<Stamp> = recovery.finish(&mut wanted);
        let ear = Ear::new(disk.client, charter, disk.roll.clone(), notary, REPEAT);
        let decrees = Decrees::new(authority, self.key, disk.decrees.clone());
        self.gone = revoked(&disk.decrees);
        let others = Others {
            ear: ear.expect("one is a group"),
            authority,
            founder: self.site.keys[0],
            decrees,
            machines: disk.machines.clone(),
            expires: u64::MAX,
        };
        let has_news = !member.replica().is_alone() || member.book().client(&self.key).is_none();
        let mut server = Server::new((self.key, disk.client), member, Some(others));
        server.attend(self.site.seating.clone(), now);
        let mut outputs = Vec::new();
        server.step(now, Input::Seconds(SECONDS), &mut outputs);
        server.begin(now, wanted, &mut outputs);
        if has_news {
            let join = Box::new(self.site.join(self.node));
            server.step(now, Input::Own { join, token: None }, &mut outputs);
        }
        (self.server, self.waiting) = (Some(server), None);
        self.owed.clear();
        self.follow(now, outputs, out);
    }

    pub(crate) fn restart(&mut self, now: Instant, out: &mut Out<T>) {
        if !self.is_over && self.server.take().is_some() {
            out.mark("a machine starts again");
            self.start(now, out);
        }
    }

    pub(crate) fn deliver(&mut self, now: Instant, from: Node, letter: Letter, out: &mut Out<T>) {
        let key = self.site.keys[from.index()];
        if self.is_over || self.gone.contains(&key) {
            return;
        }
        match letter {
            Letter::Frame(bytes) => self.step(now, Input::Frame { from: key, bytes }, out),
            Letter::Met => self.step(now, Input::Met(key), out),
            Letter::Query(theirs, bytes) => self.on_query(now, from, theirs, &bytes, out),
            Letter::Answer(token, bytes) => {
                let Ok(answer) = wire::decode::<Answer>(&bytes) else { return };
                self.on_answer(now, token, answer, out);
            }
        }
    }

    fn on_query(
        &mut self,
        now: Instant,
        from: Node,
        theirs: Token,
        bytes: &[u8],
        out: &mut Out<T>,
    ) {
        if self.server.is_none() {
            return;
        }
        self.token_next += 1;
        let token = self.token_next;
        let input = match wire::decode(bytes) {
            Ok(Query::Join(join)) => Input::Join { join, token },
            Ok(Query::Decree(decree)) => Input::Decree { decree, token },
            _ => return,
        };
        self.owed.insert(token, (from, theirs, now));
        self.step(now, input, out);
    }

    fn on_answer(&mut self, now: Instant, token: Token, answer: Answer, out: &mut Out<T>) {
        match (&self.server, answer) {
            (None, Answer::Joined(ticket)) => {
                out.mark("a machine joins");
                let machines = ticket.machines.iter().map(|machine| machine.key).collect();
                self.disk = Some(Disk::new(ticket.client, &self.site, machines));
                self.start(now, out);
            }
            (Some(_), Answer::Decreed) if self.decree.is_some() => {
                out.mark("a machine is sent away");
                self.decree = None;
            }
            (Some(_), answer) => {
                self.step(now, Input::Answered { token, answer: Some(answer) }, out);
            }
            (None, _) => {}
        }
    }

    pub(crate) fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        if self.is_over {
            return;
        }
        if let Some(server) = self.server.as_mut().filter(|_| self.tamper.keeps_time())
            && server.wake_at().is_some_and(|at| at <= now)
        {
            let mut outputs = Vec::new();
            server.tick(now, &mut outputs);
            self.follow(now, outputs, out);
        }
        if self.want_at <= now {
            self.want(now, out);
        }
        if self.greet_at <= now {
            self.greet_at = now + Duration::from_millis(10_000 + self.rng.below(20_000));
            let other = self.any_other();
            out.send(other, Letter::Met);
            self.step(now, Input::Met(self.site.keys[other.index()]), out);
        }
        if let Some((decree, at)) = &mut self.decree
            && *at <= now
        {
            *at = now + ASK_AGAIN;
            let query = Query::Decree(Box::new(decree.clone()));
            let to = self.any_other();
            out.send(to, Letter::Query(0, wire::encode(&query)));
        }
    }

    fn want(&mut self, now: Instant, out: &mut Out<T>) {
        self.want_at = now + ASK_AGAIN;
        if self.server.is_none() {
            // Any machine may be asked; only one with a vote lets it in.
            let to = if self.rng.chance(0.5) { Node(0) } else { self.any_other() };
            let query = Query::Join(Box::new(self.site.join(self.node)));
            return out.send(to, Letter::Query(0, wire::encode(&query)));
        }
        self.wants += 1;
        let stamp = Instant::from_nanos(now.as_nanos() + self.wants);
        let lease = Upward { session: 1, stamp, body: Up::Renew };
        self.waiting.get_or_insert(now);
        self.want_at = now + Duration::from_millis(600);
        self.step(now, Input::Wanted(Request { lease, ask: None }), out);
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        if self.is_over {
            return None;
        }
        let server = self.server.as_ref().filter(|_| self.tamper.keeps_time());
        let server = server.and_then(|server| server.wake_at());
        let decree = self.decree.as_ref().map(|(_, at)| *at);
        [Some(self.want_at), Some(self.greet_at), server, decree].into_iter().flatten().min()
    }

    fn any_other(&mut self) -> Node {
        let count = self.site.keys.len() as u16;
        Node((self.node.0 + 1 + self.rng.below(u64::from(count) - 1) as u16) % count)
    }

    fn step(&mut self, now: Instant, input: Input, out: &mut Out<T>) {
        let Some(server) = &mut self.server else { return };
        let mut outputs = Vec::new();
        server.step(now, input, &mut outputs);
        self.follow(now, outputs, out);
    }

    fn follow(&mut self, now: Instant, outputs: Vec<Output>, out: &mut Out<T>) {
        let mut next = Vec::new();
        let mut safe = None;
        for output in outputs {
            let (Some(server), Some(disk)) = (&mut self.server, &mut self.disk) else { return };
            match output {
                Output::Persist { mark, record } => {
                    disk.log.push(record);
                    assert_eq!(
                        mark,
                        disk.mark + disk.log.len() as u64,
                        "records follow each other"
                    );
                }
                Output::Sync { mark } => safe = Some(mark),
                Output::Send { to, bytes } => out.send(self.site.node(&to), Letter::Frame(bytes)),
                Output::SendAll(bytes) => {
                    let others = (0..self.site.keys.len() as u16).map(Node);
                    for to in others.filter(|to| *to != self.node) {
                        out.send(to, Letter::Frame(bytes.clone()));
                    }
                }
                Output::Hear(_) => {
                    self.waiting = None;
                    self.want_at = now + Duration::from_millis(5_000 + self.rng.below(10_000));
                    if !server.member().replica().is_member() {
                        out.mark("a client without a vote is answered");
                    }
                }
                Output::Ask { token, to, .. } if to == self.key => {
                    next.push(Input::Answered { token, answer: None });
                }
                Output::Ask { token, to, query } => {
                    let to = self.site.node(&to);
                    out.send(to, Letter::Query(token, wire::encode(&query)));
                }
                Output::Reply { token, answer } => {
                    for _ in 0..self.tamper.replies(&answer) {
                        let Some((to, theirs, _)) = self.owed.remove(&token) else {
                            out.note(Note::Wrong("somebody is answered who does not wait"));
                            continue;
                        };
                        out.send(to, Letter::Answer(theirs, wire::encode(&answer)));
                    }
                }
                Output::Book => {
                    let book = server.member().book();
                    if book.client(&self.key).is_some() {
                        let known = book.machines().map(|(_, machine)| machine.key);
                        disk.machines = known.filter(|key| *key != self.key).collect();
                    }
                }
                Output::Roll(roll) => {
                    out.mark("others sit in the group");
                    disk.roll = roll;
                }
                Output::Gone(key) if self.tamper.lets_go() => _ = self.gone.insert(key),
                Output::Keep => disk.decrees = server.decrees().cloned().collect(),
                Output::SentAway | Output::Unfit(_) => {
                    if !self.site.is_sent_away(self.node) {
                        out.note(Note::Wrong("an honest machine ends"));
                    }
                    (self.is_over, self.server) = (true, None);
                    self.owed.clear();
                    return;
                }
                Output::Replaced => {
                    out.mark("a member takes the state of others");
                    disk.base = server.whole_state();
                }
                Output::Misled => {
                    out.mark("a newcomer lets go of what it was shown");
                    disk.mark += disk.log.len() as u64;
                    disk.log.clear();
                    disk.base = server.whole_state();
                }
                Output::Unnoted { .. } => out.mark("a member does not note where a machine is"),
                Output::Gone(_) | Output::Moved(_) | Output::Serve(_) => {}
                Output::Stale | Output::Astray(_) => {
                    out.note(Note::Wrong("a disk is not what it was"));
                }
                Output::Load(_) => unreachable!("every record is at hand"),
                Output::Renewed(_) | Output::Rescued(_) => {
                    unreachable!("nobody has an issuer's key here")
                }
            }
        }
        if let Some(mark) = safe {
            next.push(Input::Member(node::Input::Persisted { mark }));
        }
        for input in next {
            self.step(now, input, out);
        }
    }
}

impl Disk {
    fn new(client: Client, site: &Site, machines: BTreeSet<PublicKey>) -> Disk {
        let (decrees, base, log, roll) = (Vec::new(), None, Vec::new(), site.first.clone());
        Disk { client, roll, machines, decrees, base, mark: 0, log }
    }
}

/// Machines that these send away.
fn revoked(decrees: &[Decree]) -> BTreeSet<PublicKey> {
    let revoked = decrees.iter().filter_map(|decree| match decree {
        Decree::Revoke(revocation) => Some(revocation.subject()),
        _ => None,
    });
    revoked.collect()
}

impl Site {
    fn charter(&self) -> Charter {
        Charter { group: self.group, authority: Some(self.authority) }
    }

    fn node(&self, key: &PublicKey) -> Node {
        let index = self.keys.iter().position(|known| known == key);
        Node(index.expect("only machines of the world are known") as u16)
    }
}
