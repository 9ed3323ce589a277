//! An operation as the kernel performs it, by raw system calls.
//!
//! Every inode of the reference has a descriptor here that only points at it (`O_PATH`), so that calls
//! need no paths, and that an inode can be named as long as the reference knows it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::CString,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{
        self, AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RawDir, RenameFlags, Stat,
        Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, XattrFlags,
    },
    io::{self, Errno},
    process::{Gid, Uid},
};
use sim::reference::{
    Access, Actor, Change, Flag, Handle, How, Ino, Kind, Lock, Put, Range, Stamp,
};

use crate::{
    identity::Identity,
    op::{Name, Op, Outcome, Yield},
};

/// The kernel's tree.
pub struct Kernel {
    pub identity: Identity,
    inodes: BTreeMap<Ino, OwnedFd>,
    handles: BTreeMap<Handle, OwnedFd>,
    /// The reference's number for the kernel's, of every inode that is open above.
    inos: BTreeMap<u64, Ino>,
}

/// Nothing of the reference has this number.
const STRANGER: Ino = Ino(0);

impl Kernel {
    pub fn new(root: &Path) -> Kernel {
        let identity = Identity::new();
        let fd = fs::open(root, OFlags::PATH, Mode::empty()).expect("the scratch directory opens");
        let mut kernel = Kernel {
            identity,
            inodes: BTreeMap::new(),
            handles: BTreeMap::new(),
            inos: BTreeMap::new(),
        };
        kernel.keep(Ino::ROOT, fd);
        kernel
    }

    /// Performs the operation. Numbers of new inodes and handles are those that `expected` says.
    pub fn apply(&mut self, actor: &Actor, op: &Op, expected: &Outcome) -> Outcome {
        self.identity.become_actor(actor);
        self.perform(op, expected).map_err(Errno::raw_os_error)
    }

    /// What `stat` tells.
    pub fn stat(&self, ino: Ino) -> Stat {
        fs::statat(self.fd(ino), "", AtFlags::EMPTY_PATH).expect("an open inode has attributes")
    }

    /// Lets go of an inode that the reference has forgotten.
    pub fn forget(&mut self, ino: Ino) {
        if self.inodes.contains_key(&ino) {
            self.inos.remove(&self.stat(ino).st_ino);
            self.inodes.remove(&ino);
        }
    }

