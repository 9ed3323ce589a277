//! A disk that moves one object at a time.

use std::collections::VecDeque;

use base::{Duration, Instant};

/// What the disk is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// This object is wanted in memory.
    Read(u64),
    /// This object is to be stored.
    Write(u64),
}

/// Reads go first, because somebody waits for them; both are first come, first served.
///
/// It needs no bound of its own: reads wait in the pager's 9F and writes in its 9E.
#[derive(Debug)]
pub struct Disk {
    transfer: Duration,
    reads: VecDeque<u64>,
    writes: VecDeque<u64>,
    /// What it does now, and when that is done.
    busy: Option<(Instant, Job)>,
}

impl Disk {
    /// An idle disk that takes this long for an object.
    pub fn new(transfer: Duration) -> Disk {
        Disk { transfer, reads: VecDeque::new(), writes: VecDeque::new(), busy: None }
    }

    /// Takes a job.
    pub fn ask(&mut self, now: Instant, job: Job) {
        match job {
            Job::Read(key) => self.reads.push_back(key),
            Job::Write(key) => self.writes.push_back(key),
        }
        self.start(now);
    }

    /// When the present job is done.
    pub fn done_at(&self) -> Option<Instant> {
        self.busy.map(|(done_at, _)| done_at)
    }

    /// The job that is done by now, if one is.
    pub fn take_done(&mut self, now: Instant) -> Option<Job> {
        let (_, job) = self.busy.take_if(|(done_at, _)| *done_at <= now)?;
        self.start(now);
        Some(job)
    }

    fn start(&mut self, now: Instant) {
        if self.busy.is_none() {
            let read = self.reads.pop_front().map(Job::Read);
            let job = read.or_else(|| self.writes.pop_front().map(Job::Write));
            self.busy = job.map(|job| (now + self.transfer, job));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_reads_first() {
        let mut disk = Disk::new(Duration::from_secs(2));
        let at = Instant::from_secs;
        for job in [Job::Write(1), Job::Write(2), Job::Read(3)] {
            disk.ask(at(0), job);
        }
        assert_eq!(disk.take_done(at(1)), None);
        assert_eq!(disk.take_done(at(2)), Some(Job::Write(1)), "it was alone when it came");
        assert_eq!(disk.take_done(at(4)), Some(Job::Read(3)));
        assert_eq!(disk.done_at(), Some(at(6)));
        assert_eq!(disk.take_done(at(6)), Some(Job::Write(2)));
        assert_eq!((disk.done_at(), disk.take_done(at(9))), (None, None));
    }
}
