//! What the client has been told of files and names, and what it has done to them since.
//!
//! A fact alone is worth nothing: it may be used only while a lease says that it is still so. What the
//! rules here ensure is that a fact under a lease is right:
//! - a fact goes when the last lease over it goes back;
//! - whatever is left over when a lease comes, because an old one had ended, goes before its values are
//!   adopted;
//! - a value that arrives fills only what is not at hand: what is at hand was known all along, and may
//!   be ahead of the group.

use std::{
    collections::BTreeMap,
    ops::{Bound, Deref, DerefMut},
};

use base::FileId;
use directory::{Entry, File, Sort};
use lease::{Field, Name, Scope};
use triomphe::Arc;

/// Facts about files and names. Bounded by whoever evicts: see `Client::make_room`.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    files: BTreeMap<FileId, Fact>,
    recency: Recency,
    /// How many files and names.
    size: usize,
}

/// Which file was used when.
#[derive(Debug, Default)]
struct Recency {
    /// The least recent first. One for each file.
    files: BTreeMap<u64, FileId>,
    last: u64,
}

impl Recency {
    /// Makes a file the last that is forgotten. `used` is where it was: 0 if nowhere yet.
    fn put_last(&mut self, file: &FileId, used: &mut u64) {
        self.last += 1;
        self.files.remove(used);
        *used = self.last;
        self.files.insert(self.last, file.clone());
    }
}

#[derive(Debug, Default)]
pub(crate) struct Fact {
    record: Option<Arc<File>>,
    /// It is no more, and never will be again.
    is_gone: bool,
    /// Which of [`File::FIELDS`] are at hand, by place.
    fields: u8,
    names: Names,
    /// Where it stands in [`Recency`]; 0 if it has just been made.
    used: u64,
}

/// What is known of the names in a directory. Most files are none, and then this takes one word.
#[derive(Debug, Default)]
struct Names(Option<Box<Known>>);

#[derive(Debug, Default)]
struct Known {
    entries: BTreeMap<Name, Named>,
    listed: Listed,
}

static NO_NAMES: Known = Known { entries: BTreeMap::new(), listed: Listed::Nothing };

impl Deref for Names {
    type Target = Known;

    fn deref(&self) -> &Known {
        self.0.as_deref().unwrap_or(&NO_NAMES)
    }
}

impl DerefMut for Names {
    fn deref_mut(&mut self) -> &mut Known {
        self.0.get_or_insert_default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    Entry(Option<Entry>),
    /// Nothing is at hand, although all names around it are.
    Hole,
}

/// How far all names of a directory are at hand, those that are not there among them.
#[derive(Debug, Default)]
enum Listed {
    #[default]
    Nothing,
    Through(Name),
    All,
}

impl Listed {
    fn has(&self, name: &Name) -> bool {
        match self {
            Listed::Nothing => false,
            Listed::Through(last) => name <= last,
            Listed::All => true,
        }
    }
}

/// Names in a directory, as far as they are at hand.
pub(crate) enum Page {
    /// These, and whether there are no more.
    Names(Vec<(Name, Entry)>, bool),
    /// More names have to be listed first.
    Unlisted,
    /// This name has to be fetched first.
    Unknown(Name),
}

impl Fact {
    fn size(&self) -> usize {
        1 + self.names.entries.len()
    }

    pub(crate) fn has(&self, field: &Field) -> bool {
        bit(field).is_some_and(|bit| self.fields & bit != 0)
    }

