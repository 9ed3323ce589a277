//! The records that are at hand, what is known not to be, and what a command has changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU64,
    ops::Bound::{Excluded, Unbounded},
};

use base::FileId;
use lease::Name;
use triomphe::Arc;

use crate::{
    known::{Edge, Known},
    record::{Entry, File, Key, Record, Sort},
    sum::{Sum, WORDS},
};

/// What has to be loaded before a command can go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Absent {
    /// Records, or the knowledge that there is none.
    pub keys: Vec<Key>,
    /// Names in a directory that come after one, or the first ones: as many as may be convenient.
    pub pages: Vec<(FileId, Option<Name>)>,
    /// Every record that there is.
    pub is_everything: bool,
}

impl Absent {
    /// Every record that is not at hand, for whoever is to have them all.
    pub fn everything() -> Absent {
        Absent { is_everything: true, ..Absent::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.pages.is_empty()
    }

    pub(crate) fn join(&mut self, other: Absent) {
        self.keys.extend(other.keys);
        self.pages.extend(other.pages);
    }

    /// In order, and each once.
    pub(crate) fn tidy(mut self) -> Absent {
        self.keys.sort();
        self.keys.dedup();
        self.pages.sort();
        self.pages.dedup();
        self
    }
}

impl From<Key> for Absent {
    fn from(key: Key) -> Absent {
        Absent { keys: vec![key], ..Absent::default() }
    }
}

/// The records of a group, as far as they are at hand.
pub(crate) struct Records {
    /// Bounded by the shell, which lets go of what it has no room for.
    resident: BTreeMap<Key, Record>,
    /// Where, besides, it is known that there is nothing, or where no record is missing between others. So
    /// a record that is at hand by itself takes no room here.
    known: Known,
    /// Of all records, at hand or not.
    sum: Sum,
    /// What the present operation has changed, in order. Bounded by what one can change.
    log: Vec<Change>,
    /// The directory that the last operations were about: written through once, not with each of them.
    hot: Option<Hot>,
    /// Where commands have changed something that the shell has not stored yet, if it stores anything.
    /// Bounded by the shell: it stores what there is when this is long.
    changes: Option<BTreeSet<Key>>,
    /// By inode number, the files among these changes that the store has never heard of.
    newborn: BTreeMap<u64, FileId>,
}

struct Change {
    key: Key,
    before: Option<Record>,
    after: Option<Record>,
}

struct Hot {
    key: Key,
    /// As it is.
    record: Option<Record>,
    /// As it was summed up.
    before: Option<Record>,
}

impl Records {
    /// None, and that is known.
    pub(crate) fn new(is_stored: bool) -> Records {
        Records {
            resident: BTreeMap::new(),
            known: Known::everything(),
            sum: Sum::default(),
            log: Vec::new(),
            hot: None,
            changes: is_stored.then(BTreeSet::new),
            newborn: BTreeMap::new(),
        }
    }

    /// None at hand, of a set that a store has and that was summed up like this.
    pub(crate) fn stored(sum: [u64; WORDS]) -> Records {
        let sum = Sum::of(sum);
        Records { known: Known::default(), sum, ..Records::new(true) }
    }

    /// All of them, summed up like this. If they are to be stored, none is yet.
    pub(crate) fn whole(
        records: Vec<(Key, Record)>,
        sum: [u64; WORDS],
        is_stored: bool,
    ) -> Records {
        let mut whole = Records { sum: Sum::of(sum), ..Records::new(is_stored) };
        for (key, record) in records {
            whole.note_change(&key, None, Some(&record));
            whole.resident.insert(key, record);
        }
        whole
    }

    /// What is under a key, if it is at hand whether anything is.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<&Record>, Absent> {
        if let Some(hot) = &self.hot
            && key.name.is_none()
            && hot.key.file == key.file
        {
            return Ok(hot.record.as_ref());
        }
        match self.resident.get(key) {
            Some(record) => Ok(Some(record)),
            None if self.known.contains(key) => Ok(None),
            None => Err(key.clone().into()),
        }
    }

    pub(crate) fn file(&self, file: &FileId) -> Result<Option<&Arc<File>>, Absent> {
        let found = self.get(&Key::file(file))?;
        Ok(found.and_then(|record| match record {
            Record::File(file) => Some(file),
            Record::Entry(_) => None,
        }))
    }

    pub(crate) fn entry(&self, directory: &FileId, name: &Name) -> Result<Option<&Entry>, Absent> {
        let found = self.get(&Key::entry(directory, name))?;
        Ok(found.and_then(|record| match record {
            Record::Entry(entry) => Some(entry),
            Record::File(_) => None,
        }))
    }

