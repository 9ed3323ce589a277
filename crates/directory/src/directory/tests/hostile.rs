//! What a client that lies can do: nothing but harm itself.
//!
//! Each test forges something. It is refused as a value, the liar's session is over, and what everybody
//! else can see is as before: the records (to the bit), what is left of files and bytes, the serial
//! numbers given out, files without a name, and everything about other clients. What changes is the
//! liar's own session, its leases, and the agreed time.

use base::{FileId, Instant};
use lease::{
    Client, Field, Kind, Scope,
    message::{Down, Up, Upward, Want},
};

use super::super::{Command, Directory, Policy, Settings, Users};
use super::world::{DIGEST, World, users};
use crate::{
    actor::Actor,
    charge::Quota,
    ledger::Holder,
    message::{Answer, Ask, KEYS_MAX, Needs, OPERATIONS_MAX, RANGES_MAX, Request, Value},
    operation::{Act, Changes, Operation, Over, When},
    record::{Content, Key, Numbering, Sort},
    refusal::Refusal,
    session::{BYTES_MAX, FILES_MAX, LOCKED_MAX, NUMBERS, SERIALS},
    view::Birth,
};

const LIAR: u32 = 1;

/// An honest client 2 with a small tree, and a liar 1 with a directory of its own.
fn world() -> World {
    let mut world = World::new(3);
    world.script(
        "2 mkdir / home; 2 create home a; 2 write a 100; 2 mkdir home sub; 2 create sub b;
         1 mkdir / lair; 1 create lair mine",
    );
    world
}

/// What everybody but the liar can see.
fn rest(directory: &Directory) -> (Vec<u64>, String) {
    let others = directory.members.iter().filter(|(client, _)| client.0 != LIAR);
    let others: Vec<_> = others.map(|(client, member)| (client, base::encode(member))).collect();
    let used = directory.ledger.used();
    let rest = format!("{others:?} {used:?} {} {:?}", directory.serial_next, directory.orphans);
    (directory.records.sum().to_vec(), rest)
}

fn operation(act: Act) -> Operation {
    Operation { actor: Actor::ROOT, time: 1, act }
}

fn name(text: &str) -> lease::Name {
    lease::Name::new(text.as_bytes()).unwrap()
}

/// The liar says that it did this, and is refused.
#[track_caller]
fn check(world: &mut World, lie: Operation, why: Refusal) {
    let before = rest(&world.directory);
    world.puppets.get_mut(&LIAR).unwrap().batch += 1;
    let number = world.puppets[&LIAR].batch;
    let session = world.puppets[&LIAR].holder.session();
    let answer = world.ask(LIAR, Ask::Batch { number, operations: vec![lie] });
    assert_eq!(answer, None, "its session is over, and what it was told in it forgotten");
    let refused = Answer::Applied { number, refused: Some((0, why)) };
    let mut said = world.history.iter().flat_map(|(_, _, out)| out);
    let is_said =
        said.any(|(to, response)| to.0 == LIAR && response.answer == Some(refused.clone()));
    assert!(is_said, "it is told that it is refused, and why");
    assert!(!world.directory.grantor.is_in_session(Client(LIAR), session), "its session is over");
    assert_eq!(rest(&world.directory), before, "and nothing has changed");
    assert_eq!(world.directory.check(), Ok(()));
}

fn create(world: &World, directory: &str, file: FileId, serial: u64) -> Operation {
    let birth = Birth { file, serial, is_leased: true };
    operation(Act::Create {
        directory: world.find(directory),
        name: name("new"),
        mode: 0o644,
        birth,
    })
}

/// A number for a new file in the liar's own directory, and a serial number, that it may use.
fn next(world: &World) -> (u64, u64) {
    let lair = world.find("lair");
    let numbering = world.directory.records.file(&lair).unwrap().unwrap().numbering;
    (numbering.creator_next, world.puppets[&LIAR].serials.0)
}

fn child(world: &World, directory: &str, number: u64) -> FileId {
    world.find(directory).child(number.try_into().unwrap()).unwrap()
}

#[test]
fn what_it_may_do_is_done() {
    let mut world = world();
    let (number, serial) = next(&world);
    let honest = create(&world, "lair", child(&world, "lair", number), serial);
    let batch = world.puppets[&LIAR].batch + 1;
    let answer = world.ask(LIAR, Ask::Batch { number: batch, operations: vec![honest] });
    assert_eq!(answer, Some(Answer::Applied { number: batch, refused: None }));
}

#[test]
fn an_identifier_of_another_clients_range_is_refused() {
    let mut world = world();
    let lair = world.find("lair");
    let Some((_, first, _)) = world.provide(2, Some(lair)).numbers else { panic!() };
    let (_, serial) = next(&world);
    let lie = create(&world, "lair", child(&world, "lair", first), serial);
    check(&mut world, lie, Refusal::NotYours);
}

#[test]
fn a_number_that_was_never_given_is_refused() {
    let mut world = world();
    let (_, serial) = next(&world);
    for number in [Numbering::BORN, Numbering::BORN + 7 * NUMBERS, u64::MAX] {
        let lie = create(&world, "lair", child(&world, "lair", number), serial);
        check(&mut world, lie, Refusal::NotYours);
        world = self::world();
    }
}

