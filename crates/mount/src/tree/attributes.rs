//! What `stat` tells, and what changes it.

use std::sync::atomic::Ordering;

use base::FileId;
use client::{Call, Reply};
use content::{Need, PATIENCE};
use directory::{
    Act, Actor, File as Record, Sort, operation,
    record::{Access, Content},
};

use host::Io;

use crate::{
    errno,
    front::{Attributes, Caller, Changes, Errno, Moment},
};

use super::{
    Tree,
    body::{Body, SUID, digest_of_few, look_at},
    lock,
    opens::Inner,
};

/// What is known of an open file's bytes before the directory is.
#[derive(Clone, Copy)]
pub(super) struct Live {
    size: u64,
    blocks: Option<u64>,
}

impl Live {
    fn of(inner: &Inner) -> Option<Live> {
        match inner.bytes.body() {
            Body::Rest => None,
            Body::Memory(held) => Some(Live { size: held.len() as u64, blocks: None }),
            Body::File { file, .. } => {
                let seen = look_at(file).ok()?;
                Some(Live { size: seen.size, blocks: Some(seen.blocks) })
            }
        }
    }
}

impl Tree {
    /// What is known of an inode.
    pub fn getattr(&self, inode: u64) -> Result<Attributes, Errno> {
        self.getattr_for(inode, 0)
    }

    /// What a thread is told of an inode.
    pub fn getattr_for(&self, inode: u64, pid: u32) -> Result<Attributes, Errno> {
        let file = self.inodes.file(inode)?;
        match self.fresh(&file) {
            Err(Errno::STALE) => {
                let departed = self.inodes.departed(inode);
                let departed = departed.map(|record| Tree::attributes(&record, None));
                let attributes = departed.map_or_else(|| self.seen_early(pid, inode), Ok)?;
                Ok(Attributes { links: 0, ..attributes })
            }
            result => result,
        }
    }

    /// Changes attributes: the size first, if that is among them, and then the others, all or none. If
    /// these are refused, the size has changed all the same.
    pub fn setattr(
        &self,
        inode: u64,
        changes: &Changes,
        caller: &Caller,
    ) -> Result<Attributes, Errno> {
        self.in_time(caller.pid, self.set_now(inode, changes, caller))
    }

    fn set_now(&self, inode: u64, changes: &Changes, caller: &Caller) -> Result<Attributes, Errno> {
        let file = self.inodes.file(inode)?;
        let Changes { mode, uid, gid, size, accessed, mut modified } = *changes;
        if let Some(size) = size {
            self.truncate(inode, size, caller)?;
            // That has set it. And not everybody who may do that may do it alone.
            modified = modified.filter(|moment| *moment != Moment::Now);
        }
        let changes = operation::Changes { mode, uid, gid, accessed, modified };
        if changes == operation::Changes::default() {
            return self.getattr(inode);
        }
        if self.is_shared {
            let content = match self.desk.holds(&file, false) {
                Some(content) => content,
                None => self.record(&file)?.content.clone(),
            };
            if content::live_elsewhere(&content, &self.said(&file)).is_some() {
                // What is not told yet would undo what is set now.
                self.ask_home(&file, self.record(&file)?)?;
            }
        }
        if let Some(open) = self.opens.get(inode) {
            if uid.is_some() {
                // What is kept for it is another's.
                open.lock().covered = (0, 0);
            }
            let is_home = open.lock().bytes.is_home();
            if is_home {
                self.tell_home(&open, PATIENCE)?;
            }
            let mut inner = open.lock();
            // What is told later would undo what is set now: the time, or who it runs as.
            self.settle(&open, &mut inner)?;
            if let Some(mode) = mode {
                inner.has_suid = mode & SUID != 0;
            }
        }
        let groups_matter = mode.is_some_and(|mode| mode & 0o2000 != 0);
        let told = self.told();
        match self.act(caller, Act::SetAttr { file: file.clone(), changes }, groups_matter)? {
            Reply::Changed(record) => self.fresh_of(&file, record, told),
            _ => self.getattr(inode),
        }
    }

    fn truncate(&self, inode: u64, size: u64, caller: &Caller) -> Result<(), Errno> {
        let hold = self.hold(inode)?;
        self.tame_for(&hold, &mut hold.lock(), caller)?;
        let need = if size == 0 && self.is_shared { Need::Replace } else { Need::Write };
        let mut inner = loop {
            if self.is_shared {
                hold.lock().writer = (caller.uid, caller.gid);
            }
            if self.do_at_home(&hold, &Io::Resize(size))?.is_some() {
                return Ok(());
            }
            match self.ready(&hold, need) {
                Err(Errno::REMOTE) => {}
                result => break result?,
            }
        };
        self.take_place(&hold, &mut inner)?;
        inner.writer = (caller.uid, caller.gid);
        if inner.bytes.body().is_file() {
            self.adopt(&hold, &mut inner)?;
            self.note(&hold, &mut inner)?;
        }
        self.set_size(&hold, &mut inner, size)
    }

    /// The attributes of a file; what is news to the directory it is told first.
    pub(super) fn fresh(&self, file: &FileId) -> Result<Attributes, Errno> {
        let told = self.told();
        let record = self.record(file)?;
        self.fresh_of(file, record, told)
    }

