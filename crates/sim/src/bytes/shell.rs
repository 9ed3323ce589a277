//! What `mount` does with files, as a simulated machine does it: the decisions are `content`'s.

use std::{cell::RefCell, rc::Rc};

use base::{Digest, Domain, Duration, FileId};
use client::{Call, Failure, Reply};
use content::{Body, Follow, Look, Need, Next, PATIENCE, Quest, Regain, Settle};
use directory::{Act, File as Record, Refusal, record::Content};

use super::{
    actor::{Answer, Note, Query},
    disk::{Backed, Backing},
    house::{House, Locked, Open},
    tamper::Tamper,
};

const CONTENT: Domain = Domain::new("simulated content v1");
/// Bytes up to this size need no backing file, and have a hash.
pub(crate) const SMALL_MAX: usize = 8;
/// A byte here stands for so many to the directory.
pub(crate) const UNIT: u64 = Content::SMALL_MAX / SMALL_MAX as u64;
/// How long a machine that has bytes is waited for.
const FETCH_MAX: Duration = Duration::from_secs(10);

/// Why something is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum No {
    /// Nobody answers in time.
    TimedOut,
    /// It may be tried again.
    Again,
    /// What was written is not what others have, or is lost.
    Io,
    /// There is no such file.
    Gone,
    /// It has to be done elsewhere.
    Remote,
}

impl From<Failure> for No {
    fn from(failure: Failure) -> No {
        match failure {
            Failure::Cancelled => No::TimedOut,
            Failure::Busy => No::Again,
            Failure::Refused(Refusal::Gone) => No::Gone,
            Failure::Refused(_) | Failure::Lost | Failure::TooManyOpen => No::Io,
        }
    }
}

pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Digest::of(CONTENT, bytes)
}

pub(crate) type Slot = Rc<RefCell<Open>>;

impl<T: Tamper> House<T> {
    /// The content of a file, held for reading, or for changing it.
    pub(crate) async fn held(
        &self,
        file: &FileId,
        writes: bool,
        most: Duration,
    ) -> Result<Content, No> {
        match self.call_within(Call::Hold { file: file.clone(), writes }, most).await? {
            Reply::File(record) => Ok(record.content.clone()),
            _ => Err(No::Io),
        }
    }

    pub(crate) async fn record(&self, file: &FileId) -> Result<triomphe::Arc<Record>, No> {
        match self.call(Call::GetAttr { file: file.clone() }).await? {
            Reply::File(record) => Ok(record),
            _ => Err(No::Io),
        }
    }

    /// Locks a file with its bytes at hand, as they are now.
    pub(crate) async fn ready(&self, open: &Slot, need: Need) -> Result<Locked, No> {
        self.ready_within(open, need, PATIENCE).await
    }

    pub(crate) async fn ready_within(
        &self,
        open: &Slot,
        need: Need,
        most: Duration,
    ) -> Result<Locked, No> {
        let (file, serial) = {
            let inner = open.borrow();
            (inner.file.clone(), inner.serial)
        };
        let mut quest: Quest<Vec<u8>, Backing> = Quest::within(need, self.now(), most);
        loop {
            let locked = self.lock(open).await;
            let next = {
                let mut inner = locked.open();
                let (now, seen) = (self.now(), inner.seen());
                quest.next(now, &mut inner.bytes, &self.said(&file), seen)
            };
            let is_at_hand = !locked.open().bytes.body().is_at_rest();
            match self.tamper().next_of(need, is_at_hand, next) {
                Next::Go => return Ok(locked),
                Next::Aside => self.follow_aside(&locked),
                Next::Load(content) => {
                    self.load(&locked, content.size / UNIT);
                    locked.open().bytes.note_loaded(content, false);
                }
                Next::Take => {
                    self.state().disk.remove(serial);
                    quest.take(&mut locked.open().bytes);
                }
                Next::Hold { writes } => {
                    drop(locked);
                    quest.held(self.held(&file, writes, most).await?);
                }
                Next::Fetch(content) => {
                    drop(locked);
                    self.fetch(&file, serial, &mut quest, content).await?;
                }
                Next::Visit => return Err(No::Remote),
                Next::Wait(at) => {
                    drop(locked);
                    self.pause_until(at).await;
                }
                Next::TimedOut => return Err(No::TimedOut),
            }
        }
    }

