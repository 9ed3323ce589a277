//! A disk that forgets what was not synced.

use std::collections::VecDeque;

use base::{Instant, Rng};

/// A log on a disk. What was appended is there at once for whoever asks, and safe later.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    records: Vec<Vec<u8>>,
    /// Safe are so many of them.
    synced: usize,
    /// When which number of them will be.
    syncs: VecDeque<(Instant, usize)>,
}

impl Disk {
    pub(crate) fn write(&mut self, record: Vec<u8>) {
        self.records.push(record);
    }

    /// What was written is safe by then. Syncs end in the order in which they began.
    pub(crate) fn sync(&mut self, at: Instant) {
        let last = self.syncs.back().map_or(at, |(at, _)| *at);
        self.syncs.push_back((last.max(at), self.records.len()));
    }

    /// How much is safe now, if that is more than before.
    pub(crate) fn next_synced(&mut self, now: Instant) -> Option<usize> {
        let (_, count) = self.syncs.pop_front_if(|(at, _)| *at <= now)?;
        self.synced = count;
        Some(count)
    }

    pub(crate) fn sync_at(&self) -> Option<Instant> {
        self.syncs.front().map(|(at, _)| *at)
    }

    /// The power goes: what was safe is kept, and perhaps a little more. Whether something is lost that way.
    pub(crate) fn crash(&mut self, rng: &mut Rng, kept: impl FnOnce(usize) -> usize) -> bool {
        let unsafe_yet = self.records.len() - self.synced;
        let kept = kept(self.synced + rng.index(unsafe_yet + 1));
        self.records.truncate(kept);
        self.synced = self.records.len();
        self.syncs.clear();
        unsafe_yet > 0
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().map(Vec::as_slice)
    }

    pub(crate) fn synced_records(&self) -> &[Vec<u8>] {
        &self.records[..self.synced]
    }
}
