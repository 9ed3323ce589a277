//! What a lost session leaves behind.

use base::Instant;

use super::super::Settings;
use super::world::World;
use crate::message::RANGES_MAX;

/// A client starts again: its old session is lost, whatever was in it.
fn restart(world: &mut World, client: u32) {
    let now = world.now;
    let puppet = world.puppets.get_mut(&client).unwrap();
    puppet.holder.abandon(now, &mut Vec::new());
    let request = world.renewal(client);
    world.send(client, request);
}

#[test]
fn what_it_was_given_and_did_not_use_goes_back() {
    let settings = Settings { files_max: 1_000, bytes_max: 1_000, ..Settings::default() };
    let mut world = World::with(1, settings);
    world.script("1 create / a; 1 write a 10");
    assert!(world.directory.pool.files < 999);
    restart(&mut world, 1);
    assert_eq!((world.directory.pool.files, world.directory.pool.bytes), (999, 990));
    assert_eq!(world.directory.sizes().ranges, 0);
    assert_eq!(world.directory.check(), Ok(()));
}

#[test]
fn its_locks_go_and_others_learn_of_it() {
    let mut world = World::new(2);
    world.script("1 create / a; 1 lock a");
    let file = world.find("a");
    let scope = lease::Field::Locks.of(&file);
    world.need(2, lease::Kind::Read, &scope);
    assert_eq!(world.directory.records.file(&file).unwrap().unwrap().locks().len(), 1);
    restart(&mut world, 1);
    assert_eq!(world.directory.records.file(&file).unwrap().unwrap().locks(), []);
    let knows = world.puppets[&2].holder.knows(world.now, &scope);
    assert_eq!(knows, lease::Knowledge::None);
    world.script("2 lock a");
    assert_eq!(world.directory.check(), Ok(()));
}

#[test]
fn a_file_without_a_name_goes_with_the_last_who_had_it_open() {
    let mut world = World::new(2);
    world.script("1 create / a; 1 open a");
    let file = world.find("a");
    world.script("1 unlink / a");
    assert_eq!(world.directory.orphans.len(), 1);
    restart(&mut world, 1);
    assert_eq!(world.directory.orphans.len(), 0);
    assert_eq!(world.directory.records.file(&file).unwrap(), None);
    assert_eq!(world.directory.check(), Ok(()));
}

#[test]
fn a_file_without_a_name_stays_while_another_has_it_open_and_goes_when_it_closes() {
    let mut world = World::new(3);
    world.script("1 create / a; 1 open a; 2 open a");
    let file = world.find("a");
    world.script("3 unlink / a");
    assert_eq!(world.directory.orphans.len(), 1);
    restart(&mut world, 1);
    world.pass(100);
    assert_eq!(world.directory.orphans.len(), 1, "2 has it open");
    world.open(2, &file, false);
    world.pass(100);
    assert_eq!(world.directory.orphans.len(), 0);
    assert_eq!(world.directory.check(), Ok(()));
}

#[test]
fn a_file_without_a_name_is_reaped_by_whoever_closes_it_last() {
    let mut world = World::new(2);
    world.script("1 create / a; 1 open a; 2 open a");
    let file = world.find("a");
    world.script("2 unlink / a");
    world.open(2, &file, false);
    assert_eq!(world.directory.orphans.len(), 1, "1 has it open");
    world.open(1, &file, false);
    assert_eq!(world.directory.orphans.len(), 0);
    assert_eq!(world.directory.check(), Ok(()));
}

#[test]
fn a_silent_client_is_lost_once_somebody_wants_what_it_holds() {
    let mut world = World::new(2);
    world.script("1 create / a; 1 open a; 1 unlink / a; 1 create / b; 1 lock b");
    let silent = world.puppets.remove(&1);
    world.pass(30);
    assert_eq!(world.directory.orphans.len(), 1, "nobody wants anything");
    world.script("2 create / c");
    world.pass(30);
    assert_eq!(world.directory.orphans.len(), 0);
    assert!(world.now > Instant::from_secs(20) && silent.is_some());
    assert_eq!(world.directory.sizes().locked, 0);
    assert_eq!(world.directory.check(), Ok(()));
}

#[test]
fn numbers_are_for_so_many_directories_and_can_be_given_back() {
    let mut world = World::new(2);
    for number in 0..RANGES_MAX + 5 {
        world.script(&format!("1 mkdir / d{number}"));
        let directory = world.find(&format!("d{number}"));
        let provision = world.provide(2, Some(directory));
        assert_eq!(provision.numbers.is_some(), number < RANGES_MAX, "{number}");
    }
    let first = world.find("d0");
    let last = world.find(&format!("d{RANGES_MAX}"));
    let puppet = world.puppets.get_mut(&2).unwrap();
    puppet.request += 1;
    let request = puppet.request;
    let ask = crate::message::Ask::Provide {
        number: 0,
        serial: 0,
        bytes: 0,
        request,
        directory: Some(last.clone()),
        release: vec![first],
    };
    let Some(crate::message::Answer::Provided { provision, .. }) = world.ask(2, ask) else {
        panic!("it is answered")
    };
    assert_eq!(provision.numbers.map(|(directory, ..)| directory), Some(last));
}
