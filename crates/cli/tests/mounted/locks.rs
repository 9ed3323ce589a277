//! Locks: `fcntl` and `flock` between processes, with the meaning that they have on a local disk.
//!
//! The other process is this program once more: told so by its environment, it plays a part.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use rustix::{
    fs::{FlockOperation, fcntl_lock, flock},
    io::Errno,
    process::{Pid, Signal, kill_process},
};

use crate::cell::Cell;

const PART: &str = "CROFT_TEST_LOCKS";

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// Another process. It takes the locks that it is told to, one word each, and says how it went.
struct Other {
    child: Child,
    orders: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Other {
    fn new(path: &Path) -> Other {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "locks::the_other_process", "--nocapture"])
            .env(PART, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, said) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut other = Other { child, orders, said: BufReader::new(said) };
        assert_eq!(other.hear(), "ready");
        other
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.orders, "{word}").unwrap();
    }

    /// The next thing it says; the test harness talks too.
    fn hear(&mut self) -> String {
        let mut line = String::new();
        while !line.starts_with("other: ") {
            line.clear();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it has ended");
        }
        line["other: ".len()..].trim_end().to_owned()
    }

    fn ask(&mut self, word: &str) -> String {
        self.tell(word);
        self.hear()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn operation(word: &str) -> FlockOperation {
    match word {
        "exclusive" => FlockOperation::NonBlockingLockExclusive,
        "shared" => FlockOperation::NonBlockingLockShared,
        "wait" => FlockOperation::LockExclusive,
        "unlock" => FlockOperation::NonBlockingUnlock,
        _ => panic!("no lock is called {word}"),
    }
}

/// What the other process does; nothing at all in a test of its own.
#[test]
fn the_other_process() {
    let Some(path) = std::env::var_os(PART) else { return };
    let file = open(Path::new(&path));
    let say = |what: &str| println!("\nother: {what}");
    say("ready");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (kind, word) = line.split_once(' ').unwrap();
        if word == "wait" {
            say("waits");
        }
        let result = match kind {
            "fcntl" => fcntl_lock(&file, operation(word)),
            _ => flock(&file, operation(word)),
        };
        match result {
            Ok(()) => say("has"),
            Err(Errno::AGAIN | Errno::ACCESS) => say("busy"),
            Err(errno) => say(&errno.to_string()),
        }
    }
}

#[test]
fn a_lock_keeps_other_processes_out_until_it_is_given_up() {
    let Some(cell) = Cell::new(&[]) else { return };
    let path = cell.at("a");
    let mut other = Other::new(&path);
    for kind in ["fcntl", "flock"] {
        let file = open(&path);
        let lock = |word: &str| match kind {
            "fcntl" => fcntl_lock(&file, operation(word)),
            _ => flock(&file, operation(word)),
        };
        lock("shared").unwrap();
        assert_eq!(other.ask(&format!("{kind} shared")), "has");
        assert_eq!(lock("exclusive").unwrap_err(), Errno::AGAIN);
        assert_eq!(other.ask(&format!("{kind} unlock")), "has");
        lock("exclusive").unwrap();
        assert_eq!(other.ask(&format!("{kind} shared")), "busy");
        // Who waits gets it when it is free.
        assert_eq!(other.ask(&format!("{kind} wait")), "waits");
        lock("unlock").unwrap();
        assert_eq!(other.hear(), "has");
        assert_eq!(lock("shared").unwrap_err(), Errno::AGAIN);
        assert_eq!(other.ask(&format!("{kind} unlock")), "has");
    }
}

#[test]
fn who_waits_for_a_lock_can_be_killed_and_a_killed_holder_holds_nothing() {
    let Some(cell) = Cell::new(&[]) else { return };
    let path = cell.at("a");
    for kind in ["fcntl", "flock"] {
        let mut holder = Other::new(&path);
        assert_eq!(holder.ask(&format!("{kind} exclusive")), "has");
        let mut waiter = Other::new(&path);
        assert_eq!(waiter.ask(&format!("{kind} wait")), "waits");
        kill_process(Pid::from_child(&waiter.child), Signal::KILL).unwrap();
        let status = waiter.child.wait().unwrap();
        assert_eq!(status.signal(), Some(9));
        let mut rest = String::new();
        waiter.said.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("has"), "it never got it");
        let mut next = Other::new(&path);
        assert_eq!(next.ask(&format!("{kind} wait")), "waits");
        holder.child.kill().unwrap();
        holder.child.wait().unwrap();
        assert_eq!(next.hear(), "has");
    }
}

#[test]
fn the_two_kinds_of_lock_know_nothing_of_each_other() {
    let Some(cell) = Cell::new(&[]) else { return };
    let file = open(&cell.at("a"));
    let mut other = Other::new(&cell.at("a"));
    flock(&file, operation("exclusive")).unwrap();
    assert_eq!(other.ask("fcntl exclusive"), "has");
    assert_eq!(other.ask("flock shared"), "busy");
    assert_eq!(fcntl_lock(&file, operation("shared")).unwrap_err(), Errno::AGAIN);
    flock(&file, operation("unlock")).unwrap();
    assert_eq!(other.ask("flock exclusive"), "has");
}

#[test]
fn closing_any_descriptor_of_a_file_ends_the_fcntl_locks_of_its_process_and_no_flock() {
    let Some(cell) = Cell::new(&[]) else { return };
    let path = cell.at("a");
    let file = open(&path);
    let mut other = Other::new(&path);
    flock(&file, operation("exclusive")).unwrap();
    fcntl_lock(&file, operation("exclusive")).unwrap();
    drop(open(&path));
    assert_eq!(other.ask("flock exclusive"), "busy");
    assert_eq!(other.ask("fcntl exclusive"), "has");
}
