//! Programs that people use every day, on a mount.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::{OpenOptionsExt, symlink},
    path::Path,
    process::Command,
};

use rustix::{fs::OFlags, io::Errno};

use crate::{
    cell::{Cell, Scratch, needs, shell},
    draw::Draw,
};

/// Files of many sizes, links and modes, beside the mount.
fn tree(seed: u64) -> Scratch {
    let scratch = Scratch::new();
    let root = scratch.0.join("tree");
    let mut draw = Draw::new(seed);
    for directory in ["", "a", "a/b", "c"] {
        let directory = root.join(directory);
        fs::create_dir(&directory).unwrap();
        for count in 0..60 {
            let len = match draw.below(20) {
                0 => 0,
                1 => 300_000,
                _ => draw.below(8_000),
            };
            fs::write(directory.join(format!("file {count}")), draw.bytes(len as usize)).unwrap();
        }
        symlink("file 1", directory.join("soft")).unwrap();
        fs::hard_link(directory.join("file 2"), directory.join("hard")).unwrap();
    }
    shell(&root, "chmod 4755 'file 3'; chmod 400 'file 4'; truncate -s 5M sparse");
    // rsync takes times of directories for equal that differ by less than a second.
    shell(&root, "find . -type d -exec touch -d '1999-12-31 23:59:59.987654321' {} +");
    scratch
}

/// Sums of everything below, modes, and times but those of symbolic links, which rsync leaves alone.
fn sums(directory: &Path) -> String {
    let line = "find . -type f -print0 | sort -z | xargs -0 sha256sum; \
        find . -not -name . -type l -printf '%p %n %l\\n' -o -printf '%p %m %n %y %T@\\n' | sort";
    shell(directory, line)
}

