//! Notes of which backing files may be written behind our back, for the life after this one.
//!
//! Each life of the machine notes them in a file of its own, so that what an earlier life noted is
//! there until it was looked at. A note that a power cut takes was of a file whose last writes it took too.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Failure,
    log::tail::{Tail, make_directory},
};

/// Notes are written anew when there are this many more than needed.
const SPARE_MAX: u64 = 4_096;

/// Which backing files are being written, and which were in earlier lives.
pub(super) struct Writing {
    directory: PathBuf,
    tail: Tail,
    life: u64,
    /// Bounded by how many files are open for writing, if the caller says when they no longer are.
    noted: BTreeSet<u64>,
    before: BTreeSet<u64>,
    earlier: Vec<PathBuf>,
}

impl Writing {
    pub(super) fn open(directory: &Path) -> Result<Writing, Failure> {
        make_directory(directory)?;
        let mut before = BTreeSet::new();
        let mut earlier = Vec::new();
        let mut life = 0;
        for entry in fs::read_dir(directory).map_err(Failure::of("can't list", directory))? {
            let path = entry.map_err(Failure::of("can't list", directory))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(number) = name.and_then(|name| name.parse::<u64>().ok()) {
                life = life.max(number + 1);
                let bytes = fs::read(&path).map_err(Failure::of("can't read", &path))?;
                // A note that is cut short was not made.
                before.extend(bytes.as_chunks().0.iter().map(|serial| u64::from_le_bytes(*serial)));
            }
            earlier.push(path);
        }
        let tail = Tail::create(life_path(directory, life))?;
        Ok(Writing {
            directory: directory.into(),
            tail,
            life,
            noted: BTreeSet::new(),
            before,
            earlier,
        })
    }

    pub(super) fn note(&mut self, serial: u64) -> Result<(), Failure> {
        if !self.noted.contains(&serial) {
            self.tail.append(&serial.to_le_bytes())?;
            self.noted.insert(serial);
        }
        Ok(())
    }

    /// A file is not written any more, and what was written is safe.
    pub(super) fn strike(&mut self, serial: u64) -> Result<(), Failure> {
        self.noted.remove(&serial);
        let spare = self.tail.len / 8 - (self.noted.len() as u64).min(self.tail.len / 8);
        if spare < SPARE_MAX.max(self.noted.len() as u64) {
            return Ok(());
        }
        let mut tail = Tail::create(self.directory.join("next"))?;
        tail.append(
            &self.noted.iter().flat_map(|serial| serial.to_le_bytes()).collect::<Vec<u8>>(),
        )?;
        let path = life_path(&self.directory, self.life);
        fs::rename(&tail.path, &path).map_err(Failure::of("can't rename", &tail.path))?;
        self.tail = Tail { path, ..tail };
        Ok(())
    }

    pub(super) fn before(&self) -> Vec<u64> {
        self.before.iter().copied().collect()
    }

    pub(super) fn forget_before(&mut self) -> Result<(), Failure> {
        for path in std::mem::take(&mut self.earlier) {
            fs::remove_file(&path).map_err(Failure::of("can't remove", &path))?;
        }
        self.before.clear();
        Ok(())
    }
}

fn life_path(directory: &Path, life: u64) -> PathBuf {
    directory.join(format!("{life:020}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::scratch::Scratch;

    #[test]
    fn notes_outlive_the_one_who_made_them_until_they_were_looked_at() {
        let scratch = Scratch::new("writing");
        let open = || Writing::open(&scratch.path).unwrap();
        let mut first = open();
        for serial in [7, 9, 7, 8] {
            first.note(serial).unwrap();
        }
        assert!(first.before().is_empty());
        first.strike(8).unwrap();
        let mut second = open();
        second.note(5).unwrap();
        assert_eq!(
            second.before(),
            [7, 8, 9],
            "whether the last note is struck is not worth a write"
        );
        let mut third = open();
        assert_eq!(third.before(), [5, 7, 8, 9]);
        third.note(6).unwrap();
        third.forget_before().unwrap();
        assert_eq!(open().before(), [6]);
    }

    #[test]
    fn a_long_life_with_few_open_files_has_few_notes() {
        let scratch = Scratch::new("writing-long");
        let mut writing = Writing::open(&scratch.path).unwrap();
        writing.note(1_000_000).unwrap();
        for serial in 0..20_000 {
            writing.note(serial).unwrap();
            writing.strike(serial).unwrap();
        }
        assert!(writing.tail.len < 8 * (SPARE_MAX + 2), "{}", writing.tail.len);
        assert!(Writing::open(&scratch.path).unwrap().before().contains(&1_000_000));
    }
}