    /// Whether every field of the record is at hand.
    pub(crate) fn is_whole(&self) -> bool {
        self.fields == ALL_FIELDS && !self.is_gone
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    pub(crate) fn record(&self) -> Option<&Arc<File>> {
        self.record.as_ref()
    }

    /// What a name stands for, if that is at hand.
    pub(crate) fn entry(&self, name: &Name) -> Option<Option<&Entry>> {
        match self.names.entries.get(name) {
            Some(Named::Entry(entry)) => Some(entry.as_ref()),
            Some(Named::Hole) => None,
            None => self.names.listed.has(name).then_some(None),
        }
    }
}

fn bit(field: &Field) -> Option<u8> {
    File::FIELDS.iter().position(|known| known == field).map(|place| 1 << place)
}

const ALL_FIELDS: u8 = (1 << File::FIELDS.len()) - 1;

/// So many names are near each other.
const NEAR: usize = 2_048;

/// A file that was among the last so many in use counts as just used.
const RECENT: u64 = 64;

impl Facts {
    /// How many files.
    pub(crate) fn file_count(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The file that has not been used for longest.
    pub(crate) fn oldest(&self) -> Option<FileId> {
        self.recency.files.first_key_value().map(|(_, file)| file.clone())
    }

    /// Notes that a file is in use.
    pub(crate) fn touch(&mut self, file: &FileId) {
        self.used(file);
    }

    /// Makes a file the last that is forgotten.
    pub(crate) fn put_last(&mut self, file: &FileId) {
        if let Some(fact) = self.files.get_mut(file) {
            self.recency.put_last(file, &mut fact.used);
        }
    }

    /// What is known of a file, which is in use.
    pub(crate) fn used(&mut self, file: &FileId) -> &Fact {
        self.recall(file, true)
    }

    /// What is known of a file.
    pub(crate) fn get(&self, file: &FileId) -> Option<&Fact> {
        self.files.get(file)
    }

    fn fact(&mut self, file: &FileId) -> &mut Fact {
        self.recall(file, false)
    }

    fn recall(&mut self, file: &FileId, is_in_use: bool) -> &mut Fact {
        let fact = self.files.entry(file.clone()).or_default();
        let is_new = fact.used == 0;
        self.size += usize::from(is_new);
        // What was used a moment ago need not be moved to the end.
        if is_new || is_in_use && self.recency.last - fact.used >= RECENT {
            self.recency.put_last(file, &mut fact.used);
        }
        fact
    }

    /// Changes a fact, minding the size.
    fn change<T>(&mut self, file: &FileId, change: impl FnOnce(&mut Fact) -> T) -> T {
        let fact = self.fact(file);
        let before = fact.size();
        let result = change(fact);
        let after = fact.size();
        self.size = self.size + after - before;
        result
    }

    pub(crate) fn remove(&mut self, file: &FileId) {
        if let Some(fact) = self.files.remove(file) {
            self.size -= fact.size();
            self.recency.files.remove(&fact.used);
        }
    }

    /// Whether anything is known of a file below this one.
    pub(crate) fn has_below(&self, file: &FileId) -> bool {
        let below = (Bound::Excluded(file), Bound::Unbounded);
        self.files.range(below).next().is_some_and(|(next, _)| file.is_prefix_of(next))
    }

    pub(crate) fn is_gone(&self, file: &FileId) -> bool {
        self.files.get(file).is_some_and(|fact| fact.is_gone)
    }

    /// The names in a directory that follow soon on that of a file, and stand for something.
    pub(crate) fn names_after<'a>(
        &'a self,
        directory: &'a FileId,
        file: &'a FileId,
    ) -> impl Iterator<Item = (&'a Name, &'a Entry)> {
        let names = self.files.get(directory).map(|fact| fact.names.entries.iter());
        let entries = names.into_iter().flatten().filter_map(|(name, known)| match known {
            Named::Entry(Some(entry)) => Some((name, entry)),
            Named::Entry(None) | Named::Hole => None,
        });
        entries.skip_while(move |(_, entry)| entry.file != *file).skip(1).take(NEAR)
    }

    /// The files created in a directory, and still there, whose records are not at hand: those whose names
    /// follow soon on that of a file. Who lists a directory that is too large to be remembered needs them
    /// next; what comes before has just been forgotten.
    pub(crate) fn unknown_after<'a>(
        &'a self,
        directory: &'a FileId,
        file: &'a FileId,
    ) -> impl Iterator<Item = &'a FileId> {
        let after = self.names_after(directory, file).map(|(_, entry)| &entry.file);
        after.filter(move |file| {
            directory.is_prefix_of(file)
                && !self.files.get(*file).is_some_and(|fact| fact.record.is_some() || fact.is_gone)
        })
    }

    /// Whether every field of a file's record is at hand.
    pub(crate) fn is_whole(&self, file: &FileId) -> bool {
        self.files.get(file).is_some_and(Fact::is_whole)
    }

    pub(crate) fn has(&self, file: &FileId, field: &Field) -> bool {
        self.files.get(file).is_some_and(|fact| fact.has(field))
    }

    pub(crate) fn record(&self, file: &FileId) -> Option<&Arc<File>> {
        self.files.get(file)?.record.as_ref()
    }

    /// The last name up to which all are at hand.
    pub(crate) fn listed_through(&self, directory: &FileId) -> Option<Name> {
        match &self.files.get(directory)?.names.listed {
            Listed::Through(last) => Some(last.clone()),
            Listed::Nothing | Listed::All => None,
        }
    }

