//! What is different when other machines have the same tree.
//!
//! Bytes of an open file are as good as the content that the directory tells of, and only while the client holds
//! that. So whoever reads or writes first makes sure of both, with the file's lock free: waiting for another
//! machine with the lock held could keep us from giving up what that machine waits for. With the lock held,
//! nothing of the file's content is given up.

use std::{
    fs::File,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering, mpsc},
    thread,
};

use base::{Duration, FileId};
use client::{Call, Reply, Wanted};
use content::{Follow, Ledger, Need, Next, PATIENCE, Quest, Regain};
use directory::{Actor, record::Content};
use host::{IoReply, IoRequest, Memory};
use lease::{Client, Field, Scope};

use crate::{
    errno,
    front::{Change, Errno},
    time,
};

use super::{
    Tree,
    body::{Body, Held, look_at},
    lock,
    opens::{Inner, Open},
    regain::Look,
};

/// What the client says of a file, for those who decide about its bytes.
pub(super) struct Said<'a> {
    tree: &'a Tree,
    file: &'a FileId,
}

impl Ledger for Said<'_> {
    fn me(&self) -> Client {
        self.tree.desk.me()
    }

    fn is_shared(&self) -> bool {
        self.tree.is_shared
    }

    fn holds(&self, writes: bool) -> Option<Content> {
        self.tree.desk.holds(self.file, writes)
    }

    fn is_yielding(&self) -> bool {
        self.tree.is_yielding(self.file)
    }

    fn losses(&self) -> u64 {
        self.tree.desk.losses()
    }

    fn place(&self) -> u64 {
        self.tree.desk.place()
    }

    fn is_pushed(&self, place: u64) -> bool {
        self.tree.desk.is_pushed(place)
    }
}

/// What the client is told when others want something.
pub(super) struct Kernel {
    tree: std::sync::Weak<Tree>,
    wanted: mpsc::Sender<Wanted>,
    looks: mpsc::SyncSender<Look>,
}

impl Memory for Kernel {
    fn forget(&self, part: &Scope, serial: Option<u64>) {
        if let Some(tree) = self.tree.upgrade() {
            tree.forget_part(part, serial);
        }
    }

    fn recalled(&self, wanted: Wanted) {
        // What waits there the client counts. If nobody is left, nobody has bytes either.
        _ = self.wanted.send(wanted);
    }

    fn serve(&self, plea: IoRequest<'_>) -> IoReply {
        let Some(tree) = self.tree.upgrade() else { return IoReply::Busy };
        let file = plea.file.clone();
        let done = tree.serve(plea);
        if done == IoReply::Away {
            // The directory says otherwise.
            self.ask_to_look(file, false);
        }
        done
    }

    fn look(&self, files: Vec<FileId>) {
        files.into_iter().for_each(|file| self.ask_to_look(file, true));
    }
}

impl Kernel {
    fn ask_to_look(&self, file: FileId, is_lost: bool) {
        let Some(tree) = self.tree.upgrade() else { return };
        let inode = tree.inodes.find(&file);
        // Whoever misses its bytes asks again.
        _ = self.looks.try_send(Look { file, inode, is_lost });
    }
}

impl Tree {
    /// Lets the client ask for what others want. To be called once, before anybody uses the tree.
    pub fn share(self: &Arc<Tree>) -> std::io::Result<()> {
        if !self.is_shared {
            return Ok(());
        }
        let (wanted, asked) = mpsc::channel::<Wanted>();
        let tree = Arc::downgrade(self);
        let looks = Tree::start_looking(tree.clone())?;
        let memory: Arc<dyn Memory> = Arc::new(Kernel { tree: tree.clone(), wanted, looks });
        self.desk.remember(&memory);
        // The client knows it weakly, so it lives as long as the tree.
        _ = self.memory.set(memory);
        let desk = Arc::clone(&self.desk);
        thread::Builder::new().name("mount-yields".to_owned()).spawn(move || {
            while let Ok(wanted) = asked.recv() {
                let again = wanted.clone();
                let given_up = catch_unwind(AssertUnwindSafe(|| match tree.upgrade() {
                    Some(tree) => tree.give_up(wanted),
                    None => desk.give_up(wanted),
                }));
                if given_up.is_err() {
                    eprintln!("croft: giving something up failed by a mistake of ours; it goes all the same");
                    desk.give_up(again);
                    if let Some(tree) = tree.upgrade() {
                        lock(&tree.yielding).clear();
                    }
                }
            }
        })?;
        Ok(())
    }

