//! Runs that do not know of each other, on as many threads as the computer has processors.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "each run is deterministic by itself and answers in its own place, so that the order in which \
              threads come to it changes nothing"
)]

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

use crate::Trial;

/// Where a run says how far it is.
pub struct Progress(mpsc::Sender<String>);

impl Progress {
    /// Tells people what goes on.
    pub fn say(&self, what: String) {
        // Nobody listens only if the experiment has panicked, and then nobody has to.
        let _ = self.0.send(what);
    }
}

/// Does all of these, and answers in their order.
pub fn all<I: Sync, T: Send>(
    trial: &mut Trial,
    items: &[I],
    run: impl Fn(&I, &Progress) -> T + Sync,
) -> Vec<T> {
    let (sender, receiver) = mpsc::channel();
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<T>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let progress = Progress(sender.clone());
            let (next, results, run) = (&next, &results, &run);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(item), Some(place)) = (items.get(at), results.get(at)) else { break };
                    let result = run(item, &progress);
                    *place.lock().expect("nobody panics with it") = Some(result);
                }
            });
        }
        drop(sender);
        receiver.iter().for_each(|what| trial.say(&what));
    });
    let result = |place: Mutex<Option<T>>| {
        let result = place.into_inner().expect("nobody panics with it");
        result.expect("every run ends")
    };
    results.into_iter().map(result).collect()
}
