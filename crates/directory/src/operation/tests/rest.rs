//! Extended attributes, content and locks.

use super::check;

#[test]
fn attributes_are_set_found_and_taken_away() {
    check(
        "root create /a 644
         root xattr /a user.b 3
         root xattr /a user.a 2
         root xattr-new /a user.a 9 = NameTaken
         root xattr-old /a user.c 9 = NoAttribute
         root unxattr /a user.c = NoAttribute
         root xattr-old /a user.b 4
         root xattr-new /a user.d 1
         root unxattr /a user.a",
        "a 644 root:root user.b=4 user.d=1",
    );
}

#[test]
fn attributes_have_limits() {
    let long = "x".repeat(256);
    let script = format!(
        "root create /a 644
         root xattr /a {long} 1 = Senseless
         root xattr /a u 65535
         root xattr /a v 0 = AttributeTooLarge
         root unxattr /a u
         root xattr /a v 0"
    );
    check(&script, "a 644 root:root v=0");
}

#[test]
fn attributes_are_for_whoever_may_write() {
    check(
        "root create /a 644
         root mkdir /tmp 1777
         root symlink /s x
         ann xattr /a user.x 1 = Access
         ann xattr /tmp user.x 1 = NotOwner
         root xattr /s user.x 1 = NotOwner
         root xattr /tmp user.x 1",
        "a 644 root:root
         s 777 root:root -> x
         tmp 1777 root:root user.x=1",
    );
}

#[test]
fn content_grows_and_shrinks_and_is_for_files() {
    check(
        "root create /a 644
         root mkdir /d 755
         root write /a 100
         root write /a 30
         root write /d 1 = IsDirectory
         ann write /a 1 = Access
         root write /a 18446744073709551615 = TooLong",
        "a 644 root:root 30 bytes
         d 755 root:root",
    );
}

#[test]
fn bytes_are_kept_where_they_change_by_whoever_may_change_them() {
    check(
        "root create /a 644
         root mkdir /d 755
         root symlink /s x
         ann keep /a = Access
         root write /a 30 live = Senseless
         root write /a 30
         root keep /d = Senseless
         root keep /s = Senseless
         root keep /a
         ann leave /a
         ann keep /a = Access
         ann leave /a = Access
         root keep /a",
        "a 644 root:root 30 bytes live
         d 755 root:root
         s 777 root:root -> x",
    );
}

#[test]
fn bytes_that_others_have_open_do_not_change_without_a_word() {
    check(
        "root create /a 644
         root create /b 644
         root keep /b
         root open /a
         root open /b
         root keep /a = Sharing
         root leave /b
         root keep /b = Sharing",
        "a 644 root:root
         b 644 root:root",
    );
}

#[test]
fn bytes_are_kept_only_where_they_were_last_changed() {
    check(
        "root create /a 644
         root create /b 644
         root@2 keep /b
         root write /a 10
         root@2 keep /a = Sharing
         root@2 leave /a = Sharing
         root keep /a
         root write /a 20 live
         root@2 write /a 30 live = Senseless
         root@2 write /a 30
         root leave /a = Sharing
         root keep /b = Sharing",
        "a 644 root:root 30 bytes
         b 644 root:root live",
    );
}

#[test]
fn an_owner_writes_whatever_the_mode_says() {
    check(
        "root mkdir /d 777
         ann create /d/a 444
         ann write /d/a 3",
        "d 777 root:root
         d/a 444 ann:ann 3 bytes",
    );
}

#[test]
fn locks_keep_others_out() {
    check(
        "root create /a 644
         ann lock /a x0-9
         bob lock /a s5-5 = Locked
         bob lock /a s10-20
         ann lock /a x10-10 = Locked
         ann lock /a s10-10
         ann unlock /a x0-4
         root lock /a x9-3 = Senseless",
        "a 644 root:root x5-9 s10-10 s10-20",
    );
}

#[test]
fn locks_are_for_files_and_not_too_many() {
    let many: Vec<String> =
        (0..1_024).map(|n| format!("ann lock /a x{}-{}", 2 * n, 2 * n)).collect();
    let unlock = "ann unlock /a x0-4000";
    let script = format!(
        "root create /a 644
         root mkdir /d 755
         root lock /d x0-1 = Senseless
         {}
         ann lock /a x5000-5000 = TooManyLocks
         {unlock}",
        many.join("\n")
    );
    check(&script, "a 644 root:root\nd 755 root:root");
}
