//! What the two sides say to each other. Explicit: a recipient infers nothing (D34).
//!
//! Messages may be lost, repeated and overtaken. Nothing depends on their order: an ask says what its
//! sender wants to hold and may be repeated; a lease has a serial number, and a return or a recall
//! names the lease by scope and serial; returns are numbered, and one that was overtaken is as good as
//! lost.

use base::{Duration, Instant};
use borsh::{BorshDeserialize, BorshSerialize, io};

use crate::{Kind, Scope};

/// A client of a grantor.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct Client(pub u32);

impl Client {
    /// The group itself, as a client of its own grantor, with a holder beside it and no network between.
    /// It answers at once, so its session never lapses and its leases have no end; whoever hears from
    /// others never takes this name from them.
    pub const GROUP: Client = Client(0);
}

/// From a holder to its grantor. Whatever it says, it also asks to go on with the session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Upward {
    /// Counted up by the holder whenever it starts with nothing.
    pub session: u64,
    /// When it was sent, on the holder's clock.
    pub stamp: Instant,
    /// What it says.
    pub body: Up,
}

/// What a holder can say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
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
    Return {
        /// Counted up by the holder within its session. A return that a later one has overtaken is as
        /// good as lost: see `Grantor::on_returns`.
        number: u64,
        /// What is given back.
        returns: Vec<Return>,
    },
    /// Only wants to go on.
    Renew,
}

/// Something to be held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Want {
    /// What.
    pub scope: Scope,
    /// How.
    pub kind: Kind,
}

/// A lease, or a part of it, given back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Downward {
    /// Whose session it speaks of.
    pub session: u64,
    /// The latest stamp that the grantor has heard from the holder.
    pub stamp: Instant,
    /// How long the session goes on from now.
    #[borsh(serialize_with = "write_span", deserialize_with = "read_span")]
    pub span: Duration,
    /// What it says.
    pub body: Down,
}

/// What a grantor can say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
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
    #[borsh(serialize_with = "write_span", deserialize_with = "read_span")]
    pub span: Duration,
    /// The disjunctive fields in it for which some other client's boolean is true.
    pub truths: Vec<Scope>,
}

/// A lease, or a part of it, wanted back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
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
    /// It is none of the client's business, says whoever runs the grantor.
    Denied,
    /// The question was answered, and not all that it got stands any more: who still wants it asks anew.
    Answered,
}

/// A span is its nanoseconds; none is longer than 64 bits of them.
fn write_span<W: io::Write>(span: &Duration, writer: &mut W) -> io::Result<()> {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX).serialize(writer)
}

fn read_span<R: io::Read>(reader: &mut R) -> io::Result<Duration> {
    u64::deserialize_reader(reader).map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{kind, scope};

    #[track_caller]
    fn check<T: BorshSerialize + BorshDeserialize + PartialEq + std::fmt::Debug>(message: T) {
        let bytes = base::encode(&message);
        assert_eq!(base::decode::<T>(&bytes, bytes.len()).as_ref(), Ok(&message));
        for cut in 0..bytes.len() {
            assert!(base::decode::<T>(&bytes[..cut], bytes.len()).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn what_holders_say_has_canonical_bytes() {
        let wants = vec![Want { scope: scope("1.5:/name"), kind: kind("write") }];
        let returned = Return {
            lease: scope("1:**"),
            kind: kind("write"),
            serial: 7,
            part: scope("1:*"),
            kept: false,
            truths: vec![scope("1:handles"), scope("1:write-mode")],
        };
        let bodies = [
            Up::Ask { request: 3, wants, together: true },
            Up::Return { number: 4, returns: vec![returned] },
            Up::Renew,
        ];
        for body in bodies {
            check(Upward { session: 1, stamp: Instant::from_secs(5), body });
        }
    }

    #[test]
    fn what_grantors_say_has_canonical_bytes() {
        let grant = Grant {
            scope: scope("1:**"),
            except: vec![scope("1:locks")],
            kind: kind("write"),
            serial: 8,
            span: Duration::from_secs(7_200),
            truths: vec![scope("1:handles")],
        };
        let recall = Recall {
            lease: scope("1:**"),
            kind: kind("write"),
            serial: 8,
            part: scope("1.2:content"),
            keep: true,
        };
        let bodies = [
            Down::Granted { request: 3, grants: vec![grant] },
            Down::Refused { request: 3, why: Refusal::OverBudget },
            Down::Recall(vec![recall]),
            Down::Renewed,
            Down::Lost,
        ];
        for body in bodies {
            let (stamp, span) = (Instant::from_secs(5), Duration::from_millis(20_001));
            check(Downward { session: 1, stamp, span, body });
        }
    }
}
