//! Opening and closing files, and which way their bytes go meanwhile.

use std::sync::atomic::Ordering;

use base::FileId;
use client::{Call, Modes, Reply};
use content::Need;
use directory::{Act, Actor, Birth, File as Record};

use host::Io;

use crate::{
    errno,
    front::{Attributes, Caller, Change, Errno, Opened, Purpose, Register, Way},
};

use super::{
    Tree,
    body::{Body, Held, SUID, look_at},
    name_of,
    names::REPLACED_MAX,
    opens::{Inner, Open},
};

/// The lowest bit of a handle says whether it is for writing, the next whether it is a program that runs, the one
/// after that whether it is for reading; the rest is the client's number of it.
fn handle_of(number: u64, purpose: Purpose) -> u64 {
    let bits = [purpose.reads, purpose.runs, purpose.writes];
    bits.into_iter().fold(number, |handle, bit| handle << 1 | u64::from(bit))
}

fn runs(handle: u64) -> bool {
    handle & 2 != 0
}

/// Whether a handle is for writing.
pub(super) fn writes(handle: u64) -> bool {
    handle & 1 != 0
}

/// Whether memory that is mapped through a handle may be written.
pub(super) fn maps(handle: u64) -> bool {
    handle & 5 == 5
}

/// The client's number of a handle.
pub(super) fn number_of(handle: u64) -> u64 {
    handle >> 3
}

impl Tree {
    /// A regular file is opened. The kernel has checked that it may be.
    pub fn open(
        &self,
        inode: u64,
        purpose: Purpose,
        caller: &Caller,
        register: Register<'_>,
    ) -> Result<Opened, Errno> {
        if (purpose.writes || purpose.truncates) && !self.desk.may_be(caller.uid) {
            // What they write could not be told.
            return Err(Errno::PERM);
        }
        self.in_time(caller.pid, self.open_now(inode, purpose, caller, register))
    }

    fn open_now(
        &self,
        inode: u64,
        purpose: Purpose,
        caller: &Caller,
        register: Register<'_>,
    ) -> Result<Opened, Errno> {
        let hold = self.hold(inode)?;
        let handle = self.open_handle(&hold.file, purpose)?;
        match self.open_way(&hold, handle, purpose, caller, register) {
            Ok(way) => {
                // The hold goes on until `release`.
                hold.keep();
                Ok(Opened { handle, way })
            }
            Err(errno) => {
                self.close_handle(handle);
                Err(errno)
            }
        }
    }

    fn open_way(
        &self,
        open: &Open,
        handle: u64,
        purpose: Purpose,
        caller: &Caller,
        register: Register<'_>,
    ) -> Result<Way, Errno> {
        // Nobody waits for others while the file is locked.
        let mut record = self.is_shared.then(|| self.record(&open.file)).transpose()?;
        let said = self.said(&open.file);
        let is_rumour = |record: &Record| open.lock().bytes.is_rumour(&record.content, &said);
        if record.as_deref().is_some_and(is_rumour) {
            // Of a life before this one.
            self.look(&open.file, Some(open.inode), false)?;
            record = Some(self.record(&open.file)?);
        }
        // What others change may not be read up to an end that the kernel remembers. What was opened before goes on
        // as it does; the kernel bears both.
        let is_contended = self.has_direct.load(Ordering::Relaxed) && self.is_contended(open.inode);
        let content = record.as_ref().map(|record| record.content.clone()).unwrap_or_default();
        let is_remote = open.lock().bytes.must_be_done_elsewhere(&content, &said);
        let is_past_cache = is_contended || is_remote;
        let has_capability = is_past_cache && purpose.writes && self.has_capability(&open.file)?;
        {
            let mut inner = open.lock();
            if let Some(record) = &record {
                inner.has_suid = record.access.mode & SUID != 0;
            }
            inner.has_capability |= has_capability;
        }
        if is_remote {
            return self.open_remote(open, handle, purpose, caller, register);
        }
        let settled = match &record {
            Some(record) => self.settle_home(open, record, is_contended, purpose, caller),
            _ => None,
        };
        let at_home = settled.and_then(|content| self.become_home(open, content, register));
        let mut inner = match at_home {
            Some(inner) => inner,
            None if self.is_shared && purpose.truncates => match self.ready(open, Need::Replace) {
                Err(Errno::REMOTE) => {
                    return self.open_remote(open, handle, purpose, caller, register);
                }
                result => result?,
            },
            None => open.lock(),
        };
        self.choose_way(open, &mut inner, purpose, caller, register)?;
        inner.handles.push(handle);
        Ok(self.present_way(open, &inner, is_contended))
    }

