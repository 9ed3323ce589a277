//! A machine that manages a directory in a group of one.

use base::{FileId, Instant, Machine, Malformed};
use directory::{Absent, Command, Directory, Entry, Key, Record};
use lease::{Client, Name};
use wire::Message;

use crate::{
    order::{Decision, Order},
    recovery::Recovery,
};

pub use directory::Settings;

/// What happens to a node.
#[derive(Clone, Debug)]
pub enum Input {
    /// A machine said something.
    Heard {
        /// Which: whoever carries the bytes has proved it.
        from: Client,
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
    /// All records up to this height are safe on disk.
    Persisted {
        /// The height.
        height: u64,
    },
    /// What was absent.
    Loaded(Loaded),
}

/// What a store has of what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Records, or that there is none.
    pub records: Vec<(Key, Option<Record>)>,
    /// Names in directories.
    pub pages: Vec<Page>,
}

/// Names in a directory, in order and without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The directory.
    pub directory: FileId,
    /// These come after this one; they are the first ones, if none.
    pub after: Option<Name>,
    /// The names, and what they stand for.
    pub names: Vec<(Name, Entry)>,
    /// Whether there are no more.
    pub is_all: bool,
}

impl Loaded {
    pub(crate) fn hand_to(self, directory: &mut Directory) {
        directory.supply(self.records);
        for Page { directory: of, after, names, is_all } in self.pages {
            directory.supply_page(&of, after.as_ref(), names, is_all);
        }
    }
}

/// What a node wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Tell a machine.
    Send {
        /// Which.
        to: Client,
        /// What.
        bytes: Vec<u8>,
    },
    /// Append a record to the log, and say when it is safe.
    Persist {
        /// Its height.
        height: u64,
        /// The record.
        record: Vec<u8>,
    },
    /// Look these up in the store; nothing is applied until they are there.
    Load(Absent),
}

/// The state of a node between two decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The place of the last decision in it.
    pub height: u64,
    /// Everything but the records.
    pub state: Vec<u8>,
    /// The records that have changed since the checkpoint before.
    pub changes: Vec<(Key, Option<Record>)>,
}

/// Applies commands in the order that the log gives them.
pub struct Node {
    directory: Directory,
    order: Order,
    /// The place of the last decision that was applied, and its time.
    applied: (u64, Instant),
    /// All decisions up to this one are safe.
    safe: u64,
    /// The decision that lacks records.
    applying: Option<Decision>,
    /// How many messages made no sense.
    malformed: u64,
    /// How many came from machines that nobody has admitted.
    strange: u64,
}

impl Node {
    /// A node with an empty log.
    pub fn new(settings: Settings, now: Instant) -> Node {
        let directory = Directory::new(settings, Instant::START);
        Node::with(directory, Order::after(0, Instant::START, now), 0)
    }

    pub(crate) fn with(directory: Directory, order: Order, height: u64) -> Node {
        Node {
            directory,
            applied: (height, order.last()),
            order,
            safe: height,
            applying: None,
            malformed: 0,
            strange: 0,
        }
    }

    /// A node as its log, which goes back to the beginning, has left it.
    pub fn recover<'a>(
        settings: Settings,
        now: Instant,
        log: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Node, Malformed> {
        let mut recovery = Recovery::new(settings, None)?;
        for record in log {
            let absent = recovery.replay(record)?;
            assert!(absent.is_none(), "every record is at hand");
        }
        Ok(recovery.finish(now))
    }

    /// What to store so that the log up to here is not needed any more. None while a decision lacks
    /// records.
    pub fn checkpoint(&mut self) -> Option<Checkpoint> {
        let rest = self.directory.checkpoint()?;
        let (height, time) = self.applied;
        let state = base::encode(&(height, time, rest));
        Some(Checkpoint { height, state, changes: self.directory.changes() })
    }

    /// Lets go of every record that is stored.
    pub fn release_all(&mut self) {
        self.directory.release_all();
    }

    /// What it manages.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// How many messages made no sense.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// How many messages came from machines that nobody has admitted.
    pub fn strange(&self) -> u64 {
        self.strange
    }

    fn on_heard(&mut self, now: Instant, from: Client, bytes: &[u8], out: &mut Vec<Output>) {
        // Nothing would come of it, so it must not cost a place in the log.
        if !(self.directory.hears(from) || self.order.is_admitting(from)) {
            self.strange += 1;
            return;
        }
        match wire::open(bytes) {
            Ok(Message::Request(request)) => {
                self.decide(now, Command::Heard { client: from, request }, out);
            }
            Ok(_) | Err(_) => self.malformed += 1,
        }
    }

    fn on_persisted(&mut self, height: u64, out: &mut Vec<Output>) {
        self.safe = self.safe.max(height);
        self.go_on(out);
    }

    fn on_loaded(&mut self, loaded: Loaded, out: &mut Vec<Output>) {
        if self.applying.is_some() {
            loaded.hand_to(&mut self.directory);
            self.go_on(out);
        }
    }

    /// Applies what is safe, as far as its records are at hand.
    fn go_on(&mut self, out: &mut Vec<Output>) {
        let mut responses = Vec::new();
        let mut absent = None;
        while absent.is_none()
            && let Some(decision) = self.applying.take().or_else(|| self.order.next_safe(self.safe))
        {
            let Decision { height, time, command } = &decision;
            match self.directory.apply(*time, command, &mut responses) {
                Ok(()) => self.applied = (*height, *time),
                Err(more) => {
                    self.applying = Some(decision);
                    absent = Some(more);
                }
            }
        }
        out.extend(responses.into_iter().map(|(to, response)| {
            let bytes = wire::seal(&Message::Response(response));
            Output::Send { to, bytes }
        }));
        out.extend(absent.map(Output::Load));
    }

    /// When time alone would change something. While something is on its way to be applied, that may yet
    /// change.
    fn due_at(&self) -> Option<Instant> {
        let is_waiting = self.order.is_waiting() || self.applying.is_some();
        self.directory.wake_at().filter(|_| !is_waiting)
    }

    fn decide(&mut self, now: Instant, command: Command, out: &mut Vec<Output>) {
        if let Some((height, record)) = self.order.decide(now, command) {
            out.push(Output::Persist { height, record });
        }
    }
}

impl Machine for Node {
    type Input = Input;
    type Output = Output;

    fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Heard { from, bytes } => self.on_heard(now, from, &bytes, out),
            // Else the log would have a record that can't be read.
            Input::Admit { users, .. } if !users.is_bounded() => {}
            Input::Admit { client, users } => {
                self.decide(now, Command::Admit { client, users }, out);
            }
            Input::Persisted { height } => self.on_persisted(height, out),
            Input::Loaded(loaded) => self.on_loaded(loaded, out),
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.due_at().is_some_and(|at| at <= self.order.time(now)) {
            self.decide(now, Command::Tick, out);
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.due_at().map(|at| self.order.local(at))
    }
}
