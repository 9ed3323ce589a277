//! Sets at a place: the reservoir of `load`, or a bare collection where its protection is removed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base::Instant;
use load::reservoir::{Cache, Marks, NotInserted, Outstanding, Rank, Ranks, Tally};

use super::level::{Level, Peak};

/// What awaits an answer, by the number of the question.
#[derive(Debug)]
pub enum Awaited<T> {
    /// As the graph declares it.
    Declared(Outstanding<u64, T>),
    /// Without its protection.
    Bare(BTreeMap<u64, T>, Level),
}

impl<T> Awaited<T> {
    /// Whether what it throttles may run.
    pub fn is_open(&self) -> bool {
        match self {
            Awaited::Declared(set) => set.is_open(),
            Awaited::Bare(..) => true,
        }
    }

    /// Notes that an answer is awaited; each number is used once.
    pub fn insert(
        &mut self,
        now: Instant,
        number: u64,
        item: T,
    ) -> Result<(), NotInserted<u64, T>> {
        match self {
            Awaited::Declared(set) => set.insert(now, number, item),
            Awaited::Bare(items, level) => {
                items.insert(number, item);
                level.enter();
                Ok(())
            }
        }
    }

    /// The first question is answered.
    pub fn answer(&mut self, now: Instant) -> Option<T> {
        match self {
            Awaited::Declared(set) => {
                let number = *set.iter().next()?.0;
                set.remove(now, &number)
            }
            Awaited::Bare(items, level) => {
                let (_, item) = items.pop_first()?;
                level.leave();
                Some(item)
            }
        }
    }

    /// The most that was ever there.
    pub fn peak(&self, now: Instant) -> Peak {
        match self {
            Awaited::Declared(set) => Peak::new(set.spec(), set.meter(now)),
            Awaited::Bare(_, level) => level.peak(),
        }
    }
}

/// How much there is of something that the model keeps in a collection of its own.
#[derive(Debug)]
pub enum Count {
    /// As the graph declares it.
    Declared(Tally),
    /// Without its protection.
    Bare(Level),
}

impl Count {
    /// Whether what it throttles may run.
    pub fn is_open(&self) -> bool {
        match self {
            Count::Declared(tally) => tally.is_open(),
            Count::Bare(_) => true,
        }
    }

    /// One more.
    pub fn enter(&mut self, now: Instant) {
        match self {
            Count::Declared(tally) => tally.enter(now, 1).expect("whoever enters has asked"),
            Count::Bare(level) => level.enter(),
        }
    }

    /// One less.
    pub fn leave(&mut self, now: Instant) {
        match self {
            Count::Declared(tally) => tally.leave(now, 1),
            Count::Bare(level) => level.leave(),
        }
    }

    /// The most that was ever there.
    pub fn peak(&self, now: Instant) -> Peak {
        match self {
            Count::Declared(tally) => Peak::new(tally.spec(), tally.meter(now)),
            Count::Bare(level) => level.peak(),
        }
    }
}

/// What is kept until the room is needed, or for ever.
#[derive(Debug)]
pub enum Kept {
    /// As the graph declares it.
    Declared(Cache<u64>),
    /// Without its protection.
    Bare(BTreeSet<(Instant, u64)>, Level),
}

impl Kept {
    /// Keeps a thing that is not there yet; what comes out is released now.
    #[must_use = "the least recently used thing has left; release it"]
    pub fn put(&mut self, now: Instant, key: u64) -> Option<u64> {
        match self {
            Kept::Declared(cache) => {
                let mut early = None;
                cache.put(key, (), 1, now, |key, ()| early = Some(key));
                early
            }
            Kept::Bare(items, level) => {
                items.insert((now, key));
                level.enter();
                None
            }
        }
    }

    /// Takes the least recently used thing, if that was not after `used_at`.
    pub fn take_unused(&mut self, used_at: Instant) -> Option<u64> {
        match self {
            Kept::Declared(cache) => cache.take_unused(used_at).map(|(key, ())| key),
            Kept::Bare(items, level) => {
                items.first().filter(|(at, _)| *at <= used_at)?;
                let (_, key) = items.pop_first()?;
                level.leave();
                Some(key)
            }
        }
    }

    /// The most that was ever there.
    pub fn peak(&self) -> Peak {
        match self {
            Kept::Declared(cache) => Peak::new(cache.spec(), cache.meter()),
            Kept::Bare(_, level) => level.peak(),
        }
    }
}

/// Files that wait for their moment: one entry for each, or one for each update.
#[derive(Debug)]
pub enum Resting {
    /// As the graph declares it.
    Declared(Marks<u64>),
    /// Without its protection. All wait equally long, so this is in the order of the moments.
    Bare(VecDeque<(Instant, u64)>, Level),
}

impl Resting {
    /// Lets a file wait until then; one that waits already goes on waiting.
    pub fn mark(&mut self, file: u64, due_at: Instant) {
        match self {
            Resting::Declared(marks) => {
                if marks.get(&file).is_none() {
                    marks.mark(file, (), due_at);
                }
            }
            Resting::Bare(items, level) => {
                items.push_back((due_at, file));
                level.enter();
            }
        }
    }

    /// Takes a file whose moment has come.
    pub fn take_due(&mut self, now: Instant) -> Option<u64> {
        match self {
            Resting::Declared(marks) => marks.take_due(now).map(|(file, ())| file),
            Resting::Bare(items, level) => {
                let (_, file) = items.pop_front_if(|(due_at, _)| *due_at <= now)?;
                level.leave();
                Some(file)
            }
        }
    }

    /// The most that was ever there.
    pub fn peak(&self) -> Peak {
        match self {
            Resting::Declared(marks) => Peak::new(marks.spec(), marks.meter()),
            Resting::Bare(_, level) => level.peak(),
        }
    }
}

/// Files that lack a copy, by rank: each once, or once for each time that one was missed.
#[derive(Debug)]
pub enum Tiers {
    /// As the graph declares it.
    Declared(Ranks<u64>),
    /// Without its protection.
    Bare(BTreeMap<Rank, VecDeque<u64>>, Level),
}

impl Tiers {
    /// Lets a file wait for the copy of this rank.
    pub fn put(&mut self, file: u64, rank: Rank) {
        match self {
            Tiers::Declared(ranks) => ranks.put(file, rank),
            Tiers::Bare(tiers, level) => {
                tiers.entry(rank).or_default().push_back(file);
                level.enter();
            }
        }
    }

    /// Takes the next file, the lowest rank first.
    pub fn take(&mut self) -> Option<(u64, Rank)> {
        match self {
            Tiers::Declared(ranks) => ranks.take(Rank::MAX),
            Tiers::Bare(tiers, level) => {
                let (&rank, tier) = tiers.iter_mut().find(|(_, tier)| !tier.is_empty())?;
                let file = tier.pop_front()?;
                level.leave();
                Some((file, rank))
            }
        }
    }

    /// The most that was ever there.
    pub fn peak(&self) -> Peak {
        match self {
            Tiers::Declared(ranks) => Peak::new(ranks.spec(), ranks.meter()),
            Tiers::Bare(_, level) => level.peak(),
        }
    }
}
