//! Who may do what: owners, groups, further groups, and the bits that lend or guard.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
    process::Command,
};

use crate::cell::{Cell, can_mount, needs, needs_root, shell, text};

const ALICE: u32 = 61_001;
const BOB: u32 = 61_002;
const TEAM: u32 = 62_000;

/// Runs a line of shell as somebody else, who may also be in the team.
pub fn run_as(user: u32, is_in_team: bool, directory: &Path, line: &str) -> Result<String, String> {
    let (user, team) = (user.to_string(), TEAM.to_string());
    let groups = match is_in_team {
        true => vec!["--groups", &team],
        false => vec!["--clear-groups"],
    };
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user]).args(groups);
    // Of the shell's own kind, so that who stands in a directory needs no right to those above.
    let output = command.args(["sh", "-c", line]).current_dir(directory).output().unwrap();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

fn set(path: &Path, owner: u32, group: u32, mode: u32) {
    chown(path, Some(owner), Some(group)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// A mount whose root is for all.
fn cell() -> Option<Cell> {
    if !can_mount() || !needs_root() || !needs("setpriv") {
        return None;
    }
    let cell = Cell::new(&[])?;
    fs::set_permissions(&cell.path, fs::Permissions::from_mode(0o777)).unwrap();
    Some(cell)
}

#[track_caller]
fn check_denied(result: Result<String, String>) {
    let said = result.expect_err("it is not allowed");
    assert!(said.contains("denied") || said.contains("not permitted"), "{said}");
}

#[test]
fn further_groups_count_when_reading_writing_and_creating() {
    let Some(cell) = cell() else { return };
    fs::create_dir(cell.at("team")).unwrap();
    set(&cell.at("team"), ALICE, TEAM, 0o2770);
    let line = "umask 007; echo hello > team/a; mkdir team/d; cat team/a";
    assert_eq!(run_as(ALICE, true, &cell.path, line).unwrap(), "hello\n");
    check_denied(run_as(BOB, false, &cell.path, "cat team/a"));
    check_denied(run_as(BOB, false, &cell.path, "echo > team/b"));
    let line = "echo too >> team/a; cat team/a; echo b > team/d/b; mv team/d/b team/c; rm team/c";
    assert_eq!(run_as(BOB, true, &cell.path, line).unwrap(), "hello\ntoo\n");
    // Both are of the directory's group, and the directory lends that on.
    let meta = fs::metadata(cell.at("team/a")).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (ALICE, TEAM));
    assert_eq!(fs::metadata(cell.at("team/d")).unwrap().gid(), TEAM);
    assert_eq!(mode(&cell.at("team/d")) & 0o2000, 0o2000);
    // To give a file to a group one has to be in it.
    run_as(ALICE, true, &cell.path, "touch mine; chgrp 62000 mine").unwrap();
    check_denied(run_as(ALICE, false, &cell.path, "touch other; chgrp 62000 other"));
    check_denied(run_as(ALICE, true, &cell.path, "chown 61002 mine"));
}

#[test]
fn in_a_sticky_directory_only_owners_remove_and_move() {
    let Some(cell) = cell() else { return };
    fs::create_dir(cell.at("tmp")).unwrap();
    set(&cell.at("tmp"), 0, 0, 0o1777);
    run_as(ALICE, false, &cell.path, "echo a > tmp/a; chmod 666 tmp/a; mkdir tmp/d").unwrap();
    run_as(BOB, false, &cell.path, "echo more >> tmp/a; echo b > tmp/b").unwrap();
    check_denied(run_as(BOB, false, &cell.path, "rm -f tmp/a"));
    check_denied(run_as(BOB, false, &cell.path, "mv tmp/a tmp/c"));
    check_denied(run_as(BOB, false, &cell.path, "mv -f tmp/b tmp/a"));
    check_denied(run_as(BOB, false, &cell.path, "rmdir tmp/d"));
    run_as(ALICE, false, &cell.path, "mv tmp/a tmp/c; rm tmp/c; rmdir tmp/d").unwrap();
}

#[test]
fn the_bits_that_lend_an_identity_go_when_somebody_else_writes() {
    let Some(cell) = cell() else { return };
    for (size, way) in [(10, "echo x >> f"), (300_000, "echo x >> f"), (10, "truncate -s 5 f")] {
        let path = cell.at("f");
        fs::write(&path, vec![b'x'; size]).unwrap();
        set(&path, ALICE, ALICE, 0o6777);
        assert_eq!(mode(&path), 0o6777);
        run_as(BOB, false, &cell.path, way).unwrap();
        assert_eq!(mode(&path), 0o777, "{size} bytes, {way}");
        // The superuser's writes leave them.
        set(&path, ALICE, ALICE, 0o6777);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"y").unwrap();
        assert_eq!(mode(&path), 0o6777);
        // A new owner does not.
        chown(&path, Some(BOB), None).unwrap();
        assert_eq!(mode(&path), 0o777);
        fs::remove_file(&path).unwrap();
    }
    let line = "touch g; chmod 2755 g; stat -c %a g; chgrp 61001 g; stat -c %a g";
    assert_eq!(run_as(ALICE, true, &cell.path, line).unwrap(), "2755\n755\n");
}

