//! A machine in a directory of its own: what is done is there after a start, and bad homes are told apart.

use std::{fs, path::PathBuf};

use base::FileId;
use client::{Call, Reply};
use directory::{Act, Actor, Birth};
use lease::Name;

use super::{Machine, replace};

mod cells;
mod codes;
mod flood;
mod fsck;
mod liars;
mod powers;
mod recovery;
mod revoked;
mod users;

/// A directory that goes with the test.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let path =
            std::env::temp_dir().join(format!("croft-machine-{name}-{}", std::process::id()));
        _ = fs::remove_dir_all(&path);
        Home(path)
    }

    fn init(name: &str) -> Home {
        let home = Home::new(name);
        Machine::init(&home.0, None).unwrap();
        home
    }

    fn refusal(&self) -> String {
        Machine::start(&self.0).err().expect("it does not start").to_string()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn mkdir(machine: &Machine, directory: &FileId, name: &str) -> FileId {
    let name = Name::new(name.as_bytes()).unwrap();
    let birth = Birth::default();
    let act = Act::Mkdir { directory: directory.clone(), name, mode: 0o755, birth };
    match machine.desk().call(&Actor::ROOT, Call::Do(act)) {
        Ok(Reply::Entry(entry, _)) => entry.file,
        other => panic!("no directory: {other:?}"),
    }
}

fn names(machine: &Machine, directory: &FileId) -> Vec<String> {
    let list = Call::List { directory: directory.clone(), after: None, count: usize::MAX };
    match machine.desk().call(&Actor::ROOT, list) {
        Ok(Reply::Names { entries, .. }) => {
            entries.iter().map(|(name, _)| name.to_string()).collect()
        }
        other => panic!("no names: {other:?}"),
    }
}

#[test]
fn what_was_done_is_there_after_a_clean_stop() {
    let home = Home::init("clean");
    let machine = Machine::start(&home.0).unwrap();
    let work = mkdir(&machine, &FileId::ROOT, "work");
    for number in 0..3_000 {
        mkdir(&machine, &work, &format!("{number:04}"));
    }
    machine.stop().unwrap();
    let machine = Machine::start(&home.0).unwrap();
    // Before anything is asked: answers, too, are decisions.
    let group = machine.standing().group;
    assert_eq!(names(&machine, &FileId::ROOT), ["work"]);
    let expected: Vec<String> = (0..3_000).map(|number| format!("{number:04}")).collect();
    assert_eq!(names(&machine, &work), expected);
    assert_eq!(group.stored, group.height, "nothing had to be applied again");
}

#[test]
fn what_was_synced_is_there_after_the_process_ends_without_a_word() {
    let home = Home::init("abrupt");
    let machine = Machine::start(&home.0).unwrap();
    let work = mkdir(&machine, &FileId::ROOT, "work");
    for number in 0..100 {
        mkdir(&machine, &work, &number.to_string());
    }
    machine.desk().call(&Actor::ROOT, Call::Sync { handle: None }).unwrap();
    // A copy of its files at this moment is what a dead process leaves behind.
    let left = Home::new("abrupt-left");
    let copied = std::process::Command::new("cp").arg("-r").args([&home.0, &left.0]).status();
    assert!(copied.unwrap().success());
    machine.stop().unwrap();
    let machine = Machine::start(&left.0).unwrap();
    assert_eq!(names(&machine, &work).len(), 100);
}

#[test]
fn a_second_machine_in_the_same_directory_is_refused() {
    let home = Home::init("second");
    let _machine = Machine::start(&home.0).unwrap();
    let refusal = home.refusal();
    assert!(refusal.contains("another croft runs"), "{refusal}");
}

#[test]
fn a_directory_that_is_no_home_is_refused_and_says_how_to_make_one() {
    let home = Home::new("none");
    let refusal = home.refusal();
    assert!(refusal.contains("croft init"), "{refusal}");
}

#[test]
fn a_home_is_made_only_where_nothing_is() {
    let home = Home::init("twice");
    let refusal = Machine::init(&home.0, None).unwrap_err().to_string();
    assert!(refusal.contains("is a machine already"), "{refusal}");
    let other = Home::new("full");
    fs::create_dir(&other.0).unwrap();
    fs::write(other.0.join("precious"), "data").unwrap();
    let refusal = Machine::init(&other.0, None).unwrap_err().to_string();
    assert!(refusal.contains("is not empty"), "{refusal}");
    assert_eq!(fs::read(other.0.join("precious")).unwrap(), b"data");
}

#[test]
fn another_format_and_a_damaged_identity_are_told_apart() {
    let home = Home::init("format");
    let path = home.0.join("croft.json");
    replace(&path, br#"{"croft": "", "format": 99}"#).unwrap();
    let refusal = home.refusal();
    assert!(refusal.contains("format 99"), "{refusal}");
    replace(&path, b"not json").unwrap();
    let refusal = home.refusal();
    assert!(refusal.contains("is damaged"), "{refusal}");
}

#[test]
fn a_damaged_record_in_the_log_stops_the_start_and_names_the_place() {
    let home = Home::init("damage");
    let machine = Machine::start(&home.0).unwrap();
    let work = mkdir(&machine, &FileId::ROOT, "work");
    for number in 0..20 {
        mkdir(&machine, &work, &number.to_string());
        machine.desk().call(&Actor::ROOT, Call::Sync { handle: None }).unwrap();
    }
    let left = Home::new("damage-left");
    let copied = std::process::Command::new("cp").arg("-r").args([&home.0, &left.0]).status();
    assert!(copied.unwrap().success());
    drop(machine);
    let log = fs::read_dir(left.0.join("log")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, bytes).unwrap();
    let refusal = left.refusal();
    assert!(refusal.contains("is damaged"), "{refusal}");
}
