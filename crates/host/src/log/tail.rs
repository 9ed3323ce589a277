//! A file that only grows at its end, and what becomes of it when the disk is full.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::Failure;

/// The end of a file that only grows there.
pub(crate) struct Tail {
    pub(crate) file: Arc<File>,
    pub(crate) path: PathBuf,
    /// How much of it counts. Bytes beyond may exist after a failed write.
    pub(crate) len: u64,
    /// How much more the disk takes, where a test says so.
    #[cfg(test)]
    pub(crate) room: Option<usize>,
    /// So many writes more find no room, where a test says so.
    #[cfg(test)]
    pub(crate) full_for: u32,
}

impl Tail {
    /// Makes a new file. Its name is safe once its directory is.
    pub(crate) fn create(path: PathBuf) -> Result<Tail, Failure> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .map_err(Failure::of("can't create", &path))?;
        Ok(Tail::of(file, path, 0))
    }

    /// Opens a file whose first bytes, so many of them, count.
    pub(crate) fn open(path: PathBuf, len: u64) -> Result<Tail, Failure> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(Failure::of("can't open", &path))?;
        Ok(Tail::of(file, path, len))
    }

    fn of(file: File, path: PathBuf, len: u64) -> Tail {
        Tail {
            file: Arc::new(file),
            path,
            len,
            #[cfg(test)]
            room: None,
            #[cfg(test)]
            full_for: 0,
        }
    }

    /// Writes all of it or, as far as the length tells, nothing.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.write(bytes).map_err(Failure::of("can't write", &self.path))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    #[cfg(not(test))]
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.len)
    }

    #[cfg(test)]
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.full_for > 0 {
            self.full_for -= 1;
            return Err(rustix::io::Errno::NOSPC.into());
        }
        let Some(room) = &mut self.room else {
            return self.file.write_all_at(bytes, self.len);
        };
        let count = bytes.len().min(*room);
        *room -= count;
        self.file.write_all_at(&bytes[..count], self.len)?;
        match count == bytes.len() {
            true => Ok(()),
            false => Err(rustix::io::Errno::NOSPC.into()),
        }
    }

    /// Takes away what does not count.
    pub(crate) fn cut(&self) -> Result<(), Failure> {
        self.file.set_len(self.len).map_err(Failure::of("can't shorten", &self.path))
    }

    /// Makes its bytes safe.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
        self.file.sync_data().map_err(Failure::of("can't sync", &self.path))
    }
}

/// Makes the names in a directory safe.
pub(crate) fn sync_directory(path: &Path) -> Result<(), Failure> {
    let directory = File::open(path).map_err(Failure::of("can't open", path))?;
    directory.sync_all().map_err(Failure::of("can't sync", path))
}

/// Makes a directory that nobody else may enter, unless it is there.
pub(crate) fn make_directory(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(Failure::of("can't create directory", path))?;
    match path.parent() {
        Some(parent) if parent != Path::new("") => sync_directory(parent),
        _ => sync_directory(Path::new(".")),
    }
}
