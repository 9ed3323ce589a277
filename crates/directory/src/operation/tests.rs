//! What each operation means, to one who knows everything.
//!
//! `root` may do all; `ann`, `bob` and `cat` have groups of their own, and `cat` is in bob's group too.

mod plain;

use plain::check;

mod links;
mod modes;
mod renames;
mod rest;

#[test]
fn a_new_file_belongs_to_whoever_creates_it() {
    check(
        "root mkdir /d 777
         ann create /d/a 644
         bob mkdir /d/b 755
         ann symlink /d/s ../x",
        "d 777 root:root
         d/a 644 ann:ann
         d/b 755 bob:bob
         d/s 777 ann:ann -> ../x",
    );
}

#[test]
fn a_name_is_created_once_and_where_one_may() {
    check(
        "root mkdir /d 755
         root create /d/a 644
         root create /d/a 644 = NameTaken
         root mkdir /d/a 644 = NameTaken
         ann create /d/a 644 = NameTaken
         ann create /d/b 644 = Access
         root mkdir /hidden 700
         ann create /hidden/b 644 = Access
         root create /d/a/b 644 = NotDirectory",
        "d 755 root:root
         d/a 644 root:root
         hidden 700 root:root",
    );
}

#[test]
fn the_group_of_a_setgid_directory_is_inherited() {
    check(
        "root mkdir /d 777
         root chown /d bob:bob
         root chmod /d 2777
         ann mkdir /d/sub 755
         ann create /d/sub/a 644
         ann create /d/x 2755
         cat create /d/y 2755
         ann create /d/z 2644",
        "d 2777 bob:bob
         d/sub 2755 ann:bob
         d/sub/a 644 ann:bob
         d/x 755 ann:bob
         d/y 2755 cat:bob
         d/z 2644 ann:bob",
    );
}

#[test]
fn a_symbolic_link_leads_somewhere() {
    check(
        "root symlink /a - = Senseless
         root symlink /b 4096* = TooDeep
         root symlink /c 4095*
         root write /c 5 = IsSymlink
         root chmod /c 777 = Unsupported
         root unlink /c",
        "",
    );
}

#[test]
fn only_empty_directories_are_removed() {
    check(
        "root mkdir /d 755
         root create /d/a 644
         root rmdir /d = NotEmpty
         root rmdir /d/a = NotDirectory
         root rmdir /x = NotFound
         root unlink /d = IsDirectory
         root unlink /d/x = NotFound
         ann unlink /d/a = Access
         ann rmdir /d = Access
         root unlink /d/a
         root rmdir /d",
        "",
    );
}

#[test]
fn in_a_sticky_directory_only_owners_remove() {
    check(
        "root mkdir /tmp 1777
         ann create /tmp/a 666
         ann mkdir /tmp/d 777
         bob unlink /tmp/a = NotOwner
         bob rmdir /tmp/d = NotOwner
         ann rmdir /tmp/d
         root unlink /tmp/a",
        "tmp 1777 root:root",
    );
}

#[test]
fn a_file_outlives_its_last_name_while_it_is_open() {
    check(
        "root create /a 644
         root write /a 10
         root open /a
         root unlink /a
         root write #/a 20
         root link #/a /b = NotFound
         root reap #/a = Sharing",
        "(no name) 644 root:root x0 20 bytes",
    );
    check(
        "root create /a 644
         root write /a 10
         root open /a
         root unlink /a
         root close /a
         root reap #/a",
        "",
    );
    check(
        "root create /a 644
         root reap /a = Senseless",
        "a 644 root:root",
    );
}

#[test]
#[should_panic(expected = "root create /a 644")]
fn the_check_notices_what_is_not_refused() {
    check("root create /a 644 = Access", "a 644 root:root");
}

#[test]
#[should_panic(expected = "a 644 root:root")]
fn the_check_notices_what_is_not_there() {
    check("root create /a 644", "");
}
