//! The bytes of one file on one machine: all that decides about them.

use directory::record::Content;

use crate::{Body, Ledger, Seen};

/// Whether the kernel here reads and writes a file by itself, in a tree that others have too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stay {
    /// No.
    #[default]
    Not,
    /// The group is being asked.
    Asked,
    /// Yes: the bytes here are right, whatever is held of them.
    Home,
    /// Nobody has it open any more, and the directory is being told.
    Leaving,
}

/// The bytes of one file on one machine. Whoever has its lock tells it what happens, and does what it says.
#[derive(Clone, Debug)]
pub struct File<M, F> {
    pub(crate) body: Body<M, F>,
    pub(crate) stay: Stay,
    /// What the directory says of the bytes that are at hand, or was last told. For a tree that others have too.
    pub(crate) base: Option<Content>,
    /// And what it said before it was told, until it is certain that it has heard.
    pub(crate) origin: Option<Content>,
    /// The place of what it was told.
    pub(crate) told: u64,
    /// How many sessions had been lost when the directory was last told. None if it was not told since the file was
    /// at rest.
    pub(crate) reported: Option<u64>,
    /// A content of which the home says that it does not change there, though the directory does.
    pub(crate) forsaken: Option<Content>,
    /// Bytes in memory that are not stored.
    pub(crate) is_dirty: bool,
    /// A size or a time that the directory was not told.
    pub(crate) is_unreported: bool,
    /// The bytes are in a file that came from another machine, and goes when this is closed.
    pub(crate) is_borrowed: bool,
    /// What was written could not be told and is kept aside; whoever syncs has to hear of it.
    pub(crate) has_lost: bool,
}

impl<M, F> Default for File<M, F> {
    fn default() -> File<M, F> {
        File {
            body: Body::Rest,
            stay: Stay::Not,
            base: None,
            origin: None,
            told: 0,
            reported: None,
            forsaken: None,
            is_dirty: false,
            is_unreported: false,
            is_borrowed: false,
            has_lost: false,
        }
    }
}

impl<M, F> File<M, F> {
    /// Where its bytes are.
    pub fn body(&self) -> &Body<M, F> {
        &self.body
    }

    /// Its bytes in memory, to be changed: that is news.
    pub fn memory_mut(&mut self) -> Option<&mut M> {
        match &mut self.body {
            Body::Memory(held) => {
                (self.is_dirty, self.is_unreported) = (true, true);
                Some(held)
            }
            Body::Rest | Body::File { .. } => None,
        }
    }

    /// Whether the kernel here reads and writes it by itself.
    pub fn stay(&self) -> Stay {
        self.stay
    }

    /// Whether it does, so that others have things done here.
    pub fn is_home(&self) -> bool {
        self.stay == Stay::Home
    }

    /// What the directory says of the bytes that are at hand, or was last told.
    pub fn base(&self) -> Option<&Content> {
        self.base.as_ref()
    }

    /// How many sessions had been lost when the directory was last told, if it was.
    pub fn reported(&self) -> Option<u64> {
        self.reported
    }

    /// Whether there are bytes in memory that are not stored.
    pub fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// Whether there is a size or a time of bytes in memory that the directory was not told.
    pub fn is_unreported(&self) -> bool {
        self.is_unreported
    }

    /// Whether the bytes are in a file that came from another machine.
    pub fn is_borrowed(&self) -> bool {
        self.is_borrowed
    }

    /// Whether the bytes of this content are at hand.
    pub fn has(&self, content: &Content) -> bool {
        !self.body.is_at_rest() && self.base.as_ref() == Some(content)
    }

    /// Whether the home of this content has said for long that it is not what the directory says.
    pub fn has_given_up(&self, content: &Content) -> bool {
        self.forsaken.as_ref() == Some(content)
    }

