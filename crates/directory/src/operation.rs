//! What a client performs and a group replays: one file for each operation.
//!
//! Each has a function `perform` that first says what has to be known, then checks in the order in which
//! a Linux kernel does, and changes something only at its end.

mod content;
mod create;
mod keep;
mod link;
mod lock;
mod reap;
mod rename;
mod rmdir;
mod setattr;
mod unlink;
mod xattr;

use base::{Digest, FileId};
use borsh::{BorshDeserialize, BorshSerialize};
use lease::{Field, Kind, Name, Scope, message::Want};

use crate::{
    actor::{Actor, Use},
    record::{Access, Content, Entry, Sort, Special},
    refusal::Refusal,
    view::{Birth, Stop, View},
};

pub use create::SYMLINK_BYTES_MAX;
pub use link::LINKS_MAX;
pub use lock::{LOCKS_MAX, conflicting};
pub use setattr::{Changes, Moment};
pub use xattr::{ATTRIBUTE_NAME_MAX, ATTRIBUTES_BYTES_MAX, When};

/// Something that a user does, and when on their machine's clock.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Operation {
    /// Who.
    pub actor: Actor,
    /// When, in nanoseconds since 1970.
    pub time: i64,
    /// What.
    pub act: Act,
}

/// What can be done.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Act {
    /// A new file.
    Create {
        /// In which directory.
        directory: FileId,
        /// Under which name.
        name: Name,
        /// With which permission bits.
        mode: u16,
        /// What it is called for ever.
        birth: Birth,
    },
    /// A new directory.
    Mkdir {
        /// In which directory.
        directory: FileId,
        /// Under which name.
        name: Name,
        /// With which permission bits.
        mode: u16,
        /// What it is called for ever.
        birth: Birth,
    },
    /// A new symbolic link.
    Symlink {
        /// In which directory.
        directory: FileId,
        /// Under which name.
        name: Name,
        /// Where it leads.
        target: Vec<u8>,
        /// What it is called for ever.
        birth: Birth,
    },
    /// A new pipe, socket or device.
    Mknod {
        /// In which directory.
        directory: FileId,
        /// Under which name.
        name: Name,
        /// With which permission bits.
        mode: u16,
        /// What it is.
        special: Special,
        /// What it is called for ever.
        birth: Birth,
    },
    /// Another name for a file that is no directory.
    Link {
        /// The file.
        file: FileId,
        /// In which directory.
        directory: FileId,
        /// Under which name.
        name: Name,
    },
    /// A name less for a file that is no directory.
    Unlink {
        /// In which directory.
        directory: FileId,
        /// Which name.
        name: Name,
        /// Whether anybody has the file open, so that it outlives its last name.
        is_open: bool,
    },
    /// An empty directory goes.
    Rmdir {
        /// In which directory.
        directory: FileId,
        /// Which name.
        name: Name,
    },
    /// A name moves.
    Rename {
        /// From which directory.
        from: FileId,
        /// Which name there.
        from_name: Name,
        /// To which directory.
        to: FileId,
        /// Under which name there.
        to_name: Name,
        /// What if that name is taken.
        over: Over,
        /// Whether anybody has open what is overwritten, so that it outlives its last name.
        is_open: bool,
    },
    /// Permission bits, owner, group or times change.
    SetAttr {
        /// The file.
        file: FileId,
        /// What changes.
        changes: Changes,
    },
    /// An extended attribute changes.
    SetXattr {
        /// The file.
        file: FileId,
        /// Which.
        name: Vec<u8>,
        /// To what; none takes it away.
        value: Option<Vec<u8>>,
        /// If there is one already, or none yet.
        when: When,
    },
    /// The bytes of a file have changed.
    SetContent {
        /// The file.
        file: FileId,
        /// What they are now, with whoever does this as their home.
        content: Content,
    },
    /// The bytes of a file begin or cease to change where they are without a word.
    Keep {
        /// The file.
        file: FileId,
        /// Which of the contents of whoever does this it is from now on.
        version: u64,
        /// Whether they begin to: nobody else may have the file open then.
        is_live: bool,
        /// If they do not, their hash.
        digest: Option<Digest>,
    },
    /// Bytes of a file are locked or unlocked.
    Lock {
        /// The file.
        file: FileId,
        /// By whom on this machine.
        owner: u64,
        /// The first byte.
        start: u64,
        /// The last byte.
        end: u64,
        /// Shared, exclusive, or no more.
        hold: Option<bool>,
    },
    /// A file without a name that nobody has open goes.
    Reap {
        /// The file.
        file: FileId,
    },
}

/// What to do if the new name of a renamed file is taken.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Over {
    /// It is overwritten.
    Replace,
    /// The rename is refused.
    Refuse,
    /// The two change places.
    Exchange,
}

impl Act {
    /// Whether it is done in nobody's name: whoever closes a file last lets it go, and its locks before.
    pub fn is_nobodys(&self) -> bool {
        matches!(self, Act::Reap { .. } | Act::Lock { hold: None, .. })
    }
}