    /// What a name stands for, if that is at hand.
    pub(crate) fn entry(&self, directory: &FileId, name: &Name) -> Option<Option<Entry>> {
        self.files.get(directory)?.entry(name).map(Option::<&Entry>::cloned)
    }

    /// So many names after one, all of which must be at hand.
    pub(crate) fn page(&self, directory: &FileId, after: Option<&Name>, count: usize) -> Page {
        let Some(fact) = self.files.get(directory) else { return Page::Unlisted };
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut entries = Vec::new();
        for (name, known) in fact.names.entries.range::<Name, _>((start, Bound::Unbounded)) {
            if !fact.names.listed.has(name) {
                break;
            }
            match known {
                Named::Hole => return Page::Unknown(name.clone()),
                Named::Entry(None) => {}
                Named::Entry(Some(_)) if entries.len() == count => {
                    return Page::Names(entries, false);
                }
                Named::Entry(Some(entry)) => entries.push((name.clone(), entry.clone())),
            }
        }
        match &fact.names.listed {
            Listed::All => Page::Names(entries, true),
            Listed::Through(_) if entries.len() == count => Page::Names(entries, false),
            Listed::Through(_) | Listed::Nothing => Page::Unlisted,
        }
    }

    /// A name in a directory that stands for something, if one is at hand.
    pub(crate) fn has_name(
        &self,
        directory: &FileId,
        mut is_known: impl FnMut(&Name) -> bool,
    ) -> bool {
        let names = self.files.get(directory).map(|fact| fact.names.entries.iter());
        let mut names = names.into_iter().flatten();
        names.any(|(name, known)| matches!(known, Named::Entry(Some(_))) && is_known(name))
    }

    /// A file that we have just created: nothing of it is unknown.
    pub(crate) fn bear(&mut self, file: &FileId, record: Arc<File>) {
        let is_directory = record.sort == Sort::Directory;
        self.change(file, |fact| {
            fact.record = Some(record);
            fact.fields = ALL_FIELDS;
            if is_directory {
                fact.names.listed = Listed::All;
            }
        });
    }

    /// A file that is no more.
    pub(crate) fn bury(&mut self, file: &FileId) {
        self.change(file, |fact| {
            let used = fact.used;
            *fact = Fact { is_gone: true, used, ..Fact::default() };
        });
    }

    /// Changes a record under leases on what changes in it.
    pub(crate) fn set_file(&mut self, file: &FileId, record: Arc<File>) {
        match self.files.get_mut(file) {
            Some(fact) => fact.record = Some(record),
            None => self.fact(file).record = Some(record),
        }
    }

    /// Changes a name under a lease on it.
    pub(crate) fn set_entry(&mut self, directory: &FileId, name: &Name, entry: Option<Entry>) {
        // That it stands for nothing has to be said even if all names are at hand: if others get the right
        // to some of these, the listing is void, but not what we know of this one.
        self.change(directory, |fact| fact.names.entries.insert(name.clone(), Named::Entry(entry)));
    }

    fn drop_field(&mut self, file: &FileId, field: &Field) {
        if let (Some(fact), Some(bit)) = (self.files.get_mut(file), bit(field)) {
            fact.fields &= !bit;
        }
    }

    /// Drops what is inside a scope, except what is still held.
    pub(crate) fn forget(&mut self, part: &Scope, is_held: impl Fn(&Scope) -> bool) {
        let file = &part.file;
        match &part.field {
            Field::Tree => {
                let end = file.region_end();
                let end = end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
                let inside = self.files.range((Bound::Included(file), end));
                let inside: Vec<FileId> = inside.map(|(file, _)| file.clone()).collect();
                inside.iter().for_each(|file| self.forget_file(file, &is_held));
            }
            Field::Whole => self.forget_file(file, &is_held),
            Field::Children => self.forget_names(file, &is_held),
            Field::Child(name) => self.forget_name(file, name, &is_held),
            field if !is_held(part) => self.drop_field(file, field),
            _ => {}
        }
    }

    fn forget_file(&mut self, file: &FileId, is_held: &impl Fn(&Scope) -> bool) {
        for field in File::FIELDS {
            if self.has(file, &field) && !is_held(&field.clone().of(file)) {
                self.drop_field(file, &field);
            }
        }
        self.forget_names(file, is_held);
    }

