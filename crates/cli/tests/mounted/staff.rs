//! Programs at work on mounts while something happens to machines: what they saw, and how long they waited.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read as _, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::Pid;

use crate::{
    cell::Cell,
    spread::{Frozen, until},
};

/// A program that writes notes in a directory of its own, each safe with the group before the next.
pub struct Clerk {
    directory: PathBuf,
    is_over: Arc<AtomicBool>,
    notes: Arc<AtomicU64>,
    slowest: Arc<AtomicU64>,
    thread: JoinHandle<Vec<String>>,
}

impl Clerk {
    pub fn new(mount: &Path, name: &str) -> Clerk {
        let directory = mount.join(name);
        fs::create_dir(&directory).unwrap();
        let (is_over, notes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let slowest = Arc::new(AtomicU64::new(0));
        let thread = {
            let (directory, is_over) = (directory.clone(), Arc::clone(&is_over));
            let (notes, slowest) = (Arc::clone(&notes), Arc::clone(&slowest));
            thread::spawn(move || {
                let mut errors = Vec::new();
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    match note(&directory, number) {
                        Ok(()) => {
                            number += 1;
                            notes.store(number, Ordering::Relaxed);
                        }
                        Err(error) => errors.push(format!("note {number}: {error}")),
                    }
                    slowest.fetch_max(start.elapsed().as_millis() as u64, Ordering::Relaxed);
                }
                errors
            })
        };
        Clerk { directory, is_over, notes, slowest, thread }
    }

    /// How many notes are safe.
    pub fn notes(&self) -> u64 {
        self.notes.load(Ordering::Relaxed)
    }

    /// The longest that a note took since this was last asked, as far as it is written.
    pub fn slowest(&self) -> Duration {
        Duration::from_millis(self.slowest.swap(0, Ordering::Relaxed))
    }

    /// Waits until so many more notes are safe.
    #[track_caller]
    pub fn await_more(&self, count: u64) {
        let before = self.notes();
        until("writing notes", || self.notes() >= before + count);
    }

    /// No note may have failed. Then each must be found at each of these mounts.
    #[track_caller]
    pub fn end(self, mounts: &[&Cell]) {
        self.is_over.store(true, Ordering::Relaxed);
        let errors = self.thread.join().unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        let notes = self.notes.load(Ordering::Relaxed);
        let name = self.directory.file_name().unwrap().to_str().unwrap();
        for cell in mounts {
            let entries = fs::read_dir(cell.at(name)).unwrap();
            let mut found: Vec<u64> = entries
                .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
                .collect();
            found.sort_unstable();
            assert_eq!(found, (0..notes).collect::<Vec<_>>(), "at {}", cell.path.display());
        }
    }
}

fn note(directory: &Path, number: u64) -> std::io::Result<()> {
    let draft = directory.join("draft");
    let mut file = File::create(&draft)?;
    file.write_all(number.to_string().as_bytes())?;
    fs::rename(&draft, directory.join(number.to_string()))?;
    file.sync_all()
}

/// A program that reads a file over and over.
pub struct Reader {
    is_over: Arc<AtomicBool>,
    /// When the last read began, and all reads that have ended.
    seen: Arc<Mutex<(Instant, Vec<Read>)>>,
    thread: JoinHandle<()>,
}

#[derive(Clone, Debug)]
pub struct Read {
    pub begun: Instant,
    pub ended: Instant,
    pub saw: Result<String, String>,
}

impl Reader {
    pub fn new(path: PathBuf) -> Reader {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new((Instant::now(), Vec::new())));
        let thread = {
            let (is_over, seen) = (Arc::clone(&is_over), Arc::clone(&seen));
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    seen.lock().unwrap().0 = begun;
                    let saw = fs::read_to_string(&path).map_err(|error| error.to_string());
                    let read = Read { begun, ended: Instant::now(), saw };
                    seen.lock().unwrap().1.push(read);
                    thread::park_timeout(Duration::from_millis(20));
                }
            })
        };
        Reader { is_over, seen, thread }
    }

    /// When the last read began.
    pub fn last_begun(&self) -> Instant {
        self.seen.lock().unwrap().0
    }

    pub fn has_seen(&self, text: &str) -> bool {
        let last = self.seen.lock().unwrap().1.last().cloned();
        last.is_some_and(|read| read.saw.as_deref() == Ok(text))
    }

    pub fn end(self) -> Vec<Read> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        std::mem::take(&mut self.seen.lock().unwrap().1)
    }
}

/// A shell that does what it is told, line by line, and can be frozen.
pub struct Program {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

/// Stands alone in a line after what a line of shell has printed.
const DONE: &str = "--done--";

impl Program {
    pub fn new(directory: &Path) -> Program {
        let mut child = Command::new("sh")
            .args([
                "-c",
                &format!("while read -r line; do eval \"$line\"; echo; echo {DONE}; done"),
            ])
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Program { child, stdin, stdout: BufReader::new(stdout) }
    }

    pub fn tell(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// What the line that it was told first has printed.
    pub fn answer(&mut self) -> String {
        let lines = self.stdout.by_ref().lines().map(Result::unwrap);
        let lines: Vec<String> = lines.take_while(|line| line != DONE).collect();
        lines.join("\n").trim().to_owned()
    }

    pub fn run(&mut self, line: &str) -> String {
        self.tell(line);
        self.answer()
    }

    /// It stands still, until what is returned is dropped.
    pub fn freeze(&self) -> Frozen {
        Frozen::new(Pid::from_child(&self.child))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
