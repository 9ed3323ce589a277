//! Each rule, failing and passing on planted text.

use super::*;

/// The findings of one rule, as `line` numbers; a rule that does not apply finds nothing.
fn lines(name: &str, path: &str, text: &str) -> Vec<usize> {
    let paths = ["README.md", "docs/formats.md", "docs/decisions/one.md", path];
    let paths = paths.map(str::to_owned).into();
    let numbers = ["L1", "D16"].map(str::to_owned).into();
    let end = format!(" ({name})");
    assert!(RULES.iter().any(|rule| rule.name == name), "no rule is called {name}");
    let findings = check_file(path, text, &paths, &numbers);
    let mine = findings.iter().filter_map(|finding| finding.strip_suffix(&end));
    mine.map(|finding| {
        let rest = finding.strip_prefix(path).unwrap().strip_prefix(':').unwrap();
        rest.split_once(": ").unwrap().0.parse().unwrap()
    })
    .collect()
}

const PURE: &str = "crates/lease/src/table.rs";
const SHELL: &str = "crates/host/src/disk.rs";
const NONE: [usize; 0] = [];

#[test]
fn a_finding_reads_like_a_compiler_message() {
    let findings = check_file(SHELL, "//! A disk.\n\tlet a;\n", &BTreeSet::new(), &BTreeSet::new());
    assert_eq!(findings, ["crates/host/src/disk.rs:2: a tab; indent with spaces (tab)"]);
}

#[test]
fn opening() {
    assert_eq!(lines("opening", PURE, "use std::fmt;\n"), [1]);
    assert_eq!(lines("opening", PURE, "// A table.\n"), [1]);
    assert_eq!(lines("opening", PURE, "//!\n//! A table.\n"), [1]);
    assert_eq!(lines("opening", PURE, "//! A table.\n"), NONE);
    assert_eq!(lines("opening", "README.md", "# Croft\n"), NONE);
}

#[test]
fn size() {
    assert_eq!(lines("size", PURE, &"\n".repeat(801)), [801]);
    assert_eq!(lines("size", PURE, &"\n".repeat(800)), NONE);
    assert_eq!(lines("size", "crates/lease/src/tests.rs", &"\n".repeat(801)), NONE);
    assert_eq!(lines("size", "crates/cli/tests/mount.rs", &"\n".repeat(801)), NONE);
}

#[test]
fn name() {
    for path in ["crates/core/Cargo.toml", "crates/lease/src/util.rs", "docs/misc/page.md"] {
        assert_eq!(lines("name", path, ""), [1], "{path}");
    }
    assert_eq!(lines("name", PURE, "mod table;\npub mod helpers;\n"), [2]);
    assert_eq!(lines("name", PURE, "// mod helpers;\nmod commons;\nuse core::fmt;\n"), NONE);
}

#[test]
fn whitespace() {
    assert_eq!(lines("whitespace", "README.md", "one \ntwo\r\nthree\n"), [1, 2]);
    assert_eq!(lines("whitespace", ".ci/run", "one\ntwo"), [2]);
    assert_eq!(lines("whitespace", "README.md", "one\n\ntwo\n"), NONE);
    assert_eq!(lines("whitespace", "crates/cli/tests/help.golden", "one \ntwo"), NONE);
}

#[test]
fn tab() {
    assert_eq!(lines("tab", PURE, "a\n\tb\n"), [2]);
    assert_eq!(lines("tab", PURE, "a\n    b(\"\\t\")\n"), NONE);
}

#[test]
fn unfinished() {
    for mark in [concat!("FIX", "ME"), concat!("XX", "X")] {
        assert_eq!(lines("unfinished", PURE, &format!("a\n// {mark}: later\n")), [2]);
        assert_eq!(lines("unfinished", "docs/formats.md", mark), [1]);
        assert_eq!(lines("unfinished", PURE, &format!("// {mark}S\n")), NONE);
    }
    assert_eq!(lines("unfinished", PURE, "fn a() {\n    todo!()\n}\n"), [2]);
    assert_eq!(lines("unfinished", PURE, "let a = dbg!(b);\n"), [1]);
    assert_eq!(lines("unfinished", PURE, "// todo!() is for drafts\nmy_todo!();\n"), NONE);
}

#[test]
fn ignored_test() {
    assert_eq!(lines("ignored-test", PURE, "#[test]\n#[ignore]\nfn a() {}\n"), [2]);
    assert_eq!(lines("ignored-test", PURE, "#[ignore = \"slow\"]\n"), [1]);
    assert_eq!(lines("ignored-test", PURE, "#[cfg_attr(miri, ignore)]\n"), [1]);
    assert_eq!(
        lines("ignored-test", PURE, "#[cfg_attr(\n    miri,\n    ignore = \"slow\"\n)]\n"),
        [1]
    );
    assert_eq!(lines("ignored-test", PURE, "// #[ignore] hides\nlet ignore = a[0];\n"), NONE);
}

