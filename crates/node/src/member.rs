//! A machine that is a member of a directory's group: `group` gives commands their order and their time,
//! `directory` applies them, and neither knows of the other.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use base::{Digest, Instant, Machine as _, Malformed, PublicKey};
use directory::{Absent, Command, Directory, Key, Record};
use group::{Charter, Decision, Notary, Replica, Rescue, Sealed, Seat, Tip};
use lease::Client;
use overlay::{Decree, Refused};
use wire::{Message, Slot};

use crate::{
    Loaded, Settings,
    attendance::{Attendance, Look, Seating},
    book::{Book, Join},
    graph::{self, Limits},
    order::{self, Order},
};

/// What happens to a member.
#[derive(Clone, Debug)]
pub enum Input {
    /// A machine said something, as a client.
    Heard {
        /// Which: whoever carries the bytes has proved it.
        from: Client,
        /// What, as it came.
        bytes: Vec<u8>,
        /// Its key, if it came from another machine.
        key: Option<PublicKey>,
    },
    /// Another member said something.
    Told {
        /// Which: whoever carries the bytes has proved it.
        from: Seat,
        /// What, as it came.
        bytes: Vec<u8>,
    },
    /// A machine may be a client from now on.
    Admit {
        /// Which.
        client: Client,
        /// For whom it may act. If there are too many of them, nothing comes of it.
        users: directory::Users,
    },
    /// A machine wants to be one of the cell, or says where it is now.
    Join(Box<Join>),
    /// The authority says something, as somebody says.
    Decree(Box<Decree>),
    /// All records of the log up to this mark are safe on disk.
    Persisted {
        /// The mark.
        mark: u64,
    },
    /// What was absent.
    Loaded(Loaded),
    /// These should be the members of the group.
    Wish(Vec<Seat>),
    /// The authority lets the group go on from this member.
    Rescue(Sealed<Rescue>),
    /// Somebody, be it who it may, shows how the members of the group have changed.
    Changes(Vec<Decision>),
}

/// What a member wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Tell a client.
    Send {
        /// Which.
        to: Client,
        /// Where in the order this was said.
        slot: Slot,
        /// What.
        bytes: Vec<u8>,
    },
    /// Whether a machine is one of the cell now, after it wanted to be.
    Joined {
        /// The machine's key.
        machine: PublicKey,
        /// Which client it is, or why it may not be one.
        outcome: Result<Client, Refused>,
    },
    /// What the authority has said of somebody holds now, or does not.
    Decreed {
        /// Their key.
        subject: PublicKey,
        /// Why it does not, if so.
        outcome: Result<(), Refused>,
    },
    /// The authority has let the group go on from this member, which is safe now.
    Rescued(Rescue),
    /// Show a client something that it need not believe.
    Show {
        /// Which.
        to: Client,
        /// What.
        bytes: Vec<u8>,
    },
    /// Tell another member.
    Tell {
        /// Which.
        to: Seat,
        /// What.
        bytes: Vec<u8>,
    },
    /// Append a record to the log.
    Persist {
        /// Its number: one more than that of the record before.
        mark: u64,
        /// The record.
        record: Vec<u8>,
    },
    /// Something waits until the log is safe up to this mark.
    Sync {
        /// The mark.
        mark: u64,
    },
    /// Look these up in the store; nothing is applied until they are there.
    Load(Absent),
    /// Everything that the store has is void. The state comes from other members now.
    Replaced,
    /// The disk is not the newest that this member has had; it has to sit down on a new seat.
    Stale,
}

/// The state of a member between two decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log up to this mark is not needed any more.
    pub mark: u64,
    /// The place of the last decision in it.
    pub height: u64,
    /// Everything but the records.
    pub state: Vec<u8>,
    /// The records that have changed since the checkpoint before.
    pub changes: Vec<(Key, Option<Record>)>,
}

/// Who a member is in its group.
#[derive(Clone, Debug)]
pub struct Identity<N> {
    /// The group.
    pub group: Digest,
    /// The seat.
    pub seat: Seat,
    /// Who says which machines may join the cell, if any may.
    pub authority: Option<PublicKey>,
    /// Makes its seals.
    pub notary: N,
}

