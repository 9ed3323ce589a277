//! The end of a run: what the group has is what the reference has, to the last attribute.

use std::collections::{BTreeMap, BTreeSet};

use base::FileId;
use directory::{Entry, File, Key, Record, Sort};
use lease::Name;

use crate::{
    Broken,
    reference::{Actor, Ino},
};

use super::{spoken, step::Seen, witness::Witness};

/// The group's records are the reference's files.
pub(crate) fn compare(records: &BTreeMap<Key, Record>, witness: &Witness) -> Result<(), Broken> {
    let mut found: BTreeSet<Ino> = BTreeSet::new();
    for (key, record) in records {
        let Record::File(file) = record else { continue };
        let Some(ino) = witness.ino(&key.file) else {
            return differs(&key.file, "nobody made it");
        };
        if file.links == 0 && !witness.has_open(None, ino) {
            return differs(&key.file, "it has no name, and nobody has it open");
        }
        found.insert(ino);
        compare_file(&key.file, file, ino, witness)?;
        if file.sort == Sort::Directory {
            compare_names(&key.file, ino, records, witness)?;
        }
    }
    let is_named = |ino: &Ino| witness.files().getattr(*ino).is_ok_and(|attr| attr.nlink > 0);
    match witness.files().inos().filter(is_named).find(|ino| !found.contains(ino)) {
        Some(ino) => {
            Err(Broken::new("inv-N1", format!("the group has lost {ino} of the reference")))
        }
        None => Ok(()),
    }
}

fn differs<T>(file: &FileId, what: &str) -> Result<T, Broken> {
    Err(Broken::new("inv-N1", format!("the group has {file}: {what}")))
}

fn compare_file(file: &FileId, record: &File, ino: Ino, witness: &Witness) -> Result<(), Broken> {
    let wrong = |what: &str, found: &dyn std::fmt::Debug, expected: &dyn std::fmt::Debug| {
        let what = format!("{what} of {file}: {found:?}; it should be {expected:?}");
        Err(Broken::new("end state", what))
    };
    let files = witness.files();
    let seen = Seen::Stat(spoken::stat(record));
    let expected = witness
        .stat(ino)
        .map_err(|errno| Broken::new("inv-N1", format!("the reference has no {file}: {errno}")))?;
    if seen != expected {
        return wrong("attributes", &seen, &expected);
    }
    let attributes: Vec<(&[u8], &[u8])> =
        record.attributes().iter().map(|(name, value)| (&name[..], &value[..])).collect();
    let attributes: BTreeMap<_, _> = attributes.into_iter().collect();
    let root = Actor::root();
    let names = files.listxattr(ino).unwrap_or_default();
    let value = |name| (name, files.getxattr(&root, ino, name).unwrap_or_default());
    let expected: BTreeMap<_, _> = names.into_iter().map(value).collect();
    if attributes != expected {
        return wrong("extended attributes", &attributes, &expected);
    }
    if record.sort == Sort::Symlink {
        let target = record.rare.as_ref().map_or(&[][..], |rare| &rare.target);
        let expected = files.readlink(ino).unwrap_or_default();
        if target != expected {
            return wrong("target", &target, &expected);
        }
    }
    let changed = record.times.changed;
    if record.sort != Sort::Directory && !witness.may_have_changed_at(ino, changed) {
        return wrong("time of last change", &changed, &"that of a change");
    }
    let mut locks = record.locks().iter();
    match locks.find(|lock| !witness.has_open(Some(lock.client), ino)) {
        Some(lock) => wrong("a lock", lock, &"gone with its handle"),
        None => Ok(()),
    }
}

fn compare_names(
    directory: &FileId,
    ino: Ino,
    records: &BTreeMap<Key, Record>,
    witness: &Witness,
) -> Result<(), Broken> {
    let found = names(directory, records).map(|(name, entry)| {
        (name.as_bytes().to_vec(), witness.ino(&entry.file).unwrap_or(Ino(0)))
    });
    let found: Vec<(Vec<u8>, Ino)> = found.collect();
    let listed = witness.files().readdir(&Actor::root(), ino).map_err(|errno| {
        Broken::new("inv-N1", format!("the reference has no directory {directory}: {errno:?}"))
    })?;
    let mut expected: Vec<(Vec<u8>, Ino)> =
        listed.into_iter().map(|entry| (entry.name, entry.ino)).collect();
    expected.sort();
    match found == expected {
        true => Ok(()),
        false => differs(directory, &format!("with {found:?}; it should have {expected:?}")),
    }
}

fn names<'a>(
    directory: &'a FileId,
    records: &'a BTreeMap<Key, Record>,
) -> impl Iterator<Item = (&'a Name, &'a Entry)> {
    let all = records.range(Key::file(directory)..);
    let here = all.take_while(|(key, _)| key.file == *directory);
    here.filter_map(|(key, record)| match (&key.name, record) {
        (Some(name), Record::Entry(entry)) => Some((name, entry)),
        _ => None,
    })
}
