//! The group's side of an operation: what a client did is done again, and each thing that it had to
//! know is looked up among what it was promised (D35).
//!
//! Changes go into the records at once and are undone if the operation does not end well; what an
//! operation takes from the session is put together and taken only at its end.

use base::{FileId, Instant};
use lease::{Client, Field, Grantor, Kind, Name, Scope, grantor, message::Want};
use overlay::Users;
use triomphe::Arc;

use crate::{
    actor::Actor,
    charge::{Charges, Cost, Quota},
    directory::Settings,
    ledger::{Free, Ledger},
    operation::Operation,
    record::{Entry, File, Key, Numbering, Record, Sort},
    records::{Absent, Records},
    refusal::Refusal,
    session::{self, Session},
    users,
    view::{Birth, Missing, Stop, View},
};

/// How an operation ended that did not end well.
pub(crate) enum Failed {
    Refused(Refusal),
    Absent(Absent),
}

/// What operations of one client are done with.
pub(crate) struct Work<'a> {
    now: Instant,
    client: Client,
    has_others: bool,
    users: &'a Users,
    records: &'a mut Records,
    grantor: &'a mut Grantor,
    session: &'a mut Session,
    settings: &'a Settings,
    ledger: &'a mut Ledger,
    /// What came of the operations so far.
    traces: &'a mut Traces,
    /// What the grantor said to births.
    said: &'a mut Vec<grantor::Output>,
    /// A file of which the client was promised everything, so that its fields need not be asked for
    /// one by one. No promise to a client ends while its own operations are replayed.
    promised: Option<FileId>,
    /// The same of a file of which it was not.
    unpromised: Option<FileId>,
    step: Step,
}

/// What a group has to see to after a batch, in the order in which it came about. Bounded by what a
/// batch can touch.
#[derive(Default)]
pub(crate) struct Traces {
    /// Whose times have changed.
    pub(crate) stirred: Vec<FileId>,
    /// Which have lost their last name (true), or have gone (false).
    pub(crate) orphaned: Vec<(FileId, bool)>,
    /// Of which others may do other things with it than before.
    pub(crate) guarded: Vec<FileId>,
    /// Which have got (true) or lost locks of a client.
    pub(crate) locked: Vec<(Client, FileId, bool)>,
}

/// What the present operation will take, if it ends well.
#[derive(Default)]
struct Step {
    /// What its changes cost.
    charges: Charges,
    /// What the files that it changes cost before, and then. An operation changes four at the most.
    costs: Vec<(Option<Cost>, Option<Cost>)>,
    born: Option<Born>,
    /// By how much the number of names in a directory changes. An operation changes two at the most.
    names: Vec<(FileId, i64)>,
    stirred: Vec<FileId>,
    orphaned: Vec<(FileId, bool)>,
    guarded: Vec<FileId>,
    locked: Vec<(Client, FileId, bool)>,
    /// The last name that was looked at, and whether it stands for anything.
    looked: Option<(Key, bool)>,
    /// What was needed where nobody could be told.
    absent: Absent,
}

impl Step {
    /// Forgets everything, but keeps the room that it took.
    fn clear(&mut self) {
        self.charges.clear();
        self.costs.clear();
        (self.born, self.looked) = (None, None);
        self.names.clear();
        self.stirred.clear();
        self.orphaned.clear();
        self.guarded.clear();
        self.locked.clear();
        self.absent = Absent::default();
    }
}

struct Born {
    file: FileId,
    directory: FileId,
    number: u64,
    is_creators: bool,
    serial: u64,
    lease: Option<Scope>,
}

