//! Rename: over nothing, over something, in a circle, and by whom.

use super::check;

#[test]
fn a_name_moves() {
    check(
        "root mkdir /d 755
         root mkdir /e 755
         root create /d/a 644
         root rename /d/a /e/b
         root rename /e /d/e",
        "d 755 root:root
         d/e 755 root:root
         d/e/b 644 root:root",
    );
}

#[test]
fn what_is_overwritten_goes() {
    check(
        "root create /a 644
         root write /a 1
         root create /b 600
         root write /b 2
         root rename /a /b
         root mkdir /d 755
         root mkdir /e 700
         root rename /d /e",
        "b 644 root:root 1 bytes
         e 755 root:root",
    );
}

#[test]
fn what_is_overwritten_while_open_stays_without_a_name() {
    check(
        "root create /a 644
         root create /b 600
         root open /b
         root rename /a /b",
        "b 644 root:root
         (no name) 600 root:root x0",
    );
}

#[test]
fn a_file_is_not_renamed_over_a_directory_nor_a_directory_over_a_file() {
    check(
        "root create /a 644
         root mkdir /d 755
         root mkdir /full 755
         root create /full/x 644
         root rename /a /d = IsDirectory
         root rename /d /a = NotDirectory
         root rename /d /full = NotEmpty
         root rename /x /a = NotFound",
        "a 644 root:root
         d 755 root:root
         full 755 root:root
         full/x 644 root:root",
    );
}

#[test]
fn two_names_of_one_file_are_left_alone() {
    check(
        "root create /a 644
         root link /a /b
         root rename /a /b",
        "a 644 root:root x2
         b 644 root:root x2",
    );
}

#[test]
fn noreplace_refuses_what_is_taken() {
    check(
        "root create /a 644
         root create /b 600
         root rename /a /b noreplace = NameTaken
         root rename /a /a noreplace = NameTaken
         root rename /a /c noreplace",
        "b 600 root:root
         c 644 root:root",
    );
}

#[test]
fn exchange_swaps_whatever_is_there() {
    check(
        "root mkdir /d 755
         root create /d/a 644
         root create /b 600
         root rename /d /b exchange
         root rename /b /x exchange = NotFound",
        "b 755 root:root
         b/a 644 root:root
         d 600 root:root",
    );
    check(
        "root mkdir /d 755
         root mkdir /d/in 700
         root mkdir /e 711
         root rename /d/in /e exchange",
        "d 755 root:root
         d/in 711 root:root
         e 700 root:root",
    );
}

#[test]
fn nothing_comes_to_lie_below_itself() {
    check(
        "root mkdir /d 755
         root mkdir /d/e 755
         root mkdir /d/e/f 755
         root rename /d /d/x = Senseless
         root rename /d /d/e/f/x = Senseless
         root rename /d/e/f /d exchange = Senseless
         root rename /d/e/f /d = NotEmpty
         root rename /d /d/e exchange = Senseless",
        "d 755 root:root
         d/e 755 root:root
         d/e/f 755 root:root",
    );
}

#[test]
fn both_directories_must_be_writable() {
    check(
        "root mkdir /mine 777
         root mkdir /theirs 755
         root create /theirs/a 666
         ann create /mine/b 644
         ann rename /theirs/a /mine/a = Access
         ann rename /mine/b /theirs/b = Access
         ann rename /mine/b /theirs/a = Access
         ann rename /mine/b /mine/c",
        "mine 777 root:root
         mine/c 644 ann:ann
         theirs 755 root:root
         theirs/a 666 root:root",
    );
}

#[test]
fn in_a_sticky_directory_only_owners_move_things() {
    check(
        "root mkdir /tmp 1777
         root mkdir /d 777
         ann create /tmp/a 666
         bob create /tmp/b 666
         bob create /d/b 666
         bob rename /tmp/a /d/a = NotOwner
         bob rename /tmp/b /tmp/a = NotOwner
         bob rename /d/b /tmp/a = NotOwner
         bob rename /d/b /tmp/a exchange = NotOwner
         ann rename /tmp/a /d/a",
        "d 777 root:root
         d/a 666 ann:ann
         d/b 666 bob:bob
         tmp 1777 root:root
         tmp/b 666 bob:bob",
    );
}

#[test]
fn a_directory_that_changes_its_parent_must_be_writable() {
    check(
        "root mkdir /d 777
         root mkdir /e 777
         root mkdir /d/theirs 755
         ann rename /d/theirs /e/x = Access
         ann rename /d/theirs /d/x",
        "d 777 root:root
         d/x 755 root:root
         e 777 root:root",
    );
}
