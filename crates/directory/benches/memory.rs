//! What a million files take, each a record and an entry, in a directory that holds them all.
//!
//! `cargo bench -p directory --bench memory`. Take what is allocated at the greatest and divide it by a
//! million; the names themselves have 11 bytes each.

use std::num::NonZeroU64;

use base::{FileId, Instant};
use directory::{
    Act, Actor, Birth, Command, Directory, Operation, Settings,
    message::{Answer, Ask, Needs, Request},
};
use divan::Bencher;
use lease::{
    Client, Field, Kind, Name,
    message::{Up, Upward, Want},
};

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

fn child(directory: &FileId, number: u64) -> FileId {
    directory.child(NonZeroU64::new(number).expect("it is positive")).expect("it is short")
}

fn name(number: u64) -> Name {
    Name::new(format!("file-{number:06}").as_bytes()).expect("it is a name")
}

fn say(directory: &mut Directory, body: Up, ask: Option<Ask>) -> Option<Answer> {
    let lease = Upward { session: 1, stamp: Instant::START, body };
    let command = Command::Heard { client: Client(1), request: Request { lease, ask } };
    let mut out = Vec::new();
    directory.apply(Instant::START, &command, &mut out).expect("all is at hand");
    out.into_iter().find_map(|(_, response)| response.answer)
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn a_million_files_in_a_thousand_directories(bencher: Bencher) {
    bencher.bench_local(|| {
        let settings = Settings { admits_anybody: true, ..Settings::default() };
        let mut directory = Directory::new(settings, Instant::START);
        let wants = vec![Want { scope: Field::Tree.of(&FileId::ROOT), kind: Kind::Write }];
        say(&mut directory, Up::Ask { request: 1, wants, together: true }, None);
        for number in 1..=1_000 {
            if number % 16 == 1 {
                let (at, owner) = (Some(FileId::ROOT), Some(0));
                let needs = Needs { directory: at, owner, ..Needs::default() };
                let ask = Ask::Provide { request: number, needs };
                say(&mut directory, Up::Renew, Some(ask));
            }
            let top = child(&FileId::ROOT, number);
            let operations = (0..=1_000).map(|nth| {
                let serial = 2 + (number - 1) * 1_001 + nth;
                let name = name(if nth == 0 { number } else { nth });
                let birth = |file| Birth { file, serial, is_leased: false };
                let act = match nth {
                    0 => Act::Mkdir {
                        directory: FileId::ROOT,
                        name,
                        mode: 0o755,
                        birth: birth(top.clone()),
                    },
                    _ => Act::Create {
                        directory: top.clone(),
                        name,
                        mode: 0o644,
                        birth: birth(child(&top, nth)),
                    },
                };
                Operation { actor: Actor::ROOT, time: 1, act }
            });
            let ask = Ask::Batch { number, operations: operations.collect() };
            let answer = say(&mut directory, Up::Renew, Some(ask));
            assert_eq!(answer, Some(Answer::Applied { number, refused: None }));
        }
        assert_eq!(directory.sizes().records, 2_002_001);
        directory
    });
}
