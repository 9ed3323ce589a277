//! The invariants of the name space (N1 to N5 of testing) over records that come one after the other: there may
//! be more of them than there is memory for.
//!
//! Twice through all records in order: the first time everything but how many names a file has, which only all
//! names together tell.

use std::collections::{BTreeMap, BTreeSet};

use base::FileId;
use lease::Client;
use triomphe::Arc;

use crate::{
    charge::Cost,
    ledger::Used,
    record::{Entry, File, Key, Record, Sort},
    sum::{Sum, WORDS},
};

/// So much is found, and the rest is counted.
const FINDINGS_MAX: usize = 1_000;
/// So many directories are remembered as lying below the root.
const SOUND_MAX: usize = 10_000;

/// What a directory knows of its records without them, at the moment at which they are looked at.
#[derive(Clone, Debug)]
pub struct Outline {
    pub(crate) sum: [u64; WORDS],
    pub(crate) serial_next: u64,
    /// Files without a name that somebody may have open.
    pub(crate) orphans: BTreeSet<FileId>,
    /// Who has locked what.
    pub(crate) locked: BTreeSet<(Client, FileId)>,
    /// What files cost whom.
    pub(crate) used: Used,
}

/// What was looked at, and what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many files and directories there are, the root included.
    pub files: u64,
    /// How many names.
    pub names: u64,
    /// How many bytes, as far as the directory knows.
    pub bytes: u64,
    /// What does not fit together, a sentence each. At most 1,000.
    pub findings: Vec<String>,
    /// How much more does not.
    pub findings_more: u64,
}

/// A check under way.
pub struct Audit {
    outline: Outline,
    report: Report,
    sum: Sum,
    serials: Serials,
    /// What the files seen so far cost whom. As many as own files.
    used: Used,
    /// Files that may have one name, and have been found to.
    named: Serials,
    /// How many names were found of those that may have several. As many as there are such files.
    several: BTreeMap<FileId, u32>,
    within: Option<Within>,
    /// Directories that lie below the root. At most [`SOUND_MAX`], and the way up from one.
    sound: BTreeSet<FileId>,
}

/// A set of serial numbers, a bit each. It has as many parts as there are records at the most.
#[derive(Debug, Default)]
pub struct Serials(BTreeMap<u64, Box<[u64; 64]>>);

impl Serials {
    /// Puts a number in. Whether it was not in.
    pub fn insert(&mut self, serial: u64) -> bool {
        let part = self.0.entry(serial >> 12).or_insert_with(|| Box::new([0; 64]));
        let (word, bit) = ((serial >> 6 & 63) as usize, 1 << (serial & 63));
        let is_new = part[word] & bit == 0;
        part[word] |= bit;
        is_new
    }

    /// Whether a number is in.
    pub fn contains(&self, serial: u64) -> bool {
        let part = self.0.get(&(serial >> 12));
        part.is_some_and(|part| part[(serial >> 6 & 63) as usize] >> (serial & 63) & 1 == 1)
    }
}

/// The file whose record was last seen, and what was found in it.
struct Within {
    file: FileId,
    record: Arc<File>,
    names: u64,
    directories: u32,
}

impl Audit {
    /// A check of the records that belong to this.
    pub fn new(outline: Outline) -> Audit {
        Audit {
            outline,
            report: Report::default(),
            sum: Sum::default(),
            serials: Serials::default(),
            used: Used::default(),
            named: Serials::default(),
            several: BTreeMap::new(),
            within: None,
            sound: BTreeSet::from([FileId::ROOT]),
        }
    }

    /// The next record, the first time. `find` looks a file's own record up.
    pub fn look<E>(
        &mut self,
        key: &Key,
        record: &Record,
        find: &mut impl FnMut(&FileId) -> Result<Option<Arc<File>>, E>,
    ) -> Result<(), E> {
        self.sum.add(key, record);
        if self.within.as_ref().is_some_and(|within| within.file != key.file) {
            self.leave();
        }
        match (record, &key.name) {
            (Record::File(file), None) => self.look_at_file(&key.file, file, find),
            (Record::Entry(entry), Some(name)) => {
                let name = format!("{name} in {}", key.file);
                self.look_at_name(&key.file, &name, entry, find)
            }
            _ => {
                self.find(format!("{key:?} has a record of the wrong sort"));
                Ok(())
            }
        }
    }

    /// The next file's record, the second time.
    pub fn look_again(&mut self, file: &FileId, record: &File) {
        let found = match record.sort {
            Sort::Directory if file.is_root() => 0,
            _ if self.named.contains(record.serial) => 1,
            _ => self.several.get(file).copied().unwrap_or(0),
        };
        let expected = match record.sort {
            Sort::Directory => u32::from(!file.is_root()),
            _ => record.links,
        };
        if found != expected {
            self.find(format!("N1: {file} has {found} names and should have {expected}"));
        }
    }

    /// What was found, after all was looked at, and the numbers of all files that there are.
    pub fn finish(mut self) -> (Report, Serials) {
        self.leave();
        for file in std::mem::take(&mut self.outline.orphans) {
            self.find(format!("N5: {file} is held for whoever has it open, and is not there"));
        }
        for (client, file) in std::mem::take(&mut self.outline.locked) {
            self.find(format!("{file} is not locked by {client:?}, which is said to have"));
        }
        if self.used != self.outline.used {
            self.find(format!("what is used is {:?}, not {:?}", self.used, self.outline.used));
        }
        if self.sum.words() != &self.outline.sum {
            self.find("the sum of the records is not the sum of their changes".to_owned());
        }
        (self.report, self.serials)
    }

