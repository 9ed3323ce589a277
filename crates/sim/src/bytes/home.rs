//! How a simulated machine becomes and ceases to be the home of a file, and has things done at the home of others.

use base::{Digest, Duration, FileId};
use client::{Call, Reply};
use content::{ASK_MAX, Bid, Bidding, Body, Chance, End, Heard, Need, TELL_MAX, Then, Visit, Way};
use directory::{Act, File as Record, record::Content};

use super::{
    actor::{Answer, Deed, Note, Query},
    house::{House, Locked, Open},
    shell::{No, SMALL_MAX, Slot, UNIT, digest},
    tamper::Tamper,
};

/// From here on a file is worth a decision of the group.
const WORTH_MIN: u64 = (SMALL_MAX as u64 + 4) * UNIT;

/// What the other machine says.
fn heard(answer: &Option<Answer>) -> Heard {
    match answer {
        Some(Answer::Away) => Heard::Away,
        Some(Answer::Busy) => Heard::Busy,
        Some(Answer::Stranger(_)) | None => Heard::Nothing,
        Some(_) => Heard::Done,
    }
}

impl<T: Tamper> House<T> {
    /// Tells the directory that bytes begin or cease to change here, and what it says of them then.
    pub(crate) async fn keep(
        &self,
        file: &FileId,
        (is_live, digest): (bool, Option<Digest>),
        most: Duration,
    ) -> Result<Content, No> {
        let act = Act::Keep { file: file.clone(), version: self.version(), is_live, digest };
        match self.call_within(Call::Do(act), most).await? {
            Reply::Changed(record) => {
                let content = record.content.clone();
                self.state().disk.versions.insert(record.serial, content.version);
                Ok(content)
            }
            _ => Err(No::Io),
        }
    }

    fn chance(&self, open: &Open, writes: bool) -> Chance {
        let state = self.state();
        Chance {
            writes,
            is_first: open.handles.is_empty(),
            is_able: true,
            is_slow: state.silence.is_silent(self.me(), state.now),
            is_contended: state.contests.is_recent(open.serial),
            worth_min: WORTH_MIN,
        }
    }

    /// Has the group decide that the bytes of a file change here without a word, if that is worth it.
    pub(crate) async fn settle_home(
        &self,
        open: &Slot,
        record: &Record,
        writes: bool,
    ) -> Option<Content> {
        let bid = {
            let locked = self.lock(open).await;
            let mut inner = locked.open();
            let chance = self.chance(&inner, writes);
            let file = inner.file.clone();
            inner.bytes.bid(&record.content, chance, &self.said(&file))?
        };
        let content = self.bid(open, bid).await;
        if content.is_none() {
            self.lock(open).await.open().bytes.give_up_bid();
        }
        content
    }

    async fn bid(&self, open: &Slot, mut bid: Bid) -> Option<Content> {
        let file = open.borrow().file.clone();
        let kept = self.keep(&file, (true, None), ASK_MAX).await;
        let is_slow = kept == Err(No::TimedOut);
        let mut next = self.tamper().bidding(bid.kept(kept.clone().ok(), is_slow));
        if next == Bidding::Settle {
            let is_pushed = self.call_within(Call::Settle, ASK_MAX).await.is_ok();
            next = bid.settled(is_pushed, &self.said(&file));
        }
        match next {
            Bidding::Won(content) => Some(content),
            Bidding::Settle => kept.ok(),
            Bidding::Lost { is_kept, is_slow } => {
                if is_kept {
                    _ = self.keep(&file, (false, None), ASK_MAX).await;
                }
                if is_slow {
                    let mut state = self.state();
                    let (me, now) = (self.me(), state.now);
                    state.silence.note(me, now);
                }
                None
            }
        }
    }

