//! Open files: reading and writing, and files that outlive their names.

use super::{
    Actor, Answer, At, Errno, FileSystem, Ino, Permission,
    inode::{Body, Inode},
    setattr::SIZE_MAX,
};

/// An open file; it is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u64);

/// What a handle is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Both.
    Both,
}

/// How to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// What the handle is for.
    pub access: Access,
    /// Whether all writes go to the end: `O_APPEND`.
    pub append: bool,
    /// Whether the file is emptied first: `O_TRUNC`.
    pub truncate: bool,
}

impl How {
    /// To read.
    pub const READ: How = How { access: Access::Read, append: false, truncate: false };
    /// To write.
    pub const WRITE: How = How { access: Access::Write, append: false, truncate: false };
    /// To read and write.
    pub const BOTH: How = How { access: Access::Both, append: false, truncate: false };
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) ino: Ino,
    how: How,
}

impl Open {
    pub(super) fn reads(&self) -> bool {
        self.how.access != Access::Write
    }

    pub(super) fn writes(&self) -> bool {
        self.how.access != Access::Read
    }
}

impl FileSystem {
    /// Opens a file, or a directory to read.
    pub fn open(&mut self, actor: &Actor, now: u64, ino: Ino, how: How) -> Answer<Handle> {
        let open = Open { ino, how };
        let mut wanted = Permission::NONE;
        if open.reads() {
            wanted = wanted | Permission::READ;
        }
        if open.writes() || how.truncate {
            wanted = wanted | Permission::WRITE;
        }
        match &self.inode(ino)?.body {
            Body::Symlink(_) => return Err(Errno::ELOOP),
            Body::Directory(_) if open.writes() || how.truncate => return Err(Errno::EISDIR),
            Body::Directory(_) | Body::File(_) => {}
        }
        self.access(actor, ino, wanted)?;
        if how.truncate {
            self.resize(actor, now, ino, 0);
        }
        Ok(self.hand_out(open))
    }

    /// Makes a file and opens it, whatever its mode allows: `O_CREAT | O_EXCL`.
    pub fn create_open(
        &mut self,
        actor: &Actor,
        now: u64,
        at: At,
        mode: u32,
        how: How,
    ) -> Answer<(Ino, Handle)> {
        let ino = self.create(actor, now, at, mode)?;
        Ok((ino, self.hand_out(Open { ino, how })))
    }

    /// Closes it. A file without names ends with its last handle, and so do all locks.
    pub fn close(&mut self, handle: Handle) -> Answer<()> {
        let Open { ino, .. } = self.handles.remove(&handle).ok_or(Errno::EBADF)?;
        let inode = self.known(ino);
        inode.handle_count -= 1;
        inode.locks.forget_handle(handle);
        if inode.handle_count == 0 {
            inode.locks.clear();
        }
        self.bury(ino);
        Ok(())
    }

    /// Up to `len` bytes from there.
    pub fn read(&self, handle: Handle, offset: u64, len: u64) -> Answer<Vec<u8>> {
        if offset > SIZE_MAX {
            return Err(Errno::EINVAL);
        }
        let open = self.opened(handle)?;
        if !open.reads() {
            return Err(Errno::EBADF);
        }
        if offset.saturating_add(len) > SIZE_MAX {
            return Err(Errno::EINVAL);
        }
        match &self.inode(open.ino)?.body {
            Body::File(content) => Ok(content.read(offset, len)),
            Body::Directory(_) => Err(Errno::EISDIR),
            Body::Symlink(_) => Err(Errno::EINVAL),
        }
    }

    /// Writes there, or at the end if the handle appends. Answers how many bytes there was room for.
    pub fn write(
        &mut self,
        actor: &Actor,
        now: u64,
        handle: Handle,
        offset: u64,
        data: &[u8],
    ) -> Answer<u64> {
        if offset > SIZE_MAX {
            return Err(Errno::EINVAL);
        }
        let open = *self.opened(handle)?;
        if !open.writes() {
            return Err(Errno::EBADF);
        }
        // Judged by the offset that was asked for, even if the handle appends.
        if offset.saturating_add(data.len() as u64) > SIZE_MAX {
            return Err(Errno::EINVAL);
        }
        if data.is_empty() {
            return Ok(0);
        }
        let inode = self.known(open.ino);
        let offset = if open.how.append { inode.size() } else { offset };
        let room = SIZE_MAX - offset;
        if room == 0 {
            return Err(Errno::EFBIG);
        }
        let data = &data[..data.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        inode.touch(now);
        inode.mode = actor.tamed(inode);
        if let Body::File(content) = &mut inode.body {
            content.write(offset, data);
        }
        Ok(data.len() as u64)
    }

    /// Gives the open file another size: `ftruncate`.
    pub fn truncate_open(
        &mut self,
        actor: &Actor,
        now: u64,
        handle: Handle,
        size: u64,
    ) -> Answer<()> {
        let open = *self.opened(handle)?;
        if size > SIZE_MAX || !open.writes() {
            return Err(Errno::EINVAL);
        }
        self.resize(actor, now, open.ino, size);
        Ok(())
    }

    /// All open handles with their inodes.
    pub fn handles(&self) -> impl Iterator<Item = (Handle, Ino)> {
        self.handles.iter().map(|(handle, open)| (*handle, open.ino))
    }

    pub(super) fn opened(&self, handle: Handle) -> Answer<&Open> {
        self.handles.get(&handle).ok_or(Errno::EBADF)
    }

    pub(super) fn opened_inode(&mut self, handle: Handle) -> Answer<&mut Inode> {
        let ino = self.opened(handle)?.ino;
        Ok(self.known(ino))
    }

    fn hand_out(&mut self, open: Open) -> Handle {
        self.handle_last += 1;
        let handle = Handle(self.handle_last);
        self.known(open.ino).handle_count += 1;
        self.handles.insert(handle, open);
        handle
    }
}
