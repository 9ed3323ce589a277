//! Calls that wait for something to be found out.

use std::collections::{BTreeMap, BTreeSet};

use base::{FileId, Instant};
use directory::Act;
use lease::message::Want;

use crate::{
    call::{Asked, Call},
    supply::Lack,
};

/// Calls in the order in which they were made. Bounded by the settings, and the jobs that nobody
/// called for by the number of open files.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: BTreeMap<u64, Waiting>,
    order_next: u64,
    /// For which waiting call leases were asked; none if it has been cancelled.
    asks: BTreeMap<u64, Option<u64>>,
}

/// A call, and what is known of what it needs.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) job: Job,
    pub(crate) waits: Waits,
    /// All that it was found to need leases on, over all attempts.
    pub(crate) wants: Vec<Want>,
    /// The files of which it has missed something, over all attempts: what it has found out of them stays
    /// until it is done, or it might look for ever. Bounded by what one call needs.
    pub(crate) missed: BTreeSet<FileId>,
    /// Whether something that it once had was gone again: from then on it asks for all at once.
    pub(crate) is_contended: bool,
    /// Whether it was denied something: a second time counts.
    pub(crate) is_denied: bool,
    /// Whether the group had nothing left for it: a second time counts, since what it lacked may have been
    /// another thing by then.
    pub(crate) is_short: bool,
    /// What could not be had.
    pub(crate) lack: Option<Lack>,
    /// Whether everything that may use it up has been pushed since.
    pub(crate) is_pushed: bool,
    /// The question that asks for it on this very account.
    pub(crate) question: Option<u64>,
    /// When it is answered with what was known before, if nobody has said more by then.
    pub(crate) late_at: Option<Instant>,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Job {
    /// A call of this number.
    Call(u64, Asked),
    /// A file was closed that may have lost its last name, at this time of the wall clock.
    Reap(FileId, i64),
}

/// What has to happen before the next attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Nothing: it has not been tried.
    Nothing,
    /// Leases are granted.
    Leases(u64),
    /// Records or names arrive.
    Values,
    /// Supplies arrive.
    Supplies,
    /// The session is renewed.
    Session,
    /// Some of what was done is applied.
    Room,
    /// Everything up to this place is applied, and then it is done.
    Applied(u64),
    /// Everything up to this place is applied.
    After(u64),
    /// Some time passes.
    Later(Instant),
}

impl Waiting {
    pub(crate) fn new(job: Job) -> Waiting {
        Waiting {
            job,
            waits: Waits::Nothing,
            wants: Vec::new(),
            missed: BTreeSet::new(),
            is_contended: false,
            is_short: false,
            is_denied: false,
            lack: None,
            is_pushed: false,
            question: None,
            late_at: None,
        }
    }
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue { waiting: BTreeMap::new(), order_next: 0, asks: BTreeMap::new() }
    }

    /// How many calls wait, and how many requests for leases are left from calls that do not any more.
    pub(crate) fn load(&self) -> usize {
        let orphans = self.asks.values().filter(|order| order.is_none()).count();
        self.waiting.len() + orphans
    }

    /// Puts a call where it belongs: one that was there before keeps its place.
    pub(crate) fn put(&mut self, order: Option<u64>, waiting: Waiting) {
        let order = order.unwrap_or_else(|| {
            self.order_next += 1;
            self.order_next
        });
        if let Waits::Leases(request) = waiting.waits {
            self.asks.insert(request, Some(order));
        }
        self.waiting.insert(order, waiting);
    }

    /// Whether somebody waits who has missed something of this file.
    pub(crate) fn has_missed(&self, file: &FileId) -> bool {
        self.waiting.values().any(|waiting| waiting.missed.contains(file))
    }

    pub(crate) fn take(&mut self, order: u64) -> Option<Waiting> {
        self.waiting.remove(&order)
    }

    /// Those that wait for this, in order.
    pub(crate) fn orders(&self, mut is_due: impl FnMut(&Waits) -> bool) -> Vec<u64> {
        let due = self.waiting.iter().filter(|(_, waiting)| is_due(&waiting.waits));
        due.map(|(order, _)| *order).collect()
    }

    /// Those that have waited long enough for what they can do without, in order.
    pub(crate) fn late(&self, now: Instant) -> Vec<u64> {
        let late =
            self.waiting.iter().filter(|(_, waiting)| waiting.late_at.is_some_and(|at| at <= now));
        late.map(|(order, _)| *order).collect()
    }

    /// Nobody waits any more for leases that were asked for. They are still asked for.
    pub(crate) fn desert(&mut self, request: u64) {
        self.asks.insert(request, None);
    }

    /// A request for leases is over: who waited for it.
    pub(crate) fn answered(&mut self, request: u64) -> Option<u64> {
        self.asks.remove(&request).flatten()
    }

    pub(crate) fn cancel(&mut self, call: u64) -> bool {
        let found = self.waiting.iter().find(|(_, waiting)| match &waiting.job {
            Job::Call(number, asked) => {
                *number == call && !matches!(asked.what, Call::Close { .. })
            }
            Job::Reap(..) => false,
        });
        let Some((&order, _)) = found else { return false };
        if let Some(Waiting { waits: Waits::Leases(request), .. }) = self.waiting.remove(&order) {
            self.desert(request);
        }
        true
    }

    /// Drops what nobody has called for. What was asked for on its account is of use to others.
    pub(crate) fn drop_jobs(&mut self) {
        let jobs = self.waiting.iter().filter(|(_, waiting)| matches!(waiting.job, Job::Reap(..)));
        let jobs: Vec<u64> = jobs.map(|(order, _)| *order).collect();
        for order in jobs {
            self.waiting.remove(&order);
        }
    }

    /// Takes out whoever is about to tell of a content, by the numbers of their calls.
    pub(crate) fn take_tellers(&mut self) -> Vec<u64> {
        let tells = |asked: &Asked| matches!(asked.what, Call::Do(Act::SetContent { .. }));
        let number = |waiting: &Waiting| match &waiting.job {
            Job::Call(call, asked) if tells(asked) => Some(*call),
            Job::Call(..) | Job::Reap(..) => None,
        };
        let calls: Vec<u64> = self.waiting.values().filter_map(number).collect();
        calls.iter().for_each(|call| _ = self.cancel(*call));
        calls
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let later = self.waiting.values().filter_map(|waiting| match waiting.waits {
            Waits::Later(at) => Some(at),
            _ => waiting.late_at,
        });
        later.min()
    }
}
