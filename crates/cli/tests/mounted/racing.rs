//! Programs that race on mounts of several machines: all that they saw is what one file system could have shown
//! them, one after the other.
//!
//! `CROFT_RACE_DEEDS` and `CROFT_RACE_SEED` ask for more; `cargo xtask long racing` does 100,000.

mod history;
mod model;

use std::{
    ffi::CString,
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Instant,
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags},
    io::Errno,
};

use crate::{
    cell::{Scratch, can_mount},
    draw::{Draw, number},
    quickstart::Quickstart,
};
use history::{Done, check};
use model::{DIRECTORIES, Deed, FILES, PLACES, RECORD, Seen};

/// Who races: on which mounts.
const RACERS: [&str; 3] = ["mnt", "mnt-2", "mnt-3"];

#[test]
fn what_racing_programs_saw_is_what_one_file_system_could_have_shown_them() {
    if !can_mount() {
        return;
    }
    let (deeds, seed) = (number("CROFT_RACE_DEEDS", 1_500), number("CROFT_RACE_SEED", 1));
    let scratch = Scratch::new();
    let directory = scratch.0.join("quick");
    let quickstart = Quickstart::new(&directory, &["--mounts"]);
    for place in PLACES {
        std::fs::create_dir(directory.join(RACERS[0]).join(place)).unwrap();
    }
    let start = Instant::now();
    let racers = RACERS.len() as u64;
    let threads: Vec<_> = (0..racers)
        .map(|index| {
            let mount = directory.join(RACERS[index as usize]);
            let draw = Draw::new(seed * racers + index);
            thread::spawn(move || race(&mount, draw, deeds / racers, start))
        })
        .collect();
    let histories: Vec<Vec<Done>> =
        threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let elapsed = start.elapsed();
    let overlaps = histories.iter().flatten().filter(|done| done.overlaps(&histories)).count();
    let failed = histories.iter().flatten().filter(|done| matches!(done.seen, Seen::Failed(_)));
    let failed = failed.count();
    if let Err(what) = check(&histories) {
        if let Some(path) = std::env::var_os("CROFT_RACE_DUMP") {
            let mut all: Vec<(usize, &Done)> = histories
                .iter()
                .enumerate()
                .flat_map(|(program, history)| history.iter().map(move |done| (program, done)))
                .collect();
            all.sort_by_key(|(_, done)| done.until);
            let text: String = all.iter().map(|done| format!("{done:?}\n")).collect();
            std::fs::write(path, text).unwrap();
        }
        panic!("seed {seed}: {what}");
    }
    let slowest = histories.iter().flatten().map(|done| done.until - done.from).max().unwrap();
    eprintln!(
        "{deeds} deeds from seed {seed} on {racers} mounts in {} ms: {overlaps} met others, {failed} were refused, the \
         slowest took {} ms",
        elapsed.as_millis(),
        slowest.as_millis()
    );
    assert!(overlaps > deeds as usize / 20 && failed > 0, "nobody has met anybody");
    quickstart.interrupt();
}

/// Does one thing after the other.
fn race(mount: &Path, mut draw: Draw, count: u64, start: Instant) -> Vec<Done> {
    let mut hands = Hands { mount: mount.to_owned(), open: None };
    (0..count)
        .map(|_| {
            let deed = draw_deed(&mut draw, hands.open.is_some());
            let from = start.elapsed();
            let seen = hands.perform(deed);
            Done { deed, seen, from, until: start.elapsed() }
        })
        .collect()
}

fn draw_deed(draw: &mut Draw, has_open: bool) -> Deed {
    let file = draw.below(FILES.len() as u64) as usize;
    let other = draw.below(FILES.len() as u64) as usize;
    let directory = draw.below(DIRECTORIES.len() as u64) as usize;
    let other_directory = draw.below(DIRECTORIES.len() as u64) as usize;
    if has_open {
        match draw.below(10) {
            0..3 => return Deed::Read,
            3..6 => return Deed::Write(draw.below(255) as u8 + 1),
            6 => return Deed::Empty,
            7 => return Deed::Measure,
            8 => return Deed::Close,
            _ => {}
        }
    }
    match draw.below(12) {
        0..3 => Deed::Make(file),
        3 => Deed::Remove(file),
        4 | 5 => Deed::Rename(file, other),
        6 | 7 => Deed::Look(file),
        8 if !has_open => Deed::Open(file),
        8 => Deed::Look(other),
        9 => Deed::MakeDirectory(directory),
        10 => Deed::RemoveDirectory(directory),
        _ => Deed::RenameDirectory(directory, other_directory),
    }
}

/// A program's way to a mount.
struct Hands {
    mount: PathBuf,
    open: Option<Arc<File>>,
}

impl Hands {
    fn at(&self, name: &str) -> CString {
        CString::new(self.mount.join(name).to_str().unwrap()).unwrap()
    }

    fn perform(&mut self, deed: Deed) -> Seen {
        match self.try_perform(deed) {
            Ok(seen) => seen,
            Err(errno) => Seen::Failed(errno.raw_os_error()),
        }
    }

    fn try_perform(&mut self, deed: Deed) -> Result<Seen, Errno> {
        let file = |index: usize| self.at(FILES[index]);
        let directory = |index: usize| self.at(DIRECTORIES[index]);
        let open = || self.open.clone().unwrap();
        let told = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        match deed {
            Deed::Make(at) => {
                let how = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                rustix::fs::open(file(at).as_c_str(), how, Mode::from(0o644))?;
            }
            Deed::Remove(at) => rustix::fs::unlink(file(at).as_c_str())?,
            Deed::Rename(from, to) => {
                rustix::fs::rename(file(from).as_c_str(), file(to).as_c_str())?;
            }
            Deed::MakeDirectory(at) => {
                rustix::fs::mkdir(directory(at).as_c_str(), Mode::from(0o755))?;
            }
            Deed::RemoveDirectory(at) => rustix::fs::rmdir(directory(at).as_c_str())?,
            Deed::RenameDirectory(from, to) => {
                rustix::fs::rename(directory(from).as_c_str(), directory(to).as_c_str())?;
            }
            Deed::Look(at) => {
                let stat = rustix::fs::statat(CWD, file(at).as_c_str(), AtFlags::empty())?;
                return Ok(Seen::Size(stat.st_size as u64));
            }
            Deed::Open(at) => {
                let how = OFlags::RDWR | OFlags::CLOEXEC;
                let opened = rustix::fs::open(file(at).as_c_str(), how, Mode::empty())?;
                self.open = Some(Arc::new(File::from(opened)));
            }
            Deed::Read => {
                let mut bytes = vec![0; 2 * RECORD];
                let count = open().read_at(&mut bytes, 0).map_err(told)?;
                bytes.truncate(count);
                return Ok(Seen::Bytes(bytes));
            }
            Deed::Write(fill) => {
                let count = open().write_at(&[fill; RECORD], 0).map_err(told)?;
                assert_eq!(count, RECORD);
            }
            Deed::Empty => open().set_len(0).map_err(told)?,
            Deed::Measure => return Ok(Seen::Size(open().metadata().map_err(told)?.len())),
            Deed::Close => self.open = None,
        }
        Ok(Seen::Done)
    }
}