    /// Tells what became of contents in something that others want, and lets it go.
    fn give_up(&self, wanted: Wanted) {
        let opens = self.opens.within(&wanted.part);
        for open in &opens {
            // While it is ours, whoever reads or writes it waits for nobody: so neither does this.
            if open.may_be_mapped() && self.desk.holds(&open.file, true).is_some() {
                self.await_quiet(open.inode);
                self.fetch_mapped(open.inode);
            }
        }
        // Whoever begins to use such a file from now on waits until it is given up; whoever has begun is among these.
        lock(&self.yielding).push(wanted.part.clone());
        let opens = self.opens.within(&wanted.part);
        let mut guards: Vec<_> = opens.iter().map(|open| (open, open.lock())).collect();
        for (open, inner) in &mut guards {
            if let Err(errno) = self.settle(open, inner) {
                let inode = open.inode;
                eprintln!(
                    "croft: another machine wants inode {inode}, and what was written to it can't be told ({errno})"
                );
            }
        }
        let part = wanted.part.clone();
        self.desk.give_up(wanted);
        lock(&self.yielding).retain(|yielding| *yielding != part);
    }

    /// Whether a file is just being given up to others.
    pub(super) fn is_yielding(&self, file: &FileId) -> bool {
        let content = Field::Content.of(file);
        let meets = |part: &Scope| part.file == *file || part.contains(&content);
        lock(&self.yielding).iter().any(meets)
    }

    /// Has the kernel hand over what was written into mapped memory.
    fn fetch_mapped(&self, inode: u64) {
        if let Some(fetch) = self.on_mapped.get() {
            fetch(Change::Bytes(inode));
        }
    }

    /// The kernel may not rely on this any more. Called while the client waits.
    fn forget_part(&self, part: &Scope, serial: Option<u64>) {
        let _gate = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        let has_names =
            matches!(part.field, Field::Child(_) | Field::Children | Field::Whole | Field::Tree);
        let is_seen =
            matches!(part.field, Field::Access | Field::Times | Field::Content | Field::Parent);
        if has_names {
            self.tell_now(Change::Names);
        }
        if part.field == Field::Tree {
            for inode in self.inodes.below(&part.file) {
                self.forget_inode(inode, false);
            }
        } else if has_names || is_seen {
            let inode = serial.or_else(|| self.inodes.find(&part.file));
            if let Some(inode) = inode {
                self.forget_inode(inode, part.field == Field::Content);
            }
        }
    }

    /// `has_bytes` says that it is known to be a regular file.
    fn forget_inode(&self, inode: u64, has_bytes: bool) {
        let open = self.opens.get(inode);
        match has_bytes || open.is_some() {
            true => self.contend(inode),
            false => _ = self.tell_now(Change::Inode(inode)),
        }
        // What is mapped is not looked at again by itself. Nothing else needs this.
        if open.is_some_and(|open| open.has_pages()) {
            self.tell(Change::Bytes(inode));
        }
    }

