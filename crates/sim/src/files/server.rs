//! The node of the directory, with a disk that forgets what was not synced.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base::{Digest, Duration, Instant, Machine, Rng};
use directory::{
    Command, Directory, Key, Operation, Record,
    directory::Standing,
    message::{Answer, Ask},
};
use lease::Client;
use node::{Decision, Input, Node, Output, Settings};
use wire::Message;

use crate::Outbox;

use super::{
    actor::{Letter, Note, Party, node_of},
    tamper::Tamper,
};

/// A log on a disk. What was appended is there at once for whoever asks, and safe later.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    records: Vec<Vec<u8>>,
    /// Safe are so many of them.
    synced: usize,
    /// When which number of them will be.
    syncs: VecDeque<(Instant, usize)>,
}

impl Disk {
    pub(crate) fn write(&mut self, record: Vec<u8>) {
        self.records.push(record);
    }

    /// What was written is safe by then. Syncs end in the order in which they began.
    pub(crate) fn sync(&mut self, at: Instant) {
        let last = self.syncs.back().map_or(at, |(at, _)| *at);
        self.syncs.push_back((last.max(at), self.records.len()));
    }

    /// How much is safe now, if that is more than before.
    pub(crate) fn next_synced(&mut self, now: Instant) -> Option<usize> {
        let (_, count) = self.syncs.pop_front_if(|(at, _)| *at <= now)?;
        self.synced = count;
        Some(count)
    }

    pub(crate) fn sync_at(&self) -> Option<Instant> {
        self.syncs.front().map(|(at, _)| *at)
    }

    /// The power goes: what was safe is kept, and perhaps a little more. Whether something is lost that way.
    pub(crate) fn crash(&mut self, rng: &mut Rng, kept: impl FnOnce(usize) -> usize) -> bool {
        let unsafe_yet = self.records.len() - self.synced;
        let kept = kept(self.synced + rng.index(unsafe_yet + 1));
        self.records.truncate(kept);
        self.synced = self.records.len();
        self.syncs.clear();
        unsafe_yet > 0
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().map(Vec::as_slice)
    }
}

/// What the checkers want to know of what a group applies.
#[derive(Debug, Default)]
pub(crate) struct Register {
    /// The batches that were given a place, by client, session and number.
    batches: BTreeMap<(Client, u64, u64), Vec<Operation>>,
    /// The session of each client, and how many of its batches were applied.
    sessions: BTreeMap<Client, (u64, u64)>,
    /// The sessions that have ended.
    ended: BTreeSet<(Client, u64)>,
}

impl Register {
    /// Remembers a batch that may be applied.
    pub(crate) fn file(
        &mut self,
        client: Client,
        session: u64,
        number: u64,
        operations: Vec<Operation>,
    ) {
        self.batches.insert((client, session, number), operations);
    }

    /// Tells the checkers of refusals, and of what was applied, also if its session has ended since.
    pub(crate) fn heed<T: Tamper>(&self, client: Client, bytes: &[u8], out: &mut Outbox<Party<T>>) {
        if let Ok(Message::Response(response)) = wire::open(bytes)
            && let Some(Answer::Applied { number, refused }) = response.answer
        {
            let batch = self.batches.get(&(client, response.lease.session, number));
            match refused {
                Some((index, why)) => {
                    let what = batch.and_then(|batch| batch.get(index as usize)).cloned();
                    out.note(Note::Refused { client, what, why });
                }
                None => {
                    let tags = batch.into_iter().flatten().map(|operation| operation.time);
                    out.note(Note::Applied { tags: tags.collect() });
                }
            }
        }
    }

    /// Tells the checkers which batches have been applied and which sessions have ended.
    pub(crate) fn notice<T: Tamper>(
        &mut self,
        clients: impl Iterator<Item = (Client, Standing)>,
        out: &mut Outbox<Party<T>>,
    ) {
        for (client, standing) in clients {
            let Standing { session, batch, is_live } = standing;
            let known = self.sessions.insert(client, (session, batch));
            if let Some((before, _)) = known.filter(|(before, _)| *before != session)
                && self.ended.insert((client, before))
            {
                out.note(Note::Ended { client, session: before });
            }
            let first = known.filter(|(before, _)| *before == session).map_or(0, |(_, n)| n) + 1;
            for number in first..=batch {
                let batch = self.batches.get(&(client, session, number));
                let tags = batch.into_iter().flatten().map(|operation| operation.time).collect();
                out.note(Note::Applied { tags });
            }
            if !is_live && self.ended.insert((client, session)) {
                out.note(Note::Ended { client, session });
            }
        }
    }
}

