//! Rename: a name moves, over another if need be, or two change places.

use base::FileId;
use lease::{Field, Name};

use crate::{
    actor::{Actor, Use},
    record::{Entry, Sort},
    refusal::Refusal,
    view::{Stop, View},
};

use super::{
    Over, all, enter, lose_name, may_take, name_in_use, name_to_change, names_changed, read, write,
};

pub(super) struct Rename<'a> {
    pub(super) from: &'a FileId,
    pub(super) from_name: &'a Name,
    pub(super) to: &'a FileId,
    pub(super) to_name: &'a Name,
    pub(super) over: Over,
}

impl Rename<'_> {
    pub(super) fn perform(
        &self,
        view: &mut impl View,
        actor: &Actor,
        time: i64,
        is_open: &mut bool,
    ) -> Result<(), Stop> {
        let from_access = enter(view, actor, self.from)?;
        let to_access = enter(view, actor, self.to)?;
        let moved = name_in_use(view, self.from, self.from_name)?;
        let there = name_to_change(view, self.to, self.to_name)?;
        match (&there, self.over) {
            (Some(_), Over::Refuse) => return Err(Refusal::NameTaken.into()),
            (None, Over::Exchange) => return Err(Refusal::NotFound.into()),
            _ => {}
        }
        self.check_loops(view, &moved, there.as_ref())?;
        if there.as_ref().is_some_and(|there| there.file == moved.file) {
            return Ok(());
        }
        may_take(view, actor, &from_access, &moved)?;
        match &there {
            None => actor.must(&to_access, Use::Write)?,
            Some(there) => {
                may_take(view, actor, &to_access, there)?;
                match (moved.sort == Sort::Directory, there.sort == Sort::Directory) {
                    _ if self.over == Over::Exchange => {}
                    (true, false) => return Err(Refusal::NotDirectory.into()),
                    (false, true) => return Err(Refusal::IsDirectory.into()),
                    _ => {}
                }
            }
        }
        self.may_leave(view, actor, &moved)?;
        view.know(&[write(Field::Parent.of(&moved.file))])?;
        if let Some(there) = &there {
            let want = match self.over {
                Over::Exchange => write(Field::Parent.of(&there.file)),
                Over::Replace | Over::Refuse => all(&there.file),
            };
            view.know(&[want])?;
        }
        let is_directory = |entry: &Entry| i32::from(entry.sort == Sort::Directory);
        let (moves, goes) = (is_directory(&moved), there.as_ref().map_or(0, is_directory));
        let comes = if self.over == Over::Exchange { goes } else { 0 };
        match there {
            Some(there) if self.over == Over::Exchange => {
                self.may_leave(view, actor, &there)?;
                self.settle(view, &there.file, self.from, time)?;
                view.set_entry(self.from, self.from_name, Some(there));
            }
            Some(there) if there.sort == Sort::Directory => {
                if !view.is_empty(&there.file)? {
                    return Err(Refusal::NotEmpty.into());
                }
                view.bury(&there.file);
                view.set_entry(self.from, self.from_name, None);
            }
            Some(there) => {
                lose_name(view, &there.file, time, is_open)?;
                view.set_entry(self.from, self.from_name, None);
            }
            None => view.set_entry(self.from, self.from_name, None),
        }
        self.settle(view, &moved.file, self.to, time)?;
        view.set_entry(self.to, self.to_name, Some(moved));
        names_changed(view, self.from, time, comes - moves)?;
        names_changed(view, self.to, time, moves - goes)
    }

    /// Goes on only if nothing comes to lie below itself (D5).
    fn check_loops(
        &self,
        view: &mut impl View,
        moved: &Entry,
        there: Option<&Entry>,
    ) -> Result<(), Stop> {
        if self.from == self.to {
            return Ok(());
        }
        if moved.sort == Sort::Directory && is_above(view, &moved.file, self.to)? {
            return Err(Refusal::Senseless.into());
        }
        let Some(there) = there.filter(|there| there.sort == Sort::Directory) else {
            return Ok(());
        };
        if is_above(view, &there.file, self.from)? {
            return Err(match self.over {
                Over::Exchange => Refusal::Senseless.into(),
                Over::Replace | Over::Refuse => Refusal::NotEmpty.into(),
            });
        }
        Ok(())
    }

    /// A directory that gets another parent is changed itself.
    fn may_leave(&self, view: &mut impl View, actor: &Actor, entry: &Entry) -> Result<(), Stop> {
        if entry.sort == Sort::Directory && self.from != self.to {
            view.know(&[read(Field::Access.of(&entry.file))])?;
            actor.must(&view.file(&entry.file)?.access, Use::Write)?;
        }
        Ok(())
    }

    fn settle(
        &self,
        view: &mut impl View,
        file: &FileId,
        parent: &FileId,
        time: i64,
    ) -> Result<(), Stop> {
        let mut record = (*view.file(file)?).clone();
        record.parent = parent.clone();
        record.times.changed = time;
        view.set_file(file, record);
        Ok(())
    }
}

/// Whether a directory is another, or above it. Every step up is known, and so can't change.
fn is_above(view: &mut impl View, above: &FileId, below: &FileId) -> Result<bool, Stop> {
    let mut at = below.clone();
    loop {
        if at == *above {
            return Ok(true);
        }
        if at.is_root() {
            return Ok(false);
        }
        view.know(&[read(Field::Parent.of(&at))])?;
        at = view.file(&at)?.parent.clone();
    }
}
