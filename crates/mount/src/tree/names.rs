//! Names: looking them up, giving, taking and moving them.

use base::FileId;
use client::{Call, Reply};
use directory::{Act, Actor, Birth, Entry, File as Record, Sort, Special};
use lease::Name;

use crate::front::{Attributes, Caller, Errno, Over};

use super::{Tree, name_of};

impl Tree {
    /// What a name stands for. The kernel knows the inode from now on, until [`Tree::forget`].
    pub fn lookup(&self, directory: u64, name: &[u8]) -> Result<Attributes, Errno> {
        let (directory, name) = (self.inodes.file(directory)?, name_of(name)?);
        let entry = self.entry(&directory, &name)?.ok_or(Errno::NOENT)?;
        self.introduce(&entry.file)
    }

    /// The kernel forgets that it was told of an inode so many times.
    pub fn forget(&self, inode: u64, lookups: u64) {
        self.inodes.forget(inode, lookups);
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
        self.introduce(&file)
    }

    /// A name less.
    pub fn unlink(&self, directory: u64, name: &[u8], caller: &Caller) -> Result<(), Errno> {
        let (directory, name) = (self.inodes.file(directory)?, name_of(name)?);
        let entry = self.entry(&directory, &name)?.ok_or(Errno::NOENT)?;
        let record = self.record(&entry.file)?;
        self.act(caller, Act::Unlink { directory, name, is_open: false }, false)?;
        self.lost_name(&record);
        Ok(())
    }

    /// An empty directory goes.
    pub fn rmdir(&self, directory: u64, name: &[u8], caller: &Caller) -> Result<(), Errno> {
        let (directory, name) = (self.inodes.file(directory)?, name_of(name)?);
        let entry = self.entry(&directory, &name)?.ok_or(Errno::NOENT)?;
        let record = self.record(&entry.file)?;
        self.act(caller, Act::Rmdir { directory, name }, false)?;
        self.lost_name(&record);
        Ok(())
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
        let moved = self.entry(&from, &from_name)?.ok_or(Errno::NOENT)?;
        let there = self.entry(&to, &to_name)?;
        self.settle_entry(&moved)?;
        if let Some(there) = there.as_ref().filter(|_| over == Over::Exchange) {
            self.settle_entry(there)?;
        }
        let lost = match &there {
            Some(there) if over == Over::Replace && there.file != moved.file => {
                Some(self.record(&there.file)?)
            }
            _ => None,
        };
        let act = Act::Rename { from, from_name, to, to_name, over, is_open: false };
        self.act(caller, act, false)?;
        if let Some(record) = lost {
            self.lost_name(&record);
        }
        Ok(())
    }

    /// What a name stands for, if it stands for something. The kernel has checked who may know.
    pub(super) fn entry(&self, directory: &FileId, name: &Name) -> Result<Option<Entry>, Errno> {
        let (directory, name) = (directory.clone(), name.clone());
        match self.ask(&Actor::ROOT, Call::Lookup { directory, name }) {
            Ok(Reply::Entry(entry)) => Ok(Some(entry)),
            Ok(_) => Err(Errno::IO),
            Err(Errno::NOENT) => Ok(None),
            // A directory that was removed has no names, whoever still stands in it.
            Err(Errno::STALE) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The kernel is told of a file.
    pub(super) fn introduce(&self, file: &FileId) -> Result<Attributes, Errno> {
        let attributes = self.fresh(file)?;
        self.inodes.learn(attributes.inode, file, false);
        Ok(attributes)
    }

    fn born(&self, reply: Reply) -> Result<Attributes, Errno> {
        match reply {
            Reply::Entry(entry) => self.introduce(&entry.file),
            _ => Err(Errno::IO),
        }
    }

    fn settle_entry(&self, entry: &Entry) -> Result<(), Errno> {
        if entry.sort != Sort::Regular || self.opens.is_empty() {
            return Ok(());
        }
        self.settle_inode(self.record(&entry.file)?.serial)
    }

    fn settle_inode(&self, inode: u64) -> Result<(), Errno> {
        match self.opens.get(inode) {
            Some(open) => self.settle(&open, &mut open.lock()).map(drop),
            None => Ok(()),
        }
    }

    /// A file, as it was before, has lost a name.
    fn lost_name(&self, record: &triomphe::Arc<Record>) {
        // A directory has but one name: its other links are those of what is in it.
        if record.links > 1 && record.sort != Sort::Directory {
            return;
        }
        self.inodes.depart(record.serial, record);
        if record.sort == Sort::Regular && !self.opens.unlink(record.serial) {
            self.doom(record.serial);
        }
    }
}
