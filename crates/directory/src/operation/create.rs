//! Create, mkdir, symlink and mknod: a new file of some sort under an unused name.

use base::FileId;
use lease::Name;

use crate::{
    actor::{Actor, Use},
    record::{Access, Content, Entry, File, Numbering, Rare, Sort, Times},
    refusal::Refusal,
    view::{Birth, Stop, View},
};

use super::{enter, name_not_in_use, names_changed};

/// The longest path that a symbolic link can hold, in bytes.
pub const SYMLINK_BYTES_MAX: usize = 4_095;

pub(super) fn perform_symlink(
    view: &mut impl View,
    actor: &Actor,
    time: i64,
    directory: &FileId,
    name: &Name,
    target: &[u8],
    birth: &mut Birth,
) -> Result<(), Stop> {
    if target.is_empty() || target.contains(&0) {
        return Err(Refusal::Senseless.into());
    }
    if target.len() > SYMLINK_BYTES_MAX {
        return Err(Refusal::TooDeep.into());
    }
    perform(view, actor, time, directory, name, Sort::Symlink, 0o777, target, birth)
}

#[expect(clippy::too_many_arguments, reason = "four operations are one, less these")]
pub(super) fn perform(
    view: &mut impl View,
    actor: &Actor,
    time: i64,
    directory: &FileId,
    name: &Name,
    sort: Sort,
    mode: u16,
    target: &[u8],
    birth: &mut Birth,
) -> Result<(), Stop> {
    let parent = enter(view, actor, directory)?;
    name_not_in_use(view, directory, name)?;
    actor.must(&parent, Use::Write)?;
    if matches!(sort, Sort::Special(special) if special.is_device()) && !actor.is_root() {
        return Err(Refusal::NotOwner.into());
    }
    view.bear(directory, sort, birth)?;

    // As mkdir(2) has it: the group's bit of a directory comes from above.
    let mode =
        if sort == Sort::Directory { mode & !Access::SETGID & !Access::SETUID } else { mode };
    let mut access = Access { mode: mode & Access::MODE, uid: actor.uid, gid: actor.gid };
    if parent.mode & Access::SETGID != 0 {
        access.gid = parent.gid;
        if sort == Sort::Directory {
            access.mode |= Access::SETGID;
        } else if access.mode & Access::GROUP_RUNS != 0
            && !actor.is_root()
            && !actor.is_in(access.gid)
        {
            access.mode &= !Access::SETGID;
        }
    }
    let is_directory = sort == Sort::Directory;
    let rare =
        (!target.is_empty()).then(|| Box::new(Rare { target: target.to_vec(), ..Rare::default() }));
    let file = File {
        serial: birth.serial,
        sort,
        access,
        times: Times { accessed: time, modified: time, changed: time },
        content: Content { size: target.len() as u64, ..Content::default() },
        links: if is_directory { 2 } else { 1 },
        parent: directory.clone(),
        numbering: if is_directory { Numbering::of(view.client()) } else { Numbering::default() },
        rare,
    };
    view.set_file(&birth.file, file);
    view.set_entry(directory, name, Some(Entry { file: birth.file.clone(), sort }));
    names_changed(view, directory, time, i32::from(is_directory))
}
