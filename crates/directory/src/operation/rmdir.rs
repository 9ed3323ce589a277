//! Rmdir: an empty directory goes.

use base::FileId;
use lease::Name;

use crate::{
    actor::Actor,
    record::Sort,
    refusal::Refusal,
    view::{Stop, View},
};

use super::{all, enter, may_take, name_in_use, names_changed};

pub(super) fn perform(
    view: &mut impl View,
    actor: &Actor,
    time: i64,
    directory: &FileId,
    name: &Name,
) -> Result<(), Stop> {
    let parent = enter(view, actor, directory)?;
    let entry = name_in_use(view, directory, name)?;
    may_take(view, actor, &parent, &entry)?;
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
    names_changed(view, directory, time, -1)
}
