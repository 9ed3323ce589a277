//! Which questions a session was answered: one that comes again is not decided again.
//!
//! A question may reach the grantor in several ways, and late. If it was decided each time, what it got would be
//! granted once more after it was given back.

use std::collections::BTreeMap;

use base::Instant;
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    Client,
    message::{Down, Refusal, Want},
};

use super::{Grantor, Output, WANTS_MAX, answer::Answers};

/// The most answered questions of a session that are remembered one by one: more than a client has open.
pub(super) const ANSWERED_MAX: usize = 1_024;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub(super) struct Answered {
    /// By number: why not, or nothing if it was granted. At most [`ANSWERED_MAX`].
    lately: BTreeMap<u64, Option<Refusal>>,
    /// Those with smaller numbers count as answered, but for those that wait.
    before: u64,
}

impl Answered {
    pub(super) fn note(&mut self, request: u64, refused: Option<Refusal>) {
        self.lately.insert(request, refused);
        while self.lately.len() > ANSWERED_MAX
            && let Some((first, _)) = self.lately.pop_first()
        {
            self.before = self.before.max(first.saturating_add(1));
        }
    }

    /// What came of a question that does not wait; nothing, if it is new.
    fn outcome(&self, request: u64) -> Option<Option<Refusal>> {
        let forgotten = (request < self.before).then_some(None);
        self.lately.get(&request).copied().or(forgotten)
    }
}

impl Grantor {
    /// What came of a question that does not wait, in the client's present session; nothing, if it is new.
    pub(super) fn outcome(&self, client: Client, request: u64) -> Option<Option<Refusal>> {
        self.sessions.get(&client)?.answered.outcome(request)
    }

    /// All of a question is answered.
    pub(super) fn note_answered(&mut self, client: Client, request: u64, refused: Option<Refusal>) {
        if let Some(session) = self.sessions.get_mut(&client) {
            session.answered.note(request, refused);
        }
    }

    /// Says the same again to a question that was answered, as far as that still stands. If its client goes on
    /// wanting what does not, it is a new question.
    pub(super) fn say_again(
        &mut self,
        now: Instant,
        (client, request): (Client, u64),
        wants: Vec<Want>,
        refused: Option<Refusal>,
        out: &mut Vec<Output>,
    ) {
        let mut answers = Answers::default();
        let mut refused = refused;
        if refused.is_none() {
            for want in wants.into_iter().take(WANTS_MAX) {
                let want = self.policy.read(want);
                match self.held(now, client, &want) {
                    Some((scope, side)) => answers.grant(client, request, scope, side),
                    // Once it has let go of it, it knows whether it still wants it.
                    None if self.is_leaving(client, &want) => {}
                    None => refused = Some(Refusal::Answered),
                }
            }
        }
        self.answer(now, answers, out);
        if let Some(why) = refused {
            self.say(now, client, Down::Refused { request, why }, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_remembered_and_all_before_count_as_answered() {
        let mut answered = Answered::default();
        answered.note(7, Some(Refusal::Misfit));
        assert_eq!(answered.outcome(7), Some(Some(Refusal::Misfit)));
        assert_eq!((answered.outcome(6), answered.outcome(8)), (None, None));
        for request in 10..10 + ANSWERED_MAX as u64 {
            answered.note(request, None);
        }
        assert_eq!(answered.lately.len(), ANSWERED_MAX);
        assert_eq!((answered.outcome(7), answered.outcome(8)), (Some(None), None));
        answered.note(u64::MAX, None);
        answered.note(3, None);
        assert_eq!((answered.lately.len(), answered.outcome(9)), (ANSWERED_MAX, Some(None)));
    }
}
