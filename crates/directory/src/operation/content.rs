//! The bytes of a file have changed: what a directory has to know of that.

use base::FileId;
use lease::Field;

use crate::{
    actor::{Actor, Use},
    record::{Content, Sort},
    refusal::Refusal,
    view::{Stop, View},
};

use super::{read, write};

pub(super) fn perform(
    view: &mut impl View,
    actor: &Actor,
    time: i64,
    file: &FileId,
    content: &Content,
) -> Result<(), Stop> {
    view.know(&[
        read(Field::Access.of(file)),
        write(Field::Times.of(file)),
        write(Field::Content.of(file)),
    ])?;
    let mut record = (*view.file(file)?).clone();
    match record.sort {
        Sort::Directory => return Err(Refusal::IsDirectory.into()),
        Sort::Symlink => return Err(Refusal::IsSymlink.into()),
        Sort::Special(_) => return Err(Refusal::Senseless.into()),
        Sort::Regular if content.size.max(content.allocated) > Content::SIZE_MAX => {
            return Err(Refusal::TooLong.into());
        }
        Sort::Regular => {}
    }
    // An owner may always write: permission was taken away after opening, or could be given back.
    if !actor.owns(&record.access) {
        actor.must(&record.access, Use::Write)?;
    }
    let mut access = record.access;
    if !actor.is_root() {
        access.tame();
    }
    if access != record.access {
        view.know(&[write(Field::Access.of(file))])?;
    }
    // That they change without a word is for `keep` to say first.
    let is_kept = record.content.is_live && record.content.home == Some(view.client());
    if content.is_live && !is_kept {
        return Err(Refusal::Senseless.into());
    }
    // What nobody could check is not believed of anybody.
    if content.lacks_digest() && view.has_others() {
        return Err(Refusal::Senseless.into());
    }
    record.content = Content { home: Some(view.client()), ..content.clone() };
    record.times.modified = time;
    record.times.changed = time;
    record.access = access;
    view.set_file(file, record);
    Ok(())
}
