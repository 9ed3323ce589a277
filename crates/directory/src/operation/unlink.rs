//! Unlink: one name less for a file that is no directory.

use base::FileId;
use lease::Name;

use crate::{
    actor::Actor,
    record::Sort,
    refusal::Refusal,
    view::{Stop, View},
};

use super::{all, enter, lose_name, may_take, name_in_use, names_changed};

pub(super) fn perform(
    view: &mut impl View,
    actor: &Actor,
    time: i64,
    directory: &FileId,
    name: &Name,
    is_open: &mut bool,
) -> Result<(), Stop> {
    let parent = enter(view, actor, directory)?;
    let entry = name_in_use(view, directory, name)?;
    may_take(view, actor, &parent, &entry)?;
    if entry.sort == Sort::Directory {
        return Err(Refusal::IsDirectory.into());
    }
    view.know(&[all(&entry.file)])?;
    lose_name(view, &entry.file, time, is_open)?;
    view.set_entry(directory, name, None);
    names_changed(view, directory, time, 0)
}
