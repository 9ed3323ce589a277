//! The locks of some files, one request after the other, and those who wait for them.
//!
//! Nobody is told that a lock was given up before those who wait for it have tried: so whoever unlocks and
//! locks again comes after them, and what is noted of who waits for whom is right.

use std::sync::Arc;

use base::{Duration, Instant};

use crate::front::{Errno, Obstacle, Wish};

use super::{signals::Plight, waits::Waits};

/// How soon a lock that was had is tried again at first, and at the latest. Also how late it is noticed that
/// whoever waits was interrupted.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(200);
/// How long somebody waits who can't be seen from here: nobody could end that.
const UNSEEN_MAX: Duration = Duration::from_secs(60);

/// Says how it went.
pub(crate) type Answer = Box<dyn FnOnce(Result<(), Errno>) + Send>;
/// Says what is in the way.
pub(crate) type Found = Box<dyn FnOnce(Result<Option<Obstacle>, Errno>) + Send>;

/// Something to be done about locks.
pub(crate) enum Job {
    /// A lock is taken, changed or given up; and which thread waits until it can be, if one does.
    Take { wish: Wish, waiter: Option<u32>, answer: Answer },
    /// Somebody asks what is in the way.
    Look { wish: Wish, found: Found },
    /// Somebody closes a file.
    Unlock { inode: u64, owner: u64, answer: Answer },
    /// A handle is about to be closed.
    UnlockThrough { inode: u64, handle: u64, answer: Answer },
}

impl Job {
    pub(crate) fn inode(&self) -> u64 {
        match self {
            Job::Take { wish, .. } | Job::Look { wish, .. } => wish.inode,
            Job::Unlock { inode, .. } | Job::UnlockThrough { inode, .. } => *inode,
        }
    }
}

/// Where locks are had. As in [`Tree`](crate::Tree).
pub(crate) trait Keeper {
    fn lock(&self, wish: &Wish) -> Result<(), Errno>;
    fn obstacle(&self, wish: &Wish) -> Result<Option<Obstacle>, Errno>;
    fn unlock(&self, inode: u64, owner: u64) -> Result<(), Errno>;
    fn unlock_through(&self, inode: u64, handle: u64);
    /// How it stands with a thread that waits.
    fn plight(&self, thread: u32) -> Plight;
}

struct Waiter {
    ticket: u64,
    wish: Wish,
    thread: u32,
    since: Instant,
    pause: Duration,
    due: Instant,
    answer: Answer,
}

pub(crate) struct Lane<K> {
    keeper: K,
    waits: Arc<Waits>,
    /// In the order in which they came. Bounded by what may wait in all lanes.
    waiters: Vec<Waiter>,
}

impl<K: Keeper> Lane<K> {
    pub(crate) fn new(keeper: K, waits: Arc<Waits>) -> Lane<K> {
        Lane { keeper, waits, waiters: Vec::new() }
    }

    pub(crate) fn on_job(&mut self, now: Instant, job: Job) {
        match job {
            Job::Take { wish, waiter, answer } => self.on_take(now, wish, waiter, answer),
            Job::Look { wish, found } => found(self.keeper.obstacle(&wish)),
            Job::Unlock { inode, owner, answer } => {
                let result = self.keeper.unlock(inode, owner);
                self.wake(now, inode);
                answer(result);
            }
            Job::UnlockThrough { inode, handle, answer } => {
                self.keeper.unlock_through(inode, handle);
                self.wake(now, inode);
                answer(Ok(()));
            }
        }
    }

    fn on_take(&mut self, now: Instant, wish: Wish, waiter: Option<u32>, answer: Answer) {
        let result = self.keeper.lock(&wish);
        let thread = match (result, waiter) {
            (Err(errno), Some(thread)) if wish.hold.is_some() && may_come(errno) => thread,
            _ => {
                // What is given up, or shared from now on, may be what somebody waits for.
                if result.is_ok() && wish.hold != Some(true) {
                    self.wake(now, wish.inode);
                }
                return answer(result);
            }
        };
        let Some(ticket) = self.waits.enter(wish.owner) else { return answer(Err(Errno::NOLCK)) };
        let (since, pause) = (now, PAUSE_MIN);
        let waiter = Waiter { ticket, wish, thread, since, pause, due: now + pause, answer };
        if self.is_stuck(&waiter) {
            return self.end(waiter, Err(Errno::DEADLK));
        }
        self.waiters.push(waiter);
    }

    /// Lets those try who are due.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.try_all(now, |waiter| waiter.due <= now);
    }

    /// When [`Lane::tick`] has something to do.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.waiters.iter().map(|waiter| waiter.due).min()
    }

    /// Something about the locks of a file has changed.
    fn wake(&mut self, now: Instant, inode: u64) {
        let of_inode = self.waiters.iter_mut().filter(|waiter| waiter.wish.inode == inode);
        of_inode.for_each(|waiter| waiter.pause = PAUSE_MIN);
        self.try_all(now, |waiter| waiter.wish.inode == inode);
    }

    fn try_all(&mut self, now: Instant, is_meant: impl Fn(&Waiter) -> bool) {
        let mut at = 0;
        while at < self.waiters.len() {
            let outcome = match is_meant(&self.waiters[at]) {
                true => self.try_again(now, at),
                false => None,
            };
            match outcome {
                Some(outcome) => {
                    let waiter = self.waiters.remove(at);
                    self.end(waiter, outcome);
                }
                None => at += 1,
            }
        }
    }

    /// How a wait has ended, if it has.
    fn try_again(&mut self, now: Instant, at: usize) -> Option<Result<(), Errno>> {
        let waiter = &mut self.waiters[at];
        waiter.pause = (waiter.pause * 2).min(PAUSE_MAX);
        waiter.due = now + waiter.pause;
        let waiter = &self.waiters[at];
        match self.keeper.plight(waiter.thread) {
            Plight::Interrupted => return Some(Err(Errno::INTR)),
            Plight::Unseen if now >= waiter.since + UNSEEN_MAX => return Some(Err(Errno::NOLCK)),
            Plight::Unseen | Plight::Waits => {}
        }
        match self.keeper.lock(&waiter.wish) {
            Err(errno) if may_come(errno) => {}
            outcome => return Some(outcome),
        }
        self.is_stuck(waiter).then_some(Err(Errno::DEADLK))
    }

    /// Whether somebody waits for a lock of somebody who waits for them.
    fn is_stuck(&self, waiter: &Waiter) -> bool {
        let obstacle = self.keeper.obstacle(&waiter.wish).ok().flatten();
        self.waits.is_circle(waiter.ticket, obstacle.and_then(|obstacle| obstacle.owner))
    }

    fn end(&self, waiter: Waiter, outcome: Result<(), Errno>) {
        self.waits.leave(waiter.ticket);
        (waiter.answer)(outcome);
    }
}

/// Whether what was refused may be had later.
fn may_come(errno: Errno) -> bool {
    matches!(errno, Errno::AGAIN | Errno::TIMEDOUT)
}

#[cfg(test)]
mod tests;
