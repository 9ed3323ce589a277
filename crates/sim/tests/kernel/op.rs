//! One operation, and what it may yield.

use std::collections::{BTreeMap, BTreeSet};

use sim::reference::{
    Access, Change, Errno, Flag, Handle, How, Ino, Kind, Lock, Put, Range, Stamp,
};

/// Bytes of a name.
pub type Name = Vec<u8>;

/// What one system call asks.
#[derive(Clone, Debug)]
pub enum Op {
    Lookup(Ino, Name),
    Create(Ino, Name, u32),
    CreateOpen(Ino, Name, u32, How),
    Mkdir(Ino, Name, u32),
    Symlink(Ino, Name, Vec<u8>),
    Readlink(Ino, Name),
    Link(Ino, Ino, Name),
    Unlink(Ino, Name),
    Rmdir(Ino, Name),
    Rename((Ino, Name), (Ino, Name), Flag),
    SetAttr(Ino, Change),
    GetXattr(Ino, Name),
    SetXattr(Ino, Name, Vec<u8>, Put),
    RemoveXattr(Ino, Name),
    ListXattr(Ino),
    Readdir(Ino),
    Access(Ino, u32),
    Open(Ino, How),
    Close(Handle),
    Read(Handle, u64, u64),
    Write(Handle, u64, Vec<u8>),
    Truncate(Handle, u64),
    SetLock(Handle, Range, Option<Lock>),
    TestLock(Handle, Range, Lock),
    Flock(Handle, Option<Lock>),
}

/// What it answers if nothing is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Yield {
    Done,
    Ino(Ino),
    Handle(Handle),
    Both(Ino, Handle),
    Bytes(Vec<u8>),
    Count(u64),
    Entries(BTreeMap<Name, (Ino, Kind)>),
    Names(BTreeSet<Name>),
    /// Of the reference all that are in the way, of the kernel one of them or all.
    Conflicts(Vec<(Range, Lock)>),
}

/// What it answers; errors by their numbers.
pub type Outcome = Result<Yield, i32>;

