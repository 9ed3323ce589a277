//! The only crate that knows FUSE.
//!
//! Reading order: [`front`] is what any front end says and hears; [`Tree`] is the file system behind it,
//! inode by inode, and knows nothing of FUSE (`tree/*.rs`: names, attributes, what is open, where its
//! bytes are); `fuse` is all that names `fuser` and turns the kernel's requests into calls of a
//! tree; `workers` are threads for what takes long, and `locking` are those that wait for locks.
//!
//! What programs see, where there was something to decide:
//! - **Locks** (`fcntl` and `flock`) on a machine alone are kept by the kernel, because the mount announces
//!   neither: with the meaning they have on a local disk, waits that can be killed, deadlocks found, and
//!   one that knows nothing of the other.
//! - **Locks that others see**, where the tree is shared, are the group's. `fuser` doesn't tell the two kinds
//!   apart, so `flock` is a lock on all bytes, as NFS does it: the kinds keep each other out, even those of
//!   one process, and a shared one that is to become exclusive is kept meanwhile. Whoever waits tries
//!   again, soon and then less often; among those of one machine whoever came first tries first. A signal
//!   ends a wait within a fifth of a second. A circle of waits is told (EDEADLK, with `flock` too) if all of
//!   it is on one machine; across machines nobody finds it. A process of another namespace, whose signals
//!   can't be seen, waits a minute at most (ENOLCK). With a lost session its locks are lost.
//! - **Permissions** are checked by the kernel (`default_permissions`), so what only looks is done as the
//!   superuser. What changes something is done as whoever asked, because the group checks it once more.
//!   A request doesn't say in which further groups its process is; they are read from `/proc` only where
//!   they could matter.
//! - **Times of access** are as with `noatime`: only a program that sets them changes them.
//! - **What is removed** while somebody stands in it or has it open has no links, and a directory no names.
//! - **A full disk** gives ENOSPC a little early, for bytes and names alike, so that removing still works
//!   and what was written finds its place.
//! - **Bytes** of small new files are in memory until they are closed, looked at or synced; those of larger
//!   and of re-opened ones are in backing files, where the kernel reads and writes them by itself if it can
//!   (passthrough). Who opens a file first decides how, until all have closed it: the kernel refuses to mix.
//! - **Close promises nothing**, as in POSIX: what can't be stored then is kept in memory, tried again, and
//!   told to whoever syncs.
//! - **Other machines**, where there may be some, see at once what was done here, and the kernel forgets what they
//!   change: `docs/decisions/0012-coherent-mounts.md` says how. Whoever opens a file that the kernel of another
//!   one uses by itself has that machine do what is to be done. Appending is done where the end is, whatever the
//!   kernel believes.
//! - `O_TMPFILE`, times of birth and `syncfs` never get through to here (see `fuser`).

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a shell: this is where the kernel asks, on many threads"
)]

mod errno;
pub mod front;
mod fuse;
mod locking;
mod time;
mod tree;
mod workers;

pub use fuse::{Mount, Options};
pub use tree::{Settings, Tree};