#[test]
fn an_identifier_below_another_directory_is_refused() {
    let (number, serial) = next(&world());
    for below in ["home", "sub", "/", "mine"] {
        let mut world = world();
        let lie = create(&world, "lair", child(&world, below, number), serial);
        check(&mut world, lie, Refusal::NotYours);
    }
    let mut world = world();
    let lie = create(&world, "lair", FileId::ROOT, serial);
    check(&mut world, lie, Refusal::NotYours);
}

#[test]
fn an_identifier_that_is_in_use_is_refused() {
    let mut world = world();
    let (_, serial) = next(&world);
    let lie = create(&world, "lair", world.find("mine"), serial);
    check(&mut world, lie, Refusal::NotYours);
}

#[test]
fn an_identifier_of_a_dead_file_is_refused() {
    let mut world = world();
    let dead = world.find("mine");
    world.script("1 unlink lair mine");
    let (_, serial) = next(&world);
    let lie = create(&world, "lair", dead, serial);
    check(&mut world, lie, Refusal::NotYours);
}

#[test]
fn a_serial_number_that_is_not_its_own_is_refused() {
    let theirs = world().puppets[&2].serials.0;
    let used = next(&world()).1 - 1;
    for serial in [0, 1, theirs, used, u64::MAX] {
        let mut world = world();
        let (number, _) = next(&world);
        let lie = create(&world, "lair", child(&world, "lair", number), serial);
        check(&mut world, lie, Refusal::NotYours);
    }
}

#[test]
fn every_operation_without_the_leases_it_needs_is_refused() {
    let find = |name: &str| world().find(name);
    let (home, a, sub) = (find("home"), find("a"), find("sub"));
    let birth = Birth { file: home.clone(), serial: 5, is_leased: true };
    let content = Content { size: 1, ..Content::default() };
    let changes = Changes { mode: Some(0), ..Changes::default() };
    let to = find("lair");
    let lies = [
        Act::Create { directory: home.clone(), name: name("x"), mode: 0, birth: birth.clone() },
        Act::Mkdir { directory: home.clone(), name: name("x"), mode: 0, birth: birth.clone() },
        Act::Symlink { directory: home.clone(), name: name("x"), target: vec![1], birth },
        Act::Link { file: a.clone(), directory: to.clone(), name: name("x") },
        Act::Unlink { directory: home.clone(), name: name("a"), is_open: true },
        Act::Rmdir { directory: home.clone(), name: name("sub") },
        Act::Rename {
            from: home.clone(),
            from_name: name("a"),
            to: to.clone(),
            to_name: name("x"),
            over: Over::Replace,
            is_open: false,
        },
        Act::Rename {
            from: to,
            from_name: name("mine"),
            to: sub.clone(),
            to_name: name("x"),
            over: Over::Exchange,
            is_open: false,
        },
        Act::SetAttr { file: a.clone(), changes },
        Act::SetXattr { file: a.clone(), name: vec![1], value: None, when: When::Always },
        Act::SetContent { file: a.clone(), content },
        Act::Lock { file: a.clone(), owner: 1, start: 0, end: 1, hold: Some(true) },
        Act::Reap { file: a },
    ];
    for lie in lies {
        check(&mut world(), operation(lie), Refusal::Unknown);
    }
}

#[test]
fn a_batch_that_comes_again_is_answered_again_and_done_once() {
    let mut world = world();
    let (number, serial) = next(&world);
    let operations = vec![create(&world, "lair", child(&world, "lair", number), serial)];
    let batch = world.puppets[&LIAR].batch + 1;
    let ask = Ask::Batch { number: batch, operations };
    let applied = Some(Answer::Applied { number: batch, refused: None });
    assert_eq!(world.ask(LIAR, ask.clone()), applied);
    let before = rest(&world.directory);
    for _ in 0..3 {
        assert_eq!(world.ask(LIAR, ask.clone()), applied);
    }
    // Not even if it says something else under the same number.
    let other = Ask::Batch { number: batch, operations: vec![] };
    assert_eq!(world.ask(LIAR, other), applied);
    assert_eq!(rest(&world.directory), before);
}

#[test]
fn batches_out_of_order_are_ignored() {
    let mut world = world();
    let before = rest(&world.directory);
    let (number, serial) = next(&world);
    let last = world.puppets[&LIAR].batch;
    for batch in [0, last - 1, last + 2, last + 100, u64::MAX] {
        let operations = vec![create(&world, "lair", child(&world, "lair", number), serial)];
        assert_eq!(world.ask(LIAR, Ask::Batch { number: batch, operations }), None);
    }
    assert_eq!(rest(&world.directory), before);
}

#[test]
fn a_batch_of_another_session_is_ignored() {
    let mut world = world();
    let before = rest(&world.directory);
    let (number, serial) = next(&world);
    let operations = vec![create(&world, "lair", child(&world, "lair", number), serial)];
    let lease = Upward { session: 0, stamp: Instant::START, body: Up::Renew };
    let ask = Some(Ask::Batch { number: world.puppets[&LIAR].batch + 1, operations });
    let command = Command::Heard { client: Client(LIAR), request: Request { lease, ask } };
    assert_eq!(world.apply(command), []);
    assert_eq!(rest(&world.directory), before);
}

