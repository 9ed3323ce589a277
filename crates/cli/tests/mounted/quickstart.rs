//! `croft quickstart`, as somebody does who sees it for the first time.

use std::{
    fs,
    io::{BufRead, BufReader, Lines},
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::cell::{Scratch, can_mount};

/// A process group of its own, as a terminal gives it.
pub struct Quickstart {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    /// What it has said at the start.
    pub said: Vec<String>,
    _alone: MutexGuard<'static, ()>,
}

/// Several cells of several machines at once would wait for each other more than for themselves.
pub static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Quickstart {
    /// Started, and mounted as it says.
    pub fn new(directory: &Path, options: &[&str]) -> Quickstart {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = Command::new(env!("CARGO_BIN_EXE_croft"))
            .args(["quickstart", "--dir"])
            .arg(directory)
            .args(options)
            .process_group(0)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut quickstart = Quickstart { child, lines, said: Vec::new(), _alone: alone };
        // The last line of what it says at the start.
        quickstart.hear("Ctrl-C");
        let (said, mount) = (&quickstart.said, directory.join("mnt"));
        let is_mounted =
            said[0].contains("mounted at") && said[0].ends_with(mount.to_str().unwrap());
        assert!(is_mounted, "{said:?}");
        assert!(said.len() <= 12, "a few lines: {said:?}");
        quickstart
    }

    /// Waits until it says something more, with these words.
    #[track_caller]
    pub fn hear(&mut self, words: &str) {
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("it ends: {:?}", self.said));
            self.said.push(line.unwrap());
            if self.said.last().is_some_and(|line| line.contains(words)) {
                return;
            }
        }
    }

    /// The process of a machine, as it said at the start.
    pub fn pid(&self, number: usize) -> Pid {
        let start = format!("machine {number}");
        let line = self.said.iter().find(|line| line.trim_start().starts_with(&start)).unwrap();
        let (_, rest) = line.split_once("process ").unwrap();
        let (pid, _) = rest.split_once(',').unwrap();
        Pid::from_raw(pid.parse().unwrap()).unwrap()
    }

    /// The process of a machine, as it last said.
    pub fn pid_now(&self, number: usize) -> Pid {
        let start = format!("machine {number} runs again, as process ");
        let again = self.said.iter().rev().find_map(|line| line.strip_prefix(&start));
        again.map_or_else(
            || self.pid(number),
            |pid| Pid::from_raw(pid.trim().parse().unwrap()).unwrap(),
        )
    }

    /// What a terminal does for Ctrl-C.
    #[track_caller]
    pub fn interrupt(mut self) {
        kill_process_group(Pid::from_child(&self.child), Signal::INT).unwrap();
        let status = self.child.wait().unwrap();
        let rest: Vec<String> = self.lines.by_ref().map(Result::unwrap).collect();
        assert!(status.success(), "{status}: {rest:?}");
        assert_eq!(rest.last().map(String::as_str), Some("stopped"), "{rest:?}");
    }
}

impl Drop for Quickstart {
    fn drop(&mut self) {
        // Its machines stop with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn quickstart_ends_mounted_an_interrupt_unmounts_and_another_start_finds_the_data() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let directory = scratch.0.join("quick");
    let is_mounted = || {
        let (above, mount) = (fs::metadata(&directory), fs::metadata(directory.join("mnt")));
        above.unwrap().dev() != mount.unwrap().dev()
    };
    let file = directory.join("mnt/note");
    let quickstart = Quickstart::new(&directory, &["--machines", "1"]);
    assert!(is_mounted());
    fs::write(&file, "a first try").unwrap();
    quickstart.interrupt();
    assert!(!is_mounted());
    assert!(!file.exists());
    let quickstart = Quickstart::new(&directory, &["--machines", "2"]);
    assert!(quickstart.said[0].starts_with("a cell of 2 machines"), "one more has joined");
    assert_eq!(fs::read_to_string(&file).unwrap(), "a first try");
    quickstart.interrupt();
    assert!(!is_mounted());
}
