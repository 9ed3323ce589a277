//! What is different when other machines have the same tree.
//!
//! Bytes of an open file are as good as the content that the directory tells of, and only while the client holds
//! that. So whoever reads or writes first makes sure of both, with the file's lock free: waiting for another
//! machine with the lock held could keep us from giving up what that machine waits for. With the lock held,
//! nothing of the file's content is given up.

use std::{
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering, mpsc},
    thread,
    time::{Duration, Instant},
};

use base::FileId;
use client::{Call, Reply, Wanted};
use directory::{Actor, record::Content};
use host::{IoReply, IoRequest, Memory};
use lease::{Field, Scope};

use crate::{
    errno,
    front::{Change, Errno},
};

use super::{
    Tree,
    body::{Body, Held, Seen},
    home::Stay,
    lock,
    opens::{Inner, Open},
    regain::Look,
};

/// Whoever loses to others what it has just been given tries again for so long.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Whoever gets bytes that are not what the directory says tries again for so long, and this often: their home
/// looks meanwhile.
const DOUBT: Duration = Duration::from_secs(10);
const DOUBT_PAUSE: Duration = Duration::from_millis(100);

/// Whoever finds something being given up looks again after this.
pub(super) const PAUSE: Duration = Duration::from_micros(200);

/// What is needed of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// To look at the bytes.
    Read,
    /// To change some of them.
    Write,
    /// To put others in their place, whatever they were.
    Replace,
    /// To tell what is here, whatever there is elsewhere.
    Tell,
}

impl Need {
    fn writes(self) -> bool {
        self != Need::Read
    }

    /// Whether the bytes have to be at hand.
    fn needs_bytes(self) -> bool {
        matches!(self, Need::Read | Need::Write)
    }
}

