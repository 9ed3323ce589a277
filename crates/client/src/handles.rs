//! Open files: many handles of one file are one boolean to everybody else.

use std::collections::{BTreeMap, BTreeSet};

use base::FileId;
use lease::{Field, Mode, Scope};

use crate::call::Modes;

/// The open files of this client.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    /// By number. Bounded by the settings.
    open: BTreeMap<u64, (FileId, Modes)>,
    /// How often each file is open, and how often in each mode. One for each file in `open`.
    counts: BTreeMap<FileId, Counts>,
    /// Who has locked an open file and not given up the whole of it since. Of files in `counts` only. Bounded by
    /// the settings.
    lockers: BTreeSet<(FileId, u64)>,
    /// Handles that were opened while nobody had been told of a loss yet: whoever has done something, and
    /// opens a file only to sync, is told that it is lost (as with `errseq_t` in Linux). In `open` only.
    owing: BTreeSet<u64>,
    /// Something was lost, and nobody has been told.
    is_loss_untold: bool,
    next: u64,
    /// Handles below this were lost with their session.
    lost_below: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    all: u32,
    modes: [u32; Mode::ALL.len()],
}

impl Handles {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn is_open(&self, file: &FileId) -> bool {
        self.counts.contains_key(file)
    }

    /// Notes that somebody has locked an open file.
    pub(crate) fn lock(&mut self, file: &FileId, owner: u64) {
        self.lockers.insert((file.clone(), owner));
    }

    /// Notes that somebody has no lock on it any more.
    pub(crate) fn unlock(&mut self, file: &FileId, owner: u64) {
        self.lockers.remove(&(file.clone(), owner));
    }

    /// How many have locked files.
    pub(crate) fn locker_count(&self) -> usize {
        self.lockers.len()
    }

    /// Whether somebody is among those who have locked a file.
    pub(crate) fn is_locker(&self, file: &FileId, owner: u64) -> bool {
        self.lockers.contains(&(file.clone(), owner))
    }

    /// Somebody whose locks on a file go when this handle does: it is the last one.
    pub(crate) fn locker(&self, file: &FileId) -> Option<u64> {
        let is_last = self.counts.get(file).is_some_and(|counts| counts.all == 1);
        let of_file = (file.clone(), u64::MIN)..=(file.clone(), u64::MAX);
        self.lockers.range(of_file).map(|(_, owner)| *owner).next().filter(|_| is_last)
    }

    /// Whether this file or one below it is open.
    pub(crate) fn is_open_below(&self, file: &FileId) -> bool {
        self.counts.range(file..).next().is_some_and(|(open, _)| file.is_prefix_of(open))
    }

    /// Whether we have the file open in this mode ourselves.
    pub(crate) fn has(&self, file: &FileId, mode: Mode) -> bool {
        self.counts.get(file).is_some_and(|counts| counts.modes[mode as usize] > 0)
    }

    pub(crate) fn get(&self, handle: u64) -> Option<&(FileId, Modes)> {
        self.open.get(&handle)
    }

    pub(crate) fn is_lost(&self, handle: u64) -> bool {
        handle < self.lost_below
    }

    /// Whether somebody who syncs through an open handle has to be told of a loss. Once.
    pub(crate) fn take_loss(&mut self, handle: u64) -> bool {
        self.owing.remove(&handle)
    }

    /// Notes that somebody was told what was lost: handles that are opened from now on owe nothing.
    pub(crate) fn loss_told(&mut self) {
        self.is_loss_untold = false;
    }

    /// The booleans that change when a file is opened, or closed, in these modes.
    pub(crate) fn changing(&self, file: &FileId, modes: Modes, is_opening: bool) -> Vec<Scope> {
        let counts = self.counts.get(file).copied().unwrap_or_default();
        let edge = if is_opening { 0 } else { 1 };
        let handles = (counts.all == edge).then_some(Field::Handles);
        let modes = modes.own().filter(|mode| counts.modes[*mode as usize] == edge);
        handles.into_iter().chain(modes.map(Field::Mode)).map(|field| field.of(file)).collect()
    }

    pub(crate) fn open(&mut self, file: &FileId, modes: Modes) -> u64 {
        let counts = self.counts.entry(file.clone()).or_default();
        counts.all += 1;
        modes.own().for_each(|mode| counts.modes[mode as usize] += 1);
        let handle = self.next;
        self.next += 1;
        self.open.insert(handle, (file.clone(), modes));
        if self.is_loss_untold {
            self.owing.insert(handle);
        }
        handle
    }

    pub(crate) fn close(&mut self, handle: u64) {
        let Some((file, modes)) = self.open.remove(&handle) else { return };
        self.owing.remove(&handle);
        let Some(counts) = self.counts.get_mut(&file) else { return };
        counts.all -= 1;
        modes.own().for_each(|mode| counts.modes[mode as usize] -= 1);
        if counts.all == 0 {
            self.counts.remove(&file);
        }
    }

    /// The session is lost, and all handles with it; and whether anything else is.
    pub(crate) fn lose(&mut self, is_loss: bool) {
        // What an open handle still owed is owed again, as the handle is no more.
        self.is_loss_untold |= is_loss || !self.owing.is_empty();
        self.owing.clear();
        self.open.clear();
        self.counts.clear();
        self.lockers.clear();
        self.lost_below = self.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Ways;

    #[test]
    fn only_the_first_and_the_last_handle_of_a_file_change_a_boolean() {
        let file: FileId = "1.2".parse().unwrap();
        let mut handles = Handles::default();
        let posix = Modes::posix(true, false);
        let reader =
            Modes { access: Ways { read: true, ..Ways::default() }, deny: Some(Ways::default()) };
        assert_eq!(handles.changing(&file, posix, true), [Field::Handles.of(&file)]);
        let first = handles.open(&file, posix);
        assert_eq!(handles.changing(&file, reader, true), [Field::Mode(Mode::Read).of(&file)]);
        let second = handles.open(&file, reader);
        assert!(handles.changing(&file, posix, false).is_empty());
        handles.close(first);
        assert_eq!(handles.changing(&file, reader, false).len(), 2);
        handles.close(second);
        assert!(!handles.is_open(&file) && handles.len() == 0);
    }
}
