//! `croft quickstart`, as somebody does who sees it for the first time.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::cell::{Scratch, can_mount};

/// A process group of its own, as a terminal gives it.
struct Quickstart(Child);

impl Quickstart {
    /// Started, and mounted as it says.
    fn new(directory: &Path) -> Quickstart {
        let mut child = Command::new(env!("CARGO_BIN_EXE_croft"))
            .args(["quickstart", "--machines", "1", "--dir"])
            .arg(directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
        let mut said = Vec::new();
        // The last line of what it says at the start.
        while !said.last().is_some_and(|line: &String| line.contains("Ctrl-C")) {
            said.push(lines.next().expect("it starts and says what to try").unwrap());
        }
        let mount = directory.join("mnt");
        assert!(said[0].contains("mounted at") && said[0].ends_with(mount.to_str().unwrap()));
        assert!(said.len() <= 6, "a few lines: {said:?}");
        drop(lines);
        Quickstart(child)
    }

    /// What a terminal does for Ctrl-C.
    fn interrupt(mut self) {
        kill_process_group(Pid::from_child(&self.0), Signal::INT).unwrap();
        let status = self.0.wait().unwrap();
        let mut rest = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut rest).unwrap();
        assert!(status.success(), "{status}: {rest}");
        assert!(rest.ends_with("stopped\n"), "{rest}");
    }
}

impl Drop for Quickstart {
    fn drop(&mut self) {
        // Its machine stops with it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn quickstart_ends_mounted_an_interrupt_unmounts_and_another_start_finds_the_data() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let directory = scratch.0.join("quick");
    let is_mounted = || {
        let (above, mount) = (fs::metadata(&directory), fs::metadata(directory.join("mnt")));
        above.unwrap().dev() != mount.unwrap().dev()
    };
    let file = directory.join("mnt/note");
    let quickstart = Quickstart::new(&directory);
    assert!(is_mounted());
    fs::write(&file, "a first try").unwrap();
    quickstart.interrupt();
    assert!(!is_mounted());
    assert!(!file.exists());
    let quickstart = Quickstart::new(&directory);
    assert_eq!(fs::read_to_string(&file).unwrap(), "a first try");
    quickstart.interrupt();
    assert!(!is_mounted());
}
