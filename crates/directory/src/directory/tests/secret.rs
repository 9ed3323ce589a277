//! What is none of a machine's business: names, and what tells of bytes.

use base::{Digest, Domain};
use lease::{
    Client, Field, Kind, Knowledge, Name, Scope,
    message::{Down, Grant, Refusal},
};

use super::super::Command;
use super::world::{World, users};
use crate::{
    Actor,
    message::{Answer, Ask, Value},
    operation::{Act, Changes, When},
    record::Content,
};

/// Whose machine may act for one user only.
const GUEST: u32 = 2;

/// A directory of user 5 with a file in it, of which client 1, which acts for anybody, knows everything.
fn world() -> World {
    let mut world = World::new(2);
    let users = users(&[(7, &[7, 20])]);
    world.apply(Command::Admit { client: Client(GUEST), users });
    world.script("1 mkdir / den; 1 create den secret");
    let changes = Changes { uid: Some(5), gid: Some(20), ..Changes::default() };
    set(&mut world, changes);
    chmod(&mut world, 0o700);
    world
}

fn set(world: &mut World, changes: Changes) {
    let act = Act::SetAttr { file: world.find("den"), changes };
    world.act(1, &Actor::ROOT, act).unwrap();
}

fn chmod(world: &mut World, mode: u16) {
    set(world, Changes { mode: Some(mode), ..Changes::default() });
}

fn name() -> Field {
    Field::Child(Name::new(b"secret").unwrap())
}

/// The guest asks for something in the directory; what it was granted, or why not, and what it was told.
fn ask(world: &mut World, field: Field, kind: Kind) -> (Result<Vec<Grant>, Refusal>, Vec<Value>) {
    let seen = world.history.len();
    let scope = field.of(&world.find("den"));
    world.need(GUEST, kind, &scope);
    let mut said = world.history[seen..].iter().flat_map(|(_, _, out)| out);
    said.find_map(|(to, response)| match &response.lease.body {
        _ if to.0 != GUEST => None,
        Down::Granted { grants, .. } => Some((Ok(grants.clone()), response.values.concat())),
        Down::Refused { why, .. } => Some((Err(*why), Vec::new())),
        _ => None,
    })
    .expect("it is answered")
}

fn has_names(values: &[Value]) -> bool {
    values.iter().any(|value| !matches!(value, Value::File { .. }))
}

fn knows(world: &World, field: Field) -> bool {
    let scope: Scope = field.of(&world.find("den"));
    world.puppets[&GUEST].holder.knows(world.now, &scope) != Knowledge::None
}

#[test]
fn names_that_none_of_a_machines_users_may_list_or_look_up_are_kept_from_it() {
    let mut world = world();
    for field in [name(), Field::Children, Field::Whole, Field::Tree] {
        for kind in [Kind::Read, Kind::Write] {
            assert_eq!(ask(&mut world, field.clone(), kind).0, Err(Refusal::Denied), "{field:?}");
        }
    }
}

#[test]
fn whoever_may_not_know_the_names_is_granted_no_more_than_it_asks_for() {
    let mut world = world();
    world.restart(1);
    let (granted, values) = ask(&mut world, Field::Access, Kind::Read);
    let scopes: Vec<Scope> = granted.unwrap().into_iter().map(|grant| grant.scope).collect();
    assert_eq!(scopes, [Field::Access.of(&world.find("den"))]);
    assert!(!has_names(&values), "{values:?}");
    chmod(&mut world, 0o710);
    world.restart(1);
    let (granted, values) = ask(&mut world, Field::Access, Kind::Read);
    assert!(granted.unwrap()[0].scope.field.is_wide() && has_names(&values));
}

