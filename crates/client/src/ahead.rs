//! Asking ahead: whoever goes through a directory, file by file, wants of each what they wanted of the one before.
//!
//! Each lease that is missed takes a decision of the group, and a few more if another client has it. So whoever has
//! missed the same of two files in a row is also given that of some that follow by name, then of many. What somebody
//! else turns out to want in that directory ends it: it begins anew with one at a time.

use base::{FileId, Instant};
use directory::Sort;
use lease::{Field, Kind, Name, Scope, holder::Input as Lease, message::Want};

use crate::{
    attempt::WANTS_MAX,
    client::{Client, Output},
    view::is_known,
};

/// For so many files it is asked at once, and each time for so many times as many, up to so many.
const FIRST: usize = 8;
const GROWTH: usize = 8;
const FILES_MAX: usize = 256;
/// The most ways through directories that are remembered: those that were gone last. One `rm -r` takes three.
const STRIDES_MAX: usize = 8;
/// The most requests that are under way for what nobody waits for.
const REQUESTS_MAX: usize = 4;

/// The ways in which programs go through directories.
#[derive(Debug, Default)]
pub(crate) struct Strides {
    /// The last one first. At most [`STRIDES_MAX`].
    all: Vec<Stride>,
    /// At most [`REQUESTS_MAX`].
    requests: Vec<u64>,
}

/// One way through a directory.
#[derive(Debug)]
struct Stride {
    directory: FileId,
    miss: Miss,
    /// For so many files it was asked last.
    length: usize,
}

/// What is missed of a file: of its name, or of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Miss {
    Name(Kind),
    File(Vec<(Field, Kind)>),
}

impl Miss {
    /// The same of another file.
    fn wants(&self, directory: &FileId, name: &Name, file: &FileId) -> Vec<Want> {
        match self {
            Miss::Name(kind) => {
                vec![Want { scope: Field::Child(name.clone()).of(directory), kind: *kind }]
            }
            // Who wants to read several fields of each gets all in one lease.
            Miss::File(fields) if fields.len() > 1 && fields.iter().all(is_plain_read) => {
                vec![Want { scope: Field::Whole.of(file), kind: Kind::Read }]
            }
            Miss::File(fields) => {
                let want = |(field, kind): &(Field, Kind)| Want {
                    scope: field.clone().of(file),
                    kind: *kind,
                };
                fields.iter().map(want).collect()
            }
        }
    }
}

fn is_plain_read((field, kind): &(Field, Kind)) -> bool {
    *kind == Kind::Read && !field.is_disjunctive()
}

impl Strides {
    /// Notes that this was missed in a directory; for how many more files to ask.
    fn step(&mut self, directory: &FileId, miss: Miss) -> usize {
        let known = self.all.iter().position(|stride| stride.miss == miss);
        let length = match known.map(|at| self.all.remove(at)) {
            None => 0,
            Some(stride) if stride.directory == *directory => {
                (stride.length * GROWTH).clamp(FIRST, FILES_MAX)
            }
            Some(_) => FIRST,
        };
        self.all.truncate(STRIDES_MAX - 1);
        self.all.insert(0, Stride { directory: directory.clone(), miss, length });
        length
    }

    /// Somebody else wants something of a file.
    pub(crate) fn disturb(&mut self, part: &Scope) {
        let parent = part.file.parent();
        self.all.retain(|stride| {
            stride.directory != part.file && Some(&stride.directory) != parent.as_ref()
        });
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }
}

impl Client {
    /// Somebody waits for these: asks for the same of the files that follow, if it looks as if they are next.
    pub(crate) fn ask_ahead(&mut self, now: Instant, wants: &[Want], out: &mut Vec<Output>) {
        let Some((directory, file, miss)) = self.missed(wants) else { return };
        let length = self.strides.step(&directory, miss.clone());
        let holder = &self.holder;
        self.strides.requests.retain(|request| holder.is_asking(*request));
        let is_full = self.holder.lease_count() > self.settings.budget / 2;
        if length == 0 || is_full || self.strides.requests.len() >= REQUESTS_MAX {
            return;
        }
        let following = self.facts.names_after(&directory, &file);
        let alike = following.filter(|(_, entry)| entry.sort != Sort::Directory);
        let lacking = alike.map(|(name, entry)| {
            let mut wants = miss.wants(&directory, name, &entry.file);
            wants.retain(|want| !is_known(holder, now, want));
            wants
        });
        let of_files = lacking.filter(|wants| !wants.is_empty()).take(length);
        let wants: Vec<Want> = of_files.flatten().take(WANTS_MAX).collect();
        if wants.is_empty() {
            return;
        }
        let request = self.holder.request_next();
        self.strides.requests.push(request);
        self.tell(now, Lease::Need { wants, together: false }, out);
    }

    /// Of which file in which directory all of this is missed, if it is of one.
    fn missed(&self, wants: &[Want]) -> Option<(FileId, FileId, Miss)> {
        let first = &wants.first()?.scope;
        if let (Field::Child(name), [want]) = (&first.field, wants) {
            // Whoever makes new names says nothing of those that are there.
            let entry = self.facts.entry(&first.file, name)??;
            let is_file = entry.sort != Sort::Directory;
            return is_file.then(|| (first.file.clone(), entry.file, Miss::Name(want.kind)));
        }
        let directory = first.file.parent()?;
        let is_directory =
            self.facts.record(&first.file).is_some_and(|record| record.sort == Sort::Directory);
        let is_own = |want: &Want| {
            let field = &want.scope.field;
            want.scope.file == first.file
                && !matches!(field, Field::Child(_) | Field::Children | Field::Tree)
        };
        if is_directory || !wants.iter().all(is_own) {
            return None;
        }
        let fields = wants.iter().map(|want| (want.scope.field.clone(), want.kind)).collect();
        Some((directory, first.file.clone(), Miss::File(fields)))
    }
}