#[test]
fn what_came_before_a_lie_stands_and_what_comes_after_it_does_not() {
    let mut world = world();
    let (number, serial) = next(&world);
    let honest = create(&world, "lair", child(&world, "lair", number), serial);
    let unlink = |text| {
        let directory = world.find("lair");
        operation(Act::Unlink { directory, name: name(text), is_open: false })
    };
    let operations = vec![honest, unlink("nothing"), unlink("mine")];
    let batch = world.puppets[&LIAR].batch + 1;
    world.ask(LIAR, Ask::Batch { number: batch, operations });
    world.find("new");
    world.find("mine");
    assert_eq!(world.directory.check(), Ok(()));
}

#[test]
fn more_operations_than_a_batch_may_have_are_refused() {
    let mut world = world();
    let before = rest(&world.directory);
    let file = world.find("mine");
    let act = Act::SetAttr { file, changes: Changes::default() };
    let operations = vec![operation(act); OPERATIONS_MAX + 1];
    let batch = world.puppets[&LIAR].batch + 1;
    world.ask(LIAR, Ask::Batch { number: batch, operations });
    let refused = Answer::Applied { number: batch, refused: Some((0, Refusal::TooMuch)) };
    let last = world.history.last().unwrap();
    assert!(last.2.iter().any(|(_, response)| response.answer == Some(refused.clone())));
    assert_eq!(rest(&world.directory), before);
}

#[test]
fn absurd_sizes_are_refused() {
    let file = world().find("mine");
    let lair = world().find("lair");
    let content = |size, allocated| Act::SetContent {
        file: file.clone(),
        content: Content { size, allocated, ..Content::default() },
    };
    let xattr = |name_bytes: usize, bytes: usize| Act::SetXattr {
        file: file.clone(),
        name: vec![b'x'; name_bytes],
        value: Some(vec![0; bytes]),
        when: When::Always,
    };
    let (number, serial) = next(&world());
    let birth = Birth { file: child(&world(), "lair", number), serial, is_leased: true };
    let target = vec![b'x'; 4_096];
    let lies = [
        (content(u64::MAX, 0), Refusal::TooLong),
        (content(0, u64::MAX), Refusal::TooLong),
        (content(0, i64::MAX as u64), Refusal::NoSpace),
        (xattr(5, 1 << 20), Refusal::AttributeTooLarge),
        (xattr(256, 1), Refusal::Senseless),
        (Act::Symlink { directory: lair, name: name("x"), target, birth }, Refusal::TooDeep),
    ];
    for (act, why) in lies {
        check(&mut world(), operation(act), why);
    }
    let mut lie = operation(content(1, 1));
    lie.actor.groups = vec![1; Actor::GROUPS_MAX + 1];
    check(&mut world(), lie, Refusal::TooMuch);
}

#[test]
fn bytes_that_others_have_changed_or_have_open_are_not_kept() {
    let mut world = world();
    let file = world.find("mine");
    let keep = |is_live| Act::Keep { file: file.clone(), version: 1, is_live, digest: None };
    let live = Content { size: 1, is_live: true, ..Content::default() };
    let live = Act::SetContent { file: file.clone(), content: live };
    check(&mut world, operation(live), Refusal::Senseless);
    world.script("2 write mine 5");
    for is_live in [true, false] {
        world.need(LIAR, Kind::Write, &Field::Whole.of(&file));
        check(&mut world, operation(keep(is_live)), Refusal::Sharing);
    }
    world.script("1 write mine 5; 2 open mine");
    world.need(LIAR, Kind::Write, &Field::Content.of(&file));
    world.need(LIAR, Kind::Read, &Field::Access.of(&file));
    world.need(LIAR, Kind::OtherRead, &Field::Handles.of(&file));
    check(&mut world, operation(keep(true)), Refusal::Sharing);
}

#[test]
fn a_small_content_without_a_hash_is_refused_unless_there_is_nobody_else() {
    let tell = |file: &FileId, size, digest| {
        let content = Content { size, digest, ..Content::default() };
        Act::SetContent { file: file.clone(), content }
    };
    let keep = |file: &FileId, is_live, digest| {
        let file = file.clone();
        Act::Keep { file, version: 2, is_live, digest }
    };
    let ready = |world: &mut World, file: &FileId| {
        world.need(LIAR, Kind::Write, &Field::Whole.of(file));
        world.need(LIAR, Kind::OtherRead, &Field::Handles.of(file));
    };
    let mut world = world();
    let file = world.find("mine");
    for size in [1, Content::SMALL_MAX] {
        ready(&mut world, &file);
        check(&mut world, operation(tell(&file, size, None)), Refusal::Senseless);
    }
    ready(&mut world, &file);
    for (size, digest) in [(0, None), (Content::SMALL_MAX + 1, None), (5, Some(DIGEST))] {
        assert_eq!(world.act(LIAR, &Actor::ROOT, tell(&file, size, digest)), Ok(()), "{size}");
    }
    // Nor is there a way round: of bytes that change without a word nothing is said until they do no more.
    check(&mut world, operation(keep(&file, false, None)), Refusal::Senseless);
    ready(&mut world, &file);
    check(&mut world, operation(keep(&file, true, Some(DIGEST))), Refusal::Senseless);
    ready(&mut world, &file);
    assert_eq!(world.act(LIAR, &Actor::ROOT, keep(&file, true, None)), Ok(()));
    check(&mut world, operation(keep(&file, false, None)), Refusal::Senseless);
    ready(&mut world, &file);
    assert_eq!(world.act(LIAR, &Actor::ROOT, keep(&file, false, Some(DIGEST))), Ok(()));

    let mut alone = World::new(1);
    alone.script("1 create / own");
    let own = alone.find("own");
    assert_eq!(alone.act(1, &Actor::ROOT, tell(&own, 5, None)), Ok(()));
}