    /// How often the directory was told of bytes so far.
    pub(super) fn told(&self) -> u64 {
        self.told.load(Ordering::Acquire)
    }

    /// The attributes of a file of which we have the directory's record, as of when it had been told so often of
    /// bytes or later. It may have been told of these since, by whoever closed the file or gave it up.
    pub(super) fn fresh_of(
        &self,
        file: &FileId,
        record: triomphe::Arc<Record>,
        told: u64,
    ) -> Result<Attributes, Errno> {
        if record.sort != Sort::Regular {
            return Ok(Tree::attributes(&record, None));
        }
        let record = self.ask_home(file, record)?;
        let inode = record.serial;
        let Some(open) = self.opens.get(inode) else {
            let record = if self.told() == told { record } else { self.record(file)? };
            let record = self.mend_stale(file, record)?;
            return Ok(Tree::attributes(&record, self.at_rest(file, &record)));
        };
        let is_home = open.lock().bytes.is_home();
        if is_home {
            // If it can't be told now, the size is right and the time is late.
            _ = self.tell_home(&open, PATIENCE);
        }
        let mut inner = open.lock();
        // If it can't be told now, whoever asks still sees what is true.
        _ = self.settle(&open, &mut inner);
        // Of a file that others have too, the directory knows best, unless it could not be told.
        let is_known = self.is_shared && inner.has_news() == Ok(false);
        let live = if is_known { None } else { Live::of(&inner) };
        drop(inner);
        let record = if self.told() == told { record } else { self.record(file)? };
        Ok(Tree::attributes(&record, live.or_else(|| self.at_rest(file, &record))))
    }

    /// How much room a large file takes that nobody has open: it may have holes.
    fn at_rest(&self, file: &FileId, record: &Record) -> Option<Live> {
        if record.content.size <= self.settings.small_max as u64
            || self.is_elsewhere(file, &record.content)
        {
            return None;
        }
        let file = self.content.backing(record.serial).ok()??;
        let blocks = look_at(&file).ok()?.blocks;
        Some(Live { size: record.content.size, blocks: Some(blocks) })
    }

    /// The size of a file that was being written when the daemon last died is that of its backing file.
    fn mend_stale(
        &self,
        file: &FileId,
        record: triomphe::Arc<Record>,
    ) -> Result<triomphe::Arc<Record>, Errno> {
        if !self.has_stale.load(Ordering::Relaxed)
            || !lock(&self.stale).contains(&record.serial)
            || self.is_shared && record.content.home != Some(self.desk.me())
        {
            return Ok(record);
        }
        if record.content.is_live {
            self.look(file, Some(record.serial), false)?;
            return self.record(file);
        }
        let hold = self.hold_file(record.serial, file);
        let inner = match self.is_shared {
            true => self.ready(&hold, Need::Tell)?,
            false => hold.lock(),
        };
        // Somebody may have been faster, and have told another size.
        let record = self.record(file)?;
        let mut news = None;
        // Whoever has it loaded tells its size.
        if inner.bytes.body().is_at_rest() {
            let backing = self.content.backing(record.serial).map_err(errno::of_host)?;
            if let Some(file) = backing {
                let seen = look_at(&file)?;
                let mut size = seen.size;
                let digest = match self.is_shared {
                    true => digest_of_few(&file, &mut size)?,
                    false => None,
                };
                let is_news = size != record.content.size;
                news = is_news.then(|| (size, seen.allocated(), digest));
            }
        }
        if let Some((size, allocated, digest)) = news {
            self.content.settle(record.serial);
            let version = if self.is_shared { self.desk.version() } else { 0 };
            let content = Content { size, allocated, version, digest, ..Content::default() };
            let act = Act::SetContent { file: file.clone(), content };
            let done = self.ask(&Actor::ROOT, Call::Do(act.clone())).or_else(|errno| {
                // Where the superuser is not acted for, the owner may write.
                let Access { uid, gid, .. } = record.access;
                let owner = Actor { uid, gid, groups: Vec::new() };
                if errno == Errno::PERM { self.ask(&owner, Call::Do(act)) } else { Err(errno) }
            });
            match done {
                // Nobody that this machine acts for may say it, or its owner may not have so much: the file stays
                // as the directory knows it.
                Ok(_) | Err(Errno::PERM | Errno::DQUOT | Errno::NOSPC) => {}
                Err(errno) => return Err(errno),
            }
        }
        drop(inner);
        let mut stale = lock(&self.stale);
        stale.remove(&record.serial);
        self.has_stale.store(!stale.is_empty(), Ordering::Relaxed);
        drop(stale);
        if news.is_some() { self.record(file) } else { Ok(record) }
    }

    /// A record as `stat` tells it.
    pub(super) fn attributes(record: &Record, live: Option<Live>) -> Attributes {
        let size = live.map_or(record.content.size, |live| live.size);
        let blocks = match record.sort {
            Sort::Regular => live.and_then(|live| live.blocks).unwrap_or(size.div_ceil(512)),
            _ => 0,
        };
        Attributes {
            inode: record.serial,
            sort: record.sort,
            mode: record.access.mode,
            links: record.links,
            uid: record.access.uid,
            gid: record.access.gid,
            size,
            blocks,
            accessed: record.times.accessed,
            modified: record.times.modified,
            changed: record.times.changed,
        }
    }
}
