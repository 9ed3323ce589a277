//! A machine in a process of its own, mounted, and gone at the end whatever happens.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::watch::{self, Watch};

/// Says why a test checks nothing. In CI that is a failure: everything that tests need is installed there.
#[track_caller]
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "in CI each test has to check something: {why}");
    eprintln!("skipped: {why}");
}

/// Whether this computer lets us mount at all; says why if not.
pub fn can_mount() -> bool {
    match fs::File::options().read(true).write(true).open("/dev/fuse") {
        Ok(_) if is_root() || has("fusermount3") => true,
        Ok(_) => {
            skip("to mount takes the superuser, or fusermount3");
            false
        }
        Err(error) => {
            skip(&format!("/dev/fuse can't be used here ({error})"));
            false
        }
    }
}

/// Whether we are the superuser.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The superuser; says so if it takes one.
pub fn needs_root() -> bool {
    if !is_root() {
        skip("it takes the superuser");
    }
    is_root()
}

/// Whether a program is on the path.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Whether a program is on the path; says so if it is not.
pub fn needs(program: &str) -> bool {
    let has = has(program);
    if !has {
        skip(&format!("there is no {program} here; `cargo xtask test` installs it"));
    }
    has
}

/// Whatever is asked of a machine takes less.
const LONG: Duration = Duration::from_secs(60);

/// Runs `croft` to its end, which must come.
#[track_caller]
pub fn croft(args: &[&str]) -> Output {
    croft_on(&[], args)
}