impl Operation {
    /// Does it. What the client decides on the way (names of new files, whether something is open) is
    /// filled in; a group checks it.
    pub fn perform(&mut self, view: &mut impl View) -> Result<(), Stop> {
        let Operation { actor, time, act } = self;
        let (actor, time) = (&*actor, *time);
        match act {
            Act::Create { directory, name, mode, birth } => {
                let sort = Sort::Regular;
                create::perform(view, actor, time, directory, name, sort, *mode, &[], birth)
            }
            Act::Mkdir { directory, name, mode, birth } => {
                let sort = Sort::Directory;
                create::perform(view, actor, time, directory, name, sort, *mode, &[], birth)
            }
            Act::Symlink { directory, name, target, birth } => {
                create::perform_symlink(view, actor, time, directory, name, target, birth)
            }
            Act::Mknod { directory, name, mode, special, birth } => {
                let sort = Sort::Special(*special);
                create::perform(view, actor, time, directory, name, sort, *mode, &[], birth)
            }
            Act::Link { file, directory, name } => {
                link::perform(view, actor, time, file, directory, name)
            }
            Act::Unlink { directory, name, is_open } => {
                unlink::perform(view, actor, time, directory, name, is_open)
            }
            Act::Rmdir { directory, name } => rmdir::perform(view, actor, time, directory, name),
            Act::Rename { from, from_name, to, to_name, over, is_open } => {
                let rename = rename::Rename { from, from_name, to, to_name, over: *over };
                rename.perform(view, actor, time, is_open)
            }
            Act::SetAttr { file, changes } => setattr::perform(view, actor, time, file, changes),
            Act::SetXattr { file, name, value, when } => {
                xattr::perform(view, actor, time, file, name, value.as_deref(), *when)
            }
            Act::SetContent { file, content } => content::perform(view, actor, time, file, content),
            Act::Keep { file, version, is_live, digest } => {
                keep::perform(view, actor, file, *version, *is_live, *digest)
            }
            Act::Lock { file, owner, start, end, hold } => {
                lock::perform(view, actor, file, *owner, (*start, *end), *hold)
            }
            Act::Reap { file } => reap::perform(view, file),
        }
    }
}

fn read(scope: Scope) -> Want {
    Want { scope, kind: Kind::Read }
}

fn write(scope: Scope) -> Want {
    Want { scope, kind: Kind::Write }
}

/// Everything about a file. Who takes a name away may have to end the file, and then nobody else may know
/// of it or have done anything to it.
fn all(file: &FileId) -> Want {
    write(Field::Whole.of(file))
}

/// Goes on only if it is a directory, and the actor may go through it.
fn enter(view: &mut impl View, actor: &Actor, directory: &FileId) -> Result<Access, Stop> {
    view.know(&[read(Field::Access.of(directory))])?;
    let record = view.file(directory)?;
    if record.sort != Sort::Directory {
        return Err(Refusal::NotDirectory.into());
    }
    actor.must(&record.access, Use::Search)?;
    Ok(record.access)
}

/// Goes on only if the actor may take a file out of a directory.
fn may_take(
    view: &mut impl View,
    actor: &Actor,
    directory: &Access,
    entry: &Entry,
) -> Result<(), Stop> {
    actor.must(directory, Use::Write)?;
    if directory.is_sticky() {
        view.know(&[read(Field::Access.of(&entry.file))])?;
        if actor.is_stuck(directory, &view.file(&entry.file)?.access) {
            return Err(Refusal::NotOwner.into());
        }
    }
    Ok(())
}

/// What a name stands for, to be changed: knowing that it stands for nothing is as good as any.
fn name_to_change(
    view: &mut impl View,
    directory: &FileId,
    name: &Name,
) -> Result<Option<Entry>, Stop> {
    view.know(&[write(Field::Child(name.clone()).of(directory))])?;
    view.entry(directory, name)
}

/// What a name stands for, if it stands for something.
fn name_in_use(view: &mut impl View, directory: &FileId, name: &Name) -> Result<Entry, Stop> {
    let scope = Field::Child(name.clone()).of(directory);
    // D35: that it is unused can be known without the right to change it.
    if view.knows_value(&scope) && view.entry(directory, name)?.is_none() {
        return Err(Refusal::NotFound.into());
    }
    name_to_change(view, directory, name)?.ok_or(Refusal::NotFound.into())
}

/// Goes on only if a name stands for nothing.
fn name_not_in_use(view: &mut impl View, directory: &FileId, name: &Name) -> Result<(), Stop> {
    let scope = Field::Child(name.clone()).of(directory);
    // D35: that it is used can be known without the right to change it.
    let is_used = match view.knows_value(&scope) {
        true => view.entry(directory, name)?.is_some(),
        false => false,
    };
    if is_used || name_to_change(view, directory, name)?.is_some() {
        return Err(Refusal::NameTaken.into());
    }
    Ok(())
}

/// Notes in a directory that its names have changed, and that there are so many more directories among
/// them, or fewer. A consequence, not a field: see `lib.rs`.
fn names_changed(
    view: &mut impl View,
    directory: &FileId,
    time: i64,
    directories: i32,
) -> Result<(), Stop> {
    let mut record = (*view.file(directory)?).clone();
    record.links = record.links.saturating_add_signed(directories);
    record.times.modified = time;
    record.times.changed = time;
    view.set_file(directory, record);
    Ok(())
}

/// Takes a name away from a file that is no directory; the last one takes the file with it, unless
/// somebody has it open.
fn lose_name(
    view: &mut impl View,
    file: &FileId,
    time: i64,
    is_open: &mut bool,
) -> Result<(), Stop> {
    let mut record = (*view.file(file)?).clone();
    if record.links == 1 {
        view.is_open(file, is_open)?;
        if !*is_open {
            view.bury(file);
            return Ok(());
        }
    }
    record.links = record.links.saturating_sub(1);
    record.times.changed = time;
    view.set_file(file, record);
    Ok(())
}

#[cfg(test)]
mod tests;
