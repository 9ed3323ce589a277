//! What goes wrong says what and where, with an errno or in words, and nothing is lost by it.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use rustix::io::Errno;

use crate::cell::{Cell, Scratch, can_mount, croft, is_root, needs_root, shell, text};

#[track_caller]
fn check_errno<T>(result: std::io::Result<T>, errno: Errno) {
    let error = result.err().expect("it can't be done");
    assert_eq!(Errno::from_io_error(&error), Some(errno), "{error}");
}

/// It ends with 1, and says all of this on standard error and nothing on standard output.
#[track_caller]
fn check_refused(output: &Output, said: &[&str]) {
    let talk = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{talk}");
    assert_eq!(text(&output.stdout), "");
    for words in said {
        assert!(talk.contains(words), "`{words}` is not in: {talk}");
    }
}

#[test]
fn a_name_of_256_bytes_is_too_long_for_whatever_wants_it_and_255_are_not() {
    let Some(mut cell) = Cell::new(&[]) else { return };
    let (long, fits) = ("x".repeat(256), "y".repeat(255));
    File::create(cell.at("a")).unwrap();
    check_errno(File::create(cell.at(&long)), Errno::NAMETOOLONG);
    check_errno(fs::create_dir(cell.at(&long)), Errno::NAMETOOLONG);
    check_errno(fs::rename(cell.at("a"), cell.at(&long)), Errno::NAMETOOLONG);
    check_errno(fs::hard_link(cell.at("a"), cell.at(&long)), Errno::NAMETOOLONG);
    check_errno(std::os::unix::fs::symlink("a", cell.at(&long)), Errno::NAMETOOLONG);
    check_errno(fs::metadata(cell.at(&long)), Errno::NAMETOOLONG);
    fs::rename(cell.at("a"), cell.at(&fits)).unwrap();
    cell.restart(&[]);
    let names: Vec<_> = fs::read_dir(&cell.path).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, [fits.as_str()]);
}

#[test]
fn a_path_too_long_is_refused_but_a_tree_may_be_as_deep_as_one_likes() {
    let Some(cell) = Cell::new(&[]) else { return };
    let name = "d".repeat(200);
    let line = format!(
        "for i in $(seq 30); do mkdir {name}; cd -P {name}; done; echo deep > f; cat f; mv f g; cat g"
    );
    assert_eq!(shell(&cell.path, &line), "deep\ndeep\n");
    let path = (0..30).fold(cell.path.clone(), |path, _| path.join(&name));
    check_errno(fs::metadata(&path), Errno::NAMETOOLONG);
    check_errno(File::create(path.join("h")), Errno::NAMETOOLONG);
    shell(&cell.path, "rm -r d*; test -z \"$(ls -A)\"");
}

#[test]
fn a_mount_point_must_be_there_and_be_a_directory() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let home = scratch.0.join("home");
    let home = home.to_str().unwrap();
    assert!(croft(&["init", "--dir", home]).status.success());
    let missing = scratch.0.join("missing");
    let missing = missing.to_str().unwrap();
    let output = croft(&["run", "--dir", home, "--mount", missing]);
    check_refused(&output, &["can't mount at", missing, "No such file or directory", "mkdir"]);
    let file = scratch.0.join("file");
    fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    let output = croft(&["run", "--dir", home, "--mount", file]);
    check_refused(&output, &["can't mount at", file]);
    assert_eq!(fs::read(file).unwrap(), b"");
}

#[test]
fn a_busy_mount_stays_and_says_so_until_it_is_free() {
    let Some(cell) = Cell::new(&[]) else { return };
    let path = cell.path.to_str().unwrap();
    let mut file = File::create(cell.at("a")).unwrap();
    check_refused(&cell.ask(&["umount", path]), &["can't unmount", path, "busy"]);
    assert!(cell.is_mounted());
    file.write_all(b"still here").unwrap();
    drop(file);
    let output = cell.ask(&["umount", path]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!cell.is_mounted());
    check_refused(&cell.ask(&["umount", path]), &["nothing of this machine is mounted at", path]);
    assert!(cell.ask(&["mount", path]).status.success());
    assert_eq!(fs::read(cell.at("a")).unwrap(), b"still here");
    check_refused(&cell.ask(&["mount", path]), &["mounted at", path, "already"]);
}

