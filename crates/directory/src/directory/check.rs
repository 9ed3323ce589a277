//! Whether everything fits together: the invariants of the name space (N1 to N5 of testing).

use std::collections::{BTreeMap, BTreeSet};

use base::FileId;

use crate::{
    charge::{Cost, Quota},
    ledger::Used,
    record::{File, Record, Sort},
    sum::Sum,
};

use super::Directory;

impl Directory {
    /// Says what does not fit together among the records at hand, if anything; of everything, if
    /// everything is.
    pub fn check(&self) -> Result<(), String> {
        let mut files = BTreeMap::new();
        let mut names: BTreeMap<&FileId, Vec<(&FileId, Sort)>> = BTreeMap::new();
        let mut counts: BTreeMap<&FileId, u64> = BTreeMap::new();
        let mut directories: BTreeMap<&FileId, u32> = BTreeMap::new();
        for (key, record) in self.records.iter() {
            match (record, &key.name) {
                (Record::File(file), None) => drop(files.insert(&key.file, &**file)),
                (Record::Entry(entry), Some(_)) => {
                    names.entry(&entry.file).or_default().push((&key.file, entry.sort));
                    *counts.entry(&key.file).or_insert(0) += 1;
                    let is_directory = entry.sort == Sort::Directory;
                    *directories.entry(&key.file).or_insert(0) += u32::from(is_directory);
                }
                _ => return Err(format!("{key:?} has a record of the wrong sort")),
            }
        }
        for (file, record) in &files {
            check_record(file, record)?;
        }
        if !self.records.is_all_at_hand() {
            return Ok(());
        }
        for (file, record) in &files {
            let names = names.remove(file).unwrap_or_default();
            check_names(file, record, &names)?;
            let count = counts.remove(file).unwrap_or(0);
            if record.numbering.names != count {
                return Err(format!("{file} says {} names, has {count}", record.numbering.names));
            }
            let links = 2 + directories.get(file).copied().unwrap_or(0);
            if record.sort == Sort::Directory && record.links != links {
                return Err(format!("N1: {file} has {} links, not {links}", record.links));
            }
            check_above(file, &files)?;
        }
        if let Some((file, _)) = names.first_key_value() {
            return Err(format!("N4: a name leads to {file}, which is dead"));
        }
        if let Some((file, _)) = counts.first_key_value() {
            return Err(format!("N4: {file} has names in it and is dead"));
        }
        self.check_serials(&files)?;
        self.check_indices(&files)?;
        self.check_quota(&files)?;
        let mut sum = Sum::default();
        self.records.iter().for_each(|(key, record)| sum.add(key, record));
        match sum.words() == self.records.sum() {
            true => Ok(()),
            false => Err("the sum of the records is not the sum of their changes".to_owned()),
        }
    }

    fn check_serials(&self, files: &BTreeMap<&FileId, &File>) -> Result<(), String> {
        let mut serials = BTreeSet::new();
        for (file, record) in files {
            if record.serial >= self.serial_next || !serials.insert(record.serial) {
                return Err(format!("N4: the serial number {} of {file}", record.serial));
            }
            // N4: an identifier is used once, so it lies below what was ever given.
            let creators = file.parent().and_then(|parent| files.get(&parent).copied());
            let number = file.number().map_or(0, |number| number.get());
            if creators.is_some_and(|directory| number >= directory.numbering.next) {
                return Err(format!("N4: {file} was never given to anybody"));
            }
        }
        Ok(())
    }

    fn check_indices(&self, files: &BTreeMap<&FileId, &File>) -> Result<(), String> {
        let orphans = files.iter().filter(|(_, record)| record.links == 0).map(|(file, _)| *file);
        if !orphans.eq(&self.orphans) {
            return Err(format!("N5: files without a name are not {:?}", self.orphans));
        }
        if let Some(file) = self.suspects.keys().find(|file| !self.orphans.contains(file)) {
            return Err(format!("N5: {file} has a name and is suspected"));
        }
        for (client, member) in &self.members {
            let is_locked =
                |record: &File| record.locks().iter().any(|lock| lock.client == *client);
            let locked = files.iter().filter(|(_, record)| is_locked(record)).map(|(f, _)| *f);
            if !locked.eq(&member.locked) {
                return Err(format!("files locked by {client:?} are not {:?}", member.locked));
            }
        }
        Ok(())
    }

    fn check_quota(&self, files: &BTreeMap<&FileId, &File>) -> Result<(), String> {
        let mut used = Used::default();
        files.values().filter_map(|record| Cost::of(record)).for_each(|cost| used.add(cost));
        if used != self.ledger.used() {
            return Err(format!("what is used is {used:?}, not {:?}", self.ledger.used()));
        }
        let mut escrow: BTreeMap<u32, Quota> = BTreeMap::new();
        for (uid, quota) in self.members.values().flat_map(|member| &member.session.escrow) {
            escrow.entry(*uid).or_default().add(*quota);
        }
        escrow.retain(|_, quota| *quota != Quota::default());
        match escrow == self.ledger.escrow() {
            true => Ok(()),
            false => Err(format!("{escrow:?} is set aside, not {:?}", self.ledger.escrow())),
        }
    }
}

fn check_record(file: &FileId, record: &File) -> Result<(), String> {
    if file.is_root() && record.sort != Sort::Directory {
        return Err("the root is no directory".to_owned());
    }
    Ok(())
}

fn check_names(file: &FileId, record: &File, names: &[(&FileId, Sort)]) -> Result<(), String> {
    let expected = match record.sort {
        Sort::Directory => usize::from(!file.is_root()),
        Sort::Regular | Sort::Symlink | Sort::Special(_) => record.links as usize,
    };
    if names.len() != expected {
        return Err(format!("N1: {file} has {} names and {expected} links", names.len()));
    }
    if names.iter().any(|(_, sort)| *sort != record.sort) {
        return Err(format!("{file} is called something that it is not"));
    }
    let is_there = names.iter().any(|(directory, _)| **directory == record.parent);
    if record.sort == Sort::Directory && !file.is_root() && !is_there {
        return Err(format!("N2: {file} does not lie in {}", record.parent));
    }
    Ok(())
}

fn check_above(file: &FileId, files: &BTreeMap<&FileId, &File>) -> Result<(), String> {
    let Some(mut record) = files.get(file).filter(|record| record.sort == Sort::Directory) else {
        return Ok(());
    };
    let mut at = file;
    for _ in 0..files.len() {
        if at.is_root() {
            return Ok(());
        }
        at = &record.parent;
        let Some(above) = files.get(at) else {
            return Err(format!("N2: {file} lies below {at}, which is dead"));
        };
        record = above;
    }
    Err(format!("N2: {file} lies below itself"))
}