/// The liar acts for user 7 alone, and has a file of user 5 that it wrote before.
fn limited() -> (World, FileId) {
    let mut world = world();
    world.script("1 write mine 5");
    let file = world.find("mine");
    let changes = Changes { uid: Some(5), gid: Some(5), mode: Some(0o604), ..Changes::default() };
    let act = Act::SetAttr { file: file.clone(), changes };
    world.act(LIAR, &Actor::ROOT, act).unwrap();
    let users = users(&[(7, &[7])]);
    let out = world.apply(Command::Admit { client: Client(LIAR), users });
    world.deliver(out);
    for (field, kind) in [
        (Field::Access, Kind::Read),
        (Field::Content, Kind::Write),
        (Field::Locks, Kind::Write),
        (Field::Handles, Kind::OtherRead),
    ] {
        world.need(LIAR, kind, &field.of(&file));
    }
    (world, file)
}

/// What user 7 does.
fn by_seven(act: Act) -> Operation {
    Operation { actor: Actor { uid: 7, gid: 7, groups: Vec::new() }, ..operation(act) }
}

#[test]
fn what_bytes_are_checked_by_goes_only_with_the_right_to_write_them() {
    for is_live in [true, false] {
        let (mut world, file) = limited();
        let keep = Act::Keep { file, version: 9, is_live, digest: None };
        check(&mut world, by_seven(keep), Refusal::Access);
    }
}

fn lock(file: &FileId, hold: Option<bool>) -> Act {
    Act::Lock { file: file.clone(), owner: 1, start: 0, end: 1, hold }
}

#[test]
fn nobody_locks_what_they_may_not_open_nor_in_the_name_of_another() {
    for hold in [false, true] {
        let (mut world, file) = limited();
        check(&mut world, operation(lock(&file, Some(hold))), Refusal::NotYourUser);
        let (mut world, file) = limited();
        let changes = Changes { mode: Some(0o600), ..Changes::default() };
        world.act(2, &Actor::ROOT, Act::SetAttr { file: file.clone(), changes }).unwrap();
        world.need(LIAR, Kind::Read, &Field::Access.of(&file));
        world.need(LIAR, Kind::Write, &Field::Locks.of(&file));
        check(&mut world, by_seven(lock(&file, Some(hold))), Refusal::Access);
    }
}

#[test]
fn whoever_may_open_a_file_locks_it_and_anybody_may_let_go() {
    let (mut world, file) = limited();
    let operations = vec![by_seven(lock(&file, Some(true))), operation(lock(&file, None))];
    let number = world.puppets[&LIAR].batch + 1;
    let answer = world.ask(LIAR, Ask::Batch { number, operations });
    assert_eq!(answer, Some(Answer::Applied { number, refused: None }));
}

#[test]
fn a_question_that_comes_again_is_granted_nothing_that_was_given_back() {
    let mut world = world();
    let file = world.find("a");
    let (session, stamp) = (world.puppets[&3].holder.session(), world.now);
    let wants = vec![Want { scope: Field::Access.of(&file), kind: Kind::Read }];
    let body = Up::Ask { request: 77, wants, together: true };
    let question = Request { lease: Upward { session, stamp, body }, ask: None };
    let mut ask = || {
        let seen = world.history.len();
        world.send(3, question.clone());
        let said = world.history[seen..].iter().flat_map(|(_, _, out)| out);
        let mut said = said.filter(|(to, _)| to.0 == 3).map(|(_, said)| &said.lease.body);
        said.any(|body| matches!(body, Down::Granted { .. }))
    };
    // Whoever did not ask gives it back at once.
    assert!(ask() && !ask());
}

#[test]
fn endless_requests_for_leases_stay_within_a_budget() {
    let policy = Policy { budget: 100, ..Policy::of_the_paper() };
    let mut world = World::with(2, Settings { policy, ..Settings::default() });
    world.script("2 mkdir / home");
    let mut stamp = 0;
    for round in 0..50u64 {
        for kind in [Kind::Read, Kind::Write] {
            let scope = |nth: u64| -> Scope {
                let file = FileId::ROOT.child((1 + round * 64 + nth).try_into().unwrap()).unwrap();
                Field::Whole.of(&file)
            };
            let wants = (0..64).map(|nth| Want { scope: scope(nth), kind }).collect();
            stamp += 1;
            let body = Up::Ask { request: stamp, wants, together: round % 2 == 0 };
            let lease = Upward { session: 1, stamp: Instant::from_secs(1), body };
            let request = Request { lease, ask: None };
            world.apply(Command::Heard { client: Client(LIAR), request });
        }
    }
    let sizes = world.directory.sizes();
    assert!(sizes.leases <= 2 * 2 * 100 && sizes.waiting <= 2 * 100, "{sizes:?}");
}

