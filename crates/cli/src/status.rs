//! What `croft status` prints of what a machine says of itself.

use std::{fmt::Write, path::Path};

use serde_json::Value;

/// A line for each thing, and what to do where something is to be done.
pub fn text(home: &Path, status: &Value) -> String {
    let mut text = String::new();
    let mut line = |what: &str, says: String| {
        writeln!(text, "{what:<12}{says}").expect("a string takes everything");
    };
    let (client, group) = (&status["client"], &status["group"]);
    line("machine", home.display().to_string());
    line("mounted", list(&status["mounts"]));
    line("not pushed", format!("{} operations", client["pending"]));
    line("leases", format!("{} held, {} granted", client["leases"], group["leases"]));
    line("remembered", format!("{} files and names", client["facts"]));
    line("group", format!("of one; decision {} is safe", group["height"]));
    let (stored, records, log) = (&group["stored"], &group["records"], &group["log_bytes"]);
    line("store", format!("decision {stored}, {records} records at hand, {log} bytes of log"));
    if let Some(bytes) = status["room_bytes"].as_u64() {
        line("room", format!("{bytes} bytes for new files"));
    }
    let torn = |part: &str| group["torn"][part].as_u64().unwrap_or(0);
    match (torn("log_bytes"), torn("content_bytes")) {
        (0, 0) => {}
        (log, content) => line(
            "torn",
            format!(
                "a crash before the start took {log} bytes of the log and {content} of contents; nobody \
                 was told that they were safe, so nothing is to be done"
            ),
        ),
    }
    if is_full(status) {
        line(
            "full",
            format!(
                "remove something, or make room on the disk of {}; all goes on by itself then",
                home.display()
            ),
        );
    }
    if let Some(failure) = failure(status) {
        line("stopped", format!("{failure}; mend that, and start the machine again"));
    }
    text
}

/// Whether all is well.
pub fn is_well(status: &Value) -> bool {
    failure(status).is_none() && !is_full(status)
}

fn failure(status: &Value) -> Option<&str> {
    status["group"]["failure"].as_str()
}

/// The group waits for room, or programs are told that there is none.
fn is_full(status: &Value) -> bool {
    status["group"]["is_full"] == true || status["room_bytes"] == 0
}

fn list(paths: &Value) -> String {
    let paths: Vec<&str> =
        paths.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if paths.is_empty() { "nowhere".into() } else { paths.join(", ") }
}
