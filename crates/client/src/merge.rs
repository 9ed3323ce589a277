//! Operations that make others pointless before they are sent.
//!
//! Only what is neither on its way nor waited for may go, and never so that the group, which counts
//! files and bytes as we do, would have less at any point than we had there.
//!
//! That a directory's times have changed goes with what vanishes: see `directory` on such times.

use base::FileId;
use directory::{
    Act, Operation,
    operation::{Changes, Moment, When},
};

use crate::pending::{Done, Pending};

/// Appends an operation, or lets it vanish together with what it undoes.
pub(crate) fn append(pending: &mut Pending, mut done: Done, buried: Option<&FileId>) {
    if let Some(places) = buried.and_then(|file| undone(pending, file, &done.operation.act)) {
        places.into_iter().for_each(|place| drop(pending.remove(place)));
        return;
    }
    match repeated(pending, &mut done) {
        Some(place) => {
            if let Some(earlier) = pending.get(place) {
                join(&mut done, earlier);
            }
            pending.replace(place, done);
        }
        None => pending.push(done),
    }
}

/// Has an operation stand for an earlier one too.
fn join(done: &mut Done, earlier: &Done) {
    // Of what happened first, the delay until it is pushed counts.
    done.at = earlier.at;
    done.until = done.until.min(earlier.until);
    done.charges.join(&earlier.charges);
    let own = done.depends.len();
    for scope in &earlier.depends {
        if done.depends[..own].binary_search(scope).is_err() {
            done.depends.push(scope.clone());
        }
    }
    done.depends.sort();
}

/// All operations on a file that was born and buried before anybody heard of it.
fn undone(pending: &Pending, file: &FileId, last: &Act) -> Option<Vec<u64>> {
    if !matches!(last, Act::Unlink { .. } | Act::Rmdir { .. }) {
        return None;
    }
    let places: Vec<u64> = pending.places_of(file).collect();
    let (first, rest) = places.split_first()?;
    let act = |place: &u64| pending.get(*place).map(|done| &done.operation.act);
    let is_birth = born(act(first)?) == Some(file);
    let is_own = |place: &u64| match act(place) {
        // What another owner is given back was never theirs.
        Some(Act::SetAttr { file: own, changes }) => own == file && changes.uid.is_none(),
        Some(
            Act::SetXattr { file: own, .. }
            | Act::SetContent { file: own, .. }
            | Act::Keep { file: own, .. }
            | Act::Lock { file: own, .. },
        ) => own == file,
        _ => false,
    };
    let is_soft = places.iter().all(|place| pending.is_soft(*place));
    (is_birth && is_soft && rest.iter().all(is_own)).then_some(places)
}

/// The file that an operation creates.
fn born(act: &Act) -> Option<&FileId> {
    match act {
        Act::Create { birth, .. }
        | Act::Mkdir { birth, .. }
        | Act::Symlink { birth, .. }
        | Act::Mknod { birth, .. } => Some(&birth.file),
        _ => None,
    }
}

/// The place of an earlier operation that this one, changed to do the work of both, makes pointless.
fn repeated(pending: &Pending, done: &mut Done) -> Option<u64> {
    let Operation { actor, time, act } = &mut done.operation;
    let file = match &*act {
        Act::SetAttr { file, .. } | Act::SetXattr { file, .. } | Act::SetContent { file, .. } => {
            file
        }
        _ => return None,
    };
    let place = pending.places_of(file).next_back().filter(|place| pending.is_soft(*place))?;
    let earlier = pending.get(place)?;
    // What it gave back may have been used by something in between.
    if earlier.operation.actor != *actor || earlier.charges.gives() {
        return None;
    }
    match (&earlier.operation.act, act) {
        (Act::SetAttr { file: a, changes: first }, Act::SetAttr { file: b, changes })
            if a == b && may_join(first, earlier.operation.time, changes, *time) =>
        {
            let mut joined = first.clone();
            joined.then(changes.clone());
            *changes = joined;
            Some(place)
        }
        (Act::SetContent { file: a, .. }, Act::SetContent { file: b, .. }) if a == b => Some(place),
        (
            Act::SetXattr { file: a, name: first, value: before, when: once },
            Act::SetXattr { file: b, name, value: Some(_), when },
        ) if a == b && first == name => {
            *when = if before.is_some() { *once } else { When::Always };
            Some(place)
        }
        _ => None,
    }
}

/// Whether two changes, done at once at the later time, come to the same as one after the other.
fn may_join(first: &Changes, first_time: i64, then: &Changes, then_time: i64) -> bool {
    // A new owner takes away what the bits before said, unless they are said again.
    let is_tamed = then.uid.is_some() || then.gid.is_some();
    let keeps_mode = first.mode.is_none() || then.mode.is_some() || !is_tamed;
    let moves = |first: Option<Moment>, then: Option<Moment>| {
        first == Some(Moment::Now) && then.is_none() && first_time != then_time
    };
    keeps_mode && !moves(first.accessed, then.accessed) && !moves(first.modified, then.modified)
}
