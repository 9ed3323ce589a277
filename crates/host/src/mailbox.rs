//! The mailroom of this machine's member, between the threads that bring letters and the one that reads them.
//!
//! What does not fit is dropped, as on a network: whoever says something that matters says it again until it is
//! answered.

use std::{
    collections::BTreeSet,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use base::PublicKey;
use node::{
    Limits, Mailroom,
    mailroom::{Kind, Sender},
};

use crate::clock::Clock;

/// The mailroom, and who waits for it.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    clock: Clock,
}

#[derive(Debug)]
struct State<T> {
    mailroom: Mailroom<T>,
    is_closed: bool,
    /// Since when whoever takes letters is at work on some.
    away: Option<Instant>,
}

impl<T> Mailbox<T> {
    pub(crate) fn new(limits: Limits) -> Mailbox<T> {
        let mailroom = Mailroom::new(limits);
        let state = Mutex::new(State { mailroom, is_closed: false, away: None });
        Mailbox { state, arrived: Condvar::new(), clock: Clock }
    }

    /// Puts in a letter of this machine's own, if it is open and there is room. Whether it is in.
    pub(crate) fn post(&self, kind: Kind, letter: T) -> bool {
        self.post_from(Sender::Own, kind, 0, letter)
    }

    /// The same with a letter of so many bytes that somebody has sent.
    pub(crate) fn post_from(&self, from: Sender, kind: Kind, bytes: usize, letter: T) -> bool {
        let mut state = self.lock();
        let is_in =
            !state.is_closed && state.mailroom.put(self.clock.now(), from, kind, bytes, letter);
        if is_in {
            self.arrived.notify_one();
        }
        is_in
    }

    /// These sit in the group, or are to.
    pub(crate) fn seat(&self, seated: BTreeSet<PublicKey>) {
        self.lock().mailroom.seat(seated);
    }

    /// To read something of somebody has cost so much.
    pub(crate) fn charge(&self, from: &Sender, cost: Duration) {
        self.lock().mailroom.charge(self.clock.now(), from, cost);
    }

    /// How long nothing more should be taken in from somebody.
    pub(crate) fn rest_from(&self, from: &Sender) -> Duration {
        self.lock().mailroom.rest(self.clock.now(), from)
    }

    /// How many letters were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().mailroom.dropped()
    }

    /// Takes a round of letters, waiting for one at most this long, or for ever. None when it is closed and empty.
    pub(crate) fn take(&self, wait: Option<Duration>) -> Option<Vec<(Sender, T)>> {
        let mut state = self.lock();
        state.away = None;
        if state.mailroom.is_empty() && !state.is_closed {
            state = match wait {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(wait) => {
                    let waited = self.arrived.wait_timeout(state, wait);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        let is_over = state.is_closed && state.mailroom.is_empty();
        state.away = (!is_over).then(Instant::now);
        (!is_over).then(|| state.mailroom.take())
    }

    /// Waits so long, or until it is closed. Whether it is still open.
    pub(crate) fn rest(&self, wait: Duration) -> bool {
        let mut state = self.lock();
        state.away = None;
        let rested = self.arrived.wait_timeout_while(state, wait, |state| !state.is_closed);
        let mut state = rested.unwrap_or_else(PoisonError::into_inner).0;
        state.away = Some(Instant::now());
        !state.is_closed
    }

    /// How long whoever takes letters has been at work on the last ones. Nothing while it waits.
    pub(crate) fn away(&self) -> Duration {
        self.lock().away.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox() -> Mailbox<u32> {
        Mailbox::new(Limits { posts_max: 2, ..Limits::default() })
    }

    fn taken(mailbox: &Mailbox<u32>) -> Option<Vec<u32>> {
        Some(mailbox.take(None)?.into_iter().map(|(_, letter)| letter).collect())
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_the_rest_comes_in_order() {
        let mailbox = mailbox();
        assert_eq!([0, 1, 2].map(|letter| mailbox.post(Kind::Word, letter)), [true, true, false]);
        assert_eq!(taken(&mailbox).unwrap(), [0, 1]);
        assert_eq!(mailbox.dropped(), 1);
    }

    #[test]
    fn whoever_takes_letters_is_away_until_it_comes_for_more() {
        let mailbox = mailbox();
        mailbox.post(Kind::Word, 7);
        assert_eq!(mailbox.away(), Duration::ZERO);
        taken(&mailbox).unwrap();
        assert!(mailbox.away() > Duration::ZERO);
        mailbox.close();
        mailbox.take(None);
        assert_eq!(mailbox.away(), Duration::ZERO);
    }

    #[test]
    fn a_closed_mailbox_hands_out_what_it_has_and_then_ends() {
        let mailbox = mailbox();
        mailbox.post(Kind::Word, 7);
        mailbox.close();
        assert!(!mailbox.post(Kind::Word, 8), "whoever goes on talking does not keep it open");
        assert_eq!(taken(&mailbox).unwrap(), [7]);
        assert!(mailbox.take(None).is_none());
    }
}
