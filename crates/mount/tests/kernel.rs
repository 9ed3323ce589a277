//! A tree that is mounted for real, used as programs do. Where there is no `/dev/fuse`, or no right to
//! mount, this says so and checks nothing.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    reason = "a black-box test: it uses files as programs do"
)]

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, UNIX_EPOCH},
};

use host::Machine;
use mount::{
    Mount, Options, Settings, Tree,
    front::{Caller, Over, ROOT},
};

/// Says why a test checks nothing. In CI that is a failure.
#[track_caller]
fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "in CI each test has to check something: {why}");
    eprintln!("skipped: {why}");
}

/// A machine and its mount, unmounted and removed at the end whatever happens.
struct World {
    tree: Weak<Tree>,
    mount: Option<Mount>,
    machine: Option<Machine>,
    home: PathBuf,
    path: PathBuf,
}

impl World {
    /// Nothing, if this computer can't mount.
    fn new(options: Options) -> Option<World> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/fuse") {
            skip(&format!("/dev/fuse can't be used here ({error})"));
            return None;
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("croft-mount-{}-{count}", std::process::id());
        let home = std::env::temp_dir().join(&name);
        let path = std::env::temp_dir().join(format!("{name}-on"));
        fs::create_dir_all(&path).unwrap();
        Machine::init(&home, None).unwrap();
        let mut world = World { tree: Weak::new(), mount: None, machine: None, home, path };
        if !world.start(options) {
            skip("can't mount here");
            return None;
        }
        Some(world)
    }

    fn start(&mut self, options: Options) -> bool {
        let machine = Machine::start(&self.home).unwrap();
        let tree = Arc::new(Tree::new(&machine, Settings::default()));
        self.machine = Some(machine);
        self.tree = Arc::downgrade(&tree);
        match Mount::start(tree, &self.path, &options) {
            Ok(mount) => self.mount = Some(mount),
            Err(error) => eprintln!("can't mount here ({error})"),
        }
        self.mount.is_some()
    }

    fn restart(&mut self, options: Options) {
        self.mount.take().unwrap().unmount().unwrap();
        self.machine.take().unwrap().stop().unwrap();
        assert!(self.start(options));
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for World {
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

fn ways() -> Vec<Options> {
    let usual = Options::default();
    vec![usual, Options { has_passthrough: false, ..usual }]
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn programs_find_what_they_wrote_in_either_way_and_after_a_restart() {
    for options in ways() {
        let Some(mut world) = World::new(options) else { return };
        let large: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
        fs::write(world.at("small"), b"hello").unwrap();
        fs::write(world.at("large"), &large).unwrap();
        fs::write(world.at("empty"), b"").unwrap();
        OpenOptions::new()
            .append(true)
            .open(world.at("small"))
            .unwrap()
            .write_all(b" again")
            .unwrap();
        assert_eq!(fs::read(world.at("small")).unwrap(), b"hello again");
        assert_eq!(fs::metadata(world.at("small")).unwrap().len(), 11);
        let file = OpenOptions::new().read(true).write(true).open(world.at("large")).unwrap();
        file.write_all_at(b"here", 1_000_000).unwrap();
        file.set_len(2_000_000).unwrap();
        file.sync_all().unwrap();
        drop(file);
        let mut expected = large.clone();
        expected[1_000_000..1_000_004].copy_from_slice(b"here");
        expected.truncate(2_000_000);
        assert!(fs::read(world.at("large")).unwrap() == expected);
        world.restart(options);
        assert_eq!(fs::read(world.at("small")).unwrap(), b"hello again");
        assert!(fs::read(world.at("large")).unwrap() == expected);
        assert_eq!(fs::read(world.at("empty")).unwrap(), b"");
        assert_eq!(names(&world.path), ["empty", "large", "small"]);
    }
}

#[test]
fn a_new_file_is_read_as_it_is_while_somebody_only_writes_it() {
    for options in ways() {
        let Some(world) = World::new(options) else { return };
        let path = world.at("log");
        let mut log = OpenOptions::new().append(true).create_new(true).open(&path).unwrap();
        let mut reader = File::open(&path).unwrap();
        let mut all = Vec::new();
        for line in 0..2_000 {
            let line = format!("line {line}\n");
            log.write_all(line.as_bytes()).unwrap();
            let mut seen = String::new();
            reader.read_to_string(&mut seen).unwrap();
            assert_eq!(seen, line);
            all.extend(line.into_bytes());
        }
        drop((log, reader));
        assert!(fs::read(&path).unwrap() == all);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"end").unwrap();
        assert!(fs::read(&path).unwrap().ends_with(b"end"));
    }
}

#[test]
fn large_files_that_one_process_writes_one_after_the_other_are_all_whole() {
    for options in ways() {
        let Some(mut world) = World::new(options) else { return };
        let bytes: Vec<u8> = (0..3 << 20).map(|n: u32| (n.wrapping_mul(n) >> 7) as u8).collect();
        let size = |count: usize| [3 << 20, 2 << 20, 5, 1 << 20][count % 4];
        for count in 0..8 {
            let path = world.at(&format!("f{count}"));
            fs::write(&path, &bytes[..size(count)]).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().len(), size(count) as u64);
            assert!(fs::read(&path).unwrap() == bytes[..size(count)]);
        }
        world.restart(options);
        for count in 0..8 {
            assert!(fs::read(world.at(&format!("f{count}"))).unwrap() == bytes[..size(count)]);
        }
    }
}

#[test]
fn names_come_go_and_move() {
    let Some(world) = World::new(Options::default()) else { return };
    fs::create_dir(world.at("d")).unwrap();
    for n in 0..500 {
        fs::write(world.at(&format!("d/{n:03}")), format!("file {n}")).unwrap();
    }
    assert_eq!(names(&world.at("d")).len(), 500);
    fs::rename(world.at("d/000"), world.at("moved")).unwrap();
    fs::rename(world.at("d/001"), world.at("moved")).unwrap();
    assert_eq!(fs::read(world.at("moved")).unwrap(), b"file 1");
    fs::hard_link(world.at("moved"), world.at("linked")).unwrap();
    assert_eq!(fs::metadata(world.at("linked")).unwrap().nlink(), 2);
    std::os::unix::fs::symlink("moved", world.at("soft")).unwrap();
    assert_eq!(fs::read(world.at("soft")).unwrap(), b"file 1");
    assert_eq!(fs::remove_dir(world.at("d")).unwrap_err().raw_os_error(), Some(39));
    fs::remove_dir_all(world.at("d")).unwrap();
    assert!(fs::metadata(world.at("d")).is_err());
    let long = "x".repeat(256);
    assert_eq!(fs::write(world.at(&long), b"").unwrap_err().raw_os_error(), Some(36));
}

#[test]
fn an_open_file_outlives_its_name() {
    for options in ways() {
        let Some(world) = World::new(options) else { return };
        for size in [5, 500_000] {
            let path = world.at("a");
            fs::write(&path, vec![1; size]).unwrap();
            let mut file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
            fs::remove_file(&path).unwrap();
            assert_eq!(file.metadata().unwrap().nlink(), 0);
            file.seek(SeekFrom::End(0)).unwrap();
            file.write_all(b"more").unwrap();
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(0)).unwrap();
            file.read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes.len(), size + 4);
        }
    }
}

