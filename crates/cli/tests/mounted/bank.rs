//! Tokens that move between accounts while machines are killed and frozen: each is there exactly once, for
//! everybody, whatever happens.
//!
//! `CROFT_BANK_KILLS`, `CROFT_BANK_FREEZES` and `CROFT_BANK_SEED` ask for more; `cargo xtask long bank` does 100 of
//! each.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Signal, kill_process};

use crate::{
    cell::{Scratch, can_mount},
    draw::{Draw, number},
    quickstart::Quickstart,
    spread::{Frozen, PATIENCE, pass, until},
};

const MACHINES: usize = 4;
pub const ACCOUNTS: u64 = 4;
pub const TOKENS: u64 = 30;
/// Longer than a session, of 20 seconds.
const LONG: Duration = Duration::from_secs(22);

fn mounts(directory: &Path) -> Vec<PathBuf> {
    let name = |index| if index == 1 { "mnt".to_owned() } else { format!("mnt-{index}") };
    (1..=MACHINES).map(|index| directory.join(name(index))).collect()
}

#[test]
fn every_token_is_there_exactly_once_through_kills_and_freezes() {
    if !can_mount() {
        return;
    }
    let (kills, freezes) = (number("CROFT_BANK_KILLS", 2), number("CROFT_BANK_FREEZES", 2));
    let seed = number("CROFT_BANK_SEED", 1);
    let scratch = Scratch::new();
    let directory = scratch.0.join("quick");
    let mut quickstart = Quickstart::new(&directory, &["--mounts"]);
    let mounts = mounts(&directory);
    open(&mounts[0]);
    let (is_over, moves) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let workers: Vec<_> = (1u64..)
        .zip(&mounts)
        .map(|(index, mount)| {
            let (mount, is_over, moves) = (mount.clone(), Arc::clone(&is_over), Arc::clone(&moves));
            let draw = Draw::new(seed * 100 + index);
            thread::spawn(move || work(&mount, draw, &is_over, &moves))
        })
        .collect();
    let mut draw = Draw::new(seed);
    let mut left = vec![true; kills as usize];
    left.resize((kills + freezes) as usize, false);
    while !left.is_empty() {
        let is_kill = left.swap_remove(draw.below(left.len() as u64) as usize);
        let machine = draw.below(MACHINES as u64) as usize + 1;
        // Something is under way.
        let enough = moves.load(Ordering::Relaxed) + draw.below(100);
        until("moving tokens", || moves.load(Ordering::Relaxed) > enough);
        let pid = quickstart.pid_now(machine);
        if is_kill {
            kill_process(pid, Signal::KILL).unwrap();
            quickstart.hear(&format!("machine {machine} runs again"));
        } else {
            let is_long = draw.below(5) == 0 || left.is_empty();
            let pause = if is_long { LONG } else { Duration::from_millis(draw.below(3_000)) };
            let _frozen = Frozen::new(pid);
            pass(pause);
        }
    }
    is_over.store(true, Ordering::Relaxed);
    let refused: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
    for mount in &mounts {
        let found = count(mount);
        let everything: BTreeMap<u64, u64> = (0..TOKENS).map(|token| (token, 1)).collect();
        assert_eq!(found, everything, "at {} with seed {seed}", mount.display());
    }
    let moves = moves.load(Ordering::Relaxed);
    eprintln!(
        "{moves} moves through {kills} kills and {freezes} freezes from seed {seed}; {refused} were refused or found \
         nothing"
    );
    quickstart.interrupt();
}

#[test]
fn nobody_reads_what_was_changed_while_a_machine_was_frozen() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let directory = scratch.0.join("quick");
    let quickstart = Quickstart::new(&directory, &["--mounts"]);
    let mounts = mounts(&directory);
    let (old, new) = (mounts[1].join("file"), mounts[2].join("file"));
    fs::write(&old, "before").unwrap();
    let reader = fs::File::open(&old).unwrap();
    assert_eq!(fs::read_to_string(&old).unwrap(), "before");
    let pid = quickstart.pid_now(2);
    let frozen = Frozen::new(pid);
    // It waits until the session of the other has lapsed. The bytes are on the frozen machine, so others come.
    let start = Instant::now();
    let replaced = mounts[2].join("new");
    fs::write(&replaced, "after!").unwrap();
    fs::rename(&replaced, &new).unwrap();
    let waited = start.elapsed();
    assert!(
        waited < PATIENCE,
        "a dead machine delays others by no more than its session: {waited:?}"
    );
    drop(frozen);
    assert_eq!(fs::read_to_string(&old).unwrap(), "after!");
    let mut bytes = [0; 6];
    // What was open has lost its name, and is what it was.
    let read = std::os::unix::fs::FileExt::read_at(&reader, &mut bytes, 0);
    assert!(read.is_err() || bytes == *b"before", "{read:?} {bytes:?}");
    drop(reader);
    quickstart.interrupt();
}

/// Makes the accounts, with all tokens in them.
pub fn open(mount: &Path) {
    for account in 0..ACCOUNTS {
        fs::create_dir(mount.join(account.to_string())).unwrap();
    }
    for token in 0..TOKENS {
        let path = mount.join(format!("{}/{token}", token % ACCOUNTS));
        fs::write(&path, token.to_string()).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
    }
}

/// Moves tokens from anywhere to anywhere; how often there was nothing to move, or nobody who did it.
pub fn work(mount: &Path, mut draw: Draw, is_over: &AtomicBool, moves: &AtomicU64) -> u64 {
    let mut refused = 0;
    while !is_over.load(Ordering::Relaxed) {
        let (token, from, to) = (draw.below(TOKENS), draw.below(ACCOUNTS), draw.below(ACCOUNTS));
        let at = |account: u64| mount.join(format!("{account}/{token}"));
        match fs::rename(at(from), at(to)) {
            Ok(()) => _ = moves.fetch_add(1, Ordering::Relaxed),
            Err(_) => {
                refused += 1;
                thread::park_timeout(Duration::from_millis(1));
            }
        }
    }
    refused
}

/// How often each token is found. What a token says is what it is.
pub fn count(mount: &Path) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    for account in 0..ACCOUNTS {
        for entry in fs::read_dir(mount.join(account.to_string())).unwrap() {
            let path = entry.unwrap().path();
            let token = fs::read_to_string(&path).unwrap();
            assert_eq!(path.file_name().unwrap().to_str().unwrap(), token);
            *found.entry(token.parse().unwrap()).or_default() += 1;
        }
    }
    found
}
