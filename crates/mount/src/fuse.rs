//! The kernel's FUSE, through `fuser`: with its children, all that names it.
//!
//! Each handler turns a request into a call of a [`Tree`] and the result into a reply. A panic in one would
//! end its thread, so it is caught: whoever asked gets EIO.

mod convert;
mod mounting;
mod notices;

use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
    time::SystemTime,
};

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, FopenFlags, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLock, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::OFlags;

use crate::{
    front::{
        Allocation, Attributes, Change, Changes, Errno, Manner, Over, Registration, Way, When, Wish,
    },
    locking::{Job, Locking},
    tree::Tree,
    workers::Workers,
};

pub use mounting::{Mount, Options};

use convert::{
    CACHED, DIRECT, GENERATION, NOTHING, attr, backing_id, caller, errno, has, hold_of, kind,
    mode_of, moment, open_flags, purpose, reply_attr, reply_empty, reply_entry, reply_lock,
    reply_xattr, special_of,
};

/// The most bytes in one request to write.
const WRITE_MAX: u32 = 1 << 20;
/// The most requests of the kernel's own (reading ahead and the like) at a time.
const BACKGROUND_MAX: u16 = 64;

/// What `fuser` talks to.
struct Front {
    tree: Arc<Tree>,
    workers: Workers,
    /// None if nobody but the kernel has to know of locks.
    locking: Option<Locking>,
    has_passthrough: bool,
}

impl Front {
    /// Tells the kernel of an inode, which it may not know yet.
    fn tell_of(&self, reply: ReplyEntry, forgotten: u64, result: Result<Attributes, Errno>) {
        let inode = result.as_ref().map_or(0, |attributes| attributes.inode);
        self.tree.tell_fresh(inode, forgotten, |validity| reply_entry(reply, validity, result));
    }

    /// How a file is opened. Whoever has to know of locks has to hear of every `close`.
    fn open_flags(&self, usual: FopenFlags) -> FopenFlags {
        match self.locking {
            Some(_) => usual.difference(FopenFlags::FOPEN_NOFLUSH),
            None => usual,
        }
    }
}

/// Runs a handler. The reply is dropped by a panic, and says EIO.
fn caught(what: &str, run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        eprintln!("croft: {what} failed by a mistake of ours; whoever asked was told EIO");
    }
}