#[test]
fn a_machine_runs_once_and_the_second_one_leaves_the_first_alone() {
    let Some(cell) = Cell::new(&[]) else { return };
    fs::write(cell.at("a"), "first").unwrap();
    let other = Scratch::new();
    let output = cell.ask(&["run", "--mount", other.0.to_str().unwrap()]);
    check_refused(&output, &["another croft runs in", cell.home.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(cell.at("a")).unwrap(), "first");
    fs::write(cell.at("b"), "goes on").unwrap();
    let status = cell.ask(&["status"]);
    assert!(status.status.success());
    assert!(text(&status.stdout).contains(cell.path.to_str().unwrap()));
    let status = cell.ask(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["mounts"][0], cell.path.to_str().unwrap());
    assert!(status["group"]["failure"].is_null());
}

#[test]
fn a_machine_starts_although_the_directory_that_it_is_started_from_is_gone() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let script = "mkdir \"$1\" && cd \"$1\" && rmdir \"$1\" && shift && exec \"$@\"";
    let gone = scratch.0.join("gone").to_str().unwrap().to_owned();
    let mut cell = Cell::on(["sh", "-c", script, "sh", &gone].map(str::to_owned).to_vec());
    cell.init(&[]);
    cell.start(&[]);
    fs::write(cell.at("file"), "bytes").unwrap();
    cell.stop();
}

#[test]
fn commands_for_a_machine_that_is_not_there_say_how_to_get_one() {
    let scratch = Scratch::new();
    let home = scratch.0.join("home");
    let home = home.to_str().unwrap();
    let at = scratch.0.to_str().unwrap();
    check_refused(&croft(&["run", "--dir", home]), &["no machine lives in", home, "croft init"]);
    assert!(croft(&["init", "--dir", home]).status.success());
    check_refused(&croft(&["init", "--dir", home]), &["is a machine already", "croft run"]);
    check_refused(&croft(&["init", "--dir", at]), &["is not empty", at]);
    for words in [&["status"][..], &["mount", at], &["umount", at]] {
        let output = croft(&[words, &["--dir", home]].concat());
        check_refused(&output, &["no machine runs in", home, "croft run"]);
    }
}

#[test]
fn a_directory_that_can_not_be_written_is_named() {
    if !needs_root() {
        return;
    }
    let Some(mut cell) = Cell::new(&[]) else { return };
    fs::write(cell.at("a"), "kept").unwrap();
    cell.stop();
    let view = ReadOnly::new(&cell.home);
    let home = view.0.0.to_str().unwrap();
    let output = croft(&["run", "--dir", home]);
    check_refused(&output, &["can't write", home, "Read-only file system"]);
    let below = format!("{home}/below");
    check_refused(&croft(&["init", "--dir", &below]), &["can't make", &below]);
    drop(view);
    cell.start(&[]);
    assert_eq!(fs::read_to_string(cell.at("a")).unwrap(), "kept");
}

#[test]
fn a_read_only_view_of_a_mount_refuses_every_change() {
    if !needs_root() {
        return;
    }
    let Some(cell) = Cell::new(&[]) else { return };
    fs::write(cell.at("a"), "kept").unwrap();
    let view = ReadOnly::new(&cell.path);
    let at = |name: &str| view.0.0.join(name);
    check_errno(File::create(at("b")), Errno::ROFS);
    check_errno(fs::create_dir(at("b")), Errno::ROFS);
    check_errno(fs::rename(at("a"), at("b")), Errno::ROFS);
    check_errno(fs::hard_link(at("a"), at("b")), Errno::ROFS);
    check_errno(fs::remove_file(at("a")), Errno::ROFS);
    check_errno(std::os::unix::fs::chown(at("a"), Some(1), None), Errno::ROFS);
    assert_eq!(fs::read_to_string(at("a")).unwrap(), "kept");
}