pub(crate) struct Server<T> {
    node: Node,
    settings: Settings,
    disk: Disk,
    sync_max: Duration,
    rng: Rng,
    register: Register,
    tamper: T,
}

impl<T: Tamper> Server<T> {
    pub(crate) fn new(settings: Settings, sync_max: Duration, rng: Rng, tamper: T) -> Server<T> {
        let node = Node::new(settings.clone(), Instant::START);
        let (disk, register) = Default::default();
        Server { node, settings, disk, sync_max, rng, register, tamper }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn deliver(
        &mut self,
        now: Instant,
        from: Client,
        bytes: Vec<u8>,
        out: &mut Outbox<Party<T>>,
    ) {
        let bytes = self.tamper.upward(from, bytes);
        self.step(now, Input::Heard { from, bytes }, out);
    }

    pub(crate) fn wake(&mut self, now: Instant, out: &mut Outbox<Party<T>>) {
        while let Some(count) = self.disk.next_synced(now) {
            self.step(now, Input::Persisted { height: count as u64 }, out);
        }
        if self.node.wake_at().is_some_and(|at| at <= now) {
            let mut wanted = Vec::new();
            self.node.tick(now, &mut wanted);
            self.follow(now, wanted, out);
        }
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.disk.sync_at().into_iter().chain(self.node.wake_at()).min()
    }

    /// It comes back with what was safe, and perhaps a little more.
    pub(crate) fn restart(&mut self, now: Instant, out: &mut Outbox<Party<T>>) {
        out.mark("the group starts again");
        if self.disk.crash(&mut self.rng, |kept| self.tamper.kept(kept)) {
            out.mark("records are lost with the power");
        }
        let log = self.disk.records();
        match Node::recover(self.settings.clone(), now, log) {
            Ok(node) => self.node = node,
            Err(malformed) => out.note(Note::Unreadable(malformed.to_string())),
        }
        self.register.notice(self.node.directory().clients(), out);
    }

    /// What somebody else makes of the log as far as it is safe: a digest of everything, and all records.
    pub(crate) fn reread(&self) -> Result<(Digest, BTreeMap<Key, Record>), String> {
        let settings = Settings { is_stored: true, ..self.settings.clone() };
        let mut directory = Directory::new(settings, Instant::START);
        let mut out = Vec::new();
        for record in &self.disk.records[..self.disk.synced] {
            let decision: Decision =
                base::decode(record, record.len()).map_err(|malformed| malformed.to_string())?;
            let applied = directory.apply(decision.time, &decision.command, &mut out);
            applied.map_err(|absent| format!("{absent:?} is not at hand"))?;
            out.clear();
        }
        let all = directory.changes().into_iter();
        let records = all.filter_map(|(key, record)| Some((key, record?))).collect();
        Ok((directory.digest(), records))
    }

    fn step(&mut self, now: Instant, input: Input, out: &mut Outbox<Party<T>>) {
        let mut wanted = Vec::new();
        self.node.step(now, input, &mut wanted);
        self.follow(now, wanted, out);
    }

    fn follow(&mut self, now: Instant, wanted: Vec<Output>, out: &mut Outbox<Party<T>>) {
        self.register.notice(self.node.directory().clients(), out);
        let mut height_safe = None;
        for output in wanted {
            match output {
                Output::Send { to, bytes } => {
                    self.register.heed(to, &bytes, out);
                    for bytes in self.tamper.downward(to, bytes) {
                        out.send(node_of(to), Letter::Plain(bytes));
                    }
                }
                Output::Load(_) => unreachable!("every record is at hand"),
                Output::Persist { height, record } => {
                    self.file(&record);
                    self.disk.write(self.tamper.written(record));
                    if !self.tamper.waits_for_disk() {
                        height_safe = Some(height);
                        continue;
                    }
                    self.disk.sync(now + self.sync_max.mul_f64(self.rng.unit()));
                }
            }
        }
        if let Some(height) = height_safe {
            self.step(now, Input::Persisted { height }, out);
        }
    }

    /// Remembers what is in a batch that may be applied.
    fn file(&mut self, record: &[u8]) {
        let Ok(decision) = base::decode::<Decision>(record, record.len()) else { return };
        if let Command::Heard { client, request } = decision.command
            && let Some(Ask::Batch { number, operations }) = request.ask
        {
            self.register.file(client, request.lease.session, number, operations);
        }
    }
}