    /// Opens a file whose bytes change on another machine: everything is done there.
    fn open_remote(
        &self,
        open: &Open,
        handle: u64,
        purpose: Purpose,
        caller: &Caller,
        register: Register<'_>,
    ) -> Result<Way, Errno> {
        if purpose.writes || purpose.truncates {
            open.lock().writer = (caller.uid, caller.gid);
        }
        if purpose.truncates {
            self.tame_for(open, &mut open.lock(), caller)?;
            if self.do_at_home(open, &Io::Resize(0))?.is_none() {
                // It came to its end meanwhile.
                return self.open_way(open, handle, purpose, caller, register);
            }
        }
        let mut inner = open.lock();
        inner.handles.push(handle);
        Ok(self.present_way(open, &inner, true))
    }

    /// A new regular file, open. One that exists is only opened, unless `is_new` has to be true.
    #[expect(clippy::too_many_arguments, reason = "a create is an open, and these besides")]
    pub fn create(
        &self,
        directory: u64,
        name: &[u8],
        mode: u16,
        is_new: bool,
        purpose: Purpose,
        caller: &Caller,
        register: Register<'_>,
    ) -> Result<(Attributes, Opened), Errno> {
        for _ in 0..REPLACED_MAX {
            match self.create_new(directory, name, mode, purpose, caller, register) {
                Err(Errno::EXIST) if !is_new => {}
                result => return result,
            }
            match self.open_name(directory, name, purpose, caller, register) {
                // Somebody has removed it since.
                Err(Errno::NOENT | Errno::STALE) => {}
                result => return result,
            }
        }
        Err(Errno::AGAIN)
    }

    fn create_new(
        &self,
        directory: u64,
        name: &[u8],
        mode: u16,
        purpose: Purpose,
        caller: &Caller,
        register: Register<'_>,
    ) -> Result<(Attributes, Opened), Errno> {
        let (file, record) = self.bear(directory, name, mode, caller)?;
        let inode = record.serial;
        let hold = self.hold_file(inode, &file);
        let handle = self.open_handle(&file, purpose).inspect_err(|_| {
            // Whoever is told that it failed does not expect to find it.
            self.unbear(directory, name);
        })?;
        let settled =
            self.is_shared.then(|| self.settle_new_home(&hold, purpose, caller)).flatten();
        let mut inner = hold.lock();
        let empty = Held::new(Vec::new(), &self.reservoir);
        inner.bytes.begin(empty, self.is_shared.then(|| record.content.clone()));
        inner.writer = (caller.uid, caller.gid);
        inner.has_suid = record.access.mode & SUID != 0;
        self.inodes.learn(inode, &file, true);
        if let Some(content) = settled {
            inner.bytes.become_home(content, &self.said(&file));
        }
        self.choose_new(&hold, &mut inner, purpose, caller, register);
        inner.handles.push(handle);
        let way = self.present_way(&hold, &inner, false);
        drop(inner);
        hold.keep();
        Ok((Tree::attributes(&record, None), Opened { handle, way }))
    }

    /// Opens what a name stands for; the kernel is told of it.
    fn open_name(
        &self,
        directory: u64,
        name: &[u8],
        purpose: Purpose,
        caller: &Caller,
        register: Register<'_>,
    ) -> Result<(Attributes, Opened), Errno> {
        let attributes = self.lookup(directory, name, caller.pid)?;
        let opened = self.open(attributes.inode, purpose, caller, register);
        let opened = opened.inspect_err(|_| self.forget(attributes.inode, 1))?;
        Ok((attributes, opened))
    }

    /// A regular file comes to be.
    pub(super) fn bear(
        &self,
        directory: u64,
        name: &[u8],
        mode: u16,
        caller: &Caller,
    ) -> Result<(FileId, triomphe::Arc<Record>), Errno> {
        self.must_have_room_for_name()?;
        let (above, bytes) = (directory, name);
        let (directory, name) = (self.inodes.file(directory)?, name_of(name)?);
        let act = Act::Create { directory, name, mode, birth: Birth::default() };
        let reply = self.act(caller, act, mode & 0o2000 != 0).inspect_err(|errno| {
            if *errno == Errno::TIMEDOUT {
                // It may yet come to be, and the kernel believes that there is none.
                self.tell(Change::Name(above, bytes));
            }
        })?;
        let Reply::Entry(entry, record) = reply else { return Err(Errno::IO) };
        match record.map_or_else(|| self.record(&entry.file), Ok) {
            Ok(record) => Ok((entry.file, record)),
            Err(errno) => {
                self.unbear(above, bytes);
                Err(errno)
            }
        }
    }

