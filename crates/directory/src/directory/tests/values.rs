//! What goes with grants, and what is fetched and listed under them.

use base::FileId;
use lease::{Field, Kind, Name, Scope, message::Down};

use super::world::World;
use crate::{
    Actor,
    message::{Answer, Ask, NAMES_MAX, Value},
    operation::{Act, When},
    record::Key,
    values::VALUES_BYTES_MAX,
};

/// What client 2 is told with its first grant on a scope.
fn granted(world: &mut World, kind: Kind, scope: &Scope) -> Vec<Value> {
    let seen = world.history.len();
    world.need(2, kind, scope);
    let said = world.history[seen..].iter().flat_map(|(_, _, out)| out);
    let mut values = said.filter_map(|(to, response)| match &response.lease.body {
        Down::Granted { grants, .. } if to.0 == 2 => {
            assert_eq!(grants.len(), response.values.len(), "one for each");
            Some(response.values.concat())
        }
        _ => None,
    });
    values.next().expect("it is granted")
}

/// In short: the sort of each value, and how much there is of it.
fn show(values: &[Value]) -> String {
    let one = |value: &Value| match value {
        Value::File { record: Some(_), .. } => "file".to_owned(),
        Value::File { record: None, .. } => "no file".to_owned(),
        Value::Entry { entry: Some(_), name, .. } => format!("{name}"),
        Value::Entry { entry: None, name, .. } => format!("no {name}"),
        Value::Names { entries, is_all, .. } => {
            format!("{} names{}", entries.len(), if *is_all { "" } else { " and more" })
        }
    };
    values.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn check(kind: Kind, scope: impl Fn(&World) -> Scope, expected: &str) {
    let mut world = World::with(
        2,
        crate::Settings { policy: lease::Policy::of_the_paper(), ..crate::Settings::default() },
    );
    world.script("1 mkdir / d; 1 create d a; 1 create d b");
    let scope = scope(&world);
    let values = granted(&mut world, kind, &scope);
    assert_eq!(show(&values), expected, "{scope}");
}

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

#[test]
fn a_grant_says_what_is_so_under_its_scope() {
    let of =
        |field: Field, file: &'static str| move |world: &World| field.clone().of(&world.find(file));
    check(Kind::Read, of(Field::Access, "a"), "file");
    check(Kind::Write, of(Field::Content, "a"), "file");
    check(Kind::SelfWrite, of(Field::Handles, "a"), "file");
    check(Kind::Read, of(Field::Whole, "a"), "file");
    check(Kind::Read, of(Field::Child(name("a")), "d"), "a");
    check(Kind::Write, of(Field::Child(name("x")), "d"), "no x");
    check(Kind::Read, of(Field::Children, "d"), "2 names");
    check(Kind::Read, of(Field::Whole, "d"), "file, 2 names");
    check(Kind::Write, of(Field::Tree, "d"), "file, 2 names");
    check(Kind::Write, of(Field::Tree, "/"), "file, 1 names");
    check(Kind::Read, |_| Field::Access.of(&"7.7".parse().unwrap()), "no file");
}

#[test]
fn a_long_listing_comes_in_pages() {
    let mut world = World::new(2);
    world.script("1 mkdir / d");
    for number in 0..2 * NAMES_MAX + 10 {
        world.script(&format!("1 create d f{number:05}"));
    }
    let directory = world.find("d");
    let first = granted(&mut world, Kind::Read, &Field::Children.of(&directory));
    assert_eq!(show(&first), "1024 names and more");
    let mut after = None;
    let mut pages = Vec::new();
    for request in 0..3 {
        let ask = Ask::List { request, directory: directory.clone(), after: after.clone() };
        let Some(Answer::Listed { value: Some(value), .. }) = world.ask(2, ask) else { panic!() };
        let Value::Names { entries, .. } = &value else { panic!() };
        after = entries.last().map(|(name, _)| name.clone());
        pages.push(value);
    }
    assert_eq!(pages[0], first[0]);
    assert_eq!(show(&pages), "1024 names and more, 1024 names and more, 10 names");
}

#[test]
fn what_is_under_a_wide_lease_can_be_fetched_piece_by_piece() {
    let mut world = World::new(2);
    world.script("1 mkdir / d; 1 create d a");
    let (d, a) = (world.find("d"), world.find("a"));
    world.need(2, Kind::Write, &Field::Tree.of(&d));
    let keys = vec![
        Key::file(&a),
        Key::entry(&d, &name("a")),
        Key::entry(&d, &name("x")),
        Key::entry(&FileId::ROOT, &name("d")),
    ];
    let Some(Answer::Fetched { values, .. }) = world.ask(2, Ask::Fetch { request: 1, keys }) else {
        panic!()
    };
    assert_eq!(show(&values), "file, a, no x", "and not what lies outside of it");
}

#[test]
fn a_message_has_room_for_so_much() {
    let mut world = World::new(2);
    let mut keys = Vec::new();
    world.script("1 mkdir / d");
    for number in 0..40 {
        world.script(&format!("1 create d f{number}"));
        let file = world.find(&format!("f{number}"));
        keys.push(Key::file(&file));
        let value = Some(vec![0; 60_000]);
        let act = Act::SetXattr { file, name: b"u".to_vec(), value, when: When::Always };
        world.act(1, &Actor::ROOT, act).unwrap();
    }
    let d = world.find("d");
    world.need(2, Kind::Write, &Field::Tree.of(&d));
    let Some(answer) = world.ask(2, Ask::Fetch { request: 1, keys }) else { panic!() };
    let bytes = base::encode(&answer).len();
    assert!(bytes > VALUES_BYTES_MAX / 2 && bytes < VALUES_BYTES_MAX + 70_000, "{bytes}");
}
