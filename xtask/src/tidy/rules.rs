//! What each rule looks at, and what it says.

use super::{File, Finding, source::is_word};
use crate::layers;

const LINES_MAX: usize = 800;

/// Words that say nothing about what is inside.
const EMPTY_NAMES: &[&str] =
    &["util", "utils", "common", "core", "types", "helpers", "manager", "misc"];

/// Lints that make up the determinism fence, and the groups that contain them.
const FENCE: &[&str] = &[
    "clippy::disallowed_methods",
    "clippy::disallowed_types",
    "clippy::disallowed_macros",
    "clippy::iter_over_hash_type",
    "clippy::all",
    "clippy::style",
    "clippy::restriction",
];

/// Shells in which one file alone may look at a clock or wait by it: elsewhere a moment is data.
const CLOCKS: &[(&str, &str)] = &[("crates/mount/src/", "crates/mount/src/time.rs")];

/// What looks at a clock, or waits by it.
const CLOCK: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    "elapsed",
    "park",
    "park_timeout",
    "sleep",
    "recv_timeout",
    "wait_timeout",
    "wait_timeout_while",
    "yield_now",
];

/// Where somebody's own machine begins, in halves so that this file may stand under its own rule.
const MACHINE_PATHS: &[&str] =
    &[concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/")];

/// Whether it is a file at all.
pub fn is_any(_: &str) -> bool {
    true
}

/// Whether it is Rust.
pub fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

/// Whether it is a page.
pub fn is_markdown(path: &str) -> bool {
    path.ends_with(".md")
}

/// Whether people write it by hand; golden files and data keep the bytes that they have.
pub fn is_written(path: &str) -> bool {
    let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name.rsplit_once('.') {
        Some((_, extension)) => {
            ["rs", "toml", "md", "sh", "yml", "yaml", "json"].contains(&extension)
        }
        None => path.starts_with(".ci/"),
    }
}

/// Whether it is Rust, but not a file of tests only.
pub fn is_product(path: &str) -> bool {
    is_rust(path) && !is_test(path)
}

/// Whether it is Rust of a crate behind the determinism fence.
pub fn is_pure(path: &str) -> bool {
    let crate_name = path.strip_prefix("crates/").and_then(|rest| rest.split('/').next());
    is_rust(path) && crate_name.is_some_and(layers::is_pure)
}

/// Whether it only says what is in a crate or module.
pub fn is_index(path: &str) -> bool {
    path.ends_with("/lib.rs") || path.ends_with("/mod.rs")
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.split('/').rev().skip(1).any(|dir| dir == "tests")
}

/// Every file says first what it is.
pub fn opening(file: &File) -> Vec<Finding> {
    let first = file.text.lines().next().and_then(|line| line.strip_prefix("//!"));
    if first.is_some_and(|sentence| !sentence.trim().is_empty()) {
        return Vec::new();
    }
    vec![(1, "open the file with `//!` and one sentence on what it is".to_owned())]
}

/// A file of the product fits in a head.
pub fn size(file: &File) -> Vec<Finding> {
    match file.text.lines().count() {
        count if count <= LINES_MAX => Vec::new(),
        count => vec![(LINES_MAX + 1, format!("{count} lines, of at most {LINES_MAX}; split it"))],
    }
}

/// Names say what is inside.
pub fn name(file: &File) -> Vec<Finding> {
    let stems = file.path.split('/').map(|part| part.split('.').next().unwrap_or(part));
    let stems = stems.map(|stem| (1, stem));
    let modules = file.code.lines().enumerate().filter_map(|(at, line)| {
        let (_, rest) = line.split_once("mod ").filter(|(before, _)| !before.ends_with(is_word))?;
        Some((at + 1, rest.split(|c| !is_word(c)).next()?))
    });
    stems
        .chain(modules)
        .filter(|(_, name)| EMPTY_NAMES.contains(name))
        .map(|(line, name)| (line, format!("`{name}` says nothing; name it by what it is")))
        .collect()
}

/// Lines end where they end, and so do files.
pub fn whitespace(file: &File) -> Vec<Finding> {
    let mut findings = find(file.text, "whitespace at the end of the line", |line| {
        line.ends_with(|c: char| c.is_whitespace())
    });
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        findings.push((file.text.lines().count(), "no newline at the end of the file".to_owned()));
    }
    findings
}

/// Rust is indented with spaces.
pub fn tab(file: &File) -> Vec<Finding> {
    find(file.text, "a tab; indent with spaces", |line| line.contains('\t'))
}

/// Nothing comes in half done.
pub fn unfinished(file: &File) -> Vec<Finding> {
    let marks = [concat!("FIX", "ME"), concat!("XX", "X")];
    let mut findings =
        find(file.text, "finish it, or say in plain words what is missing", |line| {
            marks.iter().any(|mark| contains_word(line, mark))
        });
    findings.extend(find(file.code, "finish it before it comes in", |line| {
        contains_word(line, "todo!") || contains_word(line, "dbg!")
    }));
    findings
}