#[test]
fn attributes_are_as_they_were_set() {
    let Some(world) = World::new(Options::default()) else { return };
    let path = world.at("a");
    let file = OpenOptions::new().write(true).create_new(true).mode(0o640).open(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    (&file).write_all(b"bytes").unwrap();
    for time in [
        UNIX_EPOCH + Duration::new(5_000_000_000, 123_456_789),
        UNIX_EPOCH - Duration::new(1_000, 250_000_000),
        UNIX_EPOCH - Duration::new(0, 1),
    ] {
        file.set_modified(time).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), time);
    }
    let before = fs::metadata(&path).unwrap();
    drop(file);
    let after = fs::metadata(&path).unwrap();
    assert_eq!(after.modified().unwrap(), before.modified().unwrap());
    assert_eq!((after.mode() & 0o7777, after.len()), (0o751, 5));
}

#[test]
fn names_that_changed_behind_the_kernels_back_are_looked_up_anew_when_it_is_told() {
    let Some(world) = World::new(Options::default()) else { return };
    let tree = world.tree.upgrade().unwrap();
    let me = Caller { uid: 0, gid: 0, pid: 0 };
    for name in ["goes", "moves"] {
        fs::write(world.at(name), name).unwrap();
    }
    assert!(fs::metadata(world.at("comes")).is_err());
    tree.unlink(ROOT, b"goes", &me).unwrap();
    tree.rename((ROOT, b"moves"), (ROOT, b"comes"), Over::Replace, &me).unwrap();
    let seen = || ["goes", "moves", "comes"].map(|name| fs::metadata(world.at(name)).is_ok());
    assert_eq!(seen(), [true, true, false], "the kernel believes what it was told");
    tree.distrust();
    let start = Instant::now();
    while seen() != [false, false, true] {
        if start.elapsed() > Duration::from_secs(10) {
            let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
            let mut numbers = kernel.split(['.', '-']).map(|text| text.parse::<u32>().unwrap_or(0));
            let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            assert!(version < (6, 16), "{:?} on Linux {kernel}", seen());
            skip(&format!("Linux {kernel} can't be told"));
            return;
        }
        std::thread::yield_now();
    }
    assert_eq!(fs::read(world.at("comes")).unwrap(), b"moves");
}

