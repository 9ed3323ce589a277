//! Having something done on the machine where the bytes of a file change without a word.

use base::{Duration, Instant};
use directory::record::Content;
use lease::Client;

use crate::{File, Ledger, Silence, Stay, TELL_MAX, live_elsewhere};

/// Whoever is told that bytes do not change where the directory says asks again for so long, and this often.
const DOUBT: Duration = Duration::from_secs(10);
const DOUBT_PAUSE: Duration = Duration::from_millis(5);

/// Somebody wants something done to bytes that may change on another machine.
#[derive(Clone, Debug)]
pub struct Visit {
    since: Instant,
    /// How long whoever says that they do not change there is doubted.
    doubt: Duration,
    heard: Option<Content>,
    asked: Option<Content>,
}

/// Where it is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// The content has to be held to be read, and then [`Visit::held`].
    Hold,
    /// Here: they change nowhere else without a word.
    Here,
    /// There: [`Visit::answered`].
    There {
        /// Which machine.
        home: Client,
        /// For how long it is waited for.
        patience: Duration,
    },
}

/// What the other machine says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is done, or is refused.
    Done,
    /// The bytes do not change there without a word.
    Away,
    /// It has too much to do.
    Busy,
    /// Nothing.
    Nothing,
}

/// What comes of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// That is it.
    Over,
    /// It is asked again then.
    Again(Instant),
    /// It is looked once more where it is to be done.
    Look,
    /// There is too much to do there: whoever wants it may try again.
    Busy,
    /// The machine does not answer.
    Silent,
}

impl Visit {
    /// It begins now.
    pub fn new(now: Instant) -> Visit {
        Visit { since: now, doubt: DOUBT, heard: None, asked: None }
    }

    /// The same, only for the directory to hear: whoever asks can do without.
    pub fn to_tell(now: Instant) -> Visit {
        Visit { doubt: TELL_MAX, ..Visit::new(now) }
    }

    /// Where it is to be done.
    pub fn way<M, F>(
        &mut self,
        now: Instant,
        file: &File<M, F>,
        ledger: &impl Ledger,
        silence: &Silence,
    ) -> Way {
        if !ledger.is_shared() || file.stay == Stay::Home {
            return Way::Here;
        }
        let Some(content) = self.heard.take().or_else(|| ledger.holds(false)) else {
            return Way::Hold;
        };
        match live_elsewhere(&content, ledger) {
            Some(home) if !file.has_given_up(&content) => {
                self.asked = Some(content);
                Way::There { home, patience: silence.patience(home, now) }
            }
            _ => Way::Here,
        }
    }

    /// The content is held, or was a moment ago, and is this.
    pub fn held(&mut self, content: Content) {
        self.heard = Some(content);
    }

    /// What the other machine has said.
    pub fn answered<M, F>(&mut self, now: Instant, file: &mut File<M, F>, heard: Heard) -> Then {
        match heard {
            Heard::Done => Then::Over,
            Heard::Nothing => Then::Silent,
            Heard::Away | Heard::Busy if self.may_doubt(now) => Then::Again(now + DOUBT_PAUSE),
            Heard::Busy => Then::Busy,
            Heard::Away => {
                // It looks after its bytes, and still the directory has not heard.
                file.forsaken = self.asked.take();
                Then::Look
            }
        }
    }

    /// The same of one that was only to tell.
    pub fn told(&self, now: Instant, heard: Heard) -> Then {
        match heard {
            Heard::Away | Heard::Busy if self.may_doubt(now) => Then::Again(now + DOUBT_PAUSE),
            Heard::Nothing => Then::Silent,
            _ => Then::Over,
        }
    }

    fn may_doubt(&self, now: Instant) -> bool {
        now.since(self.since) < self.doubt
    }
}