impl Op {
    /// What it is called in counts.
    pub fn verb(&self) -> &'static str {
        match self {
            Op::Lookup(..) => "lookup",
            Op::Create(..) => "create",
            Op::CreateOpen(..) => "create+open",
            Op::Mkdir(..) => "mkdir",
            Op::Symlink(..) => "symlink",
            Op::Readlink(..) => "readlink",
            Op::Link(..) => "link",
            Op::Unlink(..) => "unlink",
            Op::Rmdir(..) => "rmdir",
            Op::Rename(_, _, Flag::Replace) => "rename",
            Op::Rename(_, _, Flag::NoReplace) => "rename-noreplace",
            Op::Rename(_, _, Flag::Exchange) => "rename-exchange",
            Op::SetAttr(_, Change::Mode(_)) => "chmod",
            Op::SetAttr(_, Change::Owner { .. }) => "chown",
            Op::SetAttr(_, Change::Size(_)) => "truncate",
            Op::SetAttr(_, Change::Times { .. }) => "utimens",
            Op::GetXattr(..) => "getxattr",
            Op::SetXattr(..) => "setxattr",
            Op::RemoveXattr(..) => "removexattr",
            Op::ListXattr(..) => "listxattr",
            Op::Readdir(..) => "readdir",
            Op::Access(..) => "access",
            Op::Open(..) => "open",
            Op::Close(..) => "close",
            Op::Read(..) => "read",
            Op::Write(..) => "write",
            Op::Truncate(..) => "ftruncate",
            Op::SetLock(..) => "setlk",
            Op::TestLock(..) => "getlk",
            Op::Flock(..) => "flock",
        }
    }

    /// The operation in few words, for somebody who looks for a mistake.
    pub fn describe(&self) -> String {
        let verb = self.verb();
        let name = |name: &Name| match name.len() {
            ..=40 => format!("{:?}", String::from_utf8_lossy(name)),
            len => format!("a name of {len} bytes"),
        };
        let how = |how: &How| {
            let access = match how.access {
                Access::Read => "r",
                Access::Write => "w",
                Access::Both => "rw",
            };
            let append = if how.append { "+append" } else { "" };
            let truncate = if how.truncate { "+truncate" } else { "" };
            format!("{access}{append}{truncate}")
        };
        let at = |dir: &Ino, child: &Name| format!("{dir} {}", name(child));
        match self {
            Op::Lookup(dir, child)
            | Op::Readlink(dir, child)
            | Op::Unlink(dir, child)
            | Op::Rmdir(dir, child) => format!("{verb} {}", at(dir, child)),
            Op::Create(dir, child, mode) | Op::Mkdir(dir, child, mode) => {
                format!("{verb} {} {mode:04o}", at(dir, child))
            }
            Op::CreateOpen(dir, child, mode, flags) => {
                format!("{verb} {} {mode:04o} {}", at(dir, child), how(flags))
            }
            Op::Symlink(dir, child, target) => {
                format!("{verb} {} -> {}", at(dir, child), name(target))
            }
            Op::Link(ino, dir, child) => format!("{verb} {ino} as {}", at(dir, child)),
            Op::Rename(from, to, _) => {
                format!("{verb} {} to {}", at(&from.0, &from.1), at(&to.0, &to.1))
            }
            Op::SetAttr(ino, Change::Mode(mode)) => format!("{verb} {ino} {mode:04o}"),
            Op::SetAttr(ino, Change::Owner { uid, gid }) => format!("{verb} {ino} {uid:?}:{gid:?}"),
            Op::SetAttr(ino, Change::Size(size)) => format!("{verb} {ino} {size}"),
            Op::SetAttr(ino, Change::Times { atime, mtime }) => {
                let stamp = |stamp: &Stamp| match stamp {
                    Stamp::Omit => "omit".to_owned(),
                    Stamp::Now => "now".to_owned(),
                    Stamp::At(time) => time.to_string(),
                };
                format!("{verb} {ino} {} {}", stamp(atime), stamp(mtime))
            }
            Op::GetXattr(ino, key) | Op::RemoveXattr(ino, key) => {
                format!("{verb} {ino} {}", name(key))
            }
            Op::SetXattr(ino, key, value, put) => {
                format!("{verb} {ino} {} to {} bytes, {put:?}", name(key), value.len())
            }
            Op::ListXattr(ino) | Op::Readdir(ino) => format!("{verb} {ino}"),
            Op::Access(ino, bits) => format!("{verb} {ino} {bits}"),
            Op::Open(ino, flags) => format!("{verb} {ino} {}", how(flags)),
            Op::Close(Handle(handle)) => format!("{verb} h{handle}"),
            Op::Read(Handle(handle), offset, len) => format!("{verb} h{handle} {offset} {len}"),
            Op::Write(Handle(handle), offset, data) => {
                format!("{verb} h{handle} {offset} {} bytes", data.len())
            }
            Op::Truncate(Handle(handle), size) => format!("{verb} h{handle} {size}"),
            Op::SetLock(Handle(handle), Range { start, end }, lock) => {
                format!("{verb} h{handle} {start}-{end} {lock:?}")
            }
            Op::TestLock(Handle(handle), Range { start, end }, lock) => {
                format!("{verb} h{handle} {start}-{end} {lock:?}")
            }
            Op::Flock(Handle(handle), lock) => format!("{verb} h{handle} {lock:?}"),
        }
    }
}

/// An errno's name, or its number if the reference does not know it.
pub fn errno_name(number: i32) -> String {
    let known = Errno::ALL.iter().find(|errno| errno.number() == number);
    known.map_or_else(|| format!("errno {number}"), |errno| errno.name().to_owned())
}

/// The outcome in few words.
pub fn describe(outcome: &Outcome) -> String {
    match outcome {
        Err(number) => errno_name(*number),
        Ok(Yield::Done) => "ok".to_owned(),
        Ok(Yield::Ino(ino)) => ino.to_string(),
        Ok(Yield::Handle(handle)) => format!("h{}", handle.0),
        Ok(Yield::Both(ino, handle)) => format!("{ino} h{}", handle.0),
        Ok(Yield::Bytes(bytes)) => {
            format!("{} bytes: {}", bytes.len(), bytes[..bytes.len().min(64)].escape_ascii())
        }
        Ok(Yield::Count(count)) => count.to_string(),
        Ok(other) => format!("{other:?}"),
    }
}
