//! Small contents one after the other in a few files, and what of that is not in the index yet.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Space,
    index::{LABEL, Location, Position, State},
};
use crate::{
    Failure,
    log::{
        frame::{Format, Framer, HEADER, Place, u64_at},
        tail::Tail,
    },
};

/// The greatest size of a content in the pack.
pub const PACKED_MAX: usize = (16 << 20) - LABEL;
/// A buffer that has grown beyond this is not kept.
const BUFFER_MAX: usize = 1 << 20;
/// So many segments are kept open for reading.
const READERS_MAX: usize = 64;

pub(super) const FORMAT: Format = Format { magic: *b"croftpak", bytes_max: PACKED_MAX + LABEL };

/// What a record of the pack says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file's content.
    Put,
    /// A file's content is in a file of its own, which has at least so many bytes (u64) if it is whole.
    Backed,
    /// A file is gone.
    Gone,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Put => 0,
            Kind::Backed => 1,
            Kind::Gone => 2,
        }
    }

    /// What a record says, of which file, and what bytes go with it.
    pub(super) fn read(record: &[u8]) -> Option<(Kind, u64, &[u8])> {
        let kind = match record.first()? {
            0 => Kind::Put,
            1 => Kind::Backed,
            2 => Kind::Gone,
            _ => return None,
        };
        if record.len() < LABEL || kind == Kind::Backed && record.len() != LABEL + 8 {
            return None;
        }
        Some((kind, u64_at(record, 1), &record[LABEL..]))
    }
}

/// What is newly so of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Nothing, if the file is gone.
    pub(super) state: Option<State>,
    /// Whether there may be a backing file from before, to be removed once this is safe.
    pub(super) is_over_backing: bool,
}

/// The end of the pack, and what is not in the index or not safe yet.
pub(super) struct Pack {
    pub(super) directory: PathBuf,
    pub(super) framer: Framer,
    pub(super) tail: Tail,
    pub(super) segment: u32,
    /// How long each segment is that is not added to any more.
    pub(super) sealed: BTreeMap<u32, u64>,
    pub(super) sequence: u64,
    /// How much of the last segment is safe, and all before it; zero if that is not known.
    pub(super) safe: u64,
    /// What is not in the index yet. Bounded by [`super::OVERLAY_MAX`].
    pub(super) overlay: BTreeMap<u64, Entry>,
    /// Segments before the last one that are not safe yet.
    pub(super) unsafe_yet: Vec<(PathBuf, Arc<File>)>,
    /// Whether segments were made whose names are not safe yet.
    pub(super) is_renamed: bool,
    /// Files whose backing files have to be made safe. Bounded by what happens between two syncs.
    pub(super) settled: BTreeSet<u64>,
    /// Directories of backing files with names that are not safe yet.
    pub(super) shards: BTreeSet<u8>,
    /// Segments that are open for reading. At most [`READERS_MAX`].
    readers: BTreeMap<u32, Arc<File>>,
    pub(super) is_stopped: bool,
    pub(super) segment_max: u64,
    buffer: Vec<u8>,
}

pub(super) fn segment_path(directory: &Path, segment: u32) -> PathBuf {
    directory.join(format!("{segment:010}"))
}

impl Pack {
    pub(super) fn new(directory: PathBuf, tail: Tail, segment: u32, sequence: u64) -> Pack {
        let segment_max = Space::piece_max(&directory, super::SEGMENT_MAX);
        Pack {
            directory,
            framer: Framer::new(FORMAT),
            tail,
            segment,
            sealed: BTreeMap::new(),
            sequence,
            safe: 0,
            overlay: BTreeMap::new(),
            unsafe_yet: Vec::new(),
            is_renamed: true,
            settled: BTreeSet::new(),
            shards: BTreeSet::new(),
            readers: BTreeMap::new(),
            is_stopped: false,
            segment_max,
            buffer: Vec::new(),
        }
    }

