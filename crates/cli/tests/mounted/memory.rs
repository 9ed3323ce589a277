//! How much memory a machine takes, however many files there are.
//!
//! `CROFT_MEMORY_FILES` asks for more files; `cargo xtask long memory` makes a million.

use std::fs::{self, File};

use rustix::process::Pid;

use crate::{cell::Cell, draw::number};

/// The most that a machine may ever have taken after a million files, in MiB.
const GOAL_MIB: f64 = 300.0;
const IN_DIRECTORY: u64 = 1_000;

#[test]
fn a_machine_stays_small_while_files_are_made_and_after_a_start() {
    let Some(mut cell) = Cell::new(&[]) else { return };
    let files = number("CROFT_MEMORY_FILES", 5_000);
    for directory in 0..files.div_ceil(IN_DIRECTORY) {
        let path = cell.at(&format!("directory-{directory}"));
        fs::create_dir(&path).unwrap();
        let count = IN_DIRECTORY.min(files - directory * IN_DIRECTORY);
        for file in 0..count {
            File::create_new(path.join(format!("file-{file}"))).unwrap();
        }
    }
    let made = peak_mib(cell.pid());
    cell.restart(&[]);
    let mut found = 0;
    for directory in fs::read_dir(&cell.path).unwrap() {
        for file in fs::read_dir(directory.unwrap().path()).unwrap() {
            found += u64::from(file.unwrap().metadata().unwrap().is_file());
        }
    }
    let looked = peak_mib(cell.pid());
    eprintln!(
        "{files} files: at most {made:.0} MiB while they were made, {looked:.0} MiB while all were looked \
         at after a start; the goal for a million is {GOAL_MIB:.0} MiB"
    );
    assert_eq!(found, files);
    assert!(made.max(looked) < GOAL_MIB);
}

/// The most memory that a process has ever had.
fn peak_mib(process: Pid) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib / 1_024.0
}
