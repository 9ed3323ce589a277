//! A machine that is a member of a directory's group: `group` gives commands their order and their time,
//! `directory` applies them, and neither knows of the other.

mod applying;
mod hearing;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use base::{Digest, Instant, Machine as _, Malformed, PublicKey};
use directory::{Absent, Command, Directory, Key, Record};
use group::{Astray, Charter, Decision, Notary, Replica, Rescue, Sealed, Seat, Tip};
use lease::Client;
use load::reservoir::Budgets;
use overlay::{Decree, Refused};
use wire::{About, Join, Message, Slot};

pub(crate) use hearing::{ISSUES, JOIN, JOINS};

use crate::{
    Loaded, Settings,
    attendance::{Attendance, Seating},
    book::Book,
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
    Decree {
        /// What.
        decree: Box<Decree>,
        /// When it was heard, in seconds since 1970.
        heard: u64,
    },
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
    /// Whoever runs this machine wants the rescue obeyed that it hesitates to obey.
    Obey,
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
        /// The bytes of a [`directory::message::Response`].
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
        /// What was said.
        decree: Box<Decree>,
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
    /// Everything that the store has is void, and so is the log up to here: none of it was ever decided. Nothing
    /// is left but who sits in the group.
    Misled,
    /// The disk is not the newest that this member has had; it has to sit down on a new seat.
    Stale,
    /// What this member has is not what so many others have sealed that one of them is honest. It votes no more, and
    /// what they have sealed is safe in its log.
    Astray(Astray),
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
    /// Which machines have wanted to join lately, and who lets them in.
    joins: Budgets<PublicKey>,
    /// What the decisions that were applied leave behind.
    applied: Tip,
    /// Decided and not applied. At most `due_max`, and what follows from one message.
    due: VecDeque<Due>,
    /// So many commands of the first are applied, and have had so much to say.
    done: (usize, u32),
    /// Whether a state was to be installed that makes no sense, which its group does not know yet.
    is_unreadable: bool,
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
        let joins = Budgets::new(limits.joiners_max);
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
            joins,
            applied,
            due,
            done,
            is_unreadable: false,
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

    /// Its group, and since when the members are those whom it knows.
    pub fn about(&self) -> About {
        About { group: self.identity.group, epoch: self.replica.epoch_known() }
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
                    let bytes = self.about().encode(Message::Member(Box::new(message)));
                    out.push(Output::Tell { to, bytes });
                }
                group::Output::Decided(decision) => self.due.push_back(Due::Decision(decision)),
                group::Output::WantState { height } => self.due.push_back(Due::State { height }),
                group::Output::Install { tip, state } => self.install(tip, &state, out),
                group::Output::Misled { tip } => self.let_go(tip, out),
                group::Output::Stale => out.push(Output::Stale),
                group::Output::Astray(astray) => out.push(Output::Astray(astray)),
            }
        }
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
                let (from, command) = (self.identity.seat.key, Command::Admit { client, users });
                self.order(now, from, Order::Do { command, by: None }, out);
            }
            Input::Join(join) => self.on_join(now, join, out),
            Input::Decree { decree, heard } => self.on_decree(now, decree, heard, out),
            Input::Persisted { mark } => {
                self.group(now, group::Input::Persisted { mark }, out);
            }
            Input::Loaded(loaded) => self.supply(now, loaded, out),
            Input::Wish(seats) => self.group(now, group::Input::Wish(seats), out),
            Input::Rescue(rescue) => self.group(now, group::Input::Rescue(rescue), out),
            Input::Obey => self.group(now, group::Input::Obey, out),
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
            let from = self.identity.seat.key;
            self.order(now, from, Order::Do { command: Command::Tick, by: None }, out);
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let due = self.due_at().map(|at| self.replica.local(at));
        due.into_iter().chain(self.replica.wake_at()).chain(self.look_at()).min()
    }
}
