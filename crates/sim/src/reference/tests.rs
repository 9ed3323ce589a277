//! What the reference file system promises, call by call.
//!
//! `tests/kernel` compares it with the kernel; here stands what a reader wants to see written down.

use super::{inode::Body, script::Stage, *};

/// Makes the calls of the script, one a moment, and compares what each answered.
#[track_caller]
fn check(script: &str, expected: &str) {
    check_with(Rules::default(), script, expected);
}

#[track_caller]
fn check_with(rules: Rules, script: &str, expected: &str) {
    let mut stage = Stage::new(rules);
    let lines: Vec<&str> = script.lines().map(str::trim).collect();
    let answers: Vec<String> = lines.iter().map(|line| stage.call(line)).collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(answers, expected, "of {lines:#?}");
    assert_eq!(stage.fs.check(), Ok(()));
}

/// The tree after a script of calls that all succeed.
fn tree(script: &str) -> FileSystem {
    let mut stage = Stage::new(Rules::default());
    for line in script.lines() {
        assert_eq!(stage.call(line), "ok", "{line}");
    }
    stage.fs
}

#[test]
fn a_directory_counts_itself_and_its_subdirectories() {
    check(
        "alice mkdir /a 755
         alice mkdir /a/b 755
         alice create /a/f 644
         alice stat /a
         alice rmdir /a
         alice rmdir /a/b
         alice stat /a
         alice stat /",
        "ok
         ok
         ok
         755 1001:1001 3 0 3 3
         ENOTEMPTY
         ok
         755 1001:1001 2 0 6 6
         777 0:0 3 0 1 1",
    );
}

#[test]
fn dots_lead_where_they_should_and_cannot_be_removed() {
    check(
        "alice mkdir /a 755
         alice lookup /a/.
         alice lookup /a/..
         alice lookup /..
         alice mkdir /a/. 755
         alice unlink /a/.
         alice rmdir /a/.
         alice rmdir /a/..
         alice rename /a/. /b
         alice rename-noreplace /a /a/..",
        "ok
         ok
         ok
         ok
         EEXIST
         EISDIR
         EINVAL
         ENOTEMPTY
         EBUSY
         EEXIST",
    );
}

#[test]
fn a_name_is_at_most_255_bytes_long() {
    let script = format!(
        "alice create /{} 644\nalice create /{} 644\nalice lookup /{}",
        "x".repeat(255),
        "x".repeat(256),
        "x".repeat(256)
    );
    check(&script, "ok\nENAMETOOLONG\nENAMETOOLONG");
}

#[test]
fn bytes_that_no_name_has_are_refused() {
    let mut fs = FileSystem::new(Rules::default(), 0o777);
    for name in [b"a/b".as_slice(), b"a\0b"] {
        assert_eq!(fs.mkdir(&Actor::root(), 1, At(Ino::ROOT, name), 0), Err(Errno::EINVAL));
    }
    assert_eq!(fs.mkdir(&Actor::root(), 1, At(Ino::ROOT, b""), 0), Err(Errno::ENOENT));
}

#[test]
fn a_file_has_all_its_names_equally() {
    check(
        "alice create /f 644
         alice link /f /g
         alice stat /g
         alice unlink /f
         alice stat /g
         alice mkdir /d 755
         alice link /d /e",
        "ok
         ok
         644 1001:1001 2 0 1 2
         ok
         644 1001:1001 1 0 1 4
         ok
         EPERM",
    );
}

#[test]
fn guarded_links_are_for_owners_and_for_those_who_could_copy_and_change_the_file() {
    let script = "alice create /private 600
                  alice create /shared 666
                  alice create /lending 4777
                  alice symlink t /pointer
                  bob link /private /1
                  bob link /shared /2
                  bob link /lending /3
                  bob link /pointer /4
                  alice link /lending /5";
    let setup = "ok\nok\nok\nok\n";
    check_with(
        Rules { guards_links: true },
        script,
        &format!("{setup}EPERM\nok\nEPERM\nEPERM\nok"),
    );
    check(script, &format!("{setup}ok\nok\nok\nok\nok"));
}

#[test]
fn a_file_without_names_lives_until_its_last_close() {
    check(
        "alice create /f 600 rw h
         alice write h 0 hello
         alice unlink /f
         alice lookup /f
         alice read h 0 99
         alice close h
         alice read h 0 99",
        "ok
         5
         ok
         ENOENT
         hello
         ok
         EBADF",
    );
}

