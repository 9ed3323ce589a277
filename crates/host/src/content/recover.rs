//! What is there when contents are opened: the index, and what the pack has beyond it.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{
    Entry, Index, Indexed, Kind, State, backing_path,
    index::Position,
    pack::{FORMAT, Pack},
    remove_file, segment_path, shard, shard_path, tidy,
};
use crate::{
    Failure,
    log::{
        frame::{Framer, HEAD, HEADER, u64_at},
        scan::{Scanner, Step, damaged},
        tail::{Tail, make_directory, sync_directory},
    },
};

/// Makes the directories of contents, and clears the one for what is not whole yet.
pub(super) fn make_directories(directory: &Path) -> Result<(), Failure> {
    let files = directory.join("files");
    for path in [directory, &directory.join("pack"), &files, &files.join("new")] {
        make_directory(path)?;
    }
    tidy::clear(&files.join("new"))?;
    if !shard_path(&files, u8::MAX).is_dir() {
        for shard in 0..=u8::MAX {
            let path = shard_path(&files, shard);
            fs::create_dir_all(&path).map_err(Failure::of("can't create directory", &path))?;
        }
        sync_directory(&files)?;
    }
    Ok(())
}

/// The pack as it was found.
pub(super) struct Recovered {
    pub(super) pack: Pack,
    /// How much of it a crash had torn.
    pub(super) torn_bytes: u64,
}

struct Recovery<'a> {
    directory: &'a Path,
    files: &'a Path,
    index: &'a Index,
    pack: Pack,
    /// Where the pack first is bad.
    bad: Option<(u32, u64)>,
    torn_bytes: u64,
}

/// Opens the pack and reads what is not in the index.
pub(super) fn pack(
    directory: &Path,
    files: &Path,
    index: &Index,
    indexed: &Indexed,
) -> Result<Recovered, Failure> {
    let segments = list(directory)?;
    let start = start(directory, &segments, indexed.position)?;
    let last = segments.last().map_or(start.segment, |(segment, _)| *segment);
    let path = segment_path(directory, last);
    let tail = match segments.is_empty() {
        true => Tail::create(path)?,
        false => Tail::open(path, 0)?,
    };
    let mut pack = Pack::new(directory.into(), tail, last, start.sequence);
    pack.sealed = segments.iter().copied().filter(|(segment, _)| *segment < last).collect();
    let mut recovery = Recovery { directory, files, index, pack, bad: None, torn_bytes: 0 };
    for (segment, _) in segments.into_iter().filter(|(segment, _)| *segment >= start.segment) {
        let is_first = segment == start.segment;
        recovery.read_segment(segment, if is_first { start.offset } else { 0 }, segment == last)?;
    }
    let Recovery { mut pack, torn_bytes, .. } = recovery;
    // Whether it is new, torn or as it should be.
    let header = pack.framer.header(u64::from(last));
    let tail = &mut pack.tail;
    tail.file.write_all_at(&header, 0).map_err(Failure::of("can't write", &tail.path))?;
    tail.len = tail.len.max(HEADER as u64);
    tail.cut()?;
    for (serial, _) in pack.overlay.iter().filter(|(_, entry)| entry.state.is_none()) {
        remove_file(&backing_path(files, *serial))?;
    }
    Ok(Recovered { pack, torn_bytes })
}

/// Where the pack goes on beyond the index.
fn start(
    directory: &Path,
    segments: &[(u32, u64)],
    position: Option<Position>,
) -> Result<Position, Failure> {
    let lost = |path: PathBuf, what: &str| {
        let what = format!(
            "{what}; restore the machine's directory from a copy, or let the group recover the machine"
        );
        Err(Failure::Damaged { path, what })
    };
    let Some(position) = position else {
        return match segments.first() {
            None | Some((1, _)) => Ok(Position { segment: 1, offset: 0, sequence: 1 }),
            Some(_) => lost(directory.into(), "the index of these contents in the store is lost"),
        };
    };
    let path = segment_path(directory, position.segment);
    let found = segments.iter().find(|(segment, _)| *segment == position.segment);
    match found {
        Some((_, len)) if *len >= position.offset => Ok(position),
        Some(_) => lost(path, "it is shorter than the index of contents in the store says"),
        None => lost(path, "it is missing"),
    }
}

