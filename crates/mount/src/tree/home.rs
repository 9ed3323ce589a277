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
};

use base::{Digest, Duration, FileId};
use client::{Call, Reply};
use content::{ASK_MAX, Bid, Bidding, Chance, DEED_MAX, End, Need, TELL_MAX, WORTH_MIN};
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
};

impl Tree {
    /// How many files the kernel reads and writes by itself though others have the tree too.
    pub fn homes(&self) -> usize {
        let opens = self.opens.all();
        opens.iter().filter(|open| open.lock().bytes.is_home()).count()
    }

    /// Has the group decide that the bytes of a file change here without a word, if the kernel could use them by
    /// itself: then this is what it says of them. What is only read everybody's kernel may keep as well. To be called
    /// by whoever opens it, without its lock, and followed by [`Tree::become_home`].
    pub(super) fn settle_home(
        &self,
        open: &Open,
        record: &Record,
        is_contended: bool,
        purpose: Purpose,
        caller: &Caller,
    ) -> Option<Content> {
        let said = self.said(&open.file);
        let bid = {
            let mut inner = open.lock();
            let chance = Chance {
                is_first: inner.handles.is_empty(),
                is_contended,
                ..self.chance(&inner, purpose, caller)
            };
            inner.bytes.bid(&record.content, chance, &said)?
        };
        let content = self.ask_for_home(open, bid);
        if content.is_none() {
            open.lock().bytes.give_up_bid();
        }
        content
    }

    /// What speaks for and against this machine as the home of a file, as far as it alone decides.
    fn chance(&self, inner: &Inner, purpose: Purpose, caller: &Caller) -> Chance {
        Chance {
            writes: purpose.writes,
            is_first: true,
            is_able: self.has_passthrough()
                && self.desk.acts_for_any()
                && !self.is_delicate(inner, purpose, caller),
            is_slow: self.is_silent(self.desk.me()),
            is_contended: false,
            worth_min: WORTH_MIN,
        }
    }

    /// The same for a new file, which is not waited for.
    pub(super) fn settle_new_home(
        &self,
        open: &Open,
        purpose: Purpose,
        caller: &Caller,
    ) -> Option<Content> {
        let bid = {
            let mut inner = open.lock();
            let is_large = purpose.writes && self.habits.is_large_next(caller.pid);
            let chance = self.chance(&inner, purpose, caller);
            inner.bytes.bid_new(is_large, chance, &self.said(&open.file))?
        };
        match bid.kept_new(self.keep_live(&open.file, Some(Duration::ZERO)).ok()) {
            Bidding::Won(content) => Some(content),
            Bidding::Settle | Bidding::Lost { .. } => {
                open.lock().bytes.give_up_bid();
                None
            }
        }
    }

    fn ask_for_home(&self, open: &Open, mut bid: Bid) -> Option<Content> {
        let kept = self.keep_live(&open.file, Some(ASK_MAX));
        let is_slow = kept == Err(Errno::TIMEDOUT);
        let mut next = bid.kept(kept.ok(), is_slow);
        if next == Bidding::Settle {
            let settled = self.desk.call_within(&Actor::ROOT, Call::Settle, Some(ASK_MAX));
            next = bid.settled(settled.is_ok(), &self.said(&open.file));
        }
        match next {
            Bidding::Won(content) => Some(content),
            Bidding::Settle => None,
            Bidding::Lost { is_kept, is_slow } => {
                if is_kept {
                    self.give_up_home(open);
                }
                if is_slow {
                    self.note_silent(self.desk.me());
                }
                None
            }
        }
    }

