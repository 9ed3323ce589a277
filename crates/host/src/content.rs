//! The bytes of files on this machine, by the serial numbers of the files.
//!
//! Small contents lie in a pack, large ones in backing files. The pack is a sequence of records and the
//! last one about a file decides, also over which of the two it is: so putting, backing and removing
//! have one order, and a crash takes off the end of it. What the index has is only a faster way to the same.
//!
//! Nothing that was safe is lost on the way from one form to the other: a packed content stays until the
//! backing file that replaces it is safe, and a backing file until the packed content is.
//!
//! Calls about one file are for the caller to keep apart; those about different files may meet.

mod index;
mod pack;
mod recover;
mod space;
mod tidy;
mod writing;

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    Failure, Keepsakes, Store,
    log::frame::{Framer, HEAD, Place},
};
use index::{Index, Indexed, LABEL, Location, State};
use pack::{Entry, FORMAT, Kind, Pack, segment_path};
use writing::Writing;

pub use pack::PACKED_MAX;
pub use space::Space;

/// A segment of the pack that has reached this size is not added to any more.
const SEGMENT_MAX: u64 = 64 << 20;
/// So many new entries go into the index at a time.
const ENTRIES: usize = 4_096;
/// Whoever puts beyond this waits for the index.
const OVERLAY_MAX: usize = 1 << 16;

/// The bytes of files on this machine. After a failed sync it is out of use.
pub struct Content {
    directory: PathBuf,
    files: PathBuf,
    index: Index,
    framer: Framer,
    /// Taken before `pack`, and held while disks are waited for.
    indexed: Mutex<Indexed>,
    pack: Mutex<Pack>,
    writing: Mutex<Writing>,
    /// Gives names to files that are not whole yet.
    names: AtomicU64,
    torn_bytes: u64,
    /// What the group will need of the disk.
    owed_bytes: AtomicU64,
}

impl Content {
    /// Opens the contents in a directory, which is made if it is not there.
    pub fn open(directory: &Path, store: &Store) -> Result<Content, Failure> {
        recover::make_directories(directory)?;
        let (index, indexed) = Index::open(store)?;
        let files = directory.join("files");
        let recovered = recover::pack(&directory.join("pack"), &files, &index, &indexed)?;
        let content = Content {
            directory: directory.into(),
            files,
            index,
            framer: Framer::new(FORMAT),
            indexed: Mutex::new(indexed),
            pack: Mutex::new(recovered.pack),
            writing: Mutex::new(Writing::open(&directory.join("writing"))?),
            names: AtomicU64::new(0),
            torn_bytes: recovered.torn_bytes,
            owed_bytes: AtomicU64::new(0),
        };
        content.flush()?;
        Ok(content)
    }

    /// How many bytes of the pack a crash had torn when it was opened.
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// Keeps a small content in place of what there was.
    pub fn put(&self, serial: u64, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.len() > PACKED_MAX {
            let what = format!("{} bytes for the pack, where {PACKED_MAX} may be", bytes.len());
            return Err(Failure::Unfit(what));
        }
        let mut pack = self.pack()?;
        if pack.overlay.len() >= OVERLAY_MAX {
            drop(pack);
            self.flush()?;
            pack = self.pack()?;
        }
        let location = pack.append(Kind::Put, serial, bytes)?;
        let is_over_backing = pack
            .overlay
            .get(&serial)
            .is_some_and(|entry| entry.is_over_backing || entry.state == Some(State::Backed));
        let state = Some(State::Packed(location));
        pack.overlay.insert(serial, Entry { state, is_over_backing });
        Ok(())
    }

    /// The content of a file that is packed.
    pub fn get(&self, serial: u64) -> Result<Option<Vec<u8>>, Failure> {
        loop {
            let Some(State::Packed(location)) = self.look(serial)? else {
                return Ok(None);
            };
            if let Some(bytes) = self.read(serial, location)? {
                return Ok(Some(bytes));
            }
            // Its segment went while we looked: it lies elsewhere by now.
            if self.look(serial)? == Some(State::Packed(location)) {
                let path = segment_path(&self.directory.join("pack"), location.segment);
                let what = "it is missing; restore the machine's directory from a copy".to_owned();
                return Err(Failure::Damaged { path, what });
            }
        }
    }

