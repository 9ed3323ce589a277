//! An in-memory POSIX file system that is right by being simple: the oracle of the simulator.
//!
//! It shares no code with the product. `tests/kernel` holds it against the kernel's own file systems
//! by millions of random operations; where they disagree, the kernel is right.
//!
//! Calls are on inodes, as FUSE makes them: a directory and a name, or an inode, never a path. Each
//! names who acts, and those that change something take the time, in nanoseconds. Whoever drives it
//! applies the umask and follows symbolic links. The order in which errors are reported is Linux's.
//!
//! What it does not model: the time of last access (only creation and `Times` set it), sizes of
//! directories (always 0), blocks, limits of space and of links, access control lists, the attribute
//! namespaces other than `user.`, capabilities (user 0 has all of them, others none), device nodes,
//! sockets, pipes, mounts, immutable files, leases, blocking locks and their deadlocks. `..` of a removed
//! directory is its last parent as long as that lives. Inodes that are gone answer `ENOENT`.
//!
//! Where file systems differ among themselves, it does as one of them, and is not compared:
//! - [`Change::Size`] to the size that a file has renews its times, as on ext4; on tmpfs only if it
//!   has bytes that were written.
//! - An attribute set to the value that it has renews the time of change, as on tmpfs; not so on ext4.
//!
//! Reading order: [`Actor`] and its permissions, the inode, [`FileSystem`] with look-ups, then one file
//! for each group of operations.

mod actor;
mod errno;

mod content;
mod inode;
mod locks;

mod entries;
mod file_system;
mod handles;
mod rename;
mod setattr;
mod xattr;

mod dump;
mod invariants;

pub use actor::{Actor, Permission};
pub use entries::Entry;
pub use errno::{Answer, Errno};
pub use file_system::{FileSystem, Rules};
pub use handles::{Access, Handle, How};
pub use inode::{At, Attr, Ino, Kind};
pub use locks::{Lock, Owner, Range, Span};
pub use rename::Flag;
pub use setattr::{Change, Stamp};
pub use xattr::Put;

#[cfg(test)]
mod script;
#[cfg(test)]
mod tests;
