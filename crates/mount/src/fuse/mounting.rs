//! Mounting a tree, and taking it away again.

use std::{
    ffi::OsStr,
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use fuser::{BackgroundSession, Config, INodeNo, MountOption, Notifier, Session, SessionACL};
use rustix::mount::UnmountFlags;

use crate::{
    front::{Change, Errno},
    locking::Locking,
    tree::Tree,
    workers::Workers,
};

use super::{
    Front,
    notices::{Notice, Notices},
};

/// Threads that wait for disks and for the group on behalf of `fsync`.
const SYNC_THREADS: usize = 2;
/// The fewest threads that serve requests where others have the same tree.
const SHARED_THREADS: usize = 16;
/// As what it is mounted.
const NAME: &str = "croft";
/// And from where: this, and the name of the cell.
const SOURCE: &str = "croft:";

/// How a tree is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Users other than the one that mounts may use it.
    pub is_for_all: bool,
    /// The kernel reads and writes backing files by itself where it can. That takes the superuser.
    pub has_passthrough: bool,
    /// Programs may run as the owners of their files, and devices be used.
    pub has_suid: bool,
    /// Threads that read requests. A handler may wait for the group, and others go on meanwhile.
    pub threads: usize,
}

impl Default for Options {
    /// As much as this user may have.
    fn default() -> Options {
        let is_root = rustix::process::geteuid().is_root();
        // Where the kernel reads and writes by itself there is little to wait for, and one thread that
        // is always awake costs a fifth less than several that take turns.
        let threads = if is_root { 1 } else { 4 };
        Options { is_for_all: is_root, has_passthrough: is_root, has_suid: false, threads }
    }
}

/// A tree that is mounted. Dropping it unmounts it, even from under those who use it, and makes safe what
/// they have done.
pub struct Mount {
    tree: Arc<Tree>,
    session: Option<BackgroundSession>,
    notices: Arc<Notices>,
    path: PathBuf,
    /// It is unmounted, though somebody may still use it by another way.
    has_left: bool,
    /// What was done is safe.
    is_finished: bool,
}