#[test]
fn whoever_may_go_through_it_or_list_it_or_owns_it_is_told() {
    // The guest's user is in the group 20, and not in 30: the first class that fits decides.
    let cases = [(20, 0o740, true), (20, 0o710, true), (20, 0o725, false), (30, 0o725, true)];
    for (gid, mode, expected) in cases {
        let mut world = world();
        set(&mut world, Changes { gid: Some(gid), ..Changes::default() });
        chmod(&mut world, mode);
        assert_eq!(ask(&mut world, Field::Children, Kind::Read).0.is_ok(), expected, "{mode:o}");
    }
    let mut world = world();
    set(&mut world, Changes { uid: Some(7), ..Changes::default() });
    chmod(&mut world, 0);
    assert!(ask(&mut world, Field::Children, Kind::Read).0.is_ok());
}

#[test]
fn names_are_wanted_back_from_whoever_may_not_know_them_any_more() {
    let mut world = world();
    chmod(&mut world, 0o755);
    assert!(ask(&mut world, Field::Children, Kind::Read).0.is_ok() && knows(&world, name()));
    // It keeps what it knows while the bits stay as they are for it.
    chmod(&mut world, 0o711);
    assert!(ask(&mut world, Field::Children, Kind::Read).0.is_ok() && knows(&world, name()));
    chmod(&mut world, 0o700);
    assert!(!knows(&world, name()) && !knows(&world, Field::Children));
}

#[test]
fn whoever_asked_in_time_is_told_nothing_if_it_is_granted_too_late() {
    let mut world = world();
    chmod(&mut world, 0o755);
    let den = world.find("den");
    world.need(1, Kind::Write, &Field::Whole.of(&den));
    // The guest has to wait for a client that does not hear it, and meanwhile shuts the directory.
    let deaf = world.puppets.remove(&1).unwrap();
    world.need(GUEST, Kind::Read, &Field::Children.of(&den));
    world.puppets.insert(1, deaf);
    let seen = world.history.len();
    chmod(&mut world, 0o700);
    world.pass(10);
    assert!(knows(&world, Field::Children), "it was granted");
    let said = world.history[seen..].iter().flat_map(|(_, _, out)| out);
    let told: Vec<Value> = said.flat_map(|(_, response)| response.values.concat()).collect();
    assert!(!has_names(&told), "{told:?}");
    let fetch = Ask::Fetch {
        request: 1,
        keys: vec![crate::Key::entry(&den, &Name::new(b"secret").unwrap())],
    };
    let answer = world.ask(GUEST, fetch);
    assert_eq!(answer, Some(Answer::Fetched { request: 1, values: vec![] }));
    let answer = world.ask(GUEST, Ask::List { request: 2, directory: den, after: None });
    assert_eq!(answer, Some(Answer::Listed { request: 2, value: None }));
}

/// A file of user 5 whose bytes client 1 has, and something that was put beside it.
fn private(world: &mut World) -> base::FileId {
    world.script("1 create / private");
    let file = world.find("private");
    let digest = Some(Digest::of(Domain::new("test"), b"bytes"));
    let content = Content { size: 5, version: 1, digest, ..Content::default() };
    let (name, value) = (b"user.note".to_vec(), Some(b"secret".to_vec()));
    let changes = Changes { uid: Some(5), gid: Some(20), mode: Some(0o600), ..Changes::default() };
    for act in [
        Act::SetContent { file: file.clone(), content },
        Act::SetXattr { file: file.clone(), name, value, when: When::Always },
        Act::SetAttr { file: file.clone(), changes },
    ] {
        world.act(1, &Actor::ROOT, act).unwrap();
    }
    file
}

/// Who may use it how, from now on.
fn permit(world: &mut World, file: &base::FileId, mode: u16) {
    let changes = Changes { mode: Some(mode), ..Changes::default() };
    world.act(1, &Actor::ROOT, Act::SetAttr { file: file.clone(), changes }).unwrap();
}