#[test]
fn nothing_can_be_made_in_a_directory_that_was_removed_while_open() {
    let mut stage = Stage::new(Rules::default());
    stage.call("alice mkdir /d 755");
    stage.call("alice open /d r h");
    stage.call("alice rmdir /d");
    let (_, dir) = stage.fs.handles().next().unwrap();
    let alice = script::actor("alice");
    assert_eq!(stage.fs.create(&alice, 9, At(dir, b"f"), 0o644), Err(Errno::ENOENT));
    assert_eq!(stage.fs.readdir(&alice, dir), Err(Errno::ENOENT));
    assert_eq!(stage.fs.check(), Ok(()));
    stage.call("alice close h");
    assert_eq!(stage.fs.getattr(dir), Err(Errno::ENOENT));
}

#[test]
fn a_rename_replaces_only_its_like() {
    check(
        "alice create /f 644
         alice create /g 644
         alice mkdir /d 755
         alice mkdir /e 755
         alice mkdir /full 755
         alice create /full/f 644
         alice rename /f /d
         alice rename /d /f
         alice rename /d /full
         alice rename /d /e
         alice rename /f /g
         alice readdir /",
        "ok
         ok
         ok
         ok
         ok
         ok
         EISDIR
         ENOTDIR
         ENOTEMPTY
         ok
         ok
         e full g",
    );
}

#[test]
fn a_rename_onto_another_name_of_the_same_file_does_nothing() {
    check(
        "alice create /f 644
         alice link /f /g
         alice rename /f /g
         alice exchange /f /g
         alice rename-noreplace /f /g
         alice readdir /
         alice stat /f",
        "ok
         ok
         ok
         ok
         EEXIST
         f g
         644 1001:1001 2 0 1 2",
    );
}

#[test]
fn no_directory_moves_below_itself() {
    check(
        "alice mkdir /a 755
         alice mkdir /a/b 755
         alice mkdir /a/b/c 755
         alice rename /a /a/x
         alice rename /a /a/b/c
         alice rename /a/b/c /a
         alice exchange /a/b/c /a
         alice exchange /a /a/b/c",
        "ok
         ok
         ok
         EINVAL
         EINVAL
         ENOTEMPTY
         EINVAL
         EINVAL",
    );
}

#[test]
fn an_exchange_moves_both_and_every_count_with_them() {
    check(
        "alice mkdir /a 755
         alice mkdir /b 755
         alice mkdir /a/d 755
         alice create /b/f 644
         alice exchange /a/d /b/f
         alice stat /a
         alice stat /b
         alice exchange /a/d /b/none
         alice lookup /b/f/..",
        "ok
         ok
         ok
         ok
         ok
         755 1001:1001 2 0 5 5
         755 1001:1001 3 0 5 5
         ENOENT
         ok",
    );
}

#[test]
fn whoever_moves_a_directory_elsewhere_needs_to_write_to_it() {
    check(
        "root mkdir /theirs 755
         alice mkdir /a 777
         root rename /theirs /a/theirs
         alice rename /a/theirs /a/renamed
         alice rename /a/renamed /moved",
        "ok
         ok
         ok
         ok
         EACCES",
    );
}

#[test]
fn in_a_sticky_directory_one_removes_only_ones_own() {
    check(
        "root mkdir /tmp 1777
         alice create /tmp/a 666
         bob create /tmp/b 666
         bob unlink /tmp/a
         bob rename /tmp/b /tmp/a
         bob exchange /tmp/b /tmp/a
         alice rename /tmp/a /tmp/c
         root unlink /tmp/b",
        "ok
         ok
         ok
         EPERM
         EPERM
         EPERM
         ok
         ok",
    );
}

#[test]
fn a_set_group_id_directory_hands_its_group_down() {
    check(
        "root mkdir /shared 777
         root chown /shared 0:2000
         root chmod /shared 2777
         alice mkdir /shared/d 755
         alice create /shared/f 2755
         carol create /shared/g 2755
         carol create /shared/h 2644
         alice stat /shared/d
         alice stat /shared/f
         alice stat /shared/g
         alice stat /shared/h",
        "ok
         ok
         ok
         ok
         ok
         ok
         ok
         2755 1001:2000 2 0 4 4
         2755 1001:2000 1 0 5 5
         755 1003:2000 1 0 6 6
         2644 1003:2000 1 0 7 7",
    );
}

