//! What new files need and the client has been given: numbers, inode numbers, files and bytes.

use std::collections::{BTreeMap, VecDeque};

use base::FileId;
use directory::{
    message::{Provision, RANGES_MAX},
    record::Numbering,
};

/// What is at hand for new files.
#[derive(Debug, Default)]
pub(crate) struct Supply {
    /// Numbers for new files in a directory. At most [`RANGES_MAX`] directories, few ranges each.
    ranges: BTreeMap<FileId, Ranges>,
    /// The next number in directories that we have created in this session. Of those from before, some
    /// numbers may have gone to files that were lost with their session and are still spoken of. At
    /// most [`OWN_MAX`].
    own: BTreeMap<FileId, u64>,
    serials: Ranges,
    files: Stock,
    bytes: Stock,
}

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Numbers in this directory.
    Numbers(FileId),
    /// Inode numbers.
    Serials,
    /// Files.
    Files,
    /// So many bytes.
    Bytes(u64),
    /// Room for one more lease.
    Leases,
}

/// Integers in rising order.
#[derive(Debug, Default)]
struct Ranges {
    ranges: VecDeque<(u64, u64)>,
    /// The one after the last that was taken.
    unused: u64,
    /// How many were given last.
    given: u64,
}

/// An amount.
#[derive(Debug, Default)]
struct Stock {
    left: u64,
    /// How much was given last.
    given: u64,
}

/// The most directories of our own whose next number is remembered.
const OWN_MAX: usize = 65_536;
/// The most ranges of one sort; a group that gives more than we use gives them in vain.
const PIECES_MAX: usize = 4;

impl Ranges {
    fn next(&self) -> Option<u64> {
        self.ranges.front().map(|(first, _)| *first)
    }

    fn take(&mut self) {
        if let Some((first, behind)) = self.ranges.front_mut() {
            *first += 1;
            self.unused = *first;
            if first >= behind {
                self.ranges.pop_front();
            }
        }
    }

    /// They must rise: what comes too late or twice is not used.
    fn add(&mut self, first: u64, behind: u64) {
        let is_later = self.ranges.back().is_none_or(|(_, last)| *last <= first);
        if first > 0 && first < behind && is_later && self.ranges.len() < PIECES_MAX {
            self.ranges.push_back((first, behind));
            self.given = behind - first;
        }
    }

    fn left(&self) -> u64 {
        self.ranges.iter().fold(0, |sum, (first, behind)| sum.saturating_add(behind - first))
    }

    fn is_low(&self) -> bool {
        self.given > 0 && self.left() <= self.given / 4
    }
}

impl Stock {
    fn add(&mut self, amount: u64) {
        self.left = self.left.saturating_add(amount);
        // If nothing comes there is no use in asking ahead.
        self.given = amount;
    }

    fn is_low(&self) -> bool {
        self.given > 0 && self.left <= self.given / 4
    }
}

impl Supply {
    /// The number that the next new file in a directory gets.
    pub(crate) fn number(&self, directory: &FileId) -> Option<u64> {
        self.own_number(directory).or_else(|| self.ranges.get(directory).and_then(Ranges::next))
    }

    fn own_number(&self, directory: &FileId) -> Option<u64> {
        self.own.get(directory).copied().filter(|next| *next < Numbering::BORN)
    }

    /// A directory that we have just created: its first numbers are ours.
    pub(crate) fn bear(&mut self, directory: &FileId) {
        self.own.insert(directory.clone(), 1);
        if self.own.len() > OWN_MAX {
            self.own.pop_first();
        }
    }

    /// The inode number that the next new file gets.
    pub(crate) fn serial(&self) -> Option<u64> {
        self.serials.next()
    }

    /// The first number in a directory, of those that we were given, that we have not used.
    pub(crate) fn unused_number(&self, directory: &FileId) -> Option<u64> {
        self.ranges.get(directory).map(|ranges| ranges.unused).filter(|unused| *unused > 0)
    }

    /// The first inode number that we have not used.
    pub(crate) fn unused_serial(&self) -> Option<u64> {
        Some(self.serials.unused).filter(|unused| *unused > 0)
    }

    /// Whether so many files and bytes can be taken.
    pub(crate) fn lack(&self, files: i64, bytes: i64) -> Option<Lack> {
        if files > 0 && self.files.left < files.unsigned_abs() {
            return Some(Lack::Files);
        }
        (bytes > 0 && self.bytes.left < bytes.unsigned_abs())
            .then_some(Lack::Bytes(bytes.unsigned_abs()))
    }

    /// Uses up what a new file in a directory takes.
    pub(crate) fn take(&mut self, directory: &FileId) {
        self.serials.take();
        match self.own.get_mut(directory).filter(|next| **next < Numbering::BORN) {
            Some(next) => *next += 1,
            None => {
                if let Some(ranges) = self.ranges.get_mut(directory) {
                    ranges.take();
                }
            }
        }
    }

    /// Takes files and bytes, or gives them back if negative.
    pub(crate) fn spend(&mut self, files: i64, bytes: i64) {
        for (stock, amount) in [(&mut self.files, files), (&mut self.bytes, bytes)] {
            let rest = i128::from(stock.left) - i128::from(amount);
            stock.left = u64::try_from(rest.max(0)).unwrap_or(u64::MAX);
        }
    }

    pub(crate) fn add(&mut self, provision: Provision) {
        if let Some((directory, first, behind)) = provision.numbers
            && (self.ranges.contains_key(&directory) || self.ranges.len() < RANGES_MAX)
        {
            self.ranges.entry(directory).or_default().add(first, behind);
        }
        if let Some((first, behind)) = provision.serials {
            self.serials.add(first, behind);
        }
        self.files.add(provision.files);
        self.bytes.add(provision.bytes);
    }

    /// Whether inode numbers, files or bytes should be asked for before they are missing.
    pub(crate) fn is_low(&self) -> bool {
        self.serials.is_low() || self.files.is_low() || self.bytes.is_low()
    }

    /// Whether numbers in a directory should be.
    pub(crate) fn is_low_in(&self, directory: &FileId) -> bool {
        self.own_number(directory).is_none()
            && self.ranges.get(directory).is_some_and(Ranges::is_low)
    }

    /// Lets go of the numbers of some directories if there are many, of none in which `is_busy`.
    pub(crate) fn release(&mut self, mut is_busy: impl FnMut(&FileId) -> bool) -> Vec<FileId> {
        if self.ranges.len() < RANGES_MAX / 2 {
            return Vec::new();
        }
        let idle = self.ranges.keys().filter(|directory| !is_busy(directory));
        let idle: Vec<FileId> = idle.take(RANGES_MAX / 4).cloned().collect();
        idle.iter().for_each(|directory| drop(self.ranges.remove(directory)));
        idle
    }
}
