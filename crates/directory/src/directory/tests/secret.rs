//! Names that are none of a machine's business.

use lease::{
    Client, Field, Kind, Knowledge, Name, Scope,
    message::{Down, Grant, Refusal},
};

use super::super::Command;
use super::world::{World, users};
use crate::{
    Actor,
    message::{Answer, Ask, Value},
    operation::{Act, Changes},
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