#[test]
fn endless_requests_for_provisions_take_no_more_than_is_left_to_others() {
    let settings =
        Settings { files_max: 10 * FILES_MAX, room_max: 10 * BYTES_MAX, ..Settings::default() };
    let mut world = World::with(2, settings);
    for _ in 0..100 {
        world.provide(LIAR, Some(FileId::ROOT));
    }
    let directory = &world.directory;
    let free = directory.ledger.free(&directory.settings, Client(LIAR), 1).room;
    assert!(free.files >= 8 * FILES_MAX && free.bytes >= 8 * BYTES_MAX, "{free:?}");
    let root = directory.records.file(&FileId::ROOT).unwrap().unwrap();
    assert!(root.numbering.next <= 1 + 2 * NUMBERS, "numbers are not wasted");
    assert!(directory.serial_next <= 2 + 2 * SERIALS, "serial numbers are not wasted");
    assert!(directory.sizes().ranges <= RANGES_MAX);
    assert!(world.provide(2, None).stock.unwrap().1.files > 0);
}

#[test]
fn a_request_for_provisions_that_comes_again_is_met_once() {
    let mut world = world();
    let needs = Needs { owner: Some(0), ..Needs::default() };
    let ask = Ask::Provide { request: 77, needs: needs.clone() };
    let answer = world.ask(LIAR, ask.clone());
    let before = (rest(&world.directory), world.directory.ledger.clone());
    assert!(matches!(answer, Some(Answer::Provided { request: 77, .. })));
    assert_eq!(world.ask(LIAR, ask), answer);
    let old = Ask::Provide { request: 76, needs: needs.clone() };
    assert_eq!(world.ask(LIAR, old), None);
    assert_eq!((rest(&world.directory), world.directory.ledger.clone()), before);
}

#[test]
fn numbers_of_what_is_no_directory_are_not_given() {
    let mut world = world();
    for file in [world.find("a"), world.find("home").child(77u64.try_into().unwrap()).unwrap()] {
        assert_eq!(world.provide(LIAR, Some(file)).numbers, None);
    }
}

#[test]
fn endless_questions_leave_nothing_behind() {
    let mut world = world();
    let (a, home) = (world.find("a"), world.find("home"));
    let before = (rest(&world.directory), world.directory.sizes());
    for request in 0..100 {
        let keys = vec![Key::file(&a), Key::entry(&home, &name("a")), Key::file(&home)];
        let fetched = world.ask(LIAR, Ask::Fetch { request, keys });
        assert_eq!(fetched, Some(Answer::Fetched { request, values: vec![] }), "not its own");
        let listed = world.ask(LIAR, Ask::List { request, directory: home.clone(), after: None });
        assert_eq!(listed, Some(Answer::Listed { request, value: None }), "not its own");
    }
    assert_eq!((rest(&world.directory), world.directory.sizes()), before);
}

#[test]
fn an_endless_list_of_keys_is_cut() {
    let mut world = world();
    let keys = vec![Key::file(&world.find("mine")); 5 * KEYS_MAX];
    let answer = world.ask(LIAR, Ask::Fetch { request: 1, keys });
    let Some(Answer::Fetched { values, .. }) = answer else { panic!() };
    assert_eq!(values.len(), KEYS_MAX);
    assert!(matches!(&values[0], Value::File { record: Some(_), .. }));
}

#[test]
fn another_users_files_are_refused() {
    let mut world = world();
    world.script("1 mkdir / theirs; 1 create theirs secret");
    let secret = world.find("secret");
    let theirs = world.find("theirs");
    let changes = |mode, uid| Changes { mode, uid, ..Changes::default() };
    let owner = Changes { mode: Some(0o700), uid: Some(5), ..Changes::default() };
    for file in [&secret, &theirs] {
        let act = Act::SetAttr { file: file.clone(), changes: owner.clone() };
        world.act(LIAR, &Actor::ROOT, act).unwrap();
    }
    let act = |act| Operation { actor: Actor { uid: 6, ..Actor::ROOT }, time: 1, act };
    let content = Content { size: 1, ..Content::default() };
    let file = secret;
    let lies = [
        (Act::SetContent { file: file.clone(), content }, Refusal::Access),
        (
            Act::SetAttr { file: file.clone(), changes: changes(Some(0o777), None) },
            Refusal::NotOwner,
        ),
        (Act::SetAttr { file: file.clone(), changes: changes(None, Some(6)) }, Refusal::NotOwner),
        (Act::Unlink { directory: theirs, name: name("secret"), is_open: true }, Refusal::Access),
    ];
    for (lie, why) in lies {
        check(&mut world, act(lie), why);
        // A new session, with the same leases.
        for scope in [Field::Tree.of(&world.find("theirs")), Field::Whole.of(&file)] {
            world.need(LIAR, Kind::Write, &scope);
        }
    }
}

#[test]
fn acting_for_a_user_that_the_machine_may_not_act_for_is_refused() {
    let mut world = world();
    world.apply(Command::Admit { client: Client(LIAR), users: users(&[(7, &[7])]) });
    let file = world.find("mine");
    let changes = Changes { mode: Some(0o777), ..Changes::default() };
    check(&mut world, operation(Act::SetAttr { file, changes }), Refusal::NotYourUser);
    world.apply(Command::Admit { client: Client(LIAR), users: Users::Any });
}

