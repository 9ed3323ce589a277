//! What makes and removes entries of directories, and lists them.

use super::{
    Actor, Answer, At, Errno, FileSystem, Ino, Kind, Permission,
    content::Content,
    file_system::is_dots,
    inode::{Body, Directory, Inode, SET_GID, SET_UID, STICKY},
};

/// The longest target of a symbolic link in bytes.
const TARGET_MAX: usize = 4095;

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the directory.
    pub name: Vec<u8>,
    /// Where it leads.
    pub ino: Ino,
    /// What is there.
    pub kind: Kind,
}

impl FileSystem {
    /// Makes an empty file. A name that is taken is refused; nothing is opened.
    pub fn create(&mut self, actor: &Actor, now: u64, at: At, mode: u32) -> Answer<Ino> {
        self.may_create(actor, at)?;
        let parent = self.known(at.0);
        let mut mode = mode & 0o7777;
        // The group is then not the creator's choice, so it may not be lent out.
        if parent.mode & SET_GID != 0
            && mode & (SET_GID | 0o010) == SET_GID | 0o010
            && !actor.may_lend(parent.gid)
        {
            mode &= !SET_GID;
        }
        Ok(self.birth(actor, now, at, mode, Body::File(Content::default())))
    }

    /// Makes an empty directory.
    pub fn mkdir(&mut self, actor: &Actor, now: u64, at: At, mode: u32) -> Answer<Ino> {
        self.may_create(actor, at)?;
        let parent = self.known(at.0);
        parent.nlink += 1;
        let mode = mode & (0o777 | STICKY) | parent.mode & SET_GID;
        let body = Body::Directory(Directory::new(at.0));
        Ok(self.birth(actor, now, at, mode, body))
    }

    /// Makes a symbolic link.
    pub fn symlink(&mut self, actor: &Actor, now: u64, at: At, target: &[u8]) -> Answer<Ino> {
        match target.len() {
            0 => return Err(Errno::ENOENT),
            1..=TARGET_MAX => {}
            _ => return Err(Errno::ENAMETOOLONG),
        }
        self.may_create(actor, at)?;
        Ok(self.birth(actor, now, at, 0o777, Body::Symlink(target.to_vec())))
    }

    /// The target of a symbolic link.
    pub fn readlink(&self, ino: Ino) -> Answer<&[u8]> {
        match &self.inode(ino)?.body {
            Body::Symlink(target) => Ok(target),
            Body::File(_) | Body::Directory(_) => Err(Errno::EINVAL),
        }
    }

    /// Makes a further name of a file or symbolic link.
    pub fn link(&mut self, actor: &Actor, now: u64, ino: Ino, at: At) -> Answer<()> {
        let inode = self.inode(ino)?;
        self.is_free(actor, at)?;
        if self.rules.guards_links && !actor.owns(inode) && !is_safe_to_link(actor, inode) {
            return Err(Errno::EPERM);
        }
        self.access(actor, at.0, Permission::WRITE | Permission::EXECUTE)?;
        if inode.is_directory() {
            return Err(Errno::EPERM);
        }
        if inode.nlink == 0 {
            return Err(Errno::ENOENT);
        }
        let inode = self.known(ino);
        inode.nlink += 1;
        inode.ctime = now;
        self.known_directory(at.0).entries.insert(at.1.to_vec(), ino);
        self.known(at.0).touch(now);
        Ok(())
    }

    /// Removes a name of a file or symbolic link.
    pub fn unlink(&mut self, actor: &Actor, now: u64, at: At) -> Answer<()> {
        self.walk(actor, at)?;
        if is_dots(at.1) {
            return Err(Errno::EISDIR);
        }
        let victim = self.find(at)?.ok_or(Errno::ENOENT)?;
        self.may_delete(actor, at.0, victim, false)?;
        self.known_directory(at.0).entries.remove(at.1);
        self.known(at.0).touch(now);
        self.unhook(now, victim);
        Ok(())
    }

