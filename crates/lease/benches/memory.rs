//! What a million leases of a thousand clients take.
//!
//! `cargo bench -p lease --bench memory`. Divide the greatest number of bytes allocated by a million. A
//! name's own bytes are shared with the directory's record of it, so they are counted once with and
//! once without.

use base::{FileId, Instant, Machine};
use divan::Bencher;
use lease::{
    Client, Field, Grantor, Kind, Name, Policy, Terms,
    message::{Up, Upward, Want},
};

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

const COUNT: u64 = 1_000_000;
const CLIENTS: u64 = 1_000;

/// One of a thousand names of eleven bytes in each of a thousand directories.
fn name(number: u64) -> Name {
    Name::new(format!("file-{:06}", number / 1_000).as_bytes()).expect("it is a name")
}

fn fill(name: impl Fn(u64) -> Name) -> Grantor {
    let mut grantor = Grantor::new(Terms::default(), Policy::of_the_paper());
    let mut out = Vec::new();
    for number in 0..COUNT {
        let directory = std::num::NonZeroU64::new(1 + number % 1_000).expect("it is positive");
        let file = FileId::ROOT.child(directory).expect("it is short");
        let scope = Field::Child(name(number)).of(&file);
        let wants = vec![Want { scope, kind: Kind::Write }];
        let body = Up::Ask { request: 1, wants, together: true };
        let message = Upward { session: 1, stamp: Instant::START, body };
        let client = Client(1 + (number % CLIENTS) as u32);
        grantor.step(Instant::START, (client, message), &mut out);
        out.clear();
    }
    assert_eq!(grantor.lease_count() as u64, COUNT);
    grantor
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn a_million_leases_and_their_names(bencher: Bencher) {
    bencher.bench_local(|| fill(name));
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn a_million_leases_beyond_their_names(bencher: Bencher) {
    let names: Vec<Name> = (0..COUNT).map(name).collect();
    bencher.bench_local(|| fill(|number| names[number as usize].clone()));
}
