//! What the kernel says in our words, and what we say in the kernel's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use directory::{Sort, Special};
use fuser::{
    BackingId, FileAttr, FileType, FopenFlags, Generation, INodeNo, OpenAccMode, OpenFlags,
    ReplyAttr, ReplyEmpty, ReplyEntry, ReplyLock, ReplyXattr, Request, TimeOrNow,
};
use rustix::fs::OFlags;

use crate::front::{Attributes, Caller, Errno, Moment, Obstacle, Purpose, Registration};

/// No inode number is ever used again.
pub(super) const GENERATION: Generation = Generation(0);
/// Nothing has to be told us when a file is closed but that it is.
pub(super) const CACHED: FopenFlags = FopenFlags::FOPEN_NOFLUSH;
pub(super) const DIRECT: FopenFlags = CACHED.union(FopenFlags::FOPEN_DIRECT_IO);

/// With this flag of its own the kernel opens a program to run it.
const RUNS: i32 = 0x20;

/// Kinds of locks, as `fcntl` has them.
const SHARED: i32 = 0;
const EXCLUSIVE: i32 = 1;
const UNLOCKED: i32 = 2;
/// The kernel knows no byte beyond, and takes this for the end of any file.
const OFFSET_MAX: u64 = i64::MAX.cast_unsigned();

pub(super) fn caller(request: &Request) -> Caller {
    Caller { uid: request.uid(), gid: request.gid(), pid: request.pid() }
}

pub(super) fn errno(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}

pub(super) fn mode_of(mode: u32) -> u16 {
    (mode & 0o7777) as u16
}

pub(super) fn kind(sort: Sort) -> FileType {
    match sort {
        Sort::Regular => FileType::RegularFile,
        Sort::Directory => FileType::Directory,
        Sort::Symlink => FileType::Symlink,
        Sort::Special(Special::Pipe) => FileType::NamedPipe,
        Sort::Special(Special::Socket) => FileType::Socket,
        Sort::Special(Special::Character(_)) => FileType::CharDevice,
        Sort::Special(Special::Block(_)) => FileType::BlockDevice,
    }
}

fn device_of(sort: Sort) -> u32 {
    match sort {
        Sort::Special(Special::Character(device) | Special::Block(device)) => device,
        _ => 0,
    }
}

/// What `mknod` is to make, if it is nothing plain.
pub(super) fn special_of(mode: u32, device: u32) -> Option<Special> {
    use rustix::fs::FileType;
    match FileType::from_raw_mode(mode) {
        FileType::Fifo => Some(Special::Pipe),
        FileType::Socket => Some(Special::Socket),
        FileType::CharacterDevice => Some(Special::Character(device)),
        FileType::BlockDevice => Some(Special::Block(device)),
        _ => None,
    }
}

pub(super) fn time(nanoseconds: i64) -> SystemTime {
    let since = Duration::from_nanos(nanoseconds.unsigned_abs());
    if nanoseconds < 0 { UNIX_EPOCH - since } else { UNIX_EPOCH + since }
}

pub(super) fn nanoseconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        // `fuser` takes the kernel's seconds and nanoseconds both as going back from 1970; the latter go
        // forward.
        Err(before) => {
            let before = before.duration();
            let back = i128::from(before.as_secs()) * 1_000_000_000;
            i64::try_from(i128::from(before.subsec_nanos()) - back).unwrap_or(i64::MIN)
        }
    }
}

pub(super) fn moment(time: TimeOrNow) -> Moment {
    match time {
        TimeOrNow::Now => Moment::Now,
        TimeOrNow::SpecificTime(time) => Moment::At(nanoseconds(time)),
    }
}

