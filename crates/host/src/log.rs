//! An append-only log of numbered records in the files of one directory.
//!
//! What a crash does to it and what damage does differ, and the log tells them apart. A crash takes any
//! part of what was not yet synced, which lies at the end of the last file: that is cut off, and said.
//! A record that is bad although a later one says that it was safe, or although its file is not the last
//! one, is damage: nothing is touched then, and nothing is served.
//!
//! One gap stays. Of the records synced last nothing later tells that they were, so damage in exactly
//! those looks like a crash. Whoever keeps a height elsewhere can compare: see `Store::check_end`.

mod cursor;
pub(crate) mod frame;
pub(crate) mod scan;
pub(crate) mod tail;

#[cfg(test)]
pub(crate) mod scratch;
#[cfg(test)]
mod tests;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{Failure, content::Space};
use frame::{Format, Framer, HEAD, HEADER, Place};
use scan::{Scanner, Step};
use tail::{Tail, make_directory, sync_directory};

pub use cursor::{Recovered, Torn};

/// The greatest size of a record.
pub const RECORD_MAX: usize = 16 << 20;
/// A file that has reached this size is not added to any more.
const SEGMENT_MAX: u64 = 64 << 20;
/// So much is gathered before it is written.
const BUFFER_MAX: usize = 1 << 20;

const FORMAT: Format = Format { magic: *b"croftlog", bytes_max: RECORD_MAX };

/// An append-only log of numbered records. After a failed sync it is out of use, and after a failed write
/// unless the disk was full: then nothing is lost, and the same may be tried again.
pub struct Log {
    directory: PathBuf,
    framer: Framer,
    /// In order, the last one is open. Bounded by its owner, who drops what it needs no more.
    segments: Vec<Segment>,
    /// None in a log that never had a record.
    tail: Option<Tail>,
    /// What is not written yet, at most about [`BUFFER_MAX`] and one record; while the disk is full, what
    /// its owner appends before it syncs.
    buffer: Vec<u8>,
    next: u64,
    /// How much of the last file is safe.
    safe: u64,
    segment_max: u64,
    is_stopped: bool,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    first: u64,
    bytes: u64,
}

impl Log {
    /// Opens the log in a directory, which is made if it is not there. Cuts off what a crash has torn.
    pub fn open(directory: &Path) -> Result<(Log, Recovered), Failure> {
        make_directory(directory)?;
        let mut log = Log {
            directory: directory.into(),
            framer: Framer::new(FORMAT),
            segments: Vec::new(),
            tail: None,
            buffer: Vec::new(),
            next: 0,
            safe: 0,
            segment_max: Space::piece_max(directory, SEGMENT_MAX),
            is_stopped: false,
        };
        let firsts = list(directory)?;
        let mut torn = None;
        for (index, &first) in firsts.iter().enumerate() {
            let path = segment_path(directory, first);
            if index > 0 && first != log.next {
                return Err(missing(&path, log.next, first));
            }
            log.next = first;
            let is_last = index + 1 == firsts.len();
            let end = log.read_segment(&path, first, is_last)?;
            log.segments.push(Segment { first, bytes: end.good });
            if is_last {
                torn = log.take_up(path, first, &end)?;
            }
        }
        let recovered = Recovered::new(directory.into(), &firsts, log.next, torn);
        Ok((log, recovered))
    }

    /// Reads a segment to its end or to where a crash has torn it.
    fn read_segment(&mut self, path: &Path, first: u64, is_last: bool) -> Result<End, Failure> {
        let mut scanner = Scanner::open(path, self.framer, first, 0)?;
        let has_header = scanner.header()?;
        let mut good = if has_header { HEADER as u64 } else { 0 };
        let mut torn = (!has_header).then_some(Torn { bytes: scanner.len(), records: 0 });
        loop {
            if torn.is_some() && !is_last {
                return Err(scanner.damaged(good, "is bad, and later files follow"));
            }
            match (scanner.next()?, &mut torn) {
                (Step::Record { offset, number, .. }, None) => {
                    if number != self.next {
                        let what = format!("has number {number} where {} belongs", self.next);
                        return Err(scanner.damaged(offset, &what));
                    }
                    good = offset + (HEAD + scanner.bytes().len()) as u64;
                    self.next += 1;
                }
                // A header is safe before anything follows it.
                (Step::Record { safe, .. }, Some(_)) if safe > good => {
                    return Err(
                        scanner.damaged(good, "is bad, and was good when a later one was written")
                    );
                }
                (Step::Record { .. }, Some(torn)) => torn.records += 1,
                (Step::Bad { .. }, _) => {
                    torn.get_or_insert(Torn { bytes: scanner.len() - good, records: 0 });
                    scanner.search()?;
                }
                (Step::End, _) => return Ok(End { good, torn }),
            }
        }
    }

    /// Makes the last segment ready to be added to.
    fn take_up(&mut self, path: PathBuf, first: u64, end: &End) -> Result<Option<Torn>, Failure> {
        let mut tail = Tail::open(path, end.good)?;
        if end.torn.is_some() {
            tail.cut()?;
        }
        if end.good == 0 {
            tail.append(&self.framer.header(first))?;
            self.segments.iter_mut().for_each(|segment| {
                if segment.first == first {
                    segment.bytes = tail.len;
                }
            });
        }
        // Also if nothing is torn: what a crash of only this program left is not safe yet.
        tail.sync()?;
        sync_directory(&self.directory)?;
        self.safe = tail.len;
        self.tail = Some(tail);
        Ok(end.torn)
    }

