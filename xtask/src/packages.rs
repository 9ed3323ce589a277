//! The Debian packages that the tests need, and how they get onto the machine.

use std::{env, fs, os::unix::fs::MetadataExt, path::Path, process::Command};

use crate::run;

/// Something that the tests need and that cargo can't fetch.
struct Package {
    /// A program to find on the path, or a file if it starts with a slash.
    sought: &'static str,
    name: &'static str,
    why: &'static str,
}

/// These harm no computer.
const PACKAGES: &[Package] = &[
    Package { sought: "git", name: "git", why: "the tidy rules ask it which files are ours" },
    Package { sought: "sqlite3", name: "sqlite3", why: "a database on a mount stays whole" },
    Package { sought: "rsync", name: "rsync", why: "copies onto a mount and finds it unchanged" },
    Package { sought: "ip", name: "iproute2", why: "gives machines networks, and cuts wires" },
    Package { sought: "fusermount3", name: "fuse3", why: "an ordinary user mounts with it" },
    Package {
        sought: "/usr/include/sys/acl.h",
        name: "libacl1-dev",
        why: "pjdfstest is built with it",
    },
];

/// These may start a daemon of their own when they are installed. Without them a test says that it checks nothing,
/// which is a failure in CI.
const CI_PACKAGES: &[Package] = &[
    Package { sought: "ganesha.nfsd", name: "nfs-ganesha-vfs", why: "exports a mount by NFS" },
    Package { sought: "nfs-ls", name: "libnfs-utils", why: "looks at what is exported" },
];

/// A suite for any file system, from the crate registry.
struct Tool {
    name: &'static str,
    version: &'static str,
}

const TOOLS: &[Tool] =
    &[Tool { name: "pjdfstest", version: "0.2.2" }, Tool { name: "fsx", version: "0.3.2" }];

/// Where tools are installed, below the root.
const TOOLS_ROOT: &str = "target/tools";

/// What `cargo xtask test --help` says.
pub fn help() -> String {
    let mut help = "\
Makes sure that the Debian packages which the tests need are there, then runs
every check. Missing packages are installed if you are root, else only named.
Suites for any file system are installed into target/tools, where the tests of
a mount look for them.

Usage: cargo xtask test

Packages:
"
    .to_owned();
    for package in PACKAGES {
        help += &format!("  {:15} {}\n", package.name, package.why);
    }
    help += "\nPackages in CI only, where no test may check nothing:\n";
    for package in CI_PACKAGES {
        help += &format!("  {:15} {}\n", package.name, package.why);
    }
    help += "\nSuites:\n";
    for tool in TOOLS {
        help += &format!("  {:15} {}\n", tool.name, tool.version);
    }
    help
}

/// Installs what is missing, or says how to.
pub fn provide() -> Result<(), String> {
    let is_ci = env::var_os("CI").is_some();
    let wanted = PACKAGES.iter().chain(CI_PACKAGES.iter().filter(|_| is_ci));
    let missing = missing(wanted.clone(), exists);
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
    match self::missing(wanted, exists).first() {
        None => Ok(()),
        Some(package) => Err(format!(
            "package {} is installed, but `{}` is still not found; look at your PATH",
            package.name, package.sought
        )),
    }
}

/// Installs the suites that are not there yet, or not in the version that is wanted.
pub fn provide_tools(root: &Path) -> Result<(), String> {
    for tool in TOOLS {
        if !run::succeeds(&mut is_installed(root, tool)) {
            run::expect_success(
                &mut install(root, tool),
                "it comes from the crate registry; can that be reached?",
            )?;
        }
    }
    Ok(())
}

/// Succeeds if what is there is of the right version.
fn is_installed(root: &Path, Tool { name, version }: &Tool) -> Command {
    let program = root.join(TOOLS_ROOT).join("bin").join(name);
    let mut command = Command::new("sh");
    command.args(["-c", "test \"$(\"$0\" --version)\" = \"$1\""]).arg(program);
    command.arg(format!("{name} {version}"));
    command
}

fn install(root: &Path, Tool { name, version }: &Tool) -> Command {
    // Without optimisation: building takes longer than they run.
    let words = ["install", "--quiet", "--locked", "--debug", "--root", TOOLS_ROOT, "--target-dir"];
    let mut command = run::cargo(root, &words);
    // One for all, so that what they share is built once.
    command.arg("target/tools/build").args([name, "--version", version]);
    command
}

fn missing<'a>(
    packages: impl IntoIterator<Item = &'a Package>,
    exists: impl Fn(&str) -> bool,
) -> Vec<&'a Package> {
    packages.into_iter().filter(|package| !exists(package.sought)).collect()
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
    fn a_tool_is_installed_if_it_is_not_there_or_of_another_version() {
        let root = env::temp_dir().join(format!("xtask-tools-{}", std::process::id()));
        let bin = root.join(TOOLS_ROOT).join("bin");
        fs::create_dir_all(&bin).unwrap();
        let tool = Tool { name: "hammer", version: "1.2.3" };
        let is_there = || run::succeeds(&mut is_installed(&root, &tool));
        assert!(!is_there());
        let say = |version: &str| {
            fs::write(bin.join("hammer"), format!("#!/bin/sh\necho hammer {version}\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(bin.join("hammer"), mode).unwrap();
        };
        say("1.2.2");
        assert!(!is_there());
        say("1.2.3");
        assert!(is_there());
        let line = format!("{:?}", install(&root, &tool));
        assert!(line.contains("\"--locked\"") && line.ends_with("\"--version\" \"1.2.3\""));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn programs_are_sought_on_the_path_and_files_by_name() {
        assert!(exists("sh"));
        assert!(exists("/bin/sh"));
        assert!(!exists("no-such-program"));
        assert!(!exists("/no/such/file"));
    }
}
