//! Who was sent away, as every machine of a cell comes to know it: by push, and by comparing at every greeting.
//!
//! What a group has decided is known to its members, and most machines of a cell have no vote. Decrees are signed and
//! bring their warrants along, so whoever has one can hand it on, and nobody has to believe whoever does. Two machines
//! compare digests of what they know, range by range of the names of decrees, until they have come to few enough to
//! hand over: so that costs little however many there are, and nobody has to remember what others know.
//!
//! Members take nothing from others but by their group, which looks whether an issuer still may. Machines without a vote
//! take what an issuer says who may at the time; what one says who may no more counts if so many members have it that
//! one of them is honest. Else whoever has found an old issuer's key could end a cell.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base::{Digest, Domain, Duration, Hasher, Instant, Malformed, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize, io};

use crate::{decree::Decree, register::Register};

const NAME: Domain = Domain::new("name of a decree v1");
const RANGE: Domain = Domain::new("decrees in a range v1");

/// The most decrees that are handed over at once.
const PAGE: usize = 64;
/// Names are told apart by so many half-bytes: there are never two pages of decrees that share as many.
const DEPTH_MAX: usize = 8;
/// The most news that are said to whoever may have heard none of them. The rest comes out when they compare.
const NEWS_MAX: usize = 16;
/// So many machines are told at a time, one such time after another.
const CALLS_MAX: usize = 32;
const BEAT: Duration = Duration::from_millis(200);
/// Before a machine is told again that has not said that it knows; twice as long each time.
const PAUSE: Duration = Duration::from_secs(2);
/// From then on it hears when it greets somebody.
const CALLS_EACH_MAX: u32 = 9;
/// Of each member no more is remembered that only members may say.
const VOUCHED_MAX: usize = 64;

/// Names that begin with these half-bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Range(#[borsh(deserialize_with = "read_halves")] Vec<u8>);

impl Range {
    /// Whether it has all names.
    pub fn is_whole(&self) -> bool {
        self.0.is_empty()
    }
}

