//! A machine that manages a directory in a group of one.

use base::{Instant, Machine, Malformed};
use directory::{Command, Directory, message::Response};
use lease::Client;
use wire::Message;

use crate::order::{Decision, Order};

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
        /// For whom it may act.
        users: directory::Users,
    },
    /// All records up to this height are safe on disk.
    Persisted {
        /// The height.
        height: u64,
    },
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
}

/// Applies commands in the order that the log gives them.
pub struct Node {
    directory: Directory,
    order: Order,
    /// How many messages made no sense.
    malformed: u64,
}

impl Node {
    /// A node with an empty log.
    pub fn new(settings: Settings, now: Instant) -> Node {
        let directory = Directory::new(settings, Instant::START);
        Node { directory, order: Order::after(0, Instant::START, now), malformed: 0 }
    }

    /// A node as its log has left it. What it said back then is not said again: who missed it will
    /// ask again.
    pub fn recover<'a>(
        settings: Settings,
        now: Instant,
        log: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Node, Malformed> {
        let mut directory = Directory::new(settings, Instant::START);
        let (mut height, mut time) = (0, Instant::START);
        let mut out = Vec::new();
        for record in log {
            let decision = Decision::of(record)?;
            if decision.height != height + 1 || decision.time < time {
                return Err(Malformed::new("a log whose records do not follow one another"));
            }
            (height, time) = (decision.height, decision.time);
            apply(&mut directory, &decision, &mut out);
            out.clear();
        }
        Ok(Node { directory, order: Order::after(height, time, now), malformed: 0 })
    }

    /// What it manages.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// How many messages made no sense.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    fn on_heard(&mut self, now: Instant, from: Client, bytes: &[u8], out: &mut Vec<Output>) {
        match wire::open(bytes) {
            Ok(Message::Request(request)) => {
                self.decide(now, Command::Heard { client: from, request }, out);
            }
            Ok(Message::Response(_)) | Err(_) => self.malformed += 1,
        }
    }

    fn on_persisted(&mut self, height: u64, out: &mut Vec<Output>) {
        let mut responses = Vec::new();
        while let Some(decision) = self.order.next_safe(height) {
            apply(&mut self.directory, &decision, &mut responses);
        }
        out.extend(responses.into_iter().map(|(to, response)| {
            let bytes = wire::seal(&Message::Response(response));
            Output::Send { to, bytes }
        }));
    }

    fn decide(&mut self, now: Instant, command: Command, out: &mut Vec<Output>) {
        if let Some((height, record)) = self.order.decide(now, command) {
            out.push(Output::Persist { height, record });
        }
    }
}

/// Applies a decision to a directory that has all its records at hand.
fn apply(directory: &mut Directory, decision: &Decision, out: &mut Vec<(Client, Response)>) {
    let applied = directory.apply(decision.time, &decision.command, out);
    assert!(applied.is_ok(), "every record is at hand");
}

impl Machine for Node {
    type Input = Input;
    type Output = Output;

    fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Heard { from, bytes } => self.on_heard(now, from, &bytes, out),
            Input::Admit { client, users } => {
                self.decide(now, Command::Admit { client, users }, out);
            }
            Input::Persisted { height } => self.on_persisted(height, out),
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        // While something is on its way to be applied, what falls due may yet change.
        let due = self.directory.wake_at().filter(|_| !self.order.is_waiting());
        if due.is_some_and(|at| at <= self.order.time(now)) {
            self.decide(now, Command::Tick, out);
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let due = self.directory.wake_at().filter(|_| !self.order.is_waiting());
        due.map(|at| self.order.local(at))
    }
}
