//! What `croft status` and `croft doctor` say, of machines that say this and that of themselves.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixListener,
    thread,
};

use serde_json::{Value, json};

use crate::binary::{check_text, croft, text};

/// What a command prints and how it ends, if the machine answers with this. The machine's directory is called
/// DIR.
fn ask(command: &str, name: &str, answer: &Value, words: &[&str]) -> (String, Option<i32>) {
    let home = std::env::temp_dir().join(format!("croft-{command}-{}-{name}", std::process::id()));
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
    let output = croft(&[&[command, "--dir", directory], words].concat());
    assert_eq!(machine.join().expect("it has answered"), "\"status\"\n");
    fs::remove_dir_all(&home).expect("it can go");
    (text(&output.stdout).replace(directory, "DIR"), output.status.code())
}

/// A machine of a cell.
fn peer(number: u8, fields: &Value) -> Value {
    let mut all = json!({
        "key": format!("{number:02x}").repeat(32), "addresses": [format!("192.168.1.{number}:7001")],
        "is_this": false, "is_member": true, "is_learner": false, "is_leader": false,
        "is_connected": true, "is_away": false, "lies": 0,
    });
    extend(&mut all, fields);
    all
}

fn extend(all: &mut Value, fields: &Value) {
    let fields = fields.as_object().expect("fields").clone();
    all.as_object_mut().expect("fields").extend(fields);
}

/// A machine that is its cell's only one.
fn machine(room_bytes: Value, group: Value) -> Value {
    let mut all = json!({
        "height": 77, "stored": 70, "records": 1_234, "leases": 2, "sessions": 1, "log_bytes": 5_678,
        "torn": { "log_bytes": 0, "content_bytes": 0 }, "members": 1, "quorum": 1, "machines": 1,
        "address": null, "is_full": false, "failure": null,
    });
    extend(&mut all, &group);
    let client = json!({ "session": 4_294_967_296u64, "pending": 3, "leases": 1, "facts": 456 });
    let this = json!({ "is_this": true, "is_leader": true, "addresses": [] });
    json!({
        "cell": "1c80195684662021", "client": client, "group": all, "machines": [peer(1, &this)], "refused": null,
        "mounts": ["/mnt/croft"], "mount_wanted": "/mnt/croft", "room_bytes": room_bytes,
        "recovery_files": 0,
    })
}

/// A machine of a cell of several, with so many members.
fn several(members: usize, peers: Vec<Value>) -> Value {
    let quorum = members * 2 / 3 + 1;
    let group = json!({
        "members": members, "quorum": quorum, "machines": peers.len(), "sessions": peers.len(),
        "address": "192.168.1.1:7001",
    });
    let mut all = machine(json!(1 << 30), group);
    all["machines"] = Value::Array(peers);
    all
}

/// A cell of five of which these fields say how each stands.
fn five(fields: [Value; 5]) -> Value {
    let mut peers: Vec<Value> = (1..).zip(&fields).map(|(n, fields)| peer(n, fields)).collect();
    peers[0]["is_this"] = json!(true);
    peers[1]["is_leader"] = json!(true);
    peers[4]["is_member"] = json!(false);
    several(4, peers)
}

fn away() -> Value {
    json!({ "is_connected": false, "is_away": true })
}

#[track_caller]
fn check(name: &str, answer: &Value, code: i32) {
    check_of("status", name, answer, code);
}

#[track_caller]
fn check_of(command: &str, name: &str, answer: &Value, code: i32) {
    let (said, ended) = ask(command, name, answer, &[]);
    assert_eq!(ended, Some(code), "{said}");
    check_text(&format!("{command}-{name}.txt"), &said);
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
fn a_status_shows_the_cell_who_leads_who_is_away_and_who_lied() {
    let well = || json!({});
    let idle = json!({ "is_connected": false });
    check("cell", &five([well(), well(), well(), idle, well()]), 0);
    check("away", &five([well(), well(), away(), json!({ "lies": 2 }), away()]), 0);
    check("stalled", &five([well(), away(), away(), well(), well()]), 1);
    let founder = peer(1, &json!({ "is_leader": true }));
    let no_member = json!({ "is_member": false, "is_this": true });
    check("pair", &several(1, vec![founder, peer(2, &no_member)]), 0);
}

#[test]
fn a_status_tells_whom_machines_act_for_and_what_any_gives_away() {
    let any = || json!({ "acts_for": ["any"] });
    check("any", &five([any(), any(), any(), any(), any()]), 0);
    let [alice, both] = [json!(["alice"]), json!(["alice", "bob"])];
    let fields =
        [any(), json!({ "acts_for": alice }), json!({ "acts_for": both }), json!({}), any()];
    let mut mixed = five(fields);
    mixed["machines"][3]["acts_for"] = json!([]);
    mixed["users"] = json!([
        { "name": "alice", "key": "07".repeat(32), "uid": 1_000, "gid": 1_000, "groups": [20], "is_removed": false },
        { "name": "bob", "key": "08".repeat(32), "uid": 1_001, "gid": 1_001, "groups": [], "is_removed": false },
        { "name": "eve", "key": "09".repeat(32), "uid": 1_002, "gid": 1_002, "groups": [], "is_removed": true },
    ]);
    check("users", &mixed, 0);
}

#[test]
fn a_certificate_that_ends_soon_is_told_and_what_to_do() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let days = |count: u64| json!({ "expires": now + count * 86_400 + 3_600 });
    let well = || json!({});
    let cell = five([days(1_000), days(40), well(), days(181), well()]);
    check("ends", &cell, 0);
    check_of("doctor", "ends", &cell, 1);
}

