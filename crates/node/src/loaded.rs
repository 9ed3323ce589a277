//! What a store has of the records that are not at hand.

use base::FileId;
use directory::{Directory, Entry, Key, Record};
use lease::Name;

/// What a store has of what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Records, or that there is none.
    pub records: Vec<(Key, Option<Record>)>,
    /// Names in directories.
    pub pages: Vec<Page>,
    /// All records that there are, if these were asked for.
    pub everything: Option<Vec<(Key, Record)>>,
}

/// Names in a directory, in order and without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The directory.
    pub directory: FileId,
    /// These come after this one; they are the first ones, if none.
    pub after: Option<Name>,
    /// The names, and what they stand for.
    pub names: Vec<(Name, Entry)>,
    /// Whether there are no more.
    pub is_all: bool,
}

impl Loaded {
    pub(crate) fn hand_to(self, directory: &mut Directory) {
        directory.supply(self.records);
        for Page { directory: of, after, names, is_all } in self.pages {
            directory.supply_page(&of, after.as_ref(), names, is_all);
        }
        if let Some(records) = self.everything {
            directory.supply_all(records);
        }
    }
}
