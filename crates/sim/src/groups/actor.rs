//! What the nodes of the group world say and tell.

use std::{fmt, rc::Rc};

use base::{Digest, Instant};
use group::{Batch, Roll, Seat, Tip, Vote};

use crate::{Actor, Node, Outbox};

use super::{customer::Customer, member::Member, tally::Receipt, tamper::Tamper};

/// A node: a member's machine, or a customer.
pub(crate) enum Party<T: Tamper> {
    /// A machine that sits in the group.
    Member(Box<Member<T>>),
    /// Somebody who wants things decided.
    Customer(Box<Customer<T>>),
}

/// What travels.
#[derive(Clone, Hash)]
pub(crate) enum Letter {
    /// From a seat to a seat: a message's bytes.
    Member { from: Seat, to: Seat, bytes: Rc<[u8]> },
    /// A machine has begun anew and wants to sit here.
    Petition(Seat),
    /// A customer wants this. It knows the members since a height.
    Order(Rc<[u8]>, u64),
    /// What came of an order, who sits in the group, and how it came that they do.
    Answer { from: Seat, number: u64, receipt: Rc<[u8]>, roll: Rc<Roll>, changes: Rc<[u8]> },
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Letter::Member { from, to, bytes } => {
                let name = |seat: &Seat| format!("{}#{}", seat.key.as_bytes()[0], seat.incarnation);
                match base::decode::<group::Message>(bytes, bytes.len()) {
                    Ok(message) => write!(f, "{}→{} {message:?}", name(from), name(to)),
                    Err(malformed) => write!(f, "{}→{} {malformed}", name(from), name(to)),
                }
            }
            Letter::Petition(seat) => write!(f, "wants {seat}"),
            Letter::Order(bytes, _) => write!(f, "{:?}", super::tally::Order::of(bytes)),
            Letter::Answer { number, receipt, .. } => write!(f, "answer {number}: {receipt:?}"),
        }
    }
}

/// What a node tells the checkers. Liars tell nothing.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// A member takes a decision. The second is the state's digest then.
    Decided { height: u64, batch: Rc<Batch>, value: Digest },
    /// The state of a member at a point, by its digest.
    State { tip: Rc<Tip>, state: Digest },
    /// A member takes a state from others. It may have been shown that others sit there than whoever let it in.
    Installed { tip: Rc<Tip>, state: Digest, is_shown: bool },
    /// A member votes, and others can know it.
    Voted(Vote),
    /// A member hears a vote.
    Heard(Vote),
    /// A member has started again.
    Restarted,
    /// A member finds that its disk is an old one, which may be so or not.
    Stale { is_old: bool },
    /// A member finds that its state is not that of the others, which may be so or not.
    Astray { is_adrift: bool },
    /// A member could not read its own log.
    Unreadable(String),
    /// A customer asks for something.
    Asked { number: u64 },
    /// A customer believes this.
    Believed { number: u64, receipt: Receipt },
}

impl<T: Tamper> Party<T> {
    pub(crate) fn member(&self) -> Option<&Member<T>> {
        match self {
            Party::Member(member) => Some(member),
            Party::Customer(_) => None,
        }
    }

    pub(crate) fn customer(&self) -> Option<&Customer<T>> {
        match self {
            Party::Customer(customer) => Some(customer),
            Party::Member(_) => None,
        }
    }
}

/// Where a node of this world puts what it wants done.
pub(crate) type Out<T> = Outbox<Party<T>>;

impl<T: Tamper> Actor for Party<T> {
    type Message = Letter;
    type Note = Note;

    fn deliver(&mut self, now: Instant, from: Node, letter: Letter, out: &mut Out<T>) {
        match self {
            Party::Member(member) => member.deliver(now, from, letter, out),
            Party::Customer(customer) => customer.deliver(now, from, letter, out),
        }
    }

    fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        match self {
            Party::Member(member) => member.wake(now, out),
            Party::Customer(customer) => customer.wake(now, out),
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        match self {
            Party::Member(member) => member.wake_at(),
            Party::Customer(customer) => customer.wake_at(),
        }
    }

    fn restart(&mut self, now: Instant, out: &mut Out<T>) {
        match self {
            Party::Member(member) => member.restart(now, out),
            // It remembers what it has asked for.
            Party::Customer(_) => {}
        }
    }
}
