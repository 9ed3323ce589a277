//! For whom real machines act: users who were enrolled, are named and have agreed, and nobody else.

use std::collections::BTreeSet;

use client::Failure;
use directory::{Refusal, operation::Changes, record::Content};
use overlay::{Invitation, Patrons, Profile, Terms, UserName};
use wire::{Answer, Io, Query};

use super::{
    cells::{ANYWHERE, HOUR, until},
    *,
};

const NOT_YOURS: Failure = Failure::Refused(Refusal::NotYourUser);

fn patrons(names: &[&str]) -> Patrons {
    Patrons::These(names.iter().map(|name| UserName::new(name).unwrap()).collect())
}

fn actor(uid: u32) -> Actor {
    Actor { uid, gid: uid, groups: Vec::new() }
}

fn make(machine: &Machine, who: &Actor, directory: &FileId, name: &str) -> Result<FileId, Failure> {
    let (name, birth) = (Name::new(name.as_bytes()).unwrap(), Birth::default());
    let act = Act::Mkdir { directory: directory.clone(), name, mode: 0o755, birth };
    match machine.desk().call(who, Call::Do(act))? {
        Reply::Entry(entry, _) => Ok(entry.file),
        other => panic!("no directory: {other:?}"),
    }
}

/// A user of the cell that this machine has founded; their key is in a file in a directory.
fn enrol(founder: &Machine, keys: &Home, name: &str, uid: u32, groups: &[u32]) {
    fs::create_dir_all(&keys.0).unwrap();
    let key = crate::user_key(&keys.0.join(name)).unwrap();
    let (name, groups) = (UserName::new(name).unwrap(), groups.iter().copied().collect());
    founder.registrar().enrol(Profile { name, key, uid, gid: uid, groups }).unwrap();
}

fn agree(machine: &Machine, home: &Home, keys: &Home, name: &str) -> Result<String, String> {
    let consent = Machine::consent(&home.0, &keys.0.join(name)).unwrap();
    let agreed = machine.registrar().agree(&consent);
    agreed.map(|name| name.to_string()).map_err(|failure| failure.to_string())
}

/// A cell with a superuser, alice (7, also in 20) and bob (8), on whose machine only the superuser acts; and a
/// directory in which all may work.
fn named(name: &str) -> (Home, Machine, Home, FileId) {
    let home = Home::new(&format!("{name}-1"));
    Machine::init_for(&home.0, Some(ANYWHERE), patrons(&["root"]), &home.0.join("root")).unwrap();
    let machine = Machine::start(&home.0).unwrap();
    let keys = Home::new(&format!("{name}-keys"));
    assert_eq!(make(&machine, &Actor::ROOT, &FileId::ROOT, "early"), Err(NOT_YOURS));
    enrol(&machine, &keys, "root", 0, &[]);
    enrol(&machine, &keys, "alice", 7, &[20]);
    enrol(&machine, &keys, "bob", 8, &[]);
    assert_eq!(make(&machine, &Actor::ROOT, &FileId::ROOT, "early"), Err(NOT_YOURS));
    assert_eq!(agree(&machine, &home, &keys, "root"), Ok("root".into()));
    let work = mkdir(&machine, &FileId::ROOT, "work");
    let changes = Changes { mode: Some(0o777), ..Changes::default() };
    let open = Act::SetAttr { file: work.clone(), changes };
    machine.desk().call(&Actor::ROOT, Call::Do(open)).unwrap();
    (home, machine, keys, work)
}

fn terms(patrons: Patrons) -> crate::Terms {
    crate::Terms { patrons: Some(patrons), ..crate::Terms::one(HOUR) }
}

fn join(founder: &Home, name: &str, patrons: Patrons) -> (Home, Machine) {
    let home = Home::new(name);
    let code = Machine::invite_for(&founder.0, terms(patrons)).unwrap();
    Machine::join(&home.0, code.reveal(), ANYWHERE).unwrap();
    let machine = Machine::start(&home.0).unwrap();
    (home, machine)
}