    /// Up to so many names in a directory that come after one, and whether that is all.
    pub(crate) fn names(
        &self,
        directory: &FileId,
        after: Option<&Name>,
        count_max: usize,
    ) -> Result<(Vec<(Name, Entry)>, bool), Absent> {
        let from = Key { file: directory.clone(), name: after.cloned() };
        let last = names_end(directory);
        let Some(reach) = self.known.reach(&Edge::after(&from)) else {
            return Err(page(directory, after.cloned()));
        };
        let mut names = Vec::new();
        for (key, record) in self.resident.range((Excluded(&from), Unbounded)) {
            let (Some(name), Record::Entry(entry)) = (&key.name, record) else { break };
            if key.file != *directory || Edge::before(key) >= *reach {
                break;
            }
            if names.len() == count_max {
                return Ok((names, false));
            }
            names.push((name.clone(), entry.clone()));
        }
        match *reach >= last {
            true => Ok((names, true)),
            false => {
                let seen = names.pop().map(|(name, _)| name);
                Err(page(directory, seen.or(after.cloned())))
            }
        }
    }

    /// Changes what is under a key that was looked at before, or that nobody has ever used.
    pub(crate) fn set(&mut self, key: Key, record: Option<Record>) {
        if let Some(hot) = self.hot.as_mut().filter(|hot| hot.key == key) {
            let before = std::mem::replace(&mut hot.record, record.clone());
            return self.log.push(Change { key, before, after: record });
        }
        let after = record.clone();
        let before = self.put(&key, record);
        if before.is_none() && is_directory(&after) {
            // Nobody has ever used its identifier, nor any below it.
            let end = key.file.region_end().map(|end| Edge::before(&Key::file(&end)));
            self.known.add(Edge::before(&key), end.unwrap_or(Edge::End));
        }
        self.log.push(Change { key, before, after });
    }

    fn put(&mut self, key: &Key, record: Option<Record>) -> Option<Record> {
        match record {
            Some(record) => self.resident.insert(key.clone(), record),
            None => {
                let before = self.resident.remove(key);
                if before.is_some() && !self.known.contains(key) {
                    self.known.add_key(key);
                }
                before
            }
        }
    }

    pub(crate) fn set_file(&mut self, file: &FileId, record: Option<File>) {
        self.set(Key::file(file), record.map(|record| Record::File(Arc::new(record))));
    }

    /// Undoes the present operation.
    pub(crate) fn undo(&mut self) {
        while let Some(Change { key, before, .. }) = self.log.pop() {
            match self.hot.as_mut().filter(|hot| hot.key == key) {
                Some(hot) => hot.record = before,
                None => drop(self.put(&key, before)),
            }
        }
    }

    /// The present operation is done: what it changed counts.
    pub(crate) fn commit(&mut self) {
        let mut log = std::mem::take(&mut self.log);
        // Another directory may take its place before its own change comes up.
        if let Some(hot) = &mut self.hot
            && let Some(first) = log.iter().find(|change| change.key == hot.key)
        {
            hot.record = first.before.clone();
        }
        for Change { key, before, after } in log.drain(..) {
            match &mut self.hot {
                Some(hot) if hot.key == key => hot.record = after,
                _ if is_directory(&before) && is_directory(&after) => {
                    self.cool();
                    self.hot = Some(Hot { key, record: after, before });
                }
                _ => self.count(key, before.as_ref(), after.as_ref()),
            }
        }
        self.log = log;
    }

    /// The present command is done.
    pub(crate) fn settle(&mut self) {
        self.commit();
        self.cool();
    }

    fn cool(&mut self) {
        if let Some(Hot { key, record, before }) = self.hot.take() {
            self.put(&key, record.clone());
            self.count(key, before.as_ref(), record.as_ref());
        }
    }

    fn count(&mut self, key: Key, before: Option<&Record>, after: Option<&Record>) {
        if let Some(before) = before {
            self.sum.subtract(&key, before);
        }
        if let Some(after) = after {
            self.sum.add(&key, after);
        }
        self.note_change(&key, before, after);
    }

    fn note_change(&mut self, key: &Key, before: Option<&Record>, after: Option<&Record>) {
        let Some(changes) = &mut self.changes else { return };
        changes.insert(key.clone());
        match (before, after) {
            (None, Some(Record::File(file))) => {
                self.newborn.insert(file.serial, key.file.clone());
            }
            (Some(Record::File(file)), None) => _ = self.newborn.remove(&file.serial),
            _ => {}
        }
    }

    /// The file with an inode number, if it came to be since the changes were last asked for.
    pub(crate) fn newborn(&self, serial: u64) -> Option<&FileId> {
        self.newborn.get(&serial)
    }

