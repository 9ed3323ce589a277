//! Rmdir: an empty directory goes.

use base::FileId;
use lease::{Field, Name};

use crate::{
    actor::{Actor, Use},
    record::Sort,
    refusal::Refusal,
    view::{Stop, View},
};

use super::{all, enter, name_in_use, names_changed, read};

pub(super) fn perform(
    view: &mut impl View,
    actor: &Actor,
    time: i64,
    directory: &FileId,
    name: &Name,
) -> Result<(), Stop> {
    let parent = enter(view, actor, directory)?;
    let entry = name_in_use(view, directory, name)?;
    actor.must(&parent, Use::Write)?;
    if parent.is_sticky() {
        view.know(&[read(Field::Access.of(&entry.file))])?;
        if actor.is_stuck(&parent, &view.file(&entry.file)?.access) {
            return Err(Refusal::NotOwner.into());
        }
    }
    if entry.sort != Sort::Directory {
        return Err(Refusal::NotDirectory.into());
    }
    // D26: the infinite child lease, for delete.
    view.know(&[all(&entry.file)])?;
    if !view.is_empty(&entry.file)? {
        return Err(Refusal::NotEmpty.into());
    }
    view.bury(&entry.file);
    view.set_entry(directory, name, None);
    names_changed(view, directory, time)
}