impl<N> Identity<N> {
    /// What the group is known by.
    pub(crate) fn charter(&self) -> Charter {
        Charter { group: self.group, authority: self.authority }
    }
}

/// What is to be done next, in order.
enum Due {
    Decision(Arc<Decision>),
    State { height: u64 },
}

/// Tells a hello that only wants to be answered from one that asks for the time.
const CALL: u64 = u64::MAX;

/// Applies commands in the order that its group gives them.
pub struct Member<N> {
    settings: Settings,
    limits: Limits,
    identity: Identity<N>,
    pub(crate) directory: Directory,
    replica: Replica<N>,
    /// The machines of the cell.
    book: Book,
    /// Who was heard, if this member is to have a say in who sits here.
    attendance: Option<Attendance>,
    /// Who is about to be admitted. At most `due_max`.
    admitting: BTreeSet<Client>,
    /// What the decisions that were applied leave behind.
    applied: Tip,
    /// Decided and not applied. At most `due_max`, and what follows from one message.
    due: VecDeque<Due>,
    /// So many commands of the first are applied, and have had so much to say.
    done: (usize, u32),
    /// What is left of the one after these, if it is only half applied: records were absent.
    begun: VecDeque<Command>,
    /// What follows from decisions up to this one has been said already.
    said: u64,
    /// How many messages made no sense.
    malformed: u64,
    /// How many came from machines that nobody has admitted.
    strange: u64,
}

/// What a checkpoint has besides the directory.
pub(crate) type Rest = (Tip, Book, Vec<u8>);
/// The same with all records.
pub(crate) type Whole = (Rest, Vec<(Key, Record)>);

impl<N: Notary + Clone> Member<N> {
    /// A member with an empty log, in a group that begins with this.
    pub fn new(
        settings: Settings,
        group_settings: group::Settings,
        identity: Identity<N>,
        tip: Tip,
        now: Instant,
    ) -> Member<N> {
        let (charter, Identity { seat, notary, .. }) = (identity.charter(), identity.clone());
        let (group_settings, limits) = graph::limited(group_settings, Limits::default());
        let replica = Replica::new(group_settings, charter, seat, notary, tip.clone(), now);
        let directory = Directory::new(settings.clone(), Instant::START);
        Member::with((settings, limits), identity, directory, replica, Book::default(), tip)
    }

    pub(crate) fn with(
        (settings, limits): (Settings, Limits),
        identity: Identity<N>,
        directory: Directory,
        replica: Replica<N>,
        book: Book,
        applied: Tip,
    ) -> Member<N> {
        // Else there would be messages that are dropped each time that they are said.
        assert!(order::BYTES_MAX <= limits.held_bytes_max, "a command may wait for the log");
        let (due, admitting) = Default::default();
        let (said, malformed, strange) = (0, 0, 0);
        let (done, begun) = ((0, 0), VecDeque::new());
        Member {
            settings,
            limits,
            identity,
            directory,
            replica,
            book,
            attendance: None,
            admitting,
            applied,
            due,
            done,
            begun,
            said,
            malformed,
            strange,
        }
    }

    /// From now on it looks who is there, and wishes for others in place of those who stay away.
    pub fn attend(&mut self, seating: Seating, now: Instant) {
        self.attendance = Some(Attendance::new(seating, self.limits.heard_max, now));
    }

    /// Before it goes through its log: what follows from that has been said.
    pub(crate) fn keep_quiet(&mut self) {
        self.said = u64::MAX;
    }

    pub(crate) fn replay(
        &mut self,
        now: Instant,
        record: &[u8],
        out: &mut Vec<Output>,
    ) -> Result<(), Malformed> {
        let mut outputs = Vec::new();
        self.replica.replay(record, now, &mut outputs)?;
        self.follow(outputs, out);
        self.go_on(now, out);
        Ok(())
    }