    /// What has changed since this was last asked, between commands.
    pub(crate) fn changes(&mut self) -> Vec<(Key, Option<Record>)> {
        assert!(self.log.is_empty() && self.hot.is_none(), "nothing is half done");
        let keys = self.changes.as_mut().map(std::mem::take).into_iter().flatten();
        self.newborn.clear();
        // Nothing is let go of before it is stored.
        let with_record = |key: Key| {
            let record = self.resident.get(&key).cloned();
            (key, record)
        };
        keys.map(with_record).collect()
    }

    pub(crate) fn change_count(&self) -> usize {
        self.changes.as_ref().map_or(0, BTreeSet::len)
    }

    /// Takes what a store has under some keys. What is at hand already stays as it is.
    pub(crate) fn supply(&mut self, records: Vec<(Key, Option<Record>)>) {
        for (key, record) in records {
            if self.resident.contains_key(&key) || self.known.contains(&key) {
                continue;
            }
            match record {
                Some(record) => _ = self.resident.insert(key, record),
                None => self.known.add_key(&key),
            }
        }
    }

    /// Takes everything that a store has. What is at hand already stays as it is.
    pub(crate) fn supply_all(&mut self, records: Vec<(Key, Record)>) {
        self.supply(records.into_iter().map(|(key, record)| (key, Some(record))).collect());
        self.known = Known::everything();
    }

    /// Takes the names in a directory after one, up to the last of these or to its end.
    pub(crate) fn supply_page(
        &mut self,
        directory: &FileId,
        after: Option<&Name>,
        names: Vec<(Name, Entry)>,
        is_all: bool,
    ) {
        let from = Key { file: directory.clone(), name: after.cloned() };
        let last = names.last().map(|(name, _)| Key::entry(directory, name));
        let to = match (is_all, &last) {
            (true, _) => names_end(directory),
            (false, Some(last)) => Edge::after(last),
            (false, None) => return,
        };
        let records = names
            .into_iter()
            .map(|(name, entry)| (Key::entry(directory, &name), Some(Record::Entry(entry))));
        self.supply(records.collect());
        self.known.add(Edge::after(&from), to);
    }

    /// Lets go of records that a store has. What it has not got yet stays.
    pub(crate) fn release(&mut self, keys: &[Key]) {
        assert!(self.log.is_empty(), "nothing goes in the middle of an operation");
        let changes = self.changes.as_ref().expect("only what is stored elsewhere can go");
        for key in keys {
            let is_hot = self.hot.as_ref().is_some_and(|hot| hot.key == *key);
            if !is_hot && !changes.contains(key) {
                self.resident.remove(key);
                self.known.remove_key(key);
            }
        }
    }

    /// Lets go of everything that a store has.
    pub(crate) fn release_all(&mut self) {
        assert!(self.log.is_empty(), "nothing goes in the middle of an operation");
        self.cool();
        let changes = self.changes.as_ref().expect("only what is stored elsewhere can go");
        self.known = Known::default();
        self.resident.retain(|key, _| changes.contains(key));
        for key in changes.iter().filter(|key| !self.resident.contains_key(key)) {
            self.known.add_key(key);
        }
    }

    pub(crate) fn is_all_at_hand(&self) -> bool {
        self.known.is_everything()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Record)> {
        self.resident.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.resident.len()
    }

    #[cfg(test)]
    pub(crate) fn forget_in_sum(&mut self, key: &Key, record: &Record) {
        self.sum.subtract(key, record);
    }

    pub(crate) fn sum(&self) -> &[u64; WORDS] {
        self.sum.words()
    }
}

fn is_directory(record: &Option<Record>) -> bool {
    matches!(record, Some(Record::File(file)) if file.sort == Sort::Directory)
}

fn page(directory: &FileId, after: Option<Name>) -> Absent {
    Absent { pages: vec![(directory.clone(), after)], ..Absent::default() }
}