#[test]
fn sleeping_test() {
    let inline = "thread::sleep(a);\n#[cfg(test)]\nmod tests {\n    thread::sleep(a);\n}\n";
    assert_eq!(lines("sleeping-test", SHELL, inline), [4]);
    assert_eq!(lines("sleeping-test", "crates/cli/tests/a.rs", "std::thread::sleep(a);\n"), [1]);
    let renamed = "use std::thread::{self as t, sleep as s};\n";
    assert_eq!(lines("sleeping-test", "crates/cli/tests/a.rs", renamed), [1]);
    assert_eq!(lines("sleeping-test", SHELL, "std::thread::sleep(a);\n"), NONE);
}

#[test]
fn asynchronous() {
    assert_eq!(lines("async", PURE, "async fn a() {}\nasync move {};\nb.await;\n"), [1, 2, 3]);
    assert_eq!(lines("async", PURE, "// No async here.\nlet asynchronous = 1;\n"), NONE);
    assert_eq!(lines("async", SHELL, "async fn a() {}\n"), NONE);
}

#[test]
fn one_fence() {
    assert_eq!(lines("one-fence", "crates/base/clippy.toml", ""), [1]);
    assert_eq!(lines("one-fence", ".clippy.toml", ""), [1]);
    assert_eq!(lines("one-fence", "clippy.toml", ""), NONE);
}

#[test]
fn unseen() {
    assert_eq!(lines("unseen", PURE, "#[cfg(not(debug_assertions))]\nfn a() {}\n"), [1]);
    assert_eq!(lines("unseen", PURE, "#[cfg(feature = \"fast\")]\n"), [1]);
    assert_eq!(lines("unseen", PURE, "debug_assert!(a);\n#[cfg(test)]\n"), NONE);
    assert_eq!(lines("unseen", SHELL, "#[cfg(debug_assertions)]\n"), NONE);
}

#[test]
fn fence() {
    let opened = "#[expect(\n    clippy::disallowed_methods,\n    reason = \"\"\n)]\n";
    assert_eq!(lines("fence", PURE, opened), [2]);
    assert_eq!(lines("fence", PURE, "#![allow(clippy::all)]\n"), [1]);
    assert_eq!(lines("fence", PURE, "#[expect(clippy::too_many_arguments)]\n"), NONE);
    assert_eq!(lines("fence", "crates/lease/tests/heap.rs", opened), [2]);
    assert_eq!(lines("fence", SHELL, opened), NONE);
}

#[test]
fn unsafe_reason() {
    assert_eq!(lines("unsafe", SHELL, "//! A.\n#![allow(unsafe_code)]\n"), [2]);
    let reasoned = "#[expect(\n    unsafe_code,\n    reason = \"mmap has no safe face\"\n)]\n";
    assert_eq!(lines("unsafe", SHELL, reasoned), NONE);
}

#[test]
fn logic() {
    let text = "//! Leases.\nmod table;\n\npub fn a() {}\nimpl B {\n    fn c() {}\n}\n";
    assert_eq!(lines("logic", "crates/lease/src/lib.rs", text), [4, 6]);
    assert_eq!(lines("logic", "crates/lease/src/table/mod.rs", text), [4, 6]);
    assert_eq!(lines("logic", PURE, text), NONE);
    let index = "//! `fn a()` is elsewhere.\nmod table;\npub use table::Table;\n";
    assert_eq!(lines("logic", "crates/lease/src/lib.rs", index), NONE);
}

#[test]
fn machine_path() {
    for dir in ["work", "root", "home"] {
        let path = format!("/{dir}/me/croft");
        assert_eq!(lines("machine-path", "docs/formats.md", &format!("a\nsee {path}\n")), [2]);
        assert_eq!(lines("machine-path", SHELL, &format!("open(\"{path}\")\n")), [1]);
        assert_eq!(lines("machine-path", SHELL, &format!("open(\"crates{path}\")\n")), NONE);
    }
}

#[test]
fn link() {
    let page = "docs/testing.md";
    let found =
        "[a](formats.md#b) [c](../README.md) [d](decisions/) [e](https://f.org/g) [h](#i)\n";
    assert_eq!(lines("link", page, found), NONE);
    assert_eq!(lines("link", page, "[a](formats.md)\n[b](nowhere.md)\n"), [2]);
    assert_eq!(lines("link", page, "[a](../../README.md)\n"), [1]);
    assert_eq!(lines("link", page, "[a]: nowhere.md\n[b]: formats.md\n"), [1]);
    assert_eq!(lines("link", page, "`[a](nowhere.md)`\n```\n[b](nowhere.md)\n```\n"), NONE);
}