    pub(crate) fn end_replay(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.said = self.replica.tip().height;
        let mut outputs = Vec::new();
        self.replica.end_replay(now, &mut outputs);
        self.follow(outputs, out);
        self.go_on(now, out);
    }

    /// Takes what was absent, and goes on.
    pub(crate) fn supply(&mut self, now: Instant, loaded: Loaded, out: &mut Vec<Output>) {
        if !self.due.is_empty() {
            loaded.hand_to(&mut self.directory);
            self.go_on(now, out);
        }
    }

    /// What to store so that the log up to here is not needed any more. None while a decision waits to be
    /// applied.
    pub fn checkpoint(&mut self) -> Option<Checkpoint> {
        // Else the log would be cut off behind decisions that wait to be safe.
        if !self.is_abreast() {
            return None;
        }
        let rest = self.directory.checkpoint()?;
        let state = base::encode(&(&self.applied, &self.book, rest));
        let (mark, height) = (self.replica.mark_behind(self.applied.height), self.applied.height);
        Some(Checkpoint { mark, height, state, changes: self.directory.changes() })
    }

    /// Lets go of every record that is stored.
    pub fn release_all(&mut self) {
        self.directory.release_all();
    }

    /// How much it, and whoever runs it, keep.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What it manages.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Its part in the group.
    pub fn replica(&self) -> &Replica<N> {
        &self.replica
    }

    /// The machines of the cell.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// The place of the last decision that was applied.
    pub fn height(&self) -> u64 {
        self.applied.height
    }

    /// How many messages made no sense.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// How many messages came from machines that nobody has admitted.
    pub fn strange(&self) -> u64 {
        self.strange
    }

    fn on_heard(
        &mut self,
        now: Instant,
        from: Client,
        bytes: &[u8],
        key: Option<PublicKey>,
        out: &mut Vec<Output>,
    ) {
        if key.is_some_and(|key| self.book.is_revoked(&key)) {
            self.strange += 1;
            return;
        }
        self.note(now, key.as_ref());
        // Nothing would come of it, so it must not cost a place in the log.
        if !(self.directory.hears(from) || self.admitting.contains(&from)) {
            self.strange += 1;
            return;
        }
        let (request, by) = match wire::open(bytes) {
            Ok(Message::Request(request)) => (request, None),
            Ok(Message::Sealed(request, seal)) => (request, key.map(|key| (key, seal))),
            Ok(Message::Whose(epoch)) => {
                let changes = self.replica.changes_since(epoch);
                let bytes = wire::seal(&Message::Changes(changes));
                return out.push(Output::Show { to: from, bytes });
            }
            Ok(_) | Err(_) => {
                self.malformed += 1;
                return;
            }
        };
        let order = Order::Do { command: Command::Heard { client: from, request }, by };
        if self.replica.is_alone() && key.is_none() || self.is_authentic(&order) {
            self.order(now, order, out);
        } else {
            self.strange += 1;
        }
    }

    fn on_told(&mut self, now: Instant, from: Seat, bytes: &[u8], out: &mut Vec<Output>) {
        // A member that was sent away keeps its seat until another takes it, and is away for the others.
        if self.book.is_revoked(&from.key) {
            self.strange += 1;
            return;
        }
        self.note(now, Some(&from.key));
        if !self.has_room(0) {
            // Whoever can't keep up asks for what it has missed when it can.
            return;
        }
        let Ok(Message::Member(message)) = wire::open(bytes) else {
            self.malformed += 1;
            return;
        };
        // Others have no say in what is decided, so nobody has to look at what they want.
        let commands = message.commands();
        let is_fit =
            commands.is_empty() || self.replica.members().contains(&from) && self.are_fit(commands);
        let input = group::Input::Heard { from, message: *message, is_fit };
        self.group(now, input, out);
    }

    /// A machine is there: it has said something.
    fn note(&mut self, now: Instant, key: Option<&PublicKey>) {
        let is_member = self.replica.is_member();
        if let (Some(attendance), Some(key)) = (self.attendance.as_mut().filter(|_| is_member), key)
        {
            attendance.on_heard(now, key);
        }
    }