/// Where the names in a directory end: what follows is its first child's record, or its neighbour's.
fn names_end(directory: &FileId) -> Edge {
    let next = directory.child(NonZeroU64::MIN).ok().or_else(|| directory.region_end());
    next.map_or(Edge::End, |next| Edge::before(&Key::file(&next)))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::record::{Access, Content, Numbering, Times};

    fn name(number: u8) -> Name {
        Name::new(format!("{number:03}").as_bytes()).unwrap()
    }

    fn entry() -> Entry {
        Entry { file: FileId::ROOT, sort: Sort::Regular }
    }

    proptest! {
        #[test]
        fn a_listing_is_the_same_however_it_is_loaded(
            numbers in prop::collection::btree_set(0u8..40, 0..30),
            gone in vec(0u8..40, 0..20),
            after in prop::option::of(0u8..40),
            count_max in 1usize..6,
            page_max in 1usize..4,
        ) {
            let directory: FileId = "1.5".parse().unwrap();
            let mut records = Records::new(true);
            // Its neighbours on the line of keys are nothing to it.
            for file in ["1.4", "1.5", "1.5.1", "1.6"].map(|id| id.parse::<FileId>().unwrap()) {
                records.set(Key::entry(&file, &name(20)), Some(Record::Entry(entry())));
                records.set(Key::entry(&file, &name(20)), None);
            }
            for number in &numbers {
                records.set(Key::entry(&directory, &name(*number)), Some(Record::Entry(entry())));
            }
            records.settle();
            records.changes();
            let gone: Vec<Key> = gone.iter().map(|n| Key::entry(&directory, &name(*n))).collect();
            records.release(&gone);
            let rest = |after: Option<&Name>| -> Vec<(Name, Entry)> {
                let all = numbers.iter().map(|number| (name(*number), entry()));
                all.filter(|(name, _)| Some(name) > after).collect()
            };
            let after = after.map(name);
            let mut loads = 0;
            let found = loop {
                match records.names(&directory, after.as_ref(), count_max) {
                    Ok(found) => break found,
                    Err(absent) => {
                        loads += 1;
                        prop_assert!(loads < 50 && absent.keys.is_empty());
                        for (of, after) in absent.pages {
                            let rest = rest(after.as_ref());
                            let count = page_max.min(rest.len());
                            let is_all = count == rest.len();
                            let page = rest[..count].to_vec();
                            records.supply_page(&of, after.as_ref(), page, is_all);
                        }
                    }
                }
            };
            let mut expected = rest(after.as_ref());
            let is_all = expected.len() <= count_max;
            expected.truncate(count_max);
            prop_assert_eq!(found, (expected, is_all));
        }
    }

    #[test]
    fn what_is_removed_and_not_stored_is_known_to_be_gone_whatever_is_let_go_of() {
        let mut records = Records::stored([0; WORDS]);
        let keys = [1, 2].map(|number| Key::entry(&FileId::ROOT, &name(number)));
        let stored = |key: &Key| (key.clone(), Some(Record::Entry(entry())));
        records.supply(keys.iter().map(stored).collect());
        records.set(keys[0].clone(), None);
        records.settle();
        records.release_all();
        assert_eq!(records.get(&keys[0]), Ok(None));
        assert_eq!(records.get(&keys[1]), Err(keys[1].clone().into()));
        records.supply(keys.iter().map(stored).collect());
        assert_eq!(records.get(&keys[0]), Ok(None), "the store has not heard of it");
        assert_eq!(records.changes(), [(keys[0].clone(), None)]);
        records.release_all();
        assert!(keys.iter().all(|key| records.get(key).is_err()));
    }

    #[test]
    fn what_is_at_hand_and_changed_stays_when_the_store_has_something_older() {
        let mut records = Records::stored([0; WORDS]);
        let key = Key::entry(&FileId::ROOT, &name(1));
        let newer = Record::Entry(Entry { sort: Sort::Symlink, ..entry() });
        records.supply(vec![(key.clone(), None)]);
        records.set(key.clone(), Some(newer.clone()));
        records.settle();
        records.release_all();
        records.supply(vec![(key.clone(), Some(Record::Entry(entry())))]);
        assert_eq!(records.get(&key), Ok(Some(&newer)));
    }

    #[test]
    fn below_a_new_directory_nothing_has_to_be_loaded() {
        let mut records = Records::stored([0; WORDS]);
        let id = |text: &str| text.parse::<FileId>().unwrap();
        let is_absent = |records: &Records, file: &str| {
            let is_absent = records.file(&id(file)).is_err();
            let names = records.names(&id(file), None, 1);
            assert_eq!(names.is_err(), is_absent);
            assert!(is_absent || names == Ok((Vec::new(), true)));
            is_absent
        };
        let directory = File {
            serial: 2,
            sort: Sort::Directory,
            access: Access::default(),
            times: Times::default(),
            content: Content::default(),
            links: 2,
            parent: id("1"),
            numbering: Numbering::default(),
            rare: None,
        };
        records.set_file(&id("1.5"), Some(directory));
        records.settle();
        let files = ["1.4", "1.5", "1.5.1", "1.5.1.9", "1.6", "1"];
        let absent = files.map(|file| is_absent(&records, file));
        assert_eq!(absent, [true, false, false, false, true, true]);
    }

    #[test]
    fn an_operation_is_undone_to_the_bit() {
        let mut records = Records::new(false);
        let key = Key::entry(&FileId::ROOT, &name(1));
        records.set(key.clone(), Some(Record::Entry(entry())));
        records.settle();
        let before = (records.sum().to_vec(), records.len());
        records.set(key.clone(), None);
        records.set(Key::entry(&FileId::ROOT, &name(2)), Some(Record::Entry(entry())));
        records.undo();
        records.settle();
        assert_eq!((records.sum().to_vec(), records.len()), before);
        assert_eq!(records.get(&key), Ok(Some(&Record::Entry(entry()))));
    }
}