impl Mount {
    /// Mounts a tree on a directory. What a croft that was killed has left mounted there goes first.
    pub fn start(tree: Arc<Tree>, path: &Path, options: &Options) -> io::Result<Mount> {
        clear_dead(path);
        tree.share()?;
        if !has_epochs() {
            tree.let_kernel_remember_nothing();
        }
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(format!("{SOURCE}{}", tree.cell())),
            MountOption::Subtype(NAME.to_owned()),
            MountOption::DefaultPermissions,
        ];
        if options.has_suid {
            config.mount_options.extend([MountOption::Suid, MountOption::Dev]);
        }
        if options.is_for_all {
            config.acl = SessionACL::All;
        }
        // Where others are waited for, one must not keep the next from being served.
        let threads_min = if tree.is_shared() { SHARED_THREADS } else { 1 };
        config.n_threads = Some(options.threads.max(threads_min));
        let locking = tree.is_shared().then(|| Locking::start(&tree)).transpose()?;
        let front = Front {
            tree: Arc::clone(&tree),
            workers: Workers::start(SYNC_THREADS)?,
            locking,
            has_passthrough: options.has_passthrough,
        };
        let session = Session::new(front, path, &config)?;
        let notifier = session.notifier();
        let device = session.as_fd().try_clone_to_owned()?;
        let now = session.as_fd().try_clone_to_owned()?;
        let of_pages = Arc::downgrade(&tree);
        let notices = Notices::start(move |notice| {
            let may_be_told = match (notice, of_pages.upgrade()) {
                (Notice::Bytes(inode), Some(tree)) => tree.may_take_pages(*inode),
                _ => true,
            };
            !may_be_told || is_told(&notifier, &device, notice)
        })?;
        let (mapped, mapped_device) = (session.notifier(), session.as_fd().try_clone_to_owned()?);
        tree.fetch_mapped_by(move |change| {
            if let Change::Bytes(inode) = change {
                is_told(&mapped, &mapped_device, &Notice::Bytes(inode));
            }
        });
        let later = Arc::clone(&notices);
        tree.tell_forgotten(move |change| match change {
            Change::Names => forget_names(&now).is_ok(),
            Change::Inode(inode) => forget_attributes(&now, inode).is_ok(),
            // The kernel may hold what these would wait for.
            Change::Bytes(_) | Change::Name(..) => {
                later.note(change);
                true
            }
        });
        let noted = Arc::clone(&notices);
        tree.tell_changes(move |change| noted.note(change));
        let (session, path) = (Some(session.spawn()?), path.to_path_buf());
        Ok(Mount { tree, session, notices, path, has_left: false, is_finished: false })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the kernel has ended it, by whomever it was unmounted. [`Mount::wait`] does not wait then.
    pub fn is_over(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.guard.is_finished())
    }

    /// Unmounts it, unless somebody uses it, and makes safe what was done. It stays mounted if that fails
    /// because it is in use.
    pub fn unmount(&mut self) -> io::Result<()> {
        self.leave()?;
        self.wait()
    }

    /// Unmounts it, unless somebody uses it, and does not wait until that has an effect: it may be seen
    /// elsewhere too.
    pub fn leave(&mut self) -> io::Result<()> {
        // What is mounted there by now may be somebody else's.
        if self.has_left || self.is_over() {
            return Ok(());
        }
        match rustix::mount::unmount(&self.path, UnmountFlags::empty()) {
            Ok(()) => {}
            // Somebody was faster.
            Err(Errno::INVAL) => {}
            Err(Errno::PERM) => fusermount("-u", &self.path)?,
            Err(errno) => return Err(errno.into()),
        }
        self.has_left = true;
        Ok(())
    }

    /// Returns when it is unmounted, by whomever, and what was done is safe. If that can't be made safe,
    /// this may be called again.
    pub fn wait(&mut self) -> io::Result<()> {
        let ended = self.session.take().map_or(Ok(()), BackgroundSession::join);
        self.finish().and(ended)
    }

    /// Takes it away, from under whoever uses it, and makes safe what they have done so far.
    pub fn detach(&mut self) -> io::Result<()> {
        let mut detached = Ok(());
        if self.is_over() {
            return self.wait();
        }
        if let Some(session) = self.session.take() {
            if !self.has_left {
                detached = detach(&self.path);
                self.has_left = true;
            }
            // It goes on as long as somebody uses it; dropping it would unmount what is there by now.
            std::mem::forget(session);
        }
        self.finish().and(detached)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.notices.stop();
        if !self.is_finished {
            self.tree.finish()?;
            self.is_finished = true;
        }
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if (self.session.is_some() || !self.is_finished)
            && let Err(error) = self.detach()
        {
            eprintln!(
                "croft: not all that was written at {} is safe: {error}",
                self.path.display()
            );
        }
    }
}

/// Has the kernel look up every name anew. `fuser` does not know how to say it, nor kernels before 6.16 what it
/// means: they go on believing names, and notice only which inodes are no more.
fn forget_names(device: &OwnedFd) -> io::Result<()> {
    const INC_EPOCH: u32 = 8;
    // The head of an answer to nobody: its length, what it is about, and no question.
    let mut notice = [0; 16];
    notice[..4].copy_from_slice(&16u32.to_ne_bytes());
    notice[4..8].copy_from_slice(&INC_EPOCH.to_ne_bytes());
    rustix::io::write(device, &notice)?;
    Ok(())
}

/// Has the kernel ask anew for the attributes of an inode. `fuser` does not say whether it knows that inode.
fn forget_attributes(device: &OwnedFd, inode: u64) -> io::Result<()> {
    const INVAL_INODE: u32 = 2;
    /// From nowhere on: no bytes.
    const NO_BYTES: i64 = -1;
    let mut notice = [0; 40];
    notice[..4].copy_from_slice(&40u32.to_ne_bytes());
    notice[4..8].copy_from_slice(&INVAL_INODE.to_ne_bytes());
    notice[16..24].copy_from_slice(&inode.to_ne_bytes());
    notice[24..32].copy_from_slice(&NO_BYTES.to_ne_bytes());
    rustix::io::write(device, &notice)?;
    Ok(())
}