#[test]
fn a_machine_acts_for_a_user_who_has_agreed_and_for_nobody_else() {
    let (first, one, keys, work) = named("acts");
    let (second, two) = join(&first, "acts-2", patrons(&["alice"]));
    let alice = actor(7);
    assert_eq!(make(&two, &alice, &work, "early"), Err(NOT_YOURS), "she has not agreed");
    let refused = agree(&two, &second, &keys, "bob").unwrap_err();
    assert!(refused.contains("does not name bob"), "{refused}");
    assert_eq!(agree(&two, &second, &keys, "alice"), Ok("alice".into()));
    make(&two, &alice, &work, "hers").unwrap();
    for other in [&Actor::ROOT, &actor(8), &actor(9)] {
        let refused = make(&two, other, &work, "no").unwrap_err();
        assert_eq!((refused, refused.errno()), (NOT_YOURS, "EPERM"));
    }
    // What groups she is in is the cell's affair: those of this computer are none of it.
    let elsewhere = Actor { uid: 7, gid: 99, groups: vec![4, 0] };
    let made = make(&two, &elsewhere, &work, "still-hers").unwrap();
    assert_eq!(names(&one, &work), ["hers", "still-hers"]);
    let Ok(Reply::File(file)) = one.desk().call(&Actor::ROOT, Call::GetAttr { file: made }) else {
        panic!("it is there");
    };
    assert_eq!((file.access.uid, file.access.gid), (7, 7));
    // It knows so after a start, too.
    two.stop().unwrap();
    let two = Machine::start(&second.0).unwrap();
    make(&two, &alice, &work, "later").unwrap();
    assert_eq!(make(&two, &Actor::ROOT, &work, "no"), Err(NOT_YOURS));
    two.stop().unwrap();
    one.stop().unwrap();
}

#[test]
fn what_a_machine_does_for_somebody_else_its_group_does_not_accept() {
    let (first, one, keys, work) = named("lies");
    let (second, two) = join(&first, "lies-2", patrons(&["alice"]));
    agree(&two, &second, &keys, "alice").unwrap();
    let losses = two.desk().losses();
    // A machine that lets anybody act, whatever it was allowed.
    two.desk().serve(None);
    for (uid, name) in [(0, "by-root"), (8, "by-bob")] {
        _ = make(&two, &actor(uid), &work, name);
    }
    until("losing what it did", || two.desk().losses() > losses);
    assert_eq!(names(&one, &work), Vec::<String>::new());
    // It is told for whom it acts, since it seems not to know.
    until("knowing better", || make(&two, &Actor::ROOT, &work, "no") == Err(NOT_YOURS));
    until("going on", || {
        // What was done in a session that is lost has to be done again.
        _ = make(&two, &actor(7), &work, "hers");
        names(&one, &work) == ["hers"]
    });
    drop(two);
    one.stop().unwrap();
}

#[test]
fn a_user_that_is_removed_is_served_nowhere_and_the_others_go_on() {
    let (first, one, keys, work) = named("gone");
    let (second, two) = join(&first, "gone-2", patrons(&["alice", "bob"]));
    agree(&two, &second, &keys, "alice").unwrap();
    agree(&two, &second, &keys, "bob").unwrap();
    make(&two, &actor(7), &work, "hers").unwrap();
    two.desk().call(&Actor::ROOT, Call::Sync { handle: None }).unwrap();
    one.registrar().remove(&UserName::new("alice").unwrap()).unwrap();
    until("nobody acts for her", || make(&two, &actor(7), &work, "late") == Err(NOT_YOURS));
    until("others go on", || {
        // What was done in a session that is lost has to be done again.
        _ = make(&two, &actor(8), &work, "his");
        names(&one, &work) == ["hers", "his"]
    });
    let users = one.registrar().users().unwrap();
    let removed: Vec<&str> =
        users.iter().filter(|user| user.is_removed).map(|user| user.name.as_str()).collect();
    assert_eq!(removed, ["alice"]);
    assert_eq!(two.registrar().users().unwrap(), users, "who has no vote asks those who have");
    // Neither she nor anybody in her place comes back.
    let refused = agree(&two, &second, &keys, "alice").unwrap_err();
    assert!(refused.contains("no user of the cell has the key"), "{refused}");
    let (name, groups) = (UserName::new("mallory").unwrap(), BTreeSet::new());
    let key = crate::user_key(&keys.0.join("mallory")).unwrap();
    let again = one.registrar().enrol(Profile { name, key, uid: 7, gid: 7, groups });
    let refused = again.unwrap_err().to_string();
    assert!(refused.contains("that of alice"), "{refused}");
    // It would tell that something was lost with her.
    drop(two);
    one.stop().unwrap();
}

