//! What `croft status` says, of machines that say this and that of themselves.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixListener,
    thread,
};

use serde_json::{Value, json};

use crate::binary::{check_text, croft, text};

/// What `croft status` prints and how it ends, if the machine answers with this. The machine's directory is
/// called DIR.
fn status(name: &str, answer: &Value, words: &[&str]) -> (String, Option<i32>) {
    let home = std::env::temp_dir().join(format!("croft-status-{}-{name}", std::process::id()));
    fs::create_dir(&home).expect("a new directory can be made");
    let listener = UnixListener::bind(home.join("control")).expect("it can be listened at");
    let line = json!({ "Ok": answer }).to_string();
    let machine = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody asks");
        let mut question = String::new();
        BufReader::new(&stream).read_line(&mut question).expect("a line");
        writeln!(stream, "{line}").expect("who asked listens");
        question
    });
    let directory = home.to_str().expect("it is plain text");
    let output = croft(&[&["status", "--dir", directory], words].concat());
    assert_eq!(machine.join().expect("it has answered"), "\"status\"\n");
    fs::remove_dir_all(&home).expect("it can go");
    (text(&output.stdout).replace(directory, "DIR"), output.status.code())
}

fn machine(room_bytes: Value, group: Value) -> Value {
    let mut all = json!({
        "height": 77, "stored": 70, "records": 1_234, "leases": 2, "log_bytes": 5_678,
        "torn": { "log_bytes": 0, "content_bytes": 0 }, "is_full": false, "failure": null,
    });
    let group = group.as_object().expect("fields of a group").clone();
    all.as_object_mut().expect("fields of a group").extend(group);
    let client = json!({ "session": 4_294_967_296u64, "pending": 3, "leases": 1, "facts": 456 });
    json!({ "client": client, "group": all, "mounts": ["/mnt/croft"], "room_bytes": room_bytes })
}

#[track_caller]
fn check(name: &str, answer: &Value, code: i32) {
    let (said, ended) = status(name, answer, &[]);
    assert_eq!(ended, Some(code), "{said}");
    check_text(&format!("status-{name}.txt"), &said);
}

#[test]
fn a_status_says_what_is_wrong_and_what_to_do() {
    check("well", &machine(json!(1 << 30), json!({})), 0);
    check("refuses", &machine(json!(0), json!({})), 1);
    check("full", &machine(json!(4_096), json!({ "is_full": true })), 1);
    let torn = json!({ "torn": { "log_bytes": 12, "content_bytes": 345 } });
    check("torn", &machine(json!(1 << 30), torn), 0);
    let failure = json!({ "failure": "can't write DIR/log/1: Input/output error" });
    check("stopped", &machine(json!(null), failure), 1);
}

#[test]
fn a_program_gets_the_same_as_one_object() {
    let torn = json!({ "torn": { "log_bytes": 12, "content_bytes": 345 }, "is_full": true });
    let answer = machine(json!(0), torn);
    let (said, ended) = status("json", &answer, &["--json"]);
    assert_eq!(ended, Some(1));
    assert_eq!(serde_json::from_str::<Value>(&said).expect("JSON"), answer);
    assert_eq!(said.lines().count(), 1);
}
