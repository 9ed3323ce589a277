//! Directories for tests, gone when they are dropped.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::fs::{SeekFrom, seek};

static COUNT: AtomicU64 = AtomicU64::new(0);

/// An empty directory.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
}

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("croft-{name}-{}-{count}", std::process::id());
        // In memory where there is such a place: tests sync often, and the disk's time proves nothing.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.into() } else { std::env::temp_dir() };
        let path = place.join(name);
        fs::create_dir_all(&path).unwrap();
        Scratch { path }
    }

    /// Another one with the same in it.
    pub(crate) fn copied(&self) -> Scratch {
        let copy = Scratch::new("copy");
        copy_tree(&self.path, &copy.path);
        copy
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.path);
    }
}

/// Copies what is in a directory into another.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_tree(&entry.path(), &target),
            false => copy_file(&entry.path(), &target),
        }
    }
}

/// Leaves holes where the file has them: the store sets aside much that it does not use.
fn copy_file(from: &Path, to: &Path) {
    let from = fs::File::open(from).unwrap();
    let to = fs::File::create(to).unwrap();
    to.set_len(from.metadata().unwrap().len()).unwrap();
    let mut at = 0;
    while let Ok(start) = seek(&from, SeekFrom::Data(at)) {
        at = seek(&from, SeekFrom::Hole(start)).unwrap();
        let mut bytes = vec![0; (at - start) as usize];
        from.read_exact_at(&mut bytes, start).unwrap();
        to.write_all_at(&bytes, start).unwrap();
    }
}
