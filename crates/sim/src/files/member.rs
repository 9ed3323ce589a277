//! A member of the group, with a disk that forgets what was not synced.

use std::collections::BTreeMap;

use base::{Digest, Duration, Instant, Machine, Malformed, Rng};
use directory::{Command, Directory, Key, Record, message::Ask};
use group::{Batch, Seat};
use lease::Client;
use node::{Base, Identity, Input, Member as Product, Order, Output, Recovery, Settings};
use vice::Vice;
use wire::{Frame, Message, Word};

use crate::{Node, Outbox};

use super::{
    actor::{Letter, Note, Party, client_of, node_of},
    circle::{Circle, Stamp},
    disk::Disk,
    register::Register,
    tamper::Tamper,
};

pub(crate) struct Member<T> {
    product: Product<Stamp>,
    settings: Settings,
    circle: Circle,
    seat: Seat,
    disk: Disk,
    /// A state taken from others, and the mark of the log when it was.
    base: Option<Vec<u8>>,
    sync_max: Duration,
    rng: Rng,
    register: Register,
    /// How it lies, if it does.
    vice: Option<Vice>,
    tamper: T,
}

impl<T: Tamper> Member<T> {
    pub(crate) fn new(
        settings: Settings,
        circle: Circle,
        seat: Seat,
        sync_max: Duration,
        vice: Option<Vice>,
        rng: Rng,
        tamper: T,
    ) -> Member<T> {
        let group = circle.settings.clone();
        let first = circle.first.clone();
        let identity = identity(&circle, seat);
        let product = Product::new(settings.clone(), group, identity, first, Instant::START);
        let (disk, register) = (Disk::default(), Register::default());
        Member {
            product,
            settings,
            circle,
            seat,
            disk,
            base: None,
            sync_max,
            rng,
            register,
            vice,
            tamper,
        }
    }

    pub(crate) fn is_honest(&self) -> bool {
        self.vice.is_none()
    }

    pub(crate) fn product(&self) -> &Product<Stamp> {
        &self.product
    }

    pub(crate) fn deliver(
        &mut self,
        now: Instant,
        from: Node,
        letter: Letter,
        out: &mut Outbox<Party<T>>,
    ) {
        let input = match letter {
            Letter::Upward(bytes) => {
                let client = client_of(from);
                let author = u64::from(client.0);
                if self.vice.as_mut().is_some_and(|vice| vice.ignores(author)) {
                    return;
                }
                self.heard(client, bytes)
            }
            Letter::Member(bytes) => {
                let Some(from) = self.circle.seat(from) else { return };
                if let Some(vice) = &mut self.vice
                    && let Ok(Frame::Group(_, Message::Member(message))) = wire::decode(&bytes)
                {
                    if !vice.hears(&message) {
                        return;
                    }
                    self.scheme(now, from, &message, out);
                }
                Input::Told { from, bytes }
            }
            Letter::Downward(_) => return,
        };
        self.step(now, input, out);
    }

    fn heard(&mut self, from: Client, bytes: Vec<u8>) -> Input {
        let bytes = self.tamper.upward(from, bytes);
        let key = (!self.circle.is_of_one()).then(|| Circle::key(from));
        Input::Heard { from, bytes, key }
    }

    pub(crate) fn wake(&mut self, now: Instant, out: &mut Outbox<Party<T>>) {
        while let Some(count) = self.disk.next_synced(now) {
            self.step(now, Input::Persisted { mark: count as u64 }, out);
        }
        if self.product.wake_at().is_some_and(|at| at <= now) {
            let mut wanted = Vec::new();
            self.product.tick(now, &mut wanted);
            self.follow(now, wanted, out);
        }
        while let Some((to, message)) = self.vice.as_mut().and_then(|vice| vice.late(now)) {
            self.lie(to, message, out);
        }
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let late_at = self.vice.as_ref().and_then(Vice::late_at);
        self.disk.sync_at().into_iter().chain(self.product.wake_at()).chain(late_at).min()
    }

