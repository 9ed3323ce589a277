//! Bytes that the directory may not know of, because it had not heard yet when the session was lost or the machine
//! died. They are told again, or kept aside if others were faster.

use directory::record::Content;

use crate::{Body, File, Ledger, Seen, Stay, ledger::anothers};

/// What is to be done about what is here of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing: it is as the directory says, or whoever has it open sees to it.
    Nothing,
    /// It is another machine's, and what is here the directory has known: it goes.
    Drop,
    /// It is another machine's, and what is here may be nobody else's: it is kept aside.
    Aside,
    /// It is ours: what is here has to be compared with what the directory says, and [`File::found`].
    Compare,
}

impl<M, F> File<M, F> {
    /// What is to be done about what is here, with the right to tell. `is_old` says that it was looked at before, and
    /// nobody has written it since.
    pub fn look(&self, ledger: &impl Ledger, is_old: bool) -> Look {
        let Some(now) = self.base.as_ref().filter(|_| self.stay == Stay::Not) else {
            return Look::Nothing;
        };
        match (anothers(now, ledger.me()), &self.body) {
            (None, _) => Look::Compare,
            (Some(_), Body::Rest) if is_old => Look::Drop,
            (Some(_), Body::Rest) => Look::Aside,
            (Some(_), _) => Look::Nothing,
        }
    }

    /// What is here was compared: whether it is something else than the directory says.
    pub fn found(&mut self, is_other: bool) {
        if is_other {
            self.must_tell();
        }
    }

    /// Whether others may have what is here as the content that the directory tells of. Not while there is something
    /// that it has not heard of: they would get that, or a mixture, and of large contents they could not see it.
    /// `seen` is the backing file as it is now.
    pub fn may_be_fetched(&self, seen: Option<Seen>) -> bool {
        !self.has_news(seen)
    }

    /// Whether the directory says that they change here, as of a life before this one.
    pub fn is_rumour(&self, content: &Content, ledger: &impl Ledger) -> bool {
        content.is_live && content.home == Some(ledger.me()) && self.stay == Stay::Not
    }
}
