//! Two of four machines are lost, disks and all, and `croft recover` lets the cell go on from one that is left.

use std::fs;

use crate::{
    cell::{Cell, Scratch, can_mount, text},
    several::names,
    spread::{Spread, until},
    wires::Wires,
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

#[test]
fn a_recovery_while_a_quorum_was_only_cut_off_is_a_fork_that_people_see_and_end() {
    let Some(wires) = can_mount().then(|| Wires::real(4)).flatten() else { return };
    let mut spread = Spread::new(wires, 4);
    fs::create_dir(spread.at(2, "before")).unwrap();
    fs::File::open(spread.at(2, "before")).unwrap().sync_all().unwrap();
    spread.let_others();
    // Two are cut off from everybody, and the owner of the root key believes one of them to be all that is left.
    for machine in [2, 3] {
        spread.wires.cut(machine);
    }
    until("nothing is decided", || status(&spread.machines[2]).contains("stalled"));
    let root = spread.machines[0].home.with_extension("root");
    let words = ["recover", "--root", root.to_str().unwrap(), "--accept-loss"];
    let output = spread.machines[2].ask(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for machine in [2, 3] {
        spread.wires.heal(machine);
    }
    // The other three are enough to decide: they do not follow, and go on.
    let others = [0, 1, 3];
    let fork = "it is not followed here, since so many members answer that they decide";
    for machine in others {
        let cell = &spread.machines[machine];
        until("the fork is seen", || status(cell).contains(fork));
        let advice = text(&cell.ask(&["doctor"]).stdout);
        assert!(advice.contains("somebody else has had the root key"), "{advice}");
    }
    assert!(status(&spread.machines[2]).contains("recovered   once"));
    fs::create_dir(spread.at(1, "by-the-others")).unwrap();
    assert_eq!(names(&spread.machines[0].path), ["before", "by-the-others"]);
    // People have them follow, and there is one group again.
    for machine in others {
        let output = spread.machines[machine].ask(&["recover", "--obey"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let is_one = |cell: &Cell| {
        let said = status(cell);
        said.contains("of 4 members") && said.contains("after recovery 1") && !said.contains("fork")
    };
    until("there is one group again", || spread.machines.iter().all(is_one));
}