    /// How many bytes of a file are here, if any are.
    pub fn length(&self, serial: u64) -> Result<Option<u64>, Failure> {
        if let Some(State::Packed(location)) = self.look(serial)? {
            return Ok(Some(u64::from(location.length)));
        }
        let path = backing_path(&self.files, serial);
        match fs::metadata(&path) {
            Ok(file) => Ok(Some(file.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::of("can't look at", path)(error)),
        }
    }

    /// Opens the backing file of a file that has one, to read and write.
    pub fn backing(&self, serial: u64) -> Result<Option<File>, Failure> {
        if let Some(State::Packed(_)) = self.look(serial)? {
            return Ok(None);
        }
        let path = backing_path(&self.files, serial);
        match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::of("can't open", path)(error)),
        }
    }

    /// Makes a backing file with these bytes in place of what there was.
    pub fn make_backing(&self, serial: u64, bytes: &[u8]) -> Result<File, Failure> {
        let path = backing_path(&self.files, serial);
        let state = self.look(serial)?;
        let is_packed = matches!(state, Some(State::Packed(_)));
        if is_packed && path.exists() {
            // A backing file from before the packed content must not be taken for the new one.
            self.flush()?;
            self.sync()?;
        }
        let name = format!("{serial:016x}.{}", self.names.fetch_add(1, Ordering::Relaxed));
        let new = self.files.join("new").join(name);
        let file = write_new(&new, bytes)?;
        if state.is_some() {
            // The name may be safe before the bytes are, and the old bytes are gone then. Over a packed
            // content too: how long the file is does not tell that its bytes are there.
            file.sync_data().map_err(Failure::of("can't sync", &new))?;
        }
        let placed = self.place_backing(serial, &new, &path, bytes.len() as u64, is_packed);
        if placed.is_err() {
            // What is left there goes when the contents are next opened.
            _ = fs::remove_file(&new);
        }
        placed.map(|()| file)
    }

    fn place_backing(
        &self,
        serial: u64,
        new: &Path,
        path: &Path,
        length: u64,
        is_packed: bool,
    ) -> Result<(), Failure> {
        let mut pack = self.pack()?;
        // First the record: without the file it says nothing.
        pack.append(Kind::Backed, serial, &length.to_le_bytes())?;
        fs::rename(new, path).map_err(Failure::of("can't rename", new))?;
        let state = Some(State::Backed);
        pack.overlay.insert(serial, Entry { state, is_over_backing: false });
        pack.shards.insert(shard(serial));
        if is_packed {
            // The packed content must stay until this is safe, so that has to come.
            pack.settled.insert(serial);
        }
        Ok(())
    }

    /// Notes that a backing file is about to be cut to this length: shorter than it was made, it must not be
    /// taken for one that did not make it.
    pub fn note_cut(&self, serial: u64, length: u64) -> Result<(), Failure> {
        let mut pack = self.pack()?;
        // Of what the index has, nothing packed is left to go back to.
        if pack.overlay.get(&serial).is_some_and(|entry| entry.state == Some(State::Backed)) {
            pack.append(Kind::Backed, serial, &length.to_le_bytes())?;
        }
        Ok(())
    }

    /// A file without a name, for bytes that are not ours to keep.
    pub fn scratch(&self) -> Result<File, Failure> {
        let name = format!("scratch.{}", self.names.fetch_add(1, Ordering::Relaxed));
        let path = self.files.join("new").join(name);
        let file = write_new(&path, &[])?;
        // What is left there after a crash goes when the contents are next opened.
        remove_file(&path)?;
        Ok(file)
    }

    /// Keeps bytes that were written to a file and can't be told of any more, for their owner; where.
    pub fn rescue(&self, serial: u64, bytes: &mut dyn io::Read) -> Result<PathBuf, Failure> {
        self.keepsakes().keep(&Content::keepsake(serial), bytes)
    }

    /// Keeps the backing file of a file for its owner, in place of here; where, if it has one.
    pub fn rescue_backing(&self, serial: u64) -> Result<Option<PathBuf>, Failure> {
        if self.backing(serial)?.is_none() {
            return Ok(None);
        }
        let path = backing_path(&self.files, serial);
        let kept = self.keepsakes().adopt(&Content::keepsake(serial), &path)?;
        self.remove(serial)?;
        Ok(Some(kept))
    }

    /// Removes what a file has here, but for its backing file, if it has one: that is somewhere else from now on, until
    /// the contents are next opened. Programs that write it past us go on doing so.
    pub fn set_aside(&self, serial: u64) -> Result<Option<PathBuf>, Failure> {
        if self.backing(serial)?.is_none() {
            return Ok(None);
        }
        let name = format!("aside.{}", self.names.fetch_add(1, Ordering::Relaxed));
        let aside = self.files.join("new").join(name);
        fs::rename(backing_path(&self.files, serial), &aside)
            .map_err(Failure::of("can't rename", &aside))?;
        self.remove(serial)?;
        Ok(Some(aside))
    }

    /// Keeps what was set aside of a file, for its owner; where.
    pub fn keep_aside(&self, serial: u64, aside: &Path) -> Result<PathBuf, Failure> {
        let kept = self.keepsakes().adopt(&Content::keepsake(serial), aside)?;
        remove_file(aside)?;
        Ok(kept)
    }

    fn keepsakes(&self) -> Keepsakes {
        Keepsakes::of(self.directory.parent().unwrap_or(&self.directory))
    }

    fn keepsake(serial: u64) -> String {
        format!("{}-inode-{serial}.bytes", crate::Clock.wall())
    }

    /// Removes whatever a file has here.
    pub fn remove(&self, serial: u64) -> Result<(), Failure> {
        let state = self.look(serial)?;
        if state.is_some() {
            let mut pack = self.pack()?;
            match pack.append(Kind::Gone, serial, &[]) {
                Ok(_) => {}
                // Removing has to work on a full disk. A crash before this is in the index brings back
                // bytes that nobody asks for, no more.
                Err(failure) if failure.is_full() => {}
                Err(failure) => return Err(failure),
            }
            pack.overlay.insert(serial, Entry { state: None, is_over_backing: false });
            pack.settled.remove(&serial);
        }
        // Also of a packed one: there may be a backing file from before it.
        remove_file(&backing_path(&self.files, serial))
    }

    /// Has a file's bytes made safe with the next sync. Those in the pack are in any case.
    pub fn settle(&self, serial: u64) {
        let mut pack = self.pack.lock().unwrap_or_else(PoisonError::into_inner);
        pack.settled.insert(serial);
    }

    /// Notes that a backing file may be written behind our back from now on.
    pub fn note_writing(&self, serial: u64) -> Result<(), Failure> {
        self.writing.lock().map_err(|_| Failure::Stopped)?.note(serial)
    }

    /// Notes that a backing file is not written any more and that all of it is safe.
    pub fn note_written(&self, serial: u64) -> Result<(), Failure> {
        self.writing.lock().map_err(|_| Failure::Stopped)?.strike(serial)
    }

    /// The files that were noted in lives before this one, until these are forgotten.
    pub fn written_before(&self) -> Vec<u64> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner).before()
    }

    /// Forgets what was noted in lives before this one.
    pub fn forget_written_before(&self) -> Result<(), Failure> {
        self.writing.lock().map_err(|_| Failure::Stopped)?.forget_before()
    }

    /// Room on the disk, without what the group will need.
    pub fn space(&self) -> Result<Space, Failure> {
        let owed_bytes = self.owed_bytes.load(Ordering::Relaxed);
        Ok(Space::of(&self.directory)?.without(owed_bytes))
    }

    /// The group will need so many bytes of the same disk.
    pub(crate) fn owe(&self, bytes: u64) {
        self.owed_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The files that have a content here, in order, for a check of everything. Puts what is new into
    /// the index first.
    pub fn serials(&self) -> Result<impl Iterator<Item = Result<u64, Failure>>, Failure> {
        self.flush()?;
        Ok(self.index.iter().map(|found| found.map(|(serial, _)| serial)))
    }

    /// Whether an earlier failure has put the contents out of use.
    pub fn is_stopped(&self) -> bool {
        self.pack.lock().map_or(true, |pack| pack.is_stopped)
    }

    fn pack(&self) -> Result<MutexGuard<'_, Pack>, Failure> {
        let pack = self.pack.lock().map_err(|_| Failure::Stopped)?;
        pack.check()?;
        Ok(pack)
    }

    fn look(&self, serial: u64) -> Result<Option<State>, Failure> {
        // What leaves the overlay is in the index before.
        if let Some(entry) = self.pack()?.overlay.get(&serial) {
            return Ok(entry.state);
        }
        self.index.get(serial)
    }

    /// Nothing, if the segment is not there any more.
    fn read(&self, serial: u64, location: Location) -> Result<Option<Vec<u8>>, Failure> {
        let Location { segment, offset, length, sequence } = location;
        let known = self.pack()?.reader(segment);
        let path = segment_path(&self.directory.join("pack"), segment);
        let file = match known {
            Some(file) => file,
            None => match File::open(&path) {
                Ok(file) => {
                    let file = Arc::new(file);
                    self.pack()?.keep_reader(segment, &file);
                    file
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(Failure::of("can't open", path)(error)),
            },
        };
        let mut bytes = vec![0; HEAD + LABEL + length as usize];
        file.read_exact_at(&mut bytes, u64::from(offset))
            .map_err(Failure::of("can't read", &path))?;
        let place = Place { file: u64::from(segment), offset: u64::from(offset) };
        let is_whole = self.framer.head(&bytes).is_some_and(|head| {
            head.number == sequence && self.framer.is_record(place, &head, &bytes[HEAD..])
        });
        let is_it =
            matches!(Kind::read(&bytes[HEAD..]), Some((Kind::Put, whose, _)) if whose == serial);
        if !is_whole || !is_it {
            let what = format!(
                "the content of file {serial} at byte {offset} has changed; restore that file from a copy"
            );
            return Err(Failure::Damaged { path, what });
        }
        bytes.drain(..HEAD + LABEL);
        Ok(Some(bytes))
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<File, Failure> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(Failure::of("can't create", path))?;
    if let Err(error) = file.write_all(bytes) {
        // What is left there goes when the contents are next opened.
        _ = fs::remove_file(path);
        return Err(Failure::of("can't write", path)(error));
    }
    Ok(file)
}

/// Which directory a backing file is in.
fn shard(serial: u64) -> u8 {
    serial as u8
}

fn shard_path(files: &Path, shard: u8) -> PathBuf {
    files.join(format!("{shard:02x}"))
}

fn backing_path(files: &Path, serial: u64) -> PathBuf {
    shard_path(files, shard(serial)).join(format!("{serial:016x}"))
}

/// Removes a file that may not be there.
fn remove_file(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::of("can't remove", path)(error))
        }
        _ => Ok(()),
    }
}
