//! Large files that the kernel of one machine reads and writes by itself, while others have them open too.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::{FileExt, PermissionsExt, chown},
};

use crate::{
    cell::{Cell, Scratch, can_mount, needs, needs_root},
    rights::run_as,
    spread::{Spread, until},
    users::{ALICE, TEAM, ask},
    wires::Wires,
};

/// So much is worth it.
const LARGE: usize = 16 << 20;

/// The five bytes at an offset.
fn five(file: &File, offset: u64) -> std::io::Result<[u8; 5]> {
    let mut bytes = [0; 5];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

#[test]
fn a_large_file_that_a_killed_machine_had_open_can_be_replaced_and_is_all_there_when_that_is_back()
{
    if !can_mount() || !needs_root() {
        return;
    }
    let mut spread = Spread::new(Wires::new(4), 4);
    let names = ["large", "removed", "replaced"];
    names.iter().for_each(|name| fs::write(spread.at(1, name), vec![7; LARGE]).unwrap());
    let open = |machine, name| {
        OpenOptions::new().read(true).write(true).open(spread.at(machine, name)).unwrap()
    };
    let [home, removed, replaced] = names.map(|name| open(1, name));
    let there = open(2, "large");
    home.write_all_at(b"first", 10).unwrap();
    assert_eq!(&five(&there, 10).unwrap(), b"first");
    there.write_all_at(b"there", 20).unwrap();
    assert_eq!(&five(&home, 20).unwrap(), b"there");
    home.write_all_at(b"again", 10).unwrap();

    spread.kill(1);
    // Nobody knows what has become of it meanwhile, and nobody is told old bytes.
    let failed = five(&there, 10).unwrap_err();
    assert_ne!(failed.kind(), std::io::ErrorKind::UnexpectedEof, "{failed}");
    assert_eq!(fs::metadata(spread.at(3, "large")).unwrap().len(), LARGE as u64);
    fs::remove_file(spread.at(3, "removed")).unwrap();
    fs::write(spread.at(3, "new"), "new").unwrap();
    fs::rename(spread.at(3, "new"), spread.at(3, "replaced")).unwrap();
    // The kernel lets whoever has it open there go on, though nobody is there.
    home.write_all_at(b"later", 30).unwrap();
    drop((removed, replaced));

    spread.machines[1].start(&[]);
    until("its being there again", || five(&there, 10).is_ok());
    assert_eq!(&five(&there, 10).unwrap(), b"again");
    there.write_all_at(b"after", 40).unwrap();
    for machine in 0..4 {
        let bytes = fs::read(spread.at(machine, "large")).unwrap();
        assert_eq!(bytes.len(), LARGE);
        let all = [10, 20, 30, 40].map(|at| &bytes[at..at + 5]);
        assert_eq!(all, [b"again", b"there", b"later", b"after"], "machine {machine}");
        assert_eq!(fs::read_to_string(spread.at(machine, "replaced")).unwrap(), "new");
        assert!(!spread.at(machine, "removed").exists());
    }
    spread.await_well();

    // A program of before goes on all the same: in vain, but what it writes is kept.
    home.write_all_at(b"alone", 50).unwrap();
    assert_eq!(&five(&there, 50).unwrap(), &[7; 5]);
    until("its being kept", || spread.lost(1) == 1);
    home.write_all_at(b"again", 60).unwrap();
    let recovery = fs::read_dir(spread.machines[1].home.join("recovery")).unwrap();
    let kept = fs::read(recovery.last().unwrap().unwrap().path()).unwrap();
    assert_eq!((&kept[50..55], &kept[60..65]), (&b"alone"[..], &b"again"[..]));
}

#[test]
fn what_programs_of_a_killed_machine_go_on_to_write_is_seen_by_all_while_nobody_else_writes() {
    if !can_mount() || !needs_root() {
        return;
    }
    let (mut one, mut two) = (Cell::idle(None), Cell::idle(None));
    ask(&one, &["init", "--listen", "127.0.0.1"]);
    one.start(&[]);
    let code = ask(&one, &["invite"]);
    ask(&two, &["join", code.trim()]);
    two.start(&[]);
    fs::write(one.at("large"), vec![7; LARGE]).unwrap();
    let home = OpenOptions::new().read(true).write(true).open(one.at("large")).unwrap();
    one.kill();
    one.start(&[]);
    until("its being there again", || fs::metadata(two.at("large")).is_ok());
    let there = File::open(two.at("large")).unwrap();
    assert_eq!(&five(&there, 0).unwrap(), &[7; 5]);
    let end = LARGE as u64 + 100;
    home.write_all_at(b"later", end).unwrap();
    until("the later end", || fs::metadata(two.at("large")).unwrap().len() == end + 5);
    assert_eq!(&five(&there, end).unwrap(), b"later");
    drop((home, there));
    two.stop();
    one.stop();
}

#[test]
fn a_home_that_stood_still_for_longer_than_its_session_tells_all_that_was_written_meanwhile() {
    if !can_mount() || !needs_root() {
        return;
    }
    let mut spread = Spread::new(Wires::new(4), 4);
    fs::write(spread.at(1, "large"), vec![7; LARGE]).unwrap();
    let home = OpenOptions::new().read(true).write(true).open(spread.at(1, "large")).unwrap();
    home.write_all_at(b"first", LARGE as u64).unwrap();
    let end = LARGE as u64 + 100;
    {
        let _frozen = spread.freeze(1);
        spread.let_others();
        // It has something that others want, so its session ends.
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(spread.at(2, "large"), mode).unwrap();
        home.write_all_at(b"still", end).unwrap();
    }
    let there = OpenOptions::new().read(true).write(true).open(spread.at(2, "large")).unwrap();
    assert_eq!(&five(&there, LARGE as u64).unwrap(), b"first");
    assert_eq!(&five(&there, end).unwrap(), b"still");
    home.write_all_at(b"after", end + 100).unwrap();
    drop(home);
    until("the end", || fs::metadata(spread.at(3, "large")).unwrap().len() == end + 105);
    there.write_all_at(b"there", 20).unwrap();
    for machine in 0..4 {
        let bytes = fs::read(spread.at(machine, "large")).unwrap();
        let all = [20, LARGE, LARGE + 100, LARGE + 200].map(|at| &bytes[at..at + 5]);
        assert_eq!(all, [b"there", b"first", b"still", b"after"], "machine {machine}");
    }
    spread.await_well();
}

#[test]
fn a_machine_of_one_user_has_another_write_what_that_user_may() {
    if !can_mount() || !needs_root() || !needs("setpriv") {
        return;
    }
    let keys = Scratch::new();
    let alice = keys.0.join("alice").to_str().unwrap().to_owned();
    let (mut one, mut two) = (Cell::idle(None), Cell::idle(None));
    ask(&one, &["init", "--listen", "127.0.0.1"]);
    one.start(&[]);
    ask(&one, &["user", "add", "alice", "--uid", "61001", "--groups", "62000", "--file", &alice]);
    let code = ask(&one, &["invite", "--users", "alice"]);
    ask(&two, &["join", code.trim()]);
    two.start(&[]);
    ask(&two, &["user", "agree", &alice]);

    fs::write(one.at("team"), vec![b'.'; LARGE]).unwrap();
    chown(one.at("team"), None, Some(TEAM)).unwrap();
    fs::set_permissions(one.at("team"), fs::Permissions::from_mode(0o664)).unwrap();
    let here = OpenOptions::new().read(true).write(true).open(one.at("team")).unwrap();
    here.write_all_at(b"hello", 10).unwrap();
    let line = "tail -c +11 team | head -c 5; printf alice | dd of=team bs=1 seek=20 conv=notrunc status=none";
    assert_eq!(run_as(ALICE, true, &two.path, line).unwrap(), "hello");
    assert_eq!(&five(&here, 20).unwrap(), b"alice");
    // The superuser there is nobody here.
    let refused = OpenOptions::new().write(true).open(two.at("team")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::PERM.raw_os_error()), "{refused}");
    drop(here);
    two.stop();
    one.stop();
}