    /// Adds a record. Numbers follow each other; the first one of an empty log may be any. What fails has
    /// added nothing.
    pub fn append(&mut self, number: u64, record: &[u8]) -> Result<(), Failure> {
        self.check()?;
        if record.len() > RECORD_MAX {
            let what = format!("a record of {} bytes, where {RECORD_MAX} may be", record.len());
            return Err(Failure::Unfit(what));
        }
        if number != self.next && self.tail.is_some() || number == u64::MAX {
            let what = format!("record {number} does not follow in a log where {} does", self.next);
            return Err(Failure::Unfit(what));
        }
        match &self.tail {
            Some(tail) if tail.len + (self.buffer.len() as u64) < self.segment_max => {}
            Some(_) => {
                self.sync()?;
                self.start_segment(number)?;
            }
            None => self.start_segment(number)?,
        }
        let Some(tail) = &self.tail else {
            return Err(Failure::Stopped);
        };
        let place = Place {
            file: self.segments.last().map_or(number, |segment| segment.first),
            offset: tail.len + self.buffer.len() as u64,
        };
        self.framer.frame(&mut self.buffer, place, number, self.safe, &[record]);
        self.next = number + 1;
        match self.buffer.len() >= BUFFER_MAX {
            // If only the disk is full, whoever syncs hears of it.
            true => self.write().or_else(|failure| self.check().map_err(|_| failure)),
            false => Ok(()),
        }
    }

    /// Makes everything safe that was appended.
    pub fn sync(&mut self) -> Result<(), Failure> {
        self.check()?;
        self.write()?;
        self.trying(|log| {
            let Some(tail) = &log.tail else { return Ok(()) };
            if log.safe < tail.len {
                tail.sync()?;
                log.safe = tail.len;
            }
            Ok(())
        })
    }

    /// Removes the files that hold only records with smaller numbers, except the last one.
    pub fn drop_before(&mut self, number: u64) -> Result<(), Failure> {
        self.check()?;
        let ends = self.segments.iter().skip(1).map(|segment| segment.first);
        let count = ends.take_while(|end| *end <= number).count();
        if count == 0 {
            return Ok(());
        }
        self.trying(|log| {
            // From the first one on, so that a crash leaves no gap.
            for segment in log.segments.drain(..count) {
                let path = segment_path(&log.directory, segment.first);
                fs::remove_file(&path).map_err(Failure::of("can't remove", &path))?;
            }
            sync_directory(&log.directory)
        })
    }

    /// How many bytes it takes on disk, with what is about to be written.
    pub fn bytes(&self) -> u64 {
        let written = self.segments.iter().map(|segment| segment.bytes).sum::<u64>();
        written + self.buffer.len() as u64
    }

    /// The number of the first record that is kept, or of the next one if there is none.
    pub fn first(&self) -> u64 {
        self.segments.first().map_or(self.next, |segment| segment.first)
    }

    /// The number of the next record. Zero in a log that never had one, which takes any.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether an earlier failure has put it out of use.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    fn check(&self) -> Result<(), Failure> {
        if self.is_stopped { Err(Failure::Stopped) } else { Ok(()) }
    }

    /// Whatever fails on the disk fails for good: what is in the files is not known after that.
    fn trying(&mut self, act: impl FnOnce(&mut Log) -> Result<(), Failure>) -> Result<(), Failure> {
        let done = act(self);
        self.is_stopped |= done.is_err();
        done
    }

    fn write(&mut self) -> Result<(), Failure> {
        let Some(tail) = &mut self.tail else { return Ok(()) };
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Err(failure) = tail.append(&self.buffer) {
            self.is_stopped = !failure.is_full() || tail.cut().is_err();
            return Err(failure);
        }
        self.buffer.clear();
        if let Some(segment) = self.segments.last_mut() {
            segment.bytes = tail.len;
        }
        Ok(())
    }

    /// Begins a file. The one before it is safe, and so is the new one's header before a record follows.
    fn start_segment(&mut self, first: u64) -> Result<(), Failure> {
        let path = segment_path(&self.directory, first);
        let begun = Tail::create(path.clone()).and_then(|mut tail| {
            tail.append(&self.framer.header(first))?;
            Ok(tail)
        });
        let tail = begun.inspect_err(|failure| {
            let is_as_before = || !path.exists() || fs::remove_file(&path).is_ok();
            self.is_stopped = !(failure.is_full() && is_as_before());
        })?;
        self.trying(|log| {
            tail.sync()?;
            sync_directory(&log.directory)?;
            log.safe = tail.len;
            log.segments.push(Segment { first, bytes: tail.len });
            log.tail = Some(tail);
            Ok(())
        })
    }

    /// How many of the next writes find the disk full.
    #[cfg(test)]
    pub(crate) fn be_full_for(&mut self, writes: u32) {
        self.tail.as_mut().expect("it has a file").full_for = writes;
    }
}

/// Where the good part of a segment ends.
struct End {
    good: u64,
    torn: Option<Torn>,
}

fn segment_path(directory: &Path, first: u64) -> PathBuf {
    directory.join(format!("{first:020}"))
}

/// The first numbers of the segments in a directory, in order. What has another name is not ours.
fn list(directory: &Path) -> Result<Vec<u64>, Failure> {
    let mut firsts = Vec::new();
    for entry in fs::read_dir(directory).map_err(Failure::of("can't list", directory))? {
        let name = entry.map_err(Failure::of("can't list", directory))?.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit()) {
            firsts.extend(name.parse::<u64>());
        }
    }
    firsts.sort_unstable();
    Ok(firsts)
}

fn missing(path: &Path, next: u64, first: u64) -> Failure {
    let what = format!(
        "it begins with record {first}, but the file before it ends before record {next}; restore the \
         machine's directory from a copy, or let the group recover the machine; nothing was changed"
    );
    Failure::Damaged { path: path.into(), what }
}
