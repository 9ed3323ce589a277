//! What any front end says to a [`Tree`](crate::Tree) and hears from it: plain values, no FUSE.

use std::{any::Any, fs::File, io, sync::Arc, time::Duration};

use directory::Sort;

pub use directory::operation::{Moment, Over, When};
pub use rustix::io::Errno;

/// The inode number of the root.
pub const ROOT: u64 = 1;

/// How long the kernel may believe what it was told, of names that stand for nothing too, where nobody but this
/// machine changes anything.
pub const VALIDITY: Duration = Duration::from_secs(3_600);

/// The process that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its number, or 0 if that is not known here.
    pub pid: u32,
}

/// What `stat` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The inode number; never used again for another file.
    pub inode: u64,
    /// What it is.
    pub sort: Sort,
    /// The twelve permission bits.
    pub mode: u16,
    /// How many names it has.
    pub links: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// How many bytes.
    pub size: u64,
    /// How much room they take, in pieces of 512 bytes.
    pub blocks: u64,
    /// Last read, in nanoseconds since 1970.
    pub accessed: i64,
    /// Content or names last changed.
    pub modified: i64,
    /// Anything last changed.
    pub changed: i64,
}

/// What the kernel may believe that is not so any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Attributes of an inode.
    Inode(u64),
    /// Attributes and bytes of an inode.
    Bytes(u64),
    /// What a name in a directory stands for.
    Name(u64, &'a [u8]),
    /// What any name stands for, or that it stands for nothing.
    Names,
}

/// What is to change about a file, all at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The permission bits.
    pub mode: Option<u16>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// How many bytes.
    pub size: Option<u64>,
    /// When it was last read.
    pub accessed: Option<Moment>,
    /// When its content last changed.
    pub modified: Option<Moment>,
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purpose {
    /// Reading.
    pub reads: bool,
    /// Writing.
    pub writes: bool,
    /// Its old bytes go first.
    pub truncates: bool,
    /// It is run as a program.
    pub runs: bool,
}

/// How something is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Who writes, if they may not leave a file that runs as somebody else.
    pub tamed_by: Option<Caller>,
    /// At the end, wherever that is.
    pub appends: bool,
}

/// What a front end keeps for a backing file that the kernel uses by itself. Dropping it ends that.
pub type Registration = Arc<dyn Any + Send + Sync>;

/// Lets the kernel use a backing file by itself, if it can.
pub type Register<'a> = &'a dyn Fn(&File) -> io::Result<Registration>;

/// A file that was opened.
#[derive(Clone)]
pub struct Opened {
    /// To be handed back with everything that is done through it.
    pub handle: u64,
    /// How its bytes go.
    pub way: Way,
}

/// How the bytes of an open file go.
#[derive(Clone)]
pub enum Way {
    /// Through us and the kernel's cache.
    Cached {
        /// Whether what the kernel still has of it is right.
        keeps_pages: bool,
    },
    /// Through us, and past the kernel's cache.
    Direct,
    /// From the kernel to a backing file.
    Passthrough(Registration),
}

/// A name in a directory, as it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// The inode number.
    pub inode: u64,
    /// What it is.
    pub sort: Sort,
    /// The name.
    pub name: &'a [u8],
    /// Where to go on after it.
    pub cookie: u64,
}

/// What there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The size of a block, in bytes.
    pub block_size: u32,
    /// All blocks.
    pub blocks: u64,
    /// Those that are free.
    pub blocks_free: u64,
    /// Those that are free to anybody.
    pub blocks_available: u64,
    /// How many files there may be.
    pub files: u64,
    /// How many more.
    pub files_free: u64,
    /// The longest name, in bytes.
    pub name_max: u32,
}

/// What [`Tree::fallocate`](crate::Tree::fallocate) does to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Takes room, and makes the file longer if need be.
    Extend,
    /// Takes room.
    Keep,
    /// Gives room back: it reads as zeros.
    Punch,
    /// Makes it zeros, and the file longer if need be.
    Zero,
    /// Makes it zeros.
    ZeroKeep,
}

/// A lock on a range of a file's bytes that somebody wants, or gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The file.
    pub inode: u64,
    /// Through which it is asked for.
    pub handle: u64,
    /// Whose it is: a process or an open file of this machine, as the kernel numbers them.
    pub owner: u64,
    /// The process that asks.
    pub pid: u32,
    /// On whose behalf: user and group.
    pub who: (u32, u32),
    /// The first byte.
    pub start: u64,
    /// The last byte.
    pub end: u64,
    /// Whether nobody else may have one meanwhile; none gives up what is there.
    pub hold: Option<bool>,
}

/// A lock that keeps another one from being had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The first byte.
    pub start: u64,
    /// The last byte.
    pub end: u64,
    /// Whether nobody else may have one.
    pub is_exclusive: bool,
    /// Whose it is, if it is somebody of this machine.
    pub owner: Option<u64>,
    /// The process that has it, or 0 if that is on another machine.
    pub pid: u32,
}
