//! All paths of a group, as prints: what its filters are built from.

use std::collections::BTreeSet;

use crate::Print;

/// Prints as of the last build in one sorted list, and what has changed since. 16 bytes a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roll {
    /// In order, none twice.
    built: Vec<Print>,
    /// Not in `built`.
    added: BTreeSet<Print>,
    /// In `built`.
    removed: BTreeSet<Print>,
}

/// What a change is to the filter that was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing: it was so already.
    No,
    /// The path is new, or no longer new.
    Fresh,
    /// The path is in the filter that was built, and was so before.
    Built,
}

impl Roll {
    pub(crate) fn new(mut prints: Vec<Print>) -> Roll {
        prints.sort_unstable();
        prints.dedup();
        Roll { built: prints, ..Roll::default() }
    }

    pub(crate) fn add(&mut self, print: Print) -> Change {
        if self.removed.remove(&print) {
            return Change::Built;
        }
        let is_new = self.built.binary_search(&print).is_err() && self.added.insert(print);
        if is_new { Change::Fresh } else { Change::No }
    }

    pub(crate) fn remove(&mut self, print: Print) -> Change {
        if self.added.remove(&print) {
            return Change::Fresh;
        }
        let is_gone = self.built.binary_search(&print).is_ok() && self.removed.insert(print);
        if is_gone { Change::Built } else { Change::No }
    }

    /// How many paths there are.
    pub(crate) fn files(&self) -> u64 {
        (self.built.len() + self.added.len() - self.removed.len()) as u64
    }

    /// How many came since the last build.
    pub(crate) fn added(&self) -> u64 {
        self.added.len() as u64
    }

    /// How many of those that were built are gone.
    pub(crate) fn removed(&self) -> u64 {
        self.removed.len() as u64
    }

    /// Takes up what has changed and answers all paths.
    pub(crate) fn merge(&mut self) -> &[Print] {
        if !self.removed.is_empty() {
            let removed = std::mem::take(&mut self.removed);
            self.built.retain(|print| !removed.contains(print));
        }
        if !self.added.is_empty() {
            self.built.extend(std::mem::take(&mut self.added));
            // Two sorted runs, which a merge sort takes as they are.
            self.built.sort();
        }
        &self.built
    }
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;

    #[test]
    fn a_roll_is_a_set_however_often_it_is_merged() {
        let mut rng = Rng::new(1);
        let (mut roll, mut model) = (Roll::new(Vec::new()), BTreeSet::new());
        for _ in 0..20_000 {
            let print = Print::from_words(rng.below(300), 0);
            let (change, is_change) = if rng.chance(0.5) {
                (roll.add(print), model.insert(print))
            } else {
                (roll.remove(print), model.remove(&print))
            };
            assert_eq!(change != Change::No, is_change);
            assert_eq!(roll.files(), model.len() as u64);
            if rng.chance(0.01) {
                assert!(roll.merge().iter().eq(&model));
                assert_eq!((roll.added(), roll.removed()), (0, 0));
            }
        }
    }
}
