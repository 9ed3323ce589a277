//! The records of directories on this machine's disk, and the last checkpoint.
//!
//! One embedded database holds them and the index of contents. It silently forgets the end of its own
//! journal if that is damaged; the log is the authority, and `check_reach` and `check_end` say whether the two fit.

mod frozen;
mod key;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    ops::Bound::{Excluded, Unbounded},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use base::FileId;
use directory::{Absent, Key, Record};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use lease::Name;
use node::{Loaded, Page};

use crate::Failure;
pub(crate) use frozen::Frozen;

/// A page of names has at most so many.
pub const PAGE_MAX: usize = 1_024;
/// What the database may keep of its files in memory.
const CACHE_BYTES: u64 = 32 << 20;
/// The smallest that the database takes. Opening it again takes as long as this is.
const JOURNAL_BYTES: u64 = 64 << 20;
/// Of changes to records not yet in sorted files. There may be a few of these at a time.
const RECORDS_BYTES: u64 = 12 << 20;
const OTHERS_BYTES: u64 = 4 << 20;

/// Where the checkpoint is among the records, so that the two are of one state whatever the database
/// forgets. No identifier's key begins with so many ones, and it comes after all of them.
const CHECKPOINT: &[u8] = &[0xff; 9];

/// The records of directories, and the last checkpoint.
pub struct Store {
    path: PathBuf,
    database: Database,
    /// And the checkpoint.
    records: Keyspace,
    /// Which file has which inode number: for whoever knows a file by that alone, as a file handle does. Neither ever
    /// changes.
    serials: Keyspace,
}