#[test]
fn modes_are_changed_by_owners_who_lend_only_their_own_groups() {
    check(
        "alice create /f 644
         bob chmod /f 777
         root chown /f :1002
         alice chmod /f 6755
         alice stat /f
         alice symlink f /s
         alice chmod /s 600",
        "ok
         EPERM
         ok
         ok
         4755 1001:1002 1 0 1 4
         ok
         EOPNOTSUPP",
    );
}

#[test]
fn files_are_given_away_by_the_superuser_and_lose_what_they_lend() {
    check(
        "alice create /f 6755
         alice chown /f 1002:
         alice chown /f :1002
         alice chown /f :2000
         alice stat /f
         root chmod /f 6755
         bob chown /f :
         root chown /f 1002:
         bob stat /f
         carol chown /f :",
        "ok
         EPERM
         EPERM
         ok
         755 1001:2000 1 0 1 4
         ok
         EPERM
         ok
         755 1002:2000 1 0 1 8
         ok",
    );
}

#[test]
fn whoever_writes_takes_away_what_a_file_lends_unless_it_is_the_superuser() {
    check(
        "alice create /f 6777
         root open /f rw r
         root write r 0 x
         alice stat /f
         bob open /f rw b
         bob write b 0 y
         alice stat /f",
        "ok
         ok
         1
         6777 1001:1001 1 1 3 3
         ok
         1
         777 1001:1001 1 1 6 6",
    );
}

#[test]
fn times_are_set_by_owners_and_renewed_by_writers() {
    check(
        "alice create /f 666
         alice utimens /f 5 6
         alice stat /f
         bob utimens /f now now
         bob utimens /f now omit
         bob utimens /f omit omit
         alice chmod /f 600
         bob utimens /f now now
         alice stat /f",
        "ok
         ok
         666 1001:1001 1 0 6 2
         ok
         EPERM
         ok
         ok
         EACCES
         600 1001:1001 1 0 4 7",
    );
}

#[test]
fn an_opened_file_keeps_what_it_was_opened_for() {
    check(
        "alice create /f 0 rw h
         alice open /f r other
         alice write h 0 abc
         alice chmod /f 444
         alice write h 3 def
         bob open /f r b
         bob read b 1 4
         bob write b 0 x
         bob ftruncate b 0
         bob open /f w b",
        "ok
         EACCES
         3
         ok
         3
         ok
         bcde
         EBADF
         EINVAL
         EACCES",
    );
}

#[test]
fn an_appending_handle_writes_at_the_end_wherever_that_is() {
    check(
        "alice create /f 644 rw h
         alice write h 2 ab
         alice open /f w+append a
         alice write a 0 cd
         alice read h 0 9
         alice truncate /f 1
         alice write a 0 e
         alice read h 0 9
         alice open /f r+truncate t
         alice read h 0 9",
        "ok
         2
         ok
         2
         \\x00\\x00abcd
         ok
         1
         \\x00e
         ok
         ",
    );
}

#[test]
fn no_file_is_larger_than_an_offset_can_say() {
    check(
        "alice create /f 644 rw h
         alice truncate /f max
         alice read h 9223372036854775800 7
         alice read h 9223372036854775800 8
         alice open /f rw+append a
         alice write a 0 x
         alice write h max x
         alice truncate /f 9223372036854775808",
        "ok
         ok
         \\x00\\x00\\x00\\x00\\x00\\x00\\x00
         EINVAL
         ok
         EFBIG
         EINVAL
         EINVAL",
    );
}

#[test]
fn symbolic_links_are_read_but_not_opened() {
    check(
        "alice symlink nowhere /s
         bob readlink /s
         alice open /s r h
         alice truncate /s 0
         alice mkdir /d 755
         alice readlink /d
         alice open /d w h
         alice open /d r h
         alice read h 0 1",
        "ok
         nowhere
         ELOOP
         EINVAL
         ok
         EINVAL
         EISDIR
         ok
         EISDIR",
    );
}

