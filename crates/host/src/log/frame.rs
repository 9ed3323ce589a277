//! How records lie in a file so that damage, a torn end and a misplaced piece can be told from a record.
//!
//! A checksum covers where the record lies, so what was copied or moved by accident is no record here. It finds
//! accidents and not forgers, who could compute any checksum that has no key; so it is a quick one.
//! Each record also says how much of its file was safe when it was written: of a bad place before that
//! we know that it was good once.

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// What a file of records is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    /// How the file begins, and where its checksums begin: those of one format are none of another.
    pub(crate) magic: [u8; 8],
    /// The greatest size of a record.
    pub(crate) bytes_max: usize,
}

/// The size of a file's header: magic, version, zeros, number of the file, checksum.
pub(crate) const HEADER: usize = 40;
/// The size of what stands before a record's bytes: marker, length, number, safe, checksum.
pub(crate) const HEAD: usize = 40;
/// How a record begins.
pub(crate) const MARKER: [u8; 4] = [0xf3, 0xc7, 0x0f, 0x9a];

const VERSION: u32 = 2;
const SUM: usize = 16;

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of its file.
    pub(crate) file: u64,
    /// How far from the file's start.
    pub(crate) offset: u64,
}

/// What stands before a record's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) length: usize,
    pub(crate) number: u64,
    /// Everything in this file before this offset, and all files before it, were safe when this record
    /// was written; zero if that is not known of the files before it.
    pub(crate) safe: u64,
    sum: [u8; SUM],
}

/// What a file's first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// As written.
    Good,
    /// By a version that this one does not know.
    Foreign(u32),
    /// Nothing that was written as a header.
    Bad,
}

/// Writes and checks headers and records of one format.
#[derive(Clone, Copy)]
pub(crate) struct Framer {
    format: Format,
}

impl Framer {
    pub(crate) fn new(format: Format) -> Framer {
        Framer { format }
    }

    /// The header of a file with this number.
    pub(crate) fn header(&self, file: u64) -> [u8; HEADER] {
        self.header_of(VERSION, file)
    }

    pub(super) fn header_of(&self, version: u32, file: u64) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&self.format.magic);
        header[8..12].copy_from_slice(&version.to_le_bytes());
        header[16..24].copy_from_slice(&file.to_le_bytes());
        let sum = xxh3_128_with_seed(&header[..24], self.seed());
        header[24..].copy_from_slice(&sum.to_le_bytes());
        header
    }

    /// Judges the first bytes of a file with this number.
    pub(crate) fn check_header(&self, bytes: &[u8; HEADER], file: u64) -> Header {
        let version = u32_at(bytes, 8);
        match *bytes == self.header_of(version, file) {
            true if version == VERSION => Header::Good,
            true => Header::Foreign(version),
            false => Header::Bad,
        }
    }

    /// Appends a record, whose bytes come in parts, to what will be written at its place.
    pub(crate) fn frame(
        &self,
        into: &mut Vec<u8>,
        place: Place,
        number: u64,
        safe: u64,
        parts: &[&[u8]],
    ) {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        assert!(length <= self.format.bytes_max, "a record of {length} bytes");
        let before = before(length, number, safe);
        into.extend_from_slice(&before);
        let at = into.len();
        into.extend_from_slice(&[0; SUM]);
        for part in parts {
            into.extend_from_slice(part);
        }
        let sum = self.record_sum(place, &before, &into[at + SUM..]);
        into[at..at + SUM].copy_from_slice(&sum);
    }

    /// Reads what stands before a record, if it can be that.
    pub(crate) fn head(&self, bytes: &[u8]) -> Option<Head> {
        let bytes = bytes.get(..HEAD)?;
        let length = usize::try_from(u32_at(bytes, 4)).ok()?;
        if bytes[..4] != MARKER || length > self.format.bytes_max {
            return None;
        }
        let mut sum = [0; SUM];
        sum.copy_from_slice(&bytes[HEAD - SUM..]);
        Some(Head { length, number: u64_at(bytes, 8), safe: u64_at(bytes, 16), sum })
    }

    /// Whether these bytes, of a length as the head says, are the record at this place.
    pub(crate) fn is_record(&self, place: Place, head: &Head, bytes: &[u8]) -> bool {
        let before = before(head.length, head.number, head.safe);
        bytes.len() == head.length && self.record_sum(place, &before, bytes) == head.sum
    }

    fn record_sum(&self, place: Place, before: &[u8; HEAD - SUM], bytes: &[u8]) -> [u8; SUM] {
        let mut around = [0; HEAD];
        around[..8].copy_from_slice(&place.file.to_le_bytes());
        around[8..16].copy_from_slice(&place.offset.to_le_bytes());
        around[16..].copy_from_slice(before);
        xxh3_128_with_seed(bytes, xxh3_64_with_seed(&around, self.seed())).to_le_bytes()
    }

    fn seed(&self) -> u64 {
        u64::from_le_bytes(self.format.magic)
    }
}

/// What stands before a record's checksum.
fn before(length: usize, number: u64, safe: u64) -> [u8; HEAD - SUM] {
    let mut before = [0; HEAD - SUM];
    before[..4].copy_from_slice(&MARKER);
    before[4..8].copy_from_slice(&(length as u32).to_le_bytes());
    before[8..16].copy_from_slice(&number.to_le_bytes());
    before[16..].copy_from_slice(&safe.to_le_bytes());
    before
}

/// The integer that stands there. The caller knows that it does.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// The integer that stands there. The caller knows that it does.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format { magic: *b"framtest", bytes_max: 100 };

    #[test]
    fn a_record_is_one_only_where_it_was_written() {
        let framer = Framer::new(FORMAT);
        let place = Place { file: 7, offset: 40 };
        let mut bytes = Vec::new();
        framer.frame(&mut bytes, place, 3, 40, &[b"by", b"tes"]);
        let head = framer.head(&bytes).unwrap();
        assert_eq!((head.length, head.number, head.safe), (5, 3, 40));
        assert!(framer.is_record(place, &head, &bytes[HEAD..]));
        assert!(!framer.is_record(Place { file: 8, ..place }, &head, &bytes[HEAD..]));
        assert!(!framer.is_record(Place { offset: 41, ..place }, &head, &bytes[HEAD..]));
    }

    #[test]
    fn a_header_says_whose_and_which_file_it_begins() {
        let framer = Framer::new(FORMAT);
        let header = framer.header(7);
        assert_eq!(framer.check_header(&header, 7), Header::Good);
        assert_eq!(framer.check_header(&header, 8), Header::Bad);
        assert_eq!(framer.check_header(&[0; HEADER], 7), Header::Bad);
        let newer = framer.header_of(VERSION + 1, 7);
        assert_eq!(framer.check_header(&newer, 7), Header::Foreign(VERSION + 1));
        let other = Framer::new(Format { magic: *b"anything", ..FORMAT });
        assert_eq!(other.check_header(&header, 7), Header::Bad);
    }
}
