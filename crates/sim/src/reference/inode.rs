//! What one file, directory or symbolic link is.

use std::{collections::BTreeMap, fmt};

use super::{content::Content, locks::Locks};

pub(super) const SET_UID: u32 = 0o4000;
pub(super) const SET_GID: u32 = 0o2000;
pub(super) const STICKY: u32 = 0o1000;

/// The number of an inode; it is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ino(pub u64);

impl Ino {
    /// The root of the tree.
    pub const ROOT: Ino = Ino(1);
}

impl fmt::Display for Ino {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A directory and a name in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<'a>(pub Ino, pub &'a [u8]);

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// It has bytes.
    File,
    /// It has entries.
    Directory,
    /// It has a target.
    Symlink,
}

/// What `stat` tells about an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    /// Its number.
    pub ino: Ino,
    /// What it is.
    pub kind: Kind,
    /// Permissions, set-id bits and the sticky bit.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Entries that lead to it; for a directory, also those in it.
    pub nlink: u32,
    /// Bytes of a file or of a symbolic link's target; 0 for a directory.
    pub size: u64,
    /// Last access, as far as it is modelled.
    pub atime: u64,
    /// Last change of content or entries.
    pub mtime: u64,
    /// Last change of anything.
    pub ctime: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// 0 once nothing leads here: then only handles keep it.
    pub(super) nlink: u32,
    pub(super) atime: u64,
    pub(super) mtime: u64,
    pub(super) ctime: u64,
    pub(super) body: Body,
    pub(super) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) locks: Locks,
    /// Handles that are open on it.
    pub(super) handle_count: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    File(Content),
    Directory(Directory),
    Symlink(Vec<u8>),
}

#[derive(Clone, Debug)]
pub(super) struct Directory {
    /// The root's is itself.
    pub(super) parent: Ino,
    pub(super) entries: BTreeMap<Vec<u8>, Ino>,
}

impl Directory {
    pub(super) fn new(parent: Ino) -> Directory {
        Directory { parent, entries: BTreeMap::new() }
    }
}

impl Inode {
    pub(super) fn new(mode: u32, (uid, gid): (u32, u32), now: u64, body: Body) -> Inode {
        Inode {
            mode,
            uid,
            gid,
            nlink: if matches!(body, Body::Directory(_)) { 2 } else { 1 },
            atime: now,
            mtime: now,
            ctime: now,
            body,
            xattrs: BTreeMap::new(),
            locks: Locks::default(),
            handle_count: 0,
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self.body {
            Body::File(_) => Kind::File,
            Body::Directory(_) => Kind::Directory,
            Body::Symlink(_) => Kind::Symlink,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        self.kind() == Kind::Directory
    }

    pub(super) fn size(&self) -> u64 {
        match &self.body {
            Body::File(content) => content.size(),
            Body::Directory(_) => 0,
            Body::Symlink(target) => target.len() as u64,
        }
    }

    pub(super) fn directory(&self) -> Option<&Directory> {
        if let Body::Directory(directory) = &self.body { Some(directory) } else { None }
    }

    pub(super) fn attr(&self, ino: Ino) -> Attr {
        Attr {
            ino,
            kind: self.kind(),
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            nlink: self.nlink,
            size: self.size(),
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
        }
    }

    /// Its content or entries have changed.
    pub(super) fn touch(&mut self, now: u64) {
        self.mtime = now;
        self.ctime = now;
    }
}
