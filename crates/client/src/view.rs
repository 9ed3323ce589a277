//! What an operation sees in a client: what it holds leases on, and nothing else.

use std::{cell::RefCell, num::NonZeroU64};

use base::{FileId, Instant};
use directory::{Birth, Charges, Entry, File, Key, Missing, Refusal, Sort, Stop, View};
use lease::{Client, Field, Holder, Kind, Knowledge, Name, Scope, message::Want};
use triomphe::Arc;

use crate::{
    facts::{Fact, Facts, Page},
    handles::Handles,
    supply::{Lack, Supply},
};

/// What is at hand, and what an operation would change: nothing changes before it has ended well.
pub(crate) struct Sight<'a> {
    pub(crate) now: Instant,
    pub(crate) me: Client,
    pub(crate) budget: usize,
    pub(crate) holder: &'a Holder,
    pub(crate) facts: &'a mut Facts,
    pub(crate) supply: &'a Supply,
    pub(crate) handles: &'a Handles,
    pub(crate) changes: Changes,
    /// What could not be had, if something could not.
    pub(crate) lack: Option<Lack>,
    /// Whether what has to be known is noted: nothing depends on what somebody has only looked at.
    pub(crate) is_noting: bool,
    /// What is known of all of the file that was last looked at.
    last: RefCell<Option<(FileId, Knowledge)>>,
    steps: usize,
}

/// What an operation has come to.
#[derive(Default)]
pub(crate) struct Changes {
    /// Everything that it had to know.
    pub(crate) depends: Vec<Want>,
    /// Records in the order of their changes; none is a burial.
    pub(crate) files: Vec<(FileId, Option<Arc<File>>)>,
    pub(crate) entries: Vec<(FileId, Name, Option<Entry>)>,
    /// In which directory what was born.
    pub(crate) birth: Option<(FileId, Scope)>,
    /// What it costs.
    pub(crate) charges: Charges,
}

/// The record that has to be fetched before this scope of a file, of which this much is known, can be looked
/// at.
fn missing_key(fact: Option<&Fact>, scope: &Scope) -> Option<Key> {
    let Scope { file, field } = scope;
    let is_at_hand = match field {
        Field::Child(name) => {
            let is_known = fact.is_some_and(|fact| fact.entry(name).is_some());
            return (!is_known).then(|| Key::entry(file, name));
        }
        field if File::FIELDS.contains(field) => fact.is_some_and(|fact| fact.has(field)),
        Field::Whole | Field::Tree => fact.is_some_and(|fact| fact.is_gone() || fact.is_whole()),
        _ => true,
    };
    (!is_at_hand).then(|| Key::file(file))
}

/// Whether a want is met by the leases that are held.
pub(crate) fn is_known(holder: &Holder, now: Instant, Want { scope, kind }: &Want) -> bool {
    match kind {
        Kind::Read => holder.knows(now, scope) != Knowledge::None,
        Kind::Write | Kind::SelfWrite => holder.knows(now, scope) == Knowledge::Writes,
        Kind::OtherRead => holder.knows_others(now, scope).is_some(),
    }
}

/// No operation asks for more: a group that lies about who lies in whom can't keep us walking up.
const STEPS_MAX: usize = 4_096;