impl<'a> Work<'a> {
    #[expect(clippy::too_many_arguments, reason = "the parts of a directory, borrowed one by one")]
    pub(crate) fn new(
        now: Instant,
        (client, has_others): (Client, bool),
        users: &'a Users,
        records: &'a mut Records,
        grantor: &'a mut Grantor,
        session: &'a mut Session,
        settings: &'a Settings,
        ledger: &'a mut Ledger,
        traces: &'a mut Traces,
        said: &'a mut Vec<grantor::Output>,
    ) -> Work<'a> {
        let (promised, unpromised, step) = (None, None, Step::default());
        Work {
            now,
            client,
            has_others,
            users,
            records,
            grantor,
            session,
            settings,
            ledger,
            traces,
            said,
            promised,
            unpromised,
            step,
        }
    }

    /// Replays an operation as a whole or not at all.
    pub(crate) fn replay(&mut self, operation: &Operation) -> Result<(), Failed> {
        self.step.clear();
        let done = self.try_replay(operation);
        match done {
            Ok(()) => self.records.commit(),
            Err(_) => self.records.undo(),
        }
        done
    }

    fn try_replay(&mut self, operation: &Operation) -> Result<(), Failed> {
        if operation.actor.groups.len() > Actor::GROUPS_MAX {
            return Err(Failed::Refused(Refusal::TooMuch));
        }
        if !operation.act.is_nobodys() && !users::may_be(self.users, &operation.actor) {
            return Err(Failed::Refused(Refusal::NotYourUser));
        }
        let performed = operation.clone().perform(self);
        if !self.step.absent.is_empty() {
            return Err(Failed::Absent(std::mem::take(&mut self.step.absent)));
        }
        match performed {
            Ok(()) => self.finish(),
            Err(Stop::Refused(refusal)) => Err(Failed::Refused(refusal)),
            Err(Stop::Missing(Missing { keys, .. })) => {
                Err(Failed::Absent(Absent { keys, ..Absent::default() }))
            }
        }
    }

    /// Takes from the session what the operation needs.
    fn finish(&mut self) -> Result<(), Failed> {
        let mut step = std::mem::take(&mut self.step);
        for (directory, by) in step.names.drain(..) {
            let record = self.records.file(&directory).map_err(Failed::Absent)?;
            if let Some(mut record) = record.map(|record| File::clone(record)) {
                record.numbering.names = record.numbering.names.saturating_add_signed(by);
                self.records.set_file(&directory, Some(record));
            }
        }
        let spent = self.afford(&step.charges).map_err(Failed::Refused)?;
        if let Some(born) = step.born.take() {
            if let Some(scope) = born.lease
                && !self.grantor.bear(self.now, self.client, scope, self.said)
            {
                return Err(Failed::Refused(Refusal::TooMuch));
            }
            if !born.is_creators {
                self.session.use_number(&born.directory, born.number);
            }
            self.session.serials.use_up(born.serial);
        }
        for (uid, before, now) in spent {
            self.session.escrow.insert(uid, now);
            self.ledger.free_up(self.client, uid, before);
            self.ledger.set_aside(self.client, uid, now);
        }
        for (before, after) in step.costs.drain(..) {
            self.ledger.book(before, after);
        }
        self.traces.orphaned.append(&mut step.orphaned);
        self.traces.guarded.append(&mut step.guarded);
        self.traces.locked.append(&mut step.locked);
        for file in step.stirred.drain(..) {
            if self.traces.stirred.last() != Some(&file) {
                self.traces.stirred.push(file);
            }
        }
        self.step = step;
        Ok(())
    }

    /// What the session has for whom, and what it has then, if it can pay for this. Nothing is given back to it for
    /// somebody for whom it was never given anything.
    fn afford(&self, charges: &Charges) -> Result<Vec<(u32, Quota, Quota)>, Refusal> {
        let mut spent = Vec::new();
        for (uid, files, bytes) in charges.iter() {
            let own = self.session.escrow.get(&uid).copied();
            let before = own.unwrap_or_default();
            // Mostly it has enough.
            let is_short = u64::try_from(files).is_ok_and(|files| files > before.files)
                || u64::try_from(bytes).is_ok_and(|bytes| bytes > before.bytes);
            let free = match is_short {
                true => self.ledger.free(self.settings, self.client, uid),
                false => Free::NONE,
            };
            let now = session::spend(before, &free, files, bytes)?;
            if own.is_some() {
                spent.push((uid, before, now));
            }
        }
        Ok(spent)
    }

    fn note_cost(&mut self, before: Option<&File>, after: Option<&File>) {
        let costs = (before.and_then(Cost::of), after.and_then(Cost::of));
        if costs.0 != costs.1 {
            self.step.charges.note(self.client, before, after);
            self.step.costs.push(costs);
        }
    }

    /// Whether the client was promised all of this.
    fn is_promised(&mut self, want: &Want) -> bool {
        if self.promised.as_ref() == Some(&want.scope.file) && want.scope.field != Field::Tree {
            return true;
        }
        if self.unpromised.as_ref() != Some(&want.scope.file) {
            let file = want.scope.file.clone();
            if self.grantor.promises(self.client, &Field::Whole.of(&file), Kind::Write) {
                self.promised = Some(file);
                return want.scope.field != Field::Tree
                    || self.grantor.promises(self.client, &want.scope, want.kind);
            }
            self.unpromised = Some(file);
        }
        self.grantor.promises(self.client, &want.scope, want.kind)
    }

    fn known_file(&mut self, file: &FileId) -> Option<Arc<File>> {
        match self.records.file(file) {
            Ok(record) => record.cloned(),
            Err(absent) => {
                self.step.absent.join(absent);
                None
            }
        }
    }
}

fn missing(absent: Absent) -> Stop {
    Stop::Missing(Missing { keys: absent.keys, ..Missing::default() })
}