    /// Finds the bytes of a file that were at rest.
    pub(crate) fn load(&self, locked: &Locked, size: u64) {
        let mut inner = locked.open();
        let serial = inner.serial;
        let body = {
            let mut state = self.state();
            match state.disk.backing.get(&serial).cloned() {
                _ if size == 0 => Body::Memory(Vec::new()),
                Some(backing) => {
                    let seen = Some(backing.borrow().seen()).filter(|seen| seen.size == size);
                    Body::File { file: backing, seen }
                }
                None => {
                    let mut bytes = state.disk.packed.get(&serial).cloned().unwrap_or_default();
                    bytes.resize(size as usize, 0);
                    match bytes.len() <= SMALL_MAX {
                        true => Body::Memory(bytes),
                        false => {
                            let file = state.disk.make_backing(serial, bytes);
                            let seen = Some(file.borrow().seen());
                            Body::File { file, seen }
                        }
                    }
                }
            }
        };
        inner.bytes.load(body);
    }

    async fn fetch(
        &self,
        file: &FileId,
        serial: u64,
        quest: &mut Quest<Vec<u8>, Backing>,
        content: Content,
    ) -> Result<(), No> {
        let home = content.home.ok_or(No::Io)?;
        self.mark("bytes are fetched");
        let (version, size) = (content.version, content.size / UNIT);
        let query = Query::Fetch { file: file.clone(), serial, version, size };
        let mut answer = self.ask(home, query.clone(), FETCH_MAX).await;
        if answer.is_none() {
            answer = self.ask(home, query, FETCH_MAX).await;
        }
        let bytes = match &answer {
            Some(Answer::Bytes(bytes)) => Some(bytes.clone()),
            _ => None,
        };
        let is_like = |bytes: &Vec<u8>| {
            let is = content.digest.is_none_or(|known| known == digest(bytes));
            self.tamper().is_like(is)
        };
        let is_busy = answer == Some(Answer::Busy);
        let is_unlike = bytes.as_ref().is_some_and(|bytes| !is_like(bytes));
        if let Some(bytes) = bytes.filter(|_| !is_unlike) {
            let body = match bytes.len() <= SMALL_MAX {
                true => Body::Memory(bytes),
                false => {
                    let file = Backed::of(bytes);
                    let seen = Some(file.borrow().seen());
                    Body::File { file, seen }
                }
            };
            quest.fetched(content, body);
            return Ok(());
        }
        if is_unlike {
            _ = self.ask(home, Query::Look(file.clone()), FETCH_MAX).await;
        }
        let now = self.now();
        match quest.missed(now, &content, &self.said(file), is_unlike || is_busy) {
            Some(again) => {
                self.pause_until(again).await;
                Ok(())
            }
            None => Err(No::Io),
        }
    }

    /// Keeps what was written here and can't be told any more, for whoever wrote it.
    pub(crate) fn follow_aside(&self, locked: &Locked) {
        if self.tamper().keeps() {
            self.rescue(locked);
        }
        locked.open().bytes.forget();
    }

    fn rescue(&self, locked: &Locked) {
        let mut inner = locked.open();
        let Some(bytes) = inner.all() else { return };
        inner.bytes.note_loss();
        self.mark("what was overtaken is kept aside");
        self.note(Note::Aside { file: inner.file.clone(), bytes });
        if inner.bytes.body().is_file() && !inner.bytes.is_borrowed() {
            self.state().disk.remove(inner.serial);
        }
    }

    /// What becomes of what is at hand.
    pub(crate) fn follow(&self, locked: &Locked, follow: Follow) {
        if follow == Follow::Aside {
            self.follow_aside(locked);
        }
    }

    /// Gives a file a backing file of its own, whatever it had.
    pub(crate) fn spill(&self, locked: &Locked) {
        let mut inner = locked.open();
        let serial = inner.serial;
        match inner.bytes.body() {
            Body::Rest => {}
            Body::Memory(held) => {
                let file = self.state().disk.make_backing(serial, held.clone());
                let now = file.borrow().seen();
                inner.bytes.spill(file, now);
            }
            Body::File { file, .. } if inner.bytes.is_borrowed() => {
                let bytes = file.borrow().bytes.clone();
                let file = self.state().disk.make_backing(serial, bytes);
                inner.bytes.adopt(file);
            }
            Body::File { .. } => {}
        }
    }

