//! Locks: `fcntl` and `flock` between processes, with the meaning that they have on a local disk, nearly so
//! where a tree is shared.
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
    process::{Flock, FlockType, Pid, Signal, fcntl_getlk, kill_process},
};

use crate::cell::{Cell, needs};

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
        match lock(&file, kind, word) {
            Ok(()) => say("has"),
            Err(Errno::AGAIN | Errno::ACCESS) => say("busy"),
            Err(errno) => say(&errno.to_string()),
        }
    }
}

/// The kernel keeps the locks of a machine alone; those of a tree that is shared the group keeps.
const WAYS: [fn() -> Option<Cell>; 2] = [|| Cell::new(&[]), Cell::open];

fn lock(file: &File, kind: &str, word: &str) -> Result<(), Errno> {
    match kind {
        "fcntl" => fcntl_lock(file, operation(word)),
        _ => flock(file, operation(word)),
    }
}

#[test]
fn a_lock_keeps_other_processes_out_until_it_is_given_up() {
    for way in WAYS {
        let Some(cell) = way() else { return };
        let path = cell.at("a");
        let mut other = Other::new(&path);
        for kind in ["fcntl", "flock"] {
            let file = open(&path);
            let lock = |word: &str| lock(&file, kind, word);
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
}

#[test]
fn who_waits_for_a_lock_can_be_killed_and_a_killed_holder_holds_nothing() {
    for way in WAYS {
        let Some(cell) = way() else { return };
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
}

#[test]
fn a_signal_ends_a_wait_and_what_is_given_up_in_time_is_had() {
    if !needs("flock") {
        return;
    }
    for way in WAYS {
        let Some(cell) = way() else { return };
        let file = open(&cell.at("a"));
        flock(&file, operation("exclusive")).unwrap();
        // It has an alarm wake it up.
        let waiter = |seconds: &str| {
            let mut command = Command::new("flock");
            command.args(["--timeout", seconds]).arg(cell.at("a")).arg("true").spawn().unwrap()
        };
        assert_eq!(waiter("0.3").wait().unwrap().code(), Some(1), "it has waited in vain");
        let mut patient = waiter("50");
        flock(&file, operation("unlock")).unwrap();
        assert_eq!(patient.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn of_two_who_share_a_lock_and_both_wait_to_have_it_alone_the_second_is_told() {
    for way in WAYS {
        let Some(cell) = way() else { return };
        let file = open(&cell.at("a"));
        let mut other = Other::new(&cell.at("a"));
        fcntl_lock(&file, operation("shared")).unwrap();
        assert_eq!(other.ask("fcntl shared"), "has");
        let waits = file.try_clone().unwrap();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                let told = fcntl_lock(&waits, operation("wait"));
                if told == Err(Errno::DEADLK) {
                    fcntl_lock(&waits, operation("unlock")).unwrap();
                }
                told
            });
            assert_eq!(other.ask("fcntl wait"), "waits");
            // Whichever came second: that is not known here.
            let (mut told, deadlock) = (vec![other.hear()], Errno::DEADLK.to_string());
            if told[0] == deadlock {
                assert_eq!(other.ask("fcntl unlock"), "has");
            }
            told.push(match first.join().unwrap() {
                Ok(()) => "has".to_owned(),
                Err(errno) => errno.to_string(),
            });
            told.sort();
            assert_eq!(told, [deadlock, "has".to_owned()]);
        });
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
fn where_a_tree_is_shared_the_two_kinds_of_lock_keep_each_other_out() {
    let Some(cell) = Cell::open() else { return };
    let file = open(&cell.at("a"));
    let mut other = Other::new(&cell.at("a"));
    flock(&file, operation("exclusive")).unwrap();
    assert_eq!(other.ask("fcntl shared"), "busy");
    // Even those of one process.
    assert_eq!(fcntl_lock(&file, operation("shared")).unwrap_err(), Errno::AGAIN);
    flock(&file, operation("shared")).unwrap();
    assert_eq!(other.ask("fcntl shared"), "has");
}

#[test]
fn closing_any_descriptor_of_a_file_ends_the_fcntl_locks_of_its_process_and_no_flock() {
    for way in WAYS {
        let Some(cell) = way() else { return };
        let (one, two) = (cell.at("a"), cell.at("b"));
        let (has_flock, has_fcntl) = (open(&one), open(&two));
        let (mut of_one, mut of_two) = (Other::new(&one), Other::new(&two));
        flock(&has_flock, operation("exclusive")).unwrap();
        fcntl_lock(&has_fcntl, operation("exclusive")).unwrap();
        drop((open(&one), open(&two)));
        assert_eq!(of_one.ask("flock exclusive"), "busy");
        assert_eq!(of_two.ask("fcntl exclusive"), "has");
        // Two descriptors of one open file have one lock.
        let same = has_flock.try_clone().unwrap();
        drop(has_flock);
        assert_eq!(of_one.ask("flock exclusive"), "busy");
        assert_eq!(of_one.ask("flock wait"), "waits");
        drop(same);
        assert_eq!(of_one.hear(), "has");
    }
}

#[test]
fn who_has_a_lock_that_is_in_the_way_is_told() {
    for way in WAYS {
        let Some(cell) = way() else { return };
        let file = open(&cell.at("a"));
        let mut other = Other::new(&cell.at("a"));
        let wanted = Flock::from(FlockType::WriteLock);
        assert_eq!(fcntl_getlk(&file, &wanted).unwrap().map(|lock| lock.pid), None);
        assert_eq!(other.ask("fcntl shared"), "has");
        let found = fcntl_getlk(&file, &wanted).unwrap().unwrap();
        assert_eq!(found.pid, Some(Pid::from_child(&other.child)));
        assert_eq!((found.start, found.length, found.typ), (0, 0, FlockType::ReadLock));
    }
}