    /// Looks who is there, calls those who are silent, and wishes for others if need be.
    fn look_round(&mut self, now: Instant, out: &mut Vec<Output>) {
        let (me, members) = (self.identity.seat.key, self.replica.members().clone());
        let Some(attendance) = &mut self.attendance else { return };
        let Look { calls, wish } = attendance.look(now, &me, &members, &self.book);
        let hello = group::Message::Hello { nonce: CALL };
        let bytes = wire::seal(&Message::Member(Box::new(hello)));
        out.extend(calls.into_iter().map(|to| Output::Tell { to, bytes: bytes.clone() }));
        if let Some(seats) = wish {
            self.group(now, group::Input::Wish(seats), out);
        }
    }

    /// When to look round next.
    fn look_at(&self) -> Option<Instant> {
        let attendance = self.attendance.as_ref().filter(|_| self.replica.is_member());
        attendance.and_then(Attendance::look_at)
    }

    /// Whether all of these may be decided.
    fn are_fit(&self, commands: &[Vec<u8>]) -> bool {
        commands
            .iter()
            .all(|command| Order::of(command).is_ok_and(|order| self.is_authentic(&order)))
    }

    fn is_authentic(&self, order: &Order) -> bool {
        let Identity { group, authority, notary, .. } = &self.identity;
        order.is_authentic(group, authority.as_ref(), notary)
    }

    fn on_join(&mut self, now: Instant, join: Box<Join>, out: &mut Vec<Output>) {
        let machine = *join.certificate.machine();
        let Some(authority) = &self.identity.authority else { return };
        let known = self.book.client(&machine);
        let known = known.filter(|client| !self.book.is_news(*client, &join, authority));
        match (join.check(authority).map(drop), known) {
            (Err(refused), _) => out.push(Output::Joined { machine, outcome: Err(refused) }),
            (Ok(()), Some(client)) if !self.book.is_revoked(&machine) => {
                out.push(Output::Joined { machine, outcome: Ok(client) });
            }
            (Ok(()), _) => self.order(now, Order::Join(join), out),
        }
    }

    fn on_decree(&mut self, now: Instant, decree: Box<Decree>, out: &mut Vec<Output>) {
        let Some(authority) = &self.identity.authority else { return };
        // One that the authority has not made is for nobody at all.
        let Ok(subject) = decree.verify(authority) else {
            self.strange += 1;
            return;
        };
        match self.book.judge(&decree, authority) {
            Ok(true) => self.order(now, Order::Decree(decree), out),
            known => out.push(Output::Decreed { subject, outcome: known.map(drop) }),
        }
    }

    fn order(&mut self, now: Instant, order: Order, out: &mut Vec<Output>) {
        let bytes = base::encode(&order);
        if bytes.len() > order::BYTES_MAX {
            self.malformed += 1;
            return;
        }
        if self.has_room(bytes.len()) {
            self.group(now, group::Input::Command(bytes), out);
        }
    }

    /// Whether something new can be taken, with so many bytes; if not, whoever said it will say it again.
    fn has_room(&self, bytes: usize) -> bool {
        let (held, held_bytes) = self.replica.held();
        self.due.len() + held < self.limits.due_max
            && held_bytes + bytes <= self.limits.held_bytes_max
    }

    fn group(&mut self, now: Instant, input: group::Input, out: &mut Vec<Output>) {
        let mut outputs = Vec::new();
        self.replica.step(now, input, &mut outputs);
        self.follow(outputs, out);
        self.go_on(now, out);
    }

    fn follow(&mut self, outputs: Vec<group::Output>, out: &mut Vec<Output>) {
        for output in outputs {
            match output {
                group::Output::Persist { mark, record } => {
                    out.push(Output::Persist { mark, record });
                }
                group::Output::Sync { mark } => out.push(Output::Sync { mark }),
                group::Output::Send { to, message } => {
                    let bytes = wire::seal(&Message::Member(Box::new(message)));
                    out.push(Output::Tell { to, bytes });
                }
                group::Output::Decided(decision) => self.due.push_back(Due::Decision(decision)),
                group::Output::WantState { height } => self.due.push_back(Due::State { height }),
                group::Output::Install { tip, state } => self.install(tip, &state, out),
                group::Output::Stale => out.push(Output::Stale),
            }
        }
    }

