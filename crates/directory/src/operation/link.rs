//! Link: one more name for a file that is no directory.

use base::FileId;
use lease::{Field, Name};

use crate::{
    actor::{Actor, Use},
    record::{Entry, Sort},
    refusal::Refusal,
    view::{Stop, View},
};

use super::{enter, name_not_in_use, names_changed, write};

/// The most names of a file.
pub const LINKS_MAX: u32 = 65_000;

pub(super) fn perform(
    view: &mut impl View,
    actor: &Actor,
    time: i64,
    file: &FileId,
    directory: &FileId,
    name: &Name,
) -> Result<(), Stop> {
    // What is to get a name is looked for first.
    view.know(&[write(Field::Parent.of(file))])?;
    view.file(file)?;
    let parent = enter(view, actor, directory)?;
    name_not_in_use(view, directory, name)?;
    actor.must(&parent, Use::Write)?;
    let mut record = (*view.file(file)?).clone();
    match record.links {
        _ if record.sort == Sort::Directory => return Err(Refusal::NotOwner.into()),
        // Nobody can give a name to what has lost its last one.
        0 => return Err(Refusal::NotFound.into()),
        LINKS_MAX.. => return Err(Refusal::TooManyLinks.into()),
        _ => {}
    }
    record.links += 1;
    record.parent = directory.clone();
    record.times.changed = time;
    let entry = Entry { file: file.clone(), sort: record.sort };
    view.set_file(file, record);
    view.set_entry(directory, name, Some(entry));
    names_changed(view, directory, time, 0)
}