/// Whether the kernel knows what [`forget_names`] means.
fn has_epochs() -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (next(), next()) >= (6, 16)
}

/// Tells the kernel; whether it listens.
fn is_told(notifier: &Notifier, device: &OwnedFd, notice: &Notice) -> bool {
    let result = match notice {
        Notice::Names => forget_names(device),
        Notice::Inode(inode) => notifier.inval_inode(INodeNo(*inode), -1, 0),
        // This may wait for whoever reads it.
        Notice::Bytes(inode) => notifier.inval_inode(INodeNo(*inode), 0, 0),
        Notice::Name(directory, name) => {
            notifier.inval_entry(INodeNo(*directory), OsStr::from_bytes(name))
        }
    };
    let Some(errno) = result.err().and_then(|error| error.raw_os_error()) else { return true };
    // That it does not know them any more is as good; a mount that has ended knows nothing.
    !matches!(Errno::from_raw_os_error(errno), Errno::NODEV | Errno::NOTCONN | Errno::BADF)
}

/// Takes away what a croft that was killed has left mounted: nothing answers in it any more.
fn clear_dead(path: &Path) {
    // Attributes the kernel may still remember; this it always asks for.
    let is_dead = rustix::fs::statfs(path).is_err_and(|errno| errno == Errno::NOTCONN);
    if is_dead && is_croft(path).unwrap_or(false) {
        // If this fails, mounting says what is wrong.
        let _ = detach(path);
    }
}

/// Whether a croft is mounted there, dead or alive.
fn is_croft(path: &Path) -> io::Result<bool> {
    let path = std::path::absolute(path)?;
    // The dead one itself can't be looked at.
    let path = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => parent.canonicalize()?.join(name),
        _ => path,
    };
    Ok(is_croft_last(&fs::read("/proc/self/mounts")?, &path))
}

/// Whether a croft is mounted on a path; of several mounts, the one that covers the others.
fn is_croft_last(mounts: &[u8], path: &Path) -> bool {
    let mut lines = mounts.split(|byte| *byte == b'\n').rev();
    let found = lines.find_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let (source, target) = (fields.next()?, fields.next()?);
        Some((source, fields.next()?)).filter(|_| unescaped(target) == path)
    });
    // The superuser mounts without a helper, and then the kernel is not told of the second name.
    found.is_some_and(|found| {
        found.1 == b"fuse.croft" || found.0.starts_with(SOURCE.as_bytes()) && found.1 == b"fuse"
    })
}

/// A path, in which spaces and the like are written as a backslash and three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let byte = digits.and_then(|digits| str::from_utf8(digits).ok());
        match byte.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Unmounts whatever is there, even if somebody uses it.
fn detach(path: &Path) -> io::Result<()> {
    match rustix::mount::unmount(path, UnmountFlags::DETACH) {
        // Somebody was faster.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(_) => fusermount("-uz", path),
    }
}

fn fusermount(how: &str, path: &Path) -> io::Result<()> {
    match Command::new("fusermount3").arg(how).arg(path).status()?.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("fusermount3 {how} failed"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_croft_is_found_if_nothing_covers_it_whatever_its_path() {
        let mounts = b"croft:1f /a\\040b fuse.croft rw 0 0\n\
            croft:1f /c fuse rw 0 0\n\
            tmpfs /c tmpfs rw 0 0\n\
            croft:1f /d\\13 fuse rw 0 0\n\
            other /e fuse rw 0 0\n\n";
        let is_croft = |path: &str| is_croft_last(mounts, Path::new(path));
        assert!(is_croft("/a b") && is_croft("/d\\13"));
        assert!(!is_croft("/c") && !is_croft("/e") && !is_croft("/a"));
    }
}
