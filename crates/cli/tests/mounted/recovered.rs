//! Two of four machines are lost, disks and all, and `croft recover` lets the cell go on from one that is left.

use std::fs;

use crate::{
    cell::{Cell, Scratch, can_mount, text},
    several::names,
    spread::until,
};

fn status(cell: &Cell) -> String {
    text(&cell.ask(&["status"]).stdout)
}

#[test]
fn a_cell_that_has_lost_two_of_four_machines_is_recovered_and_goes_on() {
    if !can_mount() {
        return;
    }
    let mut cells = [Cell::idle(None), Cell::idle(None), Cell::idle(None), Cell::idle(None)];
    cells[0].init(&["--listen", "127.0.0.1"]);
    cells[0].start(&[]);
    for number in 1..4 {
        let code = text(&cells[0].ask(&["invite"]).stdout);
        let output = cells[number].ask(&["join", code.trim()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        cells[number].start(&[]);
    }
    until("growing", || cells.iter().all(|cell| status(cell).contains("of 4 members")));
    fs::create_dir(cells[2].at("before")).unwrap();
    assert_eq!(names(&cells[3].path), ["before"]);
    let scratch = Scratch::new();
    let key = scratch.0.join("root");
    fs::copy(cells[0].home.join("root"), &key).unwrap();
    let key = key.to_str().unwrap().to_owned();
    for cell in &mut cells[..2] {
        cell.kill();
        fs::remove_dir_all(&cell.home).unwrap();
    }
    // The one to go on from is the one that knows more, and the other says so.
    let output = cells[2].ask(&["recover", "--root", &key]);
    let is_behind = text(&output.stderr).contains("knows more");
    let (from, other) = if is_behind { (3, 2) } else { (2, 3) };
    let (three, four) = (&cells[from], &cells[other]);

    let output = three.ask(&["recover", "--root", &key]);
    let talk = text(&output.stderr);
    assert!(!output.status.success() && talk.contains("--accept-loss"), "{talk}");
    until("noticing that nothing was done", || status(three).contains("stalled"));
    let output = three.ask(&["recover", "--root", &key, "--accept-loss"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("RECOVERED"), "{}", text(&output.stderr));

    assert_eq!(names(&three.path), ["before"]);
    fs::create_dir(three.at("after")).unwrap();
    assert!(
        status(four).contains("recovery 1"),
        "it asks whether too few are left: {}",
        status(four)
    );
    let output = four.ask(&["recover", "--obey"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(names(&four.path), ["after", "before"]);
    fs::create_dir(four.at("again")).unwrap();
    assert_eq!(names(&three.path), ["after", "again", "before"]);
    let said = status(three);
    assert!(said.contains("recovered   once") && !said.contains("stalled"), "{said}");
    cells[other].stop();
    cells[from].restart(&[]);
    assert_eq!(names(&cells[from].path), ["after", "again", "before"]);
    cells[from].stop();
}