    /// Where the next record goes.
    pub(super) fn position(&self) -> Position {
        Position { segment: self.segment, offset: self.tail.len, sequence: self.sequence }
    }

    /// Adds a record with the next sequence number. If there is no room the pack is as it was.
    pub(super) fn append(
        &mut self,
        kind: Kind,
        serial: u64,
        bytes: &[u8],
    ) -> Result<Location, Failure> {
        let location = self.copy(self.sequence, kind, serial, bytes)?;
        self.sequence += 1;
        Ok(location)
    }

    /// Adds a record that has its sequence number already.
    pub(super) fn copy(
        &mut self,
        sequence: u64,
        kind: Kind,
        serial: u64,
        bytes: &[u8],
    ) -> Result<Location, Failure> {
        if self.tail.len >= self.segment_max {
            self.roll()?;
        }
        let mut label = [kind.code(); LABEL];
        label[1..].copy_from_slice(&serial.to_le_bytes());
        let place = Place { file: u64::from(self.segment), offset: self.tail.len };
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        self.framer.frame(&mut buffer, place, sequence, self.safe, &[&label, bytes]);
        let written = self.tail.append(&buffer);
        if buffer.capacity() <= BUFFER_MAX {
            self.buffer = buffer;
        }
        if let Err(failure) = written {
            // What was written of it must not stand before the next record.
            if let Err(failure) = self.tail.cut() {
                self.stop(&failure);
            }
            return Err(failure);
        }
        Ok(Location {
            segment: self.segment,
            offset: place.offset as u32,
            length: bytes.len() as u32,
            sequence,
        })
    }

    /// Begins a new segment. The one before may not be safe yet, and then `safe` says so.
    fn roll(&mut self) -> Result<(), Failure> {
        let segment = self.segment + 1;
        let mut tail = Tail::create(segment_path(&self.directory, segment))?;
        if let Err(failure) = tail.append(&self.framer.header(u64::from(segment))) {
            if let Err(error) = fs::remove_file(&tail.path) {
                self.stop(&Failure::of("can't remove", &tail.path)(error));
            }
            return Err(failure);
        }
        let old = std::mem::replace(&mut self.tail, tail);
        self.sealed.insert(self.segment, old.len);
        self.is_renamed = true;
        self.segment = segment;
        self.unsafe_yet.push((old.path, old.file));
        self.safe = 0;
        Ok(())
    }

    /// Puts the contents out of use. Whoever comes later only hears that they are, so the cause is said now.
    pub(super) fn stop(&mut self, failure: &Failure) {
        if !self.is_stopped {
            eprintln!("croft: {failure}; contents can't be used any more");
        }
        self.is_stopped = true;
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.is_stopped { Err(Failure::Stopped) } else { Ok(()) }
    }

    /// An open file of a segment, if one is at hand.
    pub(super) fn reader(&self, segment: u32) -> Option<Arc<File>> {
        if segment == self.segment {
            return Some(Arc::clone(&self.tail.file));
        }
        self.readers.get(&segment).cloned()
    }

    /// Keeps a segment open for the next one, unless it was removed meanwhile.
    pub(super) fn keep_reader(&mut self, segment: u32, file: &Arc<File>) {
        if !self.sealed.contains_key(&segment) {
            return;
        }
        if self.readers.len() >= READERS_MAX {
            self.readers.clear();
        }
        self.readers.insert(segment, Arc::clone(file));
    }

    /// A segment is removed.
    pub(super) fn forget(&mut self, segment: u32) {
        self.readers.remove(&segment);
        self.sealed.remove(&segment);
    }
}

const _: () = assert!(HEADER < super::SEGMENT_MAX as usize);
// Offsets take 32 bits: a segment ends with the record that crosses its limit.
const _: () = assert!(super::SEGMENT_MAX + (PACKED_MAX as u64) < u32::MAX as u64);
