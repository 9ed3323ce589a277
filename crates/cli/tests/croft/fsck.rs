//! `croft fsck` on a machine that runs, and what it prints of what was found.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixListener,
    process::{Command, Stdio},
    thread,
};

use serde_json::{Value, json};

use crate::binary::{check_text, croft, text};

#[test]
fn a_new_machine_is_in_order() {
    let home = std::env::temp_dir().join(format!("croft-fsck-{}", std::process::id()));
    let directory = home.to_str().expect("it is plain text");
    assert!(croft(&["init", "--dir", directory]).status.success());
    let mut run = Command::new(env!("CARGO_BIN_EXE_croft"));
    let run = run.args(["run", "--dir", directory]).stdout(Stdio::piped());
    let mut machine = run.spawn().expect("croft starts");
    let mut line = String::new();
    let out = machine.stdout.take().expect("it was asked for");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let outputs = [&[][..], &["--json"], &["--mend"]]
        .map(|words| croft(&[&["fsck", "--dir", directory], words].concat()));
    machine.kill().expect("it runs");
    machine.wait().expect("it ends");
    fs::remove_dir_all(&home).expect("it can go");
    assert_eq!(line, "ready\n");
    let [plain, json, mended] = outputs;
    assert_eq!((plain.status.code(), text(&plain.stderr)), (Some(0), ""));
    check_text("fsck-well.txt", text(&plain.stdout));
    assert_eq!(plain.stdout, mended.stdout);
    let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&report["files"], &report["findings"]), (&json!(1), &json!([])));
}

#[test]
fn what_is_wrong_is_told_apart_from_what_only_takes_room() {
    let finding = |what: &str, is_warning: bool| json!({ "what": what, "remedy": "mend it", "is_warning": is_warning });
    let report = |findings: &[Value], more: u64| {
        json!({
            "files": 7, "names": 6, "contents": 3, "content_bytes": 12_345, "findings": findings,
            "findings_more": more,
        })
    };
    let (stray, broken) =
        (finding("bytes lie about", true), finding("a name leads nowhere", false));
    let both = [broken, stray.clone()];
    for (name, report, code) in [
        ("warning", report(&[stray], 0), 0),
        ("wrong", report(&both, 0), 1),
        ("more", report(&both, 5), 1),
    ] {
        let home = std::env::temp_dir().join(format!("croft-fsck-{}-{name}", std::process::id()));
        fs::create_dir(&home).expect("a new directory can be made");
        let listener = UnixListener::bind(home.join("control")).expect("it can be listened at");
        let machine = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody asks");
            let mut question = String::new();
            BufReader::new(&stream).read_line(&mut question).expect("a line");
            writeln!(stream, "{}", json!({ "Ok": report })).expect("who asked listens");
            question
        });
        let output = croft(&["fsck", "--dir", home.to_str().expect("it is plain text")]);
        assert_eq!(machine.join().expect("it has answered"), "{\"fsck\":false}\n");
        fs::remove_dir_all(&home).expect("it can go");
        assert_eq!(output.status.code(), Some(code), "{name}");
        check_text(&format!("fsck-{name}.txt"), text(&output.stdout));
    }
}
