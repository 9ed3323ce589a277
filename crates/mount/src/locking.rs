//! Threads that take locks and give them up, and wait for those that others have, so that whoever reads the
//! kernel's requests need not.

mod lane;
mod signals;
mod waits;

use std::{
    collections::VecDeque,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use base::Instant;

use crate::{
    front::{Errno, Obstacle, Wish},
    time,
    tree::Tree,
};

use lane::{Keeper, Lane};
use signals::Plight;
use waits::Waits;

pub(crate) use lane::Job;

/// What is asked of one file is done in order, and that of others meanwhile if they are in another lane.
const LANES: usize = 4;
/// The most requests that wait for their turn in a lane. Whoever brings one more waits with it.
const WAITING_MAX: usize = 256;

/// The threads. They end with this.
pub(crate) struct Locking {
    lanes: Vec<Arc<Queue>>,
}

#[derive(Default)]
struct Queue {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Default)]
struct Jobs {
    /// At most [`WAITING_MAX`].
    waiting: VecDeque<Job>,
    is_over: bool,
}

impl Locking {
    pub(crate) fn start(tree: &Arc<Tree>) -> io::Result<Locking> {
        let waits = Arc::new(Waits::default());
        let mut locking = Locking { lanes: Vec::new() };
        for number in 0..LANES {
            let queue = Arc::new(Queue::default());
            let (jobs, mut lane) =
                (Arc::clone(&queue), Lane::new(Arc::clone(tree), Arc::clone(&waits)));
            locking.lanes.push(queue);
            let name = format!("mount-locks-{number}");
            thread::Builder::new().name(name).spawn(move || work(&jobs, &mut lane))?;
        }
        Ok(locking)
    }

    /// Has a job done, after those of the same file that came before.
    pub(crate) fn run(&self, job: Job) {
        let lane = (job.inode() % self.lanes.len() as u64) as usize;
        let queue = &self.lanes[lane];
        let is_full = |jobs: &mut Jobs| jobs.waiting.len() >= WAITING_MAX;
        let room = queue.changed.wait_while(queue.lock(), is_full);
        room.unwrap_or_else(PoisonError::into_inner).waiting.push_back(job);
        queue.changed.notify_all();
    }
}

impl Drop for Locking {
    fn drop(&mut self) {
        for queue in &self.lanes {
            queue.lock().is_over = true;
            queue.changed.notify_all();
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job, or none if somebody who waits is due before there is one.
    fn next(&self, wake_at: Option<Instant>) -> Result<Option<Job>, Over> {
        let mut jobs = self.lock();
        loop {
            if let Some(job) = jobs.waiting.pop_front() {
                self.changed.notify_all();
                return Ok(Some(job));
            }
            if jobs.is_over {
                return Err(Over);
            }
            if wake_at.is_some_and(|at| at <= time::now()) {
                return Ok(None);
            }
            jobs = time::wait_for(&self.changed, jobs, wake_at);
        }
    }
}

/// Nobody asks any more.
struct Over;

fn work(jobs: &Queue, lane: &mut Lane<Arc<Tree>>) {
    while let Ok(job) = jobs.next(lane.wake_at()) {
        // Dropping what would have answered says EIO.
        let step = AssertUnwindSafe(|| {
            let now = time::now();
            if let Some(job) = job {
                lane.on_job(now, job);
            }
            lane.tick(now);
        });
        if catch_unwind(step).is_err() {
            eprintln!("croft: a lock failed by a mistake of ours; whoever asked was told EIO");
        }
    }
}

impl Keeper for Arc<Tree> {
    fn lock(&self, wish: &Wish) -> Result<(), Errno> {
        Tree::lock(self, wish)
    }

    fn obstacle(&self, wish: &Wish) -> Result<Option<Obstacle>, Errno> {
        Tree::obstacle(self, wish)
    }

    fn unlock(&self, inode: u64, owner: u64) -> Result<(), Errno> {
        Tree::unlock(self, inode, owner)
    }

    fn unlock_through(&self, inode: u64, handle: u64) {
        Tree::unlock_through(self, inode, handle);
    }

    fn plight(&self, thread: u32) -> Plight {
        signals::plight(thread)
    }
}
