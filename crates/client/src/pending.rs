//! Operations that were performed here and that the group has not acknowledged.
//!
//! They are sent in order, in batches, one at a time. So what the group has is always a beginning of
//! what was done.

use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, FileId, Instant};
use directory::{Act, Birth, Charges, Operation, Quota, message::Ask};
use lease::Scope;

/// The list, by place in the order. Bounded by the settings: whoever wants to change something waits
/// while it is full.
#[derive(Debug)]
pub(crate) struct Pending {
    list: BTreeMap<u64, Done>,
    place_next: u64,
    weight: usize,
    /// Which operations involve which files.
    of_file: BTreeSet<(FileId, u64)>,
    flight: Option<Flight>,
    batch_next: u64,
    /// Everything before this place is to be sent without delay.
    demanded: u64,
    /// The first moment at which an operation would outlive the leases that it was done under.
    until: Instant,
}

/// An operation that was performed.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) operation: Operation,
    /// Everything that it had to know, in order: nothing of this goes back before it is applied.
    pub(crate) depends: Vec<Scope>,
    /// The leases end here.
    pub(crate) until: Instant,
    /// When it was performed.
    pub(crate) at: Instant,
    /// What it cost.
    pub(crate) charges: Charges,
    /// How many more links directories have by it, or fewer. Mostly none.
    pub(crate) links: Vec<(FileId, i32)>,
}

/// What is on its way to the group.
#[derive(Debug)]
struct Flight {
    number: u64,
    /// The place of the last operation in it.
    last: u64,
    repeat_at: Instant,
}

impl Done {
    /// How much it counts against the limits: 1, unless it carries much.
    pub(crate) fn weight(&self) -> usize {
        let bytes = match &self.operation.act {
            Act::SetXattr { name, value, .. } => name.len() + value.as_ref().map_or(0, Vec::len),
            Act::Symlink { target, .. } => target.len(),
            _ => 0,
        };
        1 + bytes / 1_024
    }

    /// The files that it involves, in order and each once.
    pub(crate) fn files(&self) -> impl Iterator<Item = &FileId> {
        let before = std::iter::once(None).chain(self.depends.iter().map(Some));
        let pairs = self.depends.iter().zip(before);
        let is_news = |(scope, before): &(&Scope, Option<&Scope>)| {
            before.is_none_or(|before| before.file != scope.file)
        };
        pairs.filter(is_news).map(|(scope, _)| &scope.file)
    }
}

impl Pending {
    pub(crate) fn new() -> Pending {
        Pending {
            list: BTreeMap::new(),
            place_next: 1,
            weight: 0,
            of_file: BTreeSet::new(),
            flight: None,
            batch_next: 1,
            demanded: 0,
            until: Instant::END,
        }
    }

    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The place of the last operation; everything is applied when [`Pending::has_until`] says so.
    pub(crate) fn last(&self) -> Option<u64> {
        self.list.last_key_value().map(|(place, _)| *place)
    }

    /// The place of the last operation that there ever was.
    pub(crate) fn place(&self) -> u64 {
        self.place_next - 1
    }

    /// The place of the first operation.
    pub(crate) fn first(&self) -> Option<u64> {
        self.list.first_key_value().map(|(place, _)| *place)
    }

    /// Whether anything up to this place has not been applied.
    pub(crate) fn has_until(&self, place: u64) -> bool {
        self.first().is_some_and(|first| first <= place)
    }

    /// The first moment at which an operation would outlive its leases.
    pub(crate) fn ends_at(&self) -> Instant {
        self.until
    }

    /// The places of what involves a file.
    pub(crate) fn places_of(&self, file: &FileId) -> impl DoubleEndedIterator<Item = u64> {
        let from = (file.clone(), u64::MIN);
        let to = (file.clone(), u64::MAX);
        self.of_file.range(from..=to).map(|(_, place)| *place)
    }

    /// How many more links a directory has by all of this, or fewer.
    pub(crate) fn links_of(&self, directory: &FileId) -> i32 {
        let done = self.places_of(directory).filter_map(|place| self.get(place));
        let links = done.flat_map(|done| &done.links);
        links.filter(|(of, _)| of == directory).map(|(_, links)| *links).sum()
    }

    pub(crate) fn involves(&self, file: &FileId) -> bool {
        self.places_of(file).next().is_some()
    }

    pub(crate) fn involves_below(&self, file: &FileId) -> bool {
        let next = self.of_file.range((file.clone(), u64::MIN)..).next();
        next.is_some_and(|(next, _)| file.is_prefix_of(next))
    }

    /// The last operation that depends on something of this.
    pub(crate) fn last_touching(&self, part: &Scope) -> Option<u64> {
        let mut all = self.list.iter().rev();
        let touches = |done: &Done| done.depends.iter().any(|scope| scope.meets(part));
        all.find(|(_, done)| touches(done)).map(|(place, _)| *place)
    }

    pub(crate) fn get(&self, place: u64) -> Option<&Done> {
        self.list.get(&place)
    }

    /// Whether the operation at this place may still change: it is neither on its way nor waited for.
    pub(crate) fn is_soft(&self, place: u64) -> bool {
        place >= self.demanded && self.flight.as_ref().is_none_or(|flight| place > flight.last)
    }

    pub(crate) fn push(&mut self, done: Done) {
        let place = self.place_next;
        self.place_next += 1;
        self.weight += done.weight();
        self.until = self.until.min(done.until);
        for file in done.files() {
            self.of_file.insert((file.clone(), place));
        }
        self.list.insert(place, done);
    }