#[test]
fn they_go_in_whichever_way_somebody_else_changes_the_bytes() {
    let Some(cell) = cell() else { return };
    let ways = [
        "echo x >> f",
        "truncate -s 5000 f",
        "truncate -s 500000 f",
        ": > f",
        "fallocate -l 400000 f",
        "fallocate --keep-size -l 400000 f",
        "fallocate --punch-hole -o 0 -l 4096 f",
        "fallocate --zero-range -o 0 -l 8192 f",
        "dd if=f of=f bs=4096 count=1 seek=1 conv=notrunc status=none",
    ];
    // The group's bit stays to its members where nobody of it may run the file, as on a local disk.
    let modes = [(0o6666, false, 0o666), (0o6676, true, 0o676), (0o6766, false, 0o766)];
    let modes = modes.into_iter().chain([(0o6777, false, 0o777), (0o2666, true, 0o2666)]);
    for (before, is_in_team, after) in modes {
        for (size, way) in
            [10_000, 300_000].into_iter().flat_map(|size| ways.map(|way| (size, way)))
        {
            let path = cell.at("f");
            fs::write(&path, vec![b'x'; size]).unwrap();
            set(&path, ALICE, TEAM, before);
            run_as(BOB, is_in_team, &cell.path, way).unwrap();
            assert_eq!(mode(&path), after, "{before:o}, {size} bytes, {way}");
            fs::remove_file(&path).unwrap();
        }
    }
    // The superuser changes nothing but the bytes.
    let path = cell.at("f");
    for way in ways {
        fs::write(&path, [b'x'; 10_000]).unwrap();
        set(&path, ALICE, TEAM, 0o6777);
        shell(&cell.path, way);
        assert_eq!(mode(&path), 0o6777, "{way}");
    }
}

#[test]
fn they_go_on_every_machine_when_somebody_writes_through_one() {
    let Some(one) = can_mount().then(Cell::open).flatten().filter(|_| needs_root()) else { return };
    let mut other = Cell::idle(None);
    let code = text(&one.ask(&["invite"]).stdout);
    assert!(other.ask(&["join", code.trim()]).status.success());
    other.start(&[]);
    fs::set_permissions(&one.path, fs::Permissions::from_mode(0o777)).unwrap();
    let ways = ["echo x >> f", "truncate -s 5000 f", ": > f", "fallocate -l 40000000 f"];
    // The larger one is live where it was written: the kernel there writes it by itself.
    for (size, way) in [10_000, 20 << 20].into_iter().flat_map(|size| ways.map(|way| (size, way))) {
        for (writer, reader) in [(&one, &other), (&other, &one)] {
            fs::write(one.at("f"), vec![b'x'; size]).unwrap();
            set(&one.at("f"), ALICE, ALICE, 0o6777);
            assert_eq!(mode(&reader.at("f")), 0o6777);
            run_as(BOB, false, &writer.path, way).unwrap();
            assert_eq!(mode(&writer.at("f")), 0o777, "{size} bytes, {way}");
            assert_eq!(mode(&reader.at("f")), 0o777, "{size} bytes, {way}");
            fs::remove_file(one.at("f")).unwrap();
        }
    }
}

#[test]
fn a_directory_is_searched_listed_and_changed_by_three_different_bits() {
    let Some(cell) = cell() else { return };
    fs::create_dir(cell.at("d")).unwrap();
    fs::write(cell.at("d/f"), "f").unwrap();
    set(&cell.at("d"), ALICE, ALICE, 0o711);
    assert_eq!(run_as(BOB, false, &cell.path, "cat d/f").unwrap(), "f");
    check_denied(run_as(BOB, false, &cell.path, "ls d"));
    set(&cell.at("d"), ALICE, ALICE, 0o744);
    assert_eq!(run_as(BOB, false, &cell.path, "ls d").unwrap_or_default(), "f\n");
    check_denied(run_as(BOB, false, &cell.path, "cat d/f"));
    set(&cell.at("d"), ALICE, ALICE, 0o755);
    check_denied(run_as(BOB, false, &cell.path, "rm -f d/f"));
    run_as(ALICE, false, &cell.path, "rm -f d/f").unwrap();
}
