//! The reference file system beside the kernel's own: every random operation must answer the same.
//!
//! As the superuser, several users act, and all rights are the kernel's to judge; else only oneself.
//! Not compared: times of last access but those just set, sizes of directories, `..` out of the tree,
//! locks whose owner is a process with several handles (here every open file is an owner), and links
//! without `fs.protected_hardlinks` where the machine has it on, or the other way round.
//!
//! `CROFT_KERNEL_DIR` and `CROFT_KERNEL_DISK` say where, `CROFT_KERNEL_OPS` how much, and
//! `CROFT_KERNEL_SEED` from which seed on; `cargo xtask long reference` runs a million each.

#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "the kernel is outside, and what was compared is printed"
)]

mod canary;
mod draw;
mod duel;
mod identity;
mod kernel;
mod model;
mod op;
mod outcomes;
mod place;

use std::path::PathBuf;

use duel::{Honest, Tally, fight};
use place::Quirks;

/// Operations of one seed, in one fresh directory.
const ROUND: u64 = 2_000;

#[test]
fn the_reference_answers_as_the_kernel_does_in_memory() {
    compare(memory(), 100_000);
}

#[test]
fn the_reference_answers_as_the_kernel_does_on_the_disk() {
    let place = std::env::var_os("CROFT_KERNEL_DISK");
    compare(place.map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from), 30_000);
}

fn memory() -> PathBuf {
    std::env::var_os("CROFT_KERNEL_DIR").map_or_else(|| "/dev/shm".into(), PathBuf::from)
}

fn number(name: &str, default: u64) -> u64 {
    let parse = |text: String| text.parse().unwrap_or_else(|_| panic!("{name} is no number"));
    std::env::var(name).map_or(default, parse)
}

fn compare(place: PathBuf, count: u64) {
    place::prepare();
    let quirks = Quirks::probe(&place);
    let count = number("CROFT_KERNEL_OPS", count);
    let seed = number("CROFT_KERNEL_SEED", 1);
    let started = std::time::Instant::now();
    let mut total = Tally::new();
    for round in 0..count.div_ceil(ROUND) {
        match fight(&place, &quirks, seed + round, ROUND.min(count), &Honest) {
            Err(difference) => panic!("{difference}\nin {}: {quirks:?}", place.display()),
            Ok(tally) => {
                tally.into_iter().for_each(|(key, n)| *total.entry(key).or_default() += n);
            }
        }
    }
    // Alone, nobody is in anybody's way.
    if rustix::process::geteuid().is_root() {
        let missing = outcomes::missing(&total, quirks.has_xattrs);
        assert!(missing.is_empty(), "from seed {seed} on these never happened: {missing:?}");
    }
    let done: u64 = total.values().sum();
    println!(
        "{}: {done} operations alike, in {:.1} s, from seed {seed} on; {quirks:?}",
        place.display(),
        started.elapsed().as_secs_f64()
    );
    for ((verb, outcome), count) in &total {
        println!("{verb:17} {outcome:13} {count:8}");
    }
}
