//! A full disk: programs are told, nothing is lost, and with room again all goes on.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    sync::mpsc,
    time::{Duration, Instant},
};

use rustix::io::Errno;

use crate::{cell::Cell, draw::Draw, image::Image};

/// What was written and synced.
type Synced = BTreeMap<String, Vec<u8>>;

fn write(cell: &Cell, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(cell.at(name))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Writes until it is refused, and tells why it was.
fn write_until_refused(cell: &Cell, draw: &mut Draw, synced: &mut Synced, size: u64) -> Errno {
    for count in 0.. {
        let name = format!("{size}-{count}");
        let len = draw.below(size) + 1;
        let bytes = draw.bytes(len as usize);
        match write(cell, &name, &bytes) {
            Ok(()) => _ = synced.insert(name, bytes),
            Err(error) => {
                // What was not promised does not count.
                let _ = fs::remove_file(cell.at(&name));
                return Errno::from_io_error(&error).expect("the kernel says why");
            }
        }
    }
    unreachable!("no disk is endless")
}

#[track_caller]
fn check(cell: &Cell, synced: &Synced) {
    for (name, bytes) in synced {
        let found = fs::read(cell.at(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(found == *bytes, "{name} is as it was synced");
    }
}

/// Tries until it works: that there is room again is noticed about once a second.
#[track_caller]
fn write_in_the_end(cell: &Cell, name: &str, bytes: &[u8]) {
    let start = Instant::now();
    while let Err(error) = write(cell, name, bytes) {
        assert_eq!(Errno::from_io_error(&error), Some(Errno::NOSPC));
        assert!(start.elapsed() < Duration::from_secs(20), "there is room for a long time now");
        let (_open, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_millis(100));
    }
}

#[test]
fn a_full_disk_is_told_loses_nothing_and_is_used_again_once_there_is_room() {
    let Some(image) = Image::new(64) else { return };
    let mut cell = Cell::idle(Some(image.home()));
    cell.init(&[]);
    cell.start(&[]);
    let (mut draw, mut synced) = (Draw::new(1), Synced::new());
    assert_eq!(write_until_refused(&cell, &mut draw, &mut synced, 2_000_000), Errno::NOSPC);
    assert_eq!(write_until_refused(&cell, &mut draw, &mut synced, 20_000), Errno::NOSPC);
    let made =
        (0..1_000_000).map(|n| fs::create_dir(cell.at(&format!("d{n}")))).find(Result::is_err);
    let error = made.unwrap().unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::NOSPC), "names take room too");
    assert!(synced.len() > 20);
    check(&cell, &synced);
    // Removing works, and brings room.
    let names: Vec<String> = synced.keys().cloned().collect();
    for name in names.iter().step_by(2) {
        fs::remove_file(cell.at(name)).unwrap();
        synced.remove(name);
    }
    write_in_the_end(&cell, "after", &[1; 500_000]);
    synced.insert("after".into(), vec![1; 500_000]);
    check(&cell, &synced);
    cell.restart(&[]);
    check(&cell, &synced);
    write_in_the_end(&cell, "last", b"works");
    cell.stop();
}

#[test]
fn a_disk_full_of_small_files_gives_back_the_room_of_every_other_one_that_is_removed() {
    let Some(image) = Image::new(48) else { return };
    let mut cell = Cell::idle(Some(image.home()));
    cell.init(&[]);
    cell.start(&[]);
    let (mut draw, mut synced) = (Draw::new(3), Synced::new());
    assert_eq!(write_until_refused(&cell, &mut draw, &mut synced, 40_000), Errno::NOSPC);
    let names: Vec<String> = synced.keys().cloned().collect();
    for name in names.iter().step_by(2) {
        fs::remove_file(cell.at(name)).unwrap();
        synced.remove(name);
    }
    // Half of what was written, and some of it is kept for the group.
    for count in 0..10 {
        let (name, bytes) = (format!("after-{count}"), draw.bytes(500_000));
        write_in_the_end(&cell, &name, &bytes);
        synced.insert(name, bytes);
    }
    check(&cell, &synced);
    cell.restart(&[]);
    check(&cell, &synced);
    cell.stop();
}

#[test]
fn somebody_else_who_fills_the_disk_meanwhile_costs_nothing_that_was_synced() {
    let Some(image) = Image::new(48) else { return };
    let mut cell = Cell::idle(Some(image.home()));
    cell.init(&[]);
    cell.start(&[]);
    let (mut draw, mut synced) = (Draw::new(2), Synced::new());
    for count in 0..40 {
        let bytes = draw.bytes(50_000);
        write(&cell, &format!("f{count}"), &bytes).unwrap();
        synced.insert(format!("f{count}"), bytes);
    }
    image.fill();
    let refused = write_until_refused(&cell, &mut draw, &mut synced, 100_000);
    assert!([Errno::NOSPC, Errno::IO].contains(&refused), "{refused}");
    check(&cell, &synced);
    image.relieve();
    cell.kill();
    cell.start(&[]);
    check(&cell, &synced);
    write_in_the_end(&cell, "after", b"works");
    cell.stop();
}

#[test]
fn a_machine_on_a_full_disk_says_so_and_has_its_data_when_there_is_room() {
    let Some(image) = Image::new(48) else { return };
    let mut cell = Cell::idle(Some(image.home()));
    cell.init(&[]);
    cell.start(&[]);
    write(&cell, "a", &[7; 100_000]).unwrap();
    cell.stop();
    image.fill();
    match cell.try_start(&[]) {
        Ok(()) => {
            let error = write(&cell, "b", &[8; 100_000]).unwrap_err();
            assert_eq!(Errno::from_io_error(&error), Some(Errno::NOSPC));
            assert!(fs::read(cell.at("a")).unwrap() == [7; 100_000]);
            cell.kill();
        }
        Err((status, talk)) => {
            assert_eq!(status.code(), Some(1), "{talk}");
            assert!(talk.contains("No space left on device"), "{talk}");
        }
    }
    image.relieve();
    cell.start(&[]);
    assert!(fs::read(cell.at("a")).unwrap() == [7; 100_000]);
    cell.stop();
}
