//! Many machines join by one code, each a process that nobody attends to, and each is sent away alone.

use std::{
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    cell::{Cell, Scratch, can_mount, text},
    spread::until,
};

/// So many at a time: enough for two cores.
const AT_A_TIME: usize = 4;
/// What is promised for two hundred.
const WITHIN: Duration = Duration::from_secs(300);

/// `croft join -`, with the code on its standard input.
fn join(code: &str, home: &Path) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_croft"))
        .args(["join", "-", "--dir"])
        .arg(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(code.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn machines(cell: &Cell) -> usize {
    let status = text(&cell.ask(&["status", "--json"]).stdout);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
    status["machines"].as_array().map_or(0, Vec::len)
}

#[test]
fn as_many_processes_as_a_code_is_for_join_by_it_unattended_and_each_is_sent_away_alone() {
    if !can_mount() {
        return;
    }
    // `cargo xtask long joins-processes` says how many.
    let count = std::env::var("CROFT_JOINS").map_or(6, |count| count.parse().unwrap());
    let mut first = Cell::idle(None);
    first.init(&["--listen", "127.0.0.1"]);
    first.start(&[]);
    let code = text(&first.ask(&["invite", "--count", &count.to_string()]).stdout);
    let scratch = Scratch::new();
    let homes: Vec<_> =
        (0..count).map(|number: usize| scratch.0.join(number.to_string())).collect();
    let start = Instant::now();
    thread::scope(|scope| {
        for homes in homes.chunks(count.div_ceil(AT_A_TIME)) {
            let code = &code;
            scope.spawn(move || {
                for home in homes {
                    let output = join(code, home);
                    assert!(output.status.success(), "{}", text(&output.stderr));
                }
            });
        }
    });
    let took = start.elapsed();
    eprintln!("{count} processes joined by one code in {:.1} s", took.as_secs_f64());
    assert!(took < WITHIN, "{took:?}");
    until("all are listed", || machines(&first) == count + 1);
    let output = join(&code, &scratch.0.join("late"));
    assert!(text(&output.stderr).contains("is used up"), "{}", text(&output.stderr));

    // Each runs, and knows its key.
    let machine = |number: usize| {
        let mut cell = Cell::idle(Some(homes[number].clone()));
        cell.start(&[]);
        let status = text(&cell.ask(&["status", "--json"]).stdout);
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        let machines = status["machines"].as_array().unwrap();
        let this = machines.iter().find(|machine| machine["is_this"] == true).unwrap();
        (this["key"].as_str().unwrap().to_owned(), cell)
    };
    let ((key, gone), (_, mut stays)) = (machine(0), machine(count - 1));
    let output = first.ask(&["revoke", &key]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    until("one is listed no more", || machines(&first) == count);
    drop(gone);
    std::fs::write(stays.at("here"), "here").unwrap();
    assert_eq!(std::fs::read_to_string(first.at("here")).unwrap(), "here");
    stays.stop();
    first.stop();
}
