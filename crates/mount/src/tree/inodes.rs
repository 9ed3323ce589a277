//! The inodes that the kernel knows, by number. It says when it forgets one, which is what bounds this.

use std::{collections::HashMap, sync::Mutex};

use base::FileId;
use directory::File as Record;

use crate::front::{Errno, ROOT};

use super::lock;

const SHARDS: usize = 16;

/// Kept small: there may be millions.
struct Inode {
    file: FileId,
    /// How often the kernel was told of it. One that was told four thousand million times stays.
    lookups: u32,
    /// What the kernel has cached of its bytes is right: nobody wrote past that cache.
    keeps_pages: bool,
    /// It was created here and no byte of it was ever stored.
    is_bare: bool,
}

pub(super) struct Inodes {
    shards: [Mutex<HashMap<u64, Inode>>; SHARDS],
    /// What files were like that are no more, though the kernel still knows them. For `fstat` of them.
    departed: Mutex<HashMap<u64, triomphe::Arc<Record>>>,
}

impl Inodes {
    pub(super) fn new() -> Inodes {
        let inodes = Inodes {
            shards: std::array::from_fn(|_| Mutex::default()),
            departed: Mutex::default(),
        };
        inodes.learn(ROOT, &FileId::ROOT, false);
        inodes
    }

    fn shard(&self, inode: u64) -> &Mutex<HashMap<u64, Inode>> {
        &self.shards[inode as usize % SHARDS]
    }

    /// The kernel is told of a file.
    pub(super) fn learn(&self, inode: u64, file: &FileId, is_bare: bool) {
        let mut shard = lock(self.shard(inode));
        let known = shard.entry(inode).or_insert_with(|| Inode {
            file: file.clone(),
            lookups: 0,
            keeps_pages: false,
            is_bare,
        });
        known.lookups = known.lookups.saturating_add(1);
    }

    /// The kernel forgets that it was told of a file so many times.
    pub(super) fn forget(&self, inode: u64, lookups: u64) {
        if inode == ROOT {
            return;
        }
        let mut shard = lock(self.shard(inode));
        let Some(known) = shard.get_mut(&inode).filter(|known| known.lookups < u32::MAX) else {
            return;
        };
        known.lookups = known.lookups.saturating_sub(u32::try_from(lookups).unwrap_or(u32::MAX));
        if known.lookups == 0 {
            shard.remove(&inode);
            drop(shard);
            let mut departed = lock(&self.departed);
            departed.remove(&inode);
            if departed.is_empty() && departed.capacity() > 1_024 {
                departed.shrink_to(0);
            }
        }
    }

    pub(super) fn file(&self, inode: u64) -> Result<FileId, Errno> {
        let shard = lock(self.shard(inode));
        shard.get(&inode).map(|known| known.file.clone()).ok_or(Errno::STALE)
    }

    /// Notes how an inode is opened; whether the pages that the kernel has of it are right.
    pub(super) fn open(&self, inode: u64, is_passthrough: bool) -> bool {
        let mut shard = lock(self.shard(inode));
        let known = shard.get_mut(&inode);
        known.is_some_and(|known| std::mem::replace(&mut known.keeps_pages, !is_passthrough))
    }

    /// Notes that bytes of it are stored.
    pub(super) fn store(&self, inode: u64) {
        if let Some(known) = lock(self.shard(inode)).get_mut(&inode) {
            known.is_bare = false;
        }
    }

    /// Whether no byte of it was ever stored.
    pub(super) fn is_bare(&self, inode: u64) -> bool {
        lock(self.shard(inode)).get(&inode).is_some_and(|known| known.is_bare)
    }

    /// All that the kernel knows.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.shards
            .iter()
            .flat_map(|shard| lock(shard).keys().copied().collect::<Vec<_>>())
            .collect()
    }

    /// Notes that a file is no more.
    pub(super) fn depart(&self, inode: u64, record: &triomphe::Arc<Record>) {
        let is_known = lock(self.shard(inode)).contains_key(&inode);
        if is_known {
            lock(&self.departed).insert(inode, record.clone());
        }
    }

    /// What a file was like that is no more.
    pub(super) fn departed(&self, inode: u64) -> Option<triomphe::Arc<Record>> {
        lock(&self.departed).get(&inode).cloned()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> FileId {
        text.parse().unwrap()
    }

    #[test]
    fn an_inode_is_known_until_it_is_forgotten_as_often_as_it_was_told() {
        let inodes = Inodes::new();
        inodes.learn(7, &id("1.2"), false);
        inodes.learn(7, &id("1.2"), false);
        inodes.forget(7, 1);
        assert_eq!(inodes.file(7), Ok(id("1.2")));
        inodes.forget(7, 1);
        assert_eq!(inodes.file(7), Err(Errno::STALE));
        inodes.forget(7, 1);
    }

    #[test]
    fn the_root_is_never_forgotten() {
        let inodes = Inodes::new();
        inodes.forget(ROOT, 100);
        assert_eq!(inodes.file(ROOT), Ok(FileId::ROOT));
    }

    #[test]
    fn pages_are_kept_from_one_cached_open_to_the_next_only() {
        let inodes = Inodes::new();
        inodes.learn(7, &id("1"), false);
        let opens = [false, false, true, false, false].map(|way| inodes.open(7, way));
        assert_eq!(opens, [false, true, true, false, true]);
    }

    #[test]
    fn an_inode_takes_few_bytes() {
        assert!(size_of::<(u64, Inode)>() <= 24);
    }
}