    /// The same for a new file, which is not waited for.
    pub(crate) async fn settle_new_home(&self, open: &Slot, is_large: bool) -> Option<Content> {
        let file = open.borrow().file.clone();
        let bid = {
            let locked = self.lock(open).await;
            let mut inner = locked.open();
            let chance = self.chance(&inner, true);
            inner.bytes.bid_new(is_large, chance, &self.said(&file))?
        };
        let kept = self.keep(&file, (true, None), Duration::ZERO).await;
        match self.tamper().bidding(bid.kept_new(kept.ok())) {
            Bidding::Won(content) => Some(content),
            Bidding::Settle | Bidding::Lost { .. } => {
                self.lock(open).await.open().bytes.give_up_bid();
                None
            }
        }
    }

    /// The kernel begins to use the bytes of a file by itself.
    pub(crate) async fn become_home(&self, open: &Slot, content: Content) -> Option<Locked> {
        let locked = self.lock(open).await;
        let (file, is_first) = (locked.file(), !locked.is_open());
        let may = locked.open().bytes.may_become_home(&content, is_first, &self.said(&file));
        if may {
            self.load(&locked, content.size / UNIT);
            locked.open().bytes.become_home(content, &self.said(&file));
            self.pass_through(&locked);
            return Some(locked);
        }
        drop(locked);
        _ = self.keep(&file, (false, None), ASK_MAX).await;
        self.lock(open).await.open().bytes.give_up_bid();
        None
    }

    /// Has the kernel use the backing file by itself.
    pub(crate) fn pass_through(&self, locked: &Locked) {
        self.spill(locked);
        locked.open().passes = true;
        self.mark("a machine becomes a home");
        self.note(Note::Home { file: locked.file(), is_home: true });
    }

    /// Nobody has a file open here any more: others may have its bytes.
    pub(crate) async fn end_home(&self, open: &Slot) {
        if self.try_end_home(open).await == Err(No::Gone) {
            self.leave(&self.lock(open).await);
        }
    }

    async fn try_end_home(&self, open: &Slot) -> Result<(), No> {
        let locked = self.ready_within(open, Need::Keep, ASK_MAX).await?;
        let (file, seen, is_open) = (locked.file(), locked.seen(), locked.is_open());
        let Some(now) = self.holds(&file, true) else { return Err(No::Again) };
        let end = locked.open().bytes.end(&now, is_open, &self.said(&file), seen);
        let told = match self.tamper().end(end) {
            End::Nothing => return Ok(()),
            End::Follow(follow) => {
                self.follow(&locked, follow);
                Ok(())
            }
            End::Settle => self.settle(&locked).await.map(drop),
            End::Keep => self.tell_last(&locked, &now).await,
        };
        match told {
            Ok(()) => self.leave(&locked),
            Err(_) => locked.open().bytes.remain(),
        }
        told
    }

    /// Tells that bytes that have been told of change here no more, and what others check them by.
    pub(crate) async fn tell_last(&self, locked: &Locked, now: &Content) -> Result<(), No> {
        let (file, length) = (locked.file(), (now.size / UNIT) as usize);
        let bytes = locked.all().filter(|bytes| bytes.len() == length && length <= SMALL_MAX);
        let digest = bytes.map(|bytes| digest(&bytes));
        if digest.is_some() || length == 0 || length > SMALL_MAX {
            let kept = self.keep(&file, (false, digest), super::house::CALL_MAX).await?;
            locked.open().bytes.note_kept(kept);
            return Ok(());
        }
        locked.open().bytes.must_tell();
        self.settle(locked).await.map(drop)
    }

    fn leave(&self, locked: &Locked) {
        let mut inner = locked.open();
        inner.bytes.leave();
        inner.passes = false;
        self.note(Note::Home { file: inner.file.clone(), is_home: false });
    }

    /// The directory hears of the bytes of a file that change here.
    pub(crate) async fn tell_home(&self, open: &Slot, most: Duration) -> Result<(), No> {
        let has_told = {
            let locked = self.lock(open).await;
            let (seen, losses) = (locked.seen(), self.state().losses);
            let inner = locked.open();
            inner.bytes.reported() == Some(losses) && !inner.bytes.has_news(seen)
        };
        if has_told {
            return Ok(());
        }
        let locked = self.ready_within(open, Need::Keep, most).await?;
        self.settle(&locked).await.map(drop)
    }

