//! A power cut: what the disk had at that moment is all that is left, and everything that was synced is
//! whole.
//!
//! The disk is a file, copied at moments that nobody chose, with whatever the kernel had not written to it
//! yet missing. `CROFT_POWER_ROUNDS` and `CROFT_POWER_SEED` ask for more; `cargo xtask long power` does 100.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use rustix::process::{Signal, kill_process};

use crate::{
    cell::Cell,
    draw::{Draw, number},
    image::Image,
};

/// The version of each file that was synced last.
type Promised = BTreeMap<String, u64>;

#[test]
fn after_a_power_cut_all_that_was_synced_is_whole() {
    let (rounds, seed) = (number("CROFT_POWER_ROUNDS", 4), number("CROFT_POWER_SEED", 1));
    let Some(image) = Image::new(96) else { return };
    let mut cell = Cell::idle(Some(image.home()));
    cell.init(&[]);
    cell.start(&[]);
    let promised = Mutex::new(Promised::new());
    let is_over = AtomicBool::new(false);
    let mut checked = 0;
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| work(&cell.path, seed, &promised, &is_over));
        let _end = End(&is_over);
        let mut draw = Draw::new(seed);
        for round in 0..rounds {
            pause(Duration::from_millis(draw.below(900)));
            let before = promised.lock().unwrap().clone();
            let bytes = cut(&cell, &image);
            checked += check(&bytes, &before, seed, round);
        }
        is_over.store(true, Ordering::Relaxed);
        worker.join().unwrap().unwrap();
    });
    eprintln!("{rounds} power cuts from seed {seed}: {checked} synced files were whole");
    assert!(checked > 0, "nothing was at stake");
    cell.stop();
}

/// So that a failure does not leave the worker working.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn pause(time: Duration) {
    let (_open, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(time);
}

/// Writes, syncs and notes: new files, and files that are replaced over and over.
fn work(
    root: &Path,
    seed: u64,
    promised: &Mutex<Promised>,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let mut draw = Draw::new(seed ^ 0xbeef);
    for version in 1.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("f{}", draw.below(40));
        let draft = root.join("draft");
        let mut file = File::create(&draft)?;
        file.write_all(&content(&name, version))?;
        if draw.below(2) == 0 {
            // Unsynced work beside it, which may or may not be there.
            fs::write(root.join(format!("loose{}", draw.below(10))), [1; 5_000])?;
        }
        file.sync_all()?;
        fs::rename(&draft, root.join(&name))?;
        File::open(root)?.sync_all()?;
        promised.lock().unwrap().insert(name, version);
    }
    Ok(())
}

/// The content of a version tells its number, and all of its bytes follow from that.
fn content(name: &str, version: u64) -> Vec<u8> {
    let mut draw = Draw::new(version);
    let len = match version % 10 {
        0 => 200_000,
        _ => draw.below(9_000),
    };
    let mut bytes = format!("{name} {version:020} ").into_bytes();
    bytes.extend(draw.bytes(len as usize));
    bytes
}

/// What is on the disk at one moment. The machine stands still until two looks show the same.
fn cut(cell: &Cell, image: &Image) -> Vec<u8> {
    kill_process(cell.pid(), Signal::STOP).unwrap();
    let mut bytes = fs::read(&image.file).unwrap();
    loop {
        let again = fs::read(&image.file).unwrap();
        if again == bytes {
            break;
        }
        bytes = again;
    }
    kill_process(cell.pid(), Signal::CONT).unwrap();
    bytes
}

/// Starts a machine from what was on the disk, and looks for everything that was promised before.
fn check(bytes: &[u8], promised: &Promised, seed: u64, round: u64) -> usize {
    let image = Image::of_bytes(bytes).expect("a copy can be mounted as well");
    let mut cell = Cell::idle(Some(image.home()));
    cell.start(&[]);
    for (name, version) in promised {
        let what = format!("seed {seed}, cut {round}: {name}, of which version {version} is safe");
        let found = fs::read(cell.at(name)).unwrap_or_else(|error| panic!("{what}: {error}"));
        if let Err(wrong) = judge(name, *version, &found) {
            panic!("{what}: {wrong}");
        }
    }
    cell.stop();
    promised.len()
}

/// Whether it is this version or a later one, and all of it.
fn judge(name: &str, version: u64, found: &[u8]) -> Result<(), String> {
    let number = found.get(name.len() + 1..name.len() + 21).map(String::from_utf8_lossy);
    let number: u64 = number.and_then(|text| text.parse().ok()).unwrap_or_default();
    if number < version {
        return Err(format!("it is version {number}"));
    }
    if found != content(name, number) {
        return Err(format!("version {number} is not whole"));
    }
    Ok(())
}

#[test]
fn the_judge_of_power_cuts_tells_whole_files_from_others() {
    let good = content("f1", 7);
    assert!(judge("f1", 7, &good).is_ok() && judge("f1", 3, &good).is_ok());
    let mut changed = good.clone();
    changed[40] ^= 1;
    let spoilt = [&[][..], &good[..good.len() - 1], &vec![0; good.len()], &changed];
    for bytes in spoilt {
        assert!(judge("f1", 7, bytes).is_err());
    }
    assert!(judge("f1", 8, &good).is_err(), "an old one");
    assert!(judge("f2", 7, &good).is_err(), "another file's");
}