    /// Stores what is only in memory and tells the directory what it does not know.
    pub(crate) async fn settle(&self, locked: &Locked) -> Result<bool, No> {
        let (file, serial) = (locked.file(), locked.serial());
        let seen = locked.seen();
        let mut settle = locked.open().bytes.settle(&self.said(&file), seen);
        if let Settle::Follow(now, losses) = settle {
            self.follow_at_home(locked, &now, losses).await?;
            settle = locked.open().bytes.settle_now(&self.said(&file), seen);
        }
        match self.tamper().settle(settle) {
            Settle::Nothing | Settle::Follow(..) => Ok(false),
            Settle::Regain => Err(No::Again),
            Settle::Memory { stores, tells } => {
                let Some(bytes) = locked.all() else { return Ok(false) };
                let (size, hash) = (bytes.len() as u64, digest(&bytes));
                if stores {
                    self.state().disk.put(serial, bytes);
                    locked.open().bytes.note_stored();
                }
                if tells {
                    self.report(locked, size, Some(hash)).await?;
                    locked.open().bytes.note_settled(None);
                }
                Ok(tells)
            }
            Settle::File { is_checked } => {
                let Some(bytes) = locked.all() else { return Ok(false) };
                let is_checked = is_checked && bytes.len() <= SMALL_MAX;
                let hash = is_checked.then(|| digest(&bytes));
                self.report(locked, bytes.len() as u64, hash).await?;
                locked.open().bytes.note_settled(seen);
                Ok(true)
            }
        }
    }

    /// Tells the directory that the bytes have changed.
    async fn report(&self, locked: &Locked, size: u64, digest: Option<Digest>) -> Result<(), No> {
        let file = locked.file();
        let is_live = locked.open().bytes.tells_live();
        let (home, version) = (Some(self.me()), self.version());
        let (size, allocated) = (size * UNIT, size * UNIT);
        let content = Content { size, allocated, home, version, digest, is_live };
        let content = self.tamper().tells(content);
        let serial = locked.serial();
        self.state().disk.versions.insert(serial, content.version);
        let losses = self.state().losses;
        let act = Act::SetContent { file: file.clone(), content: content.clone() };
        self.call(Call::Do(act)).await?;
        self.state().told += 1;
        locked.open().bytes.note_told(content, losses, &self.said(&file));
        Ok(())
    }

    /// What was written and could not be told, because the session was lost meanwhile, is told now, or kept aside.
    pub(crate) async fn regain(&self, open: &Slot) -> Result<(), No> {
        let regain = {
            let locked = self.lock(open).await;
            let (file, seen) = (locked.file(), locked.seen());
            locked.0.borrow().bytes.regain(&self.said(&file), seen)
        };
        match self.tamper().regain(regain) {
            Regain::Nothing => Ok(()),
            Regain::Home => self.tell_home(open, PATIENCE).await,
            Regain::Tell => self.ready(open, Need::Tell).await.map(drop),
        }
    }

    /// Makes what was written here safe, and tells the directory of it.
    pub(crate) async fn make_safe(&self, open: &Slot) -> Result<(), No> {
        self.regain(open).await?;
        let locked = self.lock(open).await;
        let has_lost = locked.open().bytes.take_loss();
        if has_lost {
            return Err(No::Io);
        }
        self.settle(&locked).await.map(drop)
    }

    /// Gives up a hold. What nobody has open any more comes to rest.
    pub(crate) async fn let_go(&self, open: &Slot) {
        let is_left = |inner: &Open| inner.handles.is_empty() && inner.bytes.is_home();
        if is_left(&open.borrow()) {
            self.end_home(open).await;
        }
        let locked = self.lock(open).await;
        let is_unused = !locked.is_open() && !locked.0.borrow().is_retained;
        if is_unused && !self.rest(&locked).await {
            // This hold stays, until it can be stored.
            locked.open().is_retained = true;
            return;
        }
        let mut inner = locked.open();
        inner.holds -= 1;
        if inner.holds == 0 {
            self.state().opens.remove(&inner.file);
        }
    }

    /// Stores what is not stored and tells the directory; whether nothing has to be kept.
    async fn rest(&self, locked: &Locked) -> bool {
        if locked.is_home() || self.settle(locked).await.is_err() {
            return false;
        }
        let mut inner = locked.open();
        inner.bytes.rest();
        inner.passes = false;
        true
    }

