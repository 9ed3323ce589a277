//! Setattr: permission bits, owner, group and times. A new size is new content.

use base::FileId;
use borsh::{BorshDeserialize, BorshSerialize};
use lease::Field;

use crate::{
    actor::{Actor, Use},
    record::{Access, Sort},
    refusal::Refusal,
    view::{Stop, View},
};

use super::{read, write};

/// What changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Changes {
    /// The permission bits.
    pub mode: Option<u16>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// When it was last read.
    pub accessed: Option<Moment>,
    /// When its content last changed.
    pub modified: Option<Moment>,
}

/// A moment to set a time to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Moment {
    /// When the operation is performed. Who may write may do this.
    Now,
    /// Any. Only an owner may do this.
    At(i64),
}

impl Changes {
    fn has_access(&self) -> bool {
        self.mode.is_some() || self.uid.is_some() || self.gid.is_some()
    }

    /// Whether nothing changes.
    fn is_empty(&self) -> bool {
        !self.has_access() && !self.has_times()
    }

    fn has_times(&self) -> bool {
        self.accessed.is_some() || self.modified.is_some()
    }

    /// These, and then others on top.
    pub fn then(&mut self, later: Changes) {
        self.mode = later.mode.or(self.mode);
        self.uid = later.uid.or(self.uid);
        self.gid = later.gid.or(self.gid);
        self.accessed = later.accessed.or(self.accessed);
        self.modified = later.modified.or(self.modified);
    }
}

pub(super) fn perform(
    view: &mut impl View,
    actor: &Actor,
    time: i64,
    file: &FileId,
    changes: &Changes,
) -> Result<(), Stop> {
    // As `utimensat` that omits both times: anybody may, and not even the time of last change is touched.
    if changes.is_empty() {
        return Ok(());
    }
    // Setting times needs to know who may, not to change it.
    let access = Field::Access.of(file);
    let mut wants = vec![if changes.has_access() { write(access) } else { read(access) }];
    if changes.has_times() {
        wants.push(write(Field::Times.of(file)));
    }
    view.know(&wants)?;
    let mut record = (*view.file(file)?).clone();
    let before = record.access;
    let moment = |moment: Moment| match moment {
        Moment::Now => time,
        Moment::At(at) => at,
    };
    if changes.mode.is_some() && record.sort == Sort::Symlink {
        return Err(Refusal::Unsupported.into());
    }
    may_own(actor, &before, changes)?;
    if changes.mode.is_some() && !actor.owns(&before) {
        return Err(Refusal::NotOwner.into());
    }
    may_date(actor, &before, changes)?;

    if changes.uid.is_some() || changes.gid.is_some() {
        if record.sort != Sort::Directory {
            record.access.tame();
        }
        record.access.uid = changes.uid.unwrap_or(before.uid);
        record.access.gid = changes.gid.unwrap_or(before.gid);
    }
    if let Some(mode) = changes.mode {
        record.access.mode = mode & Access::MODE;
        if !actor.is_root() && !actor.is_in(record.access.gid) {
            record.access.mode &= !Access::SETGID;
        }
    }
    record.times.accessed = changes.accessed.map_or(record.times.accessed, moment);
    record.times.modified = changes.modified.map_or(record.times.modified, moment);
    record.times.changed = time;
    view.set_file(file, record);
    Ok(())
}

fn may_own(actor: &Actor, before: &Access, changes: &Changes) -> Result<(), Refusal> {
    if actor.is_root() {
        return Ok(());
    }
    let keeps_owner = changes.uid.is_none_or(|uid| uid == before.uid && uid == actor.uid);
    let may_group = changes.gid.is_none_or(|gid| actor.uid == before.uid && actor.is_in(gid));
    let keeps_group = changes.gid.is_none_or(|gid| gid == before.gid) && actor.uid == before.uid;
    match keeps_owner && (may_group || keeps_group) {
        true => Ok(()),
        false => Err(Refusal::NotOwner),
    }
}

fn may_date(actor: &Actor, before: &Access, changes: &Changes) -> Result<(), Refusal> {
    if !changes.has_times() || actor.owns(before) {
        return Ok(());
    }
    let all = [changes.accessed, changes.modified];
    match all.iter().all(|moment| *moment == Some(Moment::Now)) {
        true => actor.must(before, Use::Write),
        false => Err(Refusal::NotOwner),
    }
}
