//! Random histories of honest clients: nobody is refused, everything fits together, and it makes no
//! difference what is at hand.

use std::collections::BTreeMap;

use base::{Duration, Instant, Rng};
use lease::{
    Client, Field, Kind, Name,
    message::{Down, Return, Up, Upward, Want},
};

use super::super::{Command, Directory, Settings};
use super::world::{World, users};
use crate::{
    actor::Actor,
    message::{Answer, Ask, Needs, Request, Response},
    operation::{Act, Operation},
    record::{Entry, Key, Record},
    records::Absent,
};

const CLIENTS: u32 = 3;
/// A machine that may act for one user only.
const RESTRICTED: u32 = 3;
const USER: u32 = 7;

/// What several clients do at random: acts, opens and closes, pauses in which sessions lapse.
fn history(seed: u64, steps: usize) -> World {
    let mut rng = Rng::new(seed);
    let mut world = World::new(CLIENTS);
    let users = users(&[(USER, &[0])]);
    world.apply(Command::Admit { client: Client(RESTRICTED), users });
    for _ in 0..steps {
        let client = 1 + rng.below(u64::from(CLIENTS)) as u32;
        match rng.below(20) {
            0..=3 => {
                let files = world.files(|sort| sort == crate::Sort::Regular);
                if !files.is_empty() {
                    let file = rng.pick(&files).clone();
                    let is_open = rng.chance(0.7);
                    world.open(client, &file, is_open);
                }
            }
            4 if rng.chance(0.2) => world.pass(1 + rng.below(60)),
            5 if rng.chance(0.3) => world.restart(client),
            _ => {
                let is_root = rng.chance(0.8) && client != RESTRICTED;
                let actor = Actor { uid: if is_root { 0 } else { USER }, ..Actor::ROOT };
                let act = world.random_act(&mut rng);
                // Whether it can be done is for the operations to say; that the group agrees is
                // asserted in there.
                let _ = world.act(client, &actor, act);
            }
        }
        assert_eq!(world.directory.check(), Ok(()), "seed {seed}");
        assert_eq!(super::audit(&world.directory), Vec::<String>::new(), "seed {seed}");
    }
    world
}

#[test]
fn an_honest_client_is_never_refused_and_everything_always_fits_together() {
    let mut tally = [0; 4];
    for seed in 0..30 {
        let world = history(seed, 200);
        let said = world.history.iter().flat_map(|(_, _, out)| out);
        for (_, response) in said {
            tally[0] += usize::from(matches!(response.answer, Some(Answer::Applied { .. })));
            tally[1] += usize::from(matches!(response.lease.body, Down::Recall(_)));
            tally[2] += usize::from(response.lease.body == Down::Lost);
        }
        let mut directory = World::new(0);
        for (now, command, _) in &world.history {
            directory.now = *now;
            let before = directory.directory.orphans.len();
            directory.apply(command.clone());
            // Gone without anybody having said so: the group took it.
            let is_batch = matches!(command, Command::Heard { request, .. }
                if matches!(request.ask, Some(Ask::Batch { .. })));
            tally[3] +=
                before.saturating_sub(directory.directory.orphans.len()) * usize::from(!is_batch);
        }
    }
    let floors = [700, 200, 20, 3];
    assert!(tally.iter().zip(floors).all(|(count, floor)| *count >= floor), "too easy: {tally:?}");
}

/// A store that has everything, in front of which a directory keeps what it likes.
struct Store {
    records: BTreeMap<Key, Record>,
    rng: Rng,
    directory: Directory,
    loads: usize,
}

impl Store {
    fn new(seed: u64, now: Instant) -> Store {
        let settings = Settings { is_stored: true, ..Settings::default() };
        let directory = Directory::new(settings, now);
        Store { records: BTreeMap::new(), rng: Rng::new(seed), directory, loads: 0 }
    }

