//! What the nodes of the file world say and tell.

use std::fmt;

use base::Instant;
use directory::{Actor as User, Operation, Refusal, message::Response};
use lease::Client;
use wire::{Frame, Message, Word};

use crate::{Actor, Node, Outbox};

use super::{
    desk::Desk,
    member::Member,
    step::{Outcome, Step},
    tamper::Tamper,
};

/// The group's node.
pub(crate) const SERVER: Node = Node(0);

/// A client's node.
pub(crate) fn node_of(client: Client) -> Node {
    Node(client.0 as u16)
}

/// The client at a node other than the group's.
pub(crate) fn client_of(node: Node) -> Client {
    Client(u32::from(node.0))
}

/// A node: a member of the group, or a machine at which programs run.
pub(crate) enum Party<T: Tamper> {
    /// A member of the group.
    Member(Box<Member<T>>),
    /// A client with its programs.
    Desk(Box<Desk<T>>),
}

/// A message as it travels.
#[derive(Clone, Hash)]
pub(crate) enum Letter {
    /// From a client to a member of a group.
    Upward(Vec<u8>),
    /// From a member to a client.
    Downward(Vec<u8>),
    /// From a member to another.
    Member(Vec<u8>),
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Letter::Upward(bytes) | Letter::Downward(bytes) | Letter::Member(bytes)) = self;
        let response = |f: &mut fmt::Formatter<'_>, bytes: &[u8]| match wire::decode(bytes) {
            Ok(response @ Response { .. }) => write!(f, "{response:?}"),
            Err(malformed) => write!(f, "{malformed}"),
        };
        match wire::decode(bytes) {
            Ok(Frame::Group(_, message)) => match message {
                Message::Request(request) | Message::Sealed(request, _) => write!(f, "{request:?}"),
                Message::Word(Word { slot, bytes, .. }) => {
                    write!(f, "at {slot:?}: ")?;
                    response(f, &bytes)
                }
                Message::Member(message) => write!(f, "{message:?}"),
                other => write!(f, "{other:?}"),
            },
            Ok(other) => write!(f, "{other:?}"),
            // In a group of one there is nobody to compare answers with.
            Err(_) => response(f, bytes),
        }
    }
}

/// What a node tells the checkers.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// A program did something.
    Did { life: u32, program: usize, tag: i64, actor: User, step: Step, outcome: Outcome },
    /// The system has failed to do something, and nobody knows why.
    Needless { step: Step, outcome: Outcome },
    /// A handle is being closed, which takes a while.
    Closing { life: u32, handle: u64 },
    /// A client has lost its session.
    Bereft,
    /// A client's session has this number in this life.
    Lives { life: u32, session: u64 },
    /// The group has applied a batch.
    Applied { tags: Vec<i64> },
    /// The group has refused an operation.
    Refused { client: Client, what: Option<Operation>, why: Refusal },
    /// The group has ended a session.
    Ended { client: Client, session: u64 },
    /// The group could not read its own log.
    Unreadable(String),
}

impl<T: Tamper> Party<T> {
    pub(crate) fn desk(&self) -> Option<&Desk<T>> {
        match self {
            Party::Desk(desk) => Some(desk),
            Party::Member(_) => None,
        }
    }

    pub(crate) fn member(&self) -> Option<&Member<T>> {
        match self {
            Party::Member(member) => Some(member),
            Party::Desk(_) => None,
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
            Party::Member(member) => member.deliver(now, from, message, out),
            Party::Desk(desk) => desk.hear(now, from, message, out),
        }
    }

    fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        match self {
            Party::Member(member) => member.wake(now, out),
            Party::Desk(desk) => desk.wake(now, out),
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        match self {
            Party::Member(member) => member.wake_at(),
            Party::Desk(desk) => desk.wake_at(),
        }
    }

    fn restart(&mut self, now: Instant, out: &mut Out<T>) {
        match self {
            Party::Member(member) => member.restart(now, out),
            Party::Desk(desk) => desk.restart(now, out),
        }
    }
}