#[test]
fn where_users_have_to_agree_no_machine_joins_that_acts_for_any() {
    let (first, one, ..) = named("any");
    let refused = Machine::invite(&first.0, HOUR).unwrap_err().to_string();
    assert!(refused.contains("--users"), "{refused}");
    let refused = Machine::invite_for(&first.0, terms(Patrons::Any)).unwrap_err().to_string();
    assert!(refused.contains("named and agree"), "{refused}");
    // An issuer's key alone is not enough either.
    let issuer = super::cells::issuer_of(&first, 1_000);
    let (later, patrons) = (crate::cell::seconds_now() + 1_000, Patrons::Any);
    let terms = Terms { count: 1, expires: later, certificate_expires_max: later, patrons };
    let secret = overlay::Secret::new([9; 16]);
    let invitation = Invitation::new(&issuer, &secret, terms).unwrap();
    let membership = crate::cell::Membership::read(&first.0).unwrap();
    let code = membership.code(&first.0, secret, &invitation).unwrap();
    let home = Home::new("any-2");
    let refused = Machine::join(&home.0, code.reveal(), ANYWHERE).unwrap_err().to_string();
    assert!(refused.contains("named and agree"), "{refused}");
    one.stop().unwrap();
}

#[test]
fn a_status_tells_whom_each_machine_acts_for() {
    let (first, one, keys, _) = named("told");
    let (second, two) = join(&first, "told-2", patrons(&["alice"]));
    let (_third, three) = join(&first, "told-3", patrons(&[]));
    agree(&two, &second, &keys, "alice").unwrap();
    let standing = one.standing();
    let told: Vec<Vec<String>> =
        standing.machines.iter().map(|machine| machine.acts_for.clone().unwrap()).collect();
    assert_eq!(told, [vec!["root".to_owned()], vec!["alice".to_owned()], vec![]]);
    let users: Vec<&str> = standing.users.iter().map(|user| user.name.as_str()).collect();
    assert_eq!(users, ["alice", "bob", "root"]);
    assert!(standing.group.is_named);
    let own = |machine: &Machine| {
        let machines = machine.standing().machines;
        machines.into_iter().find(|machine| machine.is_this).unwrap().acts_for
    };
    assert_eq!((own(&two), own(&three)), (Some(vec!["alice".to_owned()]), Some(vec![])));
    for machine in [three, two, one] {
        machine.stop().unwrap();
    }
}

/// A file whose bytes lie on one machine, and its number.
fn write(
    machine: &Machine,
    who: &Actor,
    directory: &FileId,
    (name, mode, bytes): (&str, u16, &[u8]),
) -> (FileId, u64) {
    let (name, birth) = (Name::new(name.as_bytes()).unwrap(), Birth::default());
    let act = Act::Create { directory: directory.clone(), name, mode, birth };
    let Ok(Reply::Entry(entry, _)) = machine.desk().call(who, Call::Do(act)) else {
        panic!("it is not there");
    };
    let get = Call::GetAttr { file: entry.file.clone() };
    let Ok(Reply::File(record)) = machine.desk().call(who, get) else { panic!("it is there") };
    machine.content().put(record.serial, bytes).unwrap();
    let digest = Some(crate::Neighbours::digest(bytes));
    let (size, version) = (bytes.len() as u64, machine.desk().version());
    let content = Content { size, version, digest, ..Content::default() };
    let act = Act::SetContent { file: entry.file.clone(), content };
    machine.desk().call(who, Call::Do(act)).unwrap();
    machine.desk().call(who, Call::Sync { handle: None }).unwrap();
    (entry.file, record.serial)
}

/// What a machine is told that asks another for bytes, whoever may read them.
fn read(machine: &Machine, home: &Machine, (file, serial): &(FileId, u64)) -> Answer {
    let query = Query::Read { serial: *serial, file: file.clone(), offset: 0, length: 8 };
    machine.neighbours().ask_raw(home.desk().me(), &query)
}