    fn apply(&mut self, now: Instant, command: &Command) -> Vec<(Client, Response)> {
        self.forget();
        let mut out = Vec::new();
        while let Err(absent) = self.directory.apply(now, command, &mut out) {
            assert!(!absent.is_empty(), "it knows what it waits for");
            assert!(out.is_empty(), "nothing is said before all is at hand");
            self.loads += 1;
            assert!(self.loads < 1_000_000, "it gets on");
            if self.rng.chance(0.3) {
                self.forget();
            }
            self.load(absent);
        }
        for (key, record) in self.directory.changes() {
            match record {
                Some(record) => drop(self.records.insert(key, record)),
                None => drop(self.records.remove(&key)),
            }
        }
        match self.rng.below(10) {
            // The machine starts again.
            0 => {
                let checkpoint = self.directory.checkpoint().expect("no command is under way");
                let settings = self.directory.settings.clone();
                self.directory = Directory::restore(settings, &checkpoint).unwrap();
            }
            1 => self.directory.release_all(),
            _ => {}
        }
        out
    }

    fn load(&mut self, absent: Absent) {
        let found = absent.keys.into_iter().map(|key| {
            let record = self.records.get(&key).cloned();
            (key, record)
        });
        let found: Vec<(Key, Option<Record>)> = found.collect();
        self.directory.supply(found);
        for (directory, after) in absent.pages {
            let all = self.records.iter().filter_map(|(key, record)| match (record, &key.name) {
                (Record::Entry(entry), Some(name))
                    if key.file == directory && Some(name) > after.as_ref() =>
                {
                    Some((name.clone(), entry.clone()))
                }
                _ => None,
            });
            let all: Vec<(Name, Entry)> = all.collect();
            let count = (1 + self.rng.index(3)).min(all.len());
            let is_all = count == all.len();
            let page = all[..count].to_vec();
            self.directory.supply_page(&directory, after.as_ref(), page, is_all);
        }
    }

    /// Lets go of a random part of what is at hand, and of what is known not to be.
    fn forget(&mut self) {
        let mut keys: Vec<Key> =
            self.directory.records.iter().map(|(key, _)| key.clone()).collect();
        let part = self.rng.unit();
        keys.retain(|_| self.rng.chance(part));
        for name in ["a", "b", "e"] {
            let files: Vec<Key> = keys.iter().filter(|key| key.name.is_none()).cloned().collect();
            let name = Name::new(name.as_bytes()).unwrap();
            keys.extend(files.into_iter().map(|key| Key::entry(&key.file, &name)));
        }
        self.directory.release(&keys);
    }
}

/// What clients say who care for nothing.
fn noise(seed: u64, steps: usize) -> World {
    let mut world = history(seed, 60);
    let mut rng = Rng::new(seed);
    for _ in 0..steps {
        let client = 1 + rng.below(u64::from(CLIENTS)) as u32;
        let request = random_request(&world, client, &mut rng);
        world.now = world.now + Duration::from_millis(rng.below(3_000));
        world.apply(Command::Heard { client: Client(client), request });
        if rng.chance(0.1) {
            world.apply(Command::Tick);
        }
        assert_eq!(world.directory.check(), Ok(()), "seed {seed}");
        assert_eq!(super::audit(&world.directory), Vec::<String>::new(), "seed {seed}");
    }
    world
}

