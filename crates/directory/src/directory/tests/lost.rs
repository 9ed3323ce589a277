//! What a lost session leaves behind.

use base::Instant;
use lease::{Field, Kind, Knowledge, Name, message::Want};

use super::super::{Settings, lost::SWEEP_MAX};
use super::world::World;
use crate::message::RANGES_MAX;

#[test]
fn what_it_was_given_and_did_not_use_goes_back() {
    let settings = Settings { files_max: 1_000, room_max: 1_000, ..Settings::default() };
    let mut world = World::with(1, settings);
    world.script("1 create / a; 1 write a 10");
    let free = |world: &World| {
        let directory = &world.directory;
        let free = directory.ledger.free(&directory.settings, lease::Client(1), 0);
        assert_eq!(free.own, free.room, "the superuser may have all");
        (free.own.files, free.own.bytes)
    };
    assert!(free(&world).0 < 999 && free(&world).1 < 990);
    world.restart(1);
    assert_eq!(free(&world), (999, 990));
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
    world.restart(1);
    assert_eq!(world.directory.records.file(&file).unwrap().unwrap().locks(), []);
    let knows = world.puppets[&2].holder.knows(world.now, &scope);
    assert_eq!(knows, lease::Knowledge::None);
    world.script("2 lock a");
    assert_eq!(world.directory.check(), Ok(()));
}

#[test]
fn whoever_is_granted_a_file_again_as_its_locks_go_does_not_go_by_what_it_knew() {
    let mut world = World::new(2);
    world.script("1 create / a; 1 lock a; 1 create / b");
    let (a, b) = (world.find("a"), world.find("b"));
    let write = |file| Want { scope: Field::Whole.of(file), kind: Kind::Write };
    world.need_all(2, vec![write(&a)]);
    world.puppets.remove(&1);
    world.pass(30);
    // The silent one is lost by the very command that grants both files.
    world.need_all(2, vec![write(&a), write(&b)]);
    let knows = |file| world.puppets[&2].holder.knows(world.now, &Field::Locks.of(file));
    assert_eq!([knows(&a), knows(&b)], [Knowledge::None, Knowledge::Writes]);
    assert_eq!(world.directory.sizes().locked, 0);
}

#[test]
fn a_file_without_a_name_goes_with_the_last_who_had_it_open() {
    let mut world = World::new(2);
    world.script("1 create / a; 1 open a");
    let file = world.find("a");
    world.script("1 unlink / a");
    assert_eq!(world.directory.orphans.len(), 1);
    world.restart(1);
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
    world.restart(1);
    world.pass(100);
    assert_eq!(world.directory.orphans.len(), 1, "2 has it open");
    world.open(2, &file, false);
    world.pass(100);
    assert_eq!(world.directory.orphans.len(), 0);
    assert_eq!(world.directory.check(), Ok(()));
}

#[test]
fn a_file_that_loses_its_name_after_the_last_who_had_it_open_was_lost_goes() {
    let mut world = World::new(2);
    world.script("1 create / a; 1 open a");
    let (file, root) = (world.find("a"), base::FileId::ROOT);
    let name = Field::Child(Name::new(b"a").unwrap());
    let scopes = [Field::Whole.of(&file), name.of(&root)];
    let wants = scopes.map(|scope| Want { scope, kind: Kind::Write });
    world.need_all(2, wants.to_vec());
    // While 2 hears nothing it goes on believing that 1 has the file open.
    let deaf = world.puppets.remove(&2).unwrap();
    world.restart(1);
    world.puppets.insert(2, deaf);
    world.script("2 unlink / a");
    let unlinked = world
        .history
        .iter()
        .any(|(_, command, _)| format!("{command:?}").contains("name: a, is_open: true"));
    assert!(unlinked);
    world.pass(100);
    assert_eq!(world.directory.orphans.len(), 0);
    assert_eq!(world.directory.check(), Ok(()));
}

/// Files without a name: 1, which is lost, had all of them open, and 2 has some of them.
fn suspects(count: usize, is_open: impl Fn(usize) -> bool) -> World {
    let mut world = World::new(3);
    for number in 0..count {
        world.script(&format!("1 create / f{number}; 1 open f{number}"));
        if is_open(number) {
            world.script(&format!("2 open f{number}"));
        }
        world.script(&format!("1 unlink / f{number}"));
    }
    world.restart(1);
    world
}

#[test]
fn giving_back_something_else_does_not_put_off_a_look_at_files_without_a_name() {
    let mut world = suspects(2, |_| true);
    assert_eq!(world.directory.suspects.len(), 2);
    let planned = world.directory.sweep;
    world.script("2 create / other; 3 unlink / other");
    assert_eq!(world.directory.sweep, planned);
}

#[test]
fn however_many_files_without_a_name_stay_open_the_others_go() {
    let open = SWEEP_MAX + 10;
    let mut world = suspects(open + 10, |number| number < open);
    assert_eq!(world.directory.suspects.len(), open + 10);
    world.pass(10);
    assert_eq!(world.directory.orphans.len(), open);
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
    let needs = crate::message::Needs {
        directory: Some(last.clone()),
        release: vec![first],
        ..Default::default()
    };
    let ask = crate::message::Ask::Provide { request, needs };
    let Some(crate::message::Answer::Provided { provision, .. }) = world.ask(2, ask) else {
        panic!("it is answered")
    };
    assert_eq!(provision.numbers.map(|(directory, ..)| directory), Some(last));
}
