//! What our own code costs for each request of a program, without a kernel in between.
//!
//! `cargo bench -p mount`. A tree on a real machine in a temporary directory is asked what the kernel would ask
//! for each operation of a program, on one thread: its processor time is what whoever waits has to wait for, and
//! that of all other threads (journal, group, store) is the background. The yardstick is a byte that goes to another
//! thread and back, on one processor: what no file system outside the kernel can do without, for each request.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark has a clock, a disk and somebody who reads what it prints"
)]

use std::{
    fs,
    io::{Read, Write, pipe},
    path::PathBuf,
    thread,
};

use directory::operation::Moment;
use host::Machine;
use mimalloc::MiMalloc;
use mount::{
    Settings, Tree,
    front::{Caller, Changes, Manner, Over, Purpose, ROOT, Registration},
};
use rustix::{
    io::Errno,
    thread::{CpuSet, sched_getcpu, sched_setaffinity},
    time::{ClockId, clock_gettime},
};

/// As in the product.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const COUNT: u64 = 5_000;
const ROUNDS: usize = 5;
const ME: Caller = Caller { uid: 0, gid: 0, pid: 7 };
const WRITES: Purpose = Purpose { reads: false, writes: true, truncates: false, runs: false };

/// Operations as programs know them, each as the requests that the kernel makes of it.
struct Bench {
    tree: Tree,
    directory: u64,
}

type Work = fn(&Bench, u64) -> Result<(), Errno>;

const WORKLOADS: &[(&str, u64, Work)] = &[
    ("create and close", 4, Bench::create),
    ("stat", 1, Bench::stat),
    ("chmod", 2, Bench::chmod),
    ("rename and back", 4, Bench::rename),
    ("unlink", 4, Bench::unlink),
    ("mkdir", 3, Bench::mkdir),
    ("rmdir", 4, Bench::rmdir),
    ("file of an archive", 9, Bench::unpack),
    ("unlink it", 4, Bench::unlink),
];

impl Bench {
    fn path(number: u64) -> Vec<u8> {
        format!("file-{number}.txt").into_bytes()
    }

    fn inode(&self, name: &[u8]) -> Result<u64, Errno> {
        self.tree.lookup(self.directory, name, 0).map(|attributes| attributes.inode)
    }

    fn absent(&self, name: &[u8]) -> Result<(), Errno> {
        let result = self.tree.lookup(self.directory, name, 0);
        assert_eq!(result, Err(Errno::NOENT));
        self.tree.getattr(self.directory).map(drop)
    }

    fn open_new(&self, name: &[u8]) -> Result<(u64, u64), Errno> {
        self.absent(name)?;
        let no_passthrough = |_: &fs::File| -> std::io::Result<Registration> {
            Err(std::io::ErrorKind::PermissionDenied.into())
        };
        let (attributes, opened) =
            self.tree.create(self.directory, name, 0o644, true, WRITES, &ME, &no_passthrough)?;
        Ok((attributes.inode, opened.handle))
    }

    fn create(&self, number: u64) -> Result<(), Errno> {
        let (inode, handle) = self.open_new(&Bench::path(number))?;
        self.tree.release(inode, handle);
        Ok(())
    }

    fn stat(&self, number: u64) -> Result<(), Errno> {
        self.inode(&Bench::path(number)).map(drop)
    }

    fn chmod(&self, number: u64) -> Result<(), Errno> {
        let inode = self.inode(&Bench::path(number))?;
        let changes = Changes { mode: Some(0o600), ..Changes::default() };
        self.tree.setattr(inode, &changes, &ME).map(drop)
    }

    fn rename(&self, number: u64) -> Result<(), Errno> {
        let (from, to) = (Bench::path(number), format!("new-{number}.txt").into_bytes());
        self.absent(&to)?;
        self.tree.rename((self.directory, &from), (self.directory, &to), Over::Replace, &ME)?;
        // For whoever comes next.
        self.tree.rename((self.directory, &to), (self.directory, &from), Over::Replace, &ME)
    }

    fn unlink(&self, number: u64) -> Result<(), Errno> {
        let name = Bench::path(number);
        let inode = self.inode(&name)?;
        self.tree.getattr(self.directory)?;
        self.tree.unlink(self.directory, &name, &ME)?;
        self.tree.forget(inode, 1);
        Ok(())
    }

    fn mkdir(&self, number: u64) -> Result<(), Errno> {
        let name = Bench::path(number);
        self.absent(&name)?;
        self.tree.mkdir(self.directory, &name, 0o755, &ME).map(drop)
    }

