//! The directory says what the content of a file is: whether what is at hand is that, and what becomes of it if not.

use directory::record::Content;

use crate::{File, Ledger, Seen, ledger::anothers};

/// What becomes of the bytes at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// They are what the directory says, or there are none.
    Same,
    /// Nobody else has changed the file: what was told is lost, or never was, and has to be told again.
    Again,
    /// Others have changed it since, and these bytes are forgotten: the directory has heard of them.
    Forgotten,
    /// Others have changed it since, and the directory never heard of these bytes: they have to be kept aside, and
    /// then [`File::forget`].
    Aside,
}

impl<M, F> File<M, F> {
    /// What is at hand goes if others have changed the content since. `seen` is the backing file as it is now.
    pub fn follow(&mut self, now: &Content, ledger: &impl Ledger, seen: Option<Seen>) -> Follow {
        if self.body.is_at_rest() || self.base.as_ref() == Some(now) {
            return Follow::Same;
        }
        let is_doubtful = self.origin.is_some() && !ledger.is_pushed(self.told);
        if self.has_news(seen) || is_doubtful {
            let before = self.origin.as_ref().or(self.base.as_ref());
            if before == Some(now) || now.home == Some(ledger.me()) {
                self.base = Some(now.clone());
                self.must_tell();
                return Follow::Again;
            }
            return Follow::Aside;
        }
        self.forget();
        Follow::Forgotten
    }

    /// What the directory says of bytes that change here, as found out when so many sessions were lost. If it has not
    /// heard what it was told, because that was lost with a session, it has to be told again. Whether it has to hear
    /// as well that they change here.
    pub fn follow_at_home(
        &mut self,
        now: &Content,
        losses: u64,
        ledger: &impl Ledger,
    ) -> Result<bool, Anothers> {
        if anothers(now, ledger.me()).is_some() {
            return Err(Anothers);
        }
        if self.base.as_ref() != Some(now) {
            self.base = Some(now.clone());
            self.must_tell();
        }
        self.reported = Some(losses);
        Ok(!now.is_live)
    }
}

/// The directory says by now that the bytes are another machine's, which can be only if it never heard that they were
/// to change here: what is here is nobody's, and is kept aside in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anothers;
