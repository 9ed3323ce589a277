//! What a million leases of a thousand clients take.
//!
//! `cargo bench -p lease --bench memory`. Divide the greatest number of bytes allocated by a million.

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

#[divan::bench(sample_count = 1, sample_size = 1)]
fn a_million_names_of_a_thousand_clients(bencher: Bencher) {
    bencher.bench_local(|| {
        let mut grantor = Grantor::new(Terms::default(), Policy::of_the_paper());
        let mut out = Vec::new();
        for number in 0..1_000_000u64 {
            let directory = std::num::NonZeroU64::new(1 + number % 1_000).expect("it is positive");
            let file = FileId::ROOT.child(directory).expect("it is short");
            let name = Name::new(format!("file-{:06}", number / 1_000).as_bytes());
            let scope = Field::Child(name.expect("it is a name")).of(&file);
            let wants = vec![Want { scope, kind: Kind::Write }];
            let body = Up::Ask { request: 1, wants, together: true };
            let message = Upward { session: 1, stamp: Instant::START, body };
            grantor.step(Instant::START, (Client(number as u32 % 1_000), message), &mut out);
            out.clear();
        }
        assert_eq!(grantor.lease_count(), 1_000_000);
        grantor
    });
}
