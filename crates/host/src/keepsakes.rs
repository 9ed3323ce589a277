//! What was lost with a session, kept for its owner: no more than so much, and nothing goes without a word.
//!
//! When there is no room for more, bytes are refused: whoever wrote them is told, and has them as long as the file is
//! open. Of operations, which can't be refused any more, a line is noted in place of all; the latest lines stay.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use crate::{Failure, machine::replace};

/// The most files in the area.
const FILES_MAX: usize = 1_024;
/// The most bytes of them.
const BYTES_MAX: u64 = 1 << 30;
/// The lines about what was not kept: the most of them, and the most letters of each.
const LINES_MAX: usize = 200;
const LETTERS_MAX: usize = 300;
/// The file that has these lines. It does not count.
const UNKEPT: &str = "unkept";

/// The area of one machine.
#[derive(Clone, Debug)]
pub struct Keepsakes {
    directory: PathBuf,
    files_max: usize,
    bytes_max: u64,
}

/// How much is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Files, the one about what was not kept included.
    pub files: usize,
    /// Bytes of all but that one.
    pub bytes: u64,
    /// Whether something was not kept, or would not be.
    pub is_full: bool,
}

impl Keepsakes {
    /// That of the machine in a directory.
    pub fn of(home: &Path) -> Keepsakes {
        let directory = home.join("recovery");
        Keepsakes { directory, files_max: FILES_MAX, bytes_max: BYTES_MAX }
    }

    /// How much is in it.
    pub fn kept(&self) -> Kept {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut kept = Kept::default();
        for entry in entries {
            kept.files += 1;
            match entry.file_name() == UNKEPT {
                true => kept.is_full = true,
                false => kept.bytes += entry.metadata().map_or(0, |metadata| metadata.len()),
            }
        }
        kept.is_full |= kept.files >= self.files_max || kept.bytes >= self.bytes_max;
        kept
    }

    /// Where a file of this name goes, and how many bytes it may have.
    fn room_for(&self, name: &str) -> Result<(PathBuf, u64), Failure> {
        let kept = self.kept();
        let path = self.directory.join(name);
        match kept.files < self.files_max {
            true => Ok((path, self.bytes_max.saturating_sub(kept.bytes))),
            false => Err(full(&path)),
        }
    }

    /// Keeps a file as it is under one more name, however large it is, if there is any room; where.
    pub(crate) fn adopt(&self, name: &str, file: &Path) -> Result<PathBuf, Failure> {
        let (path, room) = self.room_for(name)?;
        if room == 0 {
            return Err(full(&path));
        }
        fs::create_dir_all(&self.directory).map_err(Failure::of("can't make", &self.directory))?;
        fs::hard_link(file, &path).map_err(Failure::of("can't make", &path))?;
        Ok(path)
    }

    /// Keeps bytes under a name, all or none; where.
    pub(crate) fn keep(&self, name: &str, bytes: &mut dyn Read) -> Result<PathBuf, Failure> {
        let (path, room) = self.room_for(name)?;
        let made = self.write(&path, &mut bytes.take(room.saturating_add(1)));
        let is_ours = !made.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists);
        if is_ours && !made.as_ref().is_ok_and(|copied| *copied <= room) {
            // What is not whole is worth nothing.
            _ = fs::remove_file(&path);
        }
        match made {
            Ok(copied) if copied <= room => Ok(path),
            Ok(_) => Err(full(&path)),
            Err(error) => Err(Failure::of("can't write", &path)(error)),
        }
    }

    /// Writes a new file; how many bytes.
    fn write(&self, path: &Path, bytes: &mut dyn Read) -> io::Result<u64> {
        fs::create_dir_all(&self.directory)?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
        let copied = io::copy(bytes, &mut file)?;
        file.sync_all()?;
        Ok(copied)
    }

    /// Notes that something was not kept. Where.
    pub(crate) fn note(&self, line: &str) -> Result<PathBuf, Failure> {
        let path = self.directory.join(UNKEPT);
        fs::create_dir_all(&self.directory).map_err(Failure::of("can't make", &self.directory))?;
        let before = fs::read_to_string(&path).unwrap_or_default();
        let line: String =
            line.chars().filter(|letter| *letter != '\n').take(LETTERS_MAX).collect();
        let lines: Vec<&str> = before.lines().chain([line.as_str()]).collect();
        let last = lines[lines.len().saturating_sub(LINES_MAX)..].join("\n") + "\n";
        replace(&path, last.as_bytes())?;
        Ok(path)
    }
}

fn full(path: &Path) -> Failure {
    Failure::of("there is no room for", path)(Errno::NOSPC.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::scratch::Scratch;

    fn area(files_max: usize, bytes_max: u64) -> (Scratch, Keepsakes) {
        let scratch = Scratch::new("keepsakes");
        let area = Keepsakes { files_max, bytes_max, ..Keepsakes::of(&scratch.path) };
        (scratch, area)
    }

    #[test]
    fn a_file_is_kept_as_it_is_if_there_is_any_room() {
        let (scratch, area) = area(3, 10);
        let file = scratch.path.join("file");
        fs::write(&file, "more than ten bytes").unwrap();
        let kept = area.adopt("one", &file).unwrap();
        fs::write(&file, "and what is written later").unwrap();
        assert_eq!(fs::read_to_string(kept).unwrap(), "and what is written later");
        let refused = area.adopt("two", &file).unwrap_err().to_string();
        assert!(refused.contains("there is no room for"), "{refused}");
    }

    #[test]
    fn bytes_are_kept_whole_or_refused_for_want_of_room() {
        let (_scratch, area) = area(3, 10);
        let path = area.keep("one", &mut &b"12345678"[..]).unwrap();
        assert_eq!(fs::read(path).unwrap(), b"12345678");
        let failure = area.keep("two", &mut &b"123"[..]).unwrap_err();
        assert!(failure.is_full() && failure.to_string().contains("no room"), "{failure}");
        assert_eq!(area.kept(), Kept { files: 1, bytes: 8, is_full: false });
        area.keep("two", &mut &b"12"[..]).unwrap();
        assert_eq!(area.kept(), Kept { files: 2, bytes: 10, is_full: true });
    }

    #[test]
    fn files_are_counted_too_and_none_is_overwritten() {
        let (_scratch, area) = area(2, 100);
        area.keep("one", &mut &b"1"[..]).unwrap();
        assert!(!area.keep("one", &mut &b"2"[..]).unwrap_err().is_full());
        area.keep("two", &mut &b"2"[..]).unwrap();
        assert!(area.keep("three", &mut &b"3"[..]).unwrap_err().is_full());
    }

    #[test]
    fn of_what_was_not_kept_the_latest_lines_stay() {
        let (_scratch, area) = area(2, 100);
        for number in 0..LINES_MAX + 5 {
            area.note(&format!("{number}: {}", "x".repeat(500))).unwrap();
        }
        let text = fs::read_to_string(area.note("the\nlast").unwrap()).unwrap();
        assert_eq!((text.lines().count(), text.lines().last()), (LINES_MAX, Some("thelast")));
        assert!(text.lines().all(|line| line.len() <= LETTERS_MAX));
        assert!(area.kept().is_full, "somebody has to look");
    }
}
