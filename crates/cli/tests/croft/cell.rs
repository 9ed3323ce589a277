//! `croft init`, `invite`, `join`, `root` and `issuer`, as far as they go without a machine that runs.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use crate::binary::{check_text, croft, text};

/// A directory that is not there yet, and goes at the end.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        Home(std::env::temp_dir().join(format!("croft-cell-{}-{name}", std::process::id())))
    }

    fn run(&self, words: &[&str]) -> Output {
        croft(&[words, &["--dir", self.0.to_str().expect("it is plain text")]].concat())
    }

    /// What was said, with the directory called DIR.
    fn said(&self, bytes: &[u8]) -> String {
        text(bytes).replace(self.0.to_str().expect("it is plain text"), "DIR")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn whoever_makes_a_cell_is_told_how_to_go_on() {
    for (name, listen) in [("alone", &[][..]), ("listens", &["--listen", "127.0.0.1"])] {
        let home = Home::new(name);
        let output = home.run(&[&["init"], listen].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "");
        check_text(&format!("init-{name}.txt"), &home.said(&output.stderr));
    }
}

#[test]
fn an_invitation_is_the_code_alone_and_what_to_do_with_it_is_said_beside() {
    let home = Home::new("invites");
    assert!(home.run(&["init", "--listen", "127.0.0.1"]).status.success());
    let output = home.run(&["invite", "--for", "30m"]);
    assert_eq!(output.status.code(), Some(0));
    let code = text(&output.stdout);
    assert!(code.starts_with("croft1") && code.ends_with('\n') && code.lines().count() == 1);
    assert!(code.trim_end().len() <= 160, "{} letters", code.trim_end().len());
    let talk = text(&output.stderr);
    assert!(talk.contains("croft join CODE") && talk.contains(" UTC"), "{talk}");
    assert!(!talk.contains("croft1"), "it is a secret: {talk}");
    let output = home.run(&["invite", "--count", "200"]);
    assert!(text(&output.stderr).contains("it serves 200 machines"), "{}", text(&output.stderr));
}

#[test]
fn a_machine_that_does_not_listen_invites_nobody() {
    let home = Home::new("deaf");
    assert!(home.run(&["init"]).status.success());
    let output = home.run(&["invite"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert!(text(&output.stderr).contains("croft run --listen"), "{}", text(&output.stderr));
}

#[test]
fn what_can_not_be_meant_is_refused_before_anything_is_made() {
    let home = Home::new("none");
    for words in [
        &["init", "--listen", "0.0.0.0"][..],
        &["init", "--listen", "here"],
        &["invite", "--for", "soon"],
        &["join", "croft1", "--listen", "7001"],
        &["join", "croft1", "croft1", "croft1"],
        &["invite", "--count", "0"],
        &["invite", "--count", "1001"],
    ] {
        let output = home.run(words);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""), "{words:?}");
    }
    for code in ["croft1nonsense", "hello"] {
        let output = home.run(&["join", code]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
        assert!(text(&output.stderr).contains("croft invite"), "{}", text(&output.stderr));
    }
    assert!(!home.0.exists());
}

#[test]
fn a_cell_of_named_users_invites_only_for_some_of_them() {
    let home = Home::new("named");
    let output = home.run(&["init", "--listen", "127.0.0.1", "--users", "root"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    check_text("init-named.txt", &home.said(&output.stderr));
    for (words, answer) in
        [(&["invite"][..], "--users alice,bob"), (&["invite", "--users", "any"], "agree")]
    {
        let output = home.run(words);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
        assert!(text(&output.stderr).contains(answer), "{}", text(&output.stderr));
    }
    let output = home.run(&["invite", "--users", "alice,bob"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("acts for alice, bob once they have agreed"));
    assert_eq!(home.run(&["invite", "--users", "Alice"]).status.code(), Some(2));
}

#[test]
fn a_root_key_is_made_where_it_is_said_sealed_and_used_with_its_passphrase_alone() {
    let (home, away) = (Home::new("root"), Home::new("root-away"));
    fs::create_dir(&away.0).expect("a new directory can be made");
    let file = |name: &str| away.0.join(name).to_str().expect("it is plain text").to_owned();
    let root = file("root");
    let output = home.run(&["init", "--root", &root]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!home.0.join("root").exists() && text(&output.stderr).contains(&root));
    for (name, passphrase) in [("right", "correct horse\n"), ("wrong", "correct horsf\n")] {
        fs::write(file(name), passphrase).expect("it can be written");
    }
    let output = croft(&["root", "seal", "--root", &root, "--new-passphrase-file", &file("right")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let new = |passphrase: &str| {
        croft(&["issuer", "new", "--root", &root, "--passphrase-file", &file(passphrase)])
    };
    let output = new("wrong");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert!(text(&output.stderr).contains("does not open"), "{}", text(&output.stderr));
    let output = new("right");
    assert_eq!((output.status.code(), text(&output.stdout).lines().count()), (Some(0), 2));
    // A machine takes an issuer of its own cell and of no other.
    let issuer = file("issuer");
    fs::write(&issuer, &output.stdout).expect("it can be written");
    let output = home.run(&["issuer", "take", &issuer]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let other = Home::new("root-other");
    assert!(other.run(&["init"]).status.success());
    let output = other.run(&["issuer", "take", &issuer]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("this is cell"), "{}", text(&output.stderr));
}

#[test]
fn a_users_key_is_made_once_is_theirs_alone_and_only_its_public_half_is_shown() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new("user-key");
    fs::create_dir(&home.0).expect("a new directory can be made");
    let file = home.0.join("alice.key");
    let key = || croft(&["user", "key", file.to_str().expect("it is plain text")]);
    let (first, second) = (key(), key());
    assert_eq!((first.status.code(), text(&first.stderr)), (Some(0), ""));
    assert_eq!((text(&first.stdout).len(), text(&first.stdout)), (65, text(&second.stdout)));
    let secret = fs::read_to_string(&file).expect("it is there");
    assert!(!text(&first.stdout).contains(secret.trim()));
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_code_can_come_by_standard_input() {
    let home = Home::new("input");
    for (said, answer) in [("\n", "standard input has no code"), ("nonsense\n", "croft invite")] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_croft"))
            .args(["join", "-", "--dir"])
            .arg(&home.0)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("croft starts");
        let mut input = child.stdin.take().expect("it is written to");
        input.write_all(said.as_bytes()).expect("it reads");
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(answer), "{}", text(&output.stderr));
    }
}