    /// It was not to be. If the group does not hear that, whoever asks here finds out.
    fn give_up_home(&self, open: &Open) {
        // Somebody may have told of other bytes meanwhile.
        _ = self.with_content(open, ASK_MAX, |inner, now| match now.is_live {
            true if now.home == Some(self.desk.me()) => self.end_rumour(open, inner, now),
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
        let (mut inner, said) = (open.lock(), self.said(&open.file));
        let is_first = inner.handles.is_empty();
        if inner.bytes.may_become_home(&content, is_first, &said)
            && self.load_bytes(open, &mut inner, content.size).is_ok()
        {
            inner.bytes.become_home(content, &said);
            self.pass_through(open, &mut inner, true, register);
            return Some(inner);
        }
        drop(inner);
        self.give_up_home(open);
        open.lock().bytes.give_up_bid();
        None
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
            let (said, seen) = (self.said(&open.file), inner.seen()?);
            let is_open = !inner.handles.is_empty();
            let told = match inner.bytes.end(now, is_open, &said, seen) {
                End::Nothing => return Ok(()),
                End::Follow(follow) => self.follow(open, inner, follow),
                End::Settle => self.settle(open, inner).map(drop),
                End::Keep => self.tell_last(open, inner, now),
            };
            match told {
                Ok(()) => {
                    inner.bytes.leave();
                    inner.registration = None;
                }
                Err(_) => inner.bytes.remain(),
            }
            told
        });
        if ended == Err(Errno::STALE) {
            // There is no such file any more.
            let mut inner = open.lock();
            inner.bytes.leave();
            inner.registration = None;
        }
    }

    /// The machine stops. What can't be told is safe here, and told after the next start.
    pub(super) fn finish_home(&self, open: &Open) {
        if !open.lock().bytes.is_home() || self.is_silent(self.desk.me()) {
            return;
        }
        if self.tell_home(open, TELL_MAX) == Err(Errno::TIMEDOUT) {
            self.note_silent(self.desk.me());
        } else if open.lock().is_left_home() {
            self.end_home(open);
        }
    }

    /// Tells that bytes that have been told of change here no more, and what others check them by.
    fn tell_last(&self, open: &Open, inner: &mut Inner, now: &Content) -> Result<(), Errno> {
        let digest = inner.digest_of(now.size)?;
        if digest.is_some() || now.size == 0 || now.size > Content::SMALL_MAX {
            let kept = self.keep(&Actor::ROOT, &open.file, (false, digest), None)?;
            inner.bytes.note_kept(kept);
            return Ok(());
        }
        inner.bytes.must_tell();
        self.settle(open, inner).map(drop)
    }

    /// The directory hears of the bytes of a file that change here; how long to wait.
    pub(super) fn tell_home(&self, open: &Open, most: Duration) -> Result<(), Errno> {
        let has_told = {
            let inner = open.lock();
            inner.bytes.reported() == Some(self.desk.losses()) && !inner.has_news()?
        };
        match has_told {
            true => Ok(()),
            false => self.with_content(open, most, |inner, _| self.settle(open, inner).map(drop)),
        }
    }

    /// What bytes that change here are to the directory, as found out when so many sessions were lost.
    pub(super) fn follow_at_home(
        &self,
        open: &Open,
        inner: &mut Inner,
        now: &Content,
        losses: u64,
    ) -> Result<(), Errno> {
        let said = self.said(&open.file);
        let is_rumoured = inner.bytes.follow_at_home(now, losses, &said);
        if is_rumoured.map_err(errno::of_anothers)?
            && let Ok(content) = self.keep_live(&open.file, Some(Duration::ZERO))
        {
            inner.bytes.note_kept(content);
        }
        Ok(())
    }

    /// Does something with the right to change a file's content, and its lock.
    fn with_content<T>(
        &self,
        open: &Open,
        most: Duration,
        act: impl FnOnce(&mut Inner, &Content) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut inner = self.ready_within(open, Need::Keep, most)?;
        match self.desk.holds(&open.file, true) {
            Some(now) => act(&mut inner, &now),
            None => Err(Errno::AGAIN),
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
        if inner.bytes.base() == Some(now) {
            inner.bytes.note_kept(kept);
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
        if !inner.bytes.is_home() {
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