/// Every test runs.
pub fn ignored_test(file: &File) -> Vec<Finding> {
    let attributes = file.code.match_indices("#[").map(|(at, _)| {
        let end = file.code[at..].find(']').map_or(file.code.len(), |len| at + len);
        (at, &file.code[at..end])
    });
    let message = "run the test, delete it, or make it a long run in xtask/src/long.rs";
    attributes
        .filter(|(_, attribute)| contains_word(attribute, "ignore"))
        .map(|(at, _)| (file.code[..at].matches('\n').count() + 1, message.to_owned()))
        .collect()
}

/// No test waits by the clock.
pub fn sleeping_test(file: &File) -> Vec<Finding> {
    let start = if is_test(file.path) { Some(0) } else { file.code.find("#[cfg(test)]") };
    let Some(start) = start else { return Vec::new() };
    let line_start = file.code[..start].matches('\n').count();
    let message = "a test that sleeps is slow or flaky; wait for what should happen";
    find(&file.code[start..], message, |line| contains_word(line, "sleep"))
        .into_iter()
        .map(|(line, message)| (line_start + line, message))
        .collect()
}

/// Pure crates have no async.
pub fn asynchronous(file: &File) -> Vec<Finding> {
    find(file.code, "a pure crate has no async; answer with an output and a token", |line| {
        contains_word(line, "async") || contains_word(line, "await")
    })
}

/// Pure crates stay behind the determinism fence.
pub fn fence(file: &File) -> Vec<Finding> {
    find(file.code, "a pure crate can't open the determinism fence; see clippy.toml", |line| {
        FENCE.iter().any(|lint| contains_word(line, lint))
    })
}

/// Whether it is Rust of a shell that has one file for clocks, and not that one.
pub fn is_clockless(path: &str) -> bool {
    let is_fenced = |(folder, clock): &(&str, &str)| path.starts_with(folder) && path != *clock;
    is_product(path) && CLOCKS.iter().any(is_fenced)
}

/// What decides when is told what time it is.
pub fn clock(file: &File) -> Vec<Finding> {
    find(
        file.code,
        "a clock, or a wait by one; that is for the crate's own file of those",
        |line| CLOCK.iter().any(|word| contains_word(line, word)),
    )
}

/// There is one fence: clippy takes the nearest of these files and forgets the others.
pub fn one_fence(file: &File) -> Vec<Finding> {
    let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", file.path));
    let is_fence = ["clippy.toml", ".clippy.toml"].contains(&name);
    if !is_fence || (folder.is_empty() && name == "clippy.toml") {
        return Vec::new();
    }
    vec![(1, "it would hide the fence in the root's clippy.toml; say it there".to_owned())]
}

/// Pure crates have no code that the lints of a debug build don't see.
pub fn unseen(file: &File) -> Vec<Finding> {
    find(file.code, "no lint sees this code; a pure crate is the same in every build", |line| {
        contains_word(line, "debug_assertions") || line.contains("cfg(feature")
    })
}

/// Whoever allows unsafe code says why.
pub fn unsafe_reason(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, _) in file.code.match_indices("unsafe_code") {
        let attribute = file.code[..at].rfind('#').unwrap_or(at);
        let end = file.code[at..].find(']').map_or(file.code.len(), |len| at + len);
        if !file.code[attribute..end].contains("reason =") {
            let line = file.code[..at].matches('\n').count() + 1;
            findings.push((line, "say why it must be unsafe, with `reason = `".to_owned()));
        }
    }
    findings
}

/// `lib.rs` and `mod.rs` only say what is where.
pub fn logic(file: &File) -> Vec<Finding> {
    find(file.code, "no logic here; give it a file of its own", |line| contains_word(line, "fn "))
}

/// Nothing depends on where one machine keeps its files.
pub fn machine_path(file: &File) -> Vec<Finding> {
    find(file.text, "a path of one machine; say it relative to the repository", |line| {
        MACHINE_PATHS.iter().any(|path| {
            let is_absolute =
                |before: &str| !before.ends_with(|c| is_word(c) || "~.-)}".contains(c));
            line.match_indices(path).any(|(at, _)| is_absolute(&line[..at]))
        })
    })
}

fn find(text: &str, message: &str, is_wrong: impl Fn(&str) -> bool) -> Vec<Finding> {
    let lines = text.split('\n').enumerate().filter(|(_, line)| is_wrong(line));
    lines.map(|(at, _)| (at + 1, message.to_owned())).collect()
}

/// Whether the line contains the needle, but not as a part of a longer word.
fn contains_word(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        let starts_inside = needle.starts_with(is_word) && line[..at].ends_with(is_word);
        let ends_inside =
            needle.ends_with(is_word) && line[at + needle.len()..].starts_with(is_word);
        !starts_inside && !ends_inside
    })
}
