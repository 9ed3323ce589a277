//! Files that are known by their handle alone: what a server of NFS keeps of them, for longer than a mount lasts.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::cell::{Cell, Scratch, needs, needs_root, text};

/// A program that asks for handles and opens them. A C compiler is there: croft is built with it.
struct Handles(Scratch);

impl Handles {
    fn new() -> Option<Handles> {
        if !needs_root() {
            return None;
        }
        let scratch = Scratch::new();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mounted/handle.c");
        let program = scratch.0.join("handle");
        let built = Command::new("cc").args(["-o", program.to_str().unwrap(), source]).status();
        assert!(built.unwrap().success());
        Some(Handles(scratch))
    }

    fn run(&self, words: &[&str]) -> Result<String, String> {
        let output = Command::new(self.0.0.join("handle")).args(words).output().unwrap();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }

    #[track_caller]
    fn of(&self, path: &Path) -> String {
        self.run(&["of", path.to_str().unwrap()]).unwrap()
    }

    fn cat(&self, cell: &Cell, handle: &str) -> Result<String, String> {
        self.run(&["cat", cell.path.to_str().unwrap(), handle])
    }
}

const STALE: &str = "Stale file handle\n";
const IS_DIRECTORY: &str = "Is a directory\n";

#[test]
fn a_handle_opens_its_file_also_after_umount_and_mount_until_that_is_gone() {
    let (Some(handles), Some(mut cell)) = (Handles::new(), Cell::new(&[])) else { return };
    fs::create_dir_all(cell.at("a/b")).unwrap();
    for name in ["a/b/small", "a/gone", "a/later"] {
        fs::write(cell.at(name), name).unwrap();
    }
    let large = "large ".repeat(100_000);
    fs::write(cell.at("a/large"), &large).unwrap();
    let handle = |name: &str| handles.of(&cell.at(name));
    let [small, gone, later, directory] = ["a/b/small", "a/gone", "a/later", "a/b"].map(handle);
    let [root, big] = ["", "a/large"].map(handle);
    fs::remove_file(cell.at("a/gone")).unwrap();
    let check = |cell: &Cell| {
        assert_eq!(handles.cat(cell, &small).unwrap(), "a/b/small");
        assert_eq!(handles.cat(cell, &big).unwrap(), large);
        assert_eq!(handles.cat(cell, &gone).unwrap_err(), STALE);
        for handle in [&directory, &root] {
            assert_eq!(handles.cat(cell, handle).unwrap_err(), IS_DIRECTORY);
        }
    };
    check(&cell);
    let mount = cell.path.to_str().unwrap().to_owned();
    assert!(cell.ask(&["umount", &mount]).status.success());
    assert!(cell.ask(&["mount", &mount]).status.success());
    check(&cell);
    cell.restart(&[]);
    check(&cell);
    // By another name, it is the same file.
    fs::rename(cell.at("a/b"), cell.at("c")).unwrap();
    fs::remove_file(cell.at("a/later")).unwrap();
    cell.restart(&[]);
    check(&cell);
    assert_eq!(handles.cat(&cell, &later).unwrap_err(), STALE);
    // What was never given is nobody's.
    let (kind, _) = small.split_once(':').unwrap();
    let strange = format!("{kind}:{}", "00".repeat(4) + "0000000100000000");
    assert_eq!(handles.cat(&cell, &strange).unwrap_err(), STALE);
}

#[test]
fn a_handle_opens_on_one_machine_what_another_has_made() {
    let (Some(handles), Some(one)) = (Handles::new(), Cell::open()) else { return };
    let mut other = Cell::idle(None);
    let code = text(&one.ask(&["invite"]).stdout);
    assert!(other.ask(&["join", code.trim()]).status.success());
    other.start(&[]);
    fs::write(one.at("f"), "of the first").unwrap();
    let handle = handles.of(&one.at("f"));
    // So that the group has heard of it.
    fs::File::open(one.at("f")).unwrap().sync_all().unwrap();
    // Nobody has looked up the name there, and that machine has no vote.
    assert_eq!(handles.cat(&other, &handle).unwrap(), "of the first");
    other.restart(&[]);
    assert_eq!(handles.cat(&other, &handle).unwrap(), "of the first");
    fs::remove_file(one.at("f")).unwrap();
    assert_eq!(handles.cat(&other, &handle).unwrap_err(), STALE);
}