/// What machines say to one another of decrees.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Tidings {
    /// "What I know in this range has this digest." Who knows something else says so.
    Compare(Range, Digest),
    /// "In this range I know these." Who knows more says which.
    Known(Range, #[borsh(deserialize_with = "read_page")] Vec<Decree>),
    /// "You lack these."
    Lacking(#[borsh(deserialize_with = "read_page")] Vec<Decree>),
    /// "These are new." Whoever hears it says what it knows then.
    News(#[borsh(deserialize_with = "read_page")] Vec<Decree>),
}

/// What happens to a machine.
#[derive(Clone, Debug)]
pub enum Input {
    /// There is a connection with another one.
    Met(PublicKey),
    /// Another one says something, at this moment in seconds since 1970.
    Heard {
        /// Which.
        from: PublicKey,
        /// What.
        tidings: Tidings,
        /// When, by the wall clock.
        seconds: u64,
    },
    /// The group has decided this, or had before.
    Decided(Box<Decree>),
    /// These are the machines of the cell that are known here, this one among them, and the members of its group.
    Cell {
        /// All.
        machines: BTreeSet<PublicKey>,
        /// Those who have a vote.
        members: Vec<PublicKey>,
    },
}

/// What a machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Tell another one.
    Tell(PublicKey, Tidings),
    /// Tell all with whom there is a connection.
    TellAll(Tidings),
    /// Do what it says, and keep it.
    Obey(Decree),
    /// Have the group decide on it.
    Submit(Decree),
}

/// When a machine is told again.
#[derive(Clone, Copy, Debug)]
struct Call {
    at: Instant,
    count: u32,
}

/// The decrees that a machine knows of those that end something: of machines, users and issuers.
#[derive(Clone, Debug)]
pub struct Decrees {
    /// The root key of the cell.
    authority: PublicKey,
    me: PublicKey,
    /// By name. At most [`Register::COUNT_MAX`].
    known: BTreeMap<Digest, Decree>,
    /// Of all names.
    whole: Digest,
    /// The last to come. At most [`NEWS_MAX`].
    news: VecDeque<Digest>,
    /// As many as the cell has.
    machines: BTreeSet<PublicKey>,
    members: Vec<PublicKey>,
    /// Who has not said that they know all of it, if this machine has a vote. At most one for each machine.
    calls: BTreeMap<PublicKey, Call>,
    /// What each member has who has handed over what an issuer says that may no more. At most [`VOUCHED_MAX`] each.
    vouched: BTreeMap<PublicKey, BTreeSet<Digest>>,
}

impl Decrees {
    /// What a machine of the cell with this root key knows, who has kept these.
    pub fn new(authority: PublicKey, me: PublicKey, kept: Vec<Decree>) -> Decrees {
        let named = kept.into_iter().filter_map(|decree| Some((name(&decree)?, decree)));
        let known: BTreeMap<_, _> = named.take(Register::COUNT_MAX).collect();
        let mut decrees = Decrees {
            authority,
            me,
            known,
            whole: Digest::of(RANGE, &[]),
            news: VecDeque::new(),
            machines: BTreeSet::new(),
            members: Vec::new(),
            calls: BTreeMap::new(),
            vouched: BTreeMap::new(),
        };
        decrees.whole = decrees.digest(&Range::default());
        decrees
    }

    /// All that are known, to be kept.
    pub fn known(&self) -> impl Iterator<Item = &Decree> {
        self.known.values()
    }

    /// Whether a machine was sent away, or a user removed.
    pub fn is_revoked(&self, key: &PublicKey) -> bool {
        self.known.contains_key(&name_of(0, key))
    }

    fn has_vote(&self) -> bool {
        self.members.contains(&self.me)
    }

    fn on_cell(&mut self, machines: BTreeSet<PublicKey>, members: Vec<PublicKey>) {
        (self.machines, self.members) = (machines, members);
        let has_vote = self.has_vote();
        self.calls.retain(|machine, _| has_vote && self.machines.contains(machine));
        self.vouched.retain(|member, _| self.members.contains(member));
    }

    fn on_heard(
        &mut self,
        now: Instant,
        from: PublicKey,
        tidings: Tidings,
        seconds: u64,
        out: &mut Vec<Output>,
    ) {
        if self.is_revoked(&from) {
            return;
        }
        match tidings {
            Tidings::Compare(range, digest) => self.on_compare(from, range, digest, out),
            Tidings::Known(range, theirs) => {
                let names: BTreeSet<Digest> = theirs.iter().filter_map(name).collect();
                self.take(now, from, theirs, seconds, out);
                let own = self.within(&range).filter(|(name, _)| !names.contains(name));
                let lacking: Vec<Decree> = own.take(PAGE).map(|(_, own)| own.clone()).collect();
                if !lacking.is_empty() {
                    out.push(Output::Tell(from, Tidings::Lacking(lacking)));
                }
            }
            Tidings::Lacking(theirs) => self.take(now, from, theirs, seconds, out),
            Tidings::News(theirs) => {
                self.take(now, from, theirs, seconds, out);
                out.push(Output::Tell(from, self.greeting()));
            }
        }
    }

    fn greeting(&self) -> Tidings {
        Tidings::Compare(Range::default(), self.whole)
    }

    fn on_compare(&mut self, from: PublicKey, range: Range, theirs: Digest, out: &mut Vec<Output>) {
        let is_whole = range.is_whole();
        let own = if is_whole { self.whole } else { self.digest(&range) };
        if own == theirs {
            if is_whole {
                self.calls.remove(&from);
            }
            return;
        }
        if self.within(&range).nth(PAGE).is_none() || range.0.len() == DEPTH_MAX {
            let own = self.within(&range).take(PAGE).map(|(_, decree)| decree.clone()).collect();
            out.push(Output::Tell(from, Tidings::Known(range, own)));
            return;
        }
        for half in 0..16 {
            let part = Range(range.0.iter().copied().chain([half]).collect());
            let digest = self.digest(&part);
            out.push(Output::Tell(from, Tidings::Compare(part, digest)));
        }
    }

    /// Takes what somebody hands over, as far as it counts.
    fn take(
        &mut self,
        now: Instant,
        from: PublicKey,
        decrees: Vec<Decree>,
        seconds: u64,
        out: &mut Vec<Output>,
    ) {
        for decree in decrees {
            let Some(name) = name(&decree) else { continue };
            // What is known already is not even looked at.
            if self.known.contains_key(&name) || decree.verify(&self.authority).is_err() {
                continue;
            }
            if self.has_vote() {
                out.push(Output::Submit(decree));
            } else if self.is_timely(&decree, seconds) || self.is_vouched(from, name) {
                self.learn(now, decree, out);
            }
        }
    }

    /// Whether who says it still may, as far as is known here.
    fn is_timely(&self, decree: &Decree, seconds: u64) -> bool {
        match decree.tenure(&self.authority) {
            Ok(Some(by)) => seconds < by.until && !self.known.contains_key(&name_of(1, &by.issuer)),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// Whether so many members have handed it over that one of them is honest, and has it from the group.
    fn is_vouched(&mut self, from: PublicKey, name: Digest) -> bool {
        if !self.members.contains(&from) {
            return false;
        }
        let names = self.vouched.entry(from).or_default();
        if names.len() < VOUCHED_MAX {
            names.insert(name);
        }
        let count = self.vouched.values().filter(|names| names.contains(&name)).count();
        count > self.members.len().saturating_sub(1) / 3
    }

    fn learn(&mut self, now: Instant, decree: Decree, out: &mut Vec<Output>) {
        let Some(name) = name(&decree) else { return };
        if self.known.contains_key(&name) || self.known.len() >= Register::COUNT_MAX {
            return;
        }
        self.known.insert(name, decree.clone());
        self.whole = self.digest(&Range::default());
        self.news.push_back(name);
        self.news.drain(..self.news.len().saturating_sub(NEWS_MAX));
        self.vouched.values_mut().for_each(|names| _ = names.remove(&name));
        if self.has_vote() {
            // Whoever has a vote knows all machines, and has to see to it that all hear of it.
            let others = self.machines.iter().filter(|key| **key != self.me);
            let others: Vec<PublicKey> =
                others.filter(|key| !self.is_revoked(key)).copied().collect();
            for (index, machine) in others.into_iter().enumerate() {
                let at = now + BEAT * (index / CALLS_MAX) as u32;
                self.calls.insert(machine, Call { at, count: 0 });
            }
        } else {
            out.push(Output::TellAll(Tidings::News(vec![decree.clone()])));
        }
        if let Decree::Revoke(revocation) = &decree {
            self.calls.remove(&revocation.subject());
        }
        out.push(Output::Obey(decree));
    }

    fn within(&self, range: &Range) -> impl Iterator<Item = (&Digest, &Decree)> {
        let fill = |rest: u8| {
            let half = |index: usize| range.0.get(index).copied().unwrap_or(rest);
            Digest::from_bytes(std::array::from_fn(|at| half(2 * at) << 4 | half(2 * at + 1)))
        };
        self.known.range(fill(0)..=fill(15))
    }

    fn digest(&self, range: &Range) -> Digest {
        let mut hasher = Hasher::new(RANGE);
        self.within(range).for_each(|(name, _)| hasher.update(name.as_bytes()));
        hasher.finish()
    }
}

impl base::Machine for Decrees {
    type Input = Input;
    type Output = Output;

    fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Met(other) if self.is_revoked(&other) => {}
            Input::Met(other) => out.push(Output::Tell(other, self.greeting())),
            Input::Heard { from, tidings, seconds } => {
                self.on_heard(now, from, tidings, seconds, out);
            }
            Input::Decided(decree) => self.learn(now, *decree, out),
            Input::Cell { machines, members } => self.on_cell(machines, members),
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        let news = self.news.iter().filter_map(|name| self.known.get(name)).cloned();
        let news = Tidings::News(news.collect());
        for (machine, call) in self.calls.iter_mut().filter(|(_, call)| call.at <= now) {
            out.push(Output::Tell(*machine, news.clone()));
            call.at = now + PAUSE * (1 << call.count);
            call.count += 1;
        }
        self.calls.retain(|_, call| call.count < CALLS_EACH_MAX);
    }

    fn wake_at(&self) -> Option<Instant> {
        self.calls.values().map(|call| call.at).min()
    }
}

/// What a decree is known by, if it ends something; whoever says so.
fn name(decree: &Decree) -> Option<Digest> {
    match decree {
        Decree::Revoke(revocation) => Some(name_of(0, &revocation.subject())),
        Decree::RevokeIssuer(revocation) => Some(name_of(1, &revocation.subject())),
        Decree::Enrol(_) | Decree::Share(_) => None,
    }
}

/// By whom it is about: two of one are as good as each other.
fn name_of(kind: u8, key: &PublicKey) -> Digest {
    let mut hasher = Hasher::new(NAME);
    hasher.update(&[kind]);
    hasher.update(key.as_bytes());
    hasher.finish()
}

fn read_halves<R: io::Read>(reader: &mut R) -> io::Result<Vec<u8>> {
    let halves = Vec::<u8>::deserialize_reader(reader)?;
    match halves.len() <= DEPTH_MAX && halves.iter().all(|half| *half < 16) {
        true => Ok(halves),
        false => Err(Malformed::new("what is no range of names").into()),
    }
}

fn read_page<R: io::Read>(reader: &mut R) -> io::Result<Vec<Decree>> {
    let decrees = Vec::deserialize_reader(reader)?;
    match decrees.len() <= PAGE {
        true => Ok(decrees),
        false => Err(Malformed::new("more decrees than are handed over at once").into()),
    }
}

#[cfg(test)]
mod tests;
