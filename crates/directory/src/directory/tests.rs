//! What the machine does with honest and with hostile clients.

mod histories;
mod hostile;
mod lost;
mod secret;
mod values;
mod world;

use world::World;

use super::*;
use crate::{Act, Actor, audit::Audit, operation::Changes, record::Record};

/// A directory with one broken thing in it.
#[track_caller]
fn broken(expected: &str, spoil: impl Fn(&mut Directory)) {
    let mut world = World::new(2);
    world.script("1 mkdir / d; 1 create d a; 1 create d b; 2 symlink / s");
    assert_eq!(world.directory.check(), Ok(()));
    assert_eq!(audit(&world.directory), Vec::<String>::new());
    spoil(&mut world.directory);
    let found = world.directory.check().expect_err(expected);
    assert!(found.contains(expected), "{found}");
    let found = audit(&world.directory);
    assert!(found.iter().any(|found| found.contains(expected)), "{found:?}");
}

/// What a check finds to which the records come one by one.
fn audit(directory: &Directory) -> Vec<String> {
    let mut audit = Audit::new(directory.outline().unwrap());
    let mut find = |file: &FileId| match directory.records.get(&Key::file(file)).unwrap() {
        Some(Record::File(file)) => Ok::<_, ()>(Some(file.clone())),
        _ => Ok(None),
    };
    for (key, record) in directory.records.iter() {
        audit.look(key, record, &mut find).unwrap();
    }
    for (key, record) in directory.records.iter() {
        if let Record::File(file) = record {
            audit.look_again(&key.file, file);
        }
    }
    audit.finish().0.findings
}

fn change(directory: &mut Directory, key: &Key, change: impl Fn(&mut File)) {
    let Ok(Some(Record::File(file))) = directory.records.get(key) else { panic!("no {key:?}") };
    let mut file = File::clone(file);
    change(&mut file);
    directory.records.set_file(&key.file, Some(file));
    directory.records.settle();
}

/// The key of the directory `d`, or of the first file in it.
fn key(directory: &Directory, name: &str) -> Key {
    let name = Name::new(name.as_bytes()).unwrap();
    let named = |(key, _): &(&Key, &Record)| key.name.as_ref() == Some(&name);
    let Some((_, Record::Entry(entry))) = directory.records.iter().find(named) else { panic!() };
    Key::file(&entry.file)
}

#[test]
fn the_check_notices_each_thing_that_does_not_fit() {
    broken("N1", |directory| {
        let a = key(directory, "a");
        change(directory, &a, |file| file.links = 2);
    });
    broken("N1", |directory| {
        let d = key(directory, "d");
        change(directory, &d, |file| file.links = 3);
    });
    broken("N2", |directory| {
        let d = key(directory, "d");
        change(directory, &d, |file| file.parent = d.file.clone());
    });
    broken("N4: a name leads to", |directory| {
        let a = key(directory, "a");
        directory.records.set(a, None);
        directory.records.settle();
    });
    broken("N4: the serial number", |directory| {
        let a = key(directory, "a");
        change(directory, &a, |file| file.serial = ROOT_SERIAL);
    });
    broken("was never given", |directory| {
        let d = key(directory, "d");
        change(directory, &d, |file| file.numbering.next = 1);
    });
    broken("N5", |directory| {
        directory.orphans.insert(FileId::ROOT);
    });
    broken("says 3 names", |directory| {
        let d = key(directory, "d");
        change(directory, &d, |file| file.numbering.names = 3);
    });
    broken("locked by", |directory| {
        let a = key(directory, "a");
        directory.members.get_mut(&Client(1)).unwrap().locked.insert(a.file);
    });
    broken("what is used", |directory| {
        let a = key(directory, "a");
        let cost = crate::charge::Cost::of(directory.records.file(&a.file).unwrap().unwrap());
        directory.ledger.book(None, cost);
    });
    broken("the sum of the records", |directory| {
        let a = key(directory, "a");
        let record = directory.records.get(&a).unwrap().unwrap().clone();
        directory.records.forget_in_sum(&a, &record);
    });
}

#[test]
fn commands_have_canonical_bytes() {
    let lease = lease::message::Upward { session: 1, stamp: Instant::START, body: Up::Renew };
    let users = [Users::Any, world::users(&[(1, &[1, 5]), (5, &[])])];
    let mut commands = vec![Command::Tick];
    commands.extend(users.map(|users| Command::Admit { client: Client(3), users }));
    commands.push(Command::Heard { client: Client(3), request: Request { lease, ask: None } });
    for command in commands {
        let bytes = base::encode(&command);
        assert_eq!(base::decode::<Command>(&bytes, bytes.len()), Ok(command));
    }
}

#[test]
fn nobody_is_answered_who_was_not_admitted() {
    let mut world = World::new(1);
    let before = world.directory.digest();
    let request = world.renewal(1);
    for client in [Client::GROUP, Client(9)] {
        let command = Command::Heard { client, request: request.clone() };
        assert_eq!(world.apply(command), []);
    }
    let command = Command::Admit { client: Client::GROUP, users: Users::Any };
    assert_eq!(world.apply(command), []);
    assert_eq!(world.directory.digest(), before);
}

#[test]
fn equal_commands_give_equal_digests_and_others_do_not() {
    let run = |script| {
        let mut world = World::new(2);
        world.script(script);
        world.directory.digest()
    };
    let script = "1 mkdir / d; 2 create d a; 1 unlink d a";
    assert_eq!(run(script), run(script));
    assert_ne!(run(script), run("1 mkdir / d; 2 create d a"));
}

#[test]
fn changing_no_attribute_changes_nothing_whoever_does_it() {
    let mut world = World::new(2);
    world.script("1 create / a");
    let before = world.directory.records.sum().to_vec();
    world.pass(10);
    let act = Act::SetAttr { file: world.find("a"), changes: Changes::default() };
    let nobody = Actor { uid: 99, gid: 99, groups: vec![] };
    assert_eq!(world.act(2, &nobody, act), Ok(()));
    assert_eq!(world.directory.records.sum().to_vec(), before);
}

#[test]
fn whoever_reads_the_times_of_a_directory_is_told_that_they_have_changed() {
    let mut world = World::new(2);
    world.script("1 mkdir / d");
    let d = world.find("d");
    let times = lease::Field::Times.of(&d);
    world.need(2, lease::Kind::Read, &times);
    let reads = |world: &World| world.puppets[&2].holder.knows(world.now, &times);
    assert_eq!(reads(&world), lease::Knowledge::Reads);
    world.script("1 create d a");
    assert_eq!(reads(&world), lease::Knowledge::None);
    assert_eq!(world.directory.check(), Ok(()));
}
