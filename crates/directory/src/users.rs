//! What the users of a machine may do and see.

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
        || users.get(&uid).is_some_and(|gids| {
            let mut actors = gids.iter().map(|gid| Actor { uid, gid: *gid, groups: Vec::new() });
            actors.any(|actor| actor.owns(file) || actor.must(file, Use::Write).is_ok())
        })
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
