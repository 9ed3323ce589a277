//! What a log keeps, and what it says of what it can't.

use std::{fs, io::Write, panic, path::Path};

use base::Rng;

use super::{scratch::Scratch, *};

type Records = Vec<(u64, Vec<u8>)>;

fn read(recovered: &mut Recovered) -> Records {
    std::iter::from_fn(|| recovered.next().unwrap()).collect()
}

fn open(path: &Path) -> (Log, Records) {
    let (log, mut recovered) = Log::open(path).unwrap();
    let records = read(&mut recovered);
    (log, records)
}

fn record(number: u64) -> Vec<u8> {
    (0..number % 23).map(|index| (number * 31 + index) as u8).collect()
}

fn records(numbers: impl Iterator<Item = u64>) -> Records {
    numbers.map(|number| (number, record(number))).collect()
}

/// A log with records from one on, synced after every few.
fn fill(path: &Path, count: u64, per_sync: u64) {
    let (mut log, _) = Log::open(path).unwrap();
    for number in 1..=count {
        log.append(number, &record(number)).unwrap();
        if number % per_sync == 0 {
            log.sync().unwrap();
        }
    }
    log.sync().unwrap();
}

fn only_file(path: &Path) -> PathBuf {
    segment_path(path, 1)
}

/// Where each record of the only file ends.
fn ends(path: &Path) -> Vec<u64> {
    let mut scanner = Scanner::open(&only_file(path), Framer::new(FORMAT), 1, 0).unwrap();
    assert!(scanner.header().unwrap());
    let mut ends = Vec::new();
    while let Step::Record { offset, .. } = scanner.next().unwrap() {
        ends.push(offset + (HEAD + scanner.bytes().len()) as u64);
    }
    ends
}

#[test]
fn what_is_appended_and_synced_is_there_again() {
    let scratch = Scratch::new("log");
    fill(&scratch.path, 50, 7);
    let (mut log, found) = open(&scratch.path);
    assert_eq!(found, records(1..=50));
    assert_eq!((log.first(), log.next()), (1, 51));
    log.append(51, &record(51)).unwrap();
    log.sync().unwrap();
    let (log, mut recovered) = Log::open(&scratch.path).unwrap();
    assert_eq!(recovered.torn(), None);
    assert_eq!(log.bytes(), fs::metadata(only_file(&scratch.path)).unwrap().len());
    recovered.pass_before(49);
    assert_eq!(read(&mut recovered), records(49..=51));
}

#[test]
fn a_log_starts_with_any_number_and_goes_on_without_gaps() {
    let scratch = Scratch::new("log");
    let (mut log, _) = Log::open(&scratch.path).unwrap();
    log.append(1_000, b"a").unwrap();
    for wrong in [0, 1_000, 1_002, u64::MAX] {
        assert!(matches!(log.append(wrong, b"b"), Err(Failure::Unfit(_))), "{wrong}");
    }
    assert!(matches!(log.append(1_001, &vec![0; RECORD_MAX + 1]), Err(Failure::Unfit(_))));
    log.append(1_001, b"b").unwrap();
    log.sync().unwrap();
    drop(log);
    assert_eq!(open(&scratch.path).1, [(1_000, b"a".to_vec()), (1_001, b"b".to_vec())]);
}

#[test]
fn a_log_cut_anywhere_has_exactly_the_whole_records_before_the_cut() {
    let scratch = Scratch::new("log");
    fill(&scratch.path, 12, 3);
    let bytes = fs::read(only_file(&scratch.path)).unwrap();
    let ends = ends(&scratch.path);
    for cut in 0..=bytes.len() {
        fs::write(only_file(&scratch.path), &bytes[..cut]).unwrap();
        let (mut log, mut recovered) = Log::open(&scratch.path).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut as u64).count() as u64;
        assert_eq!(read(&mut recovered), records(1..=whole), "cut at {cut}");
        let is_clean = cut == HEADER || ends.contains(&(cut as u64));
        assert_eq!(recovered.torn().is_none(), is_clean, "cut at {cut}");
        log.append(whole + 1, b"goes on").unwrap();
        log.sync().unwrap();
        drop(log);
        assert_eq!(open(&scratch.path).1.last().unwrap(), &(whole + 1, b"goes on".to_vec()));
    }
}

