//! What a tree does, on a real machine in a temporary directory, without a kernel.

use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use host::Machine;

use super::*;
use crate::front::{
    Allocation, Changes, Manner, Moment, Opened, Over, Purpose, ROOT, Registration, Way, When,
};

mod contended;
mod files;
mod locks;
mod names;

const ME: Caller = Caller { uid: 0, gid: 0, pid: 0 };
const ANN: Caller = Caller { uid: 1_001, gid: 1_001, pid: 0 };

const READS: Purpose = Purpose { reads: true, writes: false, truncates: false, runs: false };
const WRITES: Purpose = Purpose { writes: true, ..READS };
const TRUNCATES: Purpose = Purpose { truncates: true, ..WRITES };

/// A machine and the tree on it; its directory goes with it.
struct World {
    tree: Tree,
    machine: Option<Machine>,
    path: PathBuf,
    /// Another life begins there.
    goes_on: bool,
}

impl World {
    fn new() -> World {
        World::found(None)
    }

    /// One that others can join.
    fn shared() -> World {
        let world = World::found(Some((std::net::Ipv4Addr::LOCALHOST, 0).into()));
        assert!(world.tree.is_shared());
        world
    }

    fn found(address: Option<std::net::SocketAddr>) -> World {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("croft-tree-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        Machine::init(&path, address).unwrap();
        World::start(path)
    }

    fn start(path: PathBuf) -> World {
        let machine = Machine::start(&path).unwrap();
        // Small, so that the borders are near.
        let settings = Settings { small_max: 1_000, memory_max: 10_000 };
        World { tree: Tree::new(&machine, settings), machine: Some(machine), path, goes_on: false }
    }

    /// A new life on the same directory, after a clean end.
    fn restart(self) -> World {
        self.tree.finish().unwrap();
        self.crash()
    }

    /// A new life on the same directory, of which the tree was not told.
    fn crash(mut self) -> World {
        let path = self.path.clone();
        self.goes_on = true;
        self.machine.take().unwrap().stop().unwrap();
        drop(self);
        World::start(path)
    }

    /// A new file, open.
    fn create(&self, name: &str) -> (u64, u64) {
        let (attributes, opened) = self
            .tree
            .create(ROOT, name.as_bytes(), 0o644, true, WRITES, &ME, &no_passthrough)
            .unwrap();
        assert!(matches!(opened.way, Way::Cached { .. }));
        (attributes.inode, opened.handle)
    }

    /// A file with these bytes, closed.
    fn file(&self, name: &str, bytes: &[u8]) -> u64 {
        let (inode, handle) = self.create(name);
        self.tree.write(inode, 0, bytes, Manner::default()).unwrap();
        self.tree.release(inode, handle);
        inode
    }

    fn open(&self, inode: u64, purpose: Purpose) -> Opened {
        self.tree.open(inode, purpose, &ME, &no_passthrough).unwrap()
    }

    fn bytes(&self, inode: u64) -> Vec<u8> {
        self.tree.read(inode, 0, 1 << 20, <[u8]>::to_vec).unwrap()
    }

    /// The bytes behind a name, as a program would read them.
    fn cat(&self, name: &str) -> Vec<u8> {
        let inode = self.tree.lookup(ROOT, name.as_bytes(), 0).unwrap().inode;
        let handle = self.open(inode, READS).handle;
        let bytes = self.bytes(inode);
        self.tree.release(inode, handle);
        bytes
    }

    fn size(&self, inode: u64) -> u64 {
        self.tree.getattr(inode).unwrap().size
    }

    fn sync(&self) {
        self.tree.fsyncdir().unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.machine.take();
        if !self.goes_on {
            _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn no_passthrough(_: &fs::File) -> std::io::Result<Registration> {
    Err(std::io::ErrorKind::PermissionDenied.into())
}

fn passthrough(_: &fs::File) -> std::io::Result<Registration> {
    Ok(Arc::new(()))
}