/// A second view of a directory, in which nothing can be changed.
struct ReadOnly(Scratch);

impl ReadOnly {
    fn new(directory: &Path) -> ReadOnly {
        let view = ReadOnly(Scratch::new());
        let (from, to) = (directory.display(), view.0.0.display());
        shell(directory, &format!("mount --bind {from} {to}; mount -o remount,bind,ro {to}"));
        view
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0.0).status();
    }
}

#[test]
fn damage_in_the_log_is_told_and_not_passed_over_and_a_torn_end_is_mended() {
    let Some(mut cell) = Cell::new(&[]) else { return };
    for name in ["a", "b", "c", "d"] {
        fs::write(cell.at(name), name.repeat(100)).unwrap();
        File::open(&cell.path).unwrap().sync_all().unwrap();
    }
    cell.kill();
    let log = last_log(&cell.home);
    let good = fs::read(&log).unwrap();
    let end = good.iter().rposition(|byte| *byte != 0).unwrap();
    // In the midst: there are good records behind it, so it is damage.
    let mut bad = good.clone();
    bad[end / 2] ^= 0x40;
    fs::write(&log, &bad).unwrap();
    let (status, talk) = cell.try_start(&[]).unwrap_err();
    assert_eq!(status.code(), Some(1), "{talk}");
    assert!(talk.contains("is damaged") && talk.contains(log.to_str().unwrap()), "{talk}");
    assert_eq!(fs::read(&log).unwrap(), bad, "nobody touches what may still be mended");
    fs::write(&log, &good).unwrap();
    cell.start(&[]);
    for name in ["a", "b", "c", "d"] {
        assert_eq!(fs::read_to_string(cell.at(name)).unwrap(), name.repeat(100));
    }
    cell.kill();
    // What a power cut leaves: the last record is there in part, and was promised to nobody.
    let log = last_log(&cell.home);
    let mut torn = fs::read(&log).unwrap();
    torn.extend_from_slice(&good[..end.min(20)]);
    fs::write(&log, torn).unwrap();
    cell.start(&[]);
    assert_eq!(fs::read_dir(&cell.path).unwrap().count(), 4);
}

/// The piece of the log with the last decisions.
fn last_log(home: &Path) -> PathBuf {
    let pieces = fs::read_dir(home.join("log")).unwrap();
    let pieces = pieces.map(|piece| piece.unwrap().path());
    pieces.filter(|piece| fs::metadata(piece).unwrap().len() > 0).max().unwrap()
}

#[test]
fn what_lies_beneath_a_mount_point_is_hidden_and_comes_back() {
    if !can_mount() || !is_root() {
        return;
    }
    let mut cell = Cell::idle(None);
    cell.init(&[]);
    fs::write(cell.at("beneath"), "old").unwrap();
    cell.start(&[]);
    assert_eq!(fs::read_dir(&cell.path).unwrap().count(), 0);
    fs::write(cell.at("beneath"), "new").unwrap();
    cell.stop();
    assert_eq!(fs::read_to_string(cell.at("beneath")).unwrap(), "old");
}

#[test]
fn a_mount_that_a_dead_machine_has_left_behind_is_taken_over() {
    let Some(mut cell) = Cell::new(&[]) else { return };
    fs::write(cell.at("a"), "kept").unwrap();
    File::open(&cell.path).unwrap().sync_all().unwrap();
    rustix::process::kill_process(cell.pid(), rustix::process::Signal::KILL).unwrap();
    cell.wait();
    check_errno(fs::metadata(cell.at("a")), Errno::NOTCONN);
    cell.start(&[]);
    assert_eq!(fs::read_to_string(cell.at("a")).unwrap(), "kept");
}