#[test]
fn attributes_are_read_and_written_like_content() {
    check(
        "alice create /f 644
         bob setxattr /f user.a 1
         alice setxattr /f user.a 1 replace
         alice setxattr /f user.a 1 create
         alice setxattr /f user.a 2 create
         bob getxattr /f user.a
         alice stat /f
         alice listxattr /f
         alice removexattr /f user.b
         alice removexattr /f user.a
         bob getxattr /f user.a
         alice setxattr /f user. 1
         alice setxattr /f other.a 1
         alice symlink f /s
         alice setxattr /s user.a 1
         alice getxattr /s user.a",
        "ok
         EACCES
         ENODATA
         ok
         EEXIST
         1
         644 1001:1001 1 0 1 4
         user.a
         ENODATA
         ok
         ENODATA
         EINVAL
         EOPNOTSUPP
         ok
         EPERM
         ENODATA",
    );
}

#[test]
fn attributes_have_limits_and_sticky_directories_guard_theirs() {
    let mut fs = tree("root mkdir /tmp 1777");
    let (alice, root) = (script::actor("alice"), Actor::root());
    let tmp = fs.lookup(&root, At(Ino::ROOT, b"tmp")).unwrap();
    let mut set =
        |actor, name: &[u8], len| fs.setxattr(actor, 2, tmp, name, &vec![0; len], Put::Any);
    assert_eq!(set(&alice, b"user.a", 1), Err(Errno::EPERM));
    assert_eq!(set(&root, b"user.a", 65_536), Ok(()));
    assert_eq!(set(&root, b"user.a", 65_537), Err(Errno::E2BIG));
    assert_eq!(set(&root, &[b'u'; 256], 1), Err(Errno::ERANGE));
    assert_eq!(set(&root, b"", 1), Err(Errno::ERANGE));
}

#[test]
fn locks_of_one_owner_split_and_merge_and_those_of_others_conflict() {
    check(
        "alice create /f 666 rw a
         bob open /f rw b
         alice lock a exclusive 0-9
         bob lock b shared 5-5
         bob test b shared 5-5
         alice lock a none 4-5
         bob lock b shared 5-5
         bob test b exclusive 0-max
         alice lock a shared 4-6
         bob test b exclusive 0-max
         alice lock a exclusive 5-5
         alice lock a shared 0-max
         bob test b exclusive 0-max
         alice close a
         bob test b exclusive 0-max",
        "ok
         ok
         ok
         EAGAIN
         1001 Exclusive 0-9
         ok
         ok
         1001 Exclusive 0-3, 1001 Exclusive 6-9
         ok
         1001 Exclusive 0-3, 1001 Shared 4-6, 1001 Exclusive 7-9
         EAGAIN
         ok
         1001 Shared 0-9223372036854775807
         ok
         free",
    );
}

#[test]
fn a_lock_needs_a_handle_for_what_it_locks_out() {
    check(
        "alice create /f 644 r r
         alice open /f w w
         alice lock r exclusive 0-1
         alice lock w shared 0-1
         alice lock r shared 0-1
         alice lock r shared 2-1",
        "ok
         ok
         EBADF
         EBADF
         ok
         EINVAL",
    );
}

#[test]
fn a_whole_file_lock_is_given_up_before_another_is_sought() {
    check(
        "alice create /f 666 rw a
         bob open /f r b
         alice flock a shared
         bob flock b shared
         alice flock a exclusive
         bob flock b exclusive
         alice flock a shared
         bob close b
         alice flock a shared",
        "ok
         ok
         ok
         ok
         EAGAIN
         ok
         EAGAIN
         ok
         ok",
    );
}

#[test]
fn the_superuser_executes_only_what_somebody_may() {
    check(
        "alice create /f 0
         root access /f 6
         root access /f 1
         bob access /f 4
         alice chmod /f 100
         root access /f 7
         alice mkdir /d 0
         root access /d 7
         alice access /d 1",
        "ok
         ok
         EACCES
         EACCES
         ok
         ok
         ok
         ok
         EACCES",
    );
}

#[test]
fn the_owner_is_bound_by_the_owners_bits_even_if_others_have_more() {
    check(
        "alice mkdir /d 077
         alice lookup /d/x
         bob lookup /d/x",
        "ok
         EACCES
         ENOENT",
    );
}