/// What the guest is told of a file: its size, whether it can check the bytes, and what is beside it.
fn told(world: &mut World, file: &base::FileId) -> (u64, bool, usize) {
    let keys = vec![crate::Key::file(file)];
    world.need(GUEST, Kind::Read, &Field::Content.of(file));
    match world.ask(GUEST, Ask::Fetch { request: 1, keys }) {
        Some(Answer::Fetched { values, .. }) => match &values[..] {
            [Value::File { record: Some(record), .. }] => {
                let beside = record.rare.as_ref().map_or(0, |rare| rare.attributes.len());
                (record.content.size, record.content.digest.is_some(), beside)
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_tells_of_bytes_is_kept_from_machines_of_which_nobody_may_read_them() {
    let mut world = world();
    let file = private(&mut world);
    let seen = world.history.len();
    assert_eq!(told(&mut world, &file), (5, false, 0), "its size anybody may know");
    // With a grant it is told no more.
    let said = world.history[seen..].iter().flat_map(|(_, _, out)| out);
    let values = said.filter(|(to, _)| to.0 == GUEST).flat_map(|(_, said)| said.values.concat());
    let records = values.filter_map(|value| match value {
        Value::File { record, .. } => record,
        _ => None,
    });
    assert!(records.into_iter().all(|record| record.content.digest.is_none()));
    permit(&mut world, &file, 0o620);
    assert_eq!(told(&mut world, &file), (5, false, 1), "they may put something beside it");
    permit(&mut world, &file, 0o640);
    assert_eq!(told(&mut world, &file), (5, true, 1));
}

#[test]
fn whoever_may_read_a_file_from_now_on_is_told_anew() {
    let mut world = world();
    let file = private(&mut world);
    assert_eq!(told(&mut world, &file), (5, false, 0));
    let knows = |world: &World| {
        let scope = Field::Content.of(&file);
        world.puppets[&GUEST].holder.knows(world.now, &scope) != Knowledge::None
    };
    permit(&mut world, &file, 0o600);
    assert!(knows(&world), "nothing is different for it");
    permit(&mut world, &file, 0o640);
    assert!(!knows(&world));
}

#[test]
fn a_machine_that_acts_for_others_than_before_is_told_all_anew() {
    let mut world = world();
    let file = private(&mut world);
    assert_eq!(told(&mut world, &file), (5, false, 0));
    let mut admit = |gids: &[u32]| {
        let users = users(&[(7, &[7, 20]), (5, gids)]);
        let out = world.apply(Command::Admit { client: Client(GUEST), users });
        world.deliver(out);
        let scope = Field::Content.of(&file);
        let knows = world.puppets[&GUEST].holder.knows(world.now, &scope) != Knowledge::None;
        (knows, told(&mut world, &file))
    };
    assert_eq!(admit(&[5]), (false, (5, true, 1)));
    assert_eq!(admit(&[5]), (true, (5, true, 1)), "they are the same");
}

#[test]
fn a_machine_that_acts_for_nobody_may_change_nothing_and_gets_no_right_to() {
    let mut world = world();
    let file = private(&mut world);
    world.apply(Command::Admit { client: Client(GUEST), users: users(&[]) });
    let mut ask = |field: Field, kind| {
        let seen = world.history.len();
        world.need(GUEST, kind, &field.of(&file));
        let said = world.history[seen..].iter().flat_map(|(_, _, out)| out);
        let mut said = said.filter(|(to, _)| to.0 == GUEST).map(|(_, said)| &said.lease.body);
        said.any(|body| matches!(body, Down::Granted { .. }))
    };
    for (field, kind) in [
        (Field::Content, Kind::Write),
        (Field::Access, Kind::Write),
        (Field::Locks, Kind::Write),
        (Field::Whole, Kind::Write),
        (Field::Handles, Kind::SelfWrite),
        (Field::Handles, Kind::OtherRead),
    ] {
        assert!(!ask(field.clone(), kind), "{field:?} {kind:?}");
    }
    assert!(ask(Field::Access, Kind::Read), "what anybody may know");
}