    /// Applies what is decided, as far as its records are at hand.
    fn go_on(&mut self, now: Instant, out: &mut Vec<Output>) {
        while let Some(due) = self.due.front() {
            match due {
                Due::Decision(decision) => {
                    let decision = Arc::clone(decision);
                    if let Err(absent) = self.apply(&decision, out) {
                        out.push(Output::Load(absent));
                        return;
                    }
                    self.due.pop_front();
                }
                Due::State { height } => {
                    let height = *height;
                    let Some(state) = self.whole_state() else {
                        out.push(Output::Load(Absent::everything()));
                        return;
                    };
                    self.due.pop_front();
                    let mut outputs = Vec::new();
                    let input = group::Input::State { height, state: state.into() };
                    self.replica.step(now, input, &mut outputs);
                    self.follow(outputs, out);
                }
            }
        }
    }

    fn apply(&mut self, decision: &Decision, out: &mut Vec<Output>) -> Result<(), Absent> {
        let batch = &decision.batch;
        let rescue = decision.rescue().map(|rescue| &rescue.what);
        let (done, mut index) = self.done;
        let is_news = decision.height > self.said;
        // Who goes on alone knows nothing of what the others have promised last.
        for number in done..batch.commands.len() + usize::from(rescue.is_some()) {
            self.done = (number, index);
            if self.begun.is_empty() {
                match batch.commands.get(number) {
                    Some(bytes) => self.begun = self.commands_of(bytes, is_news, out),
                    None => self.begun.push_back(Command::Void),
                }
            }
            while let Some(command) = self.begun.front() {
                let mut responses = Vec::new();
                self.directory.apply(batch.time, command, &mut responses)?;
                if let Some(Command::Admit { client, .. }) = self.begun.pop_front() {
                    self.admitting.remove(&client);
                }
                for (to, response) in responses {
                    let height = decision.height;
                    let epoch = rescue.map_or(self.applied.epoch, |_| height + 1);
                    if is_news {
                        let bytes = wire::seal(&Message::Response(response));
                        out.push(Output::Send { to, slot: Slot { epoch, height, index }, bytes });
                    }
                    index += 1;
                }
                self.done = (number, index);
            }
        }
        self.done = (0, 0);
        self.applied = self.applied.after(batch);
        if let Some(rescue) = rescue {
            self.book.note_rescue(rescue);
            if let Some(attendance) = &mut self.attendance {
                attendance.on_change();
            }
            if is_news {
                out.push(Output::Rescued(rescue.clone()));
            }
        }
        Ok(())
    }

    /// The commands that an order is, if its author may want it.
    fn commands_of(
        &mut self,
        bytes: &[u8],
        is_news: bool,
        out: &mut Vec<Output>,
    ) -> VecDeque<Command> {
        self.try_commands_of(bytes, is_news, out).unwrap_or_default()
    }

    fn try_commands_of(
        &mut self,
        bytes: &[u8],
        is_news: bool,
        out: &mut Vec<Output>,
    ) -> Option<VecDeque<Command>> {
        match Order::of(bytes).ok()? {
            Order::Do { command, by } => {
                if let (Command::Heard { client, .. }, Some((key, _))) = (&command, &by) {
                    if self.identity.authority.is_none() && self.directory.hears(*client) {
                        self.book.come(*client, key);
                    }
                    if !self.book.is_its(*client, key) {
                        return None;
                    }
                }
                Some([command].into())
            }
            Order::Join(join) => {
                let admitted = self.book.admit(&join, &self.identity.authority?);
                if let Some(attendance) = &mut self.attendance {
                    attendance.on_change();
                }
                if is_news {
                    let outcome = admitted.clone().map(|(client, _)| client);
                    out.push(Output::Joined { machine: *join.certificate.machine(), outcome });
                }
                let (client, users) = admitted.ok()?;
                Some([Command::Admit { client, users }].into())
            }
            Order::Decree(decree) => {
                let authority = self.identity.authority?;
                let subject = decree.verify(&authority).ok()?;
                let obeyed = self.book.obey(&decree, &authority);
                if let Some(attendance) = &mut self.attendance {
                    attendance.on_change();
                }
                if is_news {
                    let outcome = obeyed.as_ref().map(drop).map_err(Clone::clone);
                    out.push(Output::Decreed { subject, outcome });
                }
                // Nobody hears a machine that was sent away, so its leases end with its session.
                let admit = |(client, users)| Command::Admit { client, users };
                Some(obeyed.ok()?.into_iter().map(admit).collect())
            }
        }
    }

