//! What the nodes of the lease world say and tell.

use base::Instant;
use lease::{
    Client,
    message::{Downward, Upward},
};

use crate::{Actor, Node, Outbox};

use super::{place::Leaf, server::Server, tamper::Tamper, user::User};

/// The grantor's node.
pub(crate) const SERVER: Node = Node(0);

/// A client's node.
pub(crate) fn node_of(client: Client) -> Node {
    Node(client.0 as u16)
}

/// The client at a node other than the grantor's.
pub(crate) fn client_of(node: Node) -> Client {
    Client(u32::from(node.0))
}

/// A node: the grantor with the registers that it guards, or a client.
pub(crate) enum Party<T: Tamper> {
    /// The grantor.
    Server(Box<Server<T>>),
    /// A client.
    User(Box<User<T>>),
}

/// What is said. Leases speak for themselves; values travel beside them.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Message {
    /// From a holder to the grantor.
    Up(Upward),
    /// From the grantor to a holder, with the values of what is granted.
    Down(Downward, Vec<(Leaf, Value)>),
    /// A client's changes.
    Push { session: u64, token: u64, writes: Vec<(Leaf, u64)> },
    /// What the registers hold now, or nothing where the change was refused.
    Pushed { token: u64, outcome: Vec<(Leaf, Option<Value>)> },
}

/// What a register holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Value {
    /// Counted up with every accepted change.
    pub(crate) version: u64,
    pub(crate) number: u64,
}

/// What a node tells the checkers.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// The grantor has spoken to a holder: it may believe more than before.
    Heard,
    /// Read this number, and has changed nothing that is not pushed.
    Read(Leaf, u64),
    /// Changed a register.
    Wrote(Leaf),
    /// Changed its own boolean.
    Set(Leaf),
    /// Looked at the others' booleans.
    Looked(Leaf),
    /// Asked for something.
    Needed(u64),
    /// Has it.
    Met(u64),
    /// Will not get it.
    Refused(u64),
    /// Gives back a lease, by number, while it has changes of this leaf that are not pushed.
    Abandoned(Leaf, u64),
    /// Has lost everything, these booleans among it.
    Lost(Vec<Leaf>),
    /// Started again without anything, these booleans among it.
    Restarted(Vec<Leaf>),
    /// The grantor has ended somebody's session.
    Ended(Client),
    /// The grantor has decided a question of somebody's once more.
    DecidedAgain(Client),
}

impl<T: Tamper> Party<T> {
    pub(crate) fn user(&self) -> Option<&User<T>> {
        match self {
            Party::User(user) => Some(user),
            Party::Server(_) => None,
        }
    }

    pub(crate) fn server(&self) -> Option<&Server<T>> {
        match self {
            Party::Server(server) => Some(server),
            Party::User(_) => None,
        }
    }
}

/// Where a node of this world puts what it wants done.
pub(crate) type Out<T> = Outbox<Party<T>>;

impl<T: Tamper> Actor for Party<T> {
    type Message = Message;
    type Note = Note;

    fn deliver(&mut self, now: Instant, from: Node, message: Message, out: &mut Out<T>) {
        match self {
            Party::Server(server) => server.deliver(now, client_of(from), message, out),
            Party::User(user) => user.deliver(now, message, out),
        }
    }

    fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        match self {
            Party::Server(server) => server.wake(now, out),
            Party::User(user) => user.wake(now, out),
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        match self {
            Party::Server(server) => server.wake_at(),
            Party::User(user) => user.wake_at(),
        }
    }

    fn restart(&mut self, now: Instant, out: &mut Out<T>) {
        match self {
            // A group keeps its state; it was only away.
            Party::Server(_) => {}
            Party::User(user) => user.restart(now, out),
        }
    }
}
