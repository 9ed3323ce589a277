//! What waits to be read by a machine of a group, and in which order it is read: by whom it is from, in turn.
//!
//! Each sender has a queue of its own, and what does not fit in that is dropped, whatever the others do. The queues
//! are emptied in rounds. In a round each of the favoured (this machine's own client, and those who sit in the group
//! or are to) may have as much read as everybody, counted by what reading it costs and not in letters; all others
//! together have as much as two of them. So what those do who have no vote, however many they are, costs the favoured
//! a bounded part of each round.
//!
//! Whoever has no vote has an allowance of this machine's time besides: even with nobody else waiting, what one does
//! for it is not done for others on the same computer, nor later, when all members have to look at what it wants
//! decided. It is small while the favoured want something themselves. Whoever has used it up is not read from for a
//! while: so it can't send either, as soon as what is on its way fills the windows of its connection.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base::{Duration, Instant, PublicKey};
use load::reservoir::{Allowance, Budgets};

use crate::graph::Limits;

/// Who has sent a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sender {
    /// This machine itself, or its client.
    Own,
    /// Another machine, known by its key.
    Machine(PublicKey),
    /// Somebody who is not of the cell: all of them are one.
    Stranger,
}

/// What a letter asks for, as far as can be told from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// That something is decided: all members have to look at it, write it down and do it.
    Wish,
    /// That it is read.
    Word,
}

/// What it costs to take a letter in and to look at it.
const LETTER: Duration = Duration::from_micros(20);
/// What it costs more if it asks for a decision.
const WISH: Duration = Duration::from_micros(400);
/// How often the time counts that it has taken to look at something.
const LOOKS: u32 = 4;
/// Bytes that are read in a microsecond.
const BYTES_PER_US: usize = 128;
/// What each of the favoured may have read in a round; all others together may twice as much.
const ROUND: Duration = Duration::from_millis(10);
/// So long after one of the favoured has wanted something decided the others have little.
const BUSY: Duration = Duration::from_secs(1);
/// Nobody is kept from sending for longer at a time, so that its connection does not seem to hang.
const REST_MAX: Duration = Duration::from_secs(2);
/// The part of this machine's time, in thousandths, that somebody without a vote may use, while the favoured want
/// something and else.
const SHARES: [u64; 2] = [50, 500];

/// The allowance of somebody without a vote, in nanoseconds of work.
fn allowance(is_busy: bool, burst: Duration) -> Allowance {
    let share = SHARES[usize::from(!is_busy)];
    Allowance { burst: nanos(burst), per_second: share * 1_000_000 }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Letters by sender.
#[derive(Debug)]
pub struct Mailroom<T> {
    limits: Limits,
    /// Those who sit in the group or are to. At most two groups of them.
    seated: BTreeSet<PublicKey>,
    /// Of those from whom something waits. None is empty.
    queues: BTreeMap<Sender, Queue<T>>,
    /// How many letters, and bytes of them, wait from those that are not favoured.
    others: (usize, usize),
    /// Who of these was read from last.
    last: Option<Sender>,
    /// What each has cost lately.
    budgets: Budgets<Sender>,
    /// When one of the favoured has last wanted something decided.
    wished_at: Option<Instant>,
    dropped: u64,
}

#[derive(Debug)]
struct Queue<T> {
    letters: VecDeque<(usize, Duration, T)>,
    bytes: usize,
    /// What it may still have read of its turns so far.
    credit: Duration,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue { letters: VecDeque::new(), bytes: 0, credit: Duration::ZERO }
    }
}

impl<T> Mailroom<T> {
    /// An empty one, with nobody in the group.
    pub fn new(limits: Limits) -> Mailroom<T> {
        Mailroom {
            limits,
            seated: BTreeSet::new(),
            queues: BTreeMap::new(),
            others: (0, 0),
            last: None,
            budgets: Budgets::new(limits.debtors_max),
            wished_at: None,
            dropped: 0,
        }
    }

    /// These sit in the group, or are to. What waits from them is favoured from now on, and what waits from whoever
    /// is none of them any more is not.
    pub fn seat(&mut self, seated: BTreeSet<PublicKey>) {
        if seated != self.seated {
            self.seated = seated;
            let others = self.queues.iter().filter(|(sender, _)| !self.is_favoured(sender));
            self.others = others.fold((0, 0), |(count, bytes), (_, queue)| {
                (count + queue.letters.len(), bytes + queue.bytes)
            });
        }
    }

    /// Puts a letter behind those of its sender, if there is room for it. Whether there is.
    pub fn put(&mut self, now: Instant, from: Sender, kind: Kind, bytes: usize, letter: T) -> bool {
        let is_favoured = self.is_favoured(&from);
        if is_favoured && kind == Kind::Wish {
            self.wished_at = Some(now);
        }
        if !self.has_room(&from, bytes) {
            self.dropped += 1;
            return false;
        }
        let wish = if kind == Kind::Wish { WISH } else { Duration::ZERO };
        let cost = LETTER + wish + Duration::from_micros((bytes / BYTES_PER_US) as u64);
        if !is_favoured {
            self.others = (self.others.0 + 1, self.others.1 + bytes);
            self.spend(now, &from, cost);
        }
        let queue = self.queues.entry(from).or_default();
        queue.letters.push_back((bytes, cost, letter));
        queue.bytes += bytes;
        true
    }

