//! Changing what `stat` tells.

use super::{Actor, Answer, Errno, FileSystem, Ino, Kind, Permission, inode::Body, inode::SET_GID};

/// The largest size and offset.
pub(super) const SIZE_MAX: u64 = i64::MAX as u64;

/// One system call's worth of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `chmod`.
    Mode(u32),
    /// `chown`; what is not given stays.
    Owner {
        /// The new owner.
        uid: Option<u32>,
        /// The new group.
        gid: Option<u32>,
    },
    /// `truncate`.
    Size(u64),
    /// `utimensat`.
    Times {
        /// Of last access.
        atime: Stamp,
        /// Of last modification.
        mtime: Stamp,
    },
}

/// What a time is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// It stays.
    Omit,
    /// The present.
    Now,
    /// This moment.
    At(u64),
}

impl FileSystem {
    /// Changes an inode's attributes.
    pub fn setattr(&mut self, actor: &Actor, now: u64, ino: Ino, change: Change) -> Answer<()> {
        match change {
            Change::Mode(mode) => self.chmod(actor, now, ino, mode),
            Change::Owner { uid, gid } => self.chown(actor, now, ino, uid, gid),
            Change::Size(size) => self.truncate(actor, now, ino, size),
            Change::Times { atime, mtime } => self.utimens(actor, now, ino, atime, mtime),
        }
    }

    fn chmod(&mut self, actor: &Actor, now: u64, ino: Ino, mode: u32) -> Answer<()> {
        let inode = self.inode_mut(ino)?;
        if inode.kind() == Kind::Symlink {
            return Err(Errno::EOPNOTSUPP);
        }
        if !actor.owns(inode) {
            return Err(Errno::EPERM);
        }
        let lends = if actor.may_lend(inode.gid) { SET_GID } else { 0 };
        inode.mode = mode & (0o7777 & !SET_GID | lends);
        inode.ctime = now;
        Ok(())
    }

    fn chown(
        &mut self,
        actor: &Actor,
        now: u64,
        ino: Ino,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> Answer<()> {
        let inode = self.inode_mut(ino)?;
        let is_owner = actor.uid == inode.uid;
        let gives_away = uid.is_some_and(|uid| !is_owner || uid != inode.uid);
        let regroups = gid.is_some_and(|gid| !is_owner || gid != inode.gid && !actor.is_in(gid));
        if (gives_away || regroups) && !actor.is_super() {
            return Err(Errno::EPERM);
        }
        let mode = if inode.is_directory() { inode.mode } else { actor.disowned(inode) };
        // Who changes nothing may call, but not if that would take bits away.
        if mode != inode.mode && !actor.owns(inode) {
            return Err(Errno::EPERM);
        }
        inode.mode = mode;
        inode.uid = uid.unwrap_or(inode.uid);
        inode.gid = gid.unwrap_or(inode.gid);
        inode.ctime = now;
        Ok(())
    }

    fn truncate(&mut self, actor: &Actor, now: u64, ino: Ino, size: u64) -> Answer<()> {
        if size > SIZE_MAX {
            return Err(Errno::EINVAL);
        }
        let inode = self.inode_mut(ino)?;
        match &inode.body {
            Body::Directory(_) => return Err(Errno::EISDIR),
            Body::Symlink(_) => return Err(Errno::EINVAL),
            Body::File(_) if !actor.may(inode, Permission::WRITE) => return Err(Errno::EACCES),
            Body::File(_) => {}
        }
        self.resize(actor, now, ino, size);
        Ok(())
    }

    /// Gives a file this size. It counts as a modification even if it has it already.
    pub(super) fn resize(&mut self, actor: &Actor, now: u64, ino: Ino, size: u64) {
        let inode = self.known(ino);
        inode.touch(now);
        inode.mode = actor.tamed(inode);
        if let Body::File(content) = &mut inode.body {
            content.resize(size);
        }
    }

    fn utimens(
        &mut self,
        actor: &Actor,
        now: u64,
        ino: Ino,
        atime: Stamp,
        mtime: Stamp,
    ) -> Answer<()> {
        let inode = self.inode_mut(ino)?;
        match (atime, mtime) {
            (Stamp::Omit, Stamp::Omit) => return Ok(()),
            // Whoever may write may also say that it has just written.
            (Stamp::Now, Stamp::Now) if actor.may(inode, Permission::WRITE) => {}
            _ if actor.owns(inode) => {}
            (Stamp::Now, Stamp::Now) => return Err(Errno::EACCES),
            _ => return Err(Errno::EPERM),
        }
        let choose = |stamp, before| match stamp {
            Stamp::Omit => before,
            Stamp::Now => now,
            Stamp::At(time) => time,
        };
        inode.atime = choose(atime, inode.atime);
        inode.mtime = choose(mtime, inode.mtime);
        inode.ctime = now;
        Ok(())
    }
}