#[test]
fn a_status_shows_that_the_group_was_recovered_and_who_follows() {
    let well = || json!({});
    let mut recovered = five([well(), well(), well(), well(), well()]);
    let group = json!({
        "height": (2u64 << 44) + 77, "stored": (2u64 << 44) + 70,
        "rescues": [
            { "number": 1, "survivor": "02".repeat(32), "height": 41, "at": 951_827_696 },
            { "number": 2, "survivor": "01".repeat(32), "height": (1u64 << 44) + 8, "at": 1_772_323_200 },
        ],
    });
    extend(&mut recovered["group"], &group);
    check("recovered", &recovered, 0);
    let survivor = peer(1, &json!({ "is_leader": true }));
    let this = json!({ "is_member": false, "is_this": true });
    let mut follows = several(1, vec![survivor, peer(2, &this)]);
    follows["group"]["is_passed_over"] = json!(true);
    check("follows", &follows, 0);
}

#[test]
fn a_status_and_a_doctor_show_that_this_machine_has_another_state_than_the_others() {
    let well = || json!({});
    let mut cell = five([well(), well(), well(), well(), well()]);
    cell["group"]["failure"] =
        json!("after decision 41 this machine's copy of the tree is not what it should be");
    cell["group"]["astray"] =
        json!({ "height": 41, "others": ["02".repeat(32), "03".repeat(32), "04".repeat(32)] });
    check("astray", &cell, 1);
    check_of("doctor", "astray", &cell, 1);
}

#[test]
fn a_recovery_that_is_not_followed_is_shown_and_what_to_do() {
    let well = || json!({});
    let mut fork = five([well(), well(), well(), well(), well()]);
    let rescue =
        json!({ "number": 1, "survivor": "02".repeat(32), "height": 41, "at": 1_772_323_200 });
    fork["group"]["fork"] = json!({ "rescue": rescue, "is_refuted": true });
    check("fork", &fork, 0);
    check_of("doctor", "fork", &fork, 1);
    fork["group"]["fork"]["is_refuted"] = json!(false);
    check("asks", &fork, 0);
}

#[test]
fn a_doctor_finds_nothing_where_nothing_is_wrong() {
    let well = || json!({});
    check_of("doctor", "well", &five([well(), well(), well(), well(), well()]), 0);
}

#[test]
fn a_doctor_says_of_each_thing_that_is_wrong_what_to_do() {
    let well = || json!({});
    let alone = machine(json!(1 << 30), json!({}));
    check_of("doctor", "alone", &alone, 1);
    let no_member = json!({ "is_member": false });
    let this = json!({ "is_leader": true, "is_this": true });
    check_of("doctor", "pair", &several(1, vec![peer(1, &this), peer(2, &no_member)]), 1);
    let mut ill = five([well(), well(), away(), json!({ "lies": 2 }), away()]);
    ill["mounts"] = json!([]);
    ill["recovery_files"] = json!(3);
    ill["recovery_full"] = json!(true);
    check_of("doctor", "ill", &ill, 1);
    let mut dead = five([well(), away(), away(), well(), well()]);
    dead["group"]["is_full"] = json!(true);
    dead["group"]["failure"] = json!("can't write DIR/log/1: Input/output error");
    check_of("doctor", "dead", &dead, 1);
    let mut lost = five([well(), away(), away(), well(), well()]);
    lost["group"]["quiet_s"] = json!(900);
    check_of("doctor", "lost", &lost, 1);
    let (said, ended) = ask("doctor", "json", &alone, &["--json"]);
    let findings = serde_json::from_str::<Value>(&said).expect("JSON");
    assert_eq!((findings.as_array().map(Vec::len), ended), (Some(1), Some(1)), "{said}");
    assert!(findings[0]["what"].is_string() && findings[0]["remedy"].is_string());
}

#[test]
fn a_doctor_warns_while_the_root_key_lies_open_and_before_an_issuers_time_is_over() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let powers = |root: Value, days: u64| {
        let well = || json!({});
        let mut cell = five([well(), well(), well(), well(), well()]);
        let may = ["invite", "enrol", "renew", "revoke"];
        let expires = now + days * 86_400;
        let key = "0a".repeat(32);
        cell["powers"] =
            json!({ "root": root, "issuer": { "key": key, "expires": expires, "may": may } });
        cell
    };
    check_of("doctor", "open", &powers(json!("open"), 12), 1);
    check_of("doctor", "over", &powers(json!("sealed"), 0), 1);
    check_of("doctor", "well", &powers(json!("sealed"), 300), 0);
    check_of("doctor", "well", &powers(json!(null), 300), 0);
}

#[test]
fn a_doctor_who_meets_nobody_says_so() {
    let home = std::env::temp_dir().join(format!("croft-nobody-{}", std::process::id()));
    let directory = home.to_str().expect("it is plain text");
    for (name, is_made) in [("nowhere", false), ("asleep", true)] {
        if is_made {
            assert!(croft(&["init", "--dir", directory]).status.success());
        }
        let output = croft(&["doctor", "--dir", directory]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), ""));
        check_text(&format!("doctor-{name}.txt"), &text(&output.stdout).replace(directory, "DIR"));
    }
    fs::remove_dir_all(&home).expect("it can go");
}

#[test]
fn a_program_gets_the_same_as_one_object() {
    let torn = json!({ "torn": { "log_bytes": 12, "content_bytes": 345 }, "is_full": true });
    let answer = machine(json!(0), torn);
    let (said, ended) = ask("status", "json", &answer, &["--json"]);
    assert_eq!(ended, Some(1));
    assert_eq!(serde_json::from_str::<Value>(&said).expect("JSON"), answer);
    assert_eq!(said.lines().count(), 1);
}