#[test]
fn acting_in_a_group_that_the_user_is_not_in_is_refused() {
    let mut world = world();
    let mine = world.find("mine");
    let changes = Changes { uid: Some(5), gid: Some(20), mode: Some(0o060), ..Changes::default() };
    let act = Act::SetAttr { file: mine.clone(), changes };
    world.act(LIAR, &Actor::ROOT, act).unwrap();
    world.apply(Command::Admit { client: Client(LIAR), users: users(&[(7, &[7])]) });
    let content = Content { size: 1, digest: Some(DIGEST), ..Content::default() };
    for (gid, groups) in [(20, vec![]), (7, vec![20]), (7, vec![7, 20])] {
        world.need(LIAR, Kind::Write, &Field::Whole.of(&mine));
        let act = Act::SetContent { file: mine.clone(), content: content.clone() };
        let lie = Operation { actor: Actor { uid: 7, gid, groups }, time: 1, act };
        check(&mut world, lie, Refusal::NotYourUser);
    }
    world.apply(Command::Admit { client: Client(LIAR), users: users(&[(7, &[7, 20])]) });
    world.need(LIAR, Kind::Write, &Field::Whole.of(&mine));
    let actor = Actor { uid: 7, gid: 7, groups: vec![20] };
    assert_eq!(world.act(LIAR, &actor, Act::SetContent { file: mine, content }), Ok(()));
}

#[test]
fn claiming_that_nobody_has_a_file_open_is_refused() {
    let mut world = world();
    world.script("3 open mine");
    let (lair, mine) = (world.find("lair"), world.find("mine"));
    // It may change the name, the links and the times, and knows that it does not know of others.
    for scope in [Field::Child(name("mine")).of(&lair), Field::Parent.of(&mine)] {
        world.need(LIAR, Kind::Write, &scope);
    }
    let lie = |is_open| {
        let (directory, name) = (lair.clone(), name("mine"));
        operation(Act::Unlink { directory, name, is_open })
    };
    check(&mut world, lie(false), Refusal::Unknown);
    // Even if it asks, and is told that somebody has.
    for scope in [Field::Child(name("mine")).of(&lair), Field::Parent.of(&mine)] {
        world.need(LIAR, Kind::Write, &scope);
    }
    world.need(LIAR, Kind::Read, &Field::Access.of(&lair));
    world.need(LIAR, Kind::OtherRead, &Field::Handles.of(&mine));
    check(&mut world, lie(false), Refusal::Unknown);
}

#[test]
fn claiming_that_somebody_has_a_file_open_costs_only_its_own_files() {
    let mut world = world();
    let (lair, file) = (world.find("lair"), world.find("mine"));
    let lie = operation(Act::Unlink { directory: lair, name: name("mine"), is_open: true });
    let batch = world.puppets[&LIAR].batch + 1;
    world.ask(LIAR, Ask::Batch { number: batch, operations: vec![lie] });
    assert_eq!(world.directory.orphans.len(), 1);
    // It goes with the liar's session.
    let now = world.now;
    world.puppets.get_mut(&LIAR).unwrap().holder.abandon(now, &mut Vec::new());
    let request = world.renewal(LIAR);
    world.send(LIAR, request);
    assert_eq!(world.directory.records.file(&file).unwrap(), None);
    assert_eq!(world.directory.check(), Ok(()));
}

#[test]
fn burying_what_others_hold_is_refused() {
    let mut world = world();
    world.script("1 mkdir lair nest");
    let (lair, nest) = (world.find("lair"), world.find("nest"));
    world.script("3 create nest egg");
    let birds = world.find("egg");
    // It still may change the name of the directory, and of the file nothing.
    let lies = [
        (Act::Rmdir { directory: lair.clone(), name: name("nest") }, Refusal::Unknown),
        (Act::Reap { file: birds }, Refusal::Unknown),
        (Act::Unlink { directory: nest, name: name("egg"), is_open: false }, Refusal::Unknown),
    ];
    for (lie, why) in lies {
        check(&mut world, operation(lie), why);
        world.need(LIAR, Kind::Write, &Field::Child(name("nest")).of(&lair));
        world.need(LIAR, Kind::Read, &Field::Access.of(&lair));
    }
}

#[test]
fn reaping_a_file_that_has_a_name_is_refused() {
    let mut world = world();
    let file = world.find("mine");
    check(&mut world, operation(Act::Reap { file }), Refusal::Senseless);
}

#[test]
fn a_directory_is_no_file_and_a_file_no_directory() {
    let find = |name: &str| world().find(name);
    let (lair, mine) = (find("lair"), find("mine"));
    let (number, serial) = next(&world());
    let below = |file: &FileId| file.child(number.try_into().unwrap()).unwrap();
    let birth = Birth { file: below(&mine), serial, is_leased: true };
    let content = Content { size: 1, ..Content::default() };
    let lies = [
        (
            Act::Create { directory: mine.clone(), name: name("x"), mode: 0, birth },
            Refusal::NotDirectory,
        ),
        (
            Act::Link { file: mine.clone(), directory: mine.clone(), name: name("x") },
            Refusal::NotDirectory,
        ),
        (
            Act::Link { file: lair.clone(), directory: lair.clone(), name: name("x") },
            Refusal::NotOwner,
        ),
        (Act::SetContent { file: lair.clone(), content }, Refusal::IsDirectory),
        (
            Act::Lock { file: lair.clone(), owner: 1, start: 0, end: 1, hold: Some(true) },
            Refusal::Senseless,
        ),
        (Act::Rmdir { directory: lair.clone(), name: name("mine") }, Refusal::NotDirectory),
        (Act::Unlink { directory: mine, name: name("x"), is_open: false }, Refusal::NotDirectory),
    ];
    for (lie, why) in lies {
        check(&mut world(), operation(lie), why);
    }
    assert!(world().files(|sort| sort == Sort::Directory).len() > 1);
}

