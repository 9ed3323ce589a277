//! Nobody serves a machine that was sent away, whoever has a vote, and whoever was there when it was decreed.

use std::{
    thread,
    time::{Duration, Instant},
};

use wire::{Answer, Query, Whom};

use super::{
    cells::{ANYWHERE, HOUR, found, join, key_of, members, until},
    *,
};
use crate::{Key, Lookout, cell::Membership};

/// Within this nobody has to do with a machine any more that was sent away.
const WITHIN: Duration = Duration::from_secs(10);
const SERIAL: u64 = 77_777;

/// Whether a machine gives another the bytes that it has.
fn is_served(asker: Option<&Lookout>, by: Key) -> bool {
    let file = base::FileId::ROOT;
    let query = wire::encode(&Query::Read { serial: SERIAL, file, offset: 0, length: 5 });
    let answer = asker.and_then(|asker| asker.ask(&by.0, query, Duration::from_secs(2)));
    let answer = answer.map(|bytes| wire::decode(&bytes).unwrap());
    matches!(answer, Some(Answer::Bytes(bytes)) if bytes == b"bytes")
}

/// Whether a machine hears of another from the members, and is served by it.
fn reads_through(asker: &Machine, by: Key) -> bool {
    let found = asker.neighbours.find(Whom::Key(by.0));
    found.is_ok() || is_served(asker.lookout().as_ref(), by)
}

/// A cell of so many machines, each of which has had bytes of each other one.
fn acquainted(name: &str, count: usize) -> Vec<(Home, Machine)> {
    let mut cell = vec![found(&format!("{name}-1"))];
    for number in 2..=count {
        let next = join(&cell[0].0, &format!("{name}-{number}"));
        cell.push(next);
    }
    until("growing", || count < 4 || members(&cell[0].1) == 4);
    for (_, machine) in &cell {
        machine.content().put(SERIAL, b"bytes").unwrap();
    }
    let keys: Vec<Key> = cell.iter().map(|(_, machine)| key_of(machine)).collect();
    for (own, (_, machine)) in keys.iter().zip(&cell) {
        for other in keys.iter().filter(|key| *key != own) {
            until("exchanging bytes", || {
                // Whoever has no vote may not have heard of it.
                _ = machine.neighbours.find(Whom::Key(other.0));
                is_served(machine.lookout().as_ref(), *other)
            });
        }
    }
    cell
}

#[test]
fn whoever_was_sent_away_is_served_by_nobody_ten_seconds_later_in_cells_of_any_size() {
    for count in [2, 3, 4, 6] {
        let mut cell = acquainted(&format!("gone-{count}"), count);
        let (_home, gone) = cell.pop().unwrap();
        let key = key_of(&gone);
        let others: Vec<Key> = cell.iter().map(|(_, machine)| key_of(machine)).collect();
        let start = Instant::now();
        cell[0].1.registrar().revoke(&key.to_string()).unwrap();
        thread::scope(|scope| {
            for other in others {
                let asker = gone.lookout();
                scope.spawn(move || {
                    until("it is served no more", || !is_served(asker.as_ref(), other));
                });
            }
        });
        for (_, machine) in &cell {
            until("nobody reads through it", || !reads_through(machine, key));
            let machines = machine.standing().machines;
            assert!(!machines.iter().any(|other| other.key == key && other.is_connected));
        }
        let took = start.elapsed();
        assert!(took < WITHIN, "in a cell of {count}: {took:?}");
        eprintln!("in a cell of {count} it took {:.1} s", took.as_secs_f64());
        // Nor is anybody told of it who joins.
        let late = Home::new(&format!("gone-{count}-late"));
        let code = Machine::invite(&cell[0].0.0, HOUR).unwrap();
        Machine::join(&late.0, code.reveal(), ANYWHERE).unwrap();
        let told = Membership::read(&late.0).unwrap().machines;
        assert!(told.iter().all(|machine| machine.key != key.0), "a ticket lists it");
        drop(gone);
        for (_, machine) in cell {
            machine.stop().unwrap();
        }
    }
}

#[test]
fn a_machine_that_was_off_hears_who_was_sent_away_before_it_serves_them_for_long() {
    let mut cell = acquainted("off", 3);
    let (_home, gone) = cell.pop().unwrap();
    let (second, two) = cell.pop().unwrap();
    let (_first, one) = cell.pop().unwrap();
    let (key, other) = (key_of(&gone), key_of(&two));
    two.stop().unwrap();
    one.registrar().revoke(&key.to_string()).unwrap();
    let two = Machine::start(&second.0).unwrap();
    let start = Instant::now();
    until("it hears of it", || {
        !is_served(gone.lookout().as_ref(), other) && !reads_through(&two, key)
    });
    assert!(start.elapsed() < WITHIN, "{:?}", start.elapsed());
    // It knows it from then on, whoever else is there.
    two.stop().unwrap();
    one.stop().unwrap();
    let two = Machine::start(&second.0).unwrap();
    let turned = || two.standing().refused.unwrap().unwelcome;
    let is_served = || is_served(gone.lookout().as_ref(), other);
    until("it is turned away", || !is_served() && turned() > 0);
    drop((gone, two));
}

#[test]
fn a_machine_that_was_sent_away_while_it_was_off_comes_back_to_nobody() {
    let mut cell = acquainted("comes-back", 3);
    let (third, gone) = cell.pop().unwrap();
    let key = key_of(&gone);
    gone.stop().unwrap();
    cell[0].1.registrar().revoke(&key.to_string()).unwrap();
    until("the other hears of it", || !reads_through(&cell[1].1, key));
    let gone = Machine::start(&third.0).unwrap();
    let turned = |machine: &Machine| machine.standing().refused.unwrap().unwelcome;
    for (_, machine) in &cell {
        let other = key_of(machine);
        let is_served = || is_served(gone.lookout().as_ref(), other);
        until("it is turned away", || !is_served() && turned(machine) > 0);
    }
    drop(gone);
    for (_, machine) in cell {
        machine.stop().unwrap();
    }
}