/// The same behind these words, which take it to where it is to run.
#[track_caller]
fn croft_on(way: &[String], args: &[&str]) -> Output {
    let mut command = command_on(way, env!("CARGO_BIN_EXE_croft"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("croft starts");
    let pid = Pid::from_child(&child);
    let (tell, told) = mpsc::channel();
    let waiter = std::thread::spawn(move || _ = tell.send(child.wait_with_output()));
    let output = told.recv_timeout(LONG).unwrap_or_else(|_| {
        let _ = kill_process(pid, Signal::TERM);
        panic!("croft {args:?} runs and runs");
    });
    waiter.join().unwrap();
    output.unwrap()
}

/// A program behind these words.
pub fn command_on(way: &[String], program: &str) -> Command {
    let mut words = way.iter().map(String::as_str).chain([program]);
    let mut command = Command::new(words.next().unwrap_or(program));
    command.args(words);
    command
}

/// Runs a line of shell in a directory, and gives what it printed. It must succeed.
#[track_caller]
pub fn shell(directory: &Path, line: &str) -> String {
    let output = Command::new("sh").args(["-ec", line]).current_dir(directory).output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "`{line}` ended with {}\n{out}{err}", output.status);
    out
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A new directory that goes at the end, with all that runs and is mounted in it.
pub struct Scratch(
    pub PathBuf,
    #[expect(dead_code, reason = "it watches as long as it lives")] Watch,
);

impl Scratch {
    pub fn new() -> Scratch {
        Scratch::within(&std::env::temp_dir())
    }

    pub fn within(directory: &Path) -> Scratch {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("croft-mounted-{}-{count}", std::process::id()));
        fs::create_dir(&path).unwrap();
        // Other users than ours pass through it.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let watch = Watch::new(&path);
        Scratch(path, watch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Else what is in the mounts would go too, or everything hang.
        watch::end(&self.0);
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A machine, where it lives and where it is mounted.
pub struct Cell {
    pub home: PathBuf,
    pub path: PathBuf,
    child: Option<Child>,
    /// What the machine says on standard error.
    talk: PathBuf,
    /// The words that take a program to the machine's own network; none if that is everybody's.
    way: Vec<String>,
    _scratch: Scratch,
}

impl Cell {
    /// A new machine, mounted; nothing if this computer can't mount.
    pub fn new(options: &[&str]) -> Option<Cell> {
        can_mount().then(|| {
            let mut cell = Cell::idle(None);
            cell.init(&[]);
            cell.start(options);
            cell
        })
    }

    /// A new machine that others could join, mounted; nothing if this computer can't mount.
    pub fn open() -> Option<Cell> {
        can_mount().then(|| {
            let mut cell = Cell::idle(None);
            cell.init(&["--listen", "127.0.0.1"]);
            cell.start(&[]);
            cell
        })
    }

    /// One that is not made yet, or lives where somebody else sees to it.
    pub fn idle(home: Option<PathBuf>) -> Cell {
        let scratch = Scratch::new();
        let path = scratch.0.join("mnt");
        fs::create_dir(&path).unwrap();
        // What is lost beneath a mount must not be taken for what is in it.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        let home = home.unwrap_or_else(|| scratch.0.join("home"));
        let talk = scratch.0.join("talk");
        Cell { home, path, child: None, talk, way: Vec::new(), _scratch: scratch }
    }

    /// One that is not made yet and will have a network of its own.
    pub fn on(way: Vec<String>) -> Cell {
        let mut cell = Cell::idle(None);
        cell.way = way;
        cell
    }

    pub fn init(&self, options: &[&str]) {
        let output = self.ask(&[&["init"], options].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    #[track_caller]
    pub fn start(&mut self, options: &[&str]) {
        if let Err((status, talk)) = self.try_start(options) {
            panic!("the machine ended with {status}: {talk}");
        }
    }

    /// Starts it and waits until it is ready, or tells how it ended and what it said.
    pub fn try_start(&mut self, options: &[&str]) -> Result<(), (ExitStatus, String)> {
        self.launch(options);
        self.await_ready()
    }

    /// Starts it, and does not wait.
    pub fn launch(&mut self, options: &[&str]) {
        assert!(self.child.is_none(), "it runs");
        let talk = fs::File::create(&self.talk).unwrap();
        let child = command_on(&self.way, env!("CARGO_BIN_EXE_croft"))
            .args(["run", "--with-parent", "--dir"])
            .arg(&self.home)
            .arg("--mount")
            .arg(&self.path)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(talk)
            .spawn();
        self.child = Some(child.expect("croft starts"));
    }

    /// Waits until it is ready, or tells how it ended and what it said.
    pub fn await_ready(&mut self) -> Result<(), (ExitStatus, String)> {
        let mut line = String::new();
        let stdout = self.child.as_mut().and_then(|child| child.stdout.take()).unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        if line != "ready\n" {
            let status = self.wait();
            return Err((status, self.talk()));
        }
        assert!(self.is_mounted(), "it said that it is ready");
        Ok(())
    }

    /// What it has said on standard error.
    pub fn talk(&self) -> String {
        fs::read_to_string(&self.talk).unwrap_or_default()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().expect("it runs"))
    }

    /// Whether something answers there that is not the directory beneath.
    pub fn is_mounted(&self) -> bool {
        let above = fs::metadata(self.path.parent().unwrap()).unwrap();
        fs::metadata(&self.path).is_ok_and(|mounted| mounted.dev() != above.dev())
    }

    /// Tells it to stop, and waits until it has. It must do so without complaint.
    #[track_caller]
    pub fn stop(&mut self) {
        kill_process(self.pid(), Signal::TERM).unwrap();
        let status = self.wait();
        assert!(status.success(), "it ended with {status}: {}", self.talk());
        assert!(!self.is_mounted(), "it has stopped");
    }

    #[track_caller]
    pub fn restart(&mut self, options: &[&str]) {
        self.stop();
        self.start(options);
    }

    /// Kills it and takes away what is left of its mount.
    pub fn kill(&mut self) {
        let _ = kill_process(self.pid(), Signal::KILL);
        self.wait();
        self.clear();
    }

    /// Waits until it has ended by itself.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.take().expect("it runs").wait().unwrap()
    }

    /// Takes away what a machine that died has left mounted.
    pub fn clear(&self) {
        let detach = rustix::mount::UnmountFlags::DETACH;
        if rustix::mount::unmount(&self.path, detach).is_err() {
            let mut command = Command::new("fusermount3");
            let silent = command.args(["-u", "-z", "-q"]).arg(&self.path);
            let _ = silent.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }

    /// Runs one of the other commands for this machine.
    pub fn ask(&self, words: &[&str]) -> Output {
        croft_on(&self.way, &[words, &["--dir", self.home.to_str().unwrap()]].concat())
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the machine said: {}", self.talk());
        }
        watch::end(&self.path);
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.clear();
        let _ = fs::set_permissions(&self.path, fs::Permissions::from_mode(0o700));
    }
}
