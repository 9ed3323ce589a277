//! The whole tree, and the way into it.

use std::collections::BTreeMap;

use super::{
    Actor, Answer, At, Attr, Errno, Handle, Ino, Permission,
    handles::Open,
    inode::{Body, Directory, Inode},
};

/// The longest name in bytes.
pub(super) const NAME_MAX: usize = 255;

/// What administrators may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Whether one may only link to files that one owns, or could read and write and that lend no
    /// identity: Linux's `fs.protected_hardlinks`.
    pub guards_links: bool,
}

/// A tree of files in memory, for one caller at a time.
#[derive(Clone, Debug)]
pub struct FileSystem {
    pub(super) rules: Rules,
    pub(super) inodes: BTreeMap<Ino, Inode>,
    pub(super) handles: BTreeMap<Handle, Open>,
    pub(super) ino_last: u64,
    pub(super) handle_last: u64,
}

impl FileSystem {
    /// An empty root that belongs to the superuser, with this mode.
    pub fn new(rules: Rules, mode: u32) -> FileSystem {
        let body = Body::Directory(Directory::new(Ino::ROOT));
        let root = Inode::new(mode & 0o7777, (0, 0), 0, body);
        FileSystem {
            rules,
            inodes: BTreeMap::from([(Ino::ROOT, root)]),
            handles: BTreeMap::new(),
            ino_last: Ino::ROOT.0,
            handle_last: 0,
        }
    }

    /// What `stat` tells. It needs no permission.
    pub fn getattr(&self, ino: Ino) -> Answer<Attr> {
        Ok(self.inode(ino)?.attr(ino))
    }

    /// The inode of this name, also for `.` and `..`.
    pub fn lookup(&self, actor: &Actor, at: At) -> Answer<Ino> {
        let parent = self.walk(actor, at)?.parent;
        match at.1 {
            b"." => Ok(at.0),
            b".." => self.inode(parent).map(|_| parent),
            _ => self.find(at)?.ok_or(Errno::ENOENT),
        }
    }

    /// Every inode that there is, also those that only handles keep.
    pub fn inos(&self) -> impl Iterator<Item = Ino> {
        self.inodes.keys().copied()
    }

    /// Steps into a directory in order to do something with this name there.
    pub(super) fn walk(&self, actor: &Actor, at: At) -> Answer<&Directory> {
        if at.1.is_empty() {
            return Err(Errno::ENOENT);
        }
        if at.1.contains(&b'/') || at.1.contains(&0) {
            return Err(Errno::EINVAL);
        }
        let directory = self.inode(at.0)?.directory().ok_or(Errno::ENOTDIR)?;
        self.access(actor, at.0, Permission::EXECUTE)?;
        Ok(directory)
    }

    /// The entry of this name, after `walk`.
    pub(super) fn find(&self, at: At) -> Answer<Option<Ino>> {
        let inode = self.inode(at.0)?;
        let directory = inode.directory().ok_or(Errno::ENOTDIR)?;
        if inode.nlink == 0 {
            return Err(Errno::ENOENT);
        }
        if at.1.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        Ok(directory.entries.get(at.1).copied())
    }

    pub(super) fn inode(&self, ino: Ino) -> Answer<&Inode> {
        self.inodes.get(&ino).ok_or(Errno::ENOENT)
    }

    pub(super) fn inode_mut(&mut self, ino: Ino) -> Answer<&mut Inode> {
        self.inodes.get_mut(&ino).ok_or(Errno::ENOENT)
    }

    /// One that is known to be there.
    pub(super) fn known(&mut self, ino: Ino) -> &mut Inode {
        self.inodes.get_mut(&ino).expect("an entry leads to an inode")
    }

    pub(super) fn known_directory(&mut self, ino: Ino) -> &mut Directory {
        match &mut self.known(ino).body {
            Body::Directory(directory) => directory,
            Body::File(_) | Body::Symlink(_) => panic!("only directories have entries"),
        }
    }

    /// Forgets the inode if nothing leads to it any more.
    pub(super) fn bury(&mut self, ino: Ino) {
        let inode = self.known(ino);
        if inode.nlink == 0 && inode.handle_count == 0 {
            self.inodes.remove(&ino);
        }
    }
}

/// Whether the name is one of the two that every directory has.
pub(super) fn is_dots(name: &[u8]) -> bool {
    name == b"." || name == b".."
}