    /// Puts an operation in place of an earlier one, whose work it does too and on whose knowledge it
    /// depends too. It comes last in the order, like any other.
    pub(crate) fn replace(&mut self, place: u64, done: Done) {
        match self.list.last_entry().filter(|last| *last.key() == place) {
            Some(mut last) => {
                for file in done.files() {
                    if !last.get().files().any(|known| known == file) {
                        self.of_file.insert((file.clone(), place));
                    }
                }
                self.weight = self.weight + done.weight() - last.get().weight();
                self.until = self.until.min(done.until);
                last.insert(done);
            }
            None => {
                self.remove(place);
                self.push(done);
            }
        }
    }

    pub(crate) fn remove(&mut self, place: u64) -> Option<Done> {
        let done = self.list.remove(&place)?;
        self.weight -= done.weight();
        for file in done.files() {
            self.of_file.remove(&(file.clone(), place));
        }
        if self.list.is_empty() {
            self.until = Instant::END;
        }
        Some(done)
    }

    /// Everything up to this place is to be sent at once.
    pub(crate) fn demand(&mut self, place: u64) {
        self.demanded = self.demanded.max(place + 1);
    }

    /// When something is to be sent next, if nothing else happens.
    pub(crate) fn wake_at(&self, push_after: Duration, batch_max: usize) -> Option<Instant> {
        if let Some(flight) = &self.flight {
            return Some(flight.repeat_at);
        }
        let (first, done) = self.list.first_key_value()?;
        let is_due = *first < self.demanded || self.weight >= batch_max;
        Some(if is_due { Instant::START } else { done.at + push_after })
    }

    /// The next batch, or the last one again, if one is due.
    pub(crate) fn batch(
        &mut self,
        now: Instant,
        push_after: Duration,
        batch_max: usize,
        repeat: Duration,
    ) -> Option<Ask> {
        if self.wake_at(push_after, batch_max).is_none_or(|at| at > now) {
            return None;
        }
        let repeat_at = now + repeat;
        if let Some(flight) = &mut self.flight {
            flight.repeat_at = repeat_at;
        } else {
            let mut weight = 0;
            let mut fitting = self.list.iter().take_while(|(_, done)| {
                let is_first = weight == 0;
                weight += done.weight();
                is_first || weight <= batch_max
            });
            let last = fitting.by_ref().last().map(|(place, _)| *place)?;
            self.flight = Some(Flight { number: self.batch_next, last, repeat_at });
            self.batch_next += 1;
        }
        let flight = self.flight.as_ref()?;
        let operations = self.list.range(..=flight.last).map(|(_, done)| done.operation.clone());
        Some(Ask::Batch { number: flight.number, operations: operations.collect() })
    }

    /// Bytes that the group does not know to be taken for an owner.
    pub(crate) fn taken(&self, uid: u32) -> u64 {
        let taken = self.list.values().map(|done| done.charges.of(uid).1.max(0).unsigned_abs());
        taken.fold(0, u64::saturating_add)
    }

    /// What an owner gets back of which the group does not know; none if nothing is under way about them.
    pub(crate) fn coming(&self, uid: u32) -> Option<Quota> {
        let all = self.list.values().map(|done| done.charges.of(uid));
        let back = |amount: i64| amount.min(0).unsigned_abs();
        all.filter(|charge| *charge != (0, 0)).fold(None, |sum, (files, bytes)| {
            let Quota { files: all_files, bytes: all_bytes } = sum.unwrap_or_default();
            Some(Quota {
                files: all_files.saturating_add(back(files)),
                bytes: all_bytes.saturating_add(back(bytes)),
            })
        })
    }

    /// The births that the group has not acknowledged.
    pub(crate) fn births(&self) -> impl Iterator<Item = &Birth> {
        self.list.values().filter_map(|done| match &done.operation.act {
            Act::Create { birth, .. }
            | Act::Mkdir { birth, .. }
            | Act::Symlink { birth, .. }
            | Act::Mknod { birth, .. } => Some(birth),
            _ => None,
        })
    }

    /// The last batch that we know to be applied.
    pub(crate) fn acknowledged(&self) -> u64 {
        let next = self.flight.as_ref().map_or(self.batch_next, |flight| flight.number);
        next.saturating_sub(1)
    }

    /// Whether a batch is on its way.
    pub(crate) fn is_flying(&self) -> bool {
        self.flight.is_some()
    }

    /// How many operations are on their way.
    pub(crate) fn flying(&self) -> usize {
        self.flight.as_ref().map_or(0, |flight| self.list.range(..=flight.last).count())
    }

    /// The group has applied a batch, or so many operations of it. False if that is no news.
    pub(crate) fn applied(&mut self, number: u64, count: Option<usize>) -> bool {
        let Some(flight) = self.flight.take_if(|flight| flight.number == number) else {
            return false;
        };
        let places = self.list.range(..=flight.last).map(|(place, _)| *place);
        let places: Vec<u64> = places.take(count.unwrap_or(usize::MAX)).collect();
        for place in places {
            self.remove(place);
        }
        let ends = self.list.values().map(|done| done.until);
        self.until = ends.min().unwrap_or(Instant::END);
        true
    }

    /// Takes everything out, in order: the session is lost.
    pub(crate) fn take(&mut self) -> Vec<Operation> {
        let place_next = self.place_next;
        let lost = std::mem::replace(self, Pending { place_next, ..Pending::new() });
        lost.list.into_values().map(|done| done.operation).collect()
    }
}
