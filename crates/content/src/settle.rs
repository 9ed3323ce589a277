//! What the directory has to be told of the bytes at hand, and what comes before that.

use directory::record::Content;

use crate::{Body, File, Ledger, Seen, Stay};

/// What telling the directory takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settle {
    /// There is nothing to tell, or it is told when somebody asks.
    Nothing,
    /// They change here, and this is what the directory says of them, when so many sessions had been lost: first
    /// [`File::follow_at_home`], and then [`File::settle_now`].
    Follow(Content, u64),
    /// Others may have changed the file since the session was lost: first [`File::regain`].
    Regain,
    /// What is in memory.
    Memory {
        /// First they have to be stored.
        stores: bool,
        /// The directory has to be told.
        tells: bool,
    },
    /// The directory has to be told of the backing file as it is now. The hash of what is small belongs to it, unless
    /// it goes on changing without a word.
    File {
        /// With the hash, if it is small.
        is_checked: bool,
    },
}

/// What has to be done before something can be told that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regain {
    /// Nothing.
    Nothing,
    /// It changes here: the directory has to hear of it as of one that does.
    Home,
    /// The right to tell has to be had again, with [`crate::Need::Tell`].
    Tell,
}

impl<M, F> File<M, F> {
    /// What it takes to tell the directory. `seen` is the backing file as it is now.
    pub fn settle(&mut self, ledger: &impl Ledger, seen: Option<Seen>) -> Settle {
        if self.stay == Stay::Home {
            let losses = ledger.losses();
            return match ledger.holds(true) {
                Some(now) => Settle::Follow(now, losses),
                None => Settle::Nothing,
            };
        }
        if ledger.is_shared() {
            if self.has_news(seen) && !self.may_tell(ledger) {
                return Settle::Regain;
            }
        } else if self.reported.is_some_and(|losses| losses != ledger.losses()) {
            // What the directory was told may be lost. The bytes are stored.
            self.reported = None;
            match &mut self.body {
                Body::Rest => {}
                Body::Memory(_) => self.is_unreported = true,
                Body::File { seen, .. } => *seen = None,
            }
        }
        self.settle_now(ledger, seen)
    }

    /// Whether the directory may be told of what was written: with the right to, and if it still says what it did when
    /// that was written. After a lost session it may say something else by the time that the right is had again.
    fn may_tell(&self, ledger: &impl Ledger) -> bool {
        ledger.holds(true).is_some_and(|now| self.base.as_ref().is_none_or(|base| *base == now))
    }

    /// The same, once it is known that the directory may be told.
    pub fn settle_now(&self, ledger: &impl Ledger, seen: Option<Seen>) -> Settle {
        match &self.body {
            Body::Rest => Settle::Nothing,
            Body::Memory(_) if !self.is_unreported && !self.is_dirty => Settle::Nothing,
            Body::Memory(_) => Settle::Memory { stores: self.is_dirty, tells: self.is_unreported },
            Body::File { .. } if !self.has_news(seen) => Settle::Nothing,
            Body::File { .. } => {
                Settle::File { is_checked: ledger.is_shared() && !self.tells_live() }
            }
        }
    }

    /// Whether what the directory is told is told of bytes that change here.
    pub fn tells_live(&self) -> bool {
        self.stay == Stay::Home && self.base.as_ref().is_some_and(|base| base.is_live)
    }

    /// The directory was told of this content. `losses` are the sessions that had been lost before.
    pub fn note_told(&mut self, content: Content, losses: u64, ledger: &impl Ledger) {
        self.reported = Some(losses);
        if !ledger.is_shared() {
            return;
        }
        if self.origin.is_none() || ledger.is_pushed(self.told) {
            self.origin = self.base.take();
        }
        self.base = Some(content);
        // If it may have been lost right away, it counts as lost.
        let is_lost = ledger.losses() != losses;
        self.told = if is_lost { 0 } else { ledger.place() };
    }

    /// The directory has heard all that there is: of bytes in memory, or of the backing file as it was then.
    pub fn note_settled(&mut self, then: Option<Seen>) {
        match &mut self.body {
            Body::Rest => {}
            Body::Memory(_) => self.is_unreported = false,
            Body::File { seen, .. } => *seen = then,
        }
    }

    /// What was written and could not be told, because the session was lost meanwhile: what that takes. `seen` is the
    /// backing file as it is now.
    pub fn regain(&self, ledger: &impl Ledger, seen: Option<Seen>) -> Regain {
        if self.stay == Stay::Home {
            return Regain::Home;
        }
        let is_well = || !self.has_news(seen) || self.may_tell(ledger);
        if !ledger.is_shared() || is_well() { Regain::Nothing } else { Regain::Tell }
    }
}
