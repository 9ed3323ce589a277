//! The only door to the machine: the Contents lists that apt keeps.
//!
//! They are inputs and not part of the product. Where they are missing the experiment says so.

use std::path::PathBuf;

use crate::Failure;

/// Where apt keeps its lists.
const DIR: &str = "/var/lib/apt/lists";

/// Something with lines that can be read again and again.
pub trait Lines {
    /// Hands over each line without its end.
    fn each(&self, line: &mut dyn FnMut(&[u8])) -> Result<(), Failure>;
}

/// A Contents list on this machine, compressed as apt keeps it.
#[derive(Debug)]
pub struct List {
    path: PathBuf,
}

impl List {
    /// The largest list of this name, as in `Contents-amd64`: the main suite's. Updates and
    /// third parties have small ones.
    #[expect(clippy::disallowed_methods, reason = "looks for an input of the experiment")]
    pub fn find(name: &str) -> Option<List> {
        let entries = std::fs::read_dir(DIR).ok()?.filter_map(Result::ok);
        let sizes = entries.filter(|entry| is_list(&entry.file_name().to_string_lossy(), name));
        let largest =
            sizes.filter_map(|entry| Some((entry.metadata().ok()?.len(), entry.path()))).max()?;
        Some(List { path: largest.1 })
    }
}

/// Whether apt would call the list `name` by this file name, in some suite and compression.
fn is_list(file_name: &str, name: &str) -> bool {
    let (_, last) = file_name.rsplit_once('_').unwrap_or(("", file_name));
    last == name || last.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}

impl Lines for List {
    #[expect(clippy::disallowed_types, reason = "reads an input of the experiment through apt")]
    fn each(&self, line: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        use std::{
            io::{BufRead, BufReader},
            process::{Command, Stdio},
        };
        let fail =
            |reason: String| Failure::Input { what: self.path.display().to_string(), reason };
        let mut helper = Command::new("/usr/lib/apt/apt-helper")
            .arg("cat-file")
            .arg(&self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| fail(format!("apt-helper does not start: {error}")))?;
        let mut text =
            BufReader::with_capacity(1 << 20, helper.stdout.take().expect("it is piped"));
        let mut buffer = Vec::new();
        while text.read_until(b'\n', &mut buffer).map_err(|error| fail(error.to_string()))? > 0 {
            line(buffer.strip_suffix(b"\n").unwrap_or(&buffer));
            buffer.clear();
        }
        let status = helper.wait().map_err(|error| fail(error.to_string()))?;
        if status.success() { Ok(()) } else { Err(fail(format!("apt-helper ended with {status}"))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_known_by_the_end_of_its_name() {
        let host = "deb.debian.org_debian_dists_bookworm_main_Contents-amd64";
        assert!(is_list(host, "Contents-amd64"));
        assert!(is_list(&format!("{host}.lz4"), "Contents-amd64"));
        assert!(!is_list(&format!("{host}.lz4"), "Contents-all"));
        assert!(!is_list("h_main_Contents-amd64v3.lz4", "Contents-amd64"));
        assert!(!is_list("h_main_Contents-udeb-amd64.lz4", "Contents-amd64"));
    }

    #[test]
    fn an_unreadable_list_is_a_failure() {
        let list = List { path: "/nonexistent/Contents-amd64.lz4".into() };
        assert!(matches!(list.each(&mut |_| ()), Err(Failure::Input { .. })));
    }
}
