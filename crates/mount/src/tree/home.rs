//! Large files that the kernel of one machine reads and writes by itself, in a tree that others have too.
//!
//! That can't be taken back. So it begins only while nobody else has the file open, and only once the group has
//! decided that everybody hears of it ([`Content::is_live`]). From then on whoever opens the file elsewhere goes past
//! the cache there and has this machine do what is to be done, so that one kernel puts everything in order. It ends
//! when nobody has the file open here any more; nobody else can end it.
//!
//! Leases go on as ever: this machine may have to let others read what the directory says. Its own bytes are right
//! all the same, and the directory hears of them when somebody asks.
//!
//! Two things can go wrong. A session may be lost, and with it that the bytes were to change here: then others may
//! change them too, and what was written here is kept aside. And programs may outlive the daemon: the kernel lets them
//! go on. So the daemon that comes after it looks after such a file as long as it runs ([`super::outlived`]).

use std::{
    fs::File,
    io::IoSlice,
    os::unix::fs::FileExt,
    sync::{MutexGuard, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use base::{Digest, FileId};
use client::{Call, Reply};
use directory::{
    Act, Actor, File as Record, Users,
    record::{Access, Content},
};
use host::{Io, IoReply, IoRequest};
use rustix::io::ReadWriteFlags;

use crate::{
    errno,
    front::{Caller, Errno, Purpose, Register},
};

use super::{
    Tree,
    data::read_file,
    opens::{Inner, Open},
    shared::PAUSE,
};

/// For a smaller file that exists it is not worth a decision of the group, which takes as long as its daemon takes to
/// write so much.
const WORTH_MIN: u64 = 16 << 20;
/// How long to wait for a home that is to do something, and for one that is only to tell what it has.
pub(super) const DEED_MAX: Duration = Duration::from_secs(10);
pub(super) const TELL_MAX: Duration = Duration::from_secs(2);
/// How long to wait for the group before a file is opened without, or closed and looked at again later.
pub(super) const ASK_MAX: Duration = Duration::from_secs(1);
/// Whether the kernel here reads and writes a file by itself, in a tree that others have too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stay {
    /// No.
    #[default]
    Not,
    /// The group is being asked.
    Asked,
    /// Yes: the bytes here are right, whatever is held of them.
    Home,
}

impl Tree {
    /// How many files the kernel reads and writes by itself though others have the tree too.
    pub fn homes(&self) -> usize {
        let opens = self.opens.all();
        opens.iter().filter(|open| open.lock().stay == Stay::Home).count()
    }

    /// Has the group decide that the bytes of a file change here without a word, if the kernel could use them by
    /// itself: then this is what it says of them. What is only read everybody's kernel may keep as well. To be called
    /// by whoever opens it, without its lock, and followed by [`Tree::become_home`].
    pub(super) fn settle_home(
        &self,
        open: &Open,
        record: &Record,
        purpose: Purpose,
        caller: &Caller,
    ) -> Option<Content> {
        let is_ours = record.content.home == Some(self.desk.me());
        let is_worth_it = purpose.writes && record.content.size >= WORTH_MIN;
        if !is_ours || !is_worth_it {
            return None;
        }
        {
            let mut inner = open.lock();
            let is_first = inner.is_unused() && inner.stay == Stay::Not;
            if !is_first || !self.may_be_home(&inner, purpose, caller) {
                return None;
            }
            inner.stay = Stay::Asked;
        }
        let content = self.ask_for_home(open);
        if content.is_none() {
            open.lock().stay = Stay::Not;
        }
        content
    }

    /// Whether this machine could be the home of a file, as far as it alone decides.
    pub(super) fn may_be_home(&self, inner: &Inner, purpose: Purpose, caller: &Caller) -> bool {
        // Whoever may act only for some could not tell what others have had written here.
        self.has_passthrough()
            && !self.is_silent(self.desk.me())
            && self.desk.acts_for_any()
            && !self.is_delicate(inner, purpose, caller)
    }

    /// The same for a new file, which is not waited for: if it is lost, then as a rule so is the file. Else what is
    /// written here counts as written in a session that was lost.
    pub(super) fn settle_new_home(
        &self,
        open: &Open,
        purpose: Purpose,
        caller: &Caller,
    ) -> Option<Content> {
        {
            let mut inner = open.lock();
            let is_large = purpose.writes && self.habits.is_large_next(caller.pid);
            if !is_large || !self.may_be_home(&inner, purpose, caller) {
                return None;
            }
            inner.stay = Stay::Asked;
        }
        let content = self.keep_live(&open.file, Some(Duration::ZERO)).ok();
        if content.is_none() {
            open.lock().stay = Stay::Not;
        }
        content
    }

    fn ask_for_home(&self, open: &Open) -> Option<Content> {
        let losses = self.desk.losses();
        let kept = self.keep_live(&open.file, Some(ASK_MAX));
        // What can't be taken back has to be certain.
        let settle = || self.desk.call_within(&Actor::ROOT, Call::Settle, Some(ASK_MAX));
        let is_sure = kept.is_ok() && settle().is_ok() && self.desk.losses() == losses;
        if is_sure {
            return kept.ok();
        }
        if kept.is_ok() {
            self.give_up_home(open);
        }
        if kept.is_ok() || kept == Err(Errno::TIMEDOUT) {
            self.note_silent(self.desk.me());
        }
        None
    }

    /// It was not to be. If the group does not hear that, whoever asks here finds out.
    fn give_up_home(&self, open: &Open) {
        // Somebody may have told of other bytes meanwhile.
        _ = self.with_content(open, ASK_MAX, |inner, now| match now.is_live {
            true if !self.is_anothers(now) => self.end_rumour(open, inner, now),
            _ => Ok(()),
        });
    }

    /// The kernel begins to use the bytes of a file by itself, which the group knows to be here: it has decided on
    /// this content. Not if somebody has begun to use it in another way meanwhile.
    pub(super) fn become_home<'a>(
        &self,
        open: &'a Open,
        content: Content,
        register: Register<'_>,
    ) -> Option<MutexGuard<'a, Inner>> {
        let mut inner = open.lock();
        let is_so = self.desk.holds(&open.file, false).as_ref() == Some(&content);
        if is_so && inner.is_unused() && self.load_bytes(open, &mut inner, content.size).is_ok() {
            // From here on it ends when nobody has the file open, whatever comes.
            self.begin_home(&mut inner, content);
            self.pass_through(open, &mut inner, true, register);
            return Some(inner);
        }
        drop(inner);
        self.give_up_home(open);
        open.lock().stay = Stay::Not;
        None
    }

    pub(super) fn begin_home(&self, inner: &mut Inner, content: Content) {
        inner.stay = Stay::Home;
        (inner.base, inner.origin) = (Some(content), None);
        inner.reported = Some(self.desk.losses());
    }

    /// Tells the directory that bytes begin to change here without a word, and what it says of them then; for how
    /// long to wait, if that is not needed.
    fn keep_live(&self, file: &FileId, most: Option<Duration>) -> Result<Content, Errno> {
        self.keep(&Actor::ROOT, file, (true, None), most)
    }

    /// Tells it whether they do, and if not what others check them by.
    fn keep(
        &self,
        actor: &Actor,
        file: &FileId,
        (is_live, digest): (bool, Option<Digest>),
        most: Option<Duration>,
    ) -> Result<Content, Errno> {
        let (file, version) = (file.clone(), self.desk.version());
        let call = Call::Do(Act::Keep { file, version, is_live, digest });
        match self.desk.call_within(actor, call, most).map_err(errno::of_call)? {
            Reply::Changed(record) => Ok(record.content.clone()),
            _ => Err(Errno::IO),
        }
    }

    /// Nobody has a file open here any more: others may have its bytes. If they can't be told, this is tried again.
    pub(super) fn end_home(&self, open: &Open) {
        let ended = self.with_content(open, ASK_MAX, |inner, now| {
            if !inner.is_left_home() {
                return Ok(());
            }
            let told = match self.is_anothers(now) {
                true => self.follow_others(open, inner, now),
                false => self.leave_home(open, inner, now),
            };
            if told.is_ok() {
                (inner.stay, inner.registration) = (Stay::Not, None);
            }
            told
        });
        if ended == Err(Errno::STALE) {
            // There is no such file any more.
            let mut inner = open.lock();
            (inner.stay, inner.registration) = (Stay::Not, None);
        }
    }

    /// The machine stops. What can't be told is safe here, and told after the next start.
    pub(super) fn finish_home(&self, open: &Open) {
        if open.lock().stay != Stay::Home || self.is_silent(self.desk.me()) {
            return;
        }
        if self.tell_home(open, TELL_MAX) == Err(Errno::TIMEDOUT) {
            self.note_silent(self.desk.me());
        } else if open.lock().is_left_home() {
            self.end_home(open);
        }
    }

    /// Tells all that there is to tell of bytes that change here no more.
    fn leave_home(&self, open: &Open, inner: &mut Inner, now: &Content) -> Result<(), Errno> {
        self.follow_directory(open, inner, (now, self.desk.losses()))?;
        inner.stay = Stay::Not;
        let told = self.tell_last(open, inner, now);
        inner.stay = Stay::Home;
        told
    }

    fn tell_last(&self, open: &Open, inner: &mut Inner, now: &Content) -> Result<(), Errno> {
        if inner.has_news() == Ok(false) {
            let digest = inner.digest_of(now.size)?;
            if digest.is_some() || now.size == 0 || now.size > Content::SMALL_MAX {
                let over = (false, digest);
                inner.base = Some(self.keep(&Actor::ROOT, &open.file, over, None)?);
                return Ok(());
            }
            inner.must_tell();
        }
        self.settle(open, inner).map(drop)
    }

    /// The directory hears of the bytes of a file that change here; how long to wait.
    pub(super) fn tell_home(&self, open: &Open, most: Duration) -> Result<(), Errno> {
        let has_told = {
            let inner = open.lock();
            inner.reported == Some(self.desk.losses()) && !inner.has_news()?
        };
        match has_told {
            true => Ok(()),
            false => self.with_content(open, most, |inner, _| self.settle(open, inner).map(drop)),
        }
    }

    /// What bytes that change here are to the directory, as found out when so many sessions were lost. If it has not heard what it was told, because that
    /// was lost with a session, it has to be told again; if it says by now that they are another machine's, what is
    /// here is nobody's, and is kept aside in the end.
    pub(super) fn follow_directory(
        &self,
        open: &Open,
        inner: &mut Inner,
        (now, losses): (&Content, u64),
    ) -> Result<(), Errno> {
        if self.is_anothers(now) {
            return Err(Errno::IO);
        }
        if inner.base.as_ref() != Some(now) {
            inner.base = Some(now.clone());
            inner.must_tell();
        }
        inner.reported = Some(losses);
        if !now.is_live
            && let Ok(content) = self.keep_live(&open.file, Some(Duration::ZERO))
        {
            inner.base = Some(content);
        }
        Ok(())
    }

    /// Whether somebody else has changed a content that was to be ours: they can't have heard of that, because it was
    /// lost with a session.
    fn is_anothers(&self, now: &Content) -> bool {
        now.home.is_some_and(|home| home != self.desk.me())
    }

    /// Does something with the right to change a file's content, and its lock.
    fn with_content<T>(
        &self,
        open: &Open,
        most: Duration,
        act: impl FnOnce(&mut Inner, &Content) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let start = Instant::now();
        loop {
            let hold = Call::Hold { file: open.file.clone(), writes: true };
            self.desk.call_within(&Actor::ROOT, hold, Some(most)).map_err(errno::of_call)?;
            let mut inner = open.lock();
            if !self.is_yielding(&open.file)
                && let Some(now) = self.desk.holds(&open.file, true)
            {
                return act(&mut inner, &now);
            }
            drop(inner);
            if start.elapsed() > most {
                return Err(Errno::TIMEDOUT);
            }
            thread::park_timeout(PAUSE);
        }
    }

    /// The directory says that bytes change here, and they do not, or has nothing to check them by: it is told. With
    /// the right to do so.
    pub(super) fn end_rumour(
        &self,
        open: &Open,
        inner: &mut Inner,
        now: &Content,
    ) -> Result<(), Errno> {
        let digest = inner.digest_of(now.size)?;
        let told = Content { is_live: false, digest, ..now.clone() };
        if told.lacks_digest() {
            eprintln!("croft: the {} bytes of inode {} are missing", now.size, open.inode);
            return Ok(());
        }
        let actor = match self.desk.acts_for_any() {
            true => Actor::ROOT,
            false => {
                let Access { uid, gid, .. } = self.record(&open.file)?.access;
                Actor { uid, gid, groups: Vec::new() }
            }
        };
        let kept = self.keep(&actor, &open.file, (false, digest), None)?;
        if inner.base.as_ref() == Some(now) {
            inner.base = Some(kept);
        }
        Ok(())
    }

    /// Another machine wants something done to bytes that change here.
    pub(super) fn serve(&self, plea: IoRequest<'_>) -> IoReply {
        if self.is_finished.load(Ordering::Acquire) {
            // Programs may still write it past us.
            return IoReply::Busy;
        }
        let open = self.opens.get(plea.serial).filter(|open| open.file == *plea.file);
        let Some(open) = open else { return IoReply::Away };
        match self.must_be_entitled(&plea).and_then(|()| self.do_here(&open, plea)) {
            Ok(done) => done,
            Err(errno) => IoReply::Refused(errno.raw_os_error() as u16),
        }
    }

    fn must_be_entitled(&self, plea: &IoRequest<'_>) -> Result<(), Errno> {
        if !plea.io.is_change() || *plea.users == Users::Any {
            return Ok(());
        }
        let look = Call::GetAttr { file: plea.file.clone() };
        let found = self.desk.call_within(&Actor::ROOT, look, Some(TELL_MAX));
        let Reply::File(record) = found.map_err(errno::of_call)? else { return Err(Errno::IO) };
        match directory::may_write(plea.users, plea.who.0, &record.access) {
            true => Ok(()),
            false => Err(Errno::ACCESS),
        }
    }

    fn do_here(&self, open: &Open, plea: IoRequest<'_>) -> Result<IoReply, Errno> {
        let mut inner = open.lock();
        if inner.stay != Stay::Home {
            return Ok(IoReply::Away);
        }
        if !(plea.is_awaited)() {
            // It was asked for again, perhaps, and then other things: now it would come too late.
            return Ok(IoReply::Busy);
        }
        let file = self.spill(open, &mut inner)?;
        if plea.io.is_change() {
            inner.writer = plea.who;
            self.note(open, &mut inner)?;
            // The kernel here may not believe what it knows of it.
            self.contend(open.inode);
        }
        match plea.io {
            Io::Read { offset, length } => {
                drop(inner);
                let most = usize::try_from(length).unwrap_or(usize::MAX).min(Io::BYTES_MAX);
                read_file(&file, offset, most).map(IoReply::Bytes)
            }
            Io::Write { offset, bytes } => {
                self.must_have_room(bytes.len() as u64)?;
                let end = offset.unwrap_or(u64::MAX).saturating_add(bytes.len() as u64);
                self.cover_write(open, &mut inner, end, bytes.len() as u64)?;
                match offset {
                    Some(offset) => {
                        file.write_all_at(&bytes, offset).map_err(|error| errno::of_file(&error))
                    }
                    None => append(&file, &bytes),
                }
                .map(|()| IoReply::Done)
            }
            Io::Resize(size) => self.set_size(open, &mut inner, size).map(|()| IoReply::Done),
            Io::Sync => {
                drop(inner);
                self.tell_home(open, TELL_MAX)?;
                self.make_safe(open)?;
                let settled = self.desk.call_within(&Actor::ROOT, Call::Settle, Some(DEED_MAX));
                settled.map(|_| IoReply::Done).map_err(errno::of_call)
            }
            Io::Tell => {
                drop(inner);
                self.tell_home(open, TELL_MAX).map(|()| IoReply::Done)
            }
        }
    }
}

/// Writes at the end of a file, wherever others who write there have left that.
pub(super) fn append(file: &File, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let slices = [IoSlice::new(bytes)];
        match rustix::io::pwritev2(file, &slices, 0, ReadWriteFlags::APPEND) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
