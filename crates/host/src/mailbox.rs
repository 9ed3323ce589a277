//! A bounded queue between two threads, which drops what does not fit.
//!
//! It stands for a network: whoever says something that matters says it again until it is answered.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The queue.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    /// The most letters that wait.
    count_max: usize,
}

#[derive(Debug)]
struct State<T> {
    letters: VecDeque<T>,
    is_closed: bool,
    /// Since when whoever takes letters is at work on some.
    away: Option<Instant>,
}

impl<T> Mailbox<T> {
    pub(crate) fn new(count_max: usize) -> Mailbox<T> {
        let state = Mutex::new(State { letters: VecDeque::new(), is_closed: false, away: None });
        Mailbox { state, arrived: Condvar::new(), count_max }
    }

    /// Puts a letter in, if it is open and there is room. Whether it is in.
    pub(crate) fn post(&self, letter: T) -> bool {
        self.post_within(letter, self.count_max)
    }

    /// The same, if there are so few: whoever has no more to say than others leaves room for them.
    pub(crate) fn post_within(&self, letter: T, count_max: usize) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = state.letters.len() < count_max && !state.is_closed;
        if has_room {
            state.letters.push_back(letter);
            self.arrived.notify_one();
        }
        has_room
    }

    /// Takes all letters, waiting for one at most this long, or for ever. None when it is closed and
    /// empty.
    pub(crate) fn take(&self, wait: Option<Duration>) -> Option<VecDeque<T>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.away = None;
        if state.letters.is_empty() && !state.is_closed {
            state = match wait {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(wait) => {
                    let waited = self.arrived.wait_timeout(state, wait);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        let is_over = state.is_closed && state.letters.is_empty();
        state.away = (!is_over).then(Instant::now);
        (!is_over).then(|| std::mem::take(&mut state.letters))
    }

    /// Waits so long, or until it is closed. Whether it is still open.
    pub(crate) fn rest(&self, wait: Duration) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.away = None;
        let rested = self.arrived.wait_timeout_while(state, wait, |state| !state.is_closed);
        let mut state = rested.unwrap_or_else(PoisonError::into_inner).0;
        state.away = Some(Instant::now());
        !state.is_closed
    }

    /// How long whoever takes letters has been at work on the last ones. Nothing while it waits.
    pub(crate) fn away(&self) -> Duration {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.away.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_dropped_and_the_rest_comes_in_order() {
        let mailbox = Mailbox::new(2);
        assert_eq!([0, 1, 2].map(|letter| mailbox.post(letter)), [true, true, false]);
        assert_eq!(mailbox.take(None).unwrap(), [0, 1]);
    }

    #[test]
    fn whoever_takes_letters_is_away_until_it_comes_for_more() {
        let mailbox = Mailbox::new(2);
        mailbox.post(7);
        assert_eq!(mailbox.away(), Duration::ZERO);
        mailbox.take(None).unwrap();
        assert!(mailbox.away() > Duration::ZERO);
        mailbox.close();
        mailbox.take(None);
        assert_eq!(mailbox.away(), Duration::ZERO);
    }

    #[test]
    fn a_closed_mailbox_hands_out_what_it_has_and_then_ends() {
        let mailbox = Mailbox::new(2);
        mailbox.post(7);
        mailbox.close();
        assert!(!mailbox.post(8), "whoever goes on talking does not keep it open");
        assert_eq!(mailbox.take(None).unwrap(), [7]);
        assert!(mailbox.take(None).is_none());
    }
}