#[test]
fn a_mount_says_of_which_cell_it_is() {
    let (Some(one), Some(other)) = (Cell::new(&[]), Cell::new(&[])) else { return };
    let [one, other] = [one, other].map(|cell| {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let path = cell.path.to_str().unwrap().to_owned();
        let mut lines = mounts.lines().map(|line| line.split(' '));
        let source = lines.find_map(|mut words| {
            let source = words.next()?;
            (words.next()? == path).then_some(source.to_owned())
        });
        let status = cell.ask(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
        let source = source.unwrap();
        assert_eq!(source, format!("croft:{}", status["cell"].as_str().unwrap()));
        source
    });
    assert_ne!(one, other);
}

/// A server of NFS that is a program like others, on this computer's own address.
struct Server {
    child: Child,
    port: u16,
    scratch: Scratch,
}

impl Server {
    fn start(export: &Path) -> Server {
        let scratch = Scratch::new();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (export, state) = (export.display(), scratch.0.display());
        let settings = format!(
            "NFS_CORE_PARAM {{ Protocols = 4; NFS_Port = {port}; Bind_addr = 127.0.0.1; \
             Enable_NLM = false; Enable_RQUOTA = false; }}\n\
             NFSv4 {{ Graceless = true; Minor_Versions = 0; RecoveryRoot = {state}; RecoveryBackend = fs; \
             Delegations = false; }}\n\
             EXPORT {{ Export_Id = 77; Path = {export}; Pseudo = /croft; Access_Type = RW; Squash = None; \
             SecType = sys; Transports = TCP; Filesystem_id = 7.7; FSAL {{ Name = VFS; }} }}\n"
        );
        fs::write(scratch.0.join("conf"), settings).unwrap();
        let child = Command::new("ganesha.nfsd")
            .args(["-F", "-N", "EVENT", "-f", "conf", "-L", "log", "-p", "pid"])
            .current_dir(&scratch.0)
            .stdin(Stdio::null())
            .spawn();
        Server { child: child.unwrap(), port, scratch }
    }

    /// What a client prints; it tries until the server is there.
    #[track_caller]
    fn ask(&self, program: &str, path: &str) -> String {
        let address =
            format!("nfs://127.0.0.1/croft/{path}?version=4&nfsport={}&uid=0&gid=0", self.port);
        let start = Instant::now();
        loop {
            let output = Command::new(program).arg(&address).output().unwrap();
            if output.status.success() {
                return text(&output.stdout);
            }
            let log = || fs::read_to_string(self.scratch.0.join("log")).unwrap_or_default();
            assert!(start.elapsed() < Duration::from_secs(30), "{}{}", text(&output.stderr), log());
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_of_nfs_exports_the_tree_and_a_client_of_it_reads() {
    if !needs_root() || ["ganesha.nfsd", "nfs-ls", "nfs-cat"].iter().any(|name| !needs(name)) {
        return;
    }
    let Some(cell) = Cell::new(&[]) else { return };
    fs::create_dir_all(cell.at("a/b")).unwrap();
    fs::write(cell.at("a/b/small"), "small").unwrap();
    let large = "large ".repeat(100_000);
    fs::write(cell.at("a/large"), &large).unwrap();
    let mut server = Server::start(&cell.path);
    assert_eq!(server.ask("nfs-cat", "a/b/small"), "small");
    assert!(server.ask("nfs-cat", "a/large") == large);
    let listed = server.ask("nfs-ls", "a");
    assert!(listed.contains("large") && listed.contains(" b"), "{listed}");
    // What comes later it sees too.
    fs::write(cell.at("a/b/later"), "later").unwrap();
    assert_eq!(server.ask("nfs-cat", "a/b/later"), "later");
    let size = fs::metadata(cell.at("a/large")).unwrap().size();
    assert!(listed.contains(&size.to_string()));
    // It keeps the tree busy, so it goes first.
    server.child.kill().unwrap();
    server.child.wait().unwrap();
}
