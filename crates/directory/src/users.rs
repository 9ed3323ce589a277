//! What the users of a machine may do and see.

use std::collections::BTreeSet;

use lease::Client;
use overlay::Users;

use crate::{
    actor::{Actor, Use},
    record::{Access, File, Sort},
};

/// Whether the machine may act so.
pub(crate) fn may_be(users: &Users, actor: &Actor) -> bool {
    match users {
        Users::Any => true,
        Users::These(users) => users.get(&actor.uid).is_some_and(|gids| {
            gids.contains(&actor.gid) && actor.groups.iter().all(|gid| gids.contains(gid))
        }),
    }
}

/// Whether the machine may change the bytes of a file for somebody, in whichever of their groups.
pub fn may_write(users: &Users, uid: u32, file: &Access) -> bool {
    let Users::These(users) = users else { return true };
    users.contains_key(&0)
        || users.get(&uid).is_some_and(|gids| may_use(uid, gids, file, &[Use::Write]))
}

/// Whether the machine may have the bytes of a file: one of its users may read or run it, or could give themselves
/// the right.
pub fn may_read(users: &Users, file: &Access) -> bool {
    let Users::These(users) = users else { return true };
    let uses = [Use::Read, Use::Search];
    users.contains_key(&0) || users.iter().any(|(uid, gids)| may_use(*uid, gids, file, &uses))
}

/// Whether a user may use a file in one of these ways, in whichever of their groups, or owns it.
fn may_use(uid: u32, gids: &BTreeSet<u32>, file: &Access, uses: &[Use]) -> bool {
    let mut actors = gids.iter().map(|gid| Actor { uid, gid: *gid, groups: Vec::new() });
    actors.any(|actor| actor.owns(file) || uses.iter().any(|usage| actor.may(file, *usage)))
}

/// Whether the machine acts for nobody at all.
pub(crate) fn are_none(users: &Users) -> bool {
    matches!(users, Users::These(users) if users.is_empty())
}

/// What is kept from a machine of a record: the hash of bytes that none of its users may read, since whoever has it
/// can tell whether a guess is right; and what users have put beside a file that none of them may read or write.
/// The machine that has the bytes has them anyway.
pub(crate) fn hide(users: &Users, client: Client, record: &mut File) {
    if !may_read(users, &record.access) && record.content.home != Some(client) {
        record.content.digest = None;
    }
    if let Some(rare) = &mut record.rare
        && !may_open(users, &record.access)
    {
        rare.attributes.retain(|(name, _)| !name.starts_with(b"user."));
    }
}

/// Whether any of them may read or write it, or could give themselves the right.
pub(crate) fn may_open(users: &Users, file: &Access) -> bool {
    let Users::These(these) = users else { return true };
    may_read(users, file) || these.keys().any(|uid| may_write(users, *uid, file))
}

/// Whether any of them may list a directory or go through it, or could give themselves the right.
fn may_look_into(users: &Users, directory: &Access) -> bool {
    let Users::These(users) = users else { return true };
    users.iter().any(|(uid, gids)| {
        let shift = if gids.contains(&directory.gid) { 3 } else { 0 };
        *uid == 0 || *uid == directory.uid || directory.mode >> shift & 0o5 != 0
    })
}

/// Whether the names in it are none of their business.
pub(crate) fn is_secret(users: &Users, file: &File) -> bool {
    file.sort == Sort::Directory && !may_look_into(users, &file.access)
}

/// Whether nothing is kept from them: the superuser is among them.
pub(crate) fn may_see_all(users: &Users) -> bool {
    match users {
        Users::Any => true,
        Users::These(users) => users.contains_key(&0),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn a_machine_acts_only_for_users_it_was_given_and_only_in_their_groups() {
        let users = Users::These(BTreeMap::from([(7, BTreeSet::from([7, 20]))]));
        let may =
            |uid, gid, groups: &[u32]| may_be(&users, &Actor { uid, gid, groups: groups.to_vec() });
        assert!(may(7, 7, &[]) && may(7, 20, &[7, 20]));
        assert!(!may(8, 7, &[]), "another user");
        assert!(!may(0, 0, &[]) && !may(0, 7, &[]), "the superuser was not given");
        assert!(!may(7, 0, &[]) && !may(7, 7, &[20, 0]), "another group");
    }

    #[test]
    fn bytes_are_for_machines_of_which_a_user_may_read_or_run_them_or_owns_them() {
        let of = |uid| Users::These(BTreeMap::from([(uid, BTreeSet::from([uid, 20]))]));
        let access = |mode, uid, gid| Access { mode, uid, gid };
        for (mode, uid, gid, expected) in [
            (0o600, 7, 7, false),
            (0o604, 7, 7, true),
            (0o601, 7, 7, true),
            (0o602, 7, 7, false),
            (0o640, 7, 20, true),
            (0o604, 7, 20, true),
            (0o000, 8, 8, true),
        ] {
            let what = format!("{mode:o} of {uid} in {gid}");
            assert_eq!(may_read(&of(8), &access(mode, uid, gid)), expected, "{what}");
        }
        let nobody = Users::These(BTreeMap::new());
        assert!(!may_read(&nobody, &access(0o777, 7, 7)) && are_none(&nobody));
        assert!(may_read(&of(0), &access(0, 7, 7)) && may_read(&Users::Any, &access(0, 7, 7)));
    }

    #[test]
    fn bytes_are_changed_for_users_of_the_machine_who_may_write_them() {
        let of = |uid| Users::These(BTreeMap::from([(uid, BTreeSet::from([uid, 20]))]));
        let file = Access { mode: 0o664, uid: 7, gid: 20 };
        let private = Access { mode: 0o400, uid: 7, gid: 7 };
        assert!(may_write(&of(7), 7, &file) && may_write(&of(8), 8, &file));
        assert!(may_write(&of(7), 7, &private), "its owner could give themselves the right");
        assert!(!may_write(&of(8), 8, &private), "somebody else could not");
        assert!(!may_write(&of(8), 7, &private), "they are not a user of the machine");
        assert!(may_write(&of(0), 8, &private), "the superuser is");
        assert!(may_write(&Users::Any, 8, &private), "whoever it may be");
    }
}
