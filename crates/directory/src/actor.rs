//! Who acts, and what the mode bits let them do.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::{record::Access, refusal::Refusal};

/// A user on whose behalf something is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Actor {
    /// The user; 0 may do everything.
    pub uid: u32,
    /// Their group.
    pub gid: u32,
    /// Further groups. At most [`Actor::GROUPS_MAX`].
    pub groups: Vec<u32>,
}

/// A way of using a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Reading it, or listing it.
    Read,
    /// Writing it, or changing names in it.
    Write,
    /// Running it, or going through it.
    Search,
}

impl Actor {
    /// The most further groups.
    pub const GROUPS_MAX: usize = 64;

    /// The superuser.
    pub const ROOT: Actor = Actor { uid: 0, gid: 0, groups: Vec::new() };

    /// Whether they may do everything.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Whether they belong to a group.
    pub fn is_in(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }

    /// Whether it is theirs, or everything is.
    pub fn owns(&self, access: &Access) -> bool {
        self.is_root() || self.uid == access.uid
    }

    /// Whether the mode bits let them use a directory, or a file that is not run, in this way.
    pub fn may(&self, access: &Access, usage: Use) -> bool {
        let bit = match usage {
            Use::Read => 4,
            Use::Write => 2,
            Use::Search => 1,
        };
        let shift = match () {
            () if self.is_root() => return true,
            () if self.uid == access.uid => 6,
            () if self.is_in(access.gid) => 3,
            () => 0,
        };
        access.mode >> shift & bit != 0
    }

    /// As [`Actor::may`], as a refusal.
    pub fn must(&self, access: &Access, usage: Use) -> Result<(), Refusal> {
        if self.may(access, usage) { Ok(()) } else { Err(Refusal::Access) }
    }

    /// Whether the sticky bit of a directory keeps them from taking a file out of it.
    pub fn is_stuck(&self, directory: &Access, file: &Access) -> bool {
        directory.is_sticky() && !self.owns(directory) && !self.owns(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_class_that_fits_decides_even_if_a_later_one_allows_more() {
        let access = Access { mode: 0o047, uid: 1, gid: 2 };
        let owner = Actor { uid: 1, gid: 2, groups: vec![] };
        let member = Actor { uid: 3, gid: 9, groups: vec![2] };
        let other = Actor { uid: 3, gid: 9, groups: vec![] };
        let uses = [Use::Read, Use::Write, Use::Search];
        assert_eq!(uses.map(|usage| owner.may(&access, usage)), [false; 3]);
        assert_eq!(uses.map(|usage| member.may(&access, usage)), [true, false, false]);
        assert_eq!(uses.map(|usage| other.may(&access, usage)), [true; 3]);
        assert_eq!(uses.map(|usage| Actor::ROOT.may(&access, usage)), [true; 3]);
    }

    #[test]
    fn in_a_sticky_directory_only_owners_take_things_away() {
        let sticky = Access { mode: 0o1777, uid: 1, gid: 1 };
        let file = Access { mode: 0o666, uid: 2, gid: 2 };
        let stuck = |uid| Actor { uid, gid: uid, groups: vec![] }.is_stuck(&sticky, &file);
        assert_eq!([0, 1, 2, 3].map(stuck), [false, false, false, true]);
        assert!(
            !Actor { uid: 3, ..Actor::ROOT }.is_stuck(&Access { mode: 0o777, ..sticky }, &file)
        );
    }
}
