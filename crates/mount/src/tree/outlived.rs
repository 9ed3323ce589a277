//! Files that were open where they are when the daemon before this one died.
//!
//! Programs of then may still write them, and nobody sees that: the kernel lets them go on. So they are looked at from
//! time to time. What was written is told; and if another machine changes such a file, what is here stays somewhere
//! else, where these programs go on writing, and is kept for their owner as soon as one does.

use std::{collections::BTreeMap, fs::File, path::PathBuf, sync::Mutex};

use base::FileId;

use crate::{errno, front::Errno};

use super::{Tree, body::Seen, lock};

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
        if let Some(seen) = backing.and_then(|backing| Seen::of(&backing).ok()) {
            let remains = Remains { seen, place: Place::Here(file.clone()) };
            lock(&self.outlived.0).insert(inode, remains);
        }
    }

    /// Whether programs of before have written a file since it was last looked at.
    pub(super) fn was_written_past_us(&self, inode: u64) -> bool {
        let remains = lock(&self.outlived.0).get(&inode).cloned();
        remains.is_some_and(|remains| self.is_changed(inode, &remains))
    }

    fn is_changed(&self, inode: u64, remains: &Remains) -> bool {
        let file = match &remains.place {
            Place::Here(_) => self.content.backing(inode).ok().flatten(),
            Place::Aside(path) => File::open(path).ok(),
        };
        file.is_some_and(|file| Seen::is_news(Some(&remains.seen), &file) != Ok(false))
    }

    /// What is here of a file is from before its content changed elsewhere, and goes.
    pub(super) fn drop_old(&self, inode: u64) -> Result<(), Errno> {
        if !matches!(self.content.length(inode), Ok(Some(_))) {
            return Ok(());
        }
        let known = lock(&self.outlived.0).get(&inode).cloned();
        if known.is_none() && lock(&self.stale).contains(&inode) {
            // Nobody has looked at it since it was written.
            self.keep_aside(inode)?;
            lock(&self.stale).remove(&inode);
            return Ok(());
        }
        let Some(known) = known.filter(|known| matches!(known.place, Place::Here(_))) else {
            // If it can't be removed, it takes room.
            _ = self.content.remove(inode);
            return Ok(());
        };
        if let Some(path) = self.content.set_aside(inode).map_err(errno::of_host)? {
            let remains = Remains { place: Place::Aside(path), ..known };
            lock(&self.outlived.0).insert(inode, remains);
        }
        Ok(())
    }

    /// Looks at all of them.
    pub(super) fn look_at_outlived(&self) {
        let all: Vec<(u64, Remains)> =
            lock(&self.outlived.0).iter().map(|(inode, known)| (*inode, known.clone())).collect();
        for (inode, remains) in all {
            let is_changed = self.is_changed(inode, &remains);
            match remains.place {
                Place::Here(_) if matches!(self.content.length(inode), Ok(None)) => {
                    lock(&self.outlived.0).remove(&inode);
                }
                Place::Here(file) if is_changed => {
                    if let Some(memory) = self.memory.get() {
                        memory.look(vec![file]);
                    }
                }
                Place::Aside(path) if is_changed => match self.content.keep_aside(inode, &path) {
                    Ok(kept) => {
                        eprintln!(
                            "croft: a program of before this start writes inode {inode}, which another machine has \
                             changed since; it does so in {}",
                            kept.display()
                        );
                        lock(&self.outlived.0).remove(&inode);
                    }
                    Err(failure) => eprintln!(
                        "croft: can't keep what a program of before this start writes to inode {inode}: {failure}"
                    ),
                },
                Place::Here(_) | Place::Aside(_) => {}
            }
        }
    }
}