impl<'a> Sight<'a> {
    pub(crate) fn new(
        now: Instant,
        (me, budget): (Client, usize),
        holder: &'a Holder,
        facts: &'a mut Facts,
        supply: &'a Supply,
        handles: &'a Handles,
    ) -> Sight<'a> {
        let changes = Changes::default();
        Sight {
            now,
            me,
            budget,
            holder,
            facts,
            supply,
            handles,
            changes,
            lack: None,
            is_noting: true,
            last: RefCell::new(None),
            steps: 0,
        }
    }

    /// What is known of all of a file: mostly as much as of each of its fields.
    fn whole(&self, file: &FileId) -> Knowledge {
        if let Some((known, knowledge)) = &*self.last.borrow()
            && known == file
        {
            return *knowledge;
        }
        let knowledge = self.holder.knows(self.now, &Field::Whole.of(file));
        *self.last.borrow_mut() = Some((file.clone(), knowledge));
        knowledge
    }

    fn holds(&self, want: &Want) -> bool {
        let Want { scope, kind } = want;
        if scope.field != Field::Tree && *kind != Kind::OtherRead {
            match self.whole(&scope.file) {
                Knowledge::Writes => return true,
                Knowledge::Reads if *kind == Kind::Read && !scope.field.is_disjunctive() => {
                    return true;
                }
                Knowledge::Reads | Knowledge::None => {}
            }
        }
        is_known(self.holder, self.now, want)
    }

    /// A file's record as it is before the next change, if there is such a file.
    fn before(&self, file: &FileId) -> Option<Arc<File>> {
        let changed = self.changes.files.iter().rev().find(|(changed, _)| changed == file);
        match changed {
            Some((_, record)) => record.clone(),
            None => self.facts.record(file).cloned(),
        }
    }

    /// Goes on only if what was done can be paid for.
    pub(crate) fn pay(&mut self, of: Option<&FileId>) -> Result<(), Stop> {
        match self.supply.lack(&self.changes.charges, of) {
            Some(lack) => Err(self.lacks(lack, &FileId::ROOT)),
            None => Ok(()),
        }
    }

    /// Whether everything about a file may be looked at and is at hand. The usual case, and quick to tell.
    pub(crate) fn sees_all(&self, file: &FileId) -> bool {
        self.facts.is_whole(file) && self.whole(file) != Knowledge::None
    }

    /// Whether everybody else has the file closed in this way, if that is known.
    pub(crate) fn knows_others(&mut self, scope: &Scope) -> Result<bool, Stop> {
        self.know(&[Want { scope: scope.clone(), kind: Kind::OtherRead }])?;
        Ok(self.holder.knows_others(self.now, scope).unwrap_or(true))
    }

    /// So many names in a directory after one.
    pub(crate) fn page(
        &mut self,
        directory: &FileId,
        after: Option<&Name>,
        count: usize,
    ) -> Result<(Vec<(Name, Entry)>, bool), Stop> {
        self.facts.touch(directory);
        match self.facts.page(directory, after, count) {
            Page::Names(entries, is_all) => Ok((entries, is_all)),
            Page::Unknown(name) => {
                let keys = vec![Key::entry(directory, &name)];
                Err(Stop::Missing(Missing { keys, ..Missing::default() }))
            }
            Page::Unlisted => {
                let names = Some(directory.clone());
                Err(Stop::Missing(Missing { names, ..Missing::default() }))
            }
        }
    }

    fn lacks(&mut self, lack: Lack, directory: &FileId) -> Stop {
        self.lack = Some(lack);
        let provision = Some(directory.clone());
        Stop::Missing(Missing { provision, ..Missing::default() })
    }
}

