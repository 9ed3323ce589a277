//! Who acts, and what that allows: the classic mode bits and the superuser.

use std::ops::BitOr;

use super::{
    Answer, Errno, FileSystem, Ino, Kind,
    inode::{Inode, SET_GID, SET_UID},
};

/// A user with all of its groups. User 0 may nearly everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The user.
    pub uid: u32,
    /// The group that new files get.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
}

/// Some of read, write and execute, as the low bits of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission(u32);

impl Permission {
    /// Nothing; whether the inode is there.
    pub const NONE: Permission = Permission(0);
    /// To execute a file, or to look up names in a directory.
    pub const EXECUTE: Permission = Permission(1);
    /// To change content or entries.
    pub const WRITE: Permission = Permission(2);
    /// To read content or list entries.
    pub const READ: Permission = Permission(4);

    /// These bits of 7.
    pub fn from_bits(bits: u32) -> Permission {
        Permission(bits & 7)
    }

    /// As the low bits of a mode.
    pub fn bits(self) -> u32 {
        self.0
    }

    fn has(self, other: Permission) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Permission {
    type Output = Permission;

    fn bitor(self, other: Permission) -> Permission {
        Permission(self.0 | other.0)
    }
}

impl Actor {
    /// The superuser.
    pub fn root() -> Actor {
        Actor { uid: 0, gid: 0, groups: Vec::new() }
    }

    /// Whether no rule of ownership binds it.
    pub fn is_super(&self) -> bool {
        self.uid == 0
    }

    /// Whether the group is one of its own.
    pub fn is_in(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }

    pub(super) fn may(&self, inode: &Inode, wanted: Permission) -> bool {
        let shift = match () {
            () if self.uid == inode.uid => 6,
            () if self.is_in(inode.gid) => 3,
            () => 0,
        };
        let granted = inode.mode >> shift & 7;
        if wanted.0 & !granted == 0 {
            return true;
        }
        // Even the superuser executes only what somebody may execute.
        let is_inert = inode.kind() == Kind::File && inode.mode & 0o111 == 0;
        self.is_super() && !(wanted.has(Permission::EXECUTE) && is_inert)
    }

    pub(super) fn owns(&self, inode: &Inode) -> bool {
        self.is_super() || self.uid == inode.uid
    }

    /// Whether it may leave the set-group-id bit on a file of this group.
    pub(super) fn may_lend(&self, gid: u32) -> bool {
        self.is_super() || self.is_in(gid)
    }

    /// The mode that remains when this actor changes the content.
    pub(super) fn tamed(&self, inode: &Inode) -> u32 {
        if self.is_super() { inode.mode } else { self.disowned(inode) }
    }

    /// The mode that remains when the file gets another owner. Even the superuser loses the bits.
    pub(super) fn disowned(&self, inode: &Inode) -> u32 {
        let mode = inode.mode & !SET_UID;
        let lends = mode & 0o010 != 0 || !self.may_lend(inode.gid);
        if lends { mode & !SET_GID } else { mode }
    }
}

impl FileSystem {
    /// Whether the actor may do all of this to the inode.
    pub fn access(&self, actor: &Actor, ino: Ino, wanted: Permission) -> Answer<()> {
        let inode = self.inode(ino)?;
        if actor.may(inode, wanted) { Ok(()) } else { Err(Errno::EACCES) }
    }
}
