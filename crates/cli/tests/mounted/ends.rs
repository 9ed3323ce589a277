//! Where a file ends, for programs that read it while another machine changes it.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

use crate::{
    cell::{Scratch, can_mount},
    quickstart::Quickstart,
};

const RECORD: usize = 64;
/// How much is written, and how often.
const RECORDS: usize = 60;
const ROUNDS: usize = 60;

/// Reads a file through the same handle again and again, until it is over; how often.
fn read_on<T: Send + 'static>(
    file: File,
    is_over: &Arc<AtomicBool>,
    before: impl Fn() -> T + Send + 'static,
    check: impl Fn(T, &[u8]) + Send + 'static,
) -> JoinHandle<usize> {
    let is_over = Arc::clone(is_over);
    thread::spawn(move || {
        let mut bytes = vec![0; RECORD * (RECORDS + 1)];
        let mut count = 0;
        while !is_over.load(Ordering::Acquire) {
            let before = before();
            let len = file.read_at(&mut bytes, 0).unwrap();
            check(before, &bytes[..len]);
            count += 1;
        }
        count
    })
}

/// A file that one machine writes, and that another has open since before that.
fn opened(directory: &Path) -> (File, File) {
    let written = File::create_new(directory.join("mnt-2/log")).unwrap();
    (written, File::open(directory.join("mnt/log")).unwrap())
}

#[test]
fn whoever_reads_sees_all_that_another_machine_had_written_when_it_began() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let directory = scratch.0.join("quick");
    let quickstart = Quickstart::new(&directory, &["--mounts"]);
    let (written, first) = opened(&directory);
    let (done, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let read = |file| {
        let done = Arc::clone(&done);
        let before = move || done.load(Ordering::Acquire);
        read_on(file, &is_over, before, |before, bytes| {
            assert!(bytes.len() >= before * RECORD, "{} after {before}", bytes.len());
            let mut records = bytes.chunks(RECORD).enumerate();
            assert!(records.all(|(place, record)| record == [fill(place); RECORD]));
        })
    };
    let mut readers = vec![read(first)];
    for place in 0..RECORDS {
        written.write_all_at(&[fill(place); RECORD], (place * RECORD) as u64).unwrap();
        done.store(place + 1, Ordering::Release);
        if place == RECORDS / 2 {
            readers.push(read(File::open(directory.join("mnt/log")).unwrap()));
        }
    }
    is_over.store(true, Ordering::Release);
    let counts: Vec<usize> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    eprintln!("{RECORDS} records were written, and read {counts:?} times meanwhile");
    quickstart.interrupt();
}

#[test]
fn whoever_reads_sees_nothing_behind_the_end_that_another_machine_has_made() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let directory = scratch.0.join("quick");
    let quickstart = Quickstart::new(&directory, &["--mounts"]);
    let (written, first) = opened(&directory);
    let is_over = Arc::new(AtomicBool::new(false));
    let read = |file| {
        read_on(
            file,
            &is_over,
            || (),
            |(), bytes| {
                let zeros = bytes.iter().filter(|byte| **byte == 0).count();
                assert_eq!(zeros, 0, "of {}", bytes.len());
            },
        )
    };
    let mut readers = vec![read(first)];
    for round in 0..ROUNDS {
        let len = RECORD * (1 + round * 7 % 11);
        written.write_all_at(&vec![fill(round); len], 0).unwrap();
        written.set_len(len as u64).unwrap();
        if round == ROUNDS / 2 {
            readers.push(read(File::open(directory.join("mnt/log")).unwrap()));
        }
    }
    is_over.store(true, Ordering::Release);
    let counts: Vec<usize> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    eprintln!("{ROUNDS} ends were made, and the file read {counts:?} times meanwhile");
    quickstart.interrupt();
}

/// What a record is full of, and never nothing.
fn fill(place: usize) -> u8 {
    (place % 255) as u8 + 1
}