/// A number that the list of mechanisms of these tests does not have, in halves so that this file may stand under
/// its own rule.
const UNKNOWN: &str = concat!("D", "99");

#[test]
fn citation() {
    let cites = |word: &str| format!("//! A table.\nlet a = {UNKNOWN}; // {word}: leader\n");
    assert_eq!(lines("citation", PURE, &cites("D16")), NONE);
    assert_eq!(lines("citation", PURE, &cites(UNKNOWN)), [2]);
    assert_eq!(
        lines("citation", PURE, &format!("\"{UNKNOWN}\"\n// D16, {UNKNOWN} to D16\n")),
        [1, 2]
    );
    assert_eq!(lines("citation", "papers/D-E1.toml", &format!("about = '({UNKNOWN})'\n")), [1]);
    for (before, after) in [("inv-", ""), ("", "x"), ("a", ""), ("", "9"), ("0x", "")] {
        let word = format!("{before}{UNKNOWN}{after}\n");
        assert_eq!(lines("citation", "docs/formats.md", &word), NONE, "{word}");
    }
}

#[test]
fn mechanism() {
    let page = "docs/mechanisms.md";
    let list = |rows: &str| lines("mechanism", page, &format!("# Mechanisms\n{rows}\n"));
    let row = |number: &str, place: &str, state: &str| {
        format!("| {number} | what | {place} | {state} |\n")
    };
    let good =
        row("D1", "`crates/lease/src/table.rs`", "in the product") + &row("D2", "", "not yet");
    let paths = ["crates/lease/src/table.rs", "crates/papers/src/k.rs"];
    let with = |rows: &str| {
        let paths = paths.map(str::to_owned).into();
        let text = format!("# Mechanisms\n{rows}");
        let findings = check_file(page, &text, &paths, &BTreeSet::new());
        findings.into_iter().filter(|finding| finding.ends_with("(mechanism)")).count()
    };
    assert_eq!(with(&good), 0);
    assert_eq!(with(&(good.clone() + &row("D2", "", "not yet"))), 1, "twice");
    assert_eq!(with(&(good.clone() + &row("D4", "", "not yet"))), 1, "one is left out");
    assert_eq!(with(&row("D1", "`crates/lease/src/gone.rs`", "not yet")), 1, "no such file");
    assert_eq!(with(&row("D1", "", "in the product")), 1, "no file");
    assert_eq!(with(&row("D1", "`crates/papers/src/k.rs`", "in part: a")), 1, "no product");
    assert_eq!(with(&row("D1", "`crates/papers/src/k.rs`", "library")), 1, "no library");
    assert_eq!(with(&row("D1", "`crates/lease/src/table.rs`", "experiments")), 1, "no experiment");
    assert_eq!(with(&row("D1", "", "perhaps")), 1, "no state");
    assert_eq!(with("| D1 | what | not yet |\n"), 1, "a column is missing");
    assert_eq!(list(&row("D1", "", "perhaps")), [2]);
}

#[test]
fn numbers_are_those_of_the_list() {
    let page = "| Item |\n|---|\n| L1 | a | | absent |\n| D16 | b | | absent |\nH1 | c\n";
    let expected = ["D16", "L1"].map(str::to_owned).into();
    assert_eq!(super::mechanisms::numbers(page), expected);
}

#[test]
fn clock() {
    let waits = "//! A disk.\nfn a() {\n    thread::sleep(b);\n    c.recv_timeout(d);\n}\n";
    assert_eq!(lines("clock", SHELL, waits), [3, 4]);
    assert_eq!(lines("clock", SHELL, "//! No sleep.\nlet a = \"sleep\"; // park\n"), NONE);
    let tested = "//! A disk.\n#[cfg(test)]\nmod tests {\n    Instant::now();\n}\n";
    assert_eq!(lines("clock", SHELL, tested), NONE, "a test may look at a clock");
    assert_eq!(lines("clock", "crates/host/src/disk/tests.rs", waits), NONE);
    assert_eq!(lines("clock", "crates/cli/src/main.rs", waits), NONE, "no list is kept there");
    let listed = "crates/host/src/mailbox.rs";
    assert_eq!(lines("clock", listed, waits), NONE);
    assert_eq!(lines("clock", listed, "//! A mailbox.\n"), [1], "the list gets shorter");
    let mount = "crates/mount/src/tree/home.rs";
    assert_eq!(lines("clock", mount, "thread::park_timeout(pause);\nstart.elapsed();\n"), [1, 2]);
    assert_eq!(lines("clock", mount, "let now = time::now();\n// no park here\n"), NONE);
    assert_eq!(lines("clock", "crates/mount/src/time.rs", "Instant::now()\n"), NONE);
    let gone = lines("clock", "xtask/src/tidy/clocks.rs", "//! Lists.\n");
    assert!(!gone.is_empty(), "nothing is on a list that is not there");
}
