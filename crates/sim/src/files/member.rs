//! A member of the group, with a disk that forgets what was not synced.

use std::collections::BTreeMap;

use base::{Digest, Duration, Instant, Machine, PublicKey, Rng};
use directory::{Command, Key, Record, message::Ask};
use group::{Batch, Seal, Seat};
use lease::Client;
use node::{
    Settings,
    member::{Base, Identity, Input, Member as Product, Order, Output},
};

use crate::{Node, Outbox};

use super::{
    actor::{Letter, Note, Party, client_of, node_of},
    circle::{Circle, Stamp},
    server::{Disk, Register},
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
    tamper: T,
}

impl<T: Tamper> Member<T> {
    pub(crate) fn new(
        settings: Settings,
        circle: Circle,
        seat: Seat,
        sync_max: Duration,
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
            tamper,
        }
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
            Letter::Sealed(bytes, by) => self.heard(client_of(from), bytes, by),
            Letter::Member(bytes) => {
                let Some(from) = self.circle.seat(from) else { return };
                Input::Told { from, bytes }
            }
            Letter::Plain(_) | Letter::Said { .. } => return,
        };
        self.step(now, input, out);
    }

    fn heard(&mut self, from: Client, bytes: Vec<u8>, by: Option<(PublicKey, Seal)>) -> Input {
        let bytes = self.tamper.upward(from, bytes);
        Input::Heard { from, bytes, by }
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
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.disk.sync_at().into_iter().chain(self.product.wake_at()).min()
    }

    /// It comes back with what was safe, and perhaps a little more.
    pub(crate) fn restart(&mut self, now: Instant, out: &mut Outbox<Party<T>>) {
        out.mark("the group starts again");
        if self.disk.crash(&mut self.rng, |kept| self.tamper.kept(kept)) {
            out.mark("records are lost with the power");
        }
        let mut wanted = Vec::new();
        let base = match &self.base {
            Some(state) => Base::Whole(state),
            None => Base::First(self.circle.first.clone()),
        };
        let group = self.circle.settings.clone();
        let identity = identity(&self.circle, self.seat);
        let recovered = Product::recover(
            self.settings.clone(),
            group,
            identity,
            base,
            self.disk.records(),
            0,
            now,
            &mut wanted,
        );
        match recovered {
            Ok(product) => self.product = product,
            Err(malformed) => out.note(Note::Unreadable(malformed.to_string())),
        }
        self.follow(now, wanted, out);
    }

    /// A digest of everything, and all records.
    pub(crate) fn state(&self) -> (Digest, BTreeMap<Key, Record>) {
        let directory = self.product.directory();
        let records = directory.records().expect("every record is at hand");
        (directory.digest(), records.into_iter().collect())
    }

    fn step(&mut self, now: Instant, input: Input, out: &mut Outbox<Party<T>>) {
        let mut wanted = Vec::new();
        self.product.step(now, input, &mut wanted);
        self.follow(now, wanted, out);
    }

    fn follow(&mut self, now: Instant, wanted: Vec<Output>, out: &mut Outbox<Party<T>>) {
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
                    let leader = self.product.replica().tip().leader;
                    let slot = (slot.height, slot.index);
                    for bytes in self.tamper.downward(to, bytes) {
                        out.send(node_of(to), Letter::Said { slot, leader, bytes });
                    }
                }
                Output::Tell { to, bytes } => {
                    if let Some(node) = self.circle.node(to) {
                        out.send(node, Letter::Member(bytes));
                    }
                }
                Output::Persist { record, .. } => self.disk.write(self.tamper.written(record)),
                Output::Sync { .. } => {
                    self.disk.sync(now + self.sync_max.mul_f64(self.rng.unit()));
                }
                Output::Replaced => {
                    out.mark("a member takes the state of others");
                    self.base = self.product.whole_state();
                }
                Output::Stale => out.note(Note::Unreadable("an old disk, they say".to_owned())),
                Output::Load(_) => unreachable!("every record is at hand"),
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
            if let Ok(Order { command: Command::Heard { client, request }, .. }) =
                Order::of(command)
                && let Some(Ask::Batch { number, operations }) = request.ask
            {
                self.register.file(client, request.lease.session, number, operations);
            }
        }
    }
}

fn identity(circle: &Circle, seat: Seat) -> Identity<Stamp> {
    Identity { group: circle.group, seat, notary: Stamp(seat.key) }
}