    /// What bytes that change here are to the directory.
    pub(crate) async fn follow_at_home(
        &self,
        locked: &Locked,
        now: &Content,
        losses: u64,
    ) -> Result<(), No> {
        let file = locked.file();
        let rumoured = locked.open().bytes.follow_at_home(now, losses, &self.said(&file));
        if rumoured.map_err(|_| No::Io)?
            && let Ok(content) = self.keep(&file, (true, None), Duration::ZERO).await
        {
            locked.open().bytes.note_kept(content);
        }
        Ok(())
    }

    /// Has something done where the bytes of a file change. Nothing, if they change nowhere without a word.
    pub(crate) async fn do_at_home(&self, open: &Slot, deed: &Deed) -> Result<Option<Answer>, No> {
        let (file, mut visit) = (open.borrow().file.clone(), Visit::new(self.now()));
        loop {
            let way = {
                let locked = self.lock(open).await;
                let (now, silence) = {
                    let state = self.state();
                    (state.now, state.silence.clone())
                };
                let inner = locked.open();
                visit.way(now, &inner.bytes, &self.said(&file), &silence)
            };
            let (home, patience) = match self.tamper().way(way) {
                Way::Here => return Ok(None),
                Way::Hold => {
                    visit.held(self.held(&file, false, super::house::CALL_MAX).await?);
                    continue;
                }
                Way::There { home, patience } => (home, patience),
            };
            let query = Query::Do { file: file.clone(), deed: deed.clone() };
            let mut answer = self.ask(home, query.clone(), patience).await;
            if answer.is_none() && deed.may_repeat() {
                answer = self.ask(home, query, patience).await;
            }
            let then = {
                let (now, locked) = (self.now(), self.lock(open).await);
                let mut inner = locked.open();
                visit.answered(now, &mut inner.bytes, heard(&answer))
            };
            match (self.tamper().then(then), answer) {
                (Then::Again(at), _) => self.pause_until(at).await,
                (Then::Look, _) => {}
                (Then::Busy, _) => return Err(No::Again),
                (_, None) => {
                    let mut state = self.state();
                    let now = state.now;
                    state.silence.note(home, now);
                    return Err(No::TimedOut);
                }
                (_, Some(Answer::Refused)) => return Err(No::Io),
                (_, Some(answer)) => {
                    self.mark("something is done at a home elsewhere");
                    return Ok(Some(answer));
                }
            }
        }
    }

    /// What the directory says of a file whose bytes change elsewhere, after it has heard of them.
    pub(crate) async fn ask_home(
        &self,
        file: &FileId,
        record: triomphe::Arc<Record>,
    ) -> Result<triomphe::Arc<Record>, No> {
        let home = content::live_elsewhere(&record.content, &self.said(file));
        let Some(home) = home else { return Ok(record) };
        let is_silent = {
            let state = self.state();
            state.silence.is_silent(home, state.now)
        };
        if is_silent {
            return Err(No::TimedOut);
        }
        let visit = Visit::to_tell(self.now());
        loop {
            let query = Query::Do { file: file.clone(), deed: Deed::Tell };
            let answer = self.ask(home, query, TELL_MAX).await;
            let now = self.now();
            match visit.told(now, heard(&answer)) {
                Then::Again(at) => self.pause_until(at).await,
                Then::Silent => {
                    self.state().silence.note(home, now);
                    // What is known is told, and may be old.
                    return Err(No::TimedOut);
                }
                _ if answer != Some(Answer::Done) => return Err(No::TimedOut),
                _ => return self.record(file).await,
            }
        }
    }

    /// Bytes that change here, as programs find them.
    pub(crate) fn bytes_at_home(open: &Open) -> Option<Vec<u8>> {
        match open.bytes.body() {
            Body::File { file, .. } if open.passes => Some(file.borrow().bytes.clone()),
            _ => None,
        }
    }
}