/// Bytes that came from another machine.
struct Fetched {
    content: Content,
    body: Body,
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
            self.look(vec![file]);
        }
        done
    }

    fn look(&self, files: Vec<FileId>) {
        let Some(tree) = self.tree.upgrade() else { return };
        for file in files {
            let inode = tree.inodes.find(&file);
            // Whoever misses its bytes asks again.
            _ = self.looks.try_send(Look { file, inode });
        }
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
        let start = Instant::now();
        let mut fetched = None;
        loop {
            if let Some(inner) = self.try_ready(open, need, &mut fetched)? {
                return Ok(inner);
            }
            if start.elapsed() > PATIENCE {
                return Err(Errno::TIMEDOUT);
            }
            if self.is_yielding(&open.file) {
                thread::park_timeout(PAUSE);
                continue;
            }
            // First to look at it only: nobody has to wait until all of it is here.
            if need.needs_bytes() {
                let content = self.held(&open.file, false)?;
                self.must_be_here(&open.lock(), &content)?;
                if self.is_elsewhere(&content) && !open.lock().has(&content) {
                    let may_doubt = start.elapsed() < DOUBT;
                    fetched = self.fetch(open, &content, may_doubt)?.or(fetched);
                }
            }
            if need.writes() {
                self.held(&open.file, true)?;
            }
        }
    }

    /// Locks an open file with its bytes at hand, if the content is held now and needs not be fetched.
    fn try_ready<'a>(
        &self,
        open: &'a Open,
        need: Need,
        fetched: &mut Option<Fetched>,
    ) -> Result<Option<MutexGuard<'a, Inner>>, Errno> {
        let mut inner = open.lock();
        if inner.stay == Stay::Home {
            return Ok(Some(inner));
        }
        if self.is_yielding(&open.file) {
            return Ok(None);
        }
        let Some(content) = self.desk.holds(&open.file, need.writes()) else { return Ok(None) };
        if need != Need::Tell {
            self.must_be_here(&inner, &content)?;
        }
        self.follow_others(open, &mut inner, &content)?;
        if !matches!(inner.body, Body::Rest) || !need.needs_bytes() {
            inner.base = Some(content);
            return Ok(Some(inner));
        }
        if !self.is_elsewhere(&content) {
            self.load_bytes(open, &mut inner, content.size)?;
            inner.base = Some(content);
            return Ok(Some(inner));
        }
        match fetched.take_if(|fetched| fetched.content == content) {
            Some(Fetched { body, .. }) => {
                self.drop_old(open.inode)?;
                inner.is_borrowed = matches!(body, Body::File { .. });
                inner.body = body;
                inner.base = Some(content);
                Ok(Some(inner))
            }
            None => Ok(None),
        }
    }

    /// What is used where it is can't be used here.
    pub(super) fn must_be_here(&self, inner: &Inner, content: &Content) -> Result<(), Errno> {
        let is_remote = self.home_elsewhere(content).is_some()
            && inner.stay != Stay::Home
            && !inner.has_given_up(content);
        if is_remote { Err(Errno::REMOTE) } else { Ok(()) }
    }

    /// What is at hand goes if others have changed the content since. If it had changed here too, and the
    /// directory never heard of that, it is kept aside.
    pub(super) fn follow_others(
        &self,
        open: &Open,
        inner: &mut Inner,
        now: &Content,
    ) -> Result<(), Errno> {
        if matches!(inner.body, Body::Rest) || inner.base.as_ref() == Some(now) {
            return Ok(());
        }
        let is_doubtful = inner.origin.is_some() && !self.desk.is_pushed(inner.told);
        if inner.has_news()? || is_doubtful {
            let is_as_before = inner.origin.as_ref().or(inner.base.as_ref()) == Some(now);
            if is_as_before || now.home == Some(self.desk.me()) {
                // Nobody else has changed it: what was told is lost, and is told again.
                inner.base = Some(now.clone());
                inner.must_tell();
                return Ok(());
            }
            self.rescue(open, inner)?;
        }
        inner.forget_bytes();
        Ok(())
    }

    /// Keeps what was written here and can't be told any more, for whoever wrote it.
    fn rescue(&self, open: &Open, inner: &mut Inner) -> Result<(), Errno> {
        let kept = match &inner.body {
            Body::Rest => return Ok(()),
            Body::Memory(held) => self.content.rescue(open.inode, &mut held.bytes()),
            Body::File { file, .. } if inner.is_borrowed => file
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
                inner.has_lost = true;
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
        let file = file.clone();
        match self.ask(&Actor::ROOT, Call::Hold { file, writes })? {
            Reply::File(record) => Ok(record.content.clone()),
            _ => Err(Errno::IO),
        }
    }

    /// Whether the bytes of a content are on another machine.
    pub(super) fn is_elsewhere(&self, content: &Content) -> bool {
        self.is_shared
            && content.size > 0
            && content.home.is_some_and(|home| home != self.desk.me())
    }

    /// Gets the bytes of a content from the machine that has them.
    /// Nothing, if it was changed meanwhile, or may be: those that came are others than the directory says.
    fn fetch(
        &self,
        open: &Open,
        content: &Content,
        may_doubt: bool,
    ) -> Result<Option<Fetched>, Errno> {
        let which = (open.inode, &open.file);
        let size = usize::try_from(content.size).unwrap_or(usize::MAX);
        let fetched = if size <= self.settings.small_max {
            let mut bytes = Vec::with_capacity(size);
            let fetched = self.neighbours.fetch(which, content, |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            });
            fetched.map(|()| Body::Memory(Held::new(bytes, &self.reservoir)))
        } else {
            self.must_have_room(content.size)?;
            let mut file = self.content.scratch().map_err(errno::of_host)?;
            let fetched = self.neighbours.fetch(which, content, |piece| {
                file.write_all(piece).map_err(host::Failure::of("can't write", "fetched bytes"))
            });
            let seen = Some(Seen::of(&file)?);
            fetched.map(|()| Body::File { file: Arc::new(file), seen })
        };
        match fetched {
            Ok(body) => Ok(Some(Fetched { content: content.clone(), body })),
            Err(_) if self.desk.holds(&open.file, false).as_ref() != Some(content) => Ok(None),
            Err(host::Failure::Unlike { .. }) if may_doubt => {
                thread::park_timeout(DOUBT_PAUSE);
                Ok(None)
            }
            Err(failure) => {
                eprintln!("croft: can't fetch the bytes of inode {}: {failure}", open.inode);
                Err(errno::of_host(failure))
            }
        }
    }

    /// Makes bytes that came from another machine our own, before they change.
    pub(super) fn adopt(&self, open: &Open, inner: &mut Inner) -> Result<(), Errno> {
        let Body::File { file: fetched, .. } = &inner.body else { return Ok(()) };
        if !inner.is_borrowed {
            return Ok(());
        }
        let fetched = Arc::clone(fetched);
        let seen = Seen::of(&fetched)?;
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
        inner.body = Body::File { file: Arc::new(file), seen: None };
        inner.is_borrowed = false;
        Ok(())
    }

    /// Where other bytes come in place of those that were, these need not be known.
    pub(super) fn take_place(&self, open: &Open, inner: &mut Inner) -> Result<(), Errno> {
        if self.is_shared && matches!(inner.body, Body::Rest) {
            self.spare_outlived(open.inode)?;
            let had_bytes = inner.base.as_ref().is_some_and(|base| base.size > 0);
            inner.body = Body::Memory(Held::new(Vec::new(), &self.reservoir));
            (inner.is_dirty, inner.is_unreported) = (had_bytes, had_bytes);
        }
        Ok(())
    }

    /// What was written and could not be told, because the session was lost meanwhile, is told now, or kept
    /// aside if others were faster.
    pub(super) fn regain(&self, open: &Open) -> Result<(), Errno> {
        if open.lock().stay == Stay::Home {
            return self.tell_home(open, PATIENCE);
        }
        let is_well = || self.desk.holds(&open.file, true).is_some();
        if !self.is_shared || !open.lock().has_news()? || is_well() {
            return Ok(());
        }
        match self.ready(open, Need::Tell) {
            // There is no such file any more, and nobody could ask for its bytes.
            Err(Errno::STALE) => {
                let mut inner = open.lock();
                if self.desk.losses() > 0 {
                    self.rescue(open, &mut inner)?;
                }
                inner.forget_bytes();
                Ok(())
            }
            result => result.map(drop),
        }
    }
}
