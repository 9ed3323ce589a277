//! The Debian packages that the tests need, and how they get onto the machine.

use std::{env, fs, os::unix::fs::MetadataExt, path::Path};

use crate::run;

/// Something that the tests need and that cargo can't fetch.
struct Package {
    /// A program to find on the path, or a file if it starts with a slash.
    sought: &'static str,
    name: &'static str,
    why: &'static str,
}

const PACKAGES: &[Package] =
    &[Package { sought: "git", name: "git", why: "the tidy rules ask it which files are ours" }];

/// What `cargo xtask test --help` says.
pub fn help() -> String {
    let mut help = "\
Makes sure that the Debian packages which the tests need are there, then runs
every check. Missing packages are installed if you are root, else only named.

Usage: cargo xtask test

Packages:
"
    .to_owned();
    for package in PACKAGES {
        help += &format!("  {:8} {}\n", package.name, package.why);
    }
    help
}

/// Installs what is missing, or says how to.
pub fn provide() -> Result<(), String> {
    let missing = missing(PACKAGES, exists);
    if missing.is_empty() {
        return Ok(());
    }
    for package in &missing {
        eprintln!("missing package {}: {}", package.name, package.why);
    }
    let line = install_line(&missing);
    if !is_root() {
        return Err(format!("packages are missing; run `sudo apt-get update && sudo {line}`"));
    }
    let words: Vec<&str> = line.split(' ').collect();
    apt_get(&["apt-get", "update"])?;
    apt_get(&words)?;
    match self::missing(PACKAGES, exists).first() {
        None => Ok(()),
        Some(package) => Err(format!(
            "package {} is installed, but `{}` is still not found; look at your PATH",
            package.name, package.sought
        )),
    }
}

fn missing(packages: &[Package], exists: impl Fn(&str) -> bool) -> Vec<&Package> {
    packages.iter().filter(|package| !exists(package.sought)).collect()
}

fn install_line(packages: &[&Package]) -> String {
    let names: Vec<&str> = packages.iter().map(|package| package.name).collect();
    format!("apt-get install --yes --no-install-recommends {}", names.join(" "))
}

fn apt_get(words: &[&str]) -> Result<(), String> {
    run::expect_success(
        run::line(Path::new("/"), words).env("DEBIAN_FRONTEND", "noninteractive"),
        "install the missing packages yourself, then try again",
    )
}

fn exists(sought: &str) -> bool {
    if sought.starts_with('/') {
        return Path::new(sought).exists();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| dir.join(sought).is_file())
}

fn is_root() -> bool {
    // A process owns its own entry there, by its effective user.
    fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANTED: &[Package] = &[
        Package { sought: "git", name: "git", why: "" },
        Package { sought: "/usr/include/fuse3/fuse.h", name: "libfuse3-dev", why: "" },
        Package { sought: "fusermount3", name: "fuse3", why: "" },
    ];

    #[test]
    fn only_what_is_missing_is_installed() {
        let missing = missing(PLANTED, |sought| sought == "git");
        assert_eq!(
            install_line(&missing),
            "apt-get install --yes --no-install-recommends libfuse3-dev fuse3"
        );
    }

    #[test]
    fn nothing_is_missing_when_everything_is_there() {
        assert!(missing(PLANTED, |_| true).is_empty());
    }

    #[test]
    fn programs_are_sought_on_the_path_and_files_by_name() {
        assert!(exists("sh"));
        assert!(exists("/bin/sh"));
        assert!(!exists("no-such-program"));
        assert!(!exists("/no/such/file"));
    }
}
