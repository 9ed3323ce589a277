//! What `croft status` prints of what a machine says of itself.

use std::{fmt::Write, path::Path};

use serde_json::Value;

use crate::{
    view::{Cell, decision, short},
    words,
};

/// A line for each thing, and what to do where something is to be done.
/// A recovery that was heard and is not followed, in words.
pub fn fork(status: &Value) -> Option<String> {
    let fork = status["group"]["fork"].as_object()?;
    let (rescue, survivor) =
        (&fork["rescue"], fork["rescue"]["survivor"].as_str().unwrap_or_default());
    let (number, survivor) = (&rescue["number"], short(survivor));
    let at = words::moment(rescue["at"].as_u64().unwrap_or(0));
    let why = match fork["is_refuted"] == true {
        true => "it is not followed here, since so many members answer that they decide",
        false => "it will be followed if too few members answer for 30 s",
    };
    Some(format!(
        "the root key has said at {at} that the group goes on from {survivor} (recovery {number}); {why}"
    ))
}

pub fn text(home: &Path, status: &Value) -> String {
    let mut text = String::new();
    let mut line = |what: &str, says: String| {
        writeln!(text, "{what:<12}{says}").expect("a string takes everything");
    };
    let (client, group) = (&status["client"], &status["group"]);
    let cell = Cell::of(status);
    line("machine", home.display().to_string());
    line("mounted", list(&status["mounts"]));
    line("not pushed", format!("{} operations", client["pending"]));
    // Whoever has no vote need not have heard of what the group has decided.
    match cell.has_vote() {
        true => {
            line("leases", format!("{} held, {} granted", client["leases"], group["leases"]));
            line("sessions", format!("{} of clients with the group", group["sessions"]));
        }
        false => line("leases", format!("{} held", client["leases"])),
    }
    line("remembered", format!("{} files and names", client["facts"]));
    let name = status["cell"].as_str().unwrap_or_default();
    line("cell", format!("{name}: {}", cell.summary()));
    // Where all act for any user, it is said once.
    let differ =
        cell.machines.iter().any(|machine| !machine.users().is_empty() && !machine.is_for_any());
    for machine in &cell.machines {
        let users = if differ { machine.users() } else { String::new() };
        line("", format!("{}{users}", machine.line()));
    }
    let now = words::now();
    for machine in &cell.machines {
        if let Some(days) = machine.ends_in(now) {
            let key = short(&machine.key);
            line(
                "certificate",
                format!("of {key} ends in {days} days; croft doctor says what to do"),
            );
        }
    }
    if let Some(users) = users(status, &cell) {
        line("users", users);
    }
    if let Some(may) = status["powers"]["issuer"]["may"].as_array() {
        let until = words::moment(status["powers"]["issuer"]["expires"].as_u64().unwrap_or(0));
        let may: Vec<&str> = may.iter().filter_map(Value::as_str).collect();
        line("issuer", format!("this machine may {} until {until}", may.join(", ")));
    }
    line(
        "group",
        match cell.has_vote() {
            true => format!("{}; {} is safe", cell.group(), decision(&group["height"])),
            false => format!("{}; this machine has no vote", cell.group()),
        },
    );
    if let Some(stalled) = cell.stalled() {
        line("stalled", format!("{stalled}; start the others, or mend the network between"));
    }
    for machine in cell.machines.iter().filter(|machine| machine.lies > 0) {
        let (key, lies) = (short(&machine.key), machine.lies);
        line("evidence", format!("{key} has lied, which is proven {lies} times; find out why"));
    }
    if let Some(last) = group["rescues"].as_array().and_then(|rescues| rescues.last()) {
        let at = words::moment(last["at"].as_u64().unwrap_or(0));
        let survivor = short(last["survivor"].as_str().unwrap_or_default());
        let count = match last["number"].as_u64() {
            Some(1) => "once".to_owned(),
            number => format!("{} times", number.unwrap_or(0)),
        };
        line(
            "recovered",
            format!(
                "{count}; last from {survivor} after {}, by the root key at {at}",
                decision(&last["height"])
            ),
        );
    }
    if let Some(fork) = fork(status) {
        line("fork", fork);
    }
    if group["is_passed_over"] == true {
        line(
            "follows",
            "the group was recovered without this machine, which gets a vote again when a seat is free"
                .into(),
        );
    }
    let (stored, records, log) = (&group["stored"], &group["records"], &group["log_bytes"]);
    let stored = decision(stored);
    line("store", format!("{stored}, {records} records at hand, {log} bytes of log"));
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
    match status["recovery_files"].as_u64().unwrap_or(0) {
        0 => {}
        files => {
            let full = match status["recovery_full"] == true {
                true => "; there is no room for more",
                false => "",
            };
            let place = home.join("recovery");
            line(
                "recovery",
                format!("{files} files in {} tell what was lost{full}", place.display()),
            );
        }
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
    if let Some(astray) = astray(status) {
        line("astray", format!("{astray}; {ASTRAY_REMEDY}"));
    } else if let Some(failure) = failure(status) {
        line("stopped", format!("{failure}; mend that, and start the machine again"));
    }
    text
}

/// Who the users of the cell are, and what is given away where machines act for any.
fn users(status: &Value, cell: &Cell) -> Option<String> {
    let users = status["users"].as_array().into_iter().flatten();
    let users: Vec<String> = users
        .filter(|user| user["is_removed"] != true)
        .filter_map(|user| Some(format!("{} ({})", user["name"].as_str()?, user["uid"])))
        .collect();
    let known = cell.machines.iter().filter(|machine| machine.acts_for.is_some()).count();
    let given = match cell.machines.iter().filter(|machine| machine.is_for_any()).count() {
        0 => None,
        count if count == known => Some(
            "any: whoever is superuser on a machine of this cell can act as anybody, as with NFS"
                .into(),
        ),
        1 => Some("one machine acts for any: whoever is superuser there can act as anybody".into()),
        count => Some(format!(
            "{count} machines act for any: whoever is superuser on one of those can act as anybody"
        )),
    };
    let named = (!users.is_empty()).then(|| users.join(", "));
    match (named, given) {
        (Some(named), Some(given)) => Some(format!("{named}; {given}")),
        (named, given) => named.or(given),
    }
}

/// Whether all goes on.
pub fn is_well(status: &Value) -> bool {
    failure(status).is_none() && !is_full(status) && Cell::of(status).stalled().is_none()
}

/// Why the machine has stopped, if it has.
pub fn failure(status: &Value) -> Option<&str> {
    status["group"]["failure"].as_str()
}

/// How the machine's state is another one than others have sealed, if it is.
pub fn astray(status: &Value) -> Option<String> {
    let astray = &status["group"]["astray"];
    let others = astray["others"].as_array()?.iter().filter_map(Value::as_str);
    let others: Vec<String> = others.map(|key| short(key).to_owned()).collect();
    let (last, others) = others.split_last()?;
    Some(format!(
        "after {} this machine has another state than {} and {last} have sealed, so it votes no more",
        decision(&astray["height"]),
        others.join(", ")
    ))
}

/// What to do about that.
pub const ASTRAY_REMEDY: &str = "look at its memory and disk, and at what it runs; then make a new directory and \
    join with a new invitation, and keep this one, whose log has what they have sealed";

/// The group waits for room, or programs are told that there is none.
pub fn is_full(status: &Value) -> bool {
    status["group"]["is_full"] == true || status["room_bytes"] == 0
}

fn list(paths: &Value) -> String {
    let paths: Vec<&str> =
        paths.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if paths.is_empty() { "nowhere".into() } else { paths.join(", ") }
}
