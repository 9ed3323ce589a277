//! A check of everything while it is in use: it finds damage, and nothing where nothing is wrong.

use std::sync::atomic::{AtomicBool, Ordering};

use directory::{File, Key, Record, record::Content};

use super::{cells::*, *};
use crate::{Report, Store};

fn do_it(machine: &Machine, act: Act) -> Reply {
    machine.desk().call(&Actor::ROOT, Call::Do(act)).unwrap()
}

/// A file with these bytes, as a mount makes it. Its number.
fn write(machine: &Machine, directory: &FileId, name: &str, bytes: &[u8]) -> u64 {
    let name = Name::new(name.as_bytes()).unwrap();
    let (mode, birth) = (0o644, Birth::default());
    let made = do_it(machine, Act::Create { directory: directory.clone(), name, mode, birth });
    let Reply::Entry(entry, Some(record)) = made else { panic!("no file: {made:?}") };
    machine.content().put(record.serial, bytes).unwrap();
    let home = machine.neighbours().can_be().then(|| machine.desk().me());
    let (size, version) = (bytes.len() as u64, machine.desk().version());
    let digest = Some(crate::Neighbours::digest(bytes));
    let content = Content { size, allocated: size, home, version, digest, is_live: false };
    do_it(machine, Act::SetContent { file: entry.file, content });
    record.serial
}

fn check(machine: &Machine) -> Report {
    machine.fsck().run(false).unwrap()
}

/// What is wrong, or may be.
fn found(report: &Report) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.what.as_str()).collect()
}

/// A machine with a few files, and the number of one.
fn small(name: &str) -> (Home, Machine, u64) {
    let home = Home::init(name);
    let machine = Machine::start(&home.0).unwrap();
    let work = mkdir(&machine, &FileId::ROOT, "work");
    let serial = write(&machine, &work, "precious", b"data");
    mkdir(&machine, &work, "deep");
    (home, machine, serial)
}

/// Changes the record of a file in the store of a machine that does not run.
fn damage(home: &Home, serial: u64, change: impl Fn(&mut File)) {
    let store = Store::open(&home.0.join("store")).unwrap();
    let is_it = |record: &Record| matches!(record, Record::File(file) if file.serial == serial);
    let mut records = store.records().map(Result::unwrap);
    let (key, record): (Key, Record) = records.find(|(_, record)| is_it(record)).unwrap();
    drop(records);
    let Record::File(file) = record else { unreachable!("it is a file's") };
    let mut file = File::clone(&file);
    change(&mut file);
    let (mark, state) = store.checkpoint().unwrap().unwrap();
    store.save(mark, &state, vec![(key, Some(Record::File(file.into())))]).unwrap();
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let (_home, machine, _) = small("fsck-clean");
    let report = check(&machine);
    assert_eq!(found(&report), Vec::<&str>::new());
    assert!(report.is_well());
    assert_eq!((report.files, report.names), (4, 3));
    assert_eq!((report.contents, report.content_bytes), (1, 4));
}

#[test]
fn a_record_that_has_changed_on_the_disk_is_found() {
    let (home, machine, serial) = small("fsck-record");
    machine.stop().unwrap();
    damage(&home, serial, |file| file.links = 2);
    let machine = Machine::start(&home.0).unwrap();
    let report = check(&machine);
    assert!(!report.is_well());
    let found = found(&report);
    assert!(found.iter().any(|what| what.contains("1 names and should have 2")), "{found:?}");
    assert!(found.iter().any(|what| what.contains("the sum of the records")), "{found:?}");
    assert!(report.findings.iter().all(|finding| finding.remedy.contains("from a copy")));
}

#[test]
fn bytes_that_are_gone_or_too_few_are_found() {
    let (_home, machine, serial) = small("fsck-bytes");
    machine.content().put(serial, b"dat").unwrap();
    let report = check(&machine);
    assert!(!report.is_well());
    assert!(found(&report)[0].contains("of the 4 bytes"), "{report:?}");
    assert!(found(&report)[0].contains("only 3 are on this machine"), "{report:?}");
    machine.content().remove(serial).unwrap();
    assert!(found(&check(&machine))[0].contains("only 0 are on this machine"));
}

#[test]
fn bytes_of_files_that_are_no_more_are_told_and_removed_on_request_only() {
    let (_home, machine, serial) = small("fsck-strays");
    machine.content().put(1 << 40, b"nobody wants this").unwrap();
    let report = check(&machine);
    assert_eq!(found(&report), ["17 bytes lie here of 1 files that are no more"]);
    assert!(report.is_well(), "it does no harm");
    assert_eq!(check(&machine), report, "looking changes nothing");
    let mended = machine.fsck().run(true).unwrap();
    assert_eq!(found(&mended), ["17 bytes lay here of 1 files that are no more"]);
    assert_eq!(found(&check(&machine)), Vec::<&str>::new());
    assert_eq!(machine.content().get(serial).unwrap().unwrap(), b"data");
}

#[test]
fn members_are_checked_while_others_work_and_whoever_is_none_says_so() {
    let (first, one) = super::cells::found("fsck-cell-1");
    let others = ["fsck-cell-2", "fsck-cell-3"].map(|name| join(&first, name));
    let refusal = others[0].1.fsck().run(false).unwrap_err().to_string();
    assert!(refusal.contains("is no member"), "{refusal}");
    let (_fourth, four) = join(&first, "fsck-cell-4");
    until("growing", || members(&one) == 4 && members(&four) == 4);
    let work = mkdir(&four, &FileId::ROOT, "work");
    let (is_over, others) = (AtomicBool::new(false), [&others[0].1, &others[1].1, &four]);
    let reports = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                write(&four, &work, &format!("file-{number}"), b"bytes");
            }
        });
        let reports = [0, 1, 2, 0, 1, 2].map(|number| others[number].fsck().run(false));
        is_over.store(true, Ordering::Relaxed);
        reports
    });
    for report in reports {
        assert_eq!(found(&report.unwrap()), Vec::<&str>::new());
    }
    let report = check(&four);
    assert_eq!(found(&report), Vec::<&str>::new());
    assert!(report.contents > 0 && report.contents + 1 == report.names, "{report:?}");
}