    /// Whether something was written that the directory was not told. `now` is the backing file as it is now.
    pub fn has_news(&self, now: Option<Seen>) -> bool {
        match &self.body {
            Body::Rest => false,
            Body::Memory(_) => self.is_dirty || self.is_unreported,
            Body::File { seen, .. } => match (seen, now) {
                (Some(seen), Some(now)) => !seen.is_same_content(&now),
                _ => true,
            },
        }
    }

    /// The bytes were at rest, and are there now.
    pub fn load(&mut self, body: Body<M, F>) {
        self.body = body;
    }

    /// And they are those of this content. `is_doubtful` says that they may have been written without a word before
    /// this machine started.
    pub fn note_loaded(&mut self, content: Content, is_doubtful: bool) {
        self.base = Some(content);
        if is_doubtful {
            self.must_tell();
        }
    }

    /// The file comes to be, with nothing in it.
    pub fn begin(&mut self, empty: M, base: Option<Content>) {
        (self.body, self.base) = (Body::Memory(empty), base);
    }

    /// Nothing comes in place of whatever was there, which need not be known. `had_bytes` says whether that was
    /// something, if the directory's word is not at hand.
    pub fn empty(&mut self, empty: M, had_bytes: Option<bool>) {
        let known = || self.base.as_ref().is_some_and(|base| base.size > 0);
        let had_bytes = had_bytes.unwrap_or_else(known);
        self.body = Body::Memory(empty);
        (self.is_dirty, self.is_unreported) = (had_bytes, had_bytes);
    }

    /// The bytes in memory were stored.
    pub fn note_stored(&mut self) {
        self.is_dirty = false;
    }

    /// Its bytes in memory, to be given another size, or the same again. `is_fetched` says that they are not stored
    /// here.
    pub fn resize(&mut self, is_change: bool, is_fetched: bool) -> Option<&mut M> {
        match &mut self.body {
            Body::Memory(held) => {
                self.is_dirty |= is_change || is_fetched;
                self.is_unreported = true;
                Some(held)
            }
            Body::Rest | Body::File { .. } => None,
        }
    }

    /// The bytes in memory are in a backing file now.
    pub fn spill(&mut self, file: F, now: Seen) {
        let seen = (!self.is_unreported).then_some(now);
        self.body = Body::File { file, seen };
        (self.is_dirty, self.is_unreported) = (false, false);
    }

    /// The bytes that came from another machine are in a backing file of this one now, to be changed.
    pub fn adopt(&mut self, file: F) {
        self.body = Body::File { file, seen: None };
        self.is_borrowed = false;
    }

    /// What the directory was told is lost, or was never told.
    pub fn must_tell(&mut self) {
        match &mut self.body {
            Body::Rest => {}
            Body::Memory(_) => (self.is_dirty, self.is_unreported) = (true, true),
            Body::File { seen, .. } => *seen = None,
        }
    }

    /// The bytes in memory are needed no more, if they are nobody's only ones.
    pub fn let_go(&mut self) {
        if matches!(self.body, Body::Memory(_)) && !self.is_dirty && !self.is_unreported {
            self.body = Body::Rest;
        }
    }

    /// What is at hand is of no use any more.
    pub fn forget(&mut self) {
        self.body = Body::Rest;
        (self.is_dirty, self.is_unreported, self.is_borrowed) = (false, false, false);
        (self.reported, self.base, self.origin) = (None, None, None);
    }

    /// Nobody has it open any more; how many sessions had been lost when the directory was last told, if it was.
    pub fn rest(&mut self) -> Option<u64> {
        let reported = self.reported;
        self.forget();
        reported
    }

    /// What was written here is kept aside.
    pub fn note_loss(&mut self) {
        self.has_lost = true;
    }

    /// Whether something was kept aside of which nobody who syncs has heard yet.
    pub fn take_loss(&mut self) -> bool {
        std::mem::take(&mut self.has_lost)
    }

    /// Time has passed: what the directory was told may be certain by now.
    pub fn confirm(&mut self, ledger: &impl Ledger) {
        if self.origin.is_some() && ledger.is_pushed(self.told) {
            self.origin = None;
        }
    }
}
