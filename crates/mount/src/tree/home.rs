//! Large files that the kernel of one machine reads and writes by itself, in a tree that others have too.
//!
//! That can't be taken back. So it begins only while nobody else has the file open, and only once the group has
//! decided that everybody hears of it ([`Content::is_live`]). From then on whoever opens the file elsewhere goes past
//! the cache there and has this machine do what is to be done, so that one kernel puts everything in order. It ends
//! when nobody has the file open here any more; nobody else can end it.
//!
//! Leases go on as ever: this machine may have to let others read what the directory says. Its own bytes are right
//! all the same, and the directory hears of them when somebody asks.

use std::{
    fs::File,
    io::IoSlice,
    os::unix::fs::FileExt,
    thread,
    time::{Duration, Instant},
};

use base::FileId;
use client::Call;
use directory::{Act, Actor, File as Record, Users, record::Content};
use host::{Deed, Done};
use lease::Client;
use rustix::io::ReadWriteFlags;

use crate::{
    errno,
    front::{Caller, Errno, Purpose, Register},
};

use super::{
    Tree,
    body::Body,
    data::read_file,
    lock,
    opens::{Inner, Open},
    shared::{PATIENCE, PAUSE},
};

/// For a smaller file that exists it is not worth a decision of the group, which takes as long as its daemon takes to
/// write so much.
const WORTH_MIN: u64 = 16 << 20;
/// Whoever is told that bytes do not change where the directory says asks again for so long, and this often.
const DOUBT: Duration = Duration::from_secs(10);
const DOUBT_PAUSE: Duration = Duration::from_millis(5);
/// How long to wait for a home that is to do something, and for one that is only to tell what it has.
const DEED_MAX: Duration = Duration::from_secs(10);
const TELL_MAX: Duration = Duration::from_secs(2);
/// How long to wait for the group before a file is opened without.
const ASK_MAX: Duration = Duration::from_secs(1);
/// A home that did not tell is not asked again for so long by whoever only looks.
const SILENCE: Duration = Duration::from_secs(10);

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

    /// The machine where bytes change without a word, if that is another one.
    pub(super) fn home_elsewhere(&self, content: &Content) -> Option<Client> {
        content.home.filter(|home| self.is_shared && content.is_live && *home != self.desk.me())
    }

    /// Has the group decide that the bytes of a file change here without a word, if the kernel could use them by
    /// itself; whether it has. What is only read everybody's kernel may keep as well. To be called by whoever opens
    /// it, without its lock.
    pub(super) fn settle_home(
        &self,
        open: &Open,
        record: &Record,
        purpose: Purpose,
        caller: &Caller,
    ) -> bool {
        let is_ours = record.content.home == Some(self.desk.me());
        let is_worth_it = purpose.writes && record.content.size >= WORTH_MIN;
        if !is_ours || !is_worth_it {
            return false;
        }
        {
            let mut inner = open.lock();
            let is_first = inner.handles.is_empty() && inner.stay == Stay::Not;
            if !is_first || !self.may_be_home(&inner, purpose, caller) {
                return false;
            }
            inner.stay = Stay::Asked;
        }
        self.ask_for_home(open)
    }

    /// Whether this machine could be the home of a file, as far as it alone decides.
    pub(super) fn may_be_home(&self, inner: &Inner, purpose: Purpose, caller: &Caller) -> bool {
        // Whoever may act only for some could not tell what others have had written here.
        self.has_passthrough()
            && !self.is_silent(self.desk.me())
            && self.desk.acts_for_any()
            && !self.is_delicate(inner, purpose, caller)
    }

    /// The same for a new file. If it is lost, so is the file, or nobody has written it yet: that needs not be
    /// waited for.
    pub(super) fn settle_new_home(&self, open: &Open, purpose: Purpose, caller: &Caller) -> bool {
        {
            let mut inner = open.lock();
            let is_large = purpose.writes && self.habits.is_large_next(caller.pid);
            if !is_large || !self.may_be_home(&inner, purpose, caller) {
                return false;
            }
            inner.stay = Stay::Asked;
        }
        let is_heard = self.keep(&open.file, true, Some(Duration::ZERO)).is_ok();
        if !is_heard {
            open.lock().stay = Stay::Not;
        }
        is_heard
    }

    /// Asks the group; the file is noted as asked for. If it says no, it is not any more.
    fn ask_for_home(&self, open: &Open) -> bool {
        let losses = self.desk.losses();
        let is_heard = self.keep(&open.file, true, Some(ASK_MAX)).is_ok();
        // What can't be taken back has to be certain.
        let settled = || self.desk.call_within(&Actor::ROOT, Call::Settle, Some(ASK_MAX)).is_ok();
        let is_sure = is_heard && settled() && self.desk.losses() == losses;
        if !is_sure {
            if is_heard {
                self.note_silent(self.desk.me());
                // If this is not heard either, whoever asks here finds out.
                _ = self.keep(&open.file, false, None);
            }
            open.lock().stay = Stay::Not;
        }
        is_sure
    }

    /// Somebody does not answer: they are not asked for a while by whoever can do without.
    fn note_silent(&self, who: Client) {
        let now = Instant::now();
        let mut silent = lock(&self.silent);
        silent.retain(|_, since| now - *since < SILENCE);
        silent.insert(who, now);
    }

    fn is_silent(&self, who: Client) -> bool {
        lock(&self.silent).get(&who).is_some_and(|since| since.elapsed() < SILENCE)
    }

    /// The kernel begins to use the bytes of a file by itself, which the group knows to be here. Nobody has it open.
    pub(super) fn become_home(
        &self,
        open: &Open,
        inner: &mut Inner,
        size: u64,
        register: Register<'_>,
    ) -> Result<(), Errno> {
        // From here on it ends when nobody has the file open, whatever comes.
        inner.stay = Stay::Home;
        if matches!(inner.body, Body::Rest) {
            self.load_bytes(open, inner, size)?;
        }
        self.pass_through(inner, register);
        Ok(())
    }

    /// Tells the directory that bytes begin or cease to change here; for how long to wait, if that is not needed.
    fn keep(&self, file: &FileId, is_live: bool, most: Option<Duration>) -> Result<Content, Errno> {
        let version = self.desk.version();
        let call = Call::Do(Act::Keep { file: file.clone(), version, is_live });
        self.desk.call_within(&Actor::ROOT, call, most).map_err(errno::of_call)?;
        let home = Some(self.desk.me());
        Ok(Content { size: 0, home, version, digest: None, is_live })
    }

    /// Nobody has a file open here any more: others may have its bytes. If they can't be told, this is tried again.
    pub(super) fn end_home(&self, open: &Open) {
        let ended = self.with_content(open, |inner, now| {
            if !inner.handles.is_empty() || inner.stay != Stay::Home {
                return Ok(());
            }
            inner.stay = Stay::Not;
            let told = match self.is_anothers(now) {
                true => self.follow_others(open, inner, now),
                false => match inner.has_news() {
                    Ok(false) => self.keep(&open.file, false, None).map(drop),
                    _ => self.settle(open, inner).map(drop),
                },
            };
            match told {
                Ok(()) => inner.registration = None,
                Err(_) => inner.stay = Stay::Home,
            }
            told
        });
        if ended == Err(Errno::STALE) {
            // There is no such file any more.
            let mut inner = open.lock();
            (inner.stay, inner.registration) = (Stay::Not, None);
        }
    }

    /// The directory hears of the bytes of a file that change here.
    pub(super) fn tell_home(&self, open: &Open) -> Result<(), Errno> {
        self.with_content(open, |inner, now| match self.is_anothers(now) {
            true => Err(Errno::IO),
            false => self.settle(open, inner).map(drop),
        })
    }

    /// Whether somebody else has changed a content that was to be ours: they can't have heard of that, because it was
    /// lost with a session. What was written here is kept aside in the end.
    fn is_anothers(&self, now: &Content) -> bool {
        now.home.is_some_and(|home| home != self.desk.me())
    }

    /// Does something with the right to change a file's content, and its lock.
    fn with_content<T>(
        &self,
        open: &Open,
        act: impl FnOnce(&mut Inner, &Content) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let start = Instant::now();
        loop {
            self.held(&open.file, true)?;
            let mut inner = open.lock();
            if !self.is_yielding(&open.file)
                && let Some(now) = self.desk.holds(&open.file, true)
            {
                return act(&mut inner, &now);
            }
            drop(inner);
            if start.elapsed() > PATIENCE {
                return Err(Errno::TIMEDOUT);
            }
            thread::park_timeout(PAUSE);
        }
    }

    /// The directory says that bytes change here, and they do not: it is told. With the right to do so.
    pub(super) fn end_rumour(&self, open: &Open, inner: &mut Inner) -> Result<(), Errno> {
        if inner.stay == Stay::Not {
            let content = self.keep(&open.file, false, None)?;
            let size = inner.base.as_ref().map_or(0, |base| base.size);
            inner.base = Some(Content { size, ..content });
        }
        Ok(())
    }

    /// Another machine, which acts for these users, has something done to bytes that change here.
    pub(super) fn serve(&self, users: &Users, file: &FileId, actor: &Actor, deed: Deed) -> Done {
        let open = self.inodes.find(file).and_then(|inode| self.opens.get(inode));
        let Some(open) = open else { return Done::Away };
        let done = self.must_be_entitled(users, file, actor, &deed);
        match done.and_then(|()| self.do_here(&open, actor, deed)) {
            Ok(done) => done,
            Err(errno) => Done::Refused(errno.raw_os_error() as u16),
        }
    }

    fn must_be_entitled(
        &self,
        users: &Users,
        file: &FileId,
        actor: &Actor,
        deed: &Deed,
    ) -> Result<(), Errno> {
        let is_entitled =
            !deed.is_change() || directory::may_write(users, actor.uid, &self.record(file)?.access);
        if is_entitled { Ok(()) } else { Err(Errno::ACCESS) }
    }

    fn do_here(&self, open: &Open, actor: &Actor, deed: Deed) -> Result<Done, Errno> {
        let mut inner = open.lock();
        if inner.stay != Stay::Home {
            return Ok(Done::Away);
        }
        let file = self.spill(open, &mut inner)?;
        if deed.is_change() {
            if inner.has_suid && actor.uid != 0 {
                self.tame(open, &mut inner)?;
            }
            inner.writer = (actor.uid, actor.gid);
            self.note(open, &mut inner)?;
            // The kernel here may not believe what it knows of it.
            self.contend(open.inode);
        }
        match deed {
            Deed::Read { offset, length } => {
                drop(inner);
                let most = usize::try_from(length).unwrap_or(usize::MAX).min(Deed::BYTES_MAX);
                read_file(&file, offset, most).map(Done::Bytes)
            }
            Deed::Write { offset, bytes } => {
                self.must_have_room(bytes.len() as u64)?;
                match offset {
                    Some(offset) => {
                        file.write_all_at(&bytes, offset).map_err(|error| errno::of_file(&error))
                    }
                    None => append(&file, &bytes),
                }
                .map(|()| Done::Well)
            }
            Deed::Resize(size) => self.set_size(open, &mut inner, size).map(|()| Done::Well),
            Deed::Sync => {
                drop(inner);
                rustix::fs::fsync(&*file)?;
                Ok(Done::Well)
            }
            Deed::Tell => {
                drop(inner);
                self.tell_home(open).map(|()| Done::Well)
            }
        }
    }

    /// Has something done where the bytes of a file change. Nothing, if they change nowhere without a word: then it
    /// is to be done here.
    pub(super) fn do_at_home(&self, open: &Open, deed: &Deed) -> Result<Option<Done>, Errno> {
        if !self.is_shared || open.lock().stay == Stay::Home {
            return Ok(None);
        }
        let start = Instant::now();
        loop {
            let held = self.desk.holds(&open.file, false);
            let content = held.map_or_else(|| self.held(&open.file, false), Ok)?;
            let Some(home) = self.home_elsewhere(&content) else { return Ok(None) };
            let actor = {
                let inner = open.lock();
                if inner.has_given_up(&content) {
                    return Ok(None);
                }
                let (uid, gid) = inner.writer;
                Actor { uid, gid, groups: Vec::new() }
            };
            let done = self.neighbours.do_at_home(home, &open.file, &actor, deed.clone(), DEED_MAX);
            match done {
                Ok(Done::Away) if start.elapsed() < DOUBT => thread::park_timeout(DOUBT_PAUSE),
                // It looks after its bytes, and still the directory has not heard.
                Ok(Done::Away) => open.lock().forsaken = Some(content),
                Ok(Done::Refused(errno)) => {
                    return Err(Errno::from_raw_os_error(i32::from(errno)));
                }
                Ok(done) => return Ok(Some(done)),
                Err(failure) => {
                    eprintln!(
                        "croft: inode {} is open on another machine, which does not answer: {failure}",
                        open.inode
                    );
                    return Err(errno::of_host(failure));
                }
            }
        }
    }

    /// Has a range of bytes read where they change.
    pub(super) fn read_at_home(
        &self,
        open: &Open,
        offset: u64,
        size: usize,
    ) -> Result<Option<Vec<u8>>, Errno> {
        let mut all = Vec::new();
        while all.len() < size {
            let length = (size - all.len()).min(Deed::BYTES_MAX);
            let (offset, length) = (offset.saturating_add(all.len() as u64), length as u64);
            let Some(done) = self.do_at_home(open, &Deed::Read { offset, length })? else {
                return Ok(None);
            };
            let Done::Bytes(bytes) = done else { return Err(Errno::IO) };
            let is_end = (bytes.len() as u64) < length;
            all.extend_from_slice(&bytes[..bytes.len().min(length as usize)]);
            if is_end {
                break;
            }
        }
        Ok(Some(all))
    }

    /// Has bytes written where they change; how many. What is left is to be written here.
    pub(super) fn write_at_home(
        &self,
        open: &Open,
        offset: Option<u64>,
        data: &[u8],
    ) -> Result<usize, Errno> {
        let mut written = 0;
        for piece in data.chunks(Deed::BYTES_MAX) {
            let offset = offset.map(|offset| offset.saturating_add(written as u64));
            if self.do_at_home(open, &Deed::Write { offset, bytes: piece.to_vec() })?.is_none() {
                break;
            }
            written += piece.len();
        }
        Ok(written)
    }

    /// What the directory says of a file whose bytes change elsewhere, after it has heard of them. If their home does
    /// not answer, what is known.
    pub(super) fn ask_home(
        &self,
        file: &FileId,
        record: triomphe::Arc<Record>,
    ) -> Result<triomphe::Arc<Record>, Errno> {
        let Some(home) = self.home_elsewhere(&record.content) else { return Ok(record) };
        // Nobody is told when it changes.
        self.contend(record.serial);
        if self.is_silent(home) {
            return Ok(record);
        }
        match self.neighbours.do_at_home(home, file, &Actor::ROOT, Deed::Tell, TELL_MAX) {
            Ok(_) => self.record(file),
            Err(_) => {
                self.note_silent(home);
                Ok(record)
            }
        }
    }

    /// Pages of a file that changes elsewhere may be old: memory that is mapped is not looked at again by itself.
    pub(super) fn refresh_mapped(&self, open: &Open) {
        let is_elsewhere = |content: Content| self.home_elsewhere(&content).is_some();
        if open.has_pages() && self.desk.holds(&open.file, false).is_some_and(is_elsewhere) {
            self.tell(crate::front::Change::Bytes(open.inode));
        }
    }
}

/// Writes at the end of a file, wherever others who write there have left that.
fn append(file: &File, mut bytes: &[u8]) -> Result<(), Errno> {
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
