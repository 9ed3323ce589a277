//! Two of four voters are lost for good: the cell goes on from a survivor, and whoever comes back follows.

use std::{fs, path::Path};

use super::{
    cells::{ANYWHERE, HOUR, hasty_cell, key_of, members, start_hasty, until},
    *,
};
use crate::{Failure, Recovered, Recoverer, Root};

/// Without waiting for promises that nobody has made.
fn recoverer(machine: &Machine) -> Recoverer {
    Recoverer { quiet: std::time::Duration::ZERO, ..machine.recoverer() }
}

fn refusal(machine: &Machine, is_accepted: bool) -> String {
    recoverer(machine).recover(is_accepted, None).unwrap_err().to_string()
}

/// What the root key in a file says to what is to be signed here.
fn signed(machine: &Machine, root: &Path) -> Result<String, Failure> {
    let Recovered::Sign(what) = recoverer(machine).recover(true, None).unwrap() else {
        panic!("it is not signed yet");
    };
    Root::open(root, &mut |_| panic!("it lies open"))?.rescue(machine.directory(), &what)
}

#[track_caller]
fn recover(machine: &Machine, root: &Path) -> Recovered {
    let rescue = signed(machine, root).unwrap();
    recoverer(machine).recover(true, Some(&rescue)).unwrap()
}

fn join_hasty(inviting: &Home, name: &str) -> (Home, Machine) {
    let home = Home::new(name);
    let code = Machine::invite(&inviting.0, HOUR).unwrap();
    Machine::join(&home.0, code.reveal(), ANYWHERE).unwrap();
    let machine = start_hasty(&home);
    (home, machine)
}

#[test]
fn a_cell_that_has_lost_two_of_four_voters_goes_on_from_a_survivor() {
    let mut cell = hasty_cell("lost", 4);
    let kept = Home::new("lost-root");
    fs::create_dir(&kept.0).unwrap();
    let root = kept.0.join("root");
    fs::copy(cell[0].0.0.join("root"), &root).unwrap();
    let issuer = kept.0.join("issuer");
    fs::copy(cell[0].0.0.join("issuer"), &issuer).unwrap();
    let work = mkdir(&cell[2].1, &FileId::ROOT, "work");
    for number in 0..20 {
        mkdir(&cell[2].1, &work, &format!("{number:02}"));
    }
    let before = names(&cell[3].1, &work);
    let why = refusal(&cell[2].1, true);
    assert!(why.contains("4 of 4 members of the group answer"), "{why}");
    // The founder and one more, disks and all.
    for (home, machine) in cell.drain(..2) {
        drop(machine);
        drop(home);
    }
    let (third, three) = &cell[0];
    let why = signed(three, &third.0.join("root")).unwrap_err().to_string();
    assert!(why.contains("--root"), "{why}");
    let why = signed(three, &third.0.join("key")).unwrap_err().to_string();
    assert!(why.contains("not the root key of this cell"), "{why}");
    let why = refusal(three, false);
    assert!(why.contains("2 of 4 members") && why.contains("--accept-loss"), "{why}");
    assert_eq!(members(three), 4, "nothing has happened yet");
    let waiting = three.recoverer().recover(true, None).unwrap();
    assert!(matches!(waiting, Recovered::Wait(1..=30)), "{waiting:?}");
    let Recovered::Done { number, survivors, told, .. } = recover(three, &root) else {
        panic!("nobody waits");
    };
    assert_eq!((number, &survivors[..], told), (1, &[key_of(&cell[1].1)][..], 1));
    assert_eq!(members(three), 1);
    obey(&cell[1].1);
    assert_eq!(names(three, &work), before);
    mkdir(three, &work, "after");
    assert_eq!(names(&cell[1].1, &work).len(), 21, "the other survivor follows");
    mkdir(&cell[1].1, &work, "by-four");
    let why = refusal(three, true);
    assert!(why.contains("1 of 1 members"), "it is not done twice: {why}");
    // With two that join there are four again.
    fs::copy(&issuer, third.0.join("issuer")).unwrap();
    let more = ["lost-5", "lost-6"].map(|name| join_hasty(&cell[0].0, name));
    cell.extend(more);
    until("growing", || cell.iter().all(|(_, machine)| members(machine) == 4));
    for (_, machine) in &cell {
        let rescues = machine.standing().group.rescues;
        assert_eq!(rescues.iter().map(|rescue| rescue.number).collect::<Vec<_>>(), [1]);
    }
    // The survivor is one of four now, and can be away.
    let (third, three) = cell.remove(0);
    three.stop().unwrap();
    mkdir(&cell[1].1, &work, "without");
    assert_eq!(names(&cell[2].1, &work).len(), 23);
    let three = start_hasty(&third);
    assert_eq!(names(&three, &work).len(), 23);
    cell.push((third, three));
    for (_, machine) in cell {
        machine.stop().unwrap();
    }
}

#[test]
fn members_that_were_given_up_and_come_back_follow_and_can_not_fork() {
    let mut cell = hasty_cell("back", 4);
    let root = cell[0].0.0.join("root");
    let work = mkdir(&cell[0].1, &FileId::ROOT, "work");
    mkdir(&cell[0].1, &work, "early");
    assert_eq!(names(&cell[3].1, &work), ["early"]);
    // Three stop; their disks are well, but nobody knows.
    let homes: Vec<Home> = cell
        .drain(1..)
        .map(|(home, machine)| {
            drop(machine);
            home
        })
        .collect();
    let (first, one) = cell.remove(0);
    assert!(matches!(recover(&one, &root), Recovered::Done { number: 1, .. }));
    mkdir(&one, &work, "alone");
    // While it is away they would be a quorum, had they not been given up. Two of them hear of it in time.
    let two = start_hasty(&homes[0]);
    let three = start_hasty(&homes[1]);
    for machine in [&two, &three] {
        assert!(has_own_vote(machine), "too few answer, but not for long");
        obey(machine);
        until("it obeys", || !has_own_vote(machine));
    }
    assert_eq!(names(&two, &work), ["alone", "early"]);
    one.stop().unwrap();
    let four = start_hasty(&homes[2]);
    // It is told by those that were told.
    obey(&four);
    until("it obeys", || !has_own_vote(&four));
    let one = start_hasty(&first);
    mkdir(&four, &work, "late");
    let all = [one, two, three, four];
    for machine in &all {
        assert_eq!(names(machine, &work), ["alone", "early", "late"]);
    }
    until("growing", || all.iter().all(|machine| members(machine) == 4 && has_own_vote(machine)));
    for machine in all {
        machine.stop().unwrap();
    }
}

/// Has a machine follow a recovery at once, as soon as it has heard of it.
fn obey(machine: &Machine) {
    until("it is told", || machine.standing().group.fork.is_some());
    machine.recoverer().obey().unwrap();
}

fn has_own_vote(machine: &Machine) -> bool {
    let standing = machine.standing();
    standing.machines.iter().any(|one| one.is_this && one.is_member)
}