impl Recovery<'_> {
    fn read_segment(&mut self, segment: u32, offset: u64, is_last: bool) -> Result<(), Failure> {
        let path = segment_path(self.directory, segment);
        let mut scanner = Scanner::open(&path, Framer::new(FORMAT), u64::from(segment), offset)?;
        let mut end = offset;
        if offset == 0 {
            if scanner.header()? {
                end = HEADER as u64;
            } else {
                self.bad.get_or_insert((segment, 0));
            }
        }
        loop {
            match scanner.next()? {
                Step::Record { offset, number, safe } => {
                    self.judge(segment, safe)?;
                    self.torn_bytes += offset - end;
                    end = offset + (HEAD + scanner.bytes().len()) as u64;
                    self.pack.sequence = self.pack.sequence.max(number.saturating_add(1));
                    let Some(record) = Kind::read(scanner.bytes()) else {
                        return Err(scanner.damaged(offset, "says nothing that this version knows"));
                    };
                    self.apply(segment, offset, number, record)?;
                }
                Step::Bad { offset } => {
                    self.bad.get_or_insert((segment, offset));
                    scanner.search()?;
                }
                Step::End => break,
            }
        }
        self.torn_bytes += scanner.len().saturating_sub(end);
        if is_last {
            self.pack.tail.len = end;
        }
        Ok(())
    }

    /// Whether a record found here knows that a bad place before it was good.
    fn judge(&self, segment: u32, safe: u64) -> Result<(), Failure> {
        match self.bad {
            Some((bad, offset)) if bad == segment && safe > offset || bad < segment && safe > 0 => {
                let path = segment_path(self.directory, bad);
                Err(damaged(&path, offset, "is bad, and was good when a later one was written"))
            }
            _ => Ok(()),
        }
    }

    fn apply(
        &mut self,
        segment: u32,
        offset: u64,
        sequence: u64,
        (kind, serial, bytes): (Kind, u64, &[u8]),
    ) -> Result<(), Failure> {
        let before = match self.pack.overlay.get(&serial) {
            Some(entry) => *entry,
            None => Entry { state: self.index.get(serial)?, is_over_backing: false },
        };
        let was_backed = before.is_over_backing || before.state == Some(State::Backed);
        let entry = match kind {
            Kind::Gone => Entry { state: None, is_over_backing: false },
            Kind::Put => {
                let (offset, length) = (offset as u32, bytes.len() as u32);
                let location = super::Location { segment, offset, length, sequence };
                Entry { state: Some(State::Packed(location)), is_over_backing: was_backed }
            }
            Kind::Backed => {
                let found = fs::metadata(backing_path(self.files, serial));
                let is_whole = found.is_ok_and(|found| found.len() >= u64_at(bytes, 0));
                match before.state {
                    // The file did not make it, and what it should replace is still there.
                    Some(State::Packed(_)) if !is_whole => {
                        Entry { is_over_backing: true, ..before }
                    }
                    _ => {
                        self.pack.settled.insert(serial);
                        self.pack.shards.insert(shard(serial));
                        Entry { state: Some(State::Backed), is_over_backing: false }
                    }
                }
            }
        };
        self.pack.overlay.insert(serial, entry);
        Ok(())
    }
}

/// The segments in a directory, in order, and how long they are. What has another name is not ours.
fn list(directory: &Path) -> Result<Vec<(u32, u64)>, Failure> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(directory).map_err(Failure::of("can't list", directory))? {
        let entry = entry.map_err(Failure::of("can't list", directory))?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if let Ok(segment) = name.parse::<u32>()
            && name.len() == 10
        {
            let found = entry.metadata().map_err(Failure::of("can't look at", entry.path()))?;
            segments.push((segment, found.len()));
        }
    }
    segments.sort_unstable();
    Ok(segments)
}
