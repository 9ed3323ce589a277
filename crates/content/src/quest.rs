//! Getting the bytes of a file at hand, as they are now.
//!
//! Bytes are as good as the content that the directory tells of, and only while the client holds that. So whoever
//! reads or writes first makes sure of both, with the file's lock free: waiting for another machine with the lock held
//! could keep us from giving up what that machine waits for. With the lock held, nothing of the file's content is
//! given up.

use base::{Duration, Instant};
use directory::record::Content;

use crate::{Body, File, Follow, Ledger, Seen, Stay, is_elsewhere, live_elsewhere};

/// Whoever loses to others what it has just been given tries again for so long.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Whoever finds something being given up looks again after this.
pub const PAUSE: Duration = Duration::from_micros(200);
/// Whoever gets bytes that are not what the directory says tries again for so long, and this often: their home
/// looks meanwhile.
const DOUBT: Duration = Duration::from_secs(10);
const DOUBT_PAUSE: Duration = Duration::from_millis(100);

/// What is needed of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To look at the bytes.
    Read,
    /// To change some of them.
    Write,
    /// To put others in their place, whatever they were.
    Replace,
    /// To tell what is here, whatever there is elsewhere.
    Tell,
    /// To tell of bytes that change here, if they do.
    Keep,
}

impl Need {
    fn writes(self) -> bool {
        self != Need::Read
    }

    /// Whether the bytes have to be at hand.
    pub fn needs_bytes(self) -> bool {
        matches!(self, Need::Read | Need::Write)
    }
}

/// What comes next. But for [`Next::Go`] and the first three the file's lock is let go of first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Whatever was needed is so, as long as the lock is held.
    Go,
    /// What is at hand has to be kept aside, and then [`File::forget`].
    Aside,
    /// They are here, at rest: [`File::load`], and then [`File::note_loaded`].
    Load(Content),
    /// What is here at rest is from before, and goes; then [`Quest::take`].
    Take,
    /// The content has to be held, to be changed if need be; then [`Quest::held`].
    Hold {
        /// It is to be changed.
        writes: bool,
    },
    /// The bytes of this content are elsewhere: [`Quest::fetched`] or [`Quest::missed`].
    Fetch(Content),
    /// They change on another machine without a word: a [`crate::Visit`].
    Visit,
    /// Nothing, until then.
    Wait(Instant),
    /// It took too long.
    TimedOut,
}

/// Somebody wants the bytes of a file.
#[derive(Clone, Debug)]
pub struct Quest<M, F> {
    need: Need,
    since: Instant,
    patience: Duration,
    /// What was just said of the content, if it was to be read.
    heard: Option<Content>,
    /// The bytes of this content came from elsewhere.
    fetched: Option<(Content, Body<M, F>)>,
}

impl<M, F> Quest<M, F> {
    /// It begins now.
    pub fn new(need: Need, now: Instant) -> Quest<M, F> {
        Quest::within(need, now, PATIENCE)
    }

    /// The same, and for how long it may go on.
    pub fn within(need: Need, now: Instant, patience: Duration) -> Quest<M, F> {
        Quest { need, since: now, patience, heard: None, fetched: None }
    }

    /// What comes next, with the file's lock. `seen` is the backing file as it is now.
    pub fn next(
        &mut self,
        now: Instant,
        file: &mut File<M, F>,
        ledger: &impl Ledger,
        seen: Option<Seen>,
    ) -> Next {
        if self.need != Need::Keep && file.stay == Stay::Home {
            return Next::Go;
        }
        let is_late = now.since(self.since) > self.patience;
        match self.look(now, file, ledger, seen) {
            Next::Wait(_) | Next::Hold { .. } | Next::Fetch(_) if is_late => Next::TimedOut,
            next => next,
        }
    }

