//! What a store gives back.

use std::path::Path;

use directory::{Entry, File, Sort};
use triomphe::Arc;

use super::*;
use crate::log::scratch::Scratch;

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

fn file(serial: u64) -> Record {
    let numbering = directory::record::Numbering::of(lease::Client(1));
    Record::File(Arc::new(File {
        serial,
        sort: Sort::Directory,
        access: Default::default(),
        times: Default::default(),
        content: Default::default(),
        links: 1,
        parent: FileId::ROOT,
        numbering,
        rare: None,
    }))
}

fn entry(id: &str) -> Entry {
    Entry { file: id.parse().unwrap(), sort: Sort::Regular }
}

fn key(id: &str, text: Option<&str>) -> Key {
    Key { file: id.parse().unwrap(), name: text.map(name) }
}

#[test]
fn a_file_is_found_by_its_number_as_long_as_it_is_stored() {
    let scratch = Scratch::new("store");
    let (one, other) = (key("1.2", None), key("1.3", None));
    let store = Store::open(&scratch.path).unwrap();
    let changes = vec![(one.clone(), Some(file(7))), (other.clone(), Some(file(8)))];
    store.save(1, b"", changes).unwrap();
    let found = |store: &Store| [7, 8, 9].map(|serial| store.file(serial).unwrap());
    assert_eq!(found(&store), [Some(one.file.clone()), Some(other.file.clone()), None]);
    store.save(2, b"", vec![(one.clone(), None)]).unwrap();
    assert_eq!(found(&store), [None, Some(other.file.clone()), None]);
    drop(store);
    let store = Store::open(&scratch.path).unwrap();
    assert_eq!(found(&store), [None, Some(other.file), None]);
    store.replace(3, b"", vec![(one.clone(), Some(file(9)))]).unwrap();
    assert_eq!(found(&store), [None, None, Some(one.file)]);
}

#[test]
fn what_is_saved_is_loaded_also_after_opening_again() {
    let scratch = Scratch::new("store");
    let (own, named) = (key("1.2", None), key("1.2", Some("a")));
    {
        let store = Store::open(&scratch.path).unwrap();
        assert_eq!(store.checkpoint().unwrap(), None);
        let changes = vec![
            (own.clone(), Some(file(7))),
            (named.clone(), Some(Record::Entry(entry("1.2.1")))),
            (key("1.2", Some("b")), Some(Record::Entry(entry("1.2.2")))),
        ];
        store.save(3, b"three", changes).unwrap();
        store.save(4, b"four", vec![(named.clone(), None)]).unwrap();
    }
    let store = Store::open(&scratch.path).unwrap();
    assert_eq!(store.checkpoint().unwrap(), Some((4, b"four".to_vec())));
    let absent = Absent { keys: vec![own.clone(), named.clone()], ..Absent::default() };
    let loaded = store.load(&absent).unwrap();
    assert_eq!(loaded.records, [(own.clone(), Some(file(7))), (named, None)]);
    let all: Vec<_> = store.records().map(Result::unwrap).collect();
    let left = (key("1.2", Some("b")), Record::Entry(entry("1.2.2")));
    assert_eq!(all, [(own, file(7)), left]);
}

#[test]
fn a_state_of_others_leaves_nothing_of_what_was_there() {
    let scratch = Scratch::new("store");
    let store = Store::open(&scratch.path).unwrap();
    let old = vec![
        (key("1", None), Some(file(1))),
        (key("1", Some("a")), Some(Record::Entry(entry("1.1")))),
    ];
    store.save(3, b"three", old).unwrap();
    let new = vec![(key("1", None), Some(file(9))), (key("2", None), Some(file(2)))];
    store.replace(7, b"seven", new).unwrap();
    assert_eq!(store.checkpoint().unwrap(), Some((7, b"seven".to_vec())));
    let everything = store.load(&Absent::everything()).unwrap().everything.unwrap();
    assert_eq!(everything, [(key("1", None), file(9)), (key("2", None), file(2))]);
}

#[test]
fn names_come_in_pages_and_end_where_the_directory_does() {
    let scratch = Scratch::new("store");
    let store = Store::open(&scratch.path).unwrap();
    let text = |index: usize| format!("{index:05}");
    let count = 2 * PAGE_MAX + 10;
    let mut changes = vec![(key("1", None), Some(file(1))), (key("1.1", None), Some(file(2)))];
    for index in 0..count {
        changes.push((key("1", Some(&text(index))), Some(Record::Entry(entry("1.5")))));
    }
    changes.push((key("1.1", Some("inside")), Some(Record::Entry(entry("1.1.1")))));
    changes.push((key("2", None), Some(file(3))));
    store.save(1, b"", changes).unwrap();
    let page = |id: &str, after: Option<Name>| {
        let absent = Absent { pages: vec![(id.parse().unwrap(), after)], ..Absent::default() };
        store.load(&absent).unwrap().pages.remove(0)
    };
    let mut found = Vec::new();
    let mut after = None;
    for is_all in [false, false, true] {
        let page = page("1", after.clone());
        assert_eq!((page.is_all, &page.after), (is_all, &after));
        after = page.names.last().map(|(name, _)| name.clone());
        found.extend(page.names.into_iter().map(|(name, _)| name));
    }
    assert_eq!(found, (0..count).map(|index| name(&text(index))).collect::<Vec<_>>());
    assert_eq!(page("1", after).names, []);
    let exact = page("1", Some(name(&text(count - PAGE_MAX - 1))));
    assert!(exact.is_all && exact.names.len() == PAGE_MAX);
    for empty in ["2", "3", "root"] {
        let page = page(empty, None);
        assert!(page.is_all && page.names.is_empty(), "{empty}");
    }
}

