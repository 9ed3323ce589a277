//! What leases cost, beside a bare map in the same run.
//!
//! `cargo bench -p lease`. The figure that matters is the ratio of granting and returning a lease to
//! inserting and removing the same key in a `BTreeMap`.

use std::collections::BTreeMap;

use base::{FileId, Instant, Machine};
use divan::{Bencher, black_box, counter::ItemsCount};
use lease::{
    Client, Field, Grantor, Kind, Name, Policy, Scope, Terms,
    message::{Down, Return, Up, Upward, Want},
};

fn main() {
    divan::main();
}

const CLIENTS: u32 = 1_000;

/// The scope of one name among many in one of many directories.
fn scope(number: u64) -> Scope {
    let directory = std::num::NonZeroU64::new(1 + number % 1_000).expect("it is positive");
    let file = FileId::ROOT.child(directory).expect("it is short");
    let name = format!("file-{:06}", number / 1_000);
    Field::Child(Name::new(name.as_bytes()).expect("it is a name")).of(&file)
}

fn say(grantor: &mut Grantor, client: Client, body: Up) -> Vec<lease::grantor::Output> {
    let mut out = Vec::new();
    let message = Upward { session: 1, stamp: Instant::START, body };
    grantor.step(Instant::START, (client, message), &mut out);
    out
}

fn ask(scope: Scope) -> Up {
    let wants = vec![Want { scope, kind: Kind::Write }];
    Up::Ask { request: 1, wants, together: true }
}

fn filled(count: u64) -> Grantor {
    let mut grantor = Grantor::new(Terms::default(), Policy::of_the_paper());
    for number in 0..count {
        say(&mut grantor, Client(1 + number as u32 % CLIENTS), ask(scope(number)));
    }
    assert_eq!(grantor.lease_count() as u64, count);
    grantor
}

const COUNTS: [u64; 2] = [1_000, 100_000];
const BATCH: u64 = 1_000;

#[divan::bench(args = COUNTS, counters = [ItemsCount::new(BATCH)])]
fn grant_and_return(bencher: Bencher, count: u64) {
    let mut grantor = filled(count);
    let scopes: Vec<Scope> = (count..count + BATCH).map(scope).collect();
    let mut turn = 0;
    bencher.bench_local(|| {
        turn += 1;
        for (number, scope) in scopes.iter().enumerate() {
            let client = Client(1 + number as u32 % CLIENTS);
            let out = say(&mut grantor, client, ask(scope.clone()));
            let Down::Granted { grants, .. } = &out[0].1.body else { panic!("it is free") };
            let (lease, kind, serial) = (scope.clone(), Kind::Write, grants[0].serial);
            let part = lease.clone();
            let returned = Return { lease, kind, serial, part, kept: false, truths: Vec::new() };
            let body = Up::Return { number: turn, returns: vec![returned] };
            black_box(say(&mut grantor, client, body));
        }
    });
}

#[divan::bench(args = COUNTS, counters = [ItemsCount::new(BATCH)])]
fn insert_and_remove_in_a_map(bencher: Bencher, count: u64) {
    let mut map: BTreeMap<(Scope, Client), u64> = (0..count)
        .map(|number| ((scope(number), Client(1 + number as u32 % CLIENTS)), number))
        .collect();
    let scopes: Vec<Scope> = (count..count + BATCH).map(scope).collect();
    bencher.bench_local(|| {
        for (number, scope) in scopes.iter().enumerate() {
            let key = (scope.clone(), Client(1 + number as u32 % CLIENTS));
            map.insert(key.clone(), black_box(0));
            black_box(map.remove(&key));
        }
    });
}
