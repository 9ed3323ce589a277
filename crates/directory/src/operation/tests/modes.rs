//! Setattr: who may change permission bits, owners and times, and what goes with it.

use super::check;

#[test]
fn only_the_owner_changes_the_mode() {
    check(
        "root mkdir /d 777
         ann create /d/a 644
         bob chmod /d/a 666 = NotOwner
         ann chmod /d/a 600
         root chmod /d/a 640",
        "d 777 root:root
         d/a 640 ann:ann",
    );
}

#[test]
fn setgid_is_for_members_of_the_group() {
    check(
        "root mkdir /d 777
         ann create /d/a 755
         cat create /d/c 755
         root chown /d/a :bob
         cat chown /d/c :bob
         ann chmod /d/a 2755
         cat chmod /d/c 2755",
        "d 777 root:root
         d/a 755 ann:bob
         d/c 2755 cat:bob",
    );
}

#[test]
fn only_the_superuser_gives_files_away() {
    check(
        "root mkdir /d 777
         ann create /d/a 644
         ann chown /d/a bob = NotOwner
         bob chown /d/a bob = NotOwner
         ann chown /d/a ann
         root chown /d/a bob:cat",
        "d 777 root:root
         d/a 644 bob:cat",
    );
}

#[test]
fn an_owner_gives_a_file_to_a_group_of_its_own() {
    check(
        "root mkdir /d 777
         cat create /d/c 644
         cat chown /d/c :ann = NotOwner
         bob chown /d/c :bob = NotOwner
         cat chown /d/c :bob",
        "d 777 root:root
         d/c 644 cat:bob",
    );
}

#[test]
fn a_new_owner_takes_away_running_as_the_old_one() {
    check(
        "root create /a 6755
         root create /b 2644
         root mkdir /d 6777
         root chmod /d 6777
         root chown /a ann
         root chown /b ann
         root chown /d ann",
        "a 755 ann:root
         b 2644 ann:root
         d 6777 ann:root",
    );
}

#[test]
fn writing_takes_away_running_as_the_owner() {
    check(
        "root mkdir /d 777
         ann create /d/a 6777
         root write /d/a 1
         bob write /d/a 2",
        "d 777 root:root
         d/a 777 ann:ann 2 bytes",
    );
}

#[test]
fn who_may_write_sets_times_to_now_and_only_the_owner_to_any() {
    check(
        "root mkdir /d 777
         ann create /d/a 664
         ann create /d/b 666
         bob touch /d/a = Access
         bob touch /d/b
         bob date /d/b 5 = NotOwner
         ann date /d/b 5",
        "d 777 root:root
         d/a 664 ann:ann
         d/b 666 ann:ann",
    );
}

#[test]
fn a_new_directory_has_neither_bit_of_its_own() {
    check("root mkdir /d 7777", "d 1777 root:root");
}