#[test]
fn the_checkpoint_is_no_record_and_comes_after_all_that_could_be() {
    let greatest = std::num::NonZeroU64::MAX;
    let last = FileId::ROOT.child(greatest).and_then(|id| id.child(greatest)).unwrap();
    let last = Key { file: last, name: Name::new(&[0xff; 255]) };
    assert!(key::encode(&last).as_slice() < CHECKPOINT);
    key::decode(CHECKPOINT).unwrap_err();
    key::decode(&[CHECKPOINT, b"name"].concat()).unwrap_err();
    let scratch = Scratch::new("store");
    let store = Store::open(&scratch.path).unwrap();
    let directory = last.file.clone();
    store.save(1, b"state", vec![(last.clone(), Some(Record::Entry(entry("1"))))]).unwrap();
    assert_eq!(store.records().map(Result::unwrap).map(|(key, _)| key).collect::<Vec<_>>(), [last]);
    let absent = Absent { pages: vec![(directory, None)], ..Absent::default() };
    assert_eq!(store.load(&absent).unwrap().pages[0].names.len(), 1);
}

/// A copy of a store as it lies on the disk while it is in use, opened.
fn seen_by_another(scratch: &Scratch) -> (Scratch, Store) {
    let copy = scratch.copied();
    let store = Store::open(&copy.path).unwrap();
    (copy, store)
}

#[test]
fn a_checkpoint_and_its_changes_are_there_together_or_not_at_all() {
    let scratch = Scratch::new("store");
    let store = Store::open(&scratch.path).unwrap();
    for height in 1..=5 {
        let changes = (0..50)
            .map(|index| (key(&format!("{}", index + 1), None), Some(file(height * 100 + index))));
        store.save(height, &height.to_le_bytes(), changes.collect()).unwrap();
    }
    let is_one_state = |store: &Store| {
        let Some((height, state)) = store.checkpoint().unwrap() else {
            return store.records().count() == 0;
        };
        state == height.to_le_bytes()
            && store
                .records()
                .map(Result::unwrap)
                .enumerate()
                .all(|(index, (_, record))| record == file(height * 100 + index as u64))
    };
    let (copy, seen) = seen_by_another(&scratch);
    assert_eq!(seen.checkpoint().unwrap().unwrap().0, 5, "safe on return");
    assert!(is_one_state(&seen));
    drop(seen);
    drop(copy);
    // Its journal cut anywhere: an older state, and a whole one.
    let copy = scratch.copied();
    let journal = largest(&copy.path);
    let len = std::fs::metadata(&journal).unwrap().len();
    let used = std::fs::read(&journal).unwrap().iter().rposition(|byte| *byte != 0).unwrap() as u64;
    for step in 0..20 {
        let copy = scratch.copied();
        let journal = copy.path.join(journal.file_name().unwrap());
        let cut = used * step / 20;
        let opened = std::fs::OpenOptions::new().write(true).open(&journal).unwrap();
        opened.set_len(cut.min(len)).unwrap();
        if let Ok(store) = Store::open(&copy.path) {
            assert!(is_one_state(&store), "cut at {cut}");
        }
    }
}

fn largest(path: &Path) -> std::path::PathBuf {
    let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "jnl")).max().unwrap()
}

#[test]
fn a_log_that_does_not_fit_the_checkpoint_is_named_so() {
    let scratch = Scratch::new("store");
    let store = Store::open(&scratch.path).unwrap();
    for (height, first, next) in [(0, 0, 0), (0, 1, 9), (5, 1, 6), (5, 6, 6), (5, 3, 70)] {
        store.check_reach(height, first).unwrap();
        store.check_end(height, next).unwrap();
    }
    for (height, first) in [(0, 2), (5, 7), (5, 100)] {
        let Err(Failure::Damaged { what, .. }) = store.check_reach(height, first) else { panic!() };
        assert!(what.contains("begins only at") && what.contains("restore"), "{what}");
    }
    for (height, next) in [(1, 0), (1, 1), (5, 5)] {
        let Err(Failure::Damaged { what, .. }) = store.check_end(height, next) else { panic!() };
        assert!(what.contains("lost its end"), "{what}");
    }
}

#[test]
fn a_record_that_does_not_decode_is_damage_and_says_where() {
    let scratch = Scratch::new("store");
    let store = Store::open(&scratch.path).unwrap();
    let (own, named) = (key("1", None), key("1", Some("a")));
    store.records.insert(key::encode(&own), [9, 9]).unwrap();
    store.records.insert(key::encode(&named), base::encode(&file(1))).unwrap();
    for bad in [own, named] {
        let absent = Absent { keys: vec![bad], ..Absent::default() };
        let Err(Failure::Damaged { what, .. }) = store.load(&absent) else { panic!() };
        assert!(what.contains("under"), "{what}");
    }
    let absent = Absent { pages: vec![("1".parse().unwrap(), None)], ..Absent::default() };
    assert!(matches!(store.load(&absent), Err(Failure::Damaged { .. })));
    assert!(store.records().all(|found| found.is_err()));
}

#[test]
fn a_store_in_use_says_so() {
    let scratch = Scratch::new("store");
    let _store = Store::open(&scratch.path).unwrap();
    let Err(failure) = Store::open(&scratch.path) else { panic!() };
    assert!(failure.to_string().contains("in use"), "{failure}");
}