    /// It comes back with what was safe, and perhaps a little more.
    pub(crate) fn restart(&mut self, now: Instant, out: &mut Outbox<Party<T>>) {
        out.mark("the group starts again");
        if self.disk.crash(&mut self.rng, |kept| self.tamper.kept(kept)) {
            out.mark("records are lost with the power");
        }
        let mut wanted = Vec::new();
        match self.recover(now, &mut wanted) {
            Ok(product) => self.product = product,
            Err(malformed) => out.note(Note::Unreadable(malformed.to_string())),
        }
        self.follow(now, wanted, out);
    }

    fn recover(&self, now: Instant, out: &mut Vec<Output>) -> Result<Product<Stamp>, Malformed> {
        let base = match &self.base {
            Some(state) => Base::Whole(state),
            None => Base::First(&self.circle.first),
        };
        let group = self.circle.settings.clone();
        let identity = identity(&self.circle, self.seat);
        let mut recovery = Recovery::new(self.settings.clone(), group, identity, base, 0, now)?;
        for record in self.disk.records() {
            let absent = recovery.replay(record)?;
            assert_eq!(absent, None, "every record is at hand");
        }
        Ok(recovery.finish(out))
    }

    /// A digest of everything, and all records.
    pub(crate) fn state(&self) -> (Digest, BTreeMap<Key, Record>) {
        let directory = self.product.directory();
        let records = directory.records().expect("every record is at hand");
        (directory.digest(), records.into_iter().collect())
    }

    /// What somebody else makes of the log as far as it is safe: its last decision, and a digest of
    /// everything. None if it does not begin with the first.
    pub(crate) fn reread(&self) -> Option<Result<(u64, Digest), String>> {
        self.base.is_none().then(|| {
            let mut directory = Directory::new(self.settings.clone(), Instant::START);
            let mut height = 0;
            let mut batches = BTreeMap::new();
            for record in self.disk.synced_records() {
                let records: Vec<group::Record> = base::decode(record, record.len())
                    .map_err(|malformed| malformed.to_string())?;
                for record in records {
                    let (value, batch) = match record {
                        group::Record::Batch(batch) => {
                            batches.insert(batch.digest(), batch);
                            continue;
                        }
                        group::Record::Decided(certificate, batch) => (certificate.value, batch),
                        _ => continue,
                    };
                    let batch =
                        batch.or_else(|| batches.remove(&value)).ok_or("a batch is not there")?;
                    apply(&mut directory, &batch)?;
                    batches.clear();
                    height += 1;
                }
            }
            Ok((height, directory.digest()))
        })
    }

    fn step(&mut self, now: Instant, input: Input, out: &mut Outbox<Party<T>>) {
        let mut wanted = Vec::new();
        self.product.step(now, input, &mut wanted);
        self.follow(now, wanted, out);
    }

    fn follow(&mut self, now: Instant, wanted: Vec<Output>, out: &mut Outbox<Party<T>>) {
        let mut safe_mark = None;
        for output in &wanted {
            if let Output::Persist { record, .. } = output {
                self.file(record);
            }
        }
        self.register.notice(self.product.directory().clients(), out);
        for output in wanted {
            match output {
                Output::Send { to, slot, bytes } => {
                    self.register.heed(to, &bytes, out);
                    let bytes = match &mut self.vice {
                        Some(vice) => vice.speak(bytes),
                        None => Some(bytes),
                    };
                    let bytes = bytes.map(|bytes| self.tamper.downward(to, bytes));
                    for bytes in bytes.into_iter().flatten() {
                        let bytes = match self.circle.is_of_one() {
                            true => bytes,
                            false => {
                                let leader = self.product.replica().tip().leader;
                                let word = Message::Word(Word { slot, leader, bytes });
                                self.product.about().encode(word)
                            }
                        };
                        out.send(node_of(to), Letter::Downward(bytes));
                    }
                }
                Output::Show { to, bytes } => out.send(node_of(to), Letter::Downward(bytes)),
                Output::Tell { to, bytes } => {
                    self.tell(now, to, bytes, out);
                }
                Output::Persist { record, .. } => self.disk.write(self.tamper.written(record)),
                Output::Sync { mark } if !self.tamper.waits_for_disk() => safe_mark = Some(mark),
                Output::Sync { .. } => {
                    self.disk.sync(now + self.sync_max.mul_f64(self.rng.unit()));
                }
                Output::Replaced => {
                    out.mark("a member takes the state of others");
                    self.base = self.product.whole_state();
                }
                Output::Misled => unreachable!("all have been there from the first"),
                Output::Astray(_) if self.vice.is_some() => {}
                Output::Astray(_) => {
                    out.note(Note::Unreadable("a state of its own, they say".to_owned()));
                }
                // A liar is shown what it denies.
                Output::Stale if self.vice.is_some() => out.mark("a liar is found out"),
                Output::Stale => out.note(Note::Unreadable("an old disk, they say".to_owned())),
                Output::Load(_) => unreachable!("every record is at hand"),
                Output::Joined { .. } | Output::Decreed { .. } => unreachable!("nobody joins"),
                Output::Rescued(_) => unreachable!("there is no authority"),
            }
        }
        if let Some(mark) = safe_mark {
            self.step(now, Input::Persisted { mark }, out);
        }
    }

