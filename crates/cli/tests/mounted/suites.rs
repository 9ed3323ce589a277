//! Suites that others wrote for any file system: pjdfstest and fsx.
//!
//! `cargo xtask test` puts them into `target/tools`. `CROFT_FSX_OPS` asks fsx for more;
//! `cargo xtask long fsx` does 100,000 in each mode.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    cell::{Cell, Scratch, can_mount, has, needs_root, skip, text},
    draw::number,
};

/// A tool, where `cargo xtask test` puts it or on the path.
fn tool(name: &str) -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin").join(name);
    if built.is_file() {
        return Some(built);
    }
    if has(name) {
        return Some(name.into());
    }
    skip(&format!("there is no {name}; `cargo xtask test` puts it into target/tools"));
    None
}

const PJDFSTEST: &str = "\
[features]
posix_fallocate = {}
rename_ctime = {}
utimensat = {}
utime_now = {}
[settings]
naptime = 0.01
allow_remount = false
[dummy_auth]
entries = [[\"nobody\", \"nogroup\"], [\"daemon\", \"daemon\"]]
";

#[test]
fn pjdfstest_finds_no_fault_and_skips_what_the_documents_say() {
    if !can_mount() || !needs_root() {
        return;
    }
    let Some(pjdfstest) = tool("pjdfstest") else { return };
    for options in [&[][..], &["--no-passthrough"]] {
        let Some(cell) = Cell::new(options) else { return };
        let config = cell.home.join("../pjdfstest.toml");
        fs::write(&config, PJDFSTEST).unwrap();
        let work = cell.at("work");
        fs::create_dir(&work).unwrap();
        // Another file system, for what does not go from one to the other.
        let beside = Scratch::new();
        fs::set_permissions(&beside.0, fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = Command::new(&pjdfstest);
        command.arg("-c").arg(&config).arg("-p").arg(&work).arg("-s").arg(&beside.0);
        let output = command.env("RUST_BACKTRACE", "0").output().unwrap();
        let said = text(&output.stdout);
        let failed: Vec<&str> = said.lines().filter(|line| line.ends_with("FAILED")).collect();
        assert_eq!(failed, [""; 0], "{said}{}", text(&output.stderr));
        assert!(said.contains("398 total"), "{said}");
        assert_eq!(skipped(&said), documented(), "docs/testing.md says what is skipped and why");
    }
}

fn skipped(said: &str) -> BTreeSet<String> {
    let line = |line: &str| {
        let (name, verdict) = line.split_once(char::is_whitespace)?;
        verdict.trim().starts_with("skipped").then(|| name.to_owned())
    };
    said.lines().filter_map(line).collect()
}

/// The rows of the table that is about it.
fn documented() -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/testing.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once("pjdfstest skips").expect("the page speaks of it");
    let rows = table.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let cells = rows.flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`'));
    cells.filter(|name| name.contains("::")).map(str::to_owned).collect()
}

// No operation is about no bytes at all: fsx takes the kernel's answer to `posix_fallocate` of nothing for a
// file system that has no such call, also on ext4.

/// The bytes of a new file are in memory while it is small.
const IN_MEMORY: &str = "flen = 65536\n[opsize]\nmin = 1\nmax = 16384\n";
/// Those of a large file, or of one that was opened again, are in a file of their own.
const IN_FILE: &str = "flen = 1048576\n[opsize]\nmin = 1\n";
const WEIGHTS: &str = "[weights]\ntruncate = 1.0\nposix_fallocate = 1.0\npunch_hole = 1.0\n\
    copy_file_range = 1.0\nposix_fadvise = 0.5\nsendfile = 0.5\n";
const SYNCS: &str = "fsync = 0.5\nfdatasync = 0.5\nclose_open = 0.5\ninvalidate = 0.5\n";

fn exercise(options: &[&str], settings: &str) {
    if !can_mount() {
        return;
    }
    let Some(fsx) = tool("fsx") else { return };
    let Some(mut cell) = Cell::new(options) else { return };
    let (count, seed) = (number("CROFT_FSX_OPS", 3_000), number("CROFT_FSX_SEED", 42));
    let config = cell.home.join("../fsx.toml");
    fs::write(&config, settings).unwrap();
    let mut command = Command::new(fsx);
    command.arg("-f").arg(&config).args(["-q", "-N", &count.to_string(), "-S", &seed.to_string()]);
    let output = command.arg("-P").arg(&cell.home).arg(cell.at("file")).output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "seed {seed}: {}\n{out}{err}", output.status);
    eprintln!("fsx: {count} operations from seed {seed}");
    let bytes = fs::read(cell.at("file")).unwrap();
    cell.restart(options);
    assert!(fs::read(cell.at("file")).unwrap() == bytes, "a restart changes nothing");
}

#[test]
fn fsx_finds_no_fault_in_a_small_file_in_memory() {
    exercise(&[], &format!("{IN_MEMORY}{WEIGHTS}"));
}

#[test]
fn fsx_finds_no_fault_in_a_small_file_that_is_synced_and_opened_again() {
    exercise(&[], &format!("{IN_MEMORY}{WEIGHTS}{SYNCS}"));
}

#[test]
fn fsx_finds_no_fault_in_a_large_file_that_the_kernel_reads_and_writes() {
    exercise(&[], &format!("{IN_FILE}{WEIGHTS}{SYNCS}"));
}

#[test]
fn fsx_finds_no_fault_in_a_large_file_that_the_machine_reads_and_writes() {
    exercise(&["--no-passthrough"], &format!("{IN_FILE}{WEIGHTS}{SYNCS}"));
}
