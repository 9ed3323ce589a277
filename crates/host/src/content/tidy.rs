//! Making contents safe, filing them in the index, and giving back what dead ones take.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Arc, MutexGuard},
};

use super::{
    Content, ENTRIES, Entry, Indexed, Kind, Location, Space, State, backing_path,
    index::{LABEL, Position},
    pack::{FORMAT, Pack},
    remove_file, segment_path, shard, shard_path,
};
use crate::{
    Failure,
    log::{
        frame::{Framer, HEADER},
        scan::{Scanner, Step},
        tail::sync_directory,
    },
};

/// How much of a segment has to be dead: more than one part in so many.
#[derive(Clone, Copy)]
pub(super) struct Dead(u64);

/// Half of it: what is moved is less than what is gained.
pub(super) const MOSTLY: Dead = Dead(2);
/// What is worth the work where room is scarce.
pub(super) const SOMEWHAT: Dead = Dead(8);
/// So many bytes of segments are compacted at once where room is scarce, or one segment.
const MOVED_MAX: u64 = 8 << 20;

impl Dead {
    fn is_in(self, live: u64, len: u64) -> bool {
        len.saturating_sub(live) * self.0 > len
    }
}

/// Why something was not made safe.
enum Missed {
    /// It could not be opened, and is as it was.
    Open(Failure),
    /// What of it is on the disk is not known.
    Sync(Failure),
}

/// What has to be made safe, and what is so then.
struct Round {
    position: Position,
    segments: Vec<(PathBuf, Arc<File>)>,
    is_renamed: bool,
    settled: BTreeSet<u64>,
    shards: BTreeSet<u8>,
    /// What goes into the index.
    entries: Option<Vec<(u64, Entry)>>,
}

impl Content {
    /// Makes safe everything that was put or settled before.
    pub fn sync(&self) -> Result<(), Failure> {
        let mut indexed = self.indexed.lock().map_err(|_| Failure::Stopped)?;
        self.make_safe(&mut indexed, ENTRIES, false)
    }

    /// Files what is new in the index and compacts one segment of the pack, if one is mostly dead. Where
    /// room is scarce, some that are less so.
    pub fn tidy(&self) -> Result<(), Failure> {
        let mut indexed = self.indexed.lock().map_err(|_| Failure::Stopped)?;
        self.make_safe(&mut indexed, 1, false)?;
        if !Space::of(&self.directory)?.is_tight() {
            return self.compact(&mut indexed, MOSTLY).map(drop);
        }
        let rounds = (MOVED_MAX / self.pack()?.segment_max).max(1);
        for _ in 0..rounds {
            if !self.compact(&mut indexed, SOMEWHAT)? || !Space::of(&self.directory)?.is_tight() {
                break;
            }
        }
        Ok(())
    }

    /// Files everything that is new in the index.
    pub(super) fn flush(&self) -> Result<(), Failure> {
        let mut indexed = self.indexed.lock().map_err(|_| Failure::Stopped)?;
        self.make_safe(&mut indexed, 0, false)
    }

    /// Makes everything safe, and files what is new if that is so much or more. A failed sync puts the
    /// contents out of use: what of them is on the disk is not known then. What could not even be opened,
    /// for want of descriptors or memory, waits for the next time.
    pub(super) fn make_safe(
        &self,
        indexed: &mut Indexed,
        entries_min: usize,
        is_durable: bool,
    ) -> Result<(), Failure> {
        let round = self.begin_round(&mut *self.pack()?, entries_min);
        match self.sync_round(&round) {
            Err(Missed::Open(failure)) => {
                self.pack()?.take_back(round);
                Err(failure)
            }
            Err(Missed::Sync(failure)) => self.stopping(Err(failure)),
            Ok(()) => self.stopping(self.end_round(indexed, round, is_durable)),
        }
    }

