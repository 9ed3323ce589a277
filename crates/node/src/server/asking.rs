//! What this machine has asked others out of turn and was not answered yet.

use std::collections::BTreeMap;

use base::{Duration, Instant, PublicKey};

use super::Token;

/// Whoever runs this machine waits less for an answer: what has not come by then was lost on the way here.
const ASK_MAX: Duration = Duration::from_secs(20);

/// What an answer is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To say who this machine is.
    Announce,
    /// To have its certificate renewed.
    Renew,
}

/// As many as its few purposes have under way.
#[derive(Debug, Default)]
pub(super) struct Asking {
    next: Token,
    open: BTreeMap<Token, (Purpose, PublicKey, Instant)>,
}

impl Asking {
    /// A machine is asked.
    pub(super) fn begin(&mut self, now: Instant, purpose: Purpose, whom: PublicKey) -> Token {
        self.next += 1;
        self.open.insert(self.next, (purpose, whom, now + ASK_MAX));
        self.next
    }

    /// It has answered, or not in time: what it was asked for, if anybody still wants to know.
    pub(super) fn end(&mut self, token: Token) -> Option<(Purpose, PublicKey)> {
        self.open.remove(&token).map(|(purpose, whom, _)| (purpose, whom))
    }

    /// Nobody wants to know any more.
    pub(super) fn drop_all(&mut self, purpose: Purpose) {
        self.open.retain(|_, (open, ..)| *open != purpose);
    }

    /// How many are under way.
    pub(super) fn count(&self, purpose: Purpose) -> usize {
        self.open.values().filter(|(open, ..)| *open == purpose).count()
    }

    /// Those to which no answer will come any more.
    pub(super) fn late(&self, now: Instant) -> Vec<Token> {
        let late = self.open.iter().filter(|(_, (.., until))| *until <= now);
        late.map(|(token, _)| *token).collect()
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.open.values().map(|(.., until)| *until).min()
    }
}
