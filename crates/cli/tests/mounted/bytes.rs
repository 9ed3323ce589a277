//! Bytes of files: where they are, where they are not, and what becomes of them.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    time::{Duration, UNIX_EPOCH},
};

use rustix::{
    fs::{FallocateFlags, OFlags, SeekFrom as Seeking, Timespec, Timestamps, XattrFlags},
    io::Errno,
};

use crate::cell::Cell;

/// With the kernel's own way to the bytes, and without.
const WAYS: [&[&str]; 2] = [&[], &["--no-passthrough"]];

fn both(path: &std::path::Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

#[test]
fn holes_are_found_made_and_filled() {
    for way in WAYS {
        let Some(mut cell) = Cell::new(way) else { return };
        let file = both(&cell.at("a"));
        file.write_all_at(&[7; 4096], 10 << 20).unwrap();
        assert_eq!(file.metadata().unwrap().len(), (10 << 20) + 4096);
        assert!(file.metadata().unwrap().blocks() * 512 < 1 << 20, "it takes what it has");
        assert_eq!(rustix::fs::seek(&file, Seeking::Data(0)).unwrap(), 10 << 20);
        assert_eq!(rustix::fs::seek(&file, Seeking::Hole(10 << 20)).unwrap(), (10 << 20) + 4096);
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 1 << 20).unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 >= 1 << 20, "room was taken");
        file.write_all_at(&[9; 65536], 0).unwrap();
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, punch, 8192, 8192).unwrap();
        assert_eq!(rustix::fs::seek(&file, Seeking::Hole(0)).unwrap(), 8192);
        rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 20 << 20).unwrap();
        assert_eq!(file.metadata().unwrap().len(), (10 << 20) + 4096);
        file.sync_all().unwrap();
        drop(file);
        cell.restart(way);
        let bytes = fs::read(cell.at("a")).unwrap();
        assert_eq!(bytes.len(), (10 << 20) + 4096);
        assert!(bytes[..8192].iter().all(|byte| *byte == 9));
        assert!(bytes[8192..16384].iter().all(|byte| *byte == 0));
        assert!(bytes[10 << 20..].iter().all(|byte| *byte == 7));
    }
}

#[test]
fn a_range_is_copied_within_and_between_files() {
    for way in WAYS {
        let Some(cell) = Cell::new(way) else { return };
        let bytes: Vec<u8> = (0..600_000u32).map(|n| (n % 253) as u8).collect();
        fs::write(cell.at("a"), &bytes).unwrap();
        let (from, to) = (both(&cell.at("a")), both(&cell.at("b")));
        let (mut here, mut there) = (1_000, 5_000);
        while here < 500_000 {
            let most = 500_000 - here as usize;
            let copied =
                rustix::fs::copy_file_range(&from, Some(&mut here), &to, Some(&mut there), most);
            assert!(copied.unwrap() > 0);
        }
        drop((from, to));
        let copy = fs::read(cell.at("b")).unwrap();
        assert!(copy[5_000..] == bytes[1_000..500_000] && copy[..5_000] == [0; 5_000]);
    }
}

#[test]
fn writers_that_append_lose_nothing_of_each_other() {
    for way in WAYS {
        let Some(cell) = Cell::new(way) else { return };
        let path = cell.at("log");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
                    for count in 0..200 {
                        // At once, or others may come between.
                        let line = format!("{writer} {count:03} {}\n", "x".repeat(50));
                        file.write_all(line.as_bytes()).unwrap();
                    }
                });
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        for writer in 0..4 {
            let mine: Vec<&str> =
                text.lines().filter(|line| line.starts_with(&format!("{writer} "))).collect();
            assert_eq!(mine.len(), 200);
            assert!(mine.is_sorted(), "in the order of writing");
        }
    }
}

#[test]
fn truncating_at_open_empties_a_file_for_all_who_have_it_open() {
    for way in WAYS {
        let Some(cell) = Cell::new(way) else { return };
        for size in [100, 400_000] {
            fs::write(cell.at("a"), vec![1; size]).unwrap();
            let mut old = File::open(cell.at("a")).unwrap();
            let new = OpenOptions::new().write(true).truncate(true).open(cell.at("a")).unwrap();
            assert_eq!(old.metadata().unwrap().len(), 0);
            new.write_all_at(b"new", 2).unwrap();
            let mut bytes = Vec::new();
            old.read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, b"\0\0new");
        }
    }
}

#[test]
fn a_file_without_a_name_lives_until_it_is_closed_and_its_room_comes_back() {
    for way in WAYS {
        let Some(cell) = Cell::new(way) else { return };
        let mut file = both(&cell.at("a"));
        file.write_all(&vec![5; 1 << 20]).unwrap();
        fs::remove_file(cell.at("a")).unwrap();
        fs::write(cell.at("a"), "another").unwrap();
        assert_eq!(file.metadata().unwrap().nlink(), 0);
        file.write_all(b"end").unwrap();
        file.sync_all().unwrap();
        file.seek(SeekFrom::Start(1 << 20)).unwrap();
        let mut end = String::new();
        file.read_to_string(&mut end).unwrap();
        assert_eq!(end, "end");
        drop(file);
        assert_eq!(fs::read_to_string(cell.at("a")).unwrap(), "another");
    }
}