impl View for Sight<'_> {
    fn know(&mut self, wants: &[Want]) -> Result<(), Stop> {
        self.steps += wants.len();
        if self.steps > STEPS_MAX {
            return Err(Refusal::TooDeep.into());
        }
        let mut missing = Missing::default();
        // Mostly all of this is about one file.
        let mut near: Option<(&FileId, Option<&Fact>)> = None;
        for want in wants {
            let file = &want.scope.file;
            let fact = match near {
                Some((known, fact)) if known == file => fact,
                _ => self.facts.get(file),
            };
            near = Some((file, fact));
            if fact.is_some_and(Fact::is_gone) {
                return Err(Refusal::Gone.into());
            }
            if !self.holds(want) {
                missing.wants.push(want.clone());
            } else if let Some(key) = missing_key(fact, &want.scope)
                && !missing.keys.contains(&key)
            {
                missing.keys.push(key);
            }
            if self.is_noting {
                self.changes.depends.push(want.clone());
            }
        }
        match missing == Missing::default() {
            true => Ok(()),
            false => Err(Stop::Missing(missing)),
        }
    }

    fn knows_value(&self, scope: &Scope) -> bool {
        let want = Want { scope: scope.clone(), kind: Kind::Read };
        self.holds(&want) && missing_key(self.facts.get(&scope.file), scope).is_none()
    }

    fn file(&mut self, file: &FileId) -> Result<Arc<File>, Stop> {
        let changed = self.changes.files.iter().rev().find(|(changed, _)| changed == file);
        if let Some((_, record)) = changed {
            return record.clone().ok_or(Refusal::Gone.into());
        }
        let fact = self.facts.used(file);
        if fact.is_gone() {
            return Err(Refusal::Gone.into());
        }
        fact.record().cloned().ok_or_else(|| {
            Stop::Missing(Missing { keys: vec![Key::file(file)], ..Missing::default() })
        })
    }

    fn entry(&mut self, directory: &FileId, name: &Name) -> Result<Option<Entry>, Stop> {
        let mut changed = self.changes.entries.iter().rev();
        if let Some((.., entry)) = changed.find(|(at, what, _)| at == directory && what == name) {
            return Ok(entry.clone());
        }
        let entry = self.facts.used(directory).entry(name);
        entry.map(Option::<&Entry>::cloned).ok_or_else(|| {
            let keys = vec![Key::entry(directory, name)];
            Stop::Missing(Missing { keys, ..Missing::default() })
        })
    }

    fn is_empty(&mut self, directory: &FileId) -> Result<bool, Stop> {
        let (now, holder) = (self.now, self.holder);
        let is_known = |name: &Name| {
            holder.knows(now, &Field::Child(name.clone()).of(directory)) != Knowledge::None
        };
        if self.facts.has_name(directory, is_known) {
            return Ok(false);
        }
        let (names, _) = self.page(directory, None, 1)?;
        Ok(names.is_empty())
    }

    fn set_file(&mut self, file: &FileId, record: File) {
        let before = self.before(file);
        self.changes.charges.note(self.me, before.as_deref(), Some(&record));
        self.changes.files.push((file.clone(), Some(Arc::new(record))));
    }

    fn set_entry(&mut self, directory: &FileId, name: &Name, entry: Option<Entry>) {
        self.changes.entries.push((directory.clone(), name.clone(), entry));
    }

    fn bear(&mut self, directory: &FileId, sort: Sort, birth: &mut Birth) -> Result<(), Stop> {
        let number = self.supply.number(directory).and_then(NonZeroU64::new);
        let Some(number) = number else {
            return Err(self.lacks(Lack::Numbers(directory.clone()), directory));
        };
        let Some(serial) = self.supply.serial() else {
            return Err(self.lacks(Lack::Serials, directory));
        };
        let file = directory.child(number).map_err(|_| Refusal::TooDeep)?;
        let field = if sort == Sort::Directory { Field::Tree } else { Field::Whole };
        let scope = field.of(&file);
        let is_covered = self.holder.knows(self.now, &scope) == Knowledge::Writes;
        if !is_covered && !self.holder.may_bear(self.budget) {
            return Err(self.lacks(Lack::Leases, directory));
        }
        *birth = Birth { file, serial, is_leased: false };
        self.changes.birth = Some((directory.clone(), scope));
        Ok(())
    }

    fn bury(&mut self, file: &FileId) {
        let before = self.before(file);
        self.changes.charges.note(self.me, before.as_deref(), None);
        self.changes.files.push((file.clone(), None));
    }

    fn is_open(&mut self, file: &FileId, is_open: &mut bool) -> Result<(), Stop> {
        *is_open = self.handles.is_open(file) || self.is_open_elsewhere(file)?;
        Ok(())
    }

    fn is_open_elsewhere(&mut self, file: &FileId) -> Result<bool, Stop> {
        self.knows_others(&Field::Handles.of(file))
    }

    fn has_others(&self) -> bool {
        false
    }

    fn client(&self) -> Client {
        self.me
    }
}