    fn tell(&mut self, now: Instant, to: Seat, bytes: Vec<u8>, out: &mut Outbox<Party<T>>) {
        let Some(node) = self.circle.node(to) else { return };
        let Some(vice) = &mut self.vice else {
            return out.send(node, Letter::Member(bytes));
        };
        let Ok(Frame::Group(_, Message::Member(message))) = wire::decode(&bytes) else { return };
        if let Some(message) = vice.put_off(now, to, *message) {
            self.lie(to, message, out);
        }
    }

    /// A liar says something else instead, perhaps.
    fn lie(&mut self, to: Seat, message: group::Message, out: &mut Outbox<Party<T>>) {
        let about = self.product.about();
        let (Some(vice), Some(node)) = (&mut self.vice, self.circle.node(to)) else { return };
        let stamp = Stamp(self.seat.key);
        for message in vice.outward(node.0, message, self.seat, &stamp) {
            let bytes = vice.maul(about.encode(Message::Member(Box::new(message))));
            out.send(node, Letter::Member(bytes));
        }
    }

    /// A liar says things that nobody made it say.
    fn scheme(
        &mut self,
        now: Instant,
        from: Seat,
        heard: &group::Message,
        out: &mut Outbox<Party<T>>,
    ) {
        let about = self.product.about();
        let Some(vice) = &mut self.vice else { return };
        let replica = self.product.replica();
        let (tip, time, stamp) = (replica.tip(), replica.time(now), Stamp(self.seat.key));
        let false_state = || b"nobody has this state".to_vec();
        let heard = Some((from, heard));
        for (to, message) in vice.scheme(heard, tip, &false_state, time, self.seat, &stamp) {
            if let Some(node) = self.circle.node(to).filter(|_| to != self.seat) {
                let bytes = vice.maul(about.encode(Message::Member(Box::new(message))));
                out.send(node, Letter::Member(bytes));
            }
        }
    }

    /// Remembers what is in a batch that may be applied.
    fn file(&mut self, record: &[u8]) {
        let records: Vec<group::Record> =
            base::decode(record, record.len()).expect("a member's own record");
        for record in records {
            if let group::Record::Batch(batch) | group::Record::Decided(_, Some(batch)) = record {
                self.file_batch(&batch);
            }
        }
    }

    fn file_batch(&mut self, batch: &Batch) {
        for command in &batch.commands {
            if let Ok(Order::Do { command: Command::Heard { client, request }, .. }) =
                Order::of(command)
                && let Some(Ask::Batch { number, operations }) = request.ask
            {
                self.register.file(client, request.lease.session, number, operations);
            }
        }
    }
}

fn identity(circle: &Circle, seat: Seat) -> Identity<Stamp> {
    Identity { group: circle.group, seat, authority: None, notary: Stamp(seat.key) }
}

fn apply(directory: &mut Directory, batch: &Batch) -> Result<(), String> {
    for command in &batch.commands {
        let order = Order::of(command).map_err(|malformed| malformed.to_string())?;
        let Order::Do { command, .. } = order else { continue };
        let applied = directory.apply(batch.time, &command, &mut Vec::new());
        applied.map_err(|absent| format!("{absent:?} is not at hand"))?;
    }
    Ok(())
}