#[test]
fn attributes_of_the_users_own_are_kept_listed_and_removed() {
    let Some(mut cell) = Cell::new(&[]) else { return };
    let path = cell.at("a");
    fs::write(&path, "").unwrap();
    let large = vec![b'v'; 4_000];
    rustix::fs::setxattr(&path, "user.large", &large, XattrFlags::CREATE).unwrap();
    rustix::fs::setxattr(&path, "user.empty", b"", XattrFlags::empty()).unwrap();
    let again = rustix::fs::setxattr(&path, "user.large", b"", XattrFlags::CREATE);
    assert_eq!(again, Err(Errno::EXIST));
    let missing = rustix::fs::setxattr(&path, "user.none", b"", XattrFlags::REPLACE);
    assert_eq!(missing, Err(Errno::NODATA));
    cell.restart(&[]);
    let mut buffer = vec![0; 8_192];
    let len = rustix::fs::getxattr(&path, "user.large", &mut buffer[..]).unwrap();
    assert!(buffer[..len] == large);
    assert_eq!(rustix::fs::getxattr(&path, "user.large", &mut buffer[..10]), Err(Errno::RANGE));
    let len = rustix::fs::listxattr(&path, &mut buffer[..]).unwrap();
    let mut names: Vec<&[u8]> = buffer[..len].split(|byte| *byte == 0).collect();
    names.sort();
    assert_eq!(names, [&b""[..], b"user.empty", b"user.large"]);
    rustix::fs::removexattr(&path, "user.empty").unwrap();
    assert_eq!(rustix::fs::removexattr(&path, "user.empty"), Err(Errno::NODATA));
}

#[test]
fn times_are_kept_to_the_nanosecond_and_reading_changes_none() {
    let Some(mut cell) = Cell::new(&[]) else { return };
    let path = cell.at("a");
    fs::write(&path, "bytes").unwrap();
    let (accessed, modified) = (Duration::new(7, 1), Duration::new(5_000_000_000, 999_999_999));
    let times = fs::FileTimes::new();
    let times = times.set_accessed(UNIX_EPOCH + accessed).set_modified(UNIX_EPOCH + modified);
    File::open(&path).unwrap().set_times(times).unwrap();
    let changed = fs::metadata(&path).map(|meta| (meta.ctime(), meta.ctime_nsec())).unwrap();
    cell.restart(&[]);
    fs::read(&path).unwrap();
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(meta.accessed().unwrap(), UNIX_EPOCH + accessed);
    assert_eq!(meta.modified().unwrap(), UNIX_EPOCH + modified);
    assert_eq!((meta.ctime(), meta.ctime_nsec()), changed);
    let before = fs::metadata(&cell.path).unwrap().modified().unwrap();
    fs::write(cell.at("b"), "").unwrap();
    assert!(fs::metadata(&cell.path).unwrap().modified().unwrap() > before);
}

#[test]
fn no_time_is_so_far_away_that_setting_it_ends_the_mount() {
    let Some(cell) = Cell::new(&[]) else { return };
    let file = both(&cell.at("a"));
    let far = [i64::MIN, i64::MIN + 1, -1 << 40, -1, 0, 1 << 40, i64::MAX - 1, i64::MAX];
    let mut found = Vec::new();
    for (seconds, nanoseconds) in far.into_iter().flat_map(|at| [(at, 0), (at, 999_999_999)]) {
        let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::futimens(&file, &times).unwrap();
        let meta = file.metadata().unwrap();
        assert_eq!((meta.atime(), meta.atime_nsec()), (meta.mtime(), meta.mtime_nsec()));
        found.push((meta.mtime(), meta.mtime_nsec()));
    }
    // What can't be kept is the nearest that can.
    assert!(found.is_sorted(), "{found:?}");
    assert_eq!(found[6..10], [(-1, 0), (-1, 999_999_999), (0, 0), (0, 999_999_999)]);
}

#[test]
fn the_room_that_is_told_is_that_of_the_disk_beneath() {
    let Some(cell) = Cell::new(&[]) else { return };
    let (ours, beneath) = (rustix::fs::statvfs(&cell.path), rustix::fs::statvfs(&cell.home));
    let (ours, beneath) = (ours.unwrap(), beneath.unwrap());
    let bytes = |stat: &rustix::fs::StatVfs, blocks: u64| blocks * stat.f_frsize;
    assert_eq!(bytes(&ours, ours.f_blocks), bytes(&beneath, beneath.f_blocks));
    assert!(bytes(&ours, ours.f_bavail) <= bytes(&beneath, beneath.f_bavail));
    assert!(bytes(&ours, ours.f_bavail) > bytes(&beneath, beneath.f_bavail) / 2);
    assert!(ours.f_files > 0 && ours.f_ffree > 0 && ours.f_namemax == 255);
}

#[test]
fn what_can_not_be_had_is_refused_in_the_usual_words() {
    let Some(cell) = Cell::new(&[]) else { return };
    let unnamed = OpenOptions::new()
        .write(true)
        .custom_flags(OFlags::TMPFILE.bits() as i32)
        .open(&cell.path)
        .unwrap_err();
    assert_eq!(Errno::from_io_error(&unnamed), Some(Errno::OPNOTSUPP));
    let far = both(&cell.at("a")).set_len(u64::MAX >> 1).map_err(|e| Errno::from_io_error(&e));
    assert!(matches!(far, Ok(()) | Err(Some(Errno::FBIG))), "{far:?}");
}