#[test]
fn a_flipped_byte_is_damage_or_was_in_the_last_record() {
    let scratch = Scratch::new("log");
    fill(&scratch.path, 8, 1);
    let bytes = fs::read(only_file(&scratch.path)).unwrap();
    let last_start = ends(&scratch.path)[6] as usize;
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(only_file(&scratch.path), &flipped).unwrap();
        match Log::open(&scratch.path) {
            Ok((_, mut recovered)) => {
                assert!(at >= last_start, "the flip at {at} was not seen as damage");
                assert!(recovered.torn().is_some_and(|torn| torn.records == 0));
                assert_eq!(read(&mut recovered), records(1..=7), "flip at {at}");
            }
            Err(Failure::Damaged { path, what }) => {
                assert!(at < last_start, "flip at {at}");
                assert_eq!(path, only_file(&scratch.path));
                assert!(what.contains("at byte") && what.contains("restore"), "{what}");
                assert_eq!(fs::read(&path).unwrap(), flipped, "what is damaged is left alone");
            }
            Err(other) => panic!("flip at {at}: {other}"),
        }
    }
}

#[test]
fn what_was_never_synced_may_go_but_is_counted() {
    let scratch = Scratch::new("log");
    fill(&scratch.path, 9, 9);
    let mut bytes = fs::read(only_file(&scratch.path)).unwrap();
    let lost = ends(&scratch.path)[3] as usize + HEAD - 1;
    bytes[lost] ^= 1;
    fs::write(only_file(&scratch.path), &bytes).unwrap();
    let (_, mut recovered) = Log::open(&scratch.path).unwrap();
    assert_eq!(recovered.torn().unwrap().records, 4, "6 to 9 are whole behind 5");
    assert_eq!(read(&mut recovered), records(1..=4));
}

