//! Link and unlink.

use super::check;

#[test]
fn a_file_can_have_several_names_and_goes_with_the_last() {
    check(
        "root create /a 644
         root write /a 5
         root mkdir /d 755
         root link /a /d/b
         root unlink /a",
        "d 755 root:root
         d/b 644 root:root 5 bytes",
    );
    check(
        "root create /a 644
         root link /a /b
         root link /a /c
         root write /b 7",
        "a 644 root:root x3 7 bytes
         b 644 root:root x3 7 bytes
         c 644 root:root x3 7 bytes",
    );
}

#[test]
fn a_directory_has_one_name_and_a_name_one_file() {
    check(
        "root mkdir /d 755
         root create /a 644
         root link /d /e = NotOwner
         root link /a /d = NameTaken
         root link /a /a/b = NotDirectory
         ann link /a /b = Access",
        "a 644 root:root
         d 755 root:root",
    );
}

#[test]
fn a_symbolic_link_can_have_several_names_too() {
    check(
        "root symlink /s x
         root link /s /t
         root unlink /s",
        "t 777 root:root -> x",
    );
}