impl Filesystem for Front {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = [
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_EXPORT_SUPPORT,
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
        ];
        for flag in wanted {
            // What an older kernel does not have costs time, and nothing else.
            let _ = config.add_capabilities(flag);
        }
        if self.locking.is_some() {
            // A kernel that knows none of these keeps locks by itself.
            let _ = config.add_capabilities(InitFlags::FUSE_POSIX_LOCKS);
            let _ = config.add_capabilities(InitFlags::FUSE_FLOCK_LOCKS);
        }
        // Whoever opens what is written past the cache may want to map it.
        if config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP).is_ok() {
            self.tree.allow_direct();
        }
        if self.tree.is_shared() {
            // What others have changed, the kernel has to notice before it reads what it remembers.
            let _ = config.add_capabilities(InitFlags::FUSE_AUTO_INVAL_DATA);
        }
        let _ = config.set_max_write(WRITE_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        if self.has_passthrough
            && config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok()
            && config.set_max_stack_depth(1).is_ok()
        {
            self.tree.allow_passthrough();
        }
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let forgotten = self.tree.forgotten();
        caught("lookup", || match self.tree.lookup(parent.0, name.as_bytes(), request.pid()) {
            // An entry without an inode: the kernel may remember that there is none.
            Err(Errno::NOENT) => reply.entry(&self.tree.validity(), &attr(&NOTHING), GENERATION),
            result => self.tell_of(reply, forgotten, result),
        });
    }

    fn forget(&self, _request: &Request, inode: INodeNo, lookups: u64) {
        caught("forget", || self.tree.forget(inode.0, lookups));
    }

    fn getattr(&self, request: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let (_asking, forgotten) = (self.tree.asking(inode.0), self.tree.forgotten());
        caught("getattr", || {
            let attributes = self.tree.getattr_for(inode.0, request.pid());
            self.tree.tell_known(inode.0, forgotten, |validity| {
                reply_attr(reply, validity, attributes);
            });
        });
    }

    fn setattr(
        &self,
        request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        caught("setattr", || {
            let changes = Changes {
                mode: mode.map(mode_of),
                uid,
                gid,
                size,
                accessed: atime.map(moment),
                modified: mtime.map(moment),
            };
            let attributes = self.tree.setattr(inode.0, &changes, &caller(request));
            reply_attr(reply, self.tree.validity_of_change(), attributes);
        });
    }

    fn readlink(&self, _request: &Request, inode: INodeNo, reply: ReplyData) {
        caught("readlink", || match self.tree.readlink(inode.0) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let forgotten = self.tree.forgotten();
        caught("mknod", || {
            let (name, bits, caller) = (name.as_bytes(), mode_of(mode), caller(request));
            let result = match special_of(mode, device) {
                Some(special) => self.tree.mknod_special(parent.0, name, bits, special, &caller),
                None => self.tree.mknod(parent.0, name, bits, &caller),
            };
            self.tell_of(reply, forgotten, result);
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let forgotten = self.tree.forgotten();
        caught("mkdir", || {
            let mode = mode_of(mode);
            let result = self.tree.mkdir(parent.0, name.as_bytes(), mode, &caller(request));
            self.tell_of(reply, forgotten, result);
        });
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        caught("unlink", || {
            reply_empty(reply, self.tree.unlink(parent.0, name.as_bytes(), &caller(request)));
        });
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        caught("rmdir", || {
            reply_empty(reply, self.tree.rmdir(parent.0, name.as_bytes(), &caller(request)));
        });
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let forgotten = self.tree.forgotten();
        caught("symlink", || {
            let target = target.as_os_str().as_bytes();
            let name = name.as_bytes();
            let result = self.tree.symlink(parent.0, name, target, &caller(request));
            self.tell_of(reply, forgotten, result);
        });
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        to_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        caught("rename", || {
            let over = match flags {
                flags if flags.is_empty() => Over::Replace,
                RenameFlags::RENAME_NOREPLACE => Over::Refuse,
                RenameFlags::RENAME_EXCHANGE => Over::Exchange,
                _ => return reply.error(errno(Errno::INVAL)),
            };
            let (from, to) = ((parent.0, name.as_bytes()), (to.0, to_name.as_bytes()));
            reply_empty(reply, self.tree.rename(from, to, over, &caller(request)));
        });
    }

    fn link(
        &self,
        request: &Request,
        inode: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        let forgotten = self.tree.forgotten();
        caught("link", || {
            let name = name.as_bytes();
            let result = self.tree.link(inode.0, parent.0, name, &caller(request));
            self.tell_of(reply, forgotten, result);
        });
    }

    fn open(&self, request: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        caught("open", || {
            let register = |file: &std::fs::File| -> io::Result<Registration> {
                Ok(Arc::new(reply.open_backing(file)?))
            };
            let purpose = purpose(flags.0);
            match self.tree.open(inode.0, purpose, &caller(request), &register) {
                Ok(opened) => {
                    let handle = FileHandle(opened.handle);
                    match &opened.way {
                        Way::Cached { keeps_pages } => {
                            reply.opened(handle, self.open_flags(open_flags(*keeps_pages)));
                        }
                        Way::Direct => reply.opened(handle, self.open_flags(DIRECT)),
                        Way::Passthrough(registration) => match backing_id(registration) {
                            Some(id) => {
                                reply.opened_passthrough(handle, self.open_flags(CACHED), id);
                            }
                            None => reply.error(errno(Errno::IO)),
                        },
                    }
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let forgotten = self.tree.forgotten();
        caught("create", || {
            let register = |file: &std::fs::File| -> io::Result<Registration> {
                Ok(Arc::new(reply.open_backing(file)?))
            };
            let (name, is_new) = (name.as_bytes(), has(flags, OFlags::EXCL));
            let (mode, purpose, caller) = (mode_of(mode), purpose(flags), caller(request));
            let result =
                self.tree.create(parent.0, name, mode, is_new, purpose, &caller, &register);
            match result {
                Ok((attributes, opened)) => {
                    let (attr, handle) = (attr(&attributes), FileHandle(opened.handle));
                    self.tree.tell_fresh(attributes.inode, forgotten, |validity| {
                        match &opened.way {
                            Way::Cached { keeps_pages } => {
                                let flags = self.open_flags(open_flags(*keeps_pages));
                                reply.created(&validity, &attr, GENERATION, handle, flags);
                            }
                            Way::Direct => {
                                // What was locked through it goes when it is released, soon enough for a file
                                // that is only written: a request less for each.
                                let flags =
                                    if purpose.reads { self.open_flags(DIRECT) } else { DIRECT };
                                reply.created(&validity, &attr, GENERATION, handle, flags);
                            }
                            Way::Passthrough(registration) => match backing_id(registration) {
                                Some(id) => {
                                    let flags = self.open_flags(CACHED);
                                    reply.created_passthrough(
                                        &validity, &attr, GENERATION, handle, flags, id,
                                    );
                                }
                                None => reply.error(errno(Errno::IO)),
                            },
                        }
                    });
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn read(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        caught("read", || {
            let mut reply = Some(reply);
            let give = |bytes: &[u8]| {
                if let Some(reply) = reply.take() {
                    reply.data(bytes);
                }
            };
            // Pages the kernel asks for on nobody's behalf.
            let result = match owner {
                Some(_) => self.tree.read(inode.0, offset, size as usize, give),
                None => self.tree.read_pages(inode.0, offset, size as usize, give),
            };
            if let (Err(error), Some(reply)) = (result, reply) {
                reply.error(errno(error));
            }
        });
    }

    fn write(
        &self,
        request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        caught("write", || {
            let manner = Manner {
                tamed_by: write_flags
                    .contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID)
                    .then(|| caller(request)),
                // What comes from mapped memory has its place.
                appends: has(flags.0, OFlags::APPEND)
                    && !write_flags.contains(WriteFlags::FUSE_WRITE_CACHE),
            };
            match self.tree.write(inode.0, offset, data, manner) {
                Ok(()) => reply.written(data.len() as u32),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn flush(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        caught("flush", || match &self.locking {
            Some(locking) if self.tree.has_locks(inode.0, owner.0) => {
                let answer = Box::new(move |result| reply_empty(reply, result));
                locking.run(Job::Unlock { inode: inode.0, owner: owner.0, answer });
            }
            _ => reply_empty(reply, self.tree.flush(inode.0)),
        });
    }

    fn release(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        caught("release", || match &self.locking {
            Some(locking) if self.tree.has_locks_through(inode.0, handle.0) => {
                let (tree, inode, handle) = (Arc::clone(&self.tree), inode.0, handle.0);
                let answer = Box::new(move |_| {
                    tree.release(inode, handle);
                    reply.ok();
                });
                locking.run(Job::UnlockThrough { inode, handle, answer });
            }
            _ => {
                self.tree.release(inode.0, handle.0);
                reply.ok();
            }
        });
    }

    fn getlk(
        &self,
        request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        pid: u32,
        reply: ReplyLock,
    ) {
        caught("getlk", || {
            let (Some(locking), Ok(hold)) = (&self.locking, hold_of(kind)) else {
                return reply.error(errno(Errno::INVAL));
            };
            let (inode, handle, owner) = (inode.0, handle.0, owner.0);
            let who = (request.uid(), request.gid());
            let wish = Wish { inode, handle, owner, pid, who, start, end, hold };
            locking.run(Job::Look { wish, found: Box::new(|found| reply_lock(reply, found)) });
        });
    }

    fn setlk(
        &self,
        request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        pid: u32,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        caught("setlk", || {
            let (Some(locking), Ok(hold)) = (&self.locking, hold_of(kind)) else {
                return reply.error(errno(Errno::INVAL));
            };
            let (inode, handle, owner) = (inode.0, handle.0, owner.0);
            let who = (request.uid(), request.gid());
            let wish = Wish { inode, handle, owner, pid, who, start, end, hold };
            // It is the number of a thread.
            let waiter = waits.then(|| request.pid());
            let answer = Box::new(|result| reply_empty(reply, result));
            locking.run(Job::Take { wish, waiter, answer });
        });
    }

    fn fsync(&self, _: &Request, inode: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let tree = Arc::clone(&self.tree);
        self.workers.run(move || {
            caught("fsync", || reply_empty(reply, tree.fsync(inode.0, handle.0)));
        });
    }

    fn opendir(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        caught("opendir", || match self.tree.opendir(inode.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn readdir(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        caught("readdir", || {
            let mut count = 0;
            let result = self.tree.readdir(inode.0, handle.0, offset, &mut |listed| {
                let (inode, kind) = (INodeNo(listed.inode), kind(listed.sort));
                let is_full = reply.add(inode, listed.cookie, kind, OsStr::from_bytes(listed.name));
                count += usize::from(!is_full);
                is_full
            });
            match result {
                // What was found before is handed over; the error comes again with the next request.
                Err(error) if count == 0 => reply.error(errno(error)),
                _ => reply.ok(),
            }
        });
    }

    fn readdirplus(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        caught("readdirplus", || {
            let mut count = 0;
            let forgotten = self.tree.forgotten();
            let mut inodes = Vec::new();
            let result = self.tree.readdirplus(inode.0, handle.0, offset, &mut |listed, about| {
                let (inode, name) = (INodeNo(listed.inode), OsStr::from_bytes(listed.name));
                let (attr, validity) = (attr(about), self.tree.validity_of(about.inode));
                let is_full = reply.add(inode, listed.cookie, name, &validity, &attr, GENERATION);
                count += usize::from(!is_full);
                inodes.push(inode.0);
                is_full
            });
            match result {
                Err(error) if count == 0 => reply.error(errno(error)),
                _ => reply.ok(),
            }
            // Of these names the kernel does not know when they were found out.
            self.tree.doubt(forgotten, Change::Names);
            inodes.into_iter().for_each(|inode| self.tree.doubt(forgotten, Change::Inode(inode)));
        });
    }

    fn releasedir(
        &self,
        _request: &Request,
        _inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        caught("releasedir", || {
            self.tree.releasedir(handle.0);
            reply.ok();
        });
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let tree = Arc::clone(&self.tree);
        self.workers.run(move || caught("fsyncdir", || reply_empty(reply, tree.fsyncdir())));
    }

    fn statfs(&self, request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        caught("statfs", || match self.tree.statfs(request.uid()) {
            Ok(room) => reply.statfs(
                room.blocks,
                room.blocks_free,
                room.blocks_available,
                room.files,
                room.files_free,
                room.block_size,
                room.name_max,
                room.block_size,
            ),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn setxattr(
        &self,
        request: &Request,
        inode: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        caught("setxattr", || {
            let when = match rustix::fs::XattrFlags::from_bits_retain(flags as u32) {
                rustix::fs::XattrFlags::CREATE => When::Absent,
                rustix::fs::XattrFlags::REPLACE => When::Present,
                _ => When::Always,
            };
            let (name, caller) = (name.as_bytes(), caller(request));
            reply_empty(reply, self.tree.setxattr(inode.0, name, value, when, &caller));
        });
    }

    fn getxattr(&self, _: &Request, inode: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        caught("getxattr", || {
            reply_xattr(reply, self.tree.getxattr(inode.0, name.as_bytes()), size);
        });
    }

    fn listxattr(&self, request: &Request, inode: INodeNo, size: u32, reply: ReplyXattr) {
        caught("listxattr", || {
            reply_xattr(reply, self.tree.listxattr(inode.0, &caller(request)), size);
        });
    }

    fn removexattr(&self, request: &Request, inode: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        caught("removexattr", || {
            let name = name.as_bytes();
            reply_empty(reply, self.tree.removexattr(inode.0, name, &caller(request)));
        });
    }

    fn fallocate(
        &self,
        request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        caught("fallocate", || {
            use rustix::fs::FallocateFlags as Flags;
            let what = match Flags::from_bits_retain(mode as u32) {
                flags if flags.is_empty() => Allocation::Extend,
                Flags::KEEP_SIZE => Allocation::Keep,
                flags if flags == Flags::PUNCH_HOLE | Flags::KEEP_SIZE => Allocation::Punch,
                Flags::ZERO_RANGE => Allocation::Zero,
                flags if flags == Flags::ZERO_RANGE | Flags::KEEP_SIZE => Allocation::ZeroKeep,
                _ => return reply.error(errno(Errno::OPNOTSUPP)),
            };
            reply_empty(
                reply,
                self.tree.fallocate(inode.0, (offset, length), what, &caller(request)),
            );
        });
    }

    fn lseek(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        /// As `lseek` has them; the kernel does the others by itself.
        const DATA: i32 = 3;
        const HOLE: i32 = 4;
        caught("lseek", || {
            let Ok(offset) = u64::try_from(offset) else {
                return reply.error(errno(Errno::NXIO));
            };
            let result = match whence {
                DATA | HOLE => self.tree.seek(inode.0, offset, whence == DATA),
                _ => Err(Errno::INVAL),
            };
            match result {
                Ok(offset) => reply.offset(i64::try_from(offset).unwrap_or(i64::MAX)),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn copy_file_range(
        &self,
        request: &Request,
        from: INodeNo,
        _from_handle: FileHandle,
        from_offset: u64,
        to: INodeNo,
        _to_handle: FileHandle,
        to_offset: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        caught("copy_file_range", || {
            let (from, to) = ((from.0, from_offset), (to.0, to_offset));
            match self.tree.copy(from, to, len, &caller(request)) {
                Ok(copied) => reply.written(u32::try_from(copied).unwrap_or(u32::MAX)),
                Err(error) => reply.error(errno(error)),
            }
        });
    }
}
