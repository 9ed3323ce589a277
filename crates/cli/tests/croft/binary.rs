//! Running `croft`, and comparing what it says with golden files.
//!
//! `CROFT_BLESS=1 cargo test -p cli` rewrites them.

use std::{
    path::Path,
    process::{Command, Output},
};

pub fn croft(args: &[&str]) -> Output {
    // The width of help texts must not depend on who runs the tests.
    let mut command = Command::new(env!("CARGO_BIN_EXE_croft"));
    command.args(args).env("COLUMNS", "100").output().expect("croft starts")
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("croft writes text")
}

#[track_caller]
pub fn check_golden(name: &str, args: &[&str]) {
    let output = croft(args);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
    check_text(name, text(&output.stdout));
}

/// Compares what was said with a golden file.
#[track_caller]
pub fn check_text(name: &str, said: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/croft/golden").join(name);
    if std::env::var_os("CROFT_BLESS").is_some() {
        std::fs::write(&path, said).expect("golden files can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(said, golden, "CROFT_BLESS=1 cargo test -p cli rewrites {name}");
}