    /// Everything, records and all, as other members may take it. None if some of it is in a store only.
    pub fn whole_state(&mut self) -> Option<Vec<u8>> {
        let records = self.directory.records()?;
        let rest = self.directory.checkpoint()?;
        let state: Rest = (self.applied.clone(), self.book.clone(), rest);
        Some(base::encode(&(state, records)))
    }

    fn install(&mut self, tip: Tip, state: &[u8], out: &mut Vec<Output>) {
        let decoded = base::decode::<Whole>(state, state.len());
        let ((applied, book, rest), records) = decoded.expect("a state that enough vouch for");
        assert_eq!(applied, tip, "the state belongs to where it was taken");
        let restored = Directory::restore_whole(self.settings.clone(), &rest, records);
        self.directory = restored.expect("a state that enough vouch for");
        (self.book, self.applied, self.done) = (book, applied, (0, 0));
        self.begun.clear();
        self.due.clear();
        if let Some(attendance) = &mut self.attendance {
            attendance.on_change();
        }
        out.push(Output::Replaced);
    }

    /// Whether everything that was decided is applied.
    fn is_abreast(&self) -> bool {
        self.applied.height == self.replica.tip().height
    }

    /// When time alone would change something. While something is on its way to be applied, that may yet
    /// change.
    fn due_at(&self) -> Option<Instant> {
        let is_waiting = self.replica.is_busy() || !self.is_abreast();
        self.directory.wake_at().filter(|_| !is_waiting && self.replica.is_member())
    }
}

impl<N: Notary + Clone> base::Machine for Member<N> {
    type Input = Input;
    type Output = Output;

    fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Heard { from, bytes, key } => self.on_heard(now, from, &bytes, key, out),
            Input::Told { from, bytes } => self.on_told(now, from, &bytes, out),
            // Else the log would have a record that can't be read.
            Input::Admit { users, .. } if !users.is_bounded() => {}
            Input::Admit { client, users } => {
                if self.admitting.len() < self.limits.due_max {
                    self.admitting.insert(client);
                }
                let command = Command::Admit { client, users };
                self.order(now, Order::Do { command, by: None }, out);
            }
            Input::Join(join) => self.on_join(now, join, out),
            Input::Decree(decree) => self.on_decree(now, decree, out),
            Input::Persisted { mark } => {
                self.group(now, group::Input::Persisted { mark }, out);
            }
            Input::Loaded(loaded) => self.supply(now, loaded, out),
            Input::Wish(seats) => self.group(now, group::Input::Wish(seats), out),
            Input::Rescue(rescue) => self.group(now, group::Input::Rescue(rescue), out),
            Input::Changes(changes) => self.group(now, group::Input::Changes(changes), out),
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.replica.wake_at().is_some_and(|at| at <= now) {
            let mut outputs = Vec::new();
            self.replica.tick(now, &mut outputs);
            self.follow(outputs, out);
            self.go_on(now, out);
        }
        if self.look_at().is_some_and(|at| at <= now) {
            self.look_round(now, out);
        }
        if self.due_at().is_some_and(|at| at <= self.replica.time(now)) {
            self.order(now, Order::Do { command: Command::Tick, by: None }, out);
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let due = self.due_at().map(|at| self.replica.local(at));
        due.into_iter().chain(self.replica.wake_at()).chain(self.look_at()).min()
    }
}