impl View for Work<'_> {
    fn know(&mut self, wants: &[Want]) -> Result<(), Stop> {
        match wants.iter().all(|want| self.is_promised(want)) {
            true => Ok(()),
            false => Err(Refusal::Unknown.into()),
        }
    }

    /// Only what was done is replayed, and that never rests on this alone.
    fn knows_value(&self, _: &Scope) -> bool {
        false
    }

    fn file(&mut self, file: &FileId) -> Result<Arc<File>, Stop> {
        let record = self.records.file(file).map_err(missing)?;
        record.cloned().ok_or(Refusal::Gone.into())
    }

    fn entry(&mut self, directory: &FileId, name: &Name) -> Result<Option<Entry>, Stop> {
        let key = Key::entry(directory, name);
        let entry = match self.records.get(&key).map_err(missing)? {
            Some(Record::Entry(entry)) => Some(entry.clone()),
            _ => None,
        };
        self.step.looked = Some((key, entry.is_some()));
        Ok(entry)
    }

    fn is_empty(&mut self, directory: &FileId) -> Result<bool, Stop> {
        Ok(self.file(directory)?.numbering.names == 0)
    }

    fn set_file(&mut self, file: &FileId, mut record: File) {
        let is_new = self.step.born.as_ref().is_some_and(|born| born.file == *file);
        let before = if is_new { None } else { self.known_file(file) };
        if let Some(at) = self.step.names.iter().position(|(of, _)| of == file) {
            let (_, by) = self.step.names.swap_remove(at);
            record.numbering.names = record.numbering.names.saturating_add_signed(by);
        }
        if let Some(born) = &self.step.born
            && born.is_creators
            && born.directory == *file
        {
            record.numbering.creator_next = born.number.saturating_add(1);
        }
        self.note_cost(before.as_deref(), Some(&record));
        if let Some(before) = before {
            if before.times != record.times {
                self.step.stirred.push(file.clone());
            }
            if before.access != record.access {
                self.step.guarded.push(file.clone());
            }
            if before.links > 0 && record.links == 0 {
                self.step.orphaned.push((file.clone(), true));
            }
            let is_locked =
                |record: &File| record.locks().iter().any(|lock| lock.client == self.client);
            if record.rare.is_some() || before.rare.is_some() {
                let locked = is_locked(&record);
                if locked != is_locked(&before) {
                    self.step.locked.push((self.client, file.clone(), locked));
                }
            }
        }
        self.records.set_file(file, Some(record));
    }

    fn set_entry(&mut self, directory: &FileId, name: &Name, entry: Option<Entry>) {
        let key = Key::entry(directory, name);
        let looked = self.step.looked.take().filter(|(looked, _)| *looked == key);
        let was = match looked {
            Some((_, was)) => was,
            None => match self.records.get(&key) {
                Ok(record) => record.is_some(),
                Err(absent) => return self.step.absent.join(absent),
            },
        };
        let by = i64::from(entry.is_some()) - i64::from(was);
        if by != 0 {
            match self.step.names.iter_mut().find(|(of, _)| of == directory) {
                Some((_, known)) => *known += by,
                None => self.step.names.push((directory.clone(), by)),
            }
        }
        self.records.set(key, entry.map(Record::Entry));
    }

    fn bear(&mut self, directory: &FileId, sort: Sort, birth: &mut Birth) -> Result<(), Stop> {
        let numbering = self.file(directory)?.numbering;
        let number = birth.file.number().ok_or(Refusal::NotYours)?;
        if directory.child(number).as_ref() != Ok(&birth.file) {
            return Err(Refusal::NotYours.into());
        }
        let number = number.get();
        let is_creators = number < Numbering::BORN
            && numbering.creator == self.client.0
            && number >= numbering.creator_next;
        if !(is_creators || self.session.may_number(directory, number))
            || !self.session.serials.contains(birth.serial)
        {
            return Err(Refusal::NotYours.into());
        }
        let field = if sort == Sort::Directory { Field::Tree } else { Field::Whole };
        self.step.born = Some(Born {
            file: birth.file.clone(),
            directory: directory.clone(),
            number,
            is_creators,
            serial: birth.serial,
            lease: birth.is_leased.then(|| field.of(&birth.file)),
        });
        Ok(())
    }

    fn bury(&mut self, file: &FileId) {
        let Some(record) = self.known_file(file) else { return };
        self.note_cost(Some(&record), None);
        if record.links == 0 {
            self.step.orphaned.push((file.clone(), false));
        }
        for lock in record.locks() {
            self.step.locked.push((lock.client, file.clone(), false));
        }
        self.records.set_file(file, None);
    }

    fn is_open(&mut self, file: &FileId, is_open: &mut bool) -> Result<(), Stop> {
        let may_say = *is_open || !self.is_open_elsewhere(file)?;
        if may_say { Ok(()) } else { Err(Refusal::Unknown.into()) }
    }

    fn is_open_elsewhere(&mut self, file: &FileId) -> Result<bool, Stop> {
        let want = Want { scope: Field::Handles.of(file), kind: Kind::OtherRead };
        let is_known_closed =
            self.is_promised(&want) && self.grantor.knows_closed(&want.scope, self.client);
        Ok(!is_known_closed)
    }

    fn has_others(&self) -> bool {
        self.has_others
    }

    fn client(&self) -> Client {
        self.client
    }
}
