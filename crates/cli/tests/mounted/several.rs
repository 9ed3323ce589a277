//! Cells of several machines, each in a process of its own, on this computer's own addresses.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use rustix::process::{Signal, kill_process};

use crate::{
    cell::{Cell, Scratch, can_mount, croft, text},
    quickstart::Quickstart,
    spread::until,
};

pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn two_machines_that_are_set_up_by_hand_share_one_tree() {
    if !can_mount() {
        return;
    }
    let (mut one, mut two, three) = (Cell::idle(None), Cell::idle(None), Cell::idle(None));
    let output = one.ask(&["init", "--listen", "127.0.0.1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    one.start(&[]);
    fs::create_dir(one.at("early")).unwrap();

    let code = text(&one.ask(&["invite"]).stdout);
    let output = two.ask(&["join", code.trim()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = three.ask(&["join", code.trim()]);
    assert!(text(&output.stderr).contains("is used up"), "{}", text(&output.stderr));

    two.start(&[]);
    assert_eq!(names(&two.path), ["early"]);
    fs::create_dir(two.at("late")).unwrap();
    assert_eq!(names(&one.path), ["early", "late"]);
    two.stop();
    one.stop();
}

#[test]
fn what_a_machine_wrote_while_it_was_alone_can_be_read_by_others_and_keeps_its_time() {
    if !can_mount() {
        return;
    }
    let (mut one, mut two) = (Cell::idle(None), Cell::idle(None));
    one.init(&[]);
    one.start(&[]);
    // In memory until it is closed, and in a file of its own: nobody has said what others check them by.
    fs::write(one.at("few"), "few").unwrap();
    fs::write(one.at("more"), vec![7; 100_000]).unwrap();
    let times =
        |cell: &Cell| ["few", "more"].map(|name| fs::metadata(cell.at(name)).unwrap().mtime_nsec());
    let before = times(&one);
    one.restart(&["--listen", "127.0.0.1"]);
    let code = text(&one.ask(&["invite"]).stdout);
    let output = two.ask(&["join", code.trim()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    two.start(&[]);
    assert_eq!(fs::read(two.at("few")).unwrap(), b"few");
    assert_eq!(fs::read(two.at("more")).unwrap(), vec![7; 100_000]);
    assert_eq!((times(&one), times(&two)), (before, before));
    two.stop();
    one.stop();
}

#[test]
fn four_machines_go_on_when_one_is_killed_and_it_comes_back_by_itself() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let directory = scratch.0.join("quick");
    let mount = |name: &str| directory.join(name);
    let doctor = || {
        let home = directory.join("machine-1");
        croft(&["doctor", "--dir", home.to_str().unwrap()])
    };
    let mut quickstart = Quickstart::new(&directory, &["--mounts"]);
    assert!(quickstart.said[0].starts_with("a cell of 4 machines"), "{:?}", quickstart.said);
    let output = doctor();
    assert!(output.status.success(), "{}", text(&output.stdout));

    fs::create_dir(mount("mnt/before")).unwrap();
    assert_eq!(names(&mount("mnt-3")), ["before"]);
    kill_process(quickstart.pid(4), Signal::KILL).unwrap();
    quickstart.hear("machine 4 has ended");
    fs::create_dir(mount("mnt/without")).unwrap();
    assert_eq!(names(&mount("mnt-2")), ["before", "without"]);

    quickstart.hear("machine 4 runs again");
    assert_eq!(names(&mount("mnt-4")), ["before", "without"]);
    until("all being well", || doctor().status.success());
    quickstart.interrupt();
    assert!(!mount("mnt/before").exists() && !mount("mnt-4/before").exists(), "unmounted");

    let quickstart = Quickstart::new(&directory, &["--machines", "1"]);
    assert!(quickstart.said[0].starts_with("a cell of 4 machines"), "all that there are");
    assert_eq!(names(&mount("mnt")), ["before", "without"]);
    fs::create_dir(mount("mnt/last")).unwrap();
    fs::File::open(mount("mnt")).unwrap().sync_all().unwrap();
    // As if it were killed: each machine stops by itself, and what was synced is there.
    drop(quickstart);
    let is_over = |number| {
        let home = directory.join(format!("machine-{number}"));
        let status = croft(&["status", "--dir", home.to_str().unwrap()]);
        text(&status.stderr).contains("no machine runs")
    };
    until("ending without a parent", || (1..=4).all(is_over));
    assert!(!mount("mnt/last").exists(), "unmounted");
    let quickstart = Quickstart::new(&directory, &[]);
    assert_eq!(names(&mount("mnt")), ["before", "last", "without"]);
    quickstart.interrupt();
}