    /// How often something had to be forgotten so far.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Acquire)
    }

    /// Tells the kernel of an inode what was found out when so much had been forgotten, and how long it may believe
    /// that. What it does not know yet it can't be told to forget; so if something was forgotten since, that is not
    /// at all, and nothing is until it has heard. Whoever tells may not use the tree.
    pub fn tell_fresh<T>(&self, inode: u64, forgotten: u64, tell: impl FnOnce(Duration) -> T) -> T {
        let validity = self.validity();
        let _gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = self.forgotten() == forgotten && self.may_be_believed(inode, forgotten);
        tell(if is_fresh { validity } else { Duration::ZERO })
    }

    /// The same of an inode that the kernel knows: it drops by itself what was forgotten since.
    pub fn tell_known<T>(&self, inode: u64, forgotten: u64, tell: impl FnOnce(Duration) -> T) -> T {
        let validity = self.validity();
        let _gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = self.may_be_believed(inode, forgotten);
        tell(if is_fresh { validity } else { Duration::ZERO })
    }

    /// How long the kernel may believe what it is told of an inode among others.
    pub fn validity_of(&self, inode: u64) -> Duration {
        match self.is_doubted(inode) {
            true => Duration::ZERO,
            false => self.validity(),
        }
    }

    /// How long the kernel may believe what comes of a change that it has asked for. Unlike other answers it does
    /// not drop that if it was told to forget the inode meanwhile.
    pub fn validity_of_change(&self) -> Duration {
        if self.is_shared { Duration::ZERO } else { self.validity() }
    }

    /// The kernel was told something that was found out when so much had been forgotten, to be believed for some
    /// time. If it was more by the time that the kernel heard it, it has to be taken back.
    pub fn doubt(&self, forgotten: u64, change: Change<'_>) {
        if self.forgotten() != forgotten {
            self.tell(change);
        }
    }

    /// How long the kernel may believe what it is told.
    pub fn validity(&self) -> Duration {
        match self.is_shared {
            true if self.has_no_memory.load(Ordering::Relaxed) => Duration::ZERO,
            true => self.desk.validity(),
            false => crate::front::VALIDITY,
        }
    }

    /// The kernel can't be told to forget names: where others change them, it may not remember any.
    pub fn let_kernel_remember_nothing(&self) {
        self.has_no_memory.store(true, Ordering::Relaxed);
    }

    /// Locks an open file with its bytes at hand, as they are now. If they change elsewhere without a word, that is
    /// EREMOTE: [`Tree::do_at_home`].
    pub(super) fn ready<'a>(
        &self,
        open: &'a Open,
        need: Need,
    ) -> Result<MutexGuard<'a, Inner>, Errno> {
        if !self.is_shared {
            let mut inner = open.lock();
            if need.needs_bytes() {
                self.load(open, &mut inner)?;
            }
            return Ok(inner);
        }
        self.ready_within(open, need, PATIENCE)
    }

    /// The same of a tree that others have too, and for how long to try.
    pub(super) fn ready_within<'a>(
        &self,
        open: &'a Open,
        need: Need,
        most: Duration,
    ) -> Result<MutexGuard<'a, Inner>, Errno> {
        let mut quest = Quest::within(need, time::now(), most);
        loop {
            let (mut inner, said) = (open.lock(), self.said(&open.file));
            let seen = inner.seen()?;
            match quest.next(time::now(), &mut inner.bytes, &said, seen) {
                Next::Go => return Ok(inner),
                Next::Aside => self.follow(open, &mut inner, Follow::Aside)?,
                Next::Load(content) => {
                    self.load_bytes(open, &mut inner, content.size)?;
                    inner.bytes.note_loaded(content, false);
                }
                Next::Take => {
                    self.drop_old(open.inode)?;
                    quest.take(&mut inner.bytes);
                }
                Next::Hold { writes } => {
                    drop(inner);
                    let within = (most != PATIENCE).then_some(most);
                    quest.held(self.held_within(&open.file, writes, within)?);
                }
                Next::Fetch(content) => {
                    drop(inner);
                    self.fetch(open, &mut quest, content)?;
                }
                Next::Visit => return Err(Errno::REMOTE),
                Next::Wait(at) => {
                    drop(inner);
                    time::wait_until(at);
                }
                Next::TimedOut => return Err(Errno::TIMEDOUT),
            }
        }
    }

    /// What the client says of a file, for those who decide about its bytes.
    pub(super) fn said<'a>(&'a self, file: &'a FileId) -> Said<'a> {
        Said { tree: self, file }
    }

    /// What is at hand is kept aside, if others have changed the content since and the directory never heard of it.
    pub(super) fn follow(
        &self,
        open: &Open,
        inner: &mut Inner,
        follow: Follow,
    ) -> Result<(), Errno> {
        if follow == Follow::Aside {
            self.rescue(open, inner)?;
            inner.bytes.forget();
        }
        Ok(())
    }

    /// Keeps what was written here and can't be told any more, for whoever wrote it.
    fn rescue(&self, open: &Open, inner: &mut Inner) -> Result<(), Errno> {
        let kept = match inner.bytes.body() {
            Body::Rest => return Ok(()),
            Body::Memory(held) => self.content.rescue(open.inode, &mut held.bytes()),
            Body::File { file, .. } if inner.bytes.is_borrowed() => file
                .try_clone()
                .map_err(host::Failure::of("can't read", "a backing file"))
                .and_then(|mut file| {
                    use std::io::{Seek, SeekFrom};
                    // Nobody uses the position of a backing file.
                    _ = file.seek(SeekFrom::Start(0));
                    self.content.rescue(open.inode, &mut file)
                }),
            Body::File { .. } => match self.content.rescue_backing(open.inode).transpose() {
                Some(kept) => kept,
                None => return Ok(()),
            },
        };
        let inode = open.inode;
        match kept {
            Ok(path) => {
                inner.bytes.note_loss();
                eprintln!(
                    "croft: another machine has changed inode {inode} before what was written here could be told; \
                     that is in {}",
                    path.display()
                );
                Ok(())
            }
            Err(failure) => {
                eprintln!("croft: can't keep what was written to inode {inode}: {failure}");
                Err(errno::of_host(failure))
            }
        }
    }

    /// The content of a file, held for reading, or for changing it.
    pub(super) fn held(&self, file: &FileId, writes: bool) -> Result<Content, Errno> {
        self.held_within(file, writes, None)
    }

    fn held_within(
        &self,
        file: &FileId,
        writes: bool,
        most: Option<Duration>,
    ) -> Result<Content, Errno> {
        let hold = Call::Hold { file: file.clone(), writes };
        match self.desk.call_within(&Actor::ROOT, hold, most).map_err(errno::of_call)? {
            Reply::File(record) => Ok(record.content.clone()),
            _ => Err(Errno::IO),
        }
    }

    /// Whether the bytes of a content are on another machine.
    pub(super) fn is_elsewhere(&self, file: &FileId, content: &Content) -> bool {
        content::is_elsewhere(content, &self.said(file))
    }

    /// Gets the bytes of a content from the machine that has them. If it was changed meanwhile, or may be, or those
    /// that came are others than the directory says, that is tried again.
    fn fetch(
        &self,
        open: &Open,
        quest: &mut Quest<Held, Arc<File>>,
        content: Content,
    ) -> Result<(), Errno> {
        let which = (open.inode, &open.file);
        let size = usize::try_from(content.size).unwrap_or(usize::MAX);
        let fetched = if size <= self.settings.small_max {
            let mut bytes = Vec::with_capacity(size);
            let fetched = self.neighbours.fetch(which, &content, |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            });
            fetched.map(|()| Body::Memory(Held::new(bytes, &self.reservoir)))
        } else {
            self.must_have_room(content.size)?;
            let mut file = self.content.scratch().map_err(errno::of_host)?;
            let fetched = self.neighbours.fetch(which, &content, |piece| {
                file.write_all(piece).map_err(host::Failure::of("can't write", "fetched bytes"))
            });
            let seen = Some(look_at(&file)?);
            fetched.map(|()| Body::File { file: Arc::new(file), seen })
        };
        let failure = match fetched {
            Ok(body) => {
                quest.fetched(content, body);
                return Ok(());
            }
            Err(failure) => failure,
        };
        let is_unlike = matches!(failure, host::Failure::Unlike { .. });
        match quest.missed(time::now(), &content, &self.said(&open.file), is_unlike) {
            Some(again) => {
                time::wait_until(again);
                Ok(())
            }
            None => {
                eprintln!("croft: can't fetch the bytes of inode {}: {failure}", open.inode);
                Err(errno::of_host(failure))
            }
        }
    }

    /// Makes bytes that came from another machine our own, before they change.
    pub(super) fn adopt(&self, open: &Open, inner: &mut Inner) -> Result<(), Errno> {
        let Body::File { file: fetched, .. } = inner.bytes.body() else { return Ok(()) };
        if !inner.bytes.is_borrowed() {
            return Ok(());
        }
        let fetched = Arc::clone(fetched);
        let seen = look_at(&fetched)?;
        let size = seen.size;
        self.must_have_room(size)?;
        self.cover(open, inner, seen.allocated())?;
        let file = self.make_backing(open.inode, &[])?;
        let (mut from, mut to) = (0, 0);
        while from < size {
            let most = usize::try_from(size - from).unwrap_or(usize::MAX);
            let copied = rustix::fs::copy_file_range(
                &*fetched,
                Some(&mut from),
                &file,
                Some(&mut to),
                most,
            )?;
            if copied == 0 {
                return Err(Errno::IO);
            }
        }
        inner.bytes.adopt(Arc::new(file));
        Ok(())
    }

    /// Where other bytes come in place of those that were, these need not be known.
    pub(super) fn take_place(&self, open: &Open, inner: &mut Inner) -> Result<(), Errno> {
        if self.is_shared && inner.bytes.body().is_at_rest() {
            self.spare_outlived(open.inode)?;
            inner.bytes.empty(Held::new(Vec::new(), &self.reservoir), None);
        }
        Ok(())
    }

    /// What was written and could not be told, because the session was lost meanwhile, is told now, or kept
    /// aside if others were faster.
    pub(super) fn regain(&self, open: &Open) -> Result<(), Errno> {
        let regain = {
            let inner = open.lock();
            inner.bytes.regain(&self.said(&open.file), inner.seen()?)
        };
        match regain {
            Regain::Nothing => return Ok(()),
            Regain::Home => return self.tell_home(open, PATIENCE),
            Regain::Tell => {}
        }
        match self.ready(open, Need::Tell) {
            // There is no such file any more, and nobody could ask for its bytes.
            Err(Errno::STALE) => {
                let mut inner = open.lock();
                if self.desk.losses() > 0 {
                    self.rescue(open, &mut inner)?;
                }
                inner.bytes.forget();
                Ok(())
            }
            result => result.map(drop),
        }
    }
}
