//! Who waits for whom, so that nobody waits for ever for somebody who waits for them.
//!
//! Only waits for owners of this machine are known: a circle through another machine is not found.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The most who wait at a time: for each the kernel and we are asked several times a second.
pub(crate) const WAITERS_MAX: usize = 256;

/// Those who wait, of all files.
#[derive(Default)]
pub(crate) struct Waits(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    next: u64,
    /// By ticket. At most [`WAITERS_MAX`].
    waiting: BTreeMap<u64, Wait>,
}

struct Wait {
    owner: u64,
    /// Who was in the way when we last looked, if it was somebody here.
    blocker: Option<u64>,
}

impl Waits {
    /// Somebody begins to wait. Nothing if too many do.
    pub(crate) fn enter(&self, owner: u64) -> Option<u64> {
        let mut inner = self.lock();
        if inner.waiting.len() >= WAITERS_MAX {
            return None;
        }
        let ticket = inner.next;
        inner.next += 1;
        inner.waiting.insert(ticket, Wait { owner, blocker: None });
        Some(ticket)
    }

    /// Somebody waits no more.
    pub(crate) fn leave(&self, ticket: u64) {
        self.lock().waiting.remove(&ticket);
    }

    /// Notes who is in the way; whether they wait for whoever waits for them. Then the last who came has to
    /// give way, and is not counted as waiting for anybody.
    pub(crate) fn is_circle(&self, ticket: u64, blocker: Option<u64>) -> bool {
        let mut inner = self.lock();
        let Some(owner) = inner.waiting.get(&ticket).map(|wait| wait.owner) else { return false };
        let is_circle = blocker.is_some_and(|blocker| inner.leads(blocker, owner));
        if let Some(wait) = inner.waiting.get_mut(&ticket) {
            wait.blocker = blocker.filter(|_| !is_circle);
        }
        is_circle
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Whether one waits for another, by way of whomever. Whoever has several threads may wait for several.
    fn leads(&self, from: u64, to: u64) -> bool {
        let mut seen = BTreeSet::from([from]);
        let mut ahead = vec![from];
        while let Some(owner) = ahead.pop() {
            if owner == to {
                return true;
            }
            let waits = self.waiting.values().filter(|wait| wait.owner == owner);
            ahead.extend(waits.filter_map(|wait| wait.blocker).filter(|next| seen.insert(*next)));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_closes_a_circle_is_told_and_the_others_wait_on() {
        let waits = Waits::default();
        let [ann, bob, eve] = [1, 2, 3].map(|owner| waits.enter(owner).unwrap());
        assert!(!waits.is_circle(ann, Some(2)));
        assert!(!waits.is_circle(bob, Some(3)));
        assert!(waits.is_circle(eve, Some(1)));
        waits.leave(eve);
        assert!(!waits.is_circle(ann, Some(2)) && !waits.is_circle(bob, Some(3)));
    }

    #[test]
    fn whoever_is_not_waited_for_any_more_closes_no_circle() {
        let waits = Waits::default();
        let [ann, bob] = [1, 2].map(|owner| waits.enter(owner).unwrap());
        assert!(!waits.is_circle(ann, Some(2)));
        // Now it is somebody on another machine.
        assert!(!waits.is_circle(ann, None));
        assert!(!waits.is_circle(bob, Some(1)));
        waits.leave(bob);
        assert!(!waits.is_circle(ann, Some(2)));
    }

    #[test]
    fn each_of_several_threads_of_one_owner_counts() {
        let waits = Waits::default();
        let [first, second, bob] = [1, 1, 2].map(|owner| waits.enter(owner).unwrap());
        assert!(!waits.is_circle(first, Some(9)));
        assert!(!waits.is_circle(second, Some(2)));
        assert!(waits.is_circle(bob, Some(1)));
    }

    #[test]
    fn only_so_many_may_wait() {
        let waits = Waits::default();
        let tickets: Vec<u64> = (0..).map_while(|owner| waits.enter(owner)).collect();
        assert_eq!(tickets.len(), WAITERS_MAX);
        waits.leave(tickets[7]);
        assert!(waits.enter(0).is_some());
    }
}
