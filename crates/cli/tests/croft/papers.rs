//! `croft papers`.

use std::{
    io::Read,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::binary::{croft, text};

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
    assert_eq!(plain.status.code(), Some(3), "rows were not judged: {}", text(&plain.stdout));
    assert_eq!(json.status.code(), Some(3));
    let strict = croft(&[&run[..], &["--strict"]].concat());
    assert_eq!(strict.status.code(), Some(1));
    let last = "experiments: 0 hold, 0 differ as explained, 1 partial, 0 differ";
    assert_eq!(text(&plain.stdout).lines().last(), Some(last));

    let lines: Vec<&str> = text(&json.stdout).lines().collect();
    assert_eq!(lines.len(), 1, "one experiment, one line");
    let report: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(report["id"], "D-E1");
    assert_eq!(report["scale"], serde_json::json!({"size": 0.001, "time": 0.001}));
    assert_eq!(report["seeds"], serde_json::json!([2]));
    assert_eq!(report["verdict"], "partial");
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

#[test]
fn several_seeds_are_judged_by_their_mean() {
    let run = ["papers", "run", "H-E2", "--scale", "0.01", "--seeds", "3", "--seed", "5", "--json"];
    let report: Value = serde_json::from_slice(&croft(&run).stdout).unwrap();
    assert_eq!(report["seeds"], serde_json::json!([5, 6, 7]));
    let rows = report["rows"].as_array().unwrap();
    let hit = rows.iter().find(|row| row["name"] == "100/8/hit").unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    let each: Vec<f64> = hit["each"].as_array().unwrap().iter().map(number).collect();
    assert_eq!(each.len(), 3);
    assert!((each.iter().sum::<f64>() / 3.0 - number(&hit["ours"])).abs() < 1e-4, "{hit}");
    let [low, high] = [0, 1].map(|end| number(&hit["interval"][end]));
    assert!(low < number(&hit["ours"]) && number(&hit["ours"]) < high, "{hit}");
}

#[test]
fn where_nothing_is_left_to_chance_one_run_is_enough() {
    let run = ["papers", "run", "D-E4", "--seeds", "3", "--seed", "5", "--json"];
    let report: Value = serde_json::from_slice(&croft(&run).stdout).unwrap();
    assert_eq!(report["seeds"], serde_json::json!([]));
}

#[test]
fn a_page_is_written_and_what_was_run_is_not_run_again() {
    let folder = std::env::temp_dir().join(format!("croft-page-{}", std::process::id()));
    let out = folder.to_str().unwrap();
    let run = || {
        let args =
            ["papers", "run", "H-E2", "D-E4", "--scale", "0.01", "--seeds", "2", "--out", out];
        assert_eq!(croft(&args).status.code(), Some(3), "rows were not judged");
        let kept = ["H-E2-0.01x0.01-1", "H-E2-0.01x0.01-2", "D-E4-0.01x0.01"].map(|run| {
            let path = folder.join("runs").join(format!("{run}.json"));
            std::fs::metadata(path).unwrap().modified().unwrap()
        });
        let read = |name| std::fs::read_to_string(folder.join(name)).unwrap();
        (kept, read("index.html"), read("README.md"), read("results.json"))
    };
    let first = run();
    assert!(run() == first, "what was run gives the same page again");
    let (_, html, markdown, json) = first;
    assert!(html.contains("<svg") && html.contains("id=\"H-E2\""), "{html}");
    assert!(
        markdown.contains("(figures/H-E2-1.svg)") && folder.join("figures/H-E2-1.svg").exists()
    );
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["experiments"][1]["id"], "D-E4");
    assert!(json["circumstances"]["command"].as_str().unwrap().contains("--seeds 2"), "{json}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_page_of_a_folder_shows_the_largest_runs_and_below_them_those_with_more_seeds() {
    let folder = std::env::temp_dir().join(format!("croft-gathered-{}", std::process::id()));
    let out = folder.to_str().unwrap();
    assert_eq!(croft(&["papers", "page", out]).status.code(), Some(1), "it has no runs");
    for sizes in [["--scale", "0.02", "--seeds", "1"], ["--scale", "0.01", "--seeds", "3"]] {
        let args = [&["papers", "run", "H-E2", "--out", out][..], &sizes].concat();
        assert_eq!(croft(&args).status.code(), Some(3), "rows were not judged");
    }
    let page = croft(&["papers", "page", out]);
    assert_eq!(page.status.code(), Some(3));
    let last = "experiments: 0 hold, 0 differ as explained, 1 partial, 0 differ";
    assert_eq!(text(&page.stdout).lines().last(), Some(last));
    let json = std::fs::read_to_string(folder.join("results.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["experiments"][0]["seeds"], serde_json::json!([1]));
    assert_eq!(json["experiments"][0]["scale"]["size"], 0.02);
    assert_eq!(json["smaller"][0]["seeds"], serde_json::json!([1, 2, 3]));
    assert_eq!(json["smaller"][0]["scale"]["size"], 0.01);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_network_of_processes_answers_queries_and_measures_every_row() {
    let output = croft(&["papers", "run", "K-E13", "--scale-time", "0.01", "--json"]);
    assert_eq!(text(&output.stderr), "");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["ours"].is_number()), "{report}");
    let answered = rows.iter().find(|row| row["name"] == "processes/answered").unwrap();
    assert!(answered["ours"].as_f64().unwrap() > 0.9, "{report}");
}

#[test]
fn processes_of_an_experiment_end_when_the_one_that_started_them_is_killed() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_croft"));
    command
        .args(["papers", "run", "K-E13", "--scale-time", "0.1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut parent = command.spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", parent.id());
    while std::fs::read_to_string(&children).unwrap().split_whitespace().count() < 24 {}
    let killed = Instant::now();
    parent.kill().unwrap();
    parent.wait().unwrap();
    // They have its stderr, so that this ends when the last of them does.
    let mut talk = String::new();
    parent.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
    assert!(killed.elapsed() < Duration::from_secs(15), "they lived on for {:?}", killed.elapsed());
}
