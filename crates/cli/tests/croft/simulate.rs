//! `croft simulate`.

use serde_json::Value;

use crate::binary::{croft, text};

#[test]
fn seeds_replay_and_both_forms_say_the_same() {
    let run = ["simulate", "--workload", "leases", "--seed", "3", "--count", "2"];
    let plain = croft(&run);
    let json = croft(&[&run[..], &["--json"]].concat());
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain.stdout));
    assert_eq!(json.status.code(), Some(0));
    assert_eq!(text(&plain.stderr), "", "no progress into a pipe");
    let report: Value = serde_json::from_str(text(&json.stdout)).unwrap();
    assert_eq!(report["clean"], true);
    assert_eq!(report["count"], 2);
    assert!(report["events"].as_u64().unwrap() > 1_000);
    let plain = text(&plain.stdout);
    assert!(plain.starts_with("leases: seeds 3 to 4 are clean\n"), "{plain}");
    assert!(plain.contains(report["digest"].as_str().unwrap()), "the same run twice");
    for mark in report["marks"].as_object().unwrap().keys() {
        assert!(plain.contains(mark));
    }
}

#[test]
fn the_whole_system_is_what_is_simulated_unless_told_otherwise() {
    let output = croft(&["simulate", "--seed", "3"]);
    assert_eq!(output.status.code(), Some(0));
    let plain = text(&output.stdout);
    assert!(plain.starts_with("files: seeds 3 to 3 are clean\n"), "{plain}");
}

#[test]
fn what_can_not_be_run_is_refused_before_anything_runs() {
    for args in [&["--workload", "lease"][..], &["--workload", "leases", "--count", "0"]] {
        let output = croft(&[&["simulate"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(text(&output.stdout), "");
    }
    let talk = croft(&["simulate", "--workload", "lease"]).stderr;
    assert!(
        text(&talk).contains(
            "there are: files, bytes, cells, decrees, floods, groups, growth, leaders, leases, twins"
        ),
        "{}",
        text(&talk)
    );
}
