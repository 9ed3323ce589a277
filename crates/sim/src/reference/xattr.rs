//! Extended attributes of the `user.` namespace.

use super::{Actor, Answer, Errno, FileSystem, Ino, Kind, Permission, inode::Inode, inode::STICKY};

const NAME_MAX: usize = 255;
const VALUE_MAX: usize = 65_536;
const NAMESPACE: &[u8] = b"user.";

/// What `setxattr` expects of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// Nothing.
    Any,
    /// It is free: `XATTR_CREATE`.
    Create,
    /// It has a value: `XATTR_REPLACE`.
    Replace,
}

impl FileSystem {
    /// The value of this name, which includes its namespace.
    pub fn getxattr(&self, actor: &Actor, ino: Ino, name: &[u8]) -> Answer<&[u8]> {
        has_valid_len(name)?;
        let inode = self.inode(ino)?;
        if !has_xattrs(inode) {
            return Err(if is_user(name) { Errno::ENODATA } else { Errno::EOPNOTSUPP });
        }
        self.access(actor, ino, Permission::READ)?;
        resolve(name)?;
        inode.xattrs.get(name).map(Vec::as_slice).ok_or(Errno::ENODATA)
    }

    /// Gives the name a value.
    pub fn setxattr(
        &mut self,
        actor: &Actor,
        now: u64,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        put: Put,
    ) -> Answer<()> {
        has_valid_len(name)?;
        if value.len() > VALUE_MAX {
            return Err(Errno::E2BIG);
        }
        self.may_put(actor, ino, name)?;
        let inode = self.inode_mut(ino)?;
        match (put, inode.xattrs.contains_key(name)) {
            (Put::Create, true) => return Err(Errno::EEXIST),
            (Put::Replace, false) => return Err(Errno::ENODATA),
            _ => {}
        }
        inode.xattrs.insert(name.to_vec(), value.to_vec());
        inode.ctime = now;
        Ok(())
    }

    /// Takes the name away.
    pub fn removexattr(&mut self, actor: &Actor, now: u64, ino: Ino, name: &[u8]) -> Answer<()> {
        has_valid_len(name)?;
        self.may_put(actor, ino, name)?;
        let inode = self.inode_mut(ino)?;
        inode.xattrs.remove(name).ok_or(Errno::ENODATA)?;
        inode.ctime = now;
        Ok(())
    }

    /// All names that have values. It needs no permission.
    pub fn listxattr(&self, ino: Ino) -> Answer<Vec<&[u8]>> {
        Ok(self.inode(ino)?.xattrs.keys().map(Vec::as_slice).collect())
    }

    fn may_put(&self, actor: &Actor, ino: Ino, name: &[u8]) -> Answer<()> {
        let inode = self.inode(ino)?;
        if is_user(name) {
            // In a directory for all, only its owner has attributes.
            let is_shared = inode.is_directory() && inode.mode & STICKY != 0;
            if !has_xattrs(inode) || is_shared && !actor.owns(inode) {
                return Err(Errno::EPERM);
            }
        }
        self.access(actor, ino, Permission::WRITE)?;
        resolve(name)
    }
}

fn has_valid_len(name: &[u8]) -> Answer<()> {
    if (1..=NAME_MAX).contains(&name.len()) { Ok(()) } else { Err(Errno::ERANGE) }
}

fn is_user(name: &[u8]) -> bool {
    name.starts_with(NAMESPACE)
}

fn resolve(name: &[u8]) -> Answer<()> {
    match name.strip_prefix(NAMESPACE) {
        None => Err(Errno::EOPNOTSUPP),
        Some(b"") => Err(Errno::EINVAL),
        Some(_) => Ok(()),
    }
}

fn has_xattrs(inode: &Inode) -> bool {
    inode.kind() != Kind::Symlink
}