    /// What is to be read next: a round. Nothing only if nothing waits.
    pub fn take(&mut self) -> Vec<(Sender, T)> {
        let mut taken = Vec::new();
        while taken.is_empty() && !self.queues.is_empty() {
            self.take_round(&mut taken);
        }
        taken
    }

    /// To look at something of this sender has taken so long, which could not be told from outside. It counts several
    /// times: whatever one member is told others mostly are too, and what they decide all look at again.
    pub fn charge(&mut self, now: Instant, from: &Sender, took: Duration) {
        if !self.is_favoured(from) {
            self.spend(now, from, took * LOOKS);
        }
    }

    /// How long nothing more should be taken in from somebody.
    pub fn rest(&self, now: Instant, from: &Sender) -> Duration {
        match self.is_favoured(from) {
            true => Duration::ZERO,
            false => self.budgets.wait(now, from, self.allowance(now)).min(REST_MAX),
        }
    }

    /// How many letters wait.
    pub fn len(&self) -> usize {
        self.queues.values().map(|queue| queue.letters.len()).sum()
    }

    /// Whether none do.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// How many letters were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn is_favoured(&self, sender: &Sender) -> bool {
        match sender {
            Sender::Own => true,
            Sender::Machine(key) => self.seated.contains(key),
            Sender::Stranger => false,
        }
    }

    /// Those that are not favoured share what room they have: each may hold as much as is left for all of them. So
    /// whoever comes next finds room.
    fn has_room(&self, from: &Sender, bytes: usize) -> bool {
        let queue = self.queues.get(from);
        let (count, bytes) = queue.map_or((1, bytes), |queue| {
            (queue.letters.len() + 1, queue.bytes.saturating_add(bytes))
        });
        let Limits { posts_max, frames_max, frame_bytes_max, .. } = self.limits;
        let Limits { others_max, other_bytes_max, .. } = self.limits;
        let fits = |count_max: usize, bytes_max: usize| count <= count_max && bytes <= bytes_max;
        match from {
            Sender::Own => count <= posts_max,
            _ if self.is_favoured(from) => fits(frames_max, frame_bytes_max),
            _ => {
                let left = others_max.saturating_sub(self.others.0);
                let bytes_left = other_bytes_max.saturating_sub(self.others.1);
                fits(frames_max.min(left), frame_bytes_max.min(bytes_left))
            }
        }
    }

    /// Lets each of the favoured have its turn, and others as far as they get.
    fn take_round(&mut self, taken: &mut Vec<(Sender, T)>) {
        let seated = self.seated.iter().map(|key| Sender::Machine(*key));
        for sender in std::iter::once(Sender::Own).chain(seated).collect::<Vec<_>>() {
            self.take_turn(sender, taken);
        }
        let others: Vec<Sender> = self.next_others().take(2).collect();
        for sender in others {
            self.take_turn(sender, taken);
            self.last = Some(sender);
        }
    }

    /// Those that are not favoured, from the one on whose turn it is.
    fn next_others(&self) -> impl Iterator<Item = Sender> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let (after, until) = match self.last {
            Some(last) => ((Excluded(last), Unbounded), Some((Unbounded, Included(last)))),
            None => ((Excluded(Sender::Own), Unbounded), None),
        };
        let wrapped = until.into_iter().flat_map(|until| self.queues.range(until));
        let all = self.queues.range(after).chain(wrapped).map(|(sender, _)| *sender);
        all.filter(|sender| !self.is_favoured(sender))
    }

    fn take_turn(&mut self, sender: Sender, taken: &mut Vec<(Sender, T)>) {
        let is_favoured = self.is_favoured(&sender);
        let Some(queue) = self.queues.get_mut(&sender) else { return };
        queue.credit += ROUND;
        while let Some((bytes, cost, letter)) =
            queue.letters.pop_front_if(|(_, cost, _)| *cost <= queue.credit)
        {
            queue.credit -= cost;
            queue.bytes -= bytes;
            if !is_favoured {
                self.others = (self.others.0 - 1, self.others.1 - bytes);
            }
            taken.push((sender, letter));
        }
        if queue.letters.is_empty() {
            self.queues.remove(&sender);
        }
    }

    fn allowance(&self, now: Instant) -> Allowance {
        let is_busy = self.wished_at.is_some_and(|at| now.since(at) < BUSY);
        allowance(is_busy, self.limits.debt_max)
    }

    fn spend(&mut self, now: Instant, from: &Sender, cost: Duration) {
        self.budgets.spend(now, from, self.allowance(now), nanos(cost));
    }
}

#[cfg(test)]
mod tests;