#[test]
fn a_dump_names_everything_but_times_and_numbers() {
    let fs = tree(
        "alice mkdir /d 755
         bob create /f 640
         bob link /f /g
         alice symlink t /d/s
         bob setxattr /f user.a 1",
    );
    let text = fs.dump();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "/ 0777 0:0 3 directory");
    assert_eq!(lines[1], "/d 0755 1001:1001 2 directory");
    assert_eq!(lines[2], "/d/s 0777 1001:1001 1 -> t");
    assert!(lines[3].starts_with("/f 0640 1002:1002 2 file 0 "), "{text}");
    assert!(lines[3].ends_with(" user.a=1"), "{text}");
    assert_eq!(lines[4], "/g = /f");
}

#[test]
fn a_digest_is_that_of_the_tree_and_not_of_its_history() {
    let one = tree("alice mkdir /a 755\nalice mkdir /b 755");
    let other = tree("alice mkdir /b 700\nalice mkdir /a 755\nalice chmod /b 755");
    assert_eq!(one.digest(), other.digest());
    for script in ["alice mkdir /a 755", "alice mkdir /a 755\nbob mkdir /b 755"] {
        assert_ne!(one.digest(), tree(script).digest());
    }
}

#[test]
fn content_counts_in_a_digest() {
    let written = |text| {
        let mut stage = Stage::new(Rules::default());
        stage.call("alice create /f 644 rw h");
        stage.call(&format!("alice write h 3000 {text}"));
        stage.fs.digest()
    };
    assert_eq!(written("a"), written("a"));
    assert_ne!(written("a"), written("b"));
}

/// Breaks a tree in one place, and says what the check says.
fn broken(damage: impl Fn(&mut FileSystem)) -> String {
    let mut fs = tree("alice mkdir /a 755\nalice mkdir /a/b 755\nalice create /a/f 644");
    assert_eq!(fs.check(), Ok(()));
    damage(&mut fs);
    fs.check().expect_err("the damage is noticed")
}

#[test]
fn every_invariant_can_fail() {
    let (a, b, f) = (Ino(2), Ino(3), Ino(4));
    assert_eq!(broken(|fs| fs.known(f).nlink = 2), "#4 has 2 links, but should have 1");
    assert_eq!(broken(|fs| fs.known(a).nlink = 2), "#2 has 2 links, but should have 3");
    assert_eq!(
        broken(|fs| drop(fs.inodes.remove(&f))),
        "an entry of #2 leads to #4, which is gone"
    );
    assert_eq!(
        broken(|fs| {
            fs.known_directory(a).entries.insert(b"c".to_vec(), b);
            fs.known(a).nlink += 1;
        }),
        "2 entries lead to the directory #3"
    );
    assert_eq!(
        broken(|fs| fs.known_directory(b).parent = Ino::ROOT),
        "#3 is in #2, but its parent is #1"
    );
    assert_eq!(broken(|fs| fs.known(f).handle_count = 1), "#4 counts 1 handles of 0");
    assert_eq!(
        broken(|fs| {
            fs.known_directory(a).entries.remove(b"f".as_slice());
            fs.known(f).nlink = 0;
        }),
        "#4 has no name and is not open"
    );
}

#[test]
fn a_directory_below_itself_is_noticed() {
    let text = broken(|fs| {
        let (a, b) = (Ino(2), Ino(3));
        fs.known_directory(Ino::ROOT).entries.remove(b"a".as_slice());
        fs.known(Ino::ROOT).nlink -= 1;
        fs.known_directory(b).entries.insert(b"a".to_vec(), a);
        fs.known(b).nlink += 1;
        fs.known_directory(a).parent = b;
    });
    assert_eq!(text, "#2 is below itself");
}

#[test]
fn a_clone_goes_its_own_way() {
    let mut stage = Stage::new(Rules::default());
    stage.call("alice create /f 644 rw h");
    stage.call("alice write h 0 one");
    let before = stage.fs.clone();
    stage.call("alice write h 0 two");
    assert!(
        matches!(&before.inodes[&Ino(2)].body, Body::File(content) if content.read(0, 3) == b"one")
    );
    assert_ne!(before.digest(), stage.fs.digest());
}

#[test]
fn errors_have_the_kernels_names_and_numbers() {
    assert_eq!((Errno::ENOTEMPTY.name(), Errno::ENOTEMPTY.number()), ("ENOTEMPTY", 39));
    assert_eq!(Errno::ALL.len(), 18);
}
