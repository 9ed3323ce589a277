//! What the checker can find, in words: which place, what is wrong, what would fix it.

use std::fmt;

use base::Duration;

use super::THROTTLE_DELAY_MAX;
use crate::graph::{
    Flow,
    words::{amount, bare, span},
};

/// Something wrong or suspicious about a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The label of the place.
    pub place: &'static str,
    /// The name of the place.
    pub name: &'static str,
    /// What it is.
    pub fault: Fault,
}

/// What can be wrong or suspicious about a place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the nouns of the message in `Display`")]
pub enum Fault {
    /// L22: nothing protects the place.
    Unprotected { path: Path },
    /// L22: load can reach the place without passing a flow that it throttles.
    Unthrottled { path: Path },
    /// L23: what is between the throttled flow and the place does not fit.
    Threshold { capacity: u64, unit: &'static str, between: Vec<(&'static str, u64)> },
    /// L23: the capacities cannot be compared.
    Units { unit: &'static str, feeder: &'static str, feeder_unit: &'static str },
    /// L24: the throttle acts too late.
    Delayed { flow: &'static str, delay: Duration, path: Path },
    /// L24: load grows between the throttle and the place.
    Multiplied { flow: &'static str, by: &'static str, gain: u32 },
    /// L24, L18: what is between the throttled flow and the place waits for another machine.
    Remote { flow: &'static str, by: &'static str, party: &'static str },
    /// L24, L18: the throttled flow cannot be stopped here.
    Unstoppable { flow: &'static str, why: String },
    /// L25: the release does not empty the place.
    ReleaseElsewhere { flow: &'static str },
    /// L25: the release, or a flow that it needs, can be stopped.
    ReleaseThrottled { flow: &'static str, needed: Option<&'static str>, by: &'static str },
    /// L25: the release, or a flow that it needs, waits for somebody else.
    ReleaseWaits { flow: &'static str, needed: Option<&'static str>, party: &'static str },
    /// L25: the release, or a flow that it needs, is as slow as the disk.
    ReleaseDiskBound { flow: &'static str, needed: Option<&'static str> },
    /// L25: nobody makes the release, or a flow that it needs, happen.
    ReleaseByChance { flow: &'static str, needed: Option<&'static str> },
    /// L25: what is released comes back.
    ReleaseCircle { with: Vec<&'static str> },
    /// L26: a clown car without a bound.
    NoObjects,
    /// L16: a loss that nobody makes up for.
    NoRectifier,
    /// A claim without a reason.
    NoReason,
    /// A place that can hold nothing.
    NoRoom,
    /// L58: throttles that wait for each other.
    Deadlock { with: Vec<&'static str> },
    /// L58: a throttle that nothing ever opens again.
    NoDrain,
    /// L22: two graphs of a system say different things of the place.
    Contradiction { what: String, graphs: [&'static str; 2] },
    /// L22: no graph of a system has all that fills the place; this one lacks a flow of the other.
    Partial { graph: &'static str, flow: &'static str, other: &'static str },
    /// A flow from or to a place that the graph lacks.
    Undeclared { flow: &'static str },
    /// Caution: a threshold that counts on a place which nothing holds to its capacity.
    CountsOn { feeder: &'static str, capacity: u64, unit: &'static str },
    /// Caution: a throttle on a flow that has nothing to do with the place.
    ThrottlesAside { flow: &'static str },
    /// Caution: no load gets there.
    Unreached,
    /// Caution: no load gets away, but by chance.
    Undrained,
}

/// The flow along which a place releases, and which flow that needs.
struct Along(&'static str, Option<&'static str>);

impl fmt::Display for Along {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)?;
        self.1.map_or(Ok(()), |needed| write!(f, ", which needs \"{needed}\""))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { place, name, fault } = self;
        write!(f, "{place} ({name}): ")?;
        match fault {
            // The remedies stand in the order of preference (L27).
            Fault::Unprotected { path } => write!(
                f,
                "nothing protects it, and load comes by {path}; release it prematurely or keep one \
                 item for each object of a bounded set, else let it throttle a flow on that path, \
                 else shed (L22)"
            ),
            Fault::Unthrottled { path } => write!(
                f,
                "load comes by {path}, where it throttles nothing; let it throttle a flow on that \
                 path too (L22)"
            ),
            Fault::Threshold { capacity, unit, between } => {
                let pending: u128 = between.iter().map(|&(_, c)| u128::from(c)).sum();
                write!(f, "its threshold would be {}", bare(*capacity, unit))?;
                for (label, capacity) in between {
                    write!(f, " − {} ({label})", bare(*capacity, unit))?;
                }
                let limit = u64::try_from(pending).unwrap_or(u64::MAX);
                let labels: Vec<_> = between.iter().map(|&(label, _)| label).collect();
                write!(
                    f,
                    ", which is not above 0; give {place} more than {}, or {} less, or throttle \
                     nearer to {place} (L23)",
                    amount(limit, unit),
                    labels.join(", "),
                )
            }
            Fault::Units { unit, feeder, feeder_unit } => write!(
                f,
                "it counts {unit}, but {feeder}, which lies behind its throttle, counts \
                 {feeder_unit}; count the same in both, or throttle nearer to {place} (L23)"
            ),
            Fault::Delayed { flow, delay, path } => write!(
                f,
                "it throttles \"{flow}\", but load takes {} from there by {path}, longer than {}, \
                 so it would oscillate; throttle behind the delay, or protect {place} in another \
                 way (L24)",
                span(*delay),
                span(THROTTLE_DELAY_MAX),
            ),
            Fault::Multiplied { flow, by, gain } => write!(
                f,
                "it throttles \"{flow}\", but \"{by}\" makes {gain} items of each on the way; \
                 throttle behind that (L24)"
            ),
            Fault::Remote { flow, by, party } => write!(
                f,
                "it throttles \"{flow}\", but on the way \"{by}\" waits for {party}, so what is \
                 under way comes when that answers; throttle behind that (L24, L18)"
            ),
            Fault::Unstoppable { flow, why } => write!(
                f,
                "it cannot throttle \"{flow}\": {why}; throttle a flow that this machine can stop, \
                 or shed (L24, L18)"
            ),
            Fault::ReleaseElsewhere { flow } => write!(
                f,
                "it releases along \"{flow}\", which does not start there; release along a flow \
                 out of {place} (L25)"
            ),
            Fault::ReleaseThrottled { flow, needed, by } => write!(
                f,
                "it cannot release along {}, because {by} throttles that flow; let {place} \
                 throttle what comes in instead (L25)",
                Along(flow, *needed),
            ),
            Fault::ReleaseWaits { flow, needed, party } => write!(
                f,
                "it cannot release along {}, which waits for {party}; let {place} throttle what \
                 comes in, or shed (L25)",
                Along(flow, *needed),
            ),
            Fault::ReleaseDiskBound { flow, needed } => write!(
                f,
                "it cannot release along {}, which costs slow disk work for each item; let \
                 {place} throttle what comes in, or shed (L25)",
                Along(flow, *needed),
            ),
            Fault::ReleaseByChance { flow, needed } => write!(
                f,
                "it cannot release along {}, which moves only if somebody happens to want that; \
                 release along a flow that {place} itself can set going (L25)",
                Along(flow, *needed),
            ),
            Fault::ReleaseCircle { with } => write!(
                f,
                "what it releases comes back, because {} releases it in turn; release along a \
                 flow that leads out of this circle (L25)",
                with.join(", "),
            ),
            Fault::NoObjects => write!(
                f,
                "it keeps one item for each object, but does not say what the objects are and what \
                 bounds them; name them (L26)"
            ),
            Fault::NoRectifier => {
                write!(f, "it sheds, but nothing makes up for what is lost; name it (L16)")
            }
            Fault::NoReason => {
                write!(f, "it needs no protection, but does not say why; give the reason")
            }
            Fault::NoRoom => write!(f, "its capacity is 0; give it room for something"),
            Fault::Deadlock { with } if with.is_empty() => write!(
                f,
                "it throttles its own drain, so once full it stays full; throttle only what fills \
                 {place} (L58)"
            ),
            Fault::Deadlock { with } => write!(
                f,
                "every way out of it is stopped by a throttle that waits for it in turn (with {}); \
                 free one drain in this circle (L58)",
                with.join(", "),
            ),
            Fault::NoDrain => write!(
                f,
                "nothing but chance takes load away from it, so once full it stays full; declare a \
                 flow that {place} can count on (L58)"
            ),
            Fault::Contradiction { what, graphs: [one, other] } => {
                write!(f, "graphs {one} and {other} disagree about {what}; declare it alike (L22)")
            }
            Fault::Partial { graph, flow, other } => write!(
                f,
                "graph {graph} would show that it is immune, but lacks \"{flow}\" of graph {other}; \
                 declare all that fills {place} in one graph (L22)"
            ),
            Fault::Undeclared { flow } => write!(
                f,
                "\"{flow}\" leads there, but the graph has no such place; declare it with its \
                 technique"
            ),
            Fault::CountsOn { feeder, capacity, unit } => write!(
                f,
                "its threshold counts on {feeder} holding at most {}, which nothing enforces",
                amount(*capacity, unit),
            ),
            Fault::ThrottlesAside { flow } => {
                write!(f, "it throttles \"{flow}\", which does not lead there; is a flow missing?")
            }
            Fault::Unreached => write!(f, "no load gets there; is a flow missing?"),
            Fault::Undrained => {
                write!(f, "no load is sure to get away from there; is a flow missing?")
            }
        }
    }
}

/// How load from outside gets to a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// How it came in.
    pub origin: Origin,
    /// The name of the flow that brought it in.
    pub flow: &'static str,
    /// The labels of the places it passes; the last is where it ends.
    pub places: Vec<&'static str>,
}

/// How load comes to the first place of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A program on this machine.
    Entry,
    /// Another machine.
    Arrival,
    /// This machine, by way of others (L20).
    Return,
    /// Another place.
    Link,
}

impl Origin {
    pub(super) fn of(flow: &Flow) -> Origin {
        match flow {
            Flow { is_itinerant: true, .. } => Origin::Return,
            Flow { from: Some(_), .. } => Origin::Link,
            Flow { is_foreign: true, .. } => Origin::Arrival,
            _ => Origin::Entry,
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match self.origin {
            Origin::Entry => "entry",
            Origin::Arrival => "arrival",
            Origin::Return => "return",
            Origin::Link => "flow",
        };
        write!(f, "{origin} \"{}\"", self.flow)?;
        self.places.iter().try_for_each(|label| write!(f, " → {label}"))
    }
}
