//! Names: looking them up, giving, taking and moving them.

use base::FileId;
use client::{Call, Reply};
use directory::{Act, Actor, Birth, Entry, File as Record, Sort, Special};
use lease::Name;

use crate::{
    errno,
    front::{Attributes, Caller, Errno, Over},
};

use super::{Tree, lock, name_of};

/// Whoever looks up a name that is replaced all the time tries as often as this.
pub(super) const REPLACED_MAX: usize = 100;

/// What a name stands for, and its record if that is at hand.
type Found = (Entry, Option<triomphe::Arc<Record>>);

impl Tree {
    /// What a name stands for. The kernel knows the inode from now on, until [`Tree::forget`].
    pub fn lookup(&self, directory: u64, name: &[u8], pid: u32) -> Result<Attributes, Errno> {
        match name {
            b"." => return self.introduce(&self.file_of(directory)?, None, 0),
            b".." => {
                let above = self.record(&self.file_of(directory)?)?.parent.clone();
                return self.introduce(&above, None, 0);
            }
            _ => {}
        }
        let (directory, name) = (self.inodes.file(directory)?, name_of(name)?);
        for _ in 0..REPLACED_MAX {
            let told = self.told();
            let (entry, record) = self.entry(&directory, &name)?.ok_or(Errno::NOENT)?;
            match self.introduce_to(pid, &entry, record, told) {
                // Another machine has removed it since.
                Err(Errno::STALE) => {}
                result => return result,
            }
        }
        Err(Errno::AGAIN)
    }

    /// The file with an inode number that the kernel has from a file handle, however old that is: it may have
    /// forgotten the inode, and this may be another mount.
    fn file_of(&self, inode: u64) -> Result<FileId, Errno> {
        let has_number = |file: &FileId| self.record(file).is_ok_and(|file| file.serial == inode);
        if let Ok(file) = self.inodes.file(inode) {
            return Ok(file);
        }
        if let Some(file) = self.neighbours.file(inode, has_number).map_err(errno::of_host)? {
            return Ok(file);
        }
        // What was done here may not have been told yet.
        self.ask(&Actor::ROOT, Call::Sync { handle: None })?;
        let found = self.neighbours.file(inode, has_number).map_err(errno::of_host)?;
        found.ok_or(Errno::STALE)
    }

    /// The kernel forgets that it was told of an inode so many times.
    pub fn forget(&self, inode: u64, lookups: u64) {
        if self.inodes.forget(inode, lookups) && self.is_shared {
            lock(&self.contended).remove(inode);
        }
    }

    /// A new regular file, without opening it.
    pub fn mknod(
        &self,
        directory: u64,
        name: &[u8],
        mode: u16,
        caller: &Caller,
    ) -> Result<Attributes, Errno> {
        let (file, record) = self.bear(directory, name, mode, caller)?;
        self.inodes.learn(record.serial, &file, true);
        Ok(Tree::attributes(&record, None))
    }

    /// A new pipe, socket or device.
    pub fn mknod_special(
        &self,
        directory: u64,
        name: &[u8],
        mode: u16,
        special: Special,
        caller: &Caller,
    ) -> Result<Attributes, Errno> {
        self.must_have_room_for_name()?;
        let (directory, name) = (self.inodes.file(directory)?, name_of(name)?);
        let act = Act::Mknod { directory, name, mode, special, birth: Birth::default() };
        self.born(self.act(caller, act, mode & 0o2000 != 0)?)
    }

    /// A new directory.
    pub fn mkdir(
        &self,
        directory: u64,
        name: &[u8],
        mode: u16,
        caller: &Caller,
    ) -> Result<Attributes, Errno> {
        self.must_have_room_for_name()?;
        let (directory, name) = (self.inodes.file(directory)?, name_of(name)?);
        let act = Act::Mkdir { directory, name, mode, birth: Birth::default() };
        self.born(self.act(caller, act, mode & 0o2000 != 0)?)
    }

    /// A new symbolic link.
    pub fn symlink(
        &self,
        directory: u64,
        name: &[u8],
        target: &[u8],
        caller: &Caller,
    ) -> Result<Attributes, Errno> {
        let (directory, name) = (self.inodes.file(directory)?, name_of(name)?);
        let act =
            Act::Symlink { directory, name, target: target.to_vec(), birth: Birth::default() };
        self.born(self.act(caller, act, false)?)
    }

    /// Where a symbolic link leads.
    pub fn readlink(&self, inode: u64) -> Result<Vec<u8>, Errno> {
        let file = self.inodes.file(inode)?;
        match self.ask(&Actor::ROOT, Call::ReadLink { file })? {
            Reply::Bytes(target) => Ok(target),
            _ => Err(Errno::IO),
        }
    }

    /// Another name for a file.
    pub fn link(
        &self,
        inode: u64,
        directory: u64,
        name: &[u8],
        caller: &Caller,
    ) -> Result<Attributes, Errno> {
        let (file, directory) = (self.inodes.file(inode)?, self.inodes.file(directory)?);
        let name = name_of(name)?;
        self.must_have_room_for_name()?;
        self.settle_inode(inode)?;
        self.act(caller, Act::Link { file: file.clone(), directory, name }, false)?;
        self.introduce(&file, None, 0)
    }