    fn stopping(&self, done: Result<(), Failure>) -> Result<(), Failure> {
        if let (Err(failure), Ok(mut pack)) = (&done, self.pack.lock()) {
            pack.stop(failure);
        }
        done
    }

    fn begin_round(&self, pack: &mut Pack, entries_min: usize) -> Round {
        let mut segments = std::mem::take(&mut pack.unsafe_yet);
        if pack.safe < pack.tail.len {
            segments.push((pack.tail.path.clone(), Arc::clone(&pack.tail.file)));
        }
        let has_enough = pack.overlay.len() >= entries_min;
        let entries = pack.overlay.iter().map(|(serial, entry)| (*serial, *entry));
        Round {
            position: pack.position(),
            segments,
            is_renamed: std::mem::take(&mut pack.is_renamed),
            settled: std::mem::take(&mut pack.settled),
            shards: std::mem::take(&mut pack.shards),
            entries: has_enough.then(|| entries.collect()),
        }
    }

    fn sync_round(&self, round: &Round) -> Result<(), Missed> {
        for serial in &round.settled {
            match sync_path(&backing_path(&self.files, *serial), File::sync_data) {
                // It was removed meanwhile.
                Err(Missed::Open(Failure::File { source, .. }))
                    if source.kind() == io::ErrorKind::NotFound => {}
                synced => synced?,
            }
        }
        for shard in &round.shards {
            sync_path(&shard_path(&self.files, *shard), File::sync_all)?;
        }
        for (path, file) in &round.segments {
            let synced = file.sync_data().map_err(Failure::of("can't sync", path));
            synced.map_err(Missed::Sync)?;
        }
        if round.is_renamed {
            sync_path(&self.directory.join("pack"), File::sync_all)?;
        }
        Ok(())
    }

    /// Everything in the round is safe.
    fn end_round(
        &self,
        indexed: &mut Indexed,
        round: Round,
        is_durable: bool,
    ) -> Result<(), Failure> {
        let mut pack = self.pack()?;
        if pack.segment == round.position.segment {
            pack.safe = round.position.offset;
        }
        drop(pack);
        let is_known = indexed.position == Some(round.position);
        match round.entries {
            Some(entries) if !is_known || !entries.is_empty() || is_durable => {
                // Only what is safe: the index must not point to what a power cut takes.
                let stale = self.index.add(indexed, &entries, round.position, is_durable)?;
                self.settle_entries(self.pack()?, &entries, &stale)
            }
            _ => Ok(()),
        }
    }

    /// Forgets what the index has now, and removes backing files that packed contents replaced.
    fn settle_entries(
        &self,
        mut pack: MutexGuard<'_, Pack>,
        entries: &[(u64, Entry)],
        stale: &BTreeSet<u64>,
    ) -> Result<(), Failure> {
        for (serial, entry) in entries {
            let Some(now) = pack.overlay.get_mut(serial) else { continue };
            let is_stale = stale.contains(serial);
            if now != entry {
                // The index no longer knows of the backing file.
                now.is_over_backing |= is_stale && matches!(now.state, Some(State::Packed(_)));
                continue;
            }
            pack.overlay.remove(serial);
            if is_stale {
                // Within the lock, so that it is not a new one.
                remove_file(&backing_path(&self.files, *serial))?;
                pack.shards.insert(shard(*serial));
            }
        }
        Ok(())
    }

