//! What the nodes of the world of bytes say and tell.

use std::fmt;

use base::{FileId, Instant};
use borsh::BorshDeserialize;
use directory::message::{Request, Response};
use lease::Client;

use crate::{Actor, Node, Outbox};

use super::{group::Group, machine::Machine, tamper::Tamper};

/// The group's node.
pub(crate) const GROUP: Node = Node(0);

/// A client's node.
pub(crate) fn node_of(client: Client) -> Node {
    Node(client.0 as u16)
}

/// The client at a node other than the group's.
pub(crate) fn client_of(node: Node) -> Client {
    Client(u32::from(node.0))
}

/// A node: the group, or a machine with programs.
pub(crate) enum Party<T: Tamper> {
    /// A group that does all that it is told, at once.
    Group(Box<Group>),
    /// A machine.
    Machine(Box<Machine<T>>),
}

/// What one machine asks another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Query {
    /// "What are the bytes of this content of the file?"
    Fetch { file: FileId, serial: u64, version: u64, size: u64 },
    /// "What you sent is not what the directory says. Look at it."
    Look(FileId),
    /// "Do this to the bytes of the file, which change where you are."
    Do { file: FileId, deed: Deed },
}

/// What is asked of a home.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Deed {
    Read,
    Write { tag: u64, offset: Option<u64>, bytes: Vec<u8> },
    Resize { tag: u64, size: u64 },
    Sync,
    Tell,
}

impl Deed {
    /// Whether it may be done twice.
    pub(crate) fn may_repeat(&self) -> bool {
        matches!(self, Deed::Read | Deed::Sync)
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Bytes(Vec<u8>),
    Done,
    Refused,
    Away,
    Busy,
    /// It has started again since, and knows nothing of the question.
    Stranger(u32),
}

/// A message as it travels.
#[derive(Clone, Hash)]
pub(crate) enum Letter {
    /// From a client to the group.
    Upward(Vec<u8>),
    /// And back.
    Downward(Vec<u8>),
    /// From a machine to another one, in the life of that one that it knows of.
    Ask { number: u64, life: u32, query: Query },
    /// The answer.
    Answer { number: u64, answer: Answer },
    /// Nobody waits for it any more.
    Drop(u64),
}

/// What was said to the group, or by it. Who says it in which words is the business of other worlds.
pub(crate) fn decode<W: BorshDeserialize>(bytes: &[u8]) -> Option<W> {
    base::decode(bytes, bytes.len()).ok()
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Letter::Upward(bytes) => match decode::<Request>(bytes) {
                Some(request) => write!(f, "{request:?}"),
                None => write!(f, "nonsense"),
            },
            Letter::Downward(bytes) => match decode::<Response>(bytes) {
                Some(response) => write!(f, "{response:?}"),
                None => write!(f, "nonsense"),
            },
            Letter::Ask { number, query, .. } => write!(f, "asks {number}: {query:?}"),
            Letter::Answer { number, answer } => write!(f, "answers {number}: {answer:?}"),
            Letter::Drop(number) => write!(f, "waits for {number} no more"),
        }
    }
}

/// What a machine tells the checkers.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// Bytes were read, and this is all of them. At home nothing is held of them.
    Read { file: FileId, is_home: bool, bytes: Vec<u8> },
    /// Somebody asks how large a file is.
    Sizing { file: FileId, ticket: u64 },
    /// And is told.
    Sized { file: FileId, ticket: u64, size: u64 },
    /// Bytes were changed, by the deed with this number.
    Wrote { file: FileId, is_home: bool, tag: u64, before: Vec<u8>, after: Vec<u8> },
    /// Nothing is in a file any more, whatever was.
    Emptied { file: FileId },
    /// What is in a file is being made safe.
    Syncing { file: FileId, ticket: u64 },
    /// And it is.
    Synced { file: FileId, ticket: u64 },
    /// These bytes were kept for whoever wrote them.
    Aside { file: FileId, bytes: Vec<u8> },
    /// The machine is about to let the kernel use a file by itself, or to end that.
    Home { file: FileId, is_home: bool },
    /// The machine has lost its session.
    Bereft,
    /// It has started again: what was in memory is gone.
    Restarted,
    /// The group has ended a session.
    Ended(Client),
}

impl<T: Tamper> Party<T> {
    pub(crate) fn machine(&self) -> Option<&Machine<T>> {
        match self {
            Party::Machine(machine) => Some(machine),
            Party::Group(_) => None,
        }
    }
}

/// Where a node of this world puts what it wants done.
pub(crate) type Out<T> = Outbox<Party<T>>;

impl<T: Tamper> Actor for Party<T> {
    type Message = Letter;
    type Note = Note;

    fn deliver(&mut self, now: Instant, from: Node, message: Letter, out: &mut Out<T>) {
        match self {
            Party::Group(group) => group.deliver(now, from, message, out),
            Party::Machine(machine) => machine.deliver(now, from, message, out),
        }
    }

    fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        match self {
            Party::Group(group) => group.wake(now, out),
            Party::Machine(machine) => machine.wake(now, out),
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        match self {
            Party::Group(group) => group.wake_at(),
            Party::Machine(machine) => machine.wake_at(),
        }
    }

    fn restart(&mut self, now: Instant, out: &mut Out<T>) {
        match self {
            // A group keeps its state; it was only away.
            Party::Group(_) => {}
            Party::Machine(machine) => machine.restart(now, out),
        }
    }
}