#[test]
fn who_has_locks_on_more_files_than_anybody_may_loses_its_session_and_its_locks() {
    for (count, is_lost) in [(LOCKED_MAX - 1, false), (LOCKED_MAX, true)] {
        let mut world = world();
        let file = world.files(|sort| sort == Sort::Regular).into_iter().next_back().unwrap();
        let before = |number: u64| FileId::ROOT.child((1 << 20 | number).try_into().unwrap());
        let liar = world.directory.members.get_mut(&Client(LIAR)).unwrap();
        liar.locked = (0..count as u64).map(|number| before(number).unwrap()).collect();
        let number = world.puppets[&LIAR].batch + 1;
        let lock = Act::Lock { file, owner: 1, start: 0, end: 1, hold: Some(true) };
        let answer = world.ask(LIAR, Ask::Batch { number, operations: vec![operation(lock)] });
        let applied = Some(Answer::Applied { number, refused: None });
        assert_eq!(answer, applied.filter(|_| !is_lost), "what comes with a loss is not heard");
        assert_eq!(world.directory.members[&Client(LIAR)].locked.is_empty(), is_lost);
    }
}

#[test]
fn more_leases_from_birth_than_the_budget_allows_are_refused() {
    let policy = Policy { budget: 10, ..Policy::default() };
    let mut world = World::with(1, Settings { policy, ..Settings::default() });
    world.script("1 mkdir / lair");
    let mut refused = None;
    for _ in 0..40 {
        let (number, serial) = next(&world);
        let lie = create(&world, "lair", child(&world, "lair", number), serial);
        let Act::Create { directory, birth, .. } = lie.act else { panic!() };
        let fresh = name(&format!("f{number}"));
        let act = Act::Create { directory, name: fresh, mode: 0, birth };
        world.puppets.get_mut(&LIAR).unwrap().serials.0 += 1;
        let batch = world.puppets[&LIAR].batch + 1;
        world.puppets.get_mut(&LIAR).unwrap().batch = batch;
        let answer =
            world.ask(LIAR, Ask::Batch { number: batch, operations: vec![operation(act)] });
        assert!(world.directory.sizes().leases <= 2 * 10);
        if answer != Some(Answer::Applied { number: batch, refused: None }) {
            let is_lost = |out: &(Client, crate::message::Response)| out.1.lease.body == Down::Lost;
            refused = world.history.last().map(|(_, _, out)| out.iter().any(is_lost));
            break;
        }
    }
    assert!(refused.is_some());
    assert_eq!(world.directory.check(), Ok(()));
}

/// A client that answers to nothing asks for something, and gives some of it back.
fn demand(world: &mut World, client: u32, request: u64, kind: Kind, scope: &Scope, is_open: bool) {
    world.puppets.remove(&client);
    let say = |body| Command::Heard {
        client: Client(client),
        request: Request { lease: Upward { session: 1, stamp: Instant::START, body }, ask: None },
    };
    let wants = vec![Want { scope: scope.clone(), kind }];
    let out = world.apply(say(Up::Ask { request, wants, together: true }));
    world.deliver(out);
    if !is_open {
        return;
    }
    let said = world.history.iter().flat_map(|(_, _, out)| out);
    let mut grants = said.filter_map(|(to, response)| match &response.lease.body {
        Down::Granted { grants, .. } if to.0 == client => grants.last(),
        _ => None,
    });
    let serial = grants.next_back().expect("it was granted").serial;
    let (lease, part, truths) = (scope.clone(), scope.clone(), vec![scope.clone()]);
    let returned = lease::message::Return { lease, kind, serial, part, kept: false, truths };
    let out = world.apply(say(Up::Return { number: request, returns: vec![returned] }));
    world.deliver(out);
}

/// An honest client creates a file that another has asked for in advance, and does something with it.
#[track_caller]
fn check_in_advance(demands: &[(Kind, Field, bool)], act: impl Fn(&World, FileId) -> Act) {
    let mut world = world();
    let (number, serial) = next(&world);
    let file = child(&world, "lair", number);
    for (request, (kind, field, is_open)) in (1..).zip(demands) {
        demand(&mut world, 3, request, *kind, &field.clone().of(&file), *is_open);
    }
    let birth = create(&world, "lair", file.clone(), serial);
    let operations = vec![birth, operation(act(&world, file))];
    let batch = world.puppets[&LIAR].batch + 1;
    let answer = world.ask(LIAR, Ask::Batch { number: batch, operations });
    assert_eq!(answer, Some(Answer::Applied { number: batch, refused: None }));
}

