//! Machines that act for named users only, as programs on them see it.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
};

use crate::{
    cell::{Cell, Scratch, can_mount, needs, needs_root, text},
    rights::run_as,
    spread::until,
};

pub const ALICE: u32 = 61_001;
const BOB: u32 = 61_002;
pub const TEAM: u32 = 62_000;

/// Runs `croft` on a machine, which has to succeed; what it prints.
#[track_caller]
pub fn ask(cell: &Cell, words: &[&str]) -> String {
    let output = cell.ask(words);
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn check_forbidden<T: std::fmt::Debug>(result: std::io::Result<T>) {
    let error = result.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::PERM.raw_os_error()), "{error}");
}

#[test]
fn a_machine_of_one_user_changes_nothing_for_anybody_else_the_superuser_included() {
    if !can_mount() || !needs_root() || !needs("setpriv") {
        return;
    }
    let keys = Scratch::new();
    let key = |name: &str| keys.0.join(name).to_str().unwrap().to_owned();
    let (root, alice) = (key("root"), key("alice"));
    let (mut one, mut two) = (Cell::idle(None), Cell::idle(None));
    ask(&one, &["init", "--listen", "127.0.0.1", "--users", "root"]);
    one.start(&[]);
    // A machine that acts for nobody is not even told what is there.
    let refused = fs::create_dir(one.at("early")).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    ask(&one, &["user", "add", "root", "--uid", "0", "--file", &root]);
    let words = ["user", "add", "alice", "--uid", "61001", "--groups", "62000", "--file", &alice];
    ask(&one, &words);
    assert_eq!(fs::metadata(&alice).unwrap().permissions().mode() & 0o777, 0o600);
    ask(&one, &["user", "agree", &root]);
    fs::create_dir(one.at("work")).unwrap();
    fs::set_permissions(one.at("work"), fs::Permissions::from_mode(0o777)).unwrap();

    let code = ask(&one, &["invite", "--users", "alice"]);
    ask(&two, &["join", code.trim()]);
    two.start(&[]);
    let line = "umask 022; echo hello > work/a; mkdir work/d; mv work/a work/b; cat work/b";
    let said = run_as(ALICE, false, &two.path, line).unwrap_err();
    assert!(said.contains("denied"), "{said}");
    ask(&two, &["user", "agree", &alice]);
    assert_eq!(run_as(ALICE, false, &two.path, line).unwrap(), "hello\n");
    let meta = fs::metadata(one.at("work/b")).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (ALICE, ALICE));
    assert_eq!(fs::read_to_string(one.at("work/b")).unwrap(), "hello\n");

    // The superuser of her machine, and others there, look and change nothing.
    assert_eq!(fs::read_to_string(two.at("work/b")).unwrap(), "hello\n");
    check_forbidden(fs::create_dir(two.at("work/no")));
    check_forbidden(fs::write(two.at("work/no"), "no"));
    check_forbidden(fs::File::options().append(true).open(two.at("work/b")));
    check_forbidden(fs::write(two.at("work/b"), "no"));
    check_forbidden(fs::rename(two.at("work/b"), two.at("work/c")));
    check_forbidden(fs::remove_file(two.at("work/b")));
    check_forbidden(fs::set_permissions(two.at("work/b"), fs::Permissions::from_mode(0o777)));
    check_forbidden(chown(two.at("work/b"), Some(0), None));
    let said = run_as(BOB, false, &two.path, "mkdir work/no").unwrap_err();
    assert!(said.contains("not permitted"), "{said}");
    assert_eq!(fs::read_to_string(one.at("work/b")).unwrap(), "hello\n");

    // What is her group's is hers to write, since the cell says that she is in it.
    fs::write(one.at("work/team"), "one\n").unwrap();
    chown(one.at("work/team"), None, Some(TEAM)).unwrap();
    fs::set_permissions(one.at("work/team"), fs::Permissions::from_mode(0o664)).unwrap();
    run_as(ALICE, true, &two.path, "echo two >> work/team; flock work/team true").unwrap();
    assert_eq!(fs::read_to_string(one.at("work/team")).unwrap(), "one\ntwo\n");

    let status = ask(&one, &["status"]);
    assert!(
        status.contains("this machine, for root") && status.contains(", for alice"),
        "{status}"
    );
    assert!(status.contains("users       alice (61001), root (0)"), "{status}");
    ask(&one, &["user", "remove", "alice"]);
    until("nobody acts for her", || {
        let made = run_as(ALICE, false, &two.path, "mkdir work/late-$$");
        made.is_err_and(|said| said.contains("not permitted") || said.contains("denied"))
    });
    let users: serde_json::Value =
        serde_json::from_str(&ask(&two, &["user", "list", "--json"])).unwrap();
    assert_eq!((&users[0]["name"], &users[0]["is_removed"]), (&"alice".into(), &true.into()));
    two.stop();
    one.stop();
}
