//! In which files of a shell time may be looked at or waited for: a list for each crate, which only gets shorter.
//!
//! What follows from time is for machines, which are told it. A shell turns time into inputs in one place, and waits
//! for a socket, a disk or a thread in a few more.

use super::{
    File, Finding,
    rules::{contains_word, is_product},
};

/// A file that may, and what for.
type Listed = (&'static str, &'static str);

/// The crates that keep such a list. Whoever adds a file here has first looked for a machine that could decide it.
const CRATES: &[(&str, &[Listed])] = &[
    ("mount", &[("time.rs", "the moments that its machines are told, and its waits")]),
    (
        "host",
        &[
            ("clock.rs", "the clock that everybody is handed"),
            (
                "mailbox.rs",
                "where the thread of the group waits, until its server wants to be woken",
            ),
            (
                "desk.rs",
                "where programs wait, and the thread that lets the client's deadlines pass",
            ),
            ("control.rs", "the socket for people"),
            ("discovery.rs", "multicast DNS has a thread of its own that can only be polled"),
            ("discovery/mdns.rs", "multicast DNS has a thread of its own that can only be polled"),
            ("net.rs", "handshakes, idle connections and requests end in time"),
            ("net/ask.rs", "whoever has used up its allowance is not read for a while"),
            ("net/herald.rs", "lines for people, no more than can be read"),
            ("net/hub.rs", "handshakes end in time"),
            ("net/link.rs", "idle and stalled connections end"),
            ("net/lookout.rs", "whether somebody answers"),
            ("net/peer.rs", "a machine is called again after a pause"),
            ("fsck.rs", "whoever asked for it waits for the threads that run the machine"),
            ("recover.rs", "whoever asked for it waits for the group's thread"),
            ("registrar.rs", "whoever asked for it waits for the group's thread"),
            ("group/peers.rs", "a thread that answers waits for the group's, which may be stuck"),
            ("neighbours.rs", "to be decided by a machine: how often a home is asked again"),
            ("neighbours/judge.rs", "to be decided by a machine: for how long a right is believed"),
        ],
    ),
];

/// What looks at a clock, or waits by one.
const WORDS: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    "clock_gettime",
    "clock_nanosleep",
    "elapsed",
    "interval",
    "park",
    "park_timeout",
    "recv_timeout",
    "sleep",
    "sleep_until",
    "timeout",
    "timeout_at",
    "wait_timeout",
    "wait_timeout_while",
    "yield_now",
];

/// This file, in which lists may not grow stale.
const PATH: &str = "xtask/src/tidy/clocks.rs";

/// Whether a list is about the file, or it has the lists.
pub fn is_listed(path: &str) -> bool {
    path == PATH || is_product(path) && listed(path).is_some()
}

/// Time is looked at and waited for only where a list says so, and says why.
pub fn clocks(file: &File) -> Vec<Finding> {
    if file.path == PATH {
        return stale(file);
    }
    let Some((name, files)) = listed(file.path) else { return Vec::new() };
    let end = file.code.find("#[cfg(test)]\nmod tests").unwrap_or(file.code.len());
    let lines = file.code[..end].lines().enumerate();
    let found = lines.filter_map(|(at, line)| {
        let word = WORDS.iter().find(|word| contains_word(line, word))?;
        Some((at + 1, *word))
    });
    let found: Vec<(usize, &str)> = found.collect();
    let is_on_list = files.iter().any(|(path, _)| *path == name);
    match (is_on_list, found.is_empty()) {
        (true, true) => {
            vec![(1, format!("it needs no clock any more: take it off the list in {PATH}"))]
        }
        (false, false) => {
            let message = |word| {
                format!("`{word}` looks at time; have a machine decide it, and tell that the time")
            };
            found.into_iter().map(|(line, word)| (line, message(word))).collect()
        }
        _ => Vec::new(),
    }
}

/// The path of a file in its crate's `src`, and its crate's list.
fn listed(path: &str) -> Option<(&str, &'static [Listed])> {
    let (krate, name) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let (_, files) = CRATES.iter().find(|(listed, _)| *listed == krate)?;
    Some((name, files))
}

/// Files on a list that are not there.
fn stale(file: &File) -> Vec<Finding> {
    let all = CRATES.iter().flat_map(|(krate, files)| {
        files.iter().map(move |(name, _)| format!("crates/{krate}/src/{name}"))
    });
    let gone = all.filter(|path| !file.paths.contains(path));
    gone.map(|path| (1, format!("{path} is on the list and not there: take it off"))).collect()
}