    /// Stores what has been in memory for long, and tries again what could not be stored.
    pub(crate) async fn settle_old(&self, open: &Slot) {
        /// Rounds of tidying, of about a second each.
        const AGE_MAX: u32 = 5;
        let mut locked = self.lock(open).await;
        locked.open().age += 1;
        if locked.open().age < AGE_MAX {
            return;
        }
        let (file, seen) = (locked.file(), locked.seen());
        locked.open().age = 0;
        locked.open().bytes.confirm(&self.said(&file));
        let has_news = locked.open().bytes.has_news(seen);
        if has_news {
            drop(locked);
            if self.regain(open).await.is_err() {
                return;
            }
            locked = self.lock(open).await;
        }
        let is_retained = locked.0.borrow().is_retained && !locked.is_open();
        if is_retained {
            if locked.is_home() {
                drop(locked);
                self.end_home(open).await;
                locked = self.lock(open).await;
            }
            if self.rest(&locked).await {
                locked.open().is_retained = false;
                drop(locked);
                self.let_go(open).await;
            }
            return;
        }
        _ = self.settle(&locked).await;
    }

    /// Tells the directory of the bytes that a file has here, if it says something else.
    /// `is_lost` says that what it was told may be lost.
    pub(crate) async fn look(&self, file: &FileId, is_lost: bool) -> Result<(), No> {
        let serial = match self.call(Call::Hold { file: file.clone(), writes: true }).await? {
            Reply::File(record) => record.serial,
            _ => return Err(No::Io),
        };
        let open = self.hold(file, serial);
        let looked = self.look_at(&open, is_lost).await;
        self.let_go(&open).await;
        looked
    }

    async fn look_at(&self, open: &Slot, is_lost: bool) -> Result<(), No> {
        let locked = self.ready(open, Need::Tell).await?;
        let (file, serial) = (locked.file(), locked.serial());
        let look = locked.open().bytes.look(&self.said(&file), false);
        match self.tamper().look(look) {
            Look::Nothing => return Ok(()),
            Look::Drop => {
                self.state().disk.remove(serial);
                return Ok(());
            }
            Look::Aside => {
                let kept = self.state().disk.bytes(serial);
                if let Some(bytes) = kept.filter(|_| self.tamper().keeps()) {
                    self.mark("what was overtaken is kept aside");
                    self.note(Note::Aside { file, bytes });
                    self.state().disk.remove(serial);
                }
                return Ok(());
            }
            Look::Compare => {}
        }
        let Some(now) = locked.open().bytes.base().cloned() else { return Ok(()) };
        let is_at_rest = locked.open().bytes.body().is_at_rest();
        if is_at_rest && self.state().disk.bytes(serial).is_some() {
            let packed = self.state().disk.packed.get(&serial).cloned();
            match packed {
                Some(bytes) => locked.open().bytes.load(Body::Memory(bytes)),
                None => self.load(&locked, (now.size / UNIT).max(1)),
            }
        }
        let is_other = match locked.open().bytes.body() {
            Body::Rest => false,
            Body::File { .. } => now.digest.is_some() || is_lost && now.size > Content::SMALL_MAX,
            Body::Memory(held) => now.digest != Some(digest(held)),
        };
        locked.open().bytes.found(is_other);
        if self.settle(&locked).await? {
            self.mark("what the directory had not heard is told again");
        } else if now.is_live {
            self.tell_last(&locked, &now).await?;
        }
        Ok(())
    }

    /// Tells what became of contents in something that others want, and lets it go.
    pub(crate) async fn give_up(&self, wanted: client::Wanted) {
        self.state().yielding.push(wanted.part.clone());
        let mut guards = Vec::new();
        for open in self.within(&wanted.part) {
            guards.push(self.lock(&open).await);
        }
        for locked in &guards {
            _ = self.settle(locked).await;
        }
        let part = wanted.part.clone();
        self.step(client::Input::Yield(wanted));
        self.state().yielding.retain(|yielding| *yielding != part);
    }

    /// How large a file is, once the directory has heard of its bytes.
    pub(crate) async fn size(&self, file: &FileId) -> Result<u64, No> {
        let told = self.state().told;
        let record = self.ask_home(file, self.record(file).await?).await?;
        let found = self.state().opens.get(file).cloned();
        let mut live = None;
        if let Some(open) = found {
            let is_home = open.borrow().bytes.is_home();
            if is_home {
                _ = self.tell_home(&open, PATIENCE).await;
            }
            let locked = self.lock(&open).await;
            _ = self.settle(&locked).await;
            let seen = locked.seen();
            if locked.0.borrow().bytes.has_news(seen) {
                live = locked.all().map(|bytes| bytes.len() as u64);
            }
        }
        let was_told = self.tamper().was_told(self.state().told != told);
        let record = if was_told { self.record(file).await? } else { record };
        Ok(live.unwrap_or(record.content.size / UNIT))
    }
}
