//! What is put comes back, whatever happens in between.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read, Write},
    os::unix::fs::MetadataExt,
};

use base::Rng;
use proptest::prelude::*;

use super::{
    tidy::{MOSTLY, SOMEWHAT},
    *,
};
use crate::log::scratch::Scratch;

/// A machine's directory with a store and contents in it.
struct Home {
    content: Content,
    /// Dropped after what lies in it.
    scratch: Scratch,
}

impl Home {
    fn new() -> Home {
        Home::at(Scratch::new("content"))
    }

    fn at(scratch: Scratch) -> Home {
        Home::try_at(&scratch).map(|content| Home { content, scratch }).unwrap()
    }

    fn try_at(scratch: &Scratch) -> Result<Content, Failure> {
        let store = Store::open(&scratch.path.join("store"))?;
        let content = Content::open(&scratch.path.join("content"), &store)?;
        content.pack.lock().unwrap().segment_max = 4_000;
        Ok(content)
    }

    /// Ends without a word and begins again.
    fn reopened(self) -> Home {
        let Home { content, scratch } = self;
        drop(content);
        Home::at(scratch)
    }

    /// What another would find that looked at the disk now.
    fn found_now(&self) -> Home {
        Home::at(self.scratch.copied())
    }

    fn segments(&self) -> Vec<PathBuf> {
        let mut paths: Vec<_> = fs::read_dir(self.scratch.path.join("content/pack"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        paths
    }

    fn read(&self, serial: u64) -> Option<Vec<u8>> {
        let packed = self.content.get(serial).unwrap();
        let backing = self.content.backing(serial).unwrap();
        assert!(packed.is_none() || backing.is_none(), "{serial} is in two places");
        packed.or_else(|| backing.map(all))
    }

    fn check(&self, model: &BTreeMap<u64, Vec<u8>>, serials: u64) {
        for serial in 0..serials {
            assert_eq!(self.read(serial).as_ref(), model.get(&serial), "of file {serial}");
        }
        let found: Vec<u64> = self.content.serials().unwrap().map(Result::unwrap).collect();
        assert_eq!(found, model.keys().copied().collect::<Vec<_>>());
    }
}

fn all(mut file: File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn bytes(serial: u64, count: usize) -> Vec<u8> {
    (0..count).map(|index| (serial as usize * 7 + index) as u8).collect()
}

#[test]
fn what_is_put_is_got_and_replaced_and_removed() {
    let home = Home::new();
    let content = &home.content;
    assert_eq!(content.get(1).unwrap(), None);
    for count in [0, 1, 100, 10_000] {
        content.put(1, &bytes(1, count)).unwrap();
        assert_eq!(content.get(1).unwrap(), Some(bytes(1, count)));
        assert!(content.backing(1).unwrap().is_none());
    }
    content.remove(1).unwrap();
    content.remove(1).unwrap();
    content.remove(2).unwrap();
    assert_eq!(content.get(1).unwrap(), None);
    assert!(matches!(content.put(1, &vec![0; PACKED_MAX + 1]), Err(Failure::Unfit(_))));
    assert_eq!(content.get(1).unwrap(), None);
}

#[test]
fn a_file_is_packed_or_backed_and_changes_between_the_two() {
    let home = Home::new();
    let content = &home.content;
    content.put(5, b"packed").unwrap();
    let mut file = content.make_backing(5, b"backed").unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    file.write_all(b" more").unwrap();
    assert_eq!(content.get(5).unwrap(), None);
    assert_eq!(all(content.backing(5).unwrap().unwrap()), b"backed more");
    content.put(5, b"packed again").unwrap();
    assert!(content.backing(5).unwrap().is_none());
    assert_eq!(home.read(5).unwrap(), b"packed again");
    content.make_backing(5, b"once more").unwrap();
    content.make_backing(5, b"and more").unwrap();
    content.sync().unwrap();
    assert_eq!(home.read(5).unwrap(), b"and more");
    content.remove(5).unwrap();
    assert_eq!(home.read(5), None);
    content.tidy().unwrap();
    assert!(!backing_path(&content.files, 5).exists());
}

#[test]
fn a_replaced_backing_file_goes_once_the_packed_content_is_safe() {
    let home = Home::new();
    home.content.make_backing(3, b"old").unwrap();
    home.content.tidy().unwrap();
    home.content.put(3, b"new").unwrap();
    let path = backing_path(&home.content.files, 3);
    assert!(path.exists(), "a power cut may still take the packed one");
    let home = home.reopened();
    assert_eq!(home.read(3).unwrap(), b"new");
    assert!(!path.exists());
}

#[test]
fn everything_is_there_after_an_end_without_a_sync() {
    let mut home = Home::new();
    let mut model = BTreeMap::new();
    for serial in 0..100 {
        let bytes = bytes(serial, serial as usize * 3);
        match serial % 3 {
            0 => drop(home.content.make_backing(serial, &bytes).unwrap()),
            _ => home.content.put(serial, &bytes).unwrap(),
        }
        model.insert(serial, bytes);
        if serial % 10 == 9 {
            home.content.remove(serial - 5).unwrap();
            model.remove(&(serial - 5));
        }
    }
    home.check(&model, 101);
    home = home.found_now();
    home.check(&model, 101);
    assert_eq!(home.content.torn_bytes(), 0);
    home.reopened().check(&model, 101);
}

/// Contents with records behind the index, and what they were, record by record.
fn unindexed() -> (Home, Vec<(u64, Vec<u8>)>) {
    let home = Home::new();
    home.content.put(1, b"indexed").unwrap();
    home.content.flush().unwrap();
    let puts: Vec<_> = (1..6).map(|serial| (serial, bytes(serial, 5 + serial as usize))).collect();
    (home, puts)
}

#[test]
fn a_pack_cut_anywhere_behind_the_index_has_the_whole_records_before_the_cut() {
    let (home, puts) = unindexed();
    let path = home.segments().pop().unwrap();
    let start = fs::metadata(&path).unwrap().len();
    let mut ends = Vec::new();
    for (serial, bytes) in &puts {
        home.content.put(*serial, bytes).unwrap();
        ends.push(fs::metadata(&path).unwrap().len());
    }
    let end = *ends.last().unwrap();
    for cut in start..=end {
        let copy = home.scratch.copied();
        let path = copy.path.join("content/pack").join(path.file_name().unwrap());
        File::options().write(true).open(&path).unwrap().set_len(cut).unwrap();
        let found = Home::at(copy);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let mut model = BTreeMap::from([(1, b"indexed".to_vec())]);
        model.extend(puts[..whole].iter().cloned());
        found.check(&model, 7);
        assert_eq!(found.content.torn_bytes() == 0, cut == start || ends.contains(&cut));
    }
    // What the index has must be there.
    File::options().write(true).open(&path).unwrap().set_len(start - 1).unwrap();
    let copy = home.scratch.copied();
    assert!(matches!(Home::try_at(&copy), Err(Failure::Damaged { .. })));
}

#[test]
fn a_bad_record_is_damage_if_a_later_one_knows_that_it_was_safe() {
    for is_synced in [false, true] {
        let (home, puts) = unindexed();
        let path = home.segments().pop().unwrap();
        let start = fs::metadata(&path).unwrap().len();
        for (serial, bytes) in &puts {
            home.content.put(*serial, bytes).unwrap();
            if is_synced && *serial == 2 {
                home.content.sync().unwrap();
            }
        }
        let copy = home.scratch.copied();
        let path = copy.path.join("content/pack").join(path.file_name().unwrap());
        let mut bytes = fs::read(&path).unwrap();
        bytes[start as usize + HEAD] ^= 1;
        fs::write(&path, &bytes).unwrap();
        match Home::try_at(&copy) {
            Err(Failure::Damaged { what, .. }) => {
                assert!(is_synced && what.contains("restore"), "{what}");
                assert_eq!(fs::read(&path).unwrap(), bytes, "what is damaged is left alone");
            }
            Ok(content) => {
                assert!(!is_synced);
                assert_eq!(content.get(1).unwrap().unwrap(), b"indexed", "the one before");
                assert_eq!(content.get(5).unwrap().unwrap(), puts[4].1, "each stands for itself");
                assert!(content.torn_bytes() > 0);
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_content_that_changed_on_disk_is_not_given_out() {
    let home = Home::new();
    home.content.put(1, b"good").unwrap();
    home.content.put(2, b"good too").unwrap();
    home.content.flush().unwrap();
    let path = home.segments().pop().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[crate::log::frame::HEADER + HEAD + LABEL] ^= 1;
    fs::write(&path, bytes).unwrap();
    let Err(Failure::Damaged { what, .. }) = home.content.get(1) else { panic!() };
    assert!(what.contains("file 1"), "{what}");
    assert_eq!(home.content.get(2).unwrap().unwrap(), b"good too");
}

#[test]
fn a_backing_file_that_did_not_make_it_leaves_the_packed_content() {
    let home = Home::new();
    home.content.put(1, b"packed").unwrap();
    home.content.put(2, b"packed").unwrap();
    home.content.flush().unwrap();
    home.content.make_backing(1, b"packed and more").unwrap();
    home.content.make_backing(2, b"packed and more").unwrap();
    // As after a power cut: one file is gone, the other one empty.
    let copy = home.scratch.copied();
    let files = copy.path.join("content/files");
    fs::remove_file(backing_path(&files, 1)).unwrap();
    fs::write(backing_path(&files, 2), b"").unwrap();
    let found = Home::at(copy);
    assert_eq!(found.read(1).unwrap(), b"packed");
    assert_eq!(found.read(2).unwrap(), b"packed");
    assert!(!backing_path(&files, 2).exists());
    // And as after a crash of only this program.
    let found = home.found_now();
    assert_eq!(found.read(1).unwrap(), b"packed and more");
}

#[test]
fn a_backing_file_that_was_cut_is_not_taken_for_one_that_did_not_make_it() {
    let home = Home::new();
    home.content.put(1, &bytes(1, 500)).unwrap();
    let file = home.content.make_backing(1, &bytes(1, 500)).unwrap();
    home.content.note_cut(1, 20).unwrap();
    file.set_len(20).unwrap();
    assert_eq!(home.found_now().read(1).unwrap(), bytes(1, 500)[..20]);
    home.content.sync().unwrap();
    assert_eq!(home.reopened().read(1).unwrap(), bytes(1, 500)[..20]);
}

#[test]
fn a_full_disk_refuses_and_leaves_everything_usable() {
    for room in [0, 1, HEAD, HEAD + LABEL + 2] {
        let home = Home::new();
        home.content.put(1, b"before").unwrap();
        home.content.pack.lock().unwrap().tail.room = Some(room);
        let failure = home.content.put(2, b"no room for this").unwrap_err();
        assert_eq!(failure.errno(), rustix::io::Errno::NOSPC.raw_os_error());
        home.content.pack.lock().unwrap().tail.room = Some(0);
        assert!(home.content.make_backing(2, b"nor for this").is_err());
        home.content.remove(1).unwrap();
        assert_eq!((home.read(1), home.read(2)), (None, None));
        home.content.pack.lock().unwrap().tail.room = None;
        home.content.put(3, b"after").unwrap();
        home.content.sync().unwrap();
        let found = home.found_now();
        assert_eq!(found.read(3).unwrap(), b"after");
        assert_eq!(found.read(2), None);
        assert_eq!(found.content.torn_bytes(), 0);
    }
}

#[test]
fn a_failed_sync_puts_the_contents_out_of_use() {
    let home = Home::new();
    home.content.put(1, b"one").unwrap();
    {
        let mut pack = home.content.pack.lock().unwrap();
        pack.tail.file = Arc::new(File::open("/dev/full").unwrap());
    }
    assert!(home.content.sync().is_err());
    assert!(matches!(home.content.put(2, b"two"), Err(Failure::Stopped)));
    assert!(matches!(home.content.get(1), Err(Failure::Stopped)));
    assert!(matches!(home.content.sync(), Err(Failure::Stopped)));
}

#[test]
fn what_could_not_be_opened_is_made_safe_the_next_time() {
    let home = Home::new();
    home.content.put(1, b"one").unwrap();
    drop(home.content.make_backing(2, b"two").unwrap());
    home.content.settle(2);
    let path = super::backing_path(&home.content.files, 2);
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    std::os::unix::fs::symlink(&path, &path).unwrap();
    assert!(home.content.sync().unwrap_err().to_string().contains("can't open"));
    assert!(!home.content.is_stopped());
    home.content.put(3, b"three").unwrap();
    {
        let pack = home.content.pack.lock().unwrap();
        assert!(pack.settled.contains(&2) && !pack.shards.is_empty());
        assert!(pack.safe < pack.tail.len, "nothing was said to be safe");
    }
    fs::rename(&aside, &path).unwrap();
    home.content.sync().unwrap();
    {
        let pack = home.content.pack.lock().unwrap();
        assert!(pack.settled.is_empty() && pack.shards.is_empty());
        assert_eq!(pack.safe, pack.tail.len);
    }
    for (serial, content) in [(1, "one"), (2, "two"), (3, "three")] {
        assert_eq!(home.read(serial).unwrap(), content.as_bytes());
    }
}

#[test]
fn the_dead_give_back_what_they_took() {
    let home = Home::new();
    for serial in 0..100 {
        home.content.put(serial, &bytes(serial, 400)).unwrap();
    }
    home.content.tidy().unwrap();
    let before = home.segments().len();
    for serial in (0..100).filter(|serial| serial % 10 != 0) {
        home.content.remove(serial).unwrap();
    }
    for _ in 0..before {
        home.content.tidy().unwrap();
    }
    assert!(home.segments().len() * 3 < before, "{} of {before}", home.segments().len());
    let model = (0..10).map(|tens| (tens * 10, bytes(tens * 10, 400))).collect();
    home.check(&model, 100);
    home.reopened().check(&model, 100);
}

#[test]
fn where_room_is_scarce_segments_that_are_less_than_half_dead_give_theirs_back() {
    let home = Home::new();
    (0..100).for_each(|serial| home.content.put(serial, &bytes(serial, 400)).unwrap());
    let gone = |serial: &u64| serial.is_multiple_of(3);
    (0..100).filter(gone).for_each(|serial| home.content.remove(serial).unwrap());
    home.content.flush().unwrap();
    let before = home.segments().len();
    let mut indexed = home.content.indexed.lock().unwrap();
    assert!(!home.content.compact(&mut indexed, MOSTLY).unwrap());
    while home.content.compact(&mut indexed, SOMEWHAT).unwrap() {}
    drop(indexed);
    assert!(home.segments().len() * 4 < before * 3, "{} of {before}", home.segments().len());
    let alive = (0..100).filter(|serial| !gone(serial));
    let model = alive.map(|serial| (serial, bytes(serial, 400))).collect();
    home.check(&model, 100);
    home.reopened().check(&model, 100);
}

#[test]
fn what_the_group_will_need_is_not_told_as_room() {
    let home = Home::new();
    let before = home.content.space().unwrap().available_bytes;
    home.content.owe(before / 2);
    assert!(home.content.space().unwrap().available_bytes < before / 4 * 3);
    home.content.owe(u64::MAX);
    assert_eq!(home.content.space().unwrap().available_bytes, 0);
    home.content.owe(0);
    assert!(home.content.space().unwrap().available_bytes > before / 4 * 3);
}

#[test]
fn the_overlay_is_bounded_without_anybody_syncing() {
    let home = Home::new();
    home.content.pack.lock().unwrap().segment_max = SEGMENT_MAX;
    for serial in 0..OVERLAY_MAX as u64 + 10 {
        home.content.put(serial, b"").unwrap();
    }
    assert!(home.content.pack.lock().unwrap().overlay.len() <= 10);
    home.content.sync().unwrap();
    assert_eq!(home.content.get(3).unwrap().unwrap(), b"");
}

#[test]
fn room_is_told_in_bytes() {
    let space = Home::new().content.space().unwrap();
    assert!(space.total_bytes >= space.free_bytes && space.free_bytes >= space.available_bytes);
    assert!(space.block_bytes >= 512 && space.total_bytes > 1 << 20);
}

#[test]
fn threads_that_put_get_sync_and_tidy_do_not_disturb_each_other() {
    let home = Home::new();
    let content = &home.content;
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                for round in 0..300 {
                    let serial = 3 * rng.below(20) + thread;
                    let bytes = bytes(round, rng.index(300));
                    match rng.chance(0.1) {
                        true => drop(content.make_backing(serial, &bytes).unwrap()),
                        false => content.put(serial, &bytes).unwrap(),
                    }
                    let found = content.get(serial).unwrap();
                    let found = found.or_else(|| content.backing(serial).unwrap().map(all));
                    assert_eq!(found, Some(bytes));
                }
            });
        }
        for _ in 0..30 {
            content.sync().unwrap();
            content.tidy().unwrap();
        }
    });
    home.reopened().content.tidy().unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Put(u64, usize),
    Back(u64, usize),
    Grow(u64),
    Remove(u64),
    Settle(u64),
    Sync,
    Flush,
    Tidy,
    Reopen,
    /// Goes on with what lies on the disk at this moment.
    Leap,
}

fn any_step() -> impl Strategy<Value = Step> {
    let serial = 0u64..12;
    prop_oneof![
        12 => (serial.clone(), 0usize..900).prop_map(|(serial, count)| Step::Put(serial, count)),
        4 => (serial.clone(), 0usize..900).prop_map(|(serial, count)| Step::Back(serial, count)),
        2 => serial.clone().prop_map(Step::Grow),
        5 => serial.clone().prop_map(Step::Remove),
        2 => serial.prop_map(Step::Settle),
        2 => Just(Step::Sync),
        2 => Just(Step::Flush),
        4 => Just(Step::Tidy),
        1 => Just(Step::Reopen),
        1 => Just(Step::Leap),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn contents_are_what_a_plain_map_says(steps in prop::collection::vec(any_step(), 1..120)) {
        let mut home = Home::new();
        let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for (round, step) in steps.into_iter().enumerate() {
            let fresh = |count| bytes(round as u64, count);
            match step {
                Step::Put(serial, count) => {
                    home.content.put(serial, &fresh(count)).unwrap();
                    model.insert(serial, fresh(count));
                }
                Step::Back(serial, count) => {
                    home.content.make_backing(serial, &fresh(count)).unwrap();
                    model.insert(serial, fresh(count));
                }
                Step::Grow(serial) => {
                    if let Some(file) = home.content.backing(serial).unwrap() {
                        let bytes = model.get_mut(&serial).unwrap();
                        file.write_all_at(b"grown", bytes.len() as u64).unwrap();
                        bytes.extend(b"grown");
                    }
                }
                Step::Remove(serial) => {
                    home.content.remove(serial).unwrap();
                    model.remove(&serial);
                }
                Step::Settle(serial) => home.content.settle(serial),
                Step::Sync => home.content.sync().unwrap(),
                Step::Flush => home.content.flush().unwrap(),
                Step::Tidy => home.content.tidy().unwrap(),
                Step::Reopen => home = home.reopened(),
                Step::Leap => home = home.found_now(),
            }
        }
        home.check(&model, 12);
        home.reopened().check(&model, 12);
    }
}

#[test]
fn nothing_is_lost_wherever_compaction_dies() {
    let home = Home::new();
    for serial in 0..40 {
        home.content.put(serial, &bytes(serial, 300)).unwrap();
    }
    home.content.make_backing(3, &bytes(3, 300)).unwrap();
    home.content.tidy().unwrap();
    for serial in (0..40).filter(|serial| serial % 5 != 3) {
        home.content.remove(serial).unwrap();
    }
    home.content.make_backing(8, &bytes(8, 300)).unwrap();
    let model: BTreeMap<_, _> = (0..8).map(|n| (5 * n + 3, bytes(5 * n + 3, 300))).collect();
    let before = home.segments().len();
    let check = |step: &str| {
        let found = home.found_now();
        found.check(&model, 40);
        found.content.tidy().unwrap();
        found.content.tidy().unwrap();
        found.check(&model, 40);
        assert!(found.segments().len() <= before, "{step}");
    };
    // What `tidy` does, step by step.
    check("before");
    home.content.flush().unwrap();
    check("filed");
    let mut indexed = home.content.indexed.lock().unwrap();
    let sealed: Vec<u32> = home.content.pack().unwrap().sealed.keys().copied().collect();
    for segment in sealed {
        home.content.move_live(segment).unwrap();
        check("moved");
    }
    home.content.make_safe(&mut indexed, 0, true).unwrap();
    check("safe");
    home.content.compact(&mut indexed, MOSTLY).unwrap();
    drop(indexed);
    check("removed");
    home.content.tidy().unwrap();
    check("after");
    assert!(home.segments().len() < before);
}

/// What a disk may hold after the power fails: files written since the last sync may be shorter, down to
/// what they were then.
fn power_cut(rng: &mut Rng, synced: &Scratch, now: &Scratch) {
    for entry in fs::read_dir(now.path.join("content/pack")).unwrap() {
        let path = entry.unwrap().path();
        let before = synced.path.join("content/pack").join(path.file_name().unwrap());
        let before = fs::read(before).unwrap_or_default();
        let mut disk = fs::read(&path).unwrap();
        for (index, sector) in disk.chunks_mut(512).enumerate() {
            if rng.chance(0.3) {
                for (at, byte) in sector.iter_mut().enumerate() {
                    *byte = before.get(index * 512 + at).copied().unwrap_or(0);
                }
            }
        }
        fs::write(path, disk).unwrap();
    }
    for shard in fs::read_dir(now.path.join("content/files")).unwrap() {
        for entry in fs::read_dir(shard.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            let before = synced.path.join(path.strip_prefix(&now.path).unwrap());
            if rng.chance(0.5) && !before.exists() {
                let kept = fs::metadata(&path).unwrap().len() / 2;
                File::options().write(true).open(&path).unwrap().set_len(kept).unwrap();
            }
        }
    }
}

/// What each file was, from the last moment at which all was safe.
type History = BTreeMap<u64, Vec<Option<Vec<u8>>>>;

fn make_all_safe(home: &Home, synced: &mut Scratch, history: &mut History) {
    for serial in 0..8 {
        home.content.settle(serial);
    }
    home.content.flush().unwrap();
    home.content.sync().unwrap();
    *synced = home.scratch.copied();
    for states in history.values_mut() {
        states.drain(..states.len() - 1);
    }
}

#[test]
fn a_power_cut_leaves_each_file_as_it_was_synced_or_later() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let home = Home::new();
        let mut synced = home.scratch.copied();
        let mut history = History::new();
        for round in 0..60 {
            let serial = rng.below(8);
            let bytes = bytes(round, 1 + rng.index(700));
            history.entry(serial).or_insert_with(|| vec![None]);
            match rng.below(12) {
                0..7 => home.content.put(serial, &bytes).unwrap(),
                7..10 => {
                    // It syncs on its own then, and here we have to know when.
                    if backing_path(&home.content.files, serial).exists() {
                        make_all_safe(&home, &mut synced, &mut history);
                    }
                    drop(home.content.make_backing(serial, &bytes).unwrap());
                }
                10 => {
                    home.content.tidy().unwrap();
                    make_all_safe(&home, &mut synced, &mut history);
                }
                _ => make_all_safe(&home, &mut synced, &mut history),
            }
            let now = home.read(serial);
            if let Some(states) = history.get_mut(&serial)
                && states.last() != Some(&now)
            {
                states.push(now);
            }
        }
        let now = home.scratch.copied();
        power_cut(&mut rng, &synced, &now);
        let found = Home::at(now);
        for (serial, states) in &history {
            // Of a file that was not there at the last sync anything may be left.
            let is_new = states.contains(&None);
            assert!(is_new || states.contains(&found.read(*serial)), "seed {seed}, file {serial}");
        }
    }
}