    /// A new file that can't be used goes again.
    fn unbear(&self, above: u64, bytes: &[u8]) {
        let undone = self.inodes.file(above).and_then(|directory| {
            let act = Act::Unlink { directory, name: name_of(bytes)?, is_open: false };
            self.take(&Caller { uid: 0, gid: 0, pid: 0 }, act)
        });
        if undone.is_err() {
            // Then it is there, and the kernel believes that it is not.
            self.tell(Change::Name(above, bytes));
        }
    }

    pub(super) fn open_handle(&self, file: &FileId, purpose: Purpose) -> Result<u64, Errno> {
        let modes = Modes::posix(purpose.reads, purpose.writes);
        // What it is opened for was checked by the kernel, which also lets through what only the kernel
        // knows: a file that is run is read, one that is created read-only is written.
        match self.ask(&Actor::ROOT, Call::Open { file: file.clone(), modes })? {
            Reply::Handle(number) => Ok(handle_of(number, purpose)),
            _ => Err(Errno::IO),
        }
    }

    pub(super) fn close_handle(&self, handle: u64) {
        // It fails only if the handle was lost with its session, and then nothing is left to close.
        let _ = self.desk.call(&Actor::ROOT, Call::Close { handle: number_of(handle) });
    }

    /// What was opened under a handle is closed. The kernel says so some time after `close`.
    pub fn release(&self, inode: u64, handle: u64) {
        let Some(open) = self.opens.get(inode) else { return };
        let mut inner = open.lock();
        // All may be closed already, at the end.
        let Some(at) = inner.handles.iter().position(|known| *known == handle) else { return };
        inner.handles.swap_remove(at);
        let is_writer = writes(handle);
        if is_writer {
            self.learn_habit(&mut inner);
        }
        // Where others have it too, what has no name can be told only while it is open.
        // That of a home is told as it ends.
        let is_last = inner.handles.is_empty() && (!self.is_shared || inner.bytes.is_home());
        if is_writer && !is_last && !self.is_unlinked(&open) {
            // Whoever closes it last tries again, and says so if it can't be stored.
            let _ = self.settle(&open, &mut inner);
        }
        let was_passthrough = inner.registration.is_some();
        drop(inner);
        self.close_handle(handle);
        // The hold of `open`.
        self.let_go(&open);
        if is_writer && was_passthrough {
            // Writes into mapped memory pass by everybody: the kernel does not know what time they set.
            self.changed(inode);
        }
    }

    /// The first open decides, until all are closed or others want the file too.
    fn choose_way(
        &self,
        open: &Open,
        inner: &mut Inner,
        purpose: Purpose,
        caller: &Caller,
        register: Register<'_>,
    ) -> Result<(), Errno> {
        // Of whoever does not write, the kernel asks this only when the bytes are gone.
        if purpose.truncates && !purpose.writes && inner.handles.iter().copied().any(runs) {
            return Err(Errno::TXTBSY);
        }
        if purpose.writes || purpose.truncates {
            inner.writer = (caller.uid, caller.gid);
        }
        if inner.handles.is_empty() {
            self.choose_first(open, inner, purpose, caller, register)?;
        }
        if purpose.truncates {
            self.take_place(open, inner)?;
            self.load(open, inner)?;
            self.tame_for(open, inner, caller)?;
            self.set_size(open, inner, 0)?;
        }
        if purpose.writes && inner.registration.is_some() {
            if inner.has_suid && caller.uid != 0 {
                // Nobody will see the write that ends this.
                self.tame(open, inner, caller)?;
            }
            // Where there is no room, the disk itself says so.
            if let Err(Errno::DQUOT) = self.cover_kernel(open, inner) {
                return Err(Errno::DQUOT);
            }
            self.note(open, inner)?;
        }
        Ok(())
    }

