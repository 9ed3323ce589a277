//! A directory of the kernel's to try things in, and what is peculiar to it.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::{
    fs::{Mode, OFlags, StatVfsMountFlags, XattrFlags},
    process::{Resource, Rlimit},
};

static SERIAL: AtomicU64 = AtomicU64::new(0);

/// A fresh directory that goes away again, also when a test fails.
pub struct Scratch {
    pub path: PathBuf,
}

impl Scratch {
    /// In this place, with this mode.
    pub fn new(place: &Path, mode: u32) -> Scratch {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!("croft-kernel-{}-{serial}", std::process::id());
        let path = place.join(name);
        fs::create_dir(&path).unwrap_or_else(|e| panic!("cannot make {}: {e}", path.display()));
        let scratch = Scratch { path };
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(&scratch.path, permissions).expect("it is our own");
        scratch
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        open_up(&self.path);
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("cannot remove {}: {error}; remove it by hand", self.path.display());
        }
    }
}

/// Makes everything removable for whoever owns it.
fn open_up(path: &Path) {
    // What can't be changed or read shows when it is removed.
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// The number by which the kernel knows tmpfs.
const TMPFS: i64 = 0x0102_1994;

/// What the place can do.
#[derive(Clone, Debug)]
pub struct Quirks {
    /// Whether it has `user.` attributes.
    pub has_xattrs: bool,
    /// Whether files and attributes may be as large as the kernel allows.
    pub is_roomy: bool,
    /// Whether files may be executed at all.
    pub executes: bool,
    /// Whether directories count their subdirectories.
    pub counts_subdirectories: bool,
    /// Whether every change of an inode that was looked at shows in its times.
    pub has_fine_times: bool,
    /// Whether a directory gets the time of what is linked or unlinked there. That may be the time that
    /// it has, although it was looked at since: only single inodes have fine times, not the whole.
    pub borrows_times: bool,
    /// Whether links to other people's files are restricted.
    pub guards_links: bool,
}

impl Quirks {
    /// Finds out.
    pub fn probe(place: &Path) -> Quirks {
        let scratch = Scratch::new(place, 0o700);
        Quirks::try_probe(&scratch.path).unwrap_or_else(|e| panic!("in {}: {e}", place.display()))
    }

    fn try_probe(dir: &Path) -> io::Result<Quirks> {
        let file = dir.join("file");
        fs::write(&file, b"x")?;
        fs::create_dir(dir.join("dir"))?;
        let mut ctimes = BTreeSet::new();
        for mode in [0o600, 0o700].repeat(25) {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode))?;
            let stat = rustix::fs::stat(&file)?;
            ctimes.insert((stat.st_ctime, stat.st_ctime_nsec));
        }
        let open = rustix::fs::open(&file, OFlags::RDWR, Mode::empty())?;
        let flags = rustix::fs::statvfs(dir)?.f_flag;
        Ok(Quirks {
            has_xattrs: rustix::fs::setxattr(&file, "user.a", b"", XattrFlags::empty()).is_ok(),
            is_roomy: rustix::fs::ftruncate(open, i64::MAX as u64).is_ok(),
            executes: !flags.contains(StatVfsMountFlags::NOEXEC),
            counts_subdirectories: rustix::fs::stat(dir)?.st_nlink == 3,
            has_fine_times: ctimes.len() == 50,
            borrows_times: rustix::fs::statfs(dir)?.f_type == TMPFS,
            guards_links: fs::read_to_string("/proc/sys/fs/protected_hardlinks")
                .is_ok_and(|text| text.trim() == "1"),
        })
    }
}

/// Lets modes be what was asked for, and enough files be open.
pub fn prepare() {
    rustix::process::umask(Mode::empty());
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    let current = Some(maximum.unwrap_or(u64::MAX).min(8_192));
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current, maximum })
        .expect("a limit may be raised to its maximum");
}
