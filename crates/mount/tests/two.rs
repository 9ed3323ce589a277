//! Two machines with the same tree, each mounted for real, used as programs do. Where there is no `/dev/fuse`, or
//! no right to mount, this says so and checks nothing.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    reason = "a black-box test: it uses files as programs do"
)]

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt},
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use host::Machine;
use mount::{Mount, Options, Settings, Tree};

const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Says why a test checks nothing. In CI that is a failure.
#[track_caller]
fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "in CI each test has to check something: {why}");
    eprintln!("skipped: {why}");
}

/// A machine and its mount, unmounted and removed at the end whatever happens.
struct One {
    mount: Option<Mount>,
    tree: Arc<Tree>,
    machine: Option<Machine>,
    home: PathBuf,
    path: PathBuf,
}

impl One {
    fn new(founder: Option<&One>) -> Option<One> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("croft-two-{}-{count}", std::process::id());
        let home = std::env::temp_dir().join(&name);
        let path = std::env::temp_dir().join(format!("{name}-on"));
        fs::create_dir_all(&path).unwrap();
        match founder {
            None => Machine::init(&home, Some(ANYWHERE)).unwrap(),
            Some(founder) => {
                let code = Machine::invite(&founder.home, Duration::from_secs(60)).unwrap();
                Machine::join(&home, code.reveal(), ANYWHERE).unwrap();
            }
        }
        let machine = Machine::start(&home).unwrap();
        let tree = Arc::new(Tree::new(&machine, Settings::default()));
        match Mount::start(Arc::clone(&tree), &path, &Options::default()) {
            Ok(mount) => Some(One { mount: Some(mount), tree, machine: Some(machine), home, path }),
            Err(error) => {
                skip(&format!("can't mount here ({error})"));
                None
            }
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for One {
    fn drop(&mut self) {
        if let Some(mut mount) = self.mount.take()
            && mount.unmount().is_err()
        {
            drop(mount);
            let _ = Command::new("umount").arg("-l").arg(&self.path).status();
        }
        self.machine.take();
        let _ = fs::remove_dir_all(&self.home);
        let _ = fs::remove_dir(&self.path);
    }
}

/// Two mounts of one tree, if this computer can mount. The first founds the cell, and has to go last.
fn two() -> Option<(One, One)> {
    if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        skip(&format!("/dev/fuse can't be used here ({error})"));
        return None;
    }
    let one = One::new(None)?;
    let two = One::new(Some(&one))?;
    Some((one, two))
}

#[test]
fn what_one_machine_has_done_another_sees_at_once() {
    let Some((a, b)) = two() else { return };
    fs::write(a.at("small"), b"from a").unwrap();
    assert_eq!(fs::read(b.at("small")).unwrap(), b"from a");
    fs::write(b.at("small"), b"and from b").unwrap();
    assert_eq!(fs::read(a.at("small")).unwrap(), b"and from b");
    assert_eq!(fs::metadata(a.at("small")).unwrap().len(), 10);

    assert!(!b.at("directory").exists());
    fs::create_dir(a.at("directory")).unwrap();
    assert!(b.at("directory").is_dir());
    fs::rename(b.at("small"), b.at("directory/renamed")).unwrap();
    assert!(!a.at("small").exists());
    assert_eq!(fs::read(a.at("directory/renamed")).unwrap(), b"and from b");

    fs::set_permissions(a.at("directory/renamed"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(fs::metadata(b.at("directory/renamed")).unwrap().mode() & 0o777, 0o600);
    std::os::unix::fs::symlink("renamed", b.at("directory/link")).unwrap();
    assert_eq!(fs::read(a.at("directory/link")).unwrap(), b"and from b");
    fs::remove_file(b.at("directory/link")).unwrap();
    fs::remove_file(a.at("directory/renamed")).unwrap();
    assert_eq!(fs::read_dir(b.at("directory")).unwrap().count(), 0);
    fs::remove_dir(b.at("directory")).unwrap();
    assert!(!a.at("directory").exists());
}

#[test]
fn large_files_change_hands_whole() {
    let Some((a, b)) = two() else { return };
    let mut bytes: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    fs::write(a.at("large"), &bytes).unwrap();
    assert!(fs::read(b.at("large")).unwrap() == bytes);
    let file = OpenOptions::new().read(true).write(true).open(b.at("large")).unwrap();
    for (place, text) in [(1_000_000, b"here"), (2_999_998, b"ends")] {
        file.write_all_at(text, place).unwrap();
        bytes.resize(bytes.len().max(place as usize + 4), 0);
        bytes[place as usize..place as usize + 4].copy_from_slice(text);
    }
    assert!(fs::read(a.at("large")).unwrap() == bytes);
    drop(file);
    let file = OpenOptions::new().write(true).open(a.at("large")).unwrap();
    file.set_len(1_000_002).unwrap();
    bytes.truncate(1_000_002);
    assert!(fs::read(b.at("large")).unwrap() == bytes);
}

#[test]
fn who_reads_an_open_file_sees_what_another_machine_has_written_since() {
    let Some((a, b)) = two() else { return };
    fs::write(a.at("file"), b"0000").unwrap();
    let reader = File::open(b.at("file")).unwrap();
    let writer = OpenOptions::new().write(true).open(a.at("file")).unwrap();
    for round in 0..50u32 {
        let text = format!("{round:04}");
        writer.write_all_at(text.as_bytes(), 0).unwrap();
        let mut seen = [0; 4];
        reader.read_exact_at(&mut seen, 0).unwrap();
        assert_eq!(std::str::from_utf8(&seen).unwrap(), text);
    }
}

#[test]
fn appending_from_two_machines_loses_nothing() {
    const ROUNDS: usize = 200;
    let Some((a, b)) = two() else { return };
    fs::write(a.at("log"), b"").unwrap();
    thread::scope(|scope| {
        for (one, letter) in [(&a, 'a'), (&b, 'b')] {
            scope.spawn(move || {
                let mut log = OpenOptions::new().append(true).open(one.at("log")).unwrap();
                for round in 0..ROUNDS {
                    log.write_all(format!("{letter}{round:05}\n").as_bytes()).unwrap();
                }
            });
        }
    });
    for one in [&a, &b] {
        let text = fs::read_to_string(one.at("log")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 * ROUNDS);
        for letter in ['a', 'b'] {
            let own = lines.iter().filter(|line| line.starts_with(letter));
            let expected = (0..ROUNDS).map(|round| format!("{letter}{round:05}"));
            assert!(own.copied().eq(expected));
        }
    }
}

#[test]
fn what_another_machine_has_cut_off_does_not_come_back() {
    let Some((a, b)) = two() else { return };
    for (name, size) in [("small", 1_000), ("large", 1_000_000)] {
        fs::write(a.at(name), vec![b'x'; size]).unwrap();
        File::options().write(true).open(b.at(name)).unwrap().set_len(0).unwrap();
        let mut log = OpenOptions::new().append(true).open(a.at(name)).unwrap();
        log.write_all(b"new").unwrap();
        drop(log);
        assert_eq!(fs::read(b.at(name)).unwrap(), b"new");
        assert_eq!(fs::read(a.at(name)).unwrap(), b"new");
        // A fetched one that is cut, and then read where it came from.
        fs::write(a.at(name), vec![b'y'; size]).unwrap();
        File::options().write(true).open(b.at(name)).unwrap().set_len(5).unwrap();
        assert_eq!(fs::read(a.at(name)).unwrap(), b"yyyyy");
    }
}

#[test]
fn a_file_without_a_name_can_be_written_and_closed_and_nothing_is_left_of_it() {
    let Some((mut a, b)) = two() else { return };
    let mut file = File::create(a.at("file")).unwrap();
    fs::remove_file(b.at("file")).unwrap();
    file.write_all(b"for nobody").unwrap();
    drop(file);
    let mut file = File::create(a.at("own")).unwrap();
    fs::remove_file(a.at("own")).unwrap();
    file.write_all(b"for nobody").unwrap();
    drop(file);
    drop(b);
    a.mount.take().unwrap().unmount().unwrap();
}

#[test]
fn what_is_written_into_mapped_memory_is_seen_elsewhere() {
    let Some((a, b)) = two() else { return };
    fs::write(a.at("file"), [b'.'; 8_192]).unwrap();
    map_and_look(&a, &b);
}

#[test]
fn what_others_have_just_changed_can_be_mapped_too() {
    let Some((a, b)) = two() else { return };
    for one in [&a, &b, &a] {
        fs::write(one.at("file"), [b'.'; 8_192]).unwrap();
    }
    map_and_look(&a, &b);
}

/// Has a program write into mapped memory on one machine, and looks from another.
fn map_and_look(a: &One, b: &One) {
    let script = "import mmap, sys\n\
        f = open(sys.argv[1], 'r+b')\n\
        m = mmap.mmap(f.fileno(), 0)\n\
        m[5000:5005] = b'hello'\n\
        print('written', flush=True)\n\
        sys.stdin.readline()\n";
    let mut writer = Command::new("python3")
        .args(["-c", script])
        .arg(a.at("file"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 8];
    writer.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    let seen = fs::read(b.at("file")).unwrap();
    assert_eq!(&seen[4_998..5_007], b"..hello..");
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
}

#[test]
fn of_two_machines_that_create_a_name_at_once_one_succeeds() {
    let Some((a, b)) = two() else { return };
    for round in 0..50 {
        let name = format!("name-{round}");
        let results = thread::scope(|scope| {
            let tries = [&a, &b].map(|one| {
                let path = one.at(&name);
                scope.spawn(move || OpenOptions::new().write(true).create_new(true).open(path))
            });
            tries.map(|tried| tried.join().unwrap())
        });
        let made = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(made, 1, "{results:?}");
        let refused = results.into_iter().find_map(Result::err).unwrap();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    }
}

#[test]
fn a_file_that_another_machine_removes_is_there_for_whoever_has_it_open() {
    let Some((a, b)) = two() else { return };
    fs::write(b.at("file"), b"still here").unwrap();
    let mut open = File::open(a.at("file")).unwrap();
    fs::remove_file(b.at("file")).unwrap();
    assert!(!a.at("file").exists());
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "still here");
    assert_eq!(open.metadata().unwrap().nlink(), 0);
}

#[test]
fn bytes_that_the_directory_had_not_heard_of_are_told_when_somebody_misses_them() {
    let Some((a, b)) = two() else { return };
    fs::write(a.at("file"), b"told").unwrap();
    File::open(a.at("file")).unwrap().sync_all().unwrap();
    let inode = fs::metadata(a.at("file")).unwrap().ino();
    // As after a crash before the group had heard of what was written last.
    a.machine.as_ref().unwrap().content().put(inode, b"written since").unwrap();
    // Whoever reads while it is told may see the new bytes up to the old end: the kernel drops news of a size while
    // it takes pages away.
    let start = Instant::now();
    while fs::read(b.at("file")).unwrap() != b"written since" {
        assert!(start.elapsed() < Duration::from_secs(30), "it is never told");
    }
    assert_eq!(fs::read(a.at("file")).unwrap(), b"written since");
    fs::write(b.at("file"), b"and changed").unwrap();
    assert_eq!(fs::read(a.at("file")).unwrap(), b"and changed");
}

#[test]
fn a_directory_moves_while_another_machine_stands_in_it() {
    let Some((a, b)) = two() else { return };
    fs::create_dir_all(a.at("from/inner")).unwrap();
    fs::write(b.at("from/inner/file"), b"x").unwrap();
    fs::create_dir(b.at("to")).unwrap();
    let inside = File::open(a.at("from/inner")).unwrap();
    fs::rename(b.at("from/inner"), b.at("to/moved")).unwrap();
    let by_handle = format!("/proc/self/fd/{}/file", std::os::fd::AsRawFd::as_raw_fd(&inside));
    assert_eq!(fs::read(by_handle).unwrap(), b"x");
    assert_eq!(fs::read(a.at("to/moved/file")).unwrap(), b"x");
    assert!(!a.at("from/inner").exists());
}

fn read_at(file: &File, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut bytes[filled..], offset + filled as u64).unwrap() {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    bytes
}

/// So much is worth it.
const LARGE: usize = 16 << 20;

/// Whether the kernel may use files by itself here.
fn has_passthrough() -> bool {
    let is_so = Options::default().has_passthrough;
    if !is_so {
        skip("only the superuser can let the kernel use files by itself");
    }
    is_so
}

#[test]
fn a_large_file_that_one_machine_has_open_is_read_and_written_there_by_others() {
    let Some((a, b)) = two().filter(|_| has_passthrough()) else { return };
    fs::write(a.at("large"), vec![7; LARGE]).unwrap();
    let here = OpenOptions::new().read(true).write(true).open(a.at("large")).unwrap();
    assert_eq!(a.tree.homes(), 1, "nobody else has it open");
    here.write_all_at(b"first", 10).unwrap();
    let there = OpenOptions::new().read(true).write(true).open(b.at("large")).unwrap();
    assert_eq!(read_at(&there, 10, 5), b"first");
    for round in 0..20u8 {
        // Each sees at once what the other has done, whatever it has read before.
        here.write_all_at(&[round; 3], 500_000).unwrap();
        assert_eq!(read_at(&there, 500_000, 3), [round; 3]);
        there.write_all_at(&[round + 100; 3], 500_001).unwrap();
        assert_eq!(read_at(&here, 500_000, 4), [round, round + 100, round + 100, round + 100]);
    }
    // Where it ends, too.
    here.write_all_at(b"end", 17 << 20).unwrap();
    assert_eq!(there.metadata().unwrap().len(), (17 << 20) + 3);
    assert_eq!(fs::metadata(b.at("large")).unwrap().len(), (17 << 20) + 3);
    assert_eq!(read_at(&there, 17 << 20, 100), b"end");
    let large: Vec<u8> = (0..900_000u32).map(|n| (n % 249) as u8).collect();
    there.write_all_at(&large, 20 << 20).unwrap();
    assert_eq!(here.metadata().unwrap().len(), (20 << 20) + 900_000);
    assert!(read_at(&here, 20 << 20, 1 << 20) == large);
    there.set_len(300_000).unwrap();
    assert_eq!(here.metadata().unwrap().len(), 300_000);
    assert_eq!(read_at(&here, 299_999, 10).len(), 1);
    fs::OpenOptions::new().write(true).open(a.at("large")).unwrap().set_len(200_000).unwrap();
    assert_eq!(there.metadata().unwrap().len(), 200_000);
    there.sync_all().unwrap();
    assert_eq!(a.tree.homes(), 1, "it is still open there");

    // When it is closed at home, others go on with it by themselves.
    drop(here);
    there.write_all_at(b"after", 100).unwrap();
    assert_eq!(read_at(&there, 98, 8), b"\x07\x07after\x07");
    drop(there);
    let bytes = fs::read(a.at("large")).unwrap();
    assert_eq!(
        (bytes.len(), &bytes[10..15], &bytes[100..105]),
        (200_000, &b"first"[..], &b"after"[..])
    );
}

#[test]
fn a_large_file_that_is_only_read_is_in_the_cache_of_everybody_who_reads_it() {
    let Some((a, b)) = two().filter(|_| has_passthrough()) else { return };
    fs::write(a.at("large"), vec![7; LARGE]).unwrap();
    let here = File::open(a.at("large")).unwrap();
    assert_eq!(a.tree.homes(), 0);
    let there = File::open(b.at("large")).unwrap();
    assert_eq!((read_at(&here, 0, 3), read_at(&there, 0, 3)), (vec![7; 3], vec![7; 3]));
    fs::write(b.at("large"), b"short").unwrap();
    assert_eq!((read_at(&here, 0, 10), read_at(&there, 0, 10)), (b"short".into(), b"short".into()));
}

#[test]
fn that_bytes_are_used_where_they_are_changes_no_times() {
    let Some((a, b)) = two().filter(|_| has_passthrough()) else { return };
    fs::write(a.at("large"), vec![7; LARGE]).unwrap();
    let times = |path: PathBuf| {
        let meta = fs::metadata(path).unwrap();
        (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec())
    };
    let before = times(a.at("large"));
    let here = OpenOptions::new().write(true).open(a.at("large")).unwrap();
    assert_eq!(a.tree.homes(), 1);
    assert_eq!(times(b.at("large")), before);
    drop(here);
    assert_eq!([times(a.at("large")), times(b.at("large"))], [before; 2]);
}

#[test]
fn a_file_that_others_have_open_is_not_used_by_a_kernel_alone() {
    let Some((a, b)) = two().filter(|_| has_passthrough()) else { return };
    fs::write(a.at("large"), vec![7; LARGE]).unwrap();
    let there = File::open(b.at("large")).unwrap();
    let here = OpenOptions::new().read(true).write(true).open(a.at("large")).unwrap();
    assert_eq!((a.tree.homes(), b.tree.homes()), (0, 0));
    here.write_all_at(b"still", 0).unwrap();
    assert_eq!(read_at(&there, 0, 5), b"still");
}

#[test]
fn nothing_that_two_machines_append_to_a_large_file_is_lost() {
    const LINES: usize = 300;
    let Some((a, b)) = two().filter(|_| has_passthrough()) else { return };
    fs::write(a.at("log"), vec![b'.'; LARGE]).unwrap();
    let here = OpenOptions::new().append(true).open(a.at("log")).unwrap();
    assert_eq!(a.tree.homes(), 1);
    let there = OpenOptions::new().append(true).open(b.at("log")).unwrap();
    let write = |mut file: File, who: char| {
        thread::spawn(move || {
            (0..LINES).for_each(|n| file.write_all(format!("{who}{n:05}").as_bytes()).unwrap());
        })
    };
    let writers = [write(here, 'a'), write(there, 'b')];
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    for one in [&a, &b] {
        let bytes = fs::read(one.at("log")).unwrap();
        let mut lines: Vec<&[u8]> = bytes[LARGE..].chunks(6).collect();
        lines.sort_unstable();
        let all =
            ['a', 'b'].into_iter().flat_map(|who| (0..LINES).map(move |n| format!("{who}{n:05}")));
        assert!(lines.into_iter().eq(all.collect::<Vec<_>>().iter().map(|line| line.as_bytes())));
    }
}

#[test]
fn a_large_file_can_be_opened_by_many_at_once_where_it_is() {
    let Some((a, b)) = two().filter(|_| has_passthrough()) else { return };
    fs::write(a.at("large"), vec![7; LARGE]).unwrap();
    for round in 0..10u8 {
        let write = |place: u64| {
            let path = a.at("large");
            thread::spawn(move || {
                let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
                file.write_all_at(&[round; 3], place * 1_000).unwrap();
                assert_eq!(read_at(&file, place * 1_000, 3), [round; 3]);
            })
        };
        let writers: Vec<_> = (0..8).map(write).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let there = File::open(b.at("large")).unwrap();
        for place in 0..8 {
            assert_eq!(read_at(&there, place * 1_000, 3), [round; 3]);
        }
    }
}

#[test]
fn times_that_are_set_elsewhere_are_not_undone_by_what_was_written_before() {
    let Some((a, b)) = two().filter(|_| has_passthrough()) else { return };
    fs::write(a.at("large"), vec![7; LARGE]).unwrap();
    let here = OpenOptions::new().read(true).write(true).open(a.at("large")).unwrap();
    let there = OpenOptions::new().read(true).write(true).open(b.at("large")).unwrap();
    here.write_all_at(b"here", 10).unwrap();
    there.write_all_at(b"there", 20).unwrap();
    let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    there.set_modified(long_ago).unwrap();
    for one in [&a, &b] {
        assert_eq!(fs::metadata(one.at("large")).unwrap().modified().unwrap(), long_ago);
    }
    drop((here, there));
    assert_eq!(fs::metadata(b.at("large")).unwrap().modified().unwrap(), long_ago);
}

#[test]
fn what_can_not_be_done_to_bytes_elsewhere_is_refused_and_fetches_nothing() {
    let Some((a, b)) = two().filter(|_| has_passthrough()) else { return };
    fs::write(a.at("large"), vec![7; LARGE]).unwrap();
    let here = OpenOptions::new().read(true).write(true).open(a.at("large")).unwrap();
    let there = OpenOptions::new().read(true).write(true).open(b.at("large")).unwrap();
    let flags = rustix::fs::FallocateFlags::empty();
    let refused = rustix::fs::fallocate(&there, flags, 0, 2 * LARGE as u64);
    assert_eq!(refused, Err(rustix::io::Errno::OPNOTSUPP));
    assert_eq!(a.tree.homes(), 1);
    there.write_all_at(b"there", 20).unwrap();
    there.sync_all().unwrap();
    assert_eq!(read_at(&here, 20, 5), b"there");
}