    /// A name less.
    pub fn unlink(&self, directory: u64, name: &[u8], caller: &Caller) -> Result<(), Errno> {
        let (directory, name) = (self.inodes.file(directory)?, name_of(name)?);
        self.take(caller, Act::Unlink { directory, name, is_open: false })
    }

    /// An empty directory goes.
    pub fn rmdir(&self, directory: u64, name: &[u8], caller: &Caller) -> Result<(), Errno> {
        let (directory, name) = (self.inodes.file(directory)?, name_of(name)?);
        self.take(caller, Act::Rmdir { directory, name })
    }

    /// A name moves. What it stands for is stored first: it may take the place of something that is.
    pub fn rename(
        &self,
        (from, from_name): (u64, &[u8]),
        (to, to_name): (u64, &[u8]),
        over: Over,
        caller: &Caller,
    ) -> Result<(), Errno> {
        let (from, from_name) = (self.inodes.file(from)?, name_of(from_name)?);
        let (to, to_name) = (self.inodes.file(to)?, name_of(to_name)?);
        if !self.opens.is_empty() {
            self.settle_name(&from, &from_name)?;
            if over == Over::Exchange {
                self.settle_name(&to, &to_name)?;
            }
        }
        self.take(caller, Act::Rename { from, from_name, to, to_name, over, is_open: false })
    }

    /// Does what may take a file's last name away.
    pub(super) fn take(&self, caller: &Caller, act: Act) -> Result<(), Errno> {
        // Before it is done: a loss right after may undo it.
        let losses = self.desk.losses();
        match self.act(caller, act, false) {
            Ok(Reply::Gone(record)) => self.lost_name(&record, losses, false),
            Ok(Reply::Nameless(record)) => self.lost_name(&record, losses, self.is_shared),
            Ok(_) => {}
            // A directory that was removed has no names, whoever still stands in it.
            Err(Errno::STALE) => return Err(Errno::NOENT),
            Err(errno) => return Err(errno),
        }
        Ok(())
    }

    /// What a name stands for, if it stands for something. The kernel has checked who may know.
    pub(super) fn entry(&self, directory: &FileId, name: &Name) -> Result<Option<Found>, Errno> {
        let (directory, name) = (directory.clone(), name.clone());
        match self.ask(&Actor::ROOT, Call::Lookup { directory, name }) {
            Ok(Reply::Entry(entry, record)) => Ok(Some((entry, record))),
            Ok(_) => Err(Errno::IO),
            Err(Errno::NOENT) => Ok(None),
            // A directory that was removed has no names, whoever still stands in it.
            Err(Errno::STALE) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The kernel is told of a file that a thread has looked up, to open it perhaps.
    fn introduce_to(
        &self,
        pid: u32,
        entry: &Entry,
        record: Option<triomphe::Arc<Record>>,
        told: u64,
    ) -> Result<Attributes, Errno> {
        let attributes = self.introduce(&entry.file, record, told)?;
        if let Err(errno) = self.keep_early(pid, &entry.file, &attributes) {
            self.forget(attributes.inode, 1);
            return Err(errno);
        }
        Ok(attributes)
    }

    /// The kernel is told of a file, with a record as of when the directory had been told so often of bytes.
    fn introduce(
        &self,
        file: &FileId,
        record: Option<triomphe::Arc<Record>>,
        told: u64,
    ) -> Result<Attributes, Errno> {
        let attributes = match record {
            Some(record) => self.fresh_of(file, record, told)?,
            None => self.fresh(file)?,
        };
        self.inodes.learn(attributes.inode, file, false);
        Ok(attributes)
    }

    fn born(&self, reply: Reply) -> Result<Attributes, Errno> {
        match reply {
            // Nobody can have written to it yet.
            Reply::Entry(entry, record) => self.introduce(&entry.file, record, self.told()),
            _ => Err(Errno::IO),
        }
    }

    fn settle_name(&self, directory: &FileId, name: &Name) -> Result<(), Errno> {
        match self.entry(directory, name)? {
            Some((entry, record)) if entry.sort == Sort::Regular => {
                let record = record.map_or_else(|| self.record(&entry.file), Ok)?;
                self.settle_inode(record.serial)
            }
            _ => Ok(()),
        }
    }

    fn settle_inode(&self, inode: u64) -> Result<(), Errno> {
        match self.opens.get(inode) {
            Some(open) => self.settle(&open, &mut open.lock()).map(drop),
            None => Ok(()),
        }
    }

    /// A file, as it was before, has lost its last name when so many sessions were lost. Another machine may have
    /// it open.
    fn lost_name(&self, record: &triomphe::Arc<Record>, losses: u64, may_be_open: bool) {
        self.inodes.depart(record.serial, record);
        if record.sort == Sort::Regular && !self.opens.unlink(record.serial, losses) {
            match (may_be_open, self.inodes.file(record.serial)) {
                (false, _) => self.doom(record.serial, None, losses),
                (true, Ok(file)) => self.doom(record.serial, Some(file), losses),
                // Rather bytes too many than a file without.
                (true, Err(_)) => {}
            }
        }
    }
}
