//! Who waits to hear what comes of something that concerns a key, until when.

use std::collections::BTreeMap;

use base::{Duration, Instant, PublicKey};

use super::Token;

/// How long anybody is kept waiting.
const WAIT_MAX: Duration = Duration::from_secs(7);

/// Those who wait: one for each key.
#[derive(Debug)]
pub(super) struct Waiting {
    /// At most so many.
    count_max: usize,
    until: BTreeMap<PublicKey, (Token, Instant)>,
}

impl Waiting {
    pub(super) fn new(count_max: usize) -> Waiting {
        Waiting { count_max, until: BTreeMap::new() }
    }

    /// Somebody waits from now on. Whoever has waited for the same waits in vain; none if there is no room.
    pub(super) fn put(
        &mut self,
        now: Instant,
        key: PublicKey,
        token: Token,
    ) -> Result<Option<Token>, Token> {
        if self.until.len() >= self.count_max && !self.until.contains_key(&key) {
            return Err(token);
        }
        Ok(self.until.insert(key, (token, now + WAIT_MAX)).map(|(token, _)| token))
    }

    /// Whoever waits for this.
    pub(super) fn take(&mut self, key: &PublicKey) -> Option<Token> {
        self.until.remove(key).map(|(token, _)| token)
    }

    /// Those who have waited for too long.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Token> {
        let late = self.until.extract_if(.., |_, (_, until)| *until <= now);
        late.map(|(_, (token, _))| token).collect()
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.until.values().map(|(_, until)| *until).min()
    }
}
