//! Help texts and the version.

use crate::binary::{check_golden, croft, text};

#[test]
fn help_texts_are_as_agreed() {
    check_golden("help.txt", &["--help"]);
    check_golden("graph-help.txt", &["graph", "--help"]);
    check_golden("papers.txt", &["papers", "--help"]);
    check_golden("papers-list.txt", &["papers", "list", "--help"]);
    check_golden("papers-run.txt", &["papers", "run", "--help"]);
    check_golden("papers-page.txt", &["papers", "page", "--help"]);
    check_golden("simulate.txt", &["simulate", "--help"]);
    for command in [
        "quickstart",
        "init",
        "invite",
        "join",
        "renew",
        "revoke",
        "recover",
        "quota",
        "run",
        "mount",
        "umount",
        "status",
        "doctor",
        "fsck",
    ] {
        check_golden(&format!("{command}.txt"), &[command, "--help"]);
    }
    check_golden("user.txt", &["user", "--help"]);
    for command in ["add", "list", "remove", "agree", "key"] {
        check_golden(&format!("user-{command}.txt"), &["user", command, "--help"]);
    }
    check_golden("root.txt", &["root", "--help"]);
    check_golden("root-seal.txt", &["root", "seal", "--help"]);
    check_golden("issuer.txt", &["issuer", "--help"]);
    for command in ["new", "take", "revoke"] {
        check_golden(&format!("issuer-{command}.txt"), &["issuer", command, "--help"]);
    }
    check_golden("bench.txt", &["bench", "--help"]);
    check_golden("bench-mount.txt", &["bench", "mount", "--help"]);
}

#[test]
fn the_version_is_the_packages() {
    let output = croft(&["--version"]);
    assert_eq!(text(&output.stdout), concat!("croft ", env!("CARGO_PKG_VERSION"), "\n"));
}
