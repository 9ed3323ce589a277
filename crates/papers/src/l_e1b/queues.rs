//! Queues at a place: the reservoir of `load`, or a bare `VecDeque` where its protection is removed.

use std::collections::VecDeque;

use base::Instant;
use load::reservoir::{Dropped, Full, Popped, Releasing, Shedding, Throttling};

use super::level::{Level, Peak};

/// A queue that throttles what fills it, or one that does not.
#[derive(Debug)]
pub enum Line<T> {
    /// As the graph declares it.
    Declared(Throttling<T>),
    /// Without its protection.
    Bare(VecDeque<T>, Level),
}

impl<T> Line<T> {
    /// Whether what it throttles may run.
    pub fn is_open(&self) -> bool {
        match self {
            Line::Declared(queue) => queue.is_open(),
            Line::Bare(..) => true,
        }
    }

    /// Whether one more fits, also one that was on its way when it closed.
    pub fn has_room(&self) -> bool {
        match self {
            Line::Declared(queue) => queue.level() < queue.spec().capacity,
            Line::Bare(..) => true,
        }
    }

    /// Puts an item at the end, or hands it back.
    pub fn push(&mut self, now: Instant, item: T) -> Result<(), Full<T>> {
        match self {
            Line::Declared(queue) => queue.push(now, item),
            Line::Bare(items, level) => {
                items.push_back(item);
                level.enter();
                Ok(())
            }
        }
    }

    /// The oldest item, left where it is.
    pub fn first(&self) -> Option<&T> {
        match self {
            Line::Declared(queue) => queue.first(),
            Line::Bare(items, _) => items.front(),
        }
    }

    /// Takes the oldest item.
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        match self {
            Line::Declared(queue) => queue.pop(now),
            Line::Bare(items, level) => {
                let item = items.pop_front()?;
                level.leave();
                Some(item)
            }
        }
    }

    /// The most that was ever there.
    pub fn peak(&self, now: Instant) -> Peak {
        match self {
            Line::Declared(queue) => Peak::new(queue.spec(), queue.meter(now)),
            Line::Bare(_, level) => level.peak(),
        }
    }
}

/// A queue that lets its oldest item go when it is full, or one that is never full.
#[derive(Debug)]
pub enum Buffer<T> {
    /// As the graph declares it.
    Declared(Releasing<T>),
    /// Without its protection.
    Bare(VecDeque<T>, Level),
}

impl<T> Buffer<T> {
    /// Puts an item at the end; what comes out is released now.
    #[must_use = "the oldest item has left; release it along its normal path"]
    pub fn push(&mut self, item: T) -> Option<T> {
        match self {
            Buffer::Declared(queue) => queue.push(item),
            Buffer::Bare(items, level) => {
                items.push_back(item);
                level.enter();
                None
            }
        }
    }

    /// Takes the oldest item in its own time.
    pub fn pop(&mut self) -> Option<T> {
        match self {
            Buffer::Declared(queue) => queue.pop(),
            Buffer::Bare(items, level) => {
                let item = items.pop_front()?;
                level.leave();
                Some(item)
            }
        }
    }

    /// The most that was ever there.
    pub fn peak(&self) -> Peak {
        match self {
            Buffer::Declared(queue) => Peak::new(queue.spec(), queue.meter()),
            Buffer::Bare(_, level) => level.peak(),
        }
    }
}

/// A queue that sheds what does not fit, or one where everything fits.
#[derive(Debug)]
pub enum Intake<T> {
    /// As the graph declares it.
    Declared(Shedding<T>),
    /// Without its protection.
    Bare(VecDeque<(Instant, T)>, Level),
}

impl<T> Intake<T> {
    /// Puts an item at the end, wanted until `deadline`.
    pub fn push(&mut self, item: T, deadline: Instant) -> Result<(), Dropped<T>> {
        match self {
            Intake::Declared(queue) => queue.push(item, deadline),
            Intake::Bare(items, level) => {
                items.push_back((deadline, item));
                level.enter();
                Ok(())
            }
        }
    }

    /// Takes the oldest item that somebody still wants; the expired before it are dropped (L53).
    ///
    /// It counts until it is [`done`](Intake::done).
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        loop {
            let popped = match self {
                Intake::Declared(queue) => queue.pop(now)?,
                Intake::Bare(items, level) => {
                    let (deadline, item) = items.pop_front()?;
                    if deadline <= now {
                        level.leave();
                        Popped::Expired(item)
                    } else {
                        Popped::Fresh(item)
                    }
                }
            };
            if let Popped::Fresh(item) = popped {
                return Some(item);
            }
        }
    }

    /// An item that was taken has been served.
    pub fn done(&mut self) {
        match self {
            Intake::Declared(queue) => queue.done(),
            Intake::Bare(_, level) => level.leave(),
        }
    }

    /// The most that was ever there.
    pub fn peak(&self) -> Peak {
        match self {
            Intake::Declared(queue) => Peak::new(queue.spec(), queue.meter()),
            Intake::Bare(_, level) => level.peak(),
        }
    }
}
