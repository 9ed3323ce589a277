//! Cells of several machines, each in a process of its own, on this computer's own addresses.

use std::{fs, path::Path};

use crate::cell::{Cell, can_mount, text};

fn names(directory: &Path) -> Vec<String> {
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
    assert!(text(&output.stderr).contains("has used this invitation"), "{}", text(&output.stderr));

    two.start(&[]);
    assert_eq!(names(&two.path), ["early"]);
    fs::create_dir(two.at("late")).unwrap();
    assert_eq!(names(&one.path), ["early", "late"]);
    two.stop();
    one.stop();
}
