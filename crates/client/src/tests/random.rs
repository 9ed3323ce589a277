//! Many clients that do anything, on a perfect network: nobody is refused, nobody waits for ever, and
//! in the end all see the same.

use base::{Duration, Rng};

use crate::{Settings, script::World};

const PATHS: [&str; 8] = ["a", "b", "d", "d/a", "d/b", "e", "e/a", "e/b"];

fn line(rng: &mut Rng, at: u64, handles: &mut Vec<(char, String)>) -> String {
    let client = ['A', 'B', 'C'][rng.below(3) as usize];
    let (one, two) = (*rng.pick(&PATHS), *rng.pick(&PATHS));
    let what = match rng.below(22) {
        0..=3 => format!("creates {one}"),
        4..=5 => format!("makes {}", rng.pick(&["d", "e", one])),
        6..=7 => format!("unlinks {one}"),
        8 => format!("removes {one}"),
        9..=10 => format!("moves {one} to {two}"),
        11 => format!("swaps {one} with {two}"),
        12 => format!("links {one} to {two}"),
        13 => format!("chmods {one} 700"),
        14 => format!("writes {one} {}", rng.below(1_000)),
        15 => format!("tags {one} k{} v", rng.below(2)),
        16 => format!("lists {one}"),
        17 => format!("sees {one}"),
        18 => {
            let handle = format!("h{}", handles.len());
            handles.push((client, handle.clone()));
            format!("opens {one} as {handle}")
        }
        19 if !handles.is_empty() => {
            let index = rng.below(handles.len() as u64) as usize;
            let (client, handle) = handles[index].clone();
            return format!("{at} {client} tries to close {handle}");
        }
        19 | 20 => format!("locks {one} x{}-9", rng.below(5)),
        _ => "syncs".to_owned(),
    };
    format!("{at} {client} {what}")
}

fn run(seed: u64, change: impl Fn(Settings) -> Settings) {
    let mut rng = Rng::new(seed);
    let mut world = World::new(change);
    let mut handles = Vec::new();
    let mut at = 0;
    for _ in 0..200 {
        at += if rng.below(4) == 0 { rng.below(3_000) } else { 0 };
        let line = line(&mut rng, at, &mut handles);
        world.play(&line);
        world.log.push(format!("   {line}"));
        world
            .group
            .check()
            .unwrap_or_else(|what| panic!("{what} {seed}\n{}", world.log.join("\n")));
    }
    let log = |world: &World<_>| format!("seed {seed}\n{}", world.log.join("\n"));
    world.settle();
    // Whoever idles for long may lose a session, but never with anything done in it.
    let is_loss = |line: &String| line.contains("lost") && !line.ends_with("lost [], 0 sent");
    world.log.retain(|line| !line.ends_with("lost [], 0 sent"));
    assert!(!world.log.iter().any(is_loss), "{}", log(&world));
    assert!(!world.log.iter().any(|line| line.contains("waits")), "{}", log(&world));
    let views = ['A', 'B', 'C'].map(|client| {
        let from = world.log.len();
        for path in ["."].iter().chain(&PATHS) {
            at += 1;
            let now = at + 60_000;
            world.play(&format!("{now} {client} sees {path}"));
            world.play(&format!("{now} {client} lists {path}"));
        }
        let seen = world.log[from..].iter();
        let seen = seen.filter(|line| !line.ends_with("lost [], 0 sent"));
        seen.map(|line| line.split(' ').skip(2).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    });
    assert_eq!(views[0], views[1], "{}", log(&world));
    assert_eq!(views[0], views[2], "{}", log(&world));
    world.group.check().unwrap();
}

#[test]
fn nobody_is_refused_and_all_see_the_same() {
    for seed in 0..60 {
        run(seed, |settings| settings);
    }
}

#[test]
fn so_it_is_when_little_may_be_held_and_remembered() {
    let little = |settings| Settings {
        budget: 24,
        facts_max: 10,
        push_after: Duration::from_millis(100),
        batch_max: 3,
        pending_max: 5,
        ..settings
    };
    for seed in 0..40 {
        run(seed, little);
    }
}