    fn find(&mut self, what: String) {
        match self.report.findings.len() < FINDINGS_MAX {
            true => self.report.findings.push(what),
            false => self.report.findings_more += 1,
        }
    }

    fn look_at_file<E>(
        &mut self,
        file: &FileId,
        record: &Arc<File>,
        find: &mut impl FnMut(&FileId) -> Result<Option<Arc<File>>, E>,
    ) -> Result<(), E> {
        self.report.files += 1;
        self.report.bytes = self.report.bytes.saturating_add(record.content.size);
        if let Some(cost) = Cost::of(record) {
            self.used.add(cost);
        }
        if file.is_root() && record.sort != Sort::Directory {
            self.find("the root is no directory".to_owned());
        }
        if record.serial >= self.outline.serial_next {
            self.find(format!("N4: the serial number {} of {file} was never given", record.serial));
        }
        if !self.serials.insert(record.serial) {
            self.find(format!(
                "N4: the serial number {} of {file} is another's too",
                record.serial
            ));
        }
        if let Some(directory) = file.parent()
            && let Some(creator) = find(&directory)?
            && file.number().is_some_and(|number| number.get() >= creator.numbering.next)
        {
            self.find(format!("N4: {file} was never given to anybody"));
        }
        match (self.outline.orphans.remove(file), record.links) {
            (false, 0) => self.find(format!("N5: {file} has no name, and nobody has it open")),
            (true, 1..) => self.find(format!("N5: {file} has a name and is taken for one without")),
            _ => {}
        }
        let clients: BTreeSet<Client> = record.locks().iter().map(|lock| lock.client).collect();
        for client in clients {
            if !self.outline.locked.remove(&(client, file.clone())) {
                self.find(format!("{file} is locked by {client:?}, which is not said to have"));
            }
        }
        if record.sort == Sort::Directory {
            self.look_above(file, record, find)?;
        }
        let record = Arc::clone(record);
        self.within = Some(Within { file: file.clone(), record, names: 0, directories: 0 });
        Ok(())
    }

    fn look_at_name<E>(
        &mut self,
        directory: &FileId,
        name: &str,
        entry: &Entry,
        find: &mut impl FnMut(&FileId) -> Result<Option<Arc<File>>, E>,
    ) -> Result<(), E> {
        self.report.names += 1;
        match &mut self.within {
            Some(within) => {
                within.names += 1;
                within.directories += u32::from(entry.sort == Sort::Directory);
            }
            None => self.find(format!("N4: {directory} has names in it and is dead: {name}")),
        }
        let Some(file) = find(&entry.file)? else {
            self.find(format!("N4: a name leads to {}, which is dead: {name}", entry.file));
            return Ok(());
        };
        if file.sort != entry.sort {
            self.find(format!("{name} is called something that it is not"));
        }
        if file.sort == Sort::Directory && file.parent != *directory {
            self.find(format!("N2: {name} says that it lies in {}", file.parent));
        }
        let is_surplus = match file.links {
            links if links > 1 && file.sort != Sort::Directory => {
                *self.several.entry(entry.file.clone()).or_insert(0) += 1;
                false
            }
            _ => !self.named.insert(file.serial),
        };
        if is_surplus {
            self.find(format!("N1: {name} is one name more than {} may have", entry.file));
        }
        Ok(())
    }

    /// All names of a file have been seen.
    fn leave(&mut self) {
        let Some(Within { file, record, names, directories }) = self.within.take() else { return };
        if record.numbering.names != names {
            self.find(format!("{file} says {} names, has {names}", record.numbering.names));
        }
        let links = directories.saturating_add(2);
        if record.sort == Sort::Directory && record.links != links {
            self.find(format!("N1: {file} has {} links, not {links}", record.links));
        }
    }

    /// Whether a directory lies below the root.
    fn look_above<E>(
        &mut self,
        file: &FileId,
        record: &Arc<File>,
        find: &mut impl FnMut(&FileId) -> Result<Option<Arc<File>>, E>,
    ) -> Result<(), E> {
        let mut way = BTreeSet::new();
        let (mut at, mut above) = (file.clone(), Arc::clone(record));
        while !self.sound.contains(&at) {
            if !way.insert(at.clone()) {
                self.find(format!("N2: {file} lies below itself"));
                return Ok(());
            }
            at = above.parent.clone();
            let Some(next) = find(&at)? else {
                self.find(format!("N2: {file} lies below {at}, which is not there"));
                return Ok(());
            };
            above = next;
        }
        if self.sound.len() + way.len() > SOUND_MAX {
            self.sound = BTreeSet::from([FileId::ROOT]);
        }
        self.sound.extend(way);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_are_in_once_wherever_they_lie() {
        let mut serials = Serials::default();
        for serial in [0, 1, 63, 64, 4_095, 4_096, u64::MAX] {
            assert!(!serials.contains(serial));
            assert!(serials.insert(serial) && !serials.insert(serial));
            assert!(serials.contains(serial));
        }
        assert!(!serials.contains(2) && !serials.contains(u64::MAX - 1));
    }
}
