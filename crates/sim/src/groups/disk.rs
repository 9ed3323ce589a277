//! A member's disk: a log and states in one order. What is written is safe later, and a prefix survives.

use std::{collections::VecDeque, rc::Rc};

use base::{Duration, Instant, Rng};
use group::Tip;

/// Something on the disk.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// A record of the log.
    Record(Rc<[u8]>),
    /// A state, the point that it belongs to, and the mark up to which no record is needed once it is safe.
    State(Rc<Tip>, Rc<[u8]>, u64),
}

/// A point and the state that belongs to it.
type Point<'a> = (&'a Tip, &'a [u8]);

/// The disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    pub(crate) entries: VecDeque<Entry>,
    /// So many have been dropped from the front, and so many of them were records.
    dropped: u64,
    pub(crate) marks_dropped: u64,
    /// So many entries are safe, the dropped ones included.
    safe: u64,
    /// When how many will be, and up to which mark that is. In order.
    syncs: VecDeque<(Instant, u64, u64)>,
}

impl Disk {
    fn end(&self) -> u64 {
        self.dropped + self.entries.len() as u64
    }

    pub(crate) fn append(&mut self, record: Vec<u8>) {
        self.entries.push_back(Entry::Record(record.into()));
    }

    pub(crate) fn keep_state(&mut self, tip: Tip, state: Rc<[u8]>, behind: u64) {
        self.entries.push_back(Entry::State(Rc::new(tip), state, behind));
    }

    /// Everything written so far is to become safe.
    pub(crate) fn sync(&mut self, mark: u64, at: Instant) {
        let at = self.syncs.back().map_or(at, |(last, ..)| at.max(*last));
        self.syncs.push_back((at, self.end(), mark));
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.syncs.front().map(|(at, ..)| *at)
    }

    /// The mark up to which the log is safe since the last call.
    pub(crate) fn due(&mut self, now: Instant) -> Option<u64> {
        let mut mark = None;
        while let Some((_, end, until)) = self.syncs.pop_front_if(|(at, ..)| *at <= now) {
            (self.safe, mark) = (end, Some(until));
        }
        if mark.is_some() {
            self.drop_old();
        }
        mark
    }

    /// Before the last state that is safe little is needed.
    fn drop_old(&mut self) {
        let safe = (self.safe - self.dropped) as usize;
        let last =
            self.entries.iter().enumerate().take(safe).rev().find_map(|(at, entry)| match entry {
                Entry::State(_, _, behind) => Some((at, *behind)),
                Entry::Record(_) => None,
            });
        let Some((at, behind)) = last else { return };
        for _ in 0..at {
            let is_record = matches!(self.entries.front(), Some(Entry::Record(_)));
            if is_record && self.marks_dropped >= behind {
                break;
            }
            self.entries.pop_front();
            self.dropped += 1;
            self.marks_dropped += u64::from(is_record);
        }
    }

    /// The power fails. Whether anything was lost.
    pub(crate) fn fail(&mut self, rng: &mut Rng) -> bool {
        let at_risk = self.end() - self.safe;
        let lost = at_risk - rng.below(at_risk + 1);
        self.entries.truncate(self.entries.len() - lost as usize);
        self.settle();
        lost > 0
    }

    /// All that is there is safe.
    pub(crate) fn settle(&mut self) {
        self.safe = self.end();
        self.syncs.clear();
    }

    /// The last state, the records that are needed on top of it, and the mark before the first of these.
    pub(crate) fn read(&self) -> (Option<Point<'_>>, Vec<&[u8]>, u64) {
        let state = self.entries.iter().rev().find_map(|entry| match entry {
            Entry::State(tip, state, behind) => Some((&**tip, &state[..], *behind)),
            Entry::Record(_) => None,
        });
        let records = self.entries.iter().filter_map(|entry| match entry {
            Entry::Record(record) => Some(&record[..]),
            Entry::State(..) => None,
        });
        let behind = state.map_or(0, |(.., behind)| behind).max(self.marks_dropped);
        let needed = records.skip((behind - self.marks_dropped) as usize);
        (state.map(|(tip, state, _)| (tip, state)), needed.collect(), behind)
    }

    /// What would be there after a power failure at the worst moment.
    pub(crate) fn copy(&self) -> Disk {
        let mut copy = self.clone();
        copy.entries.truncate((self.safe - self.dropped) as usize);
        copy.settle();
        copy
    }

    pub(crate) fn draw_sync(longest: Duration, rng: &mut Rng) -> Duration {
        longest.mul_f64(rng.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(disk: &Disk) -> usize {
        disk.read().1.len()
    }

    #[test]
    fn what_was_synced_survives_and_what_was_not_may_not() {
        let mut losses = 0;
        for seed in 0..20 {
            let mut disk = Disk::default();
            disk.append(vec![1]);
            disk.sync(1, Instant::from_secs(1));
            disk.append(vec![2]);
            assert_eq!(disk.due(Instant::START), None);
            assert_eq!(disk.due(Instant::from_secs(1)), Some(1));
            assert_eq!(marks(&disk.copy()), 1);
            losses += u32::from(disk.fail(&mut Rng::new(seed)));
            assert!(marks(&disk) >= 1);
        }
        assert!((1..20).contains(&losses), "{losses}");
    }
}