    /// Everything is in the index. Moves what lives in the segment with the least of that to the end of
    /// the pack, and removes it, if enough of it is dead. Whether there was one.
    pub(super) fn compact(&self, indexed: &mut Indexed, enough: Dead) -> Result<bool, Failure> {
        let sealed = self.pack()?.sealed.clone();
        let live = |segment: &u32| indexed.live.get(segment).copied().unwrap_or(0);
        let candidates = sealed.iter().filter(|(segment, _)| !indexed.spoiled.contains(segment));
        let worthwhile = candidates.filter(|(segment, len)| enough.is_in(live(segment), **len));
        let mut victims: Vec<u32> = worthwhile.map(|(segment, _)| *segment).collect();
        victims.sort_by_key(live);
        // Dead ones cost nothing to remove; of the others one at a time.
        let dead = victims.iter().take_while(|segment| live(segment) == 0).count();
        victims.truncate(dead + 1);
        if victims.is_empty() {
            return Ok(false);
        }
        let mut has_moved = true;
        if let Some(&segment) = victims.get(dead) {
            match self.move_live(segment) {
                Ok(()) => {}
                // Room comes with what is removed; what was moved by now is no loss.
                Err(failure) if failure.is_full() => {
                    victims.truncate(dead);
                    has_moved = false;
                }
                Err(failure) => return Err(failure),
            }
        }
        // The store must not go back to an index that points into what is removed now.
        self.make_safe(indexed, 0, true)?;
        for segment in victims {
            if indexed.live.contains_key(&segment) {
                // Something in it is alive and could not be read. It stays, for whoever can.
                indexed.spoiled.insert(segment);
                continue;
            }
            self.pack()?.forget(segment);
            remove_file(&segment_path(&self.directory.join("pack"), segment))?;
        }
        sync_directory(&self.directory.join("pack"))?;
        Ok(has_moved)
    }

    pub(super) fn move_live(&self, segment: u32) -> Result<(), Failure> {
        let path = segment_path(&self.directory.join("pack"), segment);
        let start = HEADER as u64;
        let mut scanner = Scanner::open(&path, Framer::new(FORMAT), u64::from(segment), start)?;
        loop {
            match scanner.next()? {
                Step::Record { offset, number, .. } => {
                    let Some((Kind::Put, serial, bytes)) = Kind::read(scanner.bytes()) else {
                        continue;
                    };
                    let length = (scanner.bytes().len() - LABEL) as u32;
                    let offset = offset as u32;
                    self.move_one(
                        serial,
                        Location { segment, offset, length, sequence: number },
                        bytes,
                    )?;
                }
                Step::Bad { .. } => scanner.search()?,
                Step::End => return Ok(()),
            }
        }
    }

    fn move_one(&self, serial: u64, location: Location, bytes: &[u8]) -> Result<(), Failure> {
        // From looking to moving in one go, so that nothing newer is overruled.
        let mut pack = self.pack()?;
        let state = match pack.overlay.get(&serial) {
            Some(entry) => entry.state,
            None => self.index.get(serial)?,
        };
        if state != Some(State::Packed(location)) {
            return Ok(());
        }
        let is_over_backing = pack.overlay.get(&serial).is_some_and(|entry| entry.is_over_backing);
        let moved = pack.copy(location.sequence, Kind::Put, serial, bytes)?;
        let state = Some(State::Packed(moved));
        pack.overlay.insert(serial, Entry { state, is_over_backing });
        Ok(())
    }
}

impl Pack {
    /// What was not made safe still has to be.
    fn take_back(&mut self, round: Round) {
        let last = &self.tail.path;
        let sealed = round.segments.into_iter().filter(|(path, _)| path != last);
        // One that was the last may be among them by now; to sync it twice does no harm.
        self.unsafe_yet.extend(sealed);
        self.is_renamed |= round.is_renamed;
        self.settled.extend(round.settled);
        self.shards.extend(round.shards);
    }
}

/// Makes safe what is under a path: a file's bytes, or the names in a directory.
fn sync_path(path: &Path, sync: impl FnOnce(&File) -> io::Result<()>) -> Result<(), Missed> {
    let file = File::open(path).map_err(Failure::of("can't open", path)).map_err(Missed::Open)?;
    sync(&file).map_err(Failure::of("can't sync", path)).map_err(Missed::Sync)
}

/// Removes what is left of files that were not whole.
pub(super) fn clear(directory: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(directory).map_err(Failure::of("can't list", directory))? {
        remove_file(&entry.map_err(Failure::of("can't list", directory))?.path())?;
    }
    Ok(())
}