    /// How the bytes of a file go as long as it is open.
    fn present_way(&self, open: &Open, inner: &Inner, is_contended: bool) -> Way {
        // Others have it written here, of which the kernel's cache hears nothing.
        let is_direct = inner.is_direct || is_contended || inner.bytes.is_home();
        let is_past_cache = is_direct || inner.registration.is_some();
        let keeps_pages = self.inodes.open(open.inode, is_past_cache);
        match &inner.registration {
            Some(registration) => Way::Passthrough(registration.clone()),
            None if is_direct => Way::Direct,
            None => {
                open.note_pages();
                Way::Cached { keeps_pages }
            }
        }
    }

    fn choose_first(
        &self,
        open: &Open,
        inner: &mut Inner,
        purpose: Purpose,
        caller: &Caller,
        register: Register<'_>,
    ) -> Result<(), Errno> {
        inner.is_direct = false;
        let has_passthrough = self.has_passthrough() && !self.is_shared;
        // Where others have it too, its bytes are looked for when somebody wants them.
        if !self.is_shared && inner.bytes.body().is_at_rest() {
            let record = self.record(&open.file)?;
            inner.has_suid = record.access.mode & SUID != 0;
            let size = record.content.size;
            if let Some(file) = self.content.backing(open.inode).map_err(errno::of_host)? {
                inner.bytes.load(Tree::file_body(file, size)?);
            } else if purpose.truncates {
                // The old bytes are still stored, and the directory still tells their size.
                inner.bytes.empty(Held::new(Vec::new(), &self.reservoir), Some(size > 0));
            } else if size > self.settings.small_max as u64 {
                self.load(open, inner)?;
            } else if purpose.writes && size > 0 && has_passthrough {
                // Written a second time: it may well be written often.
                self.spill(open, inner)?;
            }
        }
        // Of a home it may be there: that nobody had the file open any more could not be told.
        let may_pass = has_passthrough || inner.bytes.is_home();
        if may_pass && inner.registration.is_none() && !self.is_delicate(inner, purpose, caller) {
            self.pass_through(open, inner, purpose.writes, register);
        }
        Ok(())
    }

    /// How the bytes of a new file go.
    fn choose_new(
        &self,
        open: &Open,
        inner: &mut Inner,
        purpose: Purpose,
        caller: &Caller,
        register: Register<'_>,
    ) {
        inner.creator = caller.pid;
        let is_large = match self.is_shared {
            true => inner.bytes.is_home(),
            false => {
                self.has_passthrough()
                    && purpose.writes
                    && self.habits.is_large_next(caller.pid)
                    && !self.is_delicate(inner, purpose, caller)
            }
        };
        // If there can't be a backing file now, whoever writes will hear why.
        if is_large && self.spill(open, inner).is_ok() {
            self.pass_through(open, inner, true, register);
        }
        // Whoever only writes has no use for what the kernel would keep of it, and can't map it.
        inner.is_direct = !purpose.reads
            && inner.registration.is_none()
            && self.has_direct.load(Ordering::Relaxed);
    }

    /// A write that passes by us can't end what it has to end, nor be refused: so it may not pass by.
    pub(super) fn is_delicate(&self, inner: &Inner, purpose: Purpose, caller: &Caller) -> bool {
        purpose.writes && (inner.has_suid && caller.uid != 0 || self.gauge.is_tight())
    }

    /// Has the kernel use the backing file by itself, if there is one.
    pub(super) fn pass_through(
        &self,
        open: &Open,
        inner: &mut Inner,
        writes: bool,
        register: Register<'_>,
    ) {
        if writes && self.cover_kernel(open, inner).is_err() {
            // What it writes goes through us then, and is refused in time.
            return;
        }
        let Body::File { file, .. } = inner.bytes.body() else { return };
        match register(file) {
            Ok(registration) => inner.registration = Some(registration),
            Err(error) => {
                eprintln!(
                    "croft: the kernel can't use backing files by itself ({error}); going on without"
                );
                self.has_passthrough.store(false, Ordering::Relaxed);
            }
        }
    }

    /// What somebody wrote into a new file is closed: how large it became tells what comes next.
    fn learn_habit(&self, inner: &mut Inner) {
        let creator = std::mem::take(&mut inner.creator);
        let size = match inner.bytes.body() {
            _ if creator == 0 => return,
            Body::Rest | Body::Memory(_) => 0,
            Body::File { file, .. } => look_at(file).map_or(0, |seen| seen.size),
        };
        self.habits.note(creator, size);
    }
}
