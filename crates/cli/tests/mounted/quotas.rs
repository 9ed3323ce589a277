//! Nobody fills a cell: holes take nothing, and whoever has as much as they may have is told so while others go on.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
};

use crate::{
    cell::{Cell, can_mount, needs, needs_root, text},
    rights::run_as,
};

const ANN: u32 = 61_001;
const BEN: u32 = 61_002;

/// A mounted cell whose root is for all, and which can set shares.
fn cell() -> Option<Cell> {
    if !can_mount() || !needs_root() || !needs("setpriv") || !needs("fallocate") {
        return None;
    }
    let mut cell = Cell::idle(None);
    cell.init(&["--listen", "127.0.0.1"]);
    cell.start(&[]);
    fs::set_permissions(&cell.path, fs::Permissions::from_mode(0o777)).unwrap();
    Some(cell)
}

#[track_caller]
fn quota(cell: &Cell, words: &[&str]) -> String {
    let output = cell.ask(&[&["quota"], words].concat());
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn works(cell: &Cell, user: u32, line: &str) -> String {
    run_as(user, false, &cell.path, line).unwrap_or_else(|said| panic!("{line}: {said}"))
}

#[track_caller]
fn is_over(cell: &Cell, user: u32, line: &str) {
    let said = run_as(user, false, &cell.path, line).expect_err("it is beyond the share");
    assert!(said.contains("quota exceeded"), "{line}: {said}");
}

#[test]
fn a_file_of_an_exbyte_of_holes_takes_nothing_from_anybody() {
    let Some(cell) = cell() else { return };
    // As large as the disk beneath lets a file be, and an exbyte if it does.
    works(&cell, ANN, "truncate -s 1E huge || truncate -s 15T huge || truncate -s 1T huge");
    let huge = fs::metadata(cell.at("huge")).unwrap();
    assert!(huge.len() >= 1 << 40 && huge.blocks() < 1_024, "{} {}", huge.len(), huge.blocks());
    works(&cell, BEN, "head -c 1073741824 /dev/zero > whole; sync whole; test -s whole");
    works(&cell, ANN, "echo on > other; rm huge");
    let shown: serde_json::Value = serde_json::from_str(&quota(&cell, &["--json"])).unwrap();
    let used = |uid: u32| {
        let mut all = shown.as_array().unwrap().iter();
        all.find(|account| account["uid"] == uid).map(|account| account["used"]["bytes"].clone())
    };
    assert!(used(BEN).unwrap().as_u64().unwrap() >= 1 << 30, "{shown}");
    assert!(used(ANN).unwrap().as_u64().unwrap() < 1 << 20, "{shown}");
}

#[test]
fn beyond_a_share_of_bytes_writing_and_fallocate_are_refused_and_others_go_on() {
    let Some(cell) = cell() else { return };
    quota(&cell, &["--user", &ANN.to_string(), "--bytes", "8M"]);
    works(&cell, ANN, "head -c 3000000 /dev/zero > first");
    is_over(&cell, ANN, "head -c 100000000 /dev/zero > second");
    is_over(&cell, ANN, "fallocate -l 100M third");
    is_over(&cell, ANN, "fallocate -n -l 100M first");
    is_over(&cell, ANN, "while :; do head -c 50000 /dev/zero >> fourth || exit 1; done");
    works(&cell, BEN, "head -c 20000000 /dev/zero > ben; sync ben");
    // What goes makes room.
    works(&cell, ANN, "rm second fourth; rm -f third");
    works(&cell, ANN, "head -c 3000000 /dev/zero > again; sync again");
    quota(&cell, &["--user", &ANN.to_string(), "--usual"]);
    works(&cell, ANN, "head -c 20000000 /dev/zero > more; sync more");
}

#[test]
fn beyond_a_share_of_files_nothing_more_is_created_and_others_go_on() {
    let Some(cell) = cell() else { return };
    quota(&cell, &["--everybody", "--files", "50"]);
    works(&cell, ANN, "mkdir d; for n in $(seq 49); do : > d/$n || exit 1; done");
    is_over(&cell, ANN, ": > one-more");
    is_over(&cell, ANN, "mkdir one-more");
    is_over(&cell, ANN, "ln -s x one-more");
    works(&cell, BEN, "for n in $(seq 40); do : > ben$n || exit 1; done");
    works(&cell, ANN, "rm d/1; : > one-more");
    works(&cell, 0, "for n in $(seq 100); do : > root$n || exit 1; done");
}
