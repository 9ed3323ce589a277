//! What applying a create costs, beside inserting the same two records into a bare map in the same run.
//!
//! `cargo bench -p directory --bench creates`. The figure that matters is the ratio of the two.

use std::{cell::Cell, collections::BTreeMap, num::NonZeroU64};

use base::{FileId, Instant};
use directory::{
    Act, Actor, Birth, Command, Directory, Entry, File, Key, Operation, Record, Settings, Sort,
    message::{Answer, Ask, Needs, Request, Response},
    record::{Access, Content, Numbering, Times},
};
use divan::{Bencher, black_box, counter::ItemsCount};
use lease::{
    Client, Field, Kind, Name,
    message::{Up, Upward, Want},
};
use triomphe::Arc;

fn main() {
    divan::main();
}

const CLIENT: Client = Client(1);
const BATCH: u64 = 1_000;
const COUNTS: [u64; 2] = [1_000, 500_000];

fn name(number: u64) -> Name {
    Name::new(format!("file-{number:06}").as_bytes()).expect("it is a name")
}

fn child(directory: &FileId, number: u64) -> FileId {
    directory.child(NonZeroU64::new(number).expect("it is positive")).expect("it is short")
}

fn heard(body: Up, ask: Option<Ask>) -> Command {
    let lease = Upward { session: 1, stamp: Instant::START, body };
    Command::Heard { client: CLIENT, request: Request { lease, ask } }
}

/// A client that may change everything, and a directory that hears of it.
struct World {
    directory: Directory,
    provisions: u64,
}

impl World {
    fn new() -> World {
        let settings = Settings { admits_anybody: true, ..Settings::default() };
        let directory = Directory::new(settings, Instant::START);
        let mut world = World { directory, provisions: 0 };
        let wants = vec![Want { scope: Field::Tree.of(&FileId::ROOT), kind: Kind::Write }];
        world.apply(&heard(Up::Ask { request: 1, wants, together: true }, None));
        world
    }

    fn apply(&mut self, command: &Command) -> Vec<(Client, Response)> {
        let mut out = Vec::new();
        self.directory.apply(Instant::START, command, &mut out).expect("all is at hand");
        out
    }

    fn provide(&mut self) {
        self.provisions += 1;
        let needs = Needs {
            directory: Some(FileId::ROOT),
            owner: Some(0),
            free: Some(u64::MAX),
            ..Needs::default()
        };
        let ask = Ask::Provide { request: self.provisions, needs };
        self.apply(&heard(Up::Renew, Some(ask)));
    }

    fn push(&mut self, batch: u64, command: &Command) {
        // Often enough for numbers and serial numbers never to run out.
        if batch % 16 == 1 {
            self.provide();
        }
        let out = self.apply(command);
        let answer = out.into_iter().find_map(|(_, response)| response.answer);
        let expected = Some(Answer::Applied { number: batch, refused: None });
        assert_eq!(answer, expected);
    }
}

/// A new directory and files in it: a thousand creates. Batches count from 1.
fn batch(number: u64) -> Command {
    let directory = child(&FileId::ROOT, number);
    let operation = |act| Operation { actor: Actor::ROOT, time: 1, act };
    let serial = |nth: u64| 2 + (number - 1) * BATCH + nth;
    let birth = |file, nth| Birth { file, serial: serial(nth), is_leased: false };
    let mut operations = vec![operation(Act::Mkdir {
        directory: FileId::ROOT,
        name: name(number),
        mode: 0o755,
        birth: birth(directory.clone(), 0),
    })];
    operations.extend((1..BATCH).map(|nth| {
        operation(Act::Create {
            directory: directory.clone(),
            name: name(nth),
            mode: 0o644,
            birth: birth(child(&directory, nth), nth),
        })
    }));
    heard(Up::Renew, Some(Ask::Batch { number, operations }))
}

/// The same records.
fn records(number: u64) -> Vec<(Key, Record)> {
    let directory = child(&FileId::ROOT, number);
    let file = |sort, parent: &FileId, serial| {
        Record::File(Arc::new(File {
            serial,
            sort,
            access: Access { mode: 0o644, uid: 0, gid: 0 },
            times: Times { accessed: 1, modified: 1, changed: 1 },
            content: Content::default(),
            links: 1,
            parent: parent.clone(),
            numbering: Numbering::default(),
            rare: None,
        }))
    };
    let entry = |file: &FileId, sort| Record::Entry(Entry { file: file.clone(), sort });
    let sort = Sort::Directory;
    let mut all = vec![
        (Key::file(&directory), file(sort, &FileId::ROOT, 0)),
        (Key::entry(&FileId::ROOT, &name(number)), entry(&directory, sort)),
    ];
    for nth in 1..BATCH {
        let id = child(&directory, nth);
        let key = Key::entry(&directory, &name(nth));
        all.push((Key::file(&id), file(Sort::Regular, &directory, nth)));
        all.push((key, entry(&id, Sort::Regular)));
    }
    all
}

#[divan::bench(args = COUNTS, counters = [ItemsCount::new(BATCH)], sample_count = 50, sample_size = 2)]
fn apply_creates(bencher: Bencher, count: u64) {
    let mut world = World::new();
    let mut last = 0;
    while last * BATCH < count {
        last += 1;
        world.push(last, &batch(last));
    }
    let last = Cell::new(last);
    bencher
        .with_inputs(|| {
            last.set(last.get() + 1);
            (last.get(), batch(last.get()))
        })
        .bench_local_refs(|(number, command)| world.push(*number, command));
}

#[divan::bench(args = COUNTS, counters = [ItemsCount::new(BATCH)], sample_count = 50, sample_size = 2)]
fn insert_records_into_a_map(bencher: Bencher, count: u64) {
    let mut map = BTreeMap::new();
    let mut last = 0;
    while last * BATCH < count {
        last += 1;
        map.extend(records(last));
    }
    let last = Cell::new(last);
    bencher
        .with_inputs(|| {
            last.set(last.get() + 1);
            records(last.get())
        })
        .bench_local_values(|records| {
            for (key, record) in records {
                black_box(map.insert(key, record));
            }
        });
}