    fn rmdir(&self, number: u64) -> Result<(), Errno> {
        let name = Bench::path(number);
        let inode = self.inode(&name)?;
        self.tree.getattr(self.directory)?;
        self.tree.rmdir(self.directory, &name, &ME)?;
        self.tree.forget(inode, 1);
        Ok(())
    }

    /// As tar does it for the superuser.
    fn unpack(&self, number: u64) -> Result<(), Errno> {
        let (inode, handle) = self.open_new(&Bench::path(number))?;
        self.tree.write(inode, 0, &[7; 4_096], Manner::default())?;
        let moment = Some(Moment::At(1_000_000_000));
        let times = Changes { accessed: moment, modified: moment, ..Changes::default() };
        self.tree.setattr(inode, &times, &ME)?;
        let absent = self.tree.getxattr(inode, b"security.capability");
        assert_eq!(absent, Err(Errno::NODATA));
        let owner = Changes { uid: Some(1_000), gid: Some(1_000), ..Changes::default() };
        self.tree.setattr(inode, &owner, &ME)?;
        let mode = Changes { mode: Some(0o640), ..Changes::default() };
        self.tree.setattr(inode, &mode, &ME)?;
        self.tree.release(inode, handle);
        Ok(())
    }
}

/// A processor's time, in microseconds.
fn used(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// What it takes to wake another thread and to be woken by it, in microseconds.
fn round_trip() -> f64 {
    const TRIPS: u32 = 20_000;
    let ((mut here, mut answer), (mut there, mut question)) =
        (pipe().expect("a pipe"), pipe().expect("a pipe"));
    let echo = thread::spawn(move || {
        let mut byte = [0];
        while there.read(&mut byte).expect("a pipe") > 0 {
            answer.write_all(&byte).expect("a pipe");
        }
    });
    let before = used(ClockId::ProcessCPUTime);
    for _ in 0..TRIPS {
        question.write_all(&[7]).expect("a pipe");
        here.read_exact(&mut [0]).expect("a pipe");
    }
    let trip = (used(ClockId::ProcessCPUTime) - before) / f64::from(TRIPS);
    drop(question);
    echo.join().expect("it ends with its pipe");
    trip
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut one = CpuSet::new();
    one.set(sched_getcpu());
    sched_setaffinity(None, &one).expect("a processor");
    let path: PathBuf = std::env::temp_dir().join(format!("croft-requests-{}", std::process::id()));
    Machine::init(&path, None).expect("a new machine");
    let machine = Machine::start(&path).expect("it starts");
    let tree = Tree::new(&machine, Settings::default());
    let directory = tree.mkdir(ROOT, b"directory", 0o755, &ME).expect("a directory").inode;
    let bench = Bench { tree, directory };

    let mut figures = vec![(Vec::new(), Vec::new()); WORKLOADS.len()];
    let mut trips = Vec::new();
    for _ in 0..ROUNDS {
        trips.push(round_trip());
        for ((_, _, work), (foreground, background)) in WORKLOADS.iter().zip(&mut figures) {
            bench.tree.fsyncdir().expect("nothing is left to do");
            let before = (used(ClockId::ThreadCPUTime), used(ClockId::ProcessCPUTime));
            for number in 0..COUNT {
                work(&bench, number).expect("it can be done");
            }
            let own = used(ClockId::ThreadCPUTime) - before.0;
            bench.tree.fsyncdir().expect("nothing is left to do");
            bench.tree.tidy();
            let all = used(ClockId::ProcessCPUTime) - before.1;
            foreground.push(own / COUNT as f64);
            background.push((all - own) / COUNT as f64);
        }
    }
    let trip = median(trips);
    println!(
        "{:20} {:>8} {:>11} {:>11} {:>11}",
        "", "requests", "foreground", "each, in", "background"
    );
    println!("{:20} {:>8} {:>11} {:>11} {:>11}", "operation", "", "us", "round trips", "us");
    for ((name, requests, _), (foreground, background)) in WORKLOADS.iter().zip(figures) {
        let (foreground, background) = (median(foreground), median(background));
        let each = foreground / *requests as f64 / trip;
        println!("{name:20} {requests:>8} {foreground:>11.1} {each:>11.2} {background:>11.1}");
    }
    println!(
        "medians of {ROUNDS} rounds of {COUNT}; a round trip between two threads takes {trip:.1} us"
    );

    drop(bench);
    machine.stop().expect("it stops");
    fs::remove_dir_all(&path).expect("it goes");
}