    /// Removes an empty directory.
    pub fn rmdir(&mut self, actor: &Actor, now: u64, at: At) -> Answer<()> {
        self.walk(actor, at)?;
        match at.1 {
            b"." => return Err(Errno::EINVAL),
            b".." => return Err(Errno::ENOTEMPTY),
            _ => {}
        }
        let victim = self.find(at)?.ok_or(Errno::ENOENT)?;
        self.may_delete(actor, at.0, victim, true)?;
        self.is_vacant(victim)?;
        self.known_directory(at.0).entries.remove(at.1);
        self.known(at.0).nlink -= 1;
        self.known(at.0).touch(now);
        self.unhook(now, victim);
        Ok(())
    }

    /// All entries but `.` and `..`, in the order of their names.
    pub fn readdir(&self, actor: &Actor, dir: Ino) -> Answer<Vec<Entry>> {
        let inode = self.inode(dir)?;
        let directory = inode.directory().ok_or(Errno::ENOTDIR)?;
        self.access(actor, dir, Permission::READ)?;
        if inode.nlink == 0 {
            return Err(Errno::ENOENT);
        }
        let entry = |(name, ino): (&Vec<u8>, &Ino)| {
            Ok(Entry { name: name.clone(), ino: *ino, kind: self.inode(*ino)?.kind() })
        };
        directory.entries.iter().map(entry).collect()
    }

    fn is_free(&self, actor: &Actor, at: At) -> Answer<()> {
        self.walk(actor, at)?;
        if is_dots(at.1) || self.find(at)?.is_some() {
            return Err(Errno::EEXIST);
        }
        Ok(())
    }

    fn may_create(&self, actor: &Actor, at: At) -> Answer<()> {
        self.is_free(actor, at)?;
        self.access(actor, at.0, Permission::WRITE | Permission::EXECUTE)
    }

    /// Whether the entry may go that leads to `victim`, which should be a directory or should not.
    pub(super) fn may_delete(
        &self,
        actor: &Actor,
        dir: Ino,
        victim: Ino,
        wants_directory: bool,
    ) -> Answer<()> {
        self.access(actor, dir, Permission::WRITE | Permission::EXECUTE)?;
        let (parent, victim) = (self.inode(dir)?, self.inode(victim)?);
        if parent.mode & STICKY != 0 && !actor.owns(victim) && !actor.owns(parent) {
            return Err(Errno::EPERM);
        }
        match (wants_directory, victim.is_directory()) {
            (true, false) => Err(Errno::ENOTDIR),
            (false, true) => Err(Errno::EISDIR),
            _ => Ok(()),
        }
    }

    pub(super) fn is_vacant(&self, dir: Ino) -> Answer<()> {
        let directory = self.inode(dir)?.directory().ok_or(Errno::ENOTDIR)?;
        if directory.entries.is_empty() { Ok(()) } else { Err(Errno::ENOTEMPTY) }
    }

    fn birth(&mut self, actor: &Actor, now: u64, at: At, mode: u32, body: Body) -> Ino {
        self.ino_last += 1;
        let ino = Ino(self.ino_last);
        let parent = self.known(at.0);
        parent.touch(now);
        let gid = if parent.mode & SET_GID != 0 { parent.gid } else { actor.gid };
        let inode = Inode::new(mode, (actor.uid, gid), now, body);
        self.inodes.insert(ino, inode);
        self.known_directory(at.0).entries.insert(at.1.to_vec(), ino);
        ino
    }

    /// One entry less leads there; a directory has but one.
    pub(super) fn unhook(&mut self, now: u64, ino: Ino) {
        let inode = self.known(ino);
        inode.nlink = if inode.is_directory() { 0 } else { inode.nlink - 1 };
        inode.ctime = now;
        self.bury(ino);
    }
}

fn is_safe_to_link(actor: &Actor, inode: &Inode) -> bool {
    inode.kind() == Kind::File
        && inode.mode & SET_UID == 0
        && inode.mode & (SET_GID | 0o010) != SET_GID | 0o010
        && actor.may(inode, Permission::READ | Permission::WRITE)
}