fn random_request(world: &World, client: u32, rng: &mut Rng) -> Request {
    let session = &world.directory.members[&Client(client)].session;
    let files = world.files(|_| true);
    let mut file = rng.pick(&files).clone();
    if rng.chance(0.3) {
        file = file.child((1 + rng.below(5_000)).try_into().unwrap()).unwrap_or(file);
    }
    let name = Name::new(rng.pick(&[b"a", b"b", b"c"]).as_slice()).unwrap();
    let fields = [
        Field::Access,
        Field::Times,
        Field::Parent,
        Field::Locks,
        Field::Handles,
        Field::Child(name.clone()),
        Field::Children,
        Field::Whole,
        Field::Tree,
    ];
    let scope = rng.pick(&fields).clone().of(&file);
    let kind = *rng.pick(&Kind::ALL);
    let number = rng.below(50);
    let body = match rng.below(4) {
        0 | 1 => {
            let (wants, together) = (vec![Want { scope, kind }], rng.chance(0.5));
            Up::Ask { request: number, wants, together }
        }
        2 => {
            let handles = vec![Field::Handles.of(&file)];
            let truths = if rng.chance(0.5) { handles } else { Vec::new() };
            let (lease, part, serial) = (scope.clone(), scope, rng.below(60));
            let returns = vec![Return { lease, kind, serial, part, kept: false, truths }];
            Up::Return { number, returns }
        }
        _ => Up::Renew,
    };
    let ask = match rng.below(6) {
        0 => Some(Ask::Fetch { request: number, keys: vec![Key::file(&file)] }),
        1 => Some(Ask::List { request: number, directory: file.clone(), after: Some(name) }),
        2 => {
            let release = vec![rng.pick(&files).clone()];
            let owner = [None, Some(0), Some(7)][rng.index(3)];
            let give_back =
                vec![(0, rng.chance(0.5).then_some(crate::Quota { files: 1, bytes: 9 }))];
            let needs = Needs {
                directory: Some(file.clone()),
                release,
                owner,
                bytes: rng.below(10_000),
                give_back,
                free: rng.chance(0.5).then(|| rng.below(100_000)),
                ..Needs::default()
            };
            Some(Ask::Provide { request: number, needs })
        }
        _ => {
            let operations = (0..1 + rng.below(3)).map(|_| {
                let mut act = world.random_act(rng);
                if let Act::Create { directory, birth, .. } | Act::Mkdir { directory, birth, .. } =
                    &mut act
                {
                    let numbering =
                        world.directory.records.file(directory).unwrap().unwrap().numbering;
                    let number = numbering.creator_next + rng.below(2);
                    birth.file = directory.child(number.try_into().unwrap()).unwrap();
                    birth.serial = session.serials.first().unwrap_or(7);
                    birth.is_leased = rng.chance(0.5);
                }
                if let Act::Unlink { is_open, .. } | Act::Rename { is_open, .. } = &mut act {
                    *is_open = rng.chance(0.5);
                }
                Operation { actor: Actor::ROOT, time: 1, act }
            });
            Some(Ask::Batch { number: session.batch + 1, operations: operations.collect() })
        }
    };
    let session = session.number + u64::from(rng.chance(0.05) || !session.is_live);
    Request { lease: Upward { session, stamp: world.now, body }, ask }
}

#[test]
fn whatever_clients_say_everything_fits_together_and_what_is_at_hand_never_shows() {
    for seed in 200..206 {
        compare(seed, &noise(seed, 150));
    }
}

#[test]
fn what_is_at_hand_never_shows() {
    for seed in 100..108 {
        compare(seed, &history(seed, 120));
    }
}

/// Whether a directory that loads and lets go at random does the same as one that has everything.
fn compare(seed: u64, world: &World) {
    let mut whole = World::new(0);
    let mut store = Store::new(seed, Instant::from_secs(1));
    for (number, (now, command, expected)) in world.history.iter().enumerate() {
        whole.now = *now;
        assert_eq!(whole.apply(command.clone()), *expected);
        let out = store.apply(*now, command);
        assert_eq!(out, *expected, "seed {seed}, command {number}: {command:?}");
        assert_eq!(store.directory.digest(), whole.directory.digest(), "seed {seed}");
        assert_eq!(store.directory.wake_at(), whole.directory.wake_at());
    }
    assert_eq!(whole.directory.digest(), world.directory.digest());
    assert!(store.loads > 100, "it had to load: {}", store.loads);
    let resident: BTreeMap<Key, Record> =
        world.directory.records.iter().map(|(k, r)| (k.clone(), r.clone())).collect();
    assert_eq!(store.records, resident, "what was stored is what is");
}