    fn look(
        &mut self,
        now: Instant,
        file: &mut File<M, F>,
        ledger: &impl Ledger,
        seen: Option<Seen>,
    ) -> Next {
        let heard = self.heard.take();
        if ledger.is_yielding() {
            return Next::Wait(now + PAUSE);
        }
        let mut writes = self.need.writes();
        if let Some(content) = ledger.holds(writes) {
            match self.with(content, file, ledger, seen) {
                Some(next) => return next,
                None => writes = true,
            }
        } else if self.need.needs_bytes() {
            // First to look at it only: nobody has to wait until all of it is here.
            match heard.or_else(|| ledger.holds(false)) {
                None => return Next::Hold { writes: false },
                Some(content) if file.must_be_done_elsewhere(&content, ledger) => {
                    return Next::Visit;
                }
                Some(content) if self.misses(&content, file, ledger) => {
                    return Next::Fetch(content);
                }
                Some(_) => {}
            }
        }
        Next::Hold { writes }
    }

    /// What comes next while the content is held; nothing if it has to be held to be changed.
    fn with(
        &mut self,
        content: Content,
        file: &mut File<M, F>,
        ledger: &impl Ledger,
        seen: Option<Seen>,
    ) -> Option<Next> {
        if self.need == Need::Keep {
            return Some(Next::Go);
        }
        if self.need != Need::Tell && file.must_be_done_elsewhere(&content, ledger) {
            return Some(Next::Visit);
        }
        if file.follow(&content, ledger, seen) == Follow::Aside {
            return Some(Next::Aside);
        }
        // What others have not heard of they could see as it was before.
        let must_tell = ledger.is_shared() && file.has_news(seen);
        if must_tell && !self.need.writes() && ledger.holds(true).is_none() {
            return None;
        }
        if !file.body.is_at_rest() || !self.need.needs_bytes() {
            file.base = Some(content);
            return Some(Next::Go);
        }
        if !is_elsewhere(&content, ledger) {
            return Some(Next::Load(content));
        }
        match self.fetched.take_if(|(fetched, _)| *fetched != content) {
            None if self.fetched.is_some() => Some(Next::Take),
            _ => Some(Next::Fetch(content)),
        }
    }

    /// Whether the bytes of a content have to be fetched.
    fn misses(&self, content: &Content, file: &File<M, F>, ledger: &impl Ledger) -> bool {
        let is_fetched = self.fetched.as_ref().is_some_and(|(fetched, _)| fetched == content);
        is_elsewhere(content, ledger) && !file.has(content) && !is_fetched
    }

    /// The content is held, or was a moment ago, and is this.
    pub fn held(&mut self, content: Content) {
        self.heard = Some(content);
    }

    /// The bytes of this content that came from elsewhere.
    pub fn fetched(&mut self, content: Content, body: Body<M, F>) {
        self.fetched = Some((content, body));
    }

    /// Puts the bytes that came in the place of those that were here.
    pub fn take(&mut self, file: &mut File<M, F>) {
        if let Some((content, body)) = self.fetched.take() {
            file.is_borrowed = body.is_file();
            (file.body, file.base) = (body, Some(content));
        }
    }

    /// The bytes of this content could not be fetched. `is_unlike` says that those that came are others than the
    /// directory says. When to try again; none if that is of no use.
    pub fn missed(
        &mut self,
        now: Instant,
        content: &Content,
        ledger: &impl Ledger,
        is_unlike: bool,
    ) -> Option<Instant> {
        if ledger.holds(false).as_ref() != Some(content) {
            // It has changed meanwhile, or may have.
            return Some(now);
        }
        let may_doubt = is_unlike && now.since(self.since) < DOUBT;
        may_doubt.then(|| now + DOUBT_PAUSE)
    }
}

impl<M, F> File<M, F> {
    /// Whether what is to be done with this content has to be done on another machine.
    pub fn must_be_done_elsewhere(&self, content: &Content, ledger: &impl Ledger) -> bool {
        live_elsewhere(content, ledger).is_some()
            && self.stay != Stay::Home
            && !self.has_given_up(content)
    }
}