/// Both are the same, down to modes and times.
#[track_caller]
fn check_alike(found: &str, expected: &str) {
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn a_tree_goes_through_tar_and_back_unchanged() {
    let Some(mut cell) = Cell::new(&[]) else { return };
    let source = tree(1);
    let path = cell.path.display();
    shell(&source.0, &format!("tar -cf - tree | tar -xpf - -C {path}; tar -cf {path}/t.tar tree"));
    shell(&source.0, &format!("tar --compare -f {path}/t.tar; tar -xpf {path}/t.tar"));
    let expected = sums(&source.0.join("tree"));
    check_alike(&sums(&cell.at("tree")), &expected);
    cell.restart(&[]);
    check_alike(&sums(&cell.at("tree")), &expected);
    let line = "mkdir again; tar -xpf t.tar -C again; diff -r --no-dereference tree again/tree";
    shell(&cell.path, line);
    shell(&cell.path, "rm -r tree again t.tar; test -z \"$(ls -A)\"");
}

#[test]
fn rsync_has_nothing_to_do_the_second_time() {
    if !needs("rsync") {
        return;
    }
    let Some(cell) = Cell::new(&[]) else { return };
    let source = tree(2);
    let line = format!("rsync -aHX --itemize-changes tree {}", cell.path.display());
    assert!(shell(&source.0, &line).lines().count() > 240);
    check_alike(&sums(&cell.at("tree")), &sums(&source.0.join("tree")));
    assert_eq!(shell(&source.0, &line), "");
    let line = format!("rsync -aHX --checksum --itemize-changes tree {}", cell.path.display());
    assert_eq!(shell(&source.0, &line), "");
    fs::write(source.0.join("tree/file 5"), "changed").unwrap();
    assert_eq!(shell(&source.0, &line).lines().count(), 1);
}

#[test]
fn git_clones_commits_and_finds_its_repository_sound() {
    if !needs("git") {
        return;
    }
    let Some(mut cell) = Cell::new(&[]) else { return };
    let source = tree(3);
    let line = "
        export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
        git() { command git -c user.name=a -c user.email=a@b -c init.defaultBranch=main \\
            -c safe.directory=* \"$@\"; }
        ";
    let run = |directory: &Path, lines: &str| shell(directory, &format!("{line}{lines}"));
    run(
        &source.0.join("tree"),
        "git init -q; git add .; git commit -qm one; rm 'file 6'; echo x > new; git add -A;
         git commit -qm two; git tag t",
    );
    let origin = source.0.join("tree");
    run(&cell.path, &format!("git clone -q {} clone", origin.display()));
    let clone = cell.at("clone");
    assert_eq!(run(&clone, "git status --porcelain"), "");
    run(&clone, "git fsck --full --strict; git checkout -q -b side HEAD~1; git merge -q t");
    run(&clone, "for i in 1 2 3 4 5; do echo $i > n$i; git add .; git commit -qm $i; done");
    run(&clone, "git repack -qad; git gc -q --prune=now; git fsck --full --strict");
    let head = run(&clone, "git rev-parse HEAD");
    cell.restart(&[]);
    assert_eq!(run(&clone, "git fsck --full --strict; git status --porcelain"), "");
    assert_eq!(run(&clone, "git rev-parse HEAD"), head);
}

#[test]
fn sqlite_with_a_write_ahead_log_stays_whole() {
    if !needs("sqlite3") {
        return;
    }
    let Some(mut cell) = Cell::new(&[]) else { return };
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
        INSERT INTO t(s) SELECT hex(randomblob(40)) FROM n;";
    let make = "PRAGMA journal_mode=WAL; CREATE TABLE t(i INTEGER PRIMARY KEY, s TEXT UNIQUE);";
    assert_eq!(shell(&cell.path, &format!("sqlite3 db '{make}'")), "wal\n");
    // Two processes share the log by a map of memory and locks.
    let write = format!("sqlite3 -cmd '.timeout 60000' db '{rows}'");
    let read = "for i in 1 2 3 4 5 6; do sqlite3 -cmd '.timeout 60000' db \
        'PRAGMA integrity_check;'; done";
    let said = shell(&cell.path, &format!("{write} & {write} & {read}; wait"));
    assert_eq!(said, "ok\n".repeat(6));
    let count = "sqlite3 db 'SELECT count(*) FROM t; PRAGMA integrity_check;'";
    assert_eq!(shell(&cell.path, count), "10000\nok\n");
    cell.restart(&[]);
    assert_eq!(shell(&cell.path, count), "10000\nok\n");
    cell.kill();
    cell.start(&[]);
    assert_eq!(shell(&cell.path, count), "10000\nok\n");
}

#[test]
fn cargo_builds_a_program_that_runs() {
    let Some(cell) = Cell::new(&[]) else { return };
    fs::create_dir(cell.at("src")).unwrap();
    let manifest =
        "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(cell.at("Cargo.toml"), manifest).unwrap();
    fs::write(cell.at("src/main.rs"), "fn main() { println!(\"{}\", hello::SAID); }\n").unwrap();
    fs::write(cell.at("src/lib.rs"), "pub const SAID: &str = \"hello\";\n").unwrap();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let build = format!("env -u RUSTFLAGS CARGO_TARGET_DIR=target {cargo} build --offline -q 2>&1");
    assert_eq!(shell(&cell.path, &format!("{build}; target/debug/hello")), "hello\n");
    fs::write(cell.at("src/lib.rs"), "pub const SAID: &str = \"again\";\n").unwrap();
    assert_eq!(shell(&cell.path, &format!("{build}; target/debug/hello")), "again\n");
}

#[test]
fn a_program_that_runs_is_neither_written_nor_emptied() {
    for way in [&[][..], &["--no-passthrough"]] {
        let Some(cell) = Cell::new(way) else { return };
        let whole = fs::read(shell(&cell.path, "command -v sleep").trim()).unwrap();
        // Now closed for sure when it is run, now not.
        for count in 0..40 {
            let path = cell.at(&format!("sleep-{count}"));
            fs::write(&path, &whole).unwrap();
            shell(&cell.path, &format!("chmod 755 sleep-{count}"));
            let mut program = Command::new(&path).arg("60").spawn().unwrap();
            for flags in [OFlags::WRONLY, OFlags::RDWR, OFlags::TRUNC] {
                let mut options = OpenOptions::new();
                options.read(flags != OFlags::WRONLY).write(flags != OFlags::TRUNC);
                let opened = options.custom_flags(flags.bits() as i32).open(&path);
                let errno = opened.map_err(|error| Errno::from_io_error(&error)).map(drop);
                assert_eq!(errno, Err(Some(Errno::TXTBSY)), "{flags:?}, {count}");
            }
            assert!(fs::read(&path).unwrap() == whole, "{count}");
            assert!(program.try_wait().unwrap().is_none(), "it still runs");
            program.kill().unwrap();
            program.wait().unwrap();
        }
    }
}
