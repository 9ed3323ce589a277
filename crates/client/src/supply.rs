//! What new files need and the client has been given: numbers, inode numbers, files and bytes.

use std::collections::{BTreeMap, VecDeque};

use base::{Duration, FileId, Instant};
use directory::{
    ACCOUNTS_MAX, Account, Charges, Quota,
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
    /// What is left for each owner of files. At most [`ACCOUNTS_MAX`].
    stocks: BTreeMap<u32, Stocks>,
    /// Bytes that are kept for open files to grow: whose, and how many. At most [`RESERVES_MAX`].
    reserves: BTreeMap<FileId, (u32, u64)>,
}

/// What is at hand for one owner of files.
#[derive(Debug, Default)]
struct Stocks {
    files: Stock,
    bytes: Stock,
    /// How the owner stood when the group last said so.
    account: Account,
    used_at: Instant,
}

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Numbers in this directory.
    Numbers(FileId),
    /// Inode numbers.
    Serials,
    /// Files, for this owner.
    Files(u32),
    /// So many bytes, for this owner.
    Bytes(u32, u64),
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
/// The most files for which bytes are kept.
const RESERVES_MAX: usize = 65_536;
/// What nobody has used for so long goes back.
const IDLE: Duration = Duration::from_secs(60);
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

    /// What of this can't be paid for. What a file was kept for it may use up itself.
    pub(crate) fn lack(&self, charges: &Charges, of: Option<&FileId>) -> Option<Lack> {
        charges.iter().find_map(|(uid, files, bytes)| {
            let left = self.left(uid);
            if u64::try_from(files).is_ok_and(|files| files > left.files) {
                return Some(Lack::Files(uid));
            }
            let kept = of.map_or(0, |file| self.reserve(file, uid));
            let needed = u64::try_from(bytes).unwrap_or(0).saturating_sub(kept);
            (needed > left.bytes).then_some(Lack::Bytes(uid, needed))
        })
    }

    pub(crate) fn left(&self, uid: u32) -> Quota {
        let left = |stocks: &Stocks| Quota { files: stocks.files.left, bytes: stocks.bytes.left };
        self.stocks.get(&uid).map_or(Quota::default(), left)
    }

    /// How many bytes are kept for a file of this owner.
    pub(crate) fn reserve(&self, file: &FileId, uid: u32) -> u64 {
        self.reserves.get(file).filter(|(of, _)| *of == uid).map_or(0, |(_, bytes)| *bytes)
    }

    /// How many bytes are kept for all files of an owner.
    pub(crate) fn reserved(&self, uid: u32) -> u64 {
        let all = self.reserves.values().filter(|(of, _)| *of == uid);
        all.fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Keeps at least so many bytes for a file, and more if there are; how many are kept then.
    pub(crate) fn keep(
        &mut self,
        now: Instant,
        file: &FileId,
        uid: u32,
        (least, most): (u64, u64),
    ) -> Result<u64, Lack> {
        let kept = self.reserve(file, uid);
        let more = least.saturating_sub(kept);
        let left = self.left(uid).bytes;
        if more > left {
            return Err(Lack::Bytes(uid, more));
        }
        if self.reserves.get(file).is_some_and(|(of, _)| *of != uid) {
            self.let_go(file);
        }
        if self.reserves.len() >= RESERVES_MAX && !self.reserves.contains_key(file) {
            return Ok(0);
        }
        // Not all that there is: other files grow too.
        let more = more.max(most.saturating_sub(kept).min(left / 4));
        if more > 0 {
            self.reserves.insert(file.clone(), (uid, kept + more));
            self.add_stock(now, uid, 0, -i64::try_from(more).unwrap_or(i64::MAX));
        }
        Ok(kept + more)
    }

    /// Keeps nothing for a file any more.
    pub(crate) fn let_go(&mut self, file: &FileId) {
        if let Some((uid, bytes)) = self.reserves.remove(file)
            && let Some(stocks) = self.stocks.get_mut(&uid)
        {
            stocks.bytes.left = stocks.bytes.left.saturating_add(bytes);
        }
    }

    /// Adds to what is left for an owner, or takes from it.
    fn add_stock(&mut self, now: Instant, uid: u32, files: i64, bytes: i64) {
        // What comes back for somebody for whom nothing was given goes to everybody.
        let Some(stocks) = self.stocks.get_mut(&uid) else { return };
        stocks.used_at = now;
        for (stock, amount) in [(&mut stocks.files, files), (&mut stocks.bytes, bytes)] {
            stock.left = stock.left.saturating_add_signed(amount);
        }
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

    /// Pays for what was done to a file, or takes what it gives back.
    pub(crate) fn spend(&mut self, now: Instant, charges: &Charges, of: Option<&FileId>) {
        for (uid, files, mut bytes) in charges.iter() {
            if let Some((_, kept)) =
                of.and_then(|file| self.reserves.get_mut(file)).filter(|(of, _)| *of == uid)
                && bytes > 0
            {
                let paid = bytes.unsigned_abs().min(*kept);
                *kept -= paid;
                bytes -= i64::try_from(paid).unwrap_or(bytes);
            }
            self.add_stock(now, uid, -files, -bytes);
        }
    }

    pub(crate) fn add(&mut self, now: Instant, provision: Provision) {
        if let Some((directory, first, behind)) = provision.numbers
            && (self.ranges.contains_key(&directory) || self.ranges.len() < RANGES_MAX)
        {
            self.ranges.entry(directory).or_default().add(first, behind);
        }
        if let Some((first, behind)) = provision.serials {
            self.serials.add(first, behind);
        }
        if let Some((uid, stock)) = provision.stock
            && (self.stocks.contains_key(&uid) || self.stocks.len() < ACCOUNTS_MAX)
        {
            let stocks = self.stocks.entry(uid).or_default();
            stocks.files.add(stock.files);
            stocks.bytes.add(stock.bytes);
            (stocks.account, stocks.used_at) = (provision.account, now);
        }
    }

    /// How an owner stood when the group last said so, and what is left of what is set aside for them here.
    pub(crate) fn account(&self, uid: u32) -> Option<(Account, Quota)> {
        self.stocks.get(&uid).map(|stocks| (stocks.account, self.left(uid)))
    }

    /// Whether inode numbers, or files or bytes of these owners, should be asked for before they are missing: for
    /// whom.
    pub(crate) fn is_low(&self, charges: &Charges) -> Option<Option<u32>> {
        let is_low = |uid: &u32| {
            let stocks = self.stocks.get(uid);
            stocks.is_some_and(|stocks| stocks.files.is_low() || stocks.bytes.is_low())
        };
        let low = charges.iter().map(|(uid, ..)| uid).find(is_low);
        (low.is_some() || self.serials.is_low()).then_some(low)
    }

    /// Gives back what is left for other owners than this one: of those of whom something is under way, what is sure
    /// to be ours; of others everything.
    pub(crate) fn give_back(
        &mut self,
        but: Option<u32>,
        idle_since: Option<Instant>,
        under_way: impl Fn(u32) -> Option<Quota>,
    ) -> Vec<(u32, Option<Quota>)> {
        let mut back = Vec::new();
        let reserves = &self.reserves;
        self.stocks.retain(|uid, stocks| {
            let is_idle = idle_since.is_none_or(|since| stocks.used_at + IDLE <= since);
            if but == Some(*uid) || !is_idle {
                return true;
            }
            let is_kept = reserves.values().any(|(of, bytes)| of == uid && *bytes > 0);
            let coming = under_way(*uid);
            if coming.is_none() && !is_kept {
                back.push((*uid, None));
                return false;
            }
            let coming = coming.unwrap_or_default();
            let quota = Quota {
                files: stocks.files.left.saturating_sub(coming.files),
                bytes: stocks.bytes.left.saturating_sub(coming.bytes),
            };
            if quota != Quota::default() {
                stocks.files.left -= quota.files;
                stocks.bytes.left -= quota.bytes;
                back.push((*uid, Some(quota)));
            }
            true
        });
        back
    }

    /// Whether there are so many owners that some have to be given up.
    pub(crate) fn is_crowded(&self) -> bool {
        self.stocks.len() >= ACCOUNTS_MAX / 2
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
