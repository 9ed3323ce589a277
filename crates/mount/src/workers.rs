//! A few threads for what takes long, so that whoever reads the kernel's requests need not wait.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
};

type Job = Box<dyn FnOnce() + Send>;

/// The most jobs that wait.
const WAITING_MAX: usize = 256;

/// Threads that do jobs. They end when all [`Workers`] that share them are gone and nothing waits.
#[derive(Clone)]
pub(crate) struct Workers {
    jobs: SyncSender<Job>,
}

impl Workers {
    pub(crate) fn start(count: usize) -> std::io::Result<Workers> {
        let (jobs, waiting) = sync_channel(WAITING_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..count {
            let waiting = Arc::clone(&waiting);
            let name = format!("mount-{number}");
            thread::Builder::new().name(name).spawn(move || work(&waiting))?;
        }
        Ok(Workers { jobs })
    }

    /// Has a job done; here and now, if too many wait.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        match self.jobs.try_send(Box::new(job)) {
            Ok(()) => {}
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => job(),
        }
    }
}

fn work(waiting: &Mutex<Receiver<Job>>) {
    loop {
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => job(),
            Err(_) => return,
        }
    }
}