fn change(machine: &Machine, file: &FileId, changes: Changes) {
    let act = Act::SetAttr { file: file.clone(), changes };
    machine.desk().call(&Actor::ROOT, Call::Do(act)).unwrap();
}

fn bytes() -> Answer {
    Answer::Bytes(b"precious".to_vec())
}

#[test]
fn bytes_are_given_only_to_machines_that_act_for_somebody_who_may_read_them() {
    let (first, one, keys, work) = named("bytes");
    let (second, two) = join(&first, "bytes-2", patrons(&["alice"]));
    let (_third, three) = join(&first, "bytes-3", patrons(&[]));
    agree(&two, &second, &keys, "alice").unwrap();
    let secret = write(&one, &Actor::ROOT, &work, ("secret", 0o600, b"precious"));
    let open = write(&one, &Actor::ROOT, &work, ("open", 0o644, b"precious"));
    until("what all may read is given", || read(&two, &one, &open) == bytes());
    assert_eq!(read(&two, &one, &secret), Answer::Denied);
    let disguised = (open.0.clone(), secret.1);
    assert_eq!(read(&two, &one, &disguised), Answer::Denied, "the number of another file");
    let (file, serial) = open.clone();
    let io = Io::Read { offset: 0, length: 8 };
    let group = crate::cell::Membership::read(&first.0).unwrap().group();
    for query in [
        Query::Read { serial, file: file.clone(), offset: 0, length: 8 },
        Query::Find { group, serial },
        Query::Look(file.clone()),
        Query::Io { serial, file, who: (0, 0), io },
    ] {
        let answer = three.neighbours().ask_raw(one.desk().me(), &query);
        assert_eq!(answer, Answer::Denied, "nobody acts there: {query:?}");
    }
    // Who may read it changes, and what is said of it is no older than a moment.
    let mode = |mode| Changes { mode: Some(mode), ..Changes::default() };
    change(&one, &secret.0, mode(0o604));
    until("the right is given", || read(&two, &one, &secret) == bytes());
    change(&one, &secret.0, mode(0o600));
    until("the right is taken", || read(&two, &one, &secret) == Answer::Denied);
    change(&one, &secret.0, Changes { uid: Some(7), ..Changes::default() });
    until("it is hers", || read(&two, &one, &secret) == bytes());
    one.registrar().remove(&UserName::new("alice").unwrap()).unwrap();
    for file in [&secret, &open] {
        until("nobody acts for her", || read(&two, &one, file) == Answer::Denied);
    }
    drop((two, three));
    one.stop().unwrap();
}

#[test]
fn a_home_without_a_vote_asks_those_who_have_one_who_may_read() {
    let (first, one, keys, work) = named("homes");
    let (second, two) = join(&first, "homes-2", patrons(&["alice"]));
    let (third, three) = join(&first, "homes-3", patrons(&["bob"]));
    agree(&two, &second, &keys, "alice").unwrap();
    agree(&three, &third, &keys, "bob").unwrap();
    let hers = write(&two, &actor(7), &work, ("hers", 0o600, b"precious"));
    let shown = write(&two, &actor(7), &work, ("shown", 0o644, b"precious"));
    until("bob may read it", || read(&three, &two, &shown) == bytes());
    assert_eq!(read(&three, &two, &hers), Answer::Denied);
    until("the superuser may read all", || read(&one, &two, &hers) == bytes());
    // An honest machine is told the same, and says so.
    let (home, digest) = (Some(two.desk().me()), Some(crate::Neighbours::digest(b"precious")));
    let content = Content { size: 8, home, digest, ..Content::default() };
    let fetch = |(file, serial): &(FileId, u64)| {
        three.neighbours().fetch((*serial, file), &content, |_| Ok(())).map_err(|e| e.to_string())
    };
    assert_eq!(fetch(&shown), Ok(()));
    assert!(fetch(&hers).unwrap_err().contains("acts for nobody who may have it"));
    for machine in [three, two, one] {
        machine.stop().unwrap();
    }
}
