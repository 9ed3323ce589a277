//! Who should sit in the group, as one member sees it: told who was heard and when, it says whom to call and
//! whom to wish for.
//!
//! What it wishes is its own view. Nobody goes unless a quorum has the same one, so a liar alone, or one whose
//! line is bad, sends nobody away.

use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, Instant, PublicKey};
use group::{Seat, Seats};

use crate::book::Book;

/// How the seats of a group are filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seating {
    /// A group has so many members as soon as so many machines are there.
    pub members: usize,
    /// A member that is not heard for so long loses its seat, if another machine can take it.
    pub away_after: Duration,
}

impl Default for Seating {
    fn default() -> Seating {
        Seating { members: 4, away_after: Duration::from_secs(120) }
    }
}

/// So many machines that are no members are looked at, the first to come first.
pub(crate) const OTHERS_MAX: usize = 64;
/// So often is everybody called who was not heard, until somebody counts as away.
const CALLS: u32 = 4;
/// Who comes may be waited for, so that it is looked so many times as often then.
const LOOKS: u32 = 16;

/// Who was heard, and what follows.
#[derive(Debug)]
pub(crate) struct Attendance {
    seating: Seating,
    /// So many are remembered. Those who matter have room.
    heard_max: usize,
    heard: BTreeMap<PublicKey, Instant>,
    looked_at: Instant,
    look_at: Option<Instant>,
    /// What was wished last, if not the members that are.
    wished: Option<Vec<Seat>>,
}

/// What comes of looking round.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whom to call, so that they are heard.
    pub(crate) calls: Vec<Seat>,
    /// Who should be the members from now on, if that is news.
    pub(crate) wish: Option<Vec<Seat>>,
}

impl Attendance {
    /// Nobody was heard yet, and nobody counts as away.
    pub(crate) fn new(seating: Seating, heard_max: usize, now: Instant) -> Attendance {
        let look_at = Some(now);
        Attendance {
            seating,
            heard_max,
            heard: BTreeMap::new(),
            looked_at: now,
            look_at,
            wished: None,
        }
    }

    /// When to look round next.
    pub(crate) fn look_at(&self) -> Option<Instant> {
        self.look_at
    }

    /// The machines of the cell, or the members, are others: it has to be looked at once.
    pub(crate) fn on_change(&mut self) {
        self.look_at = Some(Instant::START);
    }

    /// A machine has said something.
    pub(crate) fn on_heard(&mut self, now: Instant, key: &PublicKey) {
        if !self.is_here(now, key) {
            let soon = self.looked_at + self.seating.away_after / CALLS / LOOKS;
            self.look_at = Some(self.look_at.map_or(soon, |at| at.min(soon)));
        }
        if self.heard.len() < self.heard_max || self.heard.contains_key(key) {
            self.heard.insert(*key, now);
        }
    }

    /// Looks round: who is silent is called, and who is silent for too long should go.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        me: &PublicKey,
        members: &Seats,
        book: &Book,
    ) -> Look {
        let pause = self.seating.away_after / CALLS;
        if now.since(self.looked_at) > 2 * pause {
            // Whoever has slept has heard nobody meanwhile, and knows nothing of anybody.
            self.heard.values_mut().for_each(|at| *at = now);
        }
        self.looked_at = now;
        let seats: BTreeSet<&PublicKey> = members.list().iter().map(|seat| &seat.key).collect();
        let others = book.machines().map(|(_, machine)| &machine.key);
        let others = others.filter(|key| !seats.contains(key) && !book.is_revoked(key));
        let others: Vec<&PublicKey> = others.take(OTHERS_MAX).collect();
        self.heard.retain(|key, _| seats.contains(key) || others.contains(&key));
        for key in &seats {
            self.heard.entry(**key).or_insert(now);
        }
        let wish = self.choose_members(now, me, members, &others, book);
        let is_short = members.list().len() < self.seating.members
            && members.list().len() + others.len() >= self.seating.members;
        let is_worried = is_short || seats.iter().any(|key| !self.is_in_order(now, me, key, book));
        let called = seats.into_iter().filter(|key| !book.is_revoked(key));
        let called = called.chain(others.into_iter().filter(|_| is_worried));
        let silent = called.filter(|key| *key != me && !self.is_heard_within(now, key, pause));
        let calls: Vec<Seat> = silent.map(first_seat).collect();
        let is_quiet = members.list().len() == 1 && !is_short;
        self.look_at = (!is_quiet).then_some(now + pause);
        let is_news = wish != self.wished;
        self.wished = wish.clone();
        let wish = is_news.then(|| wish.unwrap_or_else(|| members.list().to_vec()));
        Look { calls, wish }
    }

    /// Who should be the members, if not those who are.
    fn choose_members(
        &self,
        now: Instant,
        me: &PublicKey,
        members: &Seats,
        others: &[&PublicKey],
        book: &Book,
    ) -> Option<Vec<Seat>> {
        let seats = members.list();
        let others = others.iter().filter(|key| self.is_here(now, key));
        let mut others = others.map(|key| first_seat(key));
        if let Some(missing) = self.seating.members.checked_sub(seats.len()).filter(|n| *n > 0) {
            let more: Vec<Seat> = others.take(missing).collect();
            return (more.len() == missing).then(|| sorted(seats.iter().copied().chain(more)));
        }
        let here = seats.iter().filter(|seat| self.is_in_order(now, me, &seat.key, book));
        if here.count() < members.quorum() {
            return None;
        }
        let is_away = |seat: &&Seat| {
            seat.key != *me && !self.is_heard_within(now, &seat.key, self.seating.away_after)
        };
        let revoked = seats.iter().find(|seat| book.is_revoked(&seat.key));
        let leaving = revoked.or_else(|| seats.iter().find(is_away))?;
        let coming = others.next()?;
        let staying = seats.iter().filter(|seat| *seat != leaving).copied();
        Some(sorted(staying.chain([coming])))
    }

    /// Whether a member is there, and may be.
    fn is_in_order(&self, now: Instant, me: &PublicKey, key: &PublicKey, book: &Book) -> bool {
        (key == me || self.is_here(now, key)) && !book.is_revoked(key)
    }

    /// Whether somebody was heard so lately that it is there, as far as can be told.
    fn is_here(&self, now: Instant, key: &PublicKey) -> bool {
        self.is_heard_within(now, key, self.seating.away_after / 2)
    }

    fn is_heard_within(&self, now: Instant, key: &PublicKey, span: Duration) -> bool {
        self.heard.get(key).is_some_and(|at| now.since(*at) < span)
    }
}

/// Who has lost a disk comes with a new key, so nobody has another seat than the first.
fn first_seat(key: &PublicKey) -> Seat {
    Seat { key: *key, incarnation: 0 }
}

fn sorted(seats: impl Iterator<Item = Seat>) -> Vec<Seat> {
    let mut seats: Vec<Seat> = seats.collect();
    seats.sort_unstable();
    seats
}

#[cfg(test)]
mod tests;