    /// Some of a file's bytes, read with all rights.
    pub fn content(&mut self, ino: Ino, offset: u64, len: usize) -> Vec<u8> {
        let fd = self.open_own(ino);
        let mut bytes = vec![0; len];
        let mut count = 0;
        while count < len {
            match io::pread(&fd, &mut bytes[count..], offset + count as u64) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) => panic!("cannot read {ino}: {error}"),
            }
        }
        bytes.truncate(count);
        bytes
    }

    /// All entries of a directory, read with all rights.
    pub fn entries(&mut self, dir: Ino) -> BTreeMap<Name, (Ino, Kind)> {
        let fd = self.open_own(dir);
        self.list(&fd).expect("an open directory can be listed")
    }

    /// All attributes with their values, read with all rights.
    pub fn xattrs(&mut self, ino: Ino) -> BTreeMap<Name, Vec<u8>> {
        self.identity.become_own();
        let names = self.xattr_names(ino).expect("attributes can be listed");
        let value = |name: Name| {
            let value = self.xattr(ino, &name).expect("an attribute that is listed has a value");
            (name, value)
        };
        names.into_iter().map(value).collect()
    }

    fn perform(&mut self, op: &Op, expected: &Outcome) -> io::Result<Yield> {
        match op {
            Op::Lookup(dir, name) => {
                let stat = fs::statat(self.fd(*dir), name, AtFlags::SYMLINK_NOFOLLOW)?;
                Ok(Yield::Ino(self.ino(stat.st_ino)))
            }
            Op::Create(dir, name, mode) => {
                fs::mknodat(self.fd(*dir), name, FileType::RegularFile, mode_of(*mode), 0)?;
                self.adopt(*dir, name, expected)
            }
            Op::CreateOpen(dir, name, mode, how) => {
                let flags = flags_of(how) | OFlags::CREATE | OFlags::EXCL;
                let fd = fs::openat(self.fd(*dir), name, flags, mode_of(*mode))?;
                let Ok(Yield::Both(_, handle)) = expected else { return Ok(Yield::Done) };
                self.handles.insert(*handle, fd);
                self.adopt(*dir, name, expected)
            }
            Op::Mkdir(dir, name, mode) => {
                fs::mkdirat(self.fd(*dir), name, mode_of(*mode))?;
                self.adopt(*dir, name, expected)
            }
            Op::Symlink(dir, name, target) => {
                fs::symlinkat(target, self.fd(*dir), name)?;
                self.adopt(*dir, name, expected)
            }
            Op::Readlink(dir, name) => {
                let target = fs::readlinkat(self.fd(*dir), name, Vec::new())?;
                Ok(Yield::Bytes(target.into_bytes()))
            }
            Op::Link(ino, dir, name) => {
                let flags = AtFlags::SYMLINK_FOLLOW;
                done(fs::linkat(CWD, self.path(*ino), self.fd(*dir), name, flags))
            }
            Op::Unlink(dir, name) => done(fs::unlinkat(self.fd(*dir), name, AtFlags::empty())),
            Op::Rmdir(dir, name) => done(fs::unlinkat(self.fd(*dir), name, AtFlags::REMOVEDIR)),
            Op::Rename(from, to, flag) => {
                let flags = match flag {
                    Flag::Replace => RenameFlags::empty(),
                    Flag::NoReplace => RenameFlags::NOREPLACE,
                    Flag::Exchange => RenameFlags::EXCHANGE,
                };
                let (source, target) = (self.fd(from.0), self.fd(to.0));
                done(fs::renameat_with(source, &from.1, target, &to.1, flags))
            }
            Op::SetAttr(ino, change) => done(self.setattr(*ino, change)),
            Op::GetXattr(ino, name) => self.xattr(*ino, name).map(Yield::Bytes),
            Op::SetXattr(ino, name, value, put) => {
                let flags = match put {
                    Put::Any => XattrFlags::empty(),
                    Put::Create => XattrFlags::CREATE,
                    Put::Replace => XattrFlags::REPLACE,
                };
                done(fs::setxattr(self.path(*ino), name, value, flags))
            }
            Op::RemoveXattr(ino, name) => done(fs::removexattr(self.path(*ino), name)),
            Op::ListXattr(ino) => self.xattr_names(*ino).map(Yield::Names),
            Op::Readdir(dir) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                let fd = fs::open(self.path(*dir), flags, Mode::empty())?;
                self.list(&fd).map(Yield::Entries)
            }
            Op::Access(ino, bits) => {
                let access = fs::Access::from_bits_retain(*bits);
                done(fs::accessat(CWD, self.path(*ino), access, AtFlags::empty()))
            }
            Op::Open(ino, how) => {
                let fd = fs::open(self.path(*ino), flags_of(how), Mode::empty())?;
                let Ok(Yield::Handle(handle)) = expected else { return Ok(Yield::Done) };
                self.handles.insert(*handle, fd);
                Ok(Yield::Handle(*handle))
            }
            Op::Close(handle) => {
                self.handles.remove(handle);
                Ok(Yield::Done)
            }
            Op::Read(handle, offset, len) => {
                let mut bytes = vec![0; *len as usize];
                let count = io::pread(self.handle(*handle), &mut bytes, *offset)?;
                bytes.truncate(count);
                Ok(Yield::Bytes(bytes))
            }
            Op::Write(handle, offset, data) => {
                let count = io::pwrite(self.handle(*handle), data, *offset)?;
                Ok(Yield::Count(count as u64))
            }
            Op::Truncate(handle, size) => done(fs::ftruncate(self.handle(*handle), *size)),
            Op::SetLock(handle, range, lock) => {
                let command = libc::F_OFD_SETLK;
                record_lock(self.handle(*handle), command, *range, *lock).map(|_| Yield::Done)
            }
            Op::TestLock(handle, range, lock) => {
                let fd = self.handle(*handle);
                let found = record_lock(fd, libc::F_OFD_GETLK, *range, Some(*lock))?;
                Ok(conflicts(found, expected))
            }
            Op::Flock(handle, lock) => {
                let operation = match lock {
                    Some(Lock::Shared) => FlockOperation::NonBlockingLockShared,
                    Some(Lock::Exclusive) => FlockOperation::NonBlockingLockExclusive,
                    None => FlockOperation::NonBlockingUnlock,
                };
                done(fs::flock(self.handle(*handle), operation))
            }
        }
    }

    fn setattr(&self, ino: Ino, change: &Change) -> io::Result<()> {
        let path = self.path(ino);
        match change {
            Change::Mode(mode) => fs::chmodat(CWD, path, mode_of(*mode), AtFlags::empty()),
            Change::Owner { uid, gid } => {
                let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
                fs::chownat(CWD, path, uid, gid, AtFlags::empty())
            }
            Change::Size(size) => truncate(&path, *size),
            Change::Times { atime, mtime } => {
                let times =
                    Timestamps { last_access: time_of(atime), last_modification: time_of(mtime) };
                fs::utimensat(CWD, path, &times, AtFlags::empty())
            }
        }
    }

    fn xattr(&self, ino: Ino, name: &[u8]) -> io::Result<Vec<u8>> {
        let mut value = vec![0; 65_536];
        let len = fs::getxattr(self.path(ino), name, &mut value[..])?;
        value.truncate(len);
        Ok(value)
    }

    /// Of our namespace; others depend on the place.
    fn xattr_names(&self, ino: Ino) -> io::Result<BTreeSet<Name>> {
        let mut list = vec![0; 65_536];
        let len = fs::listxattr(self.path(ino), &mut list[..])?;
        let names = list[..len].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
        Ok(names.map(<[u8]>::to_vec).collect())
    }

    fn list(&self, fd: &OwnedFd) -> io::Result<BTreeMap<Name, (Ino, Kind)>> {
        let mut buffer = vec![MaybeUninit::uninit(); 8_192];
        let mut dir = RawDir::new(fd, &mut buffer);
        let mut entries = BTreeMap::new();
        while let Some(entry) = dir.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Directory => Kind::Directory,
                FileType::Symlink => Kind::Symlink,
                _ => Kind::File,
            };
            let before = entries.insert(name.to_vec(), (self.ino(entry.ino()), kind));
            assert_eq!(before, None, "the kernel lists a name twice");
        }
        Ok(entries)
    }

    /// Takes note of what has just been made there.
    fn adopt(&mut self, dir: Ino, name: &[u8], expected: &Outcome) -> io::Result<Yield> {
        let Ok(Yield::Ino(ino) | Yield::Both(ino, _)) = expected else { return Ok(Yield::Done) };
        self.identity.become_own();
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let fd = fs::openat(self.fd(dir), name, flags, Mode::empty())?;
        self.keep(*ino, fd);
        expected.clone().map_err(|_| Errno::INVAL)
    }

    fn keep(&mut self, ino: Ino, fd: OwnedFd) {
        self.inodes.insert(ino, fd);
        self.inos.insert(self.stat(ino).st_ino, ino);
    }

    fn open_own(&mut self, ino: Ino) -> OwnedFd {
        self.identity.become_own();
        fs::open(self.path(ino), OFlags::RDONLY, Mode::empty()).expect("the superuser may read")
    }

    fn ino(&self, number: u64) -> Ino {
        self.inos.get(&number).copied().unwrap_or(STRANGER)
    }

    fn fd(&self, ino: Ino) -> BorrowedFd<'_> {
        self.inodes[&ino].as_fd()
    }

    fn handle(&self, handle: Handle) -> BorrowedFd<'_> {
        self.handles[&handle].as_fd()
    }

    /// A path that leads to the inode, whoever walks it.
    fn path(&self, ino: Ino) -> String {
        format!("/proc/self/fd/{}", self.fd(ino).as_raw_fd())
    }
}

