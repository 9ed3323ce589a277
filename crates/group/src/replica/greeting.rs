//! Coming back: what have the others seen of this member, and what time is it?
//!
//! A member that starts does not vote before so many have answered that one of them is honest and, if there
//! is one, has seen what this member has last said. If that is more than its disk knows, the disk is an old one.

use std::collections::BTreeSet;

use base::Instant;

use super::{Output, Replica};
use crate::{
    ballot::Vote,
    message::Message,
    seal::{Notary, Sealable as _, Sealed},
    seat::Seat,
};

/// A member that has started and has not been welcomed by enough others.
#[derive(Debug)]
pub(super) struct Greeting {
    nonce: u64,
    welcomed: BTreeSet<Seat>,
    again_at: Instant,
}

impl<N: Notary> Replica<N> {
    /// Votes on only after others have said what they have seen.
    pub(super) fn greet(&mut self, now: Instant) {
        if self.members.faults() > 0 && self.is_member() {
            let (nonce, welcomed) = (now.as_nanos(), BTreeSet::new());
            self.clock.forget_said();
            self.greeting = Some(Greeting { nonce, welcomed, again_at: now });
        }
    }

    pub(super) fn greet_at(&self) -> Option<Instant> {
        self.greeting.as_ref().map(|greeting| greeting.again_at)
    }

    pub(super) fn greet_again(&mut self, now: Instant, out: &mut Vec<Output>) {
        let others: Vec<Seat> = self.others().collect();
        let Some(greeting) = self.greeting.as_mut().filter(|greeting| greeting.again_at <= now)
        else {
            return;
        };
        greeting.again_at = now + self.settings.repeat;
        let message = Message::Hello { nonce: greeting.nonce };
        for to in others.into_iter().filter(|seat| !greeting.welcomed.contains(seat)) {
            out.push(Output::Send { to, message: message.clone() });
        }
    }

    /// Asks all for the time, but not again and again.
    pub(super) fn ask_time(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.time_asked_at.is_none_or(|at| at + self.clock.answer_max() <= now) {
            self.time_asked_at = Some(now);
            self.clock.forget_said();
            self.send_now(Message::Hello { nonce: now.as_nanos() }, out);
        }
    }

    pub(super) fn on_hello(&mut self, now: Instant, from: Seat, nonce: u64, out: &mut Vec<Output>) {
        if self.is_passed_over() {
            // It speaks for nobody: who asks may want to know whether so many decide here.
            return self.show_rescue(from, out);
        }
        // Not the time of the last decision: a liar may have made that one early, and if it were handed on as
        // anybody's own time, the next could be earlier by as much again. Who has sat here once is answered
        // too, so that it learns that it has left.
        let (time, height) = (self.clock.time(now), self.tip.height);
        let seen = self.seen.get(&from).cloned();
        let message = Message::Welcome { nonce, time, height, seen };
        out.push(Output::Send { to: from, message });
        self.show_rescue(from, out);
        self.insist_again(from, out);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one message")]
    pub(super) fn on_welcome(
        &mut self,
        now: Instant,
        from: Seat,
        nonce: u64,
        time: Instant,
        height: u64,
        seen: Option<Sealed<Vote>>,
        out: &mut Vec<Output>,
    ) {
        self.on_there(from, nonce, height);
        if !self.members.contains(&from) || from == self.me {
            return;
        }
        let is_greeted = self.greeting.as_ref().is_some_and(|greeting| greeting.nonce == nonce);
        let is_asked = self
            .time_asked_at
            .is_some_and(|at| at.as_nanos() == nonce && now.since(at) <= self.clock.answer_max());
        if is_greeted || is_asked {
            self.clock.on_said(from, time, self.members.faults(), now);
        }
        if let Some(vote) = seen
            && self.is_unknown(&vote)
            && !self.is_stale
        {
            self.is_stale = true;
            self.leave_height();
            out.push(Output::Stale);
        }
        if let Some(greeting) = self.greeting.as_mut().filter(|greeting| greeting.nonce == nonce) {
            greeting.welcomed.insert(from);
            self.end_greeting();
        }
        if height > self.tip.height {
            self.ask(now, from, out);
        }
    }

    /// Whether enough of those who are members have answered: also when they have just become fewer.
    pub(super) fn end_greeting(&mut self) {
        let (members, needed) = (self.members.clone(), 2 * self.members.faults());
        if let Some(greeting) = &mut self.greeting {
            greeting.welcomed.retain(|seat| members.contains(seat));
            if greeting.welcomed.len() >= needed || !members.contains(&self.me) {
                self.greeting = None;
            }
        }
    }

    /// Whether it is a vote of this member that its log would have, had it not been exchanged.
    fn is_unknown(&self, vote: &Sealed<Vote>) -> bool {
        let Sealed { what, seal } = vote;
        what.seat == self.me
            && what.height > self.tip.height
            && !self.cast.contains(what)
            && self.notary.is_sealed(&self.me.key, &what.sealed_bytes(&self.charter.group), seal)
    }
}