pub(super) fn attr(attributes: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(attributes.inode),
        size: attributes.size,
        blocks: attributes.blocks,
        atime: time(attributes.accessed),
        mtime: time(attributes.modified),
        ctime: time(attributes.changed),
        crtime: UNIX_EPOCH,
        kind: kind(attributes.sort),
        perm: attributes.mode,
        nlink: attributes.links,
        uid: attributes.uid,
        gid: attributes.gid,
        rdev: device_of(attributes.sort),
        blksize: 4_096,
        flags: 0,
    }
}

pub(super) fn purpose(flags: i32) -> Purpose {
    let access = OpenFlags(flags).acc_mode();
    Purpose {
        reads: access != OpenAccMode::O_WRONLY,
        writes: access != OpenAccMode::O_RDONLY,
        truncates: has(flags, OFlags::TRUNC),
        runs: flags & RUNS != 0,
    }
}

pub(super) fn has(flags: i32, flag: OFlags) -> bool {
    OFlags::from_bits_retain(flags as u32).contains(flag)
}

pub(super) fn reply_entry(
    reply: ReplyEntry,
    validity: Duration,
    result: Result<Attributes, Errno>,
) {
    match result {
        Ok(attributes) => reply.entry(&validity, &attr(&attributes), GENERATION),
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn reply_attr(reply: ReplyAttr, validity: Duration, result: Result<Attributes, Errno>) {
    match result {
        Ok(attributes) => reply.attr(&validity, &attr(&attributes)),
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn reply_empty(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn reply_xattr(reply: ReplyXattr, result: Result<Vec<u8>, Errno>, size: u32) {
    match result {
        Ok(bytes) if size == 0 => reply.size(bytes.len() as u32),
        Ok(bytes) if bytes.len() > size as usize => reply.error(errno(Errno::RANGE)),
        Ok(bytes) => reply.data(&bytes),
        Err(error) => reply.error(errno(error)),
    }
}

/// Whether a lock keeps everybody else out; none gives one up.
pub(super) fn hold_of(kind: i32) -> Result<Option<bool>, Errno> {
    match kind {
        SHARED => Ok(Some(false)),
        EXCLUSIVE => Ok(Some(true)),
        UNLOCKED => Ok(None),
        _ => Err(Errno::INVAL),
    }
}

pub(super) fn reply_lock(reply: ReplyLock, found: Result<Option<Obstacle>, Errno>) {
    match found {
        Ok(Some(Obstacle { start, end, is_exclusive, pid, .. })) => {
            let kind = if is_exclusive { EXCLUSIVE } else { SHARED };
            reply.locked(start.min(OFFSET_MAX), end.min(OFFSET_MAX), kind, pid);
        }
        Ok(None) => reply.locked(0, 0, UNLOCKED, 0),
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn open_flags(keeps_pages: bool) -> FopenFlags {
    match keeps_pages {
        true => CACHED | FopenFlags::FOPEN_KEEP_CACHE,
        false => CACHED,
    }
}

pub(super) fn backing_id(registration: &Registration) -> Option<&BackingId> {
    registration.downcast_ref()
}

/// What is told of a name that stands for nothing.
pub(super) const NOTHING: Attributes = Attributes {
    inode: 0,
    sort: Sort::Regular,
    mode: 0,
    links: 0,
    uid: 0,
    gid: 0,
    size: 0,
    blocks: 0,
    accessed: 0,
    modified: 0,
    changed: 0,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_come_back_as_the_kernel_sent_them() {
        // As `fuser` reads -2 seconds and 800,000,000 nanoseconds, which is 1.2 seconds before 1970.
        let read = UNIX_EPOCH - Duration::new(2, 800_000_000);
        assert_eq!(nanoseconds(read), -1_200_000_000);
        assert_eq!(time(-1_200_000_000), UNIX_EPOCH - Duration::new(1, 200_000_000));
    }

    #[test]
    fn times_far_ahead_are_kept_to_the_nanosecond() {
        for nanoseconds_since in [0, 1, 4_300_000_000_123_456_789, i64::MAX] {
            assert_eq!(nanoseconds(time(nanoseconds_since)), nanoseconds_since);
        }
    }
}