    fn forget_names(&mut self, directory: &FileId, is_held: &impl Fn(&Scope) -> bool) {
        if !self.files.contains_key(directory) || is_held(&Field::Children.of(directory)) {
            return;
        }
        self.change(directory, |fact| {
            if fact.names.0.is_none() {
                return;
            }
            fact.names.listed = Listed::Nothing;
            fact.names.entries.retain(|name, known| {
                *known != Named::Hole && is_held(&Field::Child(name.clone()).of(directory))
            });
        });
    }

    fn forget_name(&mut self, directory: &FileId, name: &Name, is_held: &impl Fn(&Scope) -> bool) {
        if !self.files.contains_key(directory) || is_held(&Field::Child(name.clone()).of(directory))
        {
            return;
        }
        self.change(directory, |fact| {
            if fact.names.listed.has(name) {
                fact.names.entries.insert(name.clone(), Named::Hole);
            } else {
                fact.names.entries.remove(name);
            }
        });
    }

    /// Fills in what is held and not at hand of a file. `is_ahead` if something was done to it that the
    /// group may not have heard of: then the times that follow from that are ours, and a directory has so
    /// many more `links`.
    pub(crate) fn adopt_file(
        &mut self,
        file: &FileId,
        newer: Option<File>,
        is_ahead: bool,
        links: i32,
        is_held: impl Fn(&Scope) -> bool,
    ) {
        let Some(newer) = newer else {
            // Of what we have created ourselves the group may not have heard yet.
            if !is_ahead {
                self.bury(file);
            }
            return;
        };
        let fact = self.fact(file);
        if fact.is_gone {
            return;
        }
        let mut record = match fact.record.take() {
            Some(record) => record,
            None => Arc::new(newer.clone()),
        };
        let ours = record.times;
        let mutable = Arc::make_mut(&mut record);
        for field in File::FIELDS {
            if fact.has(&field) || !is_held(&field.clone().of(file)) {
                continue;
            }
            mutable.adopt(&field, &newer);
            fact.fields |= bit(&field).unwrap_or(0);
            if field == Field::Times {
                if is_ahead {
                    mutable.times.changed = mutable.times.changed.max(ours.changed);
                }
                if is_ahead && mutable.sort == Sort::Directory {
                    mutable.times.modified = mutable.times.modified.max(ours.modified);
                    mutable.links = mutable.links.saturating_add_signed(links);
                }
            }
        }
        fact.record = Some(record);
    }

    /// Fills in a name if it is held and not at hand.
    pub(crate) fn adopt_entry(
        &mut self,
        directory: &FileId,
        name: Name,
        entry: Option<Entry>,
        is_held: impl Fn(&Scope) -> bool,
    ) {
        let is_news = self.entry(directory, &name).is_none();
        if is_news && is_held(&Field::Child(name.clone()).of(directory)) {
            self.change(directory, |fact| fact.names.entries.insert(name, Named::Entry(entry)));
        }
    }

    /// Fills in names that follow on those at hand, where they are held.
    pub(crate) fn adopt_names(
        &mut self,
        directory: &FileId,
        after: Option<&Name>,
        entries: Vec<(Name, Entry)>,
        is_all: bool,
        is_held: impl Fn(&Scope) -> bool,
    ) {
        let follows = |listed: &Listed| match (listed, after) {
            (Listed::All, _) => false,
            (_, None) => true,
            (listed, Some(after)) => listed.has(after),
        };
        let is_ordered = entries.windows(2).all(|pair| pair[0].0 < pair[1].0)
            && entries.first().is_none_or(|(first, _)| after.is_none_or(|after| after < first));
        let all_held = is_held(&Field::Children.of(directory));
        self.change(directory, |fact| {
            if !is_ordered || !follows(&fact.names.listed) {
                return;
            }
            let last = entries.last().map(|(name, _)| name.clone()).or_else(|| after.cloned());
            for (name, entry) in entries {
                let is_at_hand = fact.names.listed.has(&name)
                    || matches!(fact.names.entries.get(&name), Some(Named::Entry(_)));
                if !is_at_hand && (all_held || is_held(&Field::Child(name.clone()).of(directory))) {
                    fact.names.entries.insert(name, Named::Entry(Some(entry)));
                }
            }
            match last {
                _ if is_all => fact.names.listed = Listed::All,
                Some(last) if !fact.names.listed.has(&last) => {
                    fact.names.listed = Listed::Through(last)
                }
                _ => {}
            }
        });
    }
}
