//! Sees to it that no test hangs: what takes far too long is told, thread by thread, and ended.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

use rustix::{
    mount::UnmountFlags,
    process::{Pid, Signal, kill_process},
};

use crate::draw::number;

/// Looks after everything that lives in one directory, until it is dropped.
pub struct Watch {
    _over: Sender<()>,
}

impl Watch {
    /// `CROFT_TEST_MINUTES` asks for more patience; long runs do.
    pub fn new(directory: &Path) -> Watch {
        let minutes = number("CROFT_TEST_MINUTES", 10);
        let (over, is_over) = mpsc::channel::<()>();
        let directory = directory.to_owned();
        thread::spawn(move || {
            let patience = Duration::from_secs(60 * minutes);
            if is_over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                eprintln!(
                    "{} is at work after {minutes} minutes, and is ended",
                    directory.display()
                );
                let lines = processes(&directory).into_iter().map(threads);
                eprint!("{}", lines.collect::<String>());
                end(&directory);
            }
        });
        Watch { _over: over }
    }
}

/// Takes away whatever runs and is mounted in a directory, however it hangs.
pub fn end(directory: &Path) {
    let mounts = mounts(directory);
    for (_, minor) in &mounts {
        // Ends every request that hangs, so that nobody waits for a machine for ever.
        let _ = fs::write(format!("/sys/fs/fuse/connections/{minor}/abort"), "1");
    }
    for pid in processes(directory) {
        let _ = kill_process(pid, Signal::KILL);
    }
    for (path, _) in mounts {
        let _ = rustix::mount::unmount(&path, UnmountFlags::DETACH);
    }
}

/// The FUSE mounts in a directory or right there, and the numbers of their devices. Asking one of them could hang;
/// the kernel's table does not.
fn mounts(directory: &Path) -> Vec<(PathBuf, String)> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let (device, path) = (words.get(2)?, Path::new(words.get(4)?));
        let is_ours = path.starts_with(directory) && line.contains(" - fuse");
        let (_, minor) = device.split_once(':').filter(|_| is_ours)?;
        Some((path.to_owned(), minor.to_owned()))
    };
    table.lines().filter_map(mount).collect()
}

/// The processes that were started with something in a directory.
fn processes(directory: &Path) -> Vec<Pid> {
    let is_there = |word: &[u8]| Path::new(OsStr::from_bytes(word)).starts_with(directory);
    let process = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        line.split(|byte| *byte == 0).any(is_there).then_some(pid)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.flatten().filter_map(process).collect()
}

/// What each thread of a process is at.
fn threads(pid: Pid) -> String {
    let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
    let entries = fs::read_dir(tasks).into_iter().flatten().flatten();
    let thread = |entry: fs::DirEntry| {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let state =
            read("status").lines().find_map(|line| line.strip_prefix("State:").map(str::to_owned));
        let stack = read("stack").lines().take(6).map(str::to_owned).collect::<Vec<_>>().join(" ");
        let (name, state) = (read("comm"), state.unwrap_or_default());
        format!("{} {}{}: {}\n", pid.as_raw_nonzero(), name.trim(), state.replace('\t', " "), stack)
    };
    entries.map(thread).collect()
}

#[test]
fn a_mount_whose_machine_hangs_is_ended_and_whoever_waits_for_it_is_told() {
    use crate::cell::{Cell, needs_root};
    if !needs_root() {
        return;
    }
    let Some(cell) = Cell::new(&[]) else { return };
    fs::write(cell.at("file"), "bytes").unwrap();
    kill_process(cell.pid(), Signal::STOP).unwrap();
    let directory = cell.path.parent().unwrap().to_owned();
    let told = threads(cell.pid());
    assert!(told.lines().count() > 3 && told.contains("group"), "{told}");
    let asker = thread::spawn({
        let path = cell.at("other");
        move || fs::metadata(path)
    });
    end(&directory);
    assert!(asker.join().unwrap().is_err());
    drop(cell);
    assert!(mounts(&directory).is_empty() && processes(&directory).is_empty());
}