impl Store {
    /// Opens the store, which is made if it is not there.
    pub fn open(path: &Path) -> Result<Store, Failure> {
        let opened = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES)
            .worker_threads(1)
            .open();
        let database = opened.map_err(|error| match error {
            fjall::Error::Locked => Failure::Unfit(format!(
                "{} is in use by another process; stop that one first",
                path.display()
            )),
            error => failed(error),
        })?;
        let records = keyspace(&database, "records", RECORDS_BYTES)?;
        let serials = keyspace(&database, "serials", OTHERS_BYTES)?;
        Ok(Store { path: path.into(), database, records, serials })
    }

    /// The last checkpoint: up to which mark of the log it goes, and what was saved with it.
    pub fn checkpoint(&self) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        let Some(value) = self.records.get(CHECKPOINT).map_err(failed)? else {
            return Ok(None);
        };
        match value.split_first_chunk() {
            Some((mark, state)) => Ok(Some((u64::from_le_bytes(*mark), state.to_vec()))),
            None => Err(self.damaged("its checkpoint has no mark")),
        }
    }

    /// Saves a checkpoint and everything that changed up to it, all or nothing. Safe on return.
    pub fn save(
        &self,
        mark: u64,
        state: &[u8],
        changes: Vec<(Key, Option<Record>)>,
    ) -> Result<(), Failure> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for (key, record) in changes {
            let bytes = key::encode(&key);
            match record {
                Some(record) => {
                    if let Record::File(file) = &record {
                        batch.insert(&self.serials, file.serial.to_be_bytes(), &*bytes);
                    }
                    batch.insert(&self.records, bytes, base::encode(&record));
                }
                None => {
                    if let Some(Record::File(file)) = self.get(&key)? {
                        batch.remove(&self.serials, file.serial.to_be_bytes());
                    }
                    batch.remove(&self.records, bytes);
                }
            }
        }
        let mut checkpoint = mark.to_le_bytes().to_vec();
        checkpoint.extend_from_slice(state);
        batch.insert(&self.records, CHECKPOINT, checkpoint);
        batch.commit().map_err(failed)
    }

    /// Saves a checkpoint with these records in place of all that there were, all or nothing. Safe on return.
    pub fn replace(
        &self,
        mark: u64,
        state: &[u8],
        changes: Vec<(Key, Option<Record>)>,
    ) -> Result<(), Failure> {
        let kept: BTreeSet<&Key> = changes.iter().map(|(key, _)| key).collect();
        let mut gone = Vec::new();
        for found in self.records() {
            let (key, _) = found?;
            if !kept.contains(&key) {
                gone.push((key, None));
            }
        }
        self.save(mark, state, changes.into_iter().chain(gone).collect())
    }

    /// What there is of what a command found absent.
    pub fn load(&self, absent: &Absent) -> Result<Loaded, Failure> {
        let mut loaded = Loaded::default();
        for key in &absent.keys {
            loaded.records.push((key.clone(), self.get(key)?));
        }
        for (directory, after) in &absent.pages {
            loaded.pages.push(self.page(directory, after.clone())?);
        }
        if absent.is_everything {
            loaded.everything = Some(self.records().collect::<Result<_, Failure>>()?);
        }
        Ok(loaded)
    }

    fn get(&self, key: &Key) -> Result<Option<Record>, Failure> {
        let found = self.records.get(key::encode(key)).map_err(failed)?;
        found.map(|value| self.record(key, &value)).transpose()
    }

    /// The file with an inode number, if it is stored.
    pub fn file(&self, serial: u64) -> Result<Option<FileId>, Failure> {
        let found = self.serials.get(serial.to_be_bytes()).map_err(failed)?;
        let key = found.map(|bytes| key::decode(&bytes)).transpose();
        let key = key.map_err(|malformed| self.damaged(&malformed.to_string()))?;
        Ok(key.map(|key| key.file))
    }

    fn page(&self, directory: &FileId, after: Option<Name>) -> Result<Page, Failure> {
        let prefix = directory.to_key();
        let from = key::of_name(directory, after.as_ref());
        let mut names = Vec::new();
        let mut is_all = true;
        for found in self.records.range::<&[u8], _>((Excluded(&from[..]), Unbounded)) {
            let (bytes, value) = found.into_inner().map_err(failed)?;
            // The checkpoint, too, begins with what no directory does.
            if !bytes.starts_with(&prefix) {
                break;
            }
            if names.len() == PAGE_MAX {
                is_all = false;
                break;
            }
            let key = key::decode(&bytes).map_err(|error| self.damaged(&error.to_string()))?;
            match (self.record(&key, &value)?, key.name) {
                (Record::Entry(entry), Some(name)) => names.push((name, entry)),
                _ => {
                    return Err(self.damaged("a file's record lies among the names of a directory"));
                }
            }
        }
        Ok(Page { directory: directory.clone(), after, names, is_all })
    }

    /// Every record in order.
    pub fn records(&self) -> impl Iterator<Item = Result<(Key, Record), Failure>> + '_ {
        self.records.range::<&[u8], _>(..CHECKPOINT).map(|found| {
            let (bytes, value) = found.into_inner().map_err(failed)?;
            let key = key::decode(&bytes).map_err(|error| self.damaged(&error.to_string()))?;
            let record = self.record(&key, &value)?;
            Ok((key, record))
        })
    }

    /// Says what is wrong if a log that begins with this record does not reach back to a checkpoint.
    ///
    /// A checkpoint at a mark holds what records up to and with that number did, and the first record
    /// has number 1.
    pub fn check_reach(&self, mark: u64, first: u64) -> Result<(), Failure> {
        if first <= mark + 1 {
            return Ok(());
        }
        Err(self.damaged(&format!(
            "its checkpoint is at {mark}, but the log begins only at {first}, so what happened between \
             is lost"
        )))
    }

    /// Says what is wrong if a log that ends before this record has less than a checkpoint.
    pub fn check_end(&self, mark: u64, next: u64) -> Result<(), Failure> {
        if mark < next.max(1) {
            return Ok(());
        }
        Err(self.damaged(&format!(
            "its checkpoint is at {mark}, but the log ends before {next}: it has lost its end, and what \
             came later with it"
        )))
    }

    /// The database, for others who keep an index in it.
    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Another collection in the same database.
    pub(crate) fn keyspace(&self, name: &str) -> Result<Keyspace, Failure> {
        keyspace(&self.database, name, OTHERS_BYTES)
    }

    fn record(&self, key: &Key, value: &[u8]) -> Result<Record, Failure> {
        let record = base::decode(value, value.len())
            .map_err(|error| self.damaged(&format!("the record under {key:?} has {error}")))?;
        match (&record, &key.name) {
            (Record::File(_), None) | (Record::Entry(_), Some(_)) => Ok(record),
            _ => Err(self.damaged(&format!("the record under {key:?} is not of its sort"))),
        }
    }

    pub(crate) fn damaged(&self, what: &str) -> Failure {
        let what = format!(
            "{what}; restore the machine's directory from a copy, or let the group recover the machine"
        );
        Failure::Damaged { path: self.path.clone(), what }
    }
}

fn keyspace(database: &Database, name: &str, memory_bytes: u64) -> Result<Keyspace, Failure> {
    let options = || KeyspaceCreateOptions::default().max_memtable_size(memory_bytes);
    database.keyspace(name, options).map_err(failed)
}

/// Once something has failed the database refuses everything; only the first failure says why, to
/// whoever it befell. So it is said here. What befalls the database behind our back it does not tell.
pub(crate) fn failed(error: fjall::Error) -> Failure {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    let is_said = IS_SAID.swap(true, Ordering::Relaxed);
    match &error {
        _ if is_said => {}
        fjall::Error::Poisoned => {
            eprintln!("croft: the store has stopped by itself; the disk may be full or failing");
        }
        error => eprintln!("croft: the store failed: {error}"),
    }
    match error {
        fjall::Error::Poisoned => Failure::Stopped,
        error => Failure::Store(error),
    }
}
