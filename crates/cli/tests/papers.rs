//! The real binary: `croft papers` and the help texts.
//!
//! Help texts are golden files in `tests/golden`; `CROFT_BLESS=1 cargo test -p cli` rewrites them.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "black-box tests start processes and read files"
)]

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

fn croft(args: &[&str]) -> Output {
    // The width of help texts must not depend on who runs the tests.
    let mut command = Command::new(env!("CARGO_BIN_EXE_croft"));
    command.args(args).env("COLUMNS", "100").output().expect("croft starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("croft writes text")
}

#[track_caller]
fn check_golden(name: &str, args: &[&str]) {
    let output = croft(args);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("CROFT_BLESS").is_some() {
        std::fs::write(&path, &output.stdout).expect("golden files can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text(&output.stdout), golden, "CROFT_BLESS=1 cargo test -p cli rewrites {name}");
}

#[test]
fn help_texts_are_as_agreed() {
    check_golden("help.txt", &["--help"]);
    check_golden("papers.txt", &["papers", "--help"]);
    check_golden("papers-list.txt", &["papers", "list", "--help"]);
    check_golden("papers-run.txt", &["papers", "run", "--help"]);
}

#[test]
fn the_version_is_the_packages() {
    let output = croft(&["--version"]);
    assert_eq!(text(&output.stdout), concat!("croft ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn the_list_names_each_experiment_in_both_forms() {
    let plain = croft(&["papers", "list"]);
    let json = croft(&["papers", "list", "--json"]);
    assert!(plain.status.success() && json.status.success());
    let (plain, json) = (text(&plain.stdout), text(&json.stdout));
    assert_eq!(plain.lines().count(), json.lines().count());
    for (plain, json) in plain.lines().zip(json.lines()) {
        let json: Value = serde_json::from_str(json).unwrap();
        assert!(plain.starts_with(json["id"].as_str().unwrap()));
        assert!(plain.contains(json["title"].as_str().unwrap()));
    }
    assert!(plain.contains("D-E1"));
}

#[test]
fn an_unknown_id_is_answered_with_the_known_ones() {
    let output = croft(&["papers", "run", "D-E1", "Z-E9"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "", "nothing runs before all ids are known");
    let talk = text(&output.stderr);
    assert!(talk.contains("no experiment is called Z-E9") && talk.contains("D-E1"), "{talk}");
}

#[test]
fn a_scale_is_a_positive_number() {
    for scale in ["0", "-1", "nan", "inf", "much"] {
        let output = croft(&["papers", "run", "D-E1", &format!("--scale={scale}")]);
        assert_eq!(output.status.code(), Some(2), "{scale}");
        assert!(text(&output.stderr).contains("a scale is a positive number"));
    }
}

#[test]
fn a_small_run_says_the_same_in_both_forms() {
    let run = ["papers", "run", "D-E1", "--scale", "0.001"];
    let plain = croft(&run);
    let json = croft(&[&run[..], &["--json"]].concat());
    assert_eq!(text(&plain.stderr), "", "no progress into a pipe");
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain.stdout));
    assert_eq!(json.status.code(), Some(0));

    let lines: Vec<&str> = text(&json.stdout).lines().collect();
    assert_eq!(lines.len(), 1, "one experiment, one line");
    let report: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(report["id"], "D-E1");
    assert_eq!(report["scale"], 0.001);
    assert_eq!(report["verdict"], "holds");
    let rows = report["rows"].as_array().unwrap();
    let directories = rows.iter().find(|row| row["name"] == "desktop/directories").unwrap();
    assert_eq!(directories["ours"], 168.0);
    assert_eq!(directories["verdict"], "not judged", "exact rows are for scale 1");

    let plain = text(&plain.stdout);
    let table: Vec<&str> = plain.split("\n\n").nth(1).unwrap().lines().skip(1).collect();
    assert_eq!(table.len(), rows.len());
    for (line, row) in table.iter().zip(rows) {
        assert_eq!(line.split_whitespace().next(), row["name"].as_str());
        assert!(line.contains(row["verdict"].as_str().unwrap()), "{line}");
    }
}
