//! Files that were open where they are when the daemon before this one died.
//!
//! Programs of then may still write them, and nobody sees that: the kernel lets them go on. So they are looked at from
//! time to time. What was written is told; and if another machine changes such a file, what is here stays somewhere
//! else, where these programs go on writing, and is kept for their owner as soon as one does.

use std::{collections::BTreeMap, fs::File, path::PathBuf, sync::Mutex};

use base::FileId;
use content::{Seen, Stay};

use crate::{errno, front::Errno};

use super::{Tree, body::look_at, lock};

/// By number. At most as many as there were files open.
#[derive(Default)]
pub(super) struct Outlived(Mutex<BTreeMap<u64, Remains>>);

/// A file as it was last looked at.
#[derive(Clone)]
struct Remains {
    seen: Seen,
    place: Place,
}

#[derive(Clone)]
enum Place {
    /// It has its bytes here.
    Here(FileId),
    /// It has them elsewhere by now, and what was here is aside.
    Aside(PathBuf),
}

impl Tree {
    /// Programs of before may still write a file.
    pub(super) fn outlive(&self, inode: u64, file: &FileId) {
        let backing = self.content.backing(inode).ok().flatten();
        let Some(seen) = backing.and_then(|backing| look_at(&backing).ok()) else { return };
        let here = Remains { seen, place: Place::Here(file.clone()) };
        let mut all = lock(&self.outlived.0);
        let known = all.entry(inode).or_insert_with(|| here.clone());
        if matches!(known.place, Place::Here(_)) {
            *known = here;
        }
    }

    /// The directory was told of a file as it is now.
    pub(super) fn note_seen(&self, inode: u64, seen: Seen) {
        if let Some(known) = lock(&self.outlived.0).get_mut(&inode)
            && matches!(known.place, Place::Here(_))
        {
            known.seen = seen;
        }
    }

    /// A file that has its bytes here and may be written past us, as it was last looked at.
    fn outlived_here(&self, inode: u64) -> Option<Remains> {
        let known = lock(&self.outlived.0).get(&inode).cloned();
        known.filter(|known| matches!(known.place, Place::Here(_)))
    }

    pub(super) fn is_outlived(&self, inode: u64) -> bool {
        self.outlived_here(inode).is_some()
    }

    /// Whether programs of before have written a file since it was last looked at.
    pub(super) fn was_written_past_us(&self, inode: u64) -> bool {
        self.outlived_here(inode).is_some_and(|known| self.is_changed(inode, &known))
    }

    fn is_changed(&self, inode: u64, known: &Remains) -> bool {
        self.present(inode, known).is_some_and(|now| !known.seen.is_same_content(&now))
    }

    fn present(&self, inode: u64, known: &Remains) -> Option<Seen> {
        let file = match &known.place {
            Place::Here(_) => self.content.backing(inode).ok()?,
            Place::Aside(path) => File::open(path).ok(),
        };
        look_at(&file?).ok()
    }

    /// What is here of a file is from before its content changed elsewhere, and goes.
    pub(super) fn drop_old(&self, inode: u64) -> Result<(), Errno> {
        if !matches!(self.content.length(inode), Ok(Some(_))) {
            return Ok(());
        }
        self.spare_outlived(inode)?;
        if lock(&self.stale).contains(&inode) {
            // Nobody has looked at it since it was written.
            self.keep_aside(inode)?;
            lock(&self.stale).remove(&inode);
        }
        // If it can't be removed, it takes room.
        _ = self.content.remove(inode);
        Ok(())
    }

    /// Other bytes come in place of those of a file: if programs of before may still write them, they go aside.
    pub(super) fn spare_outlived(&self, inode: u64) -> Result<(), Errno> {
        let Some(known) = self.outlived_here(inode) else { return Ok(()) };
        if let Some(path) = self.content.set_aside(inode).map_err(errno::of_host)? {
            lock(&self.stale).remove(&inode);
            let place = Place::Aside(path);
            lock(&self.outlived.0).insert(inode, Remains { place, ..known });
        }
        Ok(())
    }

    /// Looks at all of them.
    pub(super) fn look_at_outlived(&self) {
        let all: Vec<(u64, Remains)> =
            lock(&self.outlived.0).iter().map(|(inode, known)| (*inode, known.clone())).collect();
        for (inode, known) in all {
            let now = self.present(inode, &known);
            let is_changed = now.is_some_and(|now| !known.seen.is_same_content(&now));
            let is_in_use =
                || self.opens.get(inode).is_some_and(|open| open.lock().bytes.stay() != Stay::Not);
            match known.place {
                Place::Here(_) if now.is_none() => {
                    lock(&self.outlived.0).remove(&inode);
                }
                Place::Here(file) if is_changed && !is_in_use() => {
                    // If it can't be told now, this is tried again.
                    _ = self.look(&file, Some(inode), false);
                }
                Place::Aside(path) if is_changed => {
                    match self.content.keep_aside(inode, &path) {
                        Ok(kept) => {
                            eprintln!(
                                "croft: a program of before this start writes inode {inode}, which another machine \
                                 has changed since; it does so in {}",
                                kept.display()
                            );
                            lock(&self.outlived.0).remove(&inode);
                        }
                        Err(failure) => {
                            eprintln!(
                                "croft: can't keep what a program of before this start writes to inode {inode}: \
                                 {failure}"
                            );
                            // It is said again when there is more.
                            if let Some(now) = now {
                                let known = Remains { seen: now, place: Place::Aside(path) };
                                lock(&self.outlived.0).insert(inode, known);
                            }
                        }
                    }
                }
                Place::Here(_) | Place::Aside(_) => {}
            }
        }
    }
}