#[test]
fn a_busy_mount_is_not_taken_away_and_a_free_one_is() {
    let Some(mut world) = World::new(Options::default()) else { return };
    let file = File::create(world.at("a")).unwrap();
    let mount = world.mount.as_mut().unwrap();
    assert_eq!(mount.unmount().unwrap_err().raw_os_error(), Some(16));
    (&file).write_all(b"still here").unwrap();
    drop(file);
    assert_eq!(fs::read(world.path.join("a")).unwrap(), b"still here");
    world.mount.take().unwrap().unmount().unwrap();
    assert!(names(&world.path).is_empty());
}

#[test]
fn what_is_open_is_safe_when_a_busy_mount_is_taken_away() {
    for options in ways() {
        let Some(mut world) = World::new(options) else { return };
        let mut file = File::create(world.at("a")).unwrap();
        file.write_all(b"in memory").unwrap();
        let mut large = File::create(world.at("b")).unwrap();
        large.write_all(&[7; 500_000]).unwrap();
        drop(world.mount.take());
        world.machine.take().unwrap().stop().unwrap();
        // Whoever uses it keeps the old one in this process; another finds what is on the disk.
        let copy = world.home.with_extension("copy");
        let status = Command::new("cp").arg("-a").arg(&world.home).arg(&copy).status();
        assert!(status.unwrap().success());
        let home = std::mem::replace(&mut world.home, copy);
        assert!(world.start(options));
        assert_eq!(fs::read(world.at("a")).unwrap(), b"in memory");
        assert!(fs::read(world.at("b")).unwrap() == [7; 500_000]);
        drop((file, large));
        fs::remove_dir_all(home).unwrap();
    }
}

#[test]
fn a_mount_knows_when_somebody_else_has_unmounted_it() {
    let Some(mut world) = World::new(Options::default()) else { return };
    fs::write(world.at("a"), b"bytes").unwrap();
    let mut mount = world.mount.take().unwrap();
    assert!(!mount.is_over());
    if !Command::new("umount").arg(&world.path).status().unwrap().success() {
        skip("no right to unmount here");
        return;
    }
    mount.wait().unwrap();
    assert!(mount.is_over());
    // And what is there now is not its own.
    mount.unmount().unwrap();
    drop(mount);
    world.machine.take().unwrap().stop().unwrap();
    assert!(world.start(Options::default()));
    assert_eq!(fs::read(world.at("a")).unwrap(), b"bytes");
}

#[test]
fn a_dead_mount_of_ours_gives_way_and_one_of_others_does_not() {
    use rustix::mount::{MountFlags, UnmountFlags};
    let kinds =
        [("croft:1f", "fuse", true), ("other", "fuse.croft", true), ("other", "fuse", false)];
    for (source, kind, gives_way) in kinds {
        let Some(mut world) = World::new(Options::default()) else { return };
        world.mount.take().unwrap().unmount().unwrap();
        world.machine.take().unwrap().stop().unwrap();
        // As a daemon that was killed leaves it: nobody has the other end.
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&device);
        let data = format!("fd={fd},rootmode=40000,user_id=0,group_id=0");
        let data = std::ffi::CString::new(data).unwrap();
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        if let Err(errno) = rustix::mount::mount(source, &world.path, kind, flags, &*data) {
            skip(&format!("no right to mount here ({errno})"));
            return;
        }
        drop(device);
        assert_eq!(fs::read_dir(&world.path).unwrap_err().raw_os_error(), Some(107));
        assert_eq!(world.start(Options::default()), gives_way);
        if gives_way {
            fs::write(world.at("a"), b"bytes").unwrap();
        } else {
            rustix::mount::unmount(&world.path, UnmountFlags::DETACH).unwrap();
        }
    }
}