fn done(result: io::Result<()>) -> io::Result<Yield> {
    result.map(|()| Yield::Done)
}

fn mode_of(mode: u32) -> Mode {
    Mode::from_raw_mode(mode)
}

fn flags_of(how: &How) -> OFlags {
    let mut flags = match how.access {
        Access::Read => OFlags::RDONLY,
        Access::Write => OFlags::WRONLY,
        Access::Both => OFlags::RDWR,
    };
    flags.set(OFlags::APPEND, how.append);
    flags.set(OFlags::TRUNC, how.truncate);
    flags
}

fn time_of(stamp: &Stamp) -> Timespec {
    match stamp {
        Stamp::Omit => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Stamp::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Stamp::At(time) => Timespec {
            tv_sec: (time / 1_000_000_000) as i64,
            tv_nsec: (time % 1_000_000_000) as i64,
        },
    }
}

/// All that the reference sees if the kernel's is one of them; else the kernel's alone.
fn conflicts(found: Option<(Range, Lock)>, expected: &Outcome) -> Yield {
    match (found, expected) {
        (None, _) => Yield::Conflicts(Vec::new()),
        (Some(found), Ok(Yield::Conflicts(all))) if all.contains(&found) => {
            Yield::Conflicts(all.clone())
        }
        (Some(found), _) => Yield::Conflicts(vec![found]),
    }
}

fn last_error() -> Errno {
    let number = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Errno::from_raw_os_error(number)
}

/// `truncate` by path, which rustix lacks.
#[expect(unsafe_code, reason = "the only safe face of truncate opens the file first")]
fn truncate(path: &str, size: u64) -> io::Result<()> {
    let path = CString::new(path).expect("a path has no zero byte");
    // SAFETY: the path is a string with its end, and lives through the call.
    match unsafe { libc::truncate(path.as_ptr(), size as i64) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// Locks on ranges whose owner is the open file, which rustix lacks.
#[expect(unsafe_code, reason = "no safe face of fcntl knows ranges")]
fn record_lock(
    fd: BorrowedFd,
    command: i32,
    range: Range,
    lock: Option<Lock>,
) -> io::Result<Option<(Range, Lock)>> {
    let kind = match lock {
        Some(Lock::Shared) => libc::F_RDLCK,
        Some(Lock::Exclusive) => libc::F_WRLCK,
        None => libc::F_UNLCK,
    };
    let is_open_ended = range.end == Range::ALL.end;
    let mut request = libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: range.start as i64,
        l_len: if is_open_ended { 0 } else { (range.end - range.start + 1) as i64 },
        l_pid: 0,
    };
    // SAFETY: the request lives through the call, which writes nothing else.
    let result = unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw mut request) };
    if result != 0 {
        return Err(last_error());
    }
    let lock = match i32::from(request.l_type) {
        libc::F_RDLCK => Lock::Shared,
        libc::F_WRLCK => Lock::Exclusive,
        _ => return Ok(None),
    };
    let start = request.l_start as u64;
    let end = if request.l_len == 0 { Range::ALL.end } else { start + request.l_len as u64 - 1 };
    Ok(Some((Range { start, end }, lock)))
}
