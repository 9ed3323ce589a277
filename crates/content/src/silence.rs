//! Who did not answer, and is not waited for so long by whoever asks next.

use std::collections::BTreeMap;

use base::{Duration, Instant};
use lease::Client;

use crate::{ASK_MAX, DEED_MAX};

/// A machine that did not answer is asked no more for so long by whoever only looks, and waited for as long as
/// [`ASK_MAX`] by others.
const SILENCE: Duration = Duration::from_secs(10);

/// Machines that did not answer, and since when; this one, if the group did not. At most as many as there are
/// machines.
#[derive(Clone, Debug, Default)]
pub struct Silence(BTreeMap<Client, Instant>);

impl Silence {
    /// Somebody does not answer.
    pub fn note(&mut self, who: Client, now: Instant) {
        self.0.retain(|_, since| now.since(*since) < SILENCE);
        self.0.insert(who, now);
    }

    /// Whether somebody has not answered a short while ago.
    pub fn is_silent(&self, who: Client, now: Instant) -> bool {
        self.0.get(&who).is_some_and(|since| now.since(*since) < SILENCE)
    }

    /// How long a home is waited for that is to do something.
    pub fn patience(&self, home: Client, now: Instant) -> Duration {
        if self.is_silent(home, now) { ASK_MAX } else { DEED_MAX }
    }
}
