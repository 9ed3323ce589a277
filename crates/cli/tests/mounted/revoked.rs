//! A machine is sent away that has exchanged bytes with each other one: ten seconds later nobody has to do with it,
//! and nothing is read through it that it had not read before.

use std::{
    fs,
    path::PathBuf,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    cell::{Cell, can_mount, text},
    spread::{PATIENCE, pass, until},
};

/// Within this it is over.
const WITHIN: Duration = Duration::from_secs(10);
/// And nothing is read for so long after that.
const LONGER: Duration = Duration::from_secs(3);

fn status(cell: &Cell) -> serde_json::Value {
    serde_json::from_slice(&cell.ask(&["status", "--json"]).stdout).unwrap_or_default()
}

fn machines(cell: &Cell) -> Vec<serde_json::Value> {
    status(cell)["machines"].as_array().cloned().unwrap_or_default()
}

fn key_of(cell: &Cell) -> String {
    let machines = machines(cell);
    let this = machines.iter().find(|machine| machine["is_this"] == true).unwrap();
    this["key"].as_str().unwrap().to_owned()
}

/// Machines that were set up by hand, each of which has read what each other one wrote.
fn acquainted(count: usize) -> Vec<Cell> {
    let mut cells: Vec<Cell> = (0..count).map(|_| Cell::idle(None)).collect();
    let (first, others) = cells.split_first_mut().unwrap();
    first.init(&["--listen", "127.0.0.1"]);
    first.start(&[]);
    for cell in others {
        let code = text(&first.ask(&["invite"]).stdout);
        let output = cell.ask(&["join", code.trim()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        cell.start(&[]);
    }
    let has_grown = |cell: &Cell| status(cell)["group"]["members"] == 4;
    until("growing", || count < 4 || cells.iter().all(has_grown));
    for (number, cell) in cells.iter().enumerate() {
        fs::write(cell.at(&format!("by-{number}")), format!("{number}").repeat(10_000)).unwrap();
        fs::write(cell.at(&format!("later-{number}")), "never read before").unwrap();
    }
    for cell in &cells {
        for number in 0..count {
            let read = fs::read_to_string(cell.at(&format!("by-{number}"))).unwrap();
            assert!(read == number.to_string().repeat(10_000));
        }
    }
    cells
}

/// Reads a file over and over until that fails, and says when it was read last, if ever. A read may hang for a minute,
/// since a machine can't know that nobody will answer.
fn read_until_it_fails(path: PathBuf) -> mpsc::Receiver<Option<Instant>> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut last = None;
        while fs::read(&path).is_ok() {
            last = Some(Instant::now());
            thread::park_timeout(Duration::from_millis(50));
        }
        _ = tell.send(last);
    });
    told
}

fn check(count: usize) {
    let mut cells = acquainted(count);
    let mut gone = cells.pop().unwrap();
    let key = key_of(&gone);
    let start = Instant::now();
    let output = cells[0].ask(&["revoke", &key]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // What it has just read it has in its own memory. The rest would have to come from others.
    let path = |number| gone.at(&format!("later-{number}"));
    let reads: Vec<_> = (0..count - 1).map(|number| read_until_it_fails(path(number))).collect();
    let is_it = |machine: &serde_json::Value| machine["key"] == *key;
    let is_connected = |cell: &Cell| {
        machines(cell).iter().any(|machine| is_it(machine) && machine["is_connected"] == true)
    };
    until("nobody is connected with it", || !cells.iter().any(is_connected));
    let took = start.elapsed();
    assert!(took < WITHIN, "it took {took:?}");
    pass((WITHIN + LONGER).saturating_sub(start.elapsed()));
    // What hangs there ends with it.
    gone.kill();
    let last = reads.into_iter().filter_map(|told| told.recv_timeout(PATIENCE).unwrap()).max();
    let last = last.map_or(Duration::ZERO, |last| last - start);
    assert!(last < WITHIN, "it was read after {last:?}");
    eprintln!(
        "in a cell of {count} nobody was connected with it after {:.1} s, and nothing new was read through it after {:.1} s",
        took.as_secs_f64(),
        last.as_secs_f64()
    );
    // The others go on.
    fs::write(cells[0].at("after"), "after").unwrap();
    for cell in &cells {
        assert_eq!(fs::read_to_string(cell.at("after")).unwrap(), "after");
    }
}

#[test]
fn nothing_new_is_read_through_a_machine_that_was_sent_away_and_nobody_is_connected_with_it() {
    if can_mount() {
        [2, 4].into_iter().for_each(check);
    }
}
