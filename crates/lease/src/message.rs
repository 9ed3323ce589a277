//! What the two sides say to each other. Explicit: a recipient infers nothing (D34).
//!
//! Messages may be lost, repeated and overtaken. Nothing depends on their order: an ask says what its
//! sender wants to hold and may be repeated; a lease has a serial number, and a return or a recall
//! names the lease by scope and serial.

use base::{Duration, Instant};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{Kind, Scope};

/// A client of a grantor.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct Client(pub u32);

/// From a holder to its grantor. Whatever it says, it also asks to go on with the session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Upward {
    /// Counted up by the holder whenever it starts with nothing.
    pub session: u64,
    /// When it was sent, on the holder's clock.
    pub stamp: Instant,
    /// What it says.
    pub body: Up,
}

/// What a holder can say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Up {
    /// Wants to hold these.
    Ask {
        /// Names the request in the answers.
        request: u64,
        /// What it wants.
        wants: Vec<Want>,
        /// All at once or none; else each as it becomes free.
        together: bool,
    },
    /// Gives these back, or parts of them.
    Return(Vec<Return>),
    /// Only wants to go on.
    Renew,
}

/// Something to be held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Want {
    /// What.
    pub scope: Scope,
    /// How.
    pub kind: Kind,
}

/// A lease, or a part of it, given back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Return {
    /// The scope of the lease.
    pub lease: Scope,
    /// Its kind.
    pub kind: Kind,
    /// Its serial number.
    pub serial: u64,
    /// What is given back: all of it, or a scope inside.
    pub part: Scope,
    /// Whether a write lease is kept as a read lease. Only for a whole lease.
    pub kept: bool,
    /// The disjunctive fields in the part for which the holder's own boolean is true.
    pub truths: Vec<Scope>,
}

/// From a grantor to one of its holders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Downward {
    /// Whose session it speaks of.
    pub session: u64,
    /// The latest stamp that the grantor has heard from the holder.
    pub stamp: Instant,
    /// How long the session goes on from now.
    pub span: Duration,
    /// What it says.
    pub body: Down,
}

/// What a grantor can say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Down {
    /// These are yours.
    Granted {
        /// The request that is answered, at least in part.
        request: u64,
        /// What is granted; may be more than was asked.
        grants: Vec<Grant>,
    },
    /// The request can't be granted, ever.
    Refused {
        /// Which.
        request: u64,
        /// Why.
        why: Refusal,
    },
    /// Somebody wants these.
    Recall(Vec<Recall>),
    /// The session goes on.
    Renewed,
    /// The session is over: somebody wanted what it held, and it was not heard in time.
    Lost,
}

/// A lease as it is handed out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// What.
    pub scope: Scope,
    /// But not these scopes inside it (D31).
    pub except: Vec<Scope>,
    /// How.
    pub kind: Kind,
    /// Its number; no two leases of a grantor have the same.
    pub serial: u64,
    /// For how long from now, if the session goes on.
    pub span: Duration,
    /// The disjunctive fields in it for which some other client's boolean is true.
    pub truths: Vec<Scope>,
}

/// A lease, or a part of it, wanted back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recall {
    /// The scope of the lease.
    pub lease: Scope,
    /// Its kind.
    pub kind: Kind,
    /// Its serial number.
    pub serial: u64,
    /// What is wanted back.
    pub part: Scope,
    /// Whether reading may go on.
    pub keep: bool,
}

/// Why a request can't be granted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Refusal {
    /// A kind that makes no sense for a field.
    Misfit,
    /// More at once than a request may name.
    TooMany,
    /// The client holds or waits for as much as it may.
    OverBudget,
}
