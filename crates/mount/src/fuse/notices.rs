//! Tells the kernel what it has to forget, on a thread of its own: whoever serves a request may not, because
//! the kernel may hold what this would wait for.

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use crate::front::Change;

/// The most inodes, and the most names, that wait. The kernel goes on believing what does not fit.
const WAITING_MAX: usize = 1 << 20;

/// What the kernel has to be told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Notice {
    Names,
    Inode(u64),
    Bytes(u64),
    Name(u64, Vec<u8>),
}

/// What waits to be told.
pub(super) struct Notices {
    waiting: Mutex<Waiting>,
    woken: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// However often something changes, it is told once. At most [`WAITING_MAX`].
    notices: BTreeSet<Notice>,
    is_over: bool,
}

impl Notices {
    /// Starts the thread, which calls `tell` until [`Notices::stop`] or until that says that it is over.
    pub(super) fn start(
        tell: impl Fn(&Notice) -> bool + Send + 'static,
    ) -> io::Result<Arc<Notices>> {
        let notices = Arc::new(Notices { waiting: Mutex::default(), woken: Condvar::new() });
        let told = Arc::clone(&notices);
        thread::Builder::new().name("mount-notices".to_owned()).spawn(move || {
            while let Some(notice) = told.next() {
                if !tell(&notice) {
                    told.stop();
                }
            }
        })?;
        Ok(notices)
    }

    /// Has something told soon. Never waits for the kernel.
    pub(super) fn note(&self, change: Change<'_>) {
        let mut waiting = self.lock();
        if waiting.is_over || waiting.notices.len() >= WAITING_MAX {
            return;
        }
        waiting.notices.insert(match change {
            Change::Names => Notice::Names,
            Change::Inode(inode) => Notice::Inode(inode),
            Change::Bytes(inode) => Notice::Bytes(inode),
            Change::Name(directory, name) => Notice::Name(directory, name.to_vec()),
        });
        self.woken.notify_one();
    }

    /// Nobody is left to be told.
    pub(super) fn stop(&self) {
        let mut waiting = self.lock();
        waiting.is_over = true;
        waiting.notices.clear();
        self.woken.notify_one();
    }

    fn next(&self) -> Option<Notice> {
        let waited = self
            .woken
            .wait_while(self.lock(), |waiting| waiting.notices.is_empty() && !waiting.is_over);
        waited.unwrap_or_else(PoisonError::into_inner).notices.pop_first()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn whoever_notes_something_never_waits_and_what_waits_is_told_once() {
        let (told, heard) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let notices = Notices::start(move |notice| {
            told.send(notice.clone()).unwrap();
            may_go_on.recv().is_ok()
        })
        .unwrap();
        notices.note(Change::Inode(1));
        assert_eq!(heard.recv(), Ok(Notice::Inode(1)));
        // The kernel is slow, and much changes.
        for _ in 0..1_000 {
            notices.note(Change::Inode(2));
            notices.note(Change::Inode(1));
            notices.note(Change::Name(1, b"a"));
        }
        (0..4).for_each(|_| go_on.send(()).unwrap());
        let expected = [Notice::Inode(1), Notice::Inode(2), Notice::Name(1, b"a".to_vec())];
        assert_eq!(expected.each_ref().map(|_| heard.recv().unwrap()), expected);
        notices.stop();
        assert!(heard.recv().is_err(), "the thread has ended");
    }
}