#[test]
fn damage_in_a_file_that_is_not_the_last_is_damage() {
    let scratch = Scratch::new("log");
    let (mut log, _) = Log::open(&scratch.path).unwrap();
    log.segment_max = 100;
    for number in 1..=9 {
        log.append(number, &[7; 60]).unwrap();
    }
    log.sync().unwrap();
    let files = list(&scratch.path).unwrap();
    assert_eq!(files, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    drop(log);
    for (index, first) in files.iter().enumerate().take(8) {
        let copy = scratch.copied();
        let path = segment_path(&copy.path, *first);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(matches!(Log::open(&copy.path), Err(Failure::Damaged { .. })), "{first}");
        fs::remove_file(&path).unwrap();
        let opened = Log::open(&copy.path);
        // The first one may have been dropped; of any other the gap shows.
        assert_eq!(opened.is_ok(), index == 0, "{first}");
    }
}

#[test]
fn files_begin_anew_and_are_dropped_whole() {
    let scratch = Scratch::new("log");
    let (mut log, _) = Log::open(&scratch.path).unwrap();
    log.segment_max = 1_000;
    for number in 1..=100 {
        log.append(number, &[number as u8; 100]).unwrap();
    }
    log.sync().unwrap();
    let files = list(&scratch.path).unwrap();
    assert!(files.len() > 10);
    let before = log.bytes();
    log.drop_before(50).unwrap();
    assert!(log.bytes() < before);
    assert!((40..=50).contains(&log.first()), "{}", log.first());
    let first = log.first();
    log.drop_before(1_000).unwrap();
    let last = *files.last().unwrap();
    assert_eq!(log.first(), last, "the last file stays, it knows what comes next");
    log.append(101, b"x").unwrap();
    log.sync().unwrap();
    drop(log);
    let (log, found) = open(&scratch.path);
    assert_eq!((log.first(), log.next(), found.len() as u64), (last, 102, 102 - last));
    assert!(first < last);
}

#[test]
fn a_new_file_without_its_header_is_torn() {
    let scratch = Scratch::new("log");
    fill(&scratch.path, 5, 1);
    for content in [&b""[..], b"croftl", &[0; HEADER], &[0; 500]] {
        fs::write(segment_path(&scratch.path, 6), content).unwrap();
        let (mut log, mut recovered) = Log::open(&scratch.path).unwrap();
        assert_eq!(recovered.torn().unwrap().bytes, content.len() as u64);
        assert_eq!(read(&mut recovered), records(1..=5));
        log.append(6, b"six").unwrap();
        log.sync().unwrap();
        drop(log);
        assert_eq!(open(&scratch.path).1.len(), 6);
    }
}

#[test]
fn a_file_of_another_version_is_refused_as_that() {
    let scratch = Scratch::new("log");
    fill(&scratch.path, 1, 1);
    let mut bytes = fs::read(only_file(&scratch.path)).unwrap();
    let number = frame::u64_at(&bytes, 16);
    bytes[..HEADER].copy_from_slice(&Framer::new(FORMAT).header_of(9, number));
    fs::write(only_file(&scratch.path), &bytes).unwrap();
    let Err(failure) = Log::open(&scratch.path) else { panic!() };
    assert!(failure.to_string().contains("format 9"), "{failure}");
}

#[test]
fn a_full_disk_loses_nothing_and_the_same_may_be_tried_again() {
    for room in [0, 1, HEAD, 100] {
        let scratch = Scratch::new("log");
        let (mut log, _) = Log::open(&scratch.path).unwrap();
        log.append(1, &[1; 200]).unwrap();
        log.sync().unwrap();
        let before = fs::read(only_file(&scratch.path)).unwrap();
        log.tail.as_mut().unwrap().room = Some(room);
        log.append(2, &[2; 200]).unwrap();
        for _ in 0..2 {
            assert!(log.sync().unwrap_err().is_full());
            assert_eq!(fs::read(only_file(&scratch.path)).unwrap(), before, "nothing torn is left");
        }
        log.append(3, &vec![3; 2 * BUFFER_MAX]).unwrap();
        assert!(log.sync().unwrap_err().is_full() && !log.is_stopped());
        log.tail.as_mut().unwrap().room = None;
        log.sync().unwrap();
        log.append(4, b"four").unwrap();
        log.sync().unwrap();
        drop(log);
        let (_, found) = open(&scratch.path);
        let numbers: Vec<_> = found.iter().map(|(number, bytes)| (*number, bytes.len())).collect();
        assert_eq!(numbers, [(1, 200), (2, 200), (3, 2 * BUFFER_MAX), (4, 4)]);
    }
}

#[test]
fn a_record_that_found_no_room_before_a_new_file_may_be_appended_again() {
    let scratch = Scratch::new("log");
    let (mut log, _) = Log::open(&scratch.path).unwrap();
    log.segment_max = 100;
    log.append(1, &[1; 200]).unwrap();
    log.be_full_for(1);
    assert!(log.append(2, b"two").unwrap_err().is_full());
    assert_eq!(log.next(), 2, "nothing was added");
    log.append(2, b"two").unwrap();
    log.sync().unwrap();
    assert_eq!(open(&scratch.path).1, [(1, vec![1; 200]), (2, b"two".to_vec())]);
}

#[test]
fn a_device_that_is_full_or_cannot_sync_stops_the_log() {
    let full = Path::new("/dev/full");
    let scratch = Scratch::new("log");
    let (mut log, _) = Log::open(&scratch.path).unwrap();
    log.append(1, b"one").unwrap();
    log.sync().unwrap();
    let len = log.tail.as_ref().unwrap().len;
    log.tail = Some(Tail::open(full.into(), len).unwrap());
    log.append(2, b"two").unwrap();
    assert_eq!(log.sync().unwrap_err().errno(), rustix::io::Errno::NOSPC.raw_os_error());
    assert!(matches!(log.sync(), Err(Failure::Stopped)));
}

#[test]
fn contents_that_look_like_records_are_not_found_behind_a_bad_place() {
    let scratch = Scratch::new("log");
    let (mut log, _) = Log::open(&scratch.path).unwrap();
    let mut inner = Vec::new();
    let elsewhere = Place { file: 1, offset: 4_000 };
    Framer::new(FORMAT).frame(&mut inner, elsewhere, 2, 4_000, &[b"a copy of a record"]);
    log.append(1, b"one").unwrap();
    log.append(2, &inner.repeat(20)).unwrap();
    log.sync().unwrap();
    drop(log);
    let path = only_file(&scratch.path);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let (_, mut recovered) = Log::open(&scratch.path).unwrap();
    assert_eq!(read(&mut recovered), [(1, b"one".to_vec())]);
}

#[test]
fn bytes_made_to_mislead_the_search_end_it() {
    let scratch = Scratch::new("log");
    fill(&scratch.path, 1, 1);
    let mut file = fs::OpenOptions::new().append(true).open(only_file(&scratch.path)).unwrap();
    let mut fake = MARKER_AND_LENGTH.to_vec();
    fake.resize(HEAD, 0);
    file.write_all(&fake.repeat(5_000)).unwrap();
    assert!(matches!(Log::open(&scratch.path), Err(Failure::Damaged { .. })));
}

/// A record of 100,000 bytes begins here, so it says.
const MARKER_AND_LENGTH: [u8; 8] = [0xf3, 0xc7, 0x0f, 0x9a, 0xa0, 0x86, 0x01, 0];

/// What a disk may hold after the power fails: of what was written since the last sync any sector may be
/// missing, and the file may be as short as it was then.
fn power_cut(rng: &mut Rng, synced: &[u8], written: &[u8]) -> Vec<u8> {
    let len = match rng.chance(0.5) {
        true => written.len(),
        false => synced.len() + rng.index(written.len() - synced.len() + 1),
    };
    let mut disk = written[..len].to_vec();
    let odds = rng.unit();
    for (index, sector) in disk.chunks_mut(512).enumerate() {
        if rng.chance(odds) {
            for (at, byte) in sector.iter_mut().enumerate() {
                *byte = synced.get(index * 512 + at).copied().unwrap_or(0);
            }
        }
    }
    disk
}

#[test]
fn a_power_cut_takes_only_what_was_not_synced_and_is_never_called_damage() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let scratch = Scratch::new("log");
        let (mut log, _) = Log::open(&scratch.path).unwrap();
        let mut synced = 0;
        let mut disk = Vec::new();
        let mut all = Vec::new();
        for number in 1..=1 + rng.below(30) {
            let bytes = vec![rng.next_u64() as u8; rng.index(900)];
            log.append(number, &bytes).unwrap();
            all.push((number, bytes));
            match rng.below(4) {
                0 => {
                    log.sync().unwrap();
                    synced = number;
                    disk = fs::read(only_file(&scratch.path)).unwrap();
                }
                1 => log.write().unwrap(),
                _ => {}
            }
        }
        log.write().unwrap();
        drop(log);
        let path = only_file(&scratch.path);
        let written = fs::read(&path).unwrap();
        // The header is safe from the start.
        let disk = if disk.is_empty() { written[..HEADER].to_vec() } else { disk };
        fs::write(&path, power_cut(&mut rng, &disk, &written)).unwrap();
        let (mut log, mut recovered) =
            Log::open(&scratch.path).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        let found = read(&mut recovered);
        assert!(found.len() as u64 >= synced, "seed {seed}: {} of {synced}", found.len());
        assert_eq!(found, all[..found.len()], "seed {seed}");
        log.append(found.len() as u64 + 1, b"goes on").unwrap();
        log.sync().unwrap();
    }
}

#[test]
fn losing_what_was_synced_is_noticed_by_the_test_above() {
    let scratch = Scratch::new("log");
    fill(&scratch.path, 30, 1);
    let path = only_file(&scratch.path);
    let written = fs::read(&path).unwrap();
    let noticed = (0..50).filter(|seed| {
        fs::write(&path, power_cut(&mut Rng::new(*seed), &written[..HEADER], &written)).unwrap();
        match Log::open(&scratch.path) {
            Ok((_, mut recovered)) => read(&mut recovered).len() < 30,
            Err(_) => true,
        }
    });
    assert!(noticed.count() > 30);
}