#[test]
fn a_lease_on_a_file_that_is_yet_to_come_does_not_get_its_creator_refused() {
    let chmod = |_: &World, file| {
        let changes = Changes { mode: Some(0o777), ..Changes::default() };
        Act::SetAttr { file, changes }
    };
    let write = |field| (Kind::Write, field, false);
    check_in_advance(&[write(Field::Access), write(Field::Times), write(Field::Tree)], chmod);
}

#[test]
fn a_file_that_is_yet_to_come_is_not_open() {
    let unlink = |world: &World, _| {
        let directory = world.find("lair");
        Act::Unlink { directory, name: name("new"), is_open: false }
    };
    check_in_advance(&[(Kind::SelfWrite, Field::Handles, false)], unlink);
    check_in_advance(&[(Kind::SelfWrite, Field::Handles, true)], unlink);
}

#[test]
#[should_panic(expected = "its session is over")]
fn the_check_notices_a_lie_that_is_believed() {
    let mut world = world();
    let (number, serial) = next(&world);
    let honest = create(&world, "lair", child(&world, "lair", number), serial);
    check(&mut world, honest, Refusal::NotYours);
}

/// A birth of the liar's in its own directory, by somebody.
fn birth_by(world: &World, uid: u32, nth: u64) -> Operation {
    let (number, serial) = next(world);
    let birth =
        Birth { file: child(world, "lair", number + nth), serial: serial + nth, is_leased: true };
    let (directory, name) = (world.find("lair"), name(&format!("by{nth}")));
    let act = Act::Create { directory, name, mode: 0o644, birth };
    Operation { actor: Actor { uid, gid: uid, groups: vec![] }, time: 1, act }
}

#[test]
fn the_group_refuses_what_is_beyond_a_users_share_and_grants_nothing_towards_it() {
    let mut world = world();
    let lair = world.find("lair");
    let changes = Changes { mode: Some(0o777), ..Changes::default() };
    world.act(LIAR, &Actor::ROOT, Act::SetAttr { file: lair, changes }).unwrap();
    let share = Quota { files: 2, bytes: 1_000 };
    let share = Some(share);
    world.apply(Command::Share { holder: Holder::User(7), share });
    for nth in 0..2 {
        let operation = birth_by(&world, 7, 0);
        let (actor, act) = (operation.actor.clone(), operation.act.clone());
        let Act::Create { directory, mode, birth, .. } = act else { unreachable!() };
        let act = Act::Create { directory, name: name(&format!("seven{nth}")), mode, birth };
        world.act(LIAR, &actor, act).unwrap();
    }
    let mine = world.find("seven0");
    let grow = |allocated| {
        let content = Content { size: 1, allocated, digest: Some(DIGEST), ..Content::default() };
        let act = Act::SetContent { file: mine.clone(), content };
        Operation { actor: Actor { uid: 7, gid: 7, groups: vec![] }, time: 1, act }
    };
    let account = |world: &World| world.directory.ledger.account(&world.directory.settings, 7);
    assert_eq!(account(&world).used, Quota { files: 2, bytes: 0 });
    let needs = Needs { owner: Some(7), bytes: u64::MAX, ..Needs::default() };
    let answer = world.ask(LIAR, Ask::Provide { request: 1_000, needs });
    let Some(Answer::Provided { provision, .. }) = answer else { panic!() };
    let Some((7, given)) = provision.stock else { panic!() };
    assert!(given.files == 0 && given.bytes <= 500, "{given:?} is a part of what is free");
    assert_eq!(provision.is_over, (true, true));
    assert_eq!(account(&world).escrow, given);
    assert_eq!(world.directory.check(), Ok(()));
    // A liar has no more than an honest client, whatever it says that it did.
    check(&mut world, grow(1_001), Refusal::OverShare);
    assert_eq!(account(&world).escrow, Quota::default(), "it is back with the end of the session");
}

#[test]
fn a_file_beyond_the_share_is_refused_and_the_superuser_is_not_limited() {
    let build = || {
        let mut world = world();
        let lair = world.find("lair");
        let changes = Changes { mode: Some(0o777), ..Changes::default() };
        world.act(LIAR, &Actor::ROOT, Act::SetAttr { file: lair, changes }).unwrap();
        let share = Some(Quota { files: 0, bytes: 0 });
        world.apply(Command::Share { holder: Holder::Everybody, share });
        world
    };
    let mut world = build();
    let beyond = birth_by(&world, 7, 0);
    check(&mut world, beyond, Refusal::OverShare);
    let mut world = build();
    let Operation { actor, act, .. } = birth_by(&world, 0, 0);
    assert_eq!(world.act(LIAR, &actor, act), Ok(()));
}

#[test]
fn a_machine_that_claims_much_takes_nothing_from_the_room_of_another() {
    let settings = Settings { room_max: 10_000, ..Settings::default() };
    let mut world = World::with(2, settings);
    world.script("2 create / a");
    let needs = Needs { owner: Some(0), bytes: u64::MAX, free: Some(u64::MAX), ..Needs::default() };
    world.ask(LIAR, Ask::Provide { request: 1, needs });
    let needs = Needs { owner: Some(0), bytes: 10_000, free: Some(10_000), ..Needs::default() };
    world.ask(LIAR, Ask::Provide { request: 2, needs });
    assert_eq!(world.directory.members[&Client(LIAR)].session.escrow[&0].bytes, 10_000);
    world.script("2 write a 10000");
    assert_eq!(world.directory.check(), Ok(()));
}
