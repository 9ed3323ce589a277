//! Reading a file of records from front to back, and finding the way again behind a bad place.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use super::frame::{Framer, HEAD, HEADER, Head, Header, MARKER, Place};
use crate::Failure;

/// How many times a file's bytes may be hashed in search of a record. Contents may be full of what looks
/// like one; who needs more than this has met bytes made to mislead.
const SEARCH_MAX: u64 = 64;

/// What comes next in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A record; its bytes are in [`Scanner::bytes`].
    Record { offset: u64, number: u64, safe: u64 },
    /// Bytes that are no record begin here.
    Bad { offset: u64 },
    /// Nothing.
    End,
}

/// Reads the records of a file in order. Holds one of them in memory.
pub(crate) struct Scanner {
    reader: BufReader<File>,
    path: PathBuf,
    framer: Framer,
    file: u64,
    offset: u64,
    len: u64,
    bytes: Vec<u8>,
}

impl Scanner {
    /// Opens the file with this number, to read from an offset on.
    pub(crate) fn open(
        path: &Path,
        framer: Framer,
        file: u64,
        offset: u64,
    ) -> Result<Scanner, Failure> {
        let opened = File::open(path).map_err(Failure::of("can't open", path))?;
        let len = opened.metadata().map_err(Failure::of("can't look at", path))?.len();
        let mut reader = BufReader::with_capacity(1 << 18, opened);
        reader.seek(SeekFrom::Start(offset)).map_err(Failure::of("can't read", path))?;
        Ok(Scanner { reader, path: path.into(), framer, file, offset, len, bytes: Vec::new() })
    }

    /// The bytes of the record that was found last.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes the file has.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Judges the header and goes on behind it. A file of another version is refused.
    pub(crate) fn header(&mut self) -> Result<bool, Failure> {
        self.seek(0)?;
        if self.len < HEADER as u64 {
            return Ok(false);
        }
        let mut header = [0; HEADER];
        self.read(&mut header)?;
        self.offset = HEADER as u64;
        match self.framer.check_header(&header, self.file) {
            Header::Good => Ok(true),
            Header::Bad => Ok(false),
            Header::Foreign(version) => Err(Failure::Unfit(format!(
                "{} is of format {version}, which this version does not know; use the version that wrote it",
                self.path.display()
            ))),
        }
    }

    /// What comes next. After a bad place it stays there until [`Scanner::search`].
    pub(crate) fn next(&mut self) -> Result<Step, Failure> {
        let offset = self.offset;
        if offset >= self.len {
            return Ok(Step::End);
        }
        match self.record()? {
            Some(head) => {
                self.offset += (HEAD + head.length) as u64;
                Ok(Step::Record { offset, number: head.number, safe: head.safe })
            }
            None => {
                self.seek(offset)?;
                Ok(Step::Bad { offset })
            }
        }
    }

    fn record(&mut self) -> Result<Option<Head>, Failure> {
        let left = self.len - self.offset;
        if left < HEAD as u64 {
            return Ok(None);
        }
        let mut head = [0; HEAD];
        self.read(&mut head)?;
        let Some(head) = self.framer.head(&head) else {
            return Ok(None);
        };
        if left - (HEAD as u64) < head.length as u64 {
            return Ok(None);
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(head.length, 0);
        self.read(&mut bytes)?;
        self.bytes = bytes;
        let place = Place { file: self.file, offset: self.offset };
        Ok(self.framer.is_record(place, &head, &self.bytes).then_some(head))
    }

    /// Goes on to the next place behind this one where a record lies, or to the end.
    pub(crate) fn search(&mut self) -> Result<(), Failure> {
        let from = self.offset + 1;
        self.seek(from)?;
        let mut rest = Vec::new();
        let read = self.reader.by_ref().take(self.len.saturating_sub(from)).read_to_end(&mut rest);
        read.map_err(Failure::of("can't read", &self.path))?;
        let mut hashed = 0;
        let found = rest.windows(MARKER.len()).enumerate().filter(|(_, bytes)| *bytes == MARKER);
        for (index, _) in found {
            let Some(head) = self.framer.head(&rest[index..]) else { continue };
            let start = index + HEAD;
            let Some(bytes) = rest.get(start..start + head.length) else { continue };
            hashed += (HEAD + head.length) as u64;
            if hashed > SEARCH_MAX * self.len {
                return Err(
                    self.damaged(from, "is followed by too much that only looks like records")
                );
            }
            let place = Place { file: self.file, offset: from + index as u64 };
            if self.framer.is_record(place, &head, bytes) {
                return self.seek(place.offset);
            }
        }
        self.seek(self.len)
    }

    /// Says that a place in this file is damaged, and what can be done.
    pub(crate) fn damaged(&self, offset: u64, what: &str) -> Failure {
        damaged(&self.path, offset, what)
    }

    fn seek(&mut self, offset: u64) -> Result<(), Failure> {
        self.offset = offset;
        let sought = self.reader.seek(SeekFrom::Start(offset));
        sought.map(drop).map_err(Failure::of("can't read", &self.path))
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        self.reader.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged(self.offset, "shrank while it was read"),
            _ => Failure::of("can't read", &self.path)(error),
        })
    }
}

/// Says that a place in a file is damaged, and what can be done.
pub(crate) fn damaged(path: &Path, offset: u64, what: &str) -> Failure {
    let what = format!(
        "the record at byte {offset} {what}; restore the machine's directory from a copy, or let the \
         group recover the machine; nothing was changed"
    );
    Failure::Damaged { path: path.into(), what }
}
