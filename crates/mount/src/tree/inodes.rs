//! The inodes that the kernel knows, by number. It says when it forgets one, which is what bounds this.

use std::{collections::HashMap, sync::Mutex};

use base::FileId;
use directory::File as Record;

use crate::front::{Errno, ROOT};

use super::lock;

const SHARDS: u64 = 16;
/// Numbers are given one after the other, so those that the kernel knows mostly lie side by side.
const PAGE: u64 = 16;

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

/// Inodes with neighbouring numbers; at least one of them is known.
type Page = Box<[Option<Inode>; PAGE as usize]>;

#[derive(Default)]
struct Shard(HashMap<u64, Page>);

impl Shard {
    fn get(&self, inode: u64) -> Option<&Inode> {
        self.0.get(&(inode / PAGE))?[place(inode)].as_ref()
    }

    fn get_mut(&mut self, inode: u64) -> Option<&mut Inode> {
        self.0.get_mut(&(inode / PAGE))?[place(inode)].as_mut()
    }

    fn entry(&mut self, inode: u64) -> &mut Option<Inode> {
        let page = self.0.entry(inode / PAGE);
        &mut page.or_insert_with(|| Box::new([const { None }; PAGE as usize]))[place(inode)]
    }

    fn remove(&mut self, inode: u64) {
        let Some(page) = self.0.get_mut(&(inode / PAGE)) else { return };
        page[place(inode)] = None;
        if page.iter().all(Option::is_none) {
            self.0.remove(&(inode / PAGE));
            // What was needed for millions is not kept for a few.
            if self.0.capacity() > 1_024 && self.0.len() < self.0.capacity() / 8 {
                self.0.shrink_to(2 * self.0.len());
            }
        }
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|(number, page)| {
            let known = page.iter().enumerate().filter(|(_, inode)| inode.is_some());
            known.map(move |(place, _)| number * PAGE + place as u64)
        })
    }
}

fn place(inode: u64) -> usize {
    (inode % PAGE) as usize
}

pub(super) struct Inodes {
    shards: [Mutex<Shard>; SHARDS as usize],
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

    fn shard(&self, inode: u64) -> &Mutex<Shard> {
        &self.shards[(inode / PAGE % SHARDS) as usize]
    }

    /// The kernel is told of a file.
    pub(super) fn learn(&self, inode: u64, file: &FileId, is_bare: bool) {
        let mut shard = lock(self.shard(inode));
        let known = shard.entry(inode).get_or_insert_with(|| Inode {
            file: file.clone(),
            lookups: 0,
            keeps_pages: false,
            is_bare,
        });
        known.lookups = known.lookups.saturating_add(1);
    }

    /// The kernel forgets that it was told of a file so many times; whether it does not know it any more.
    pub(super) fn forget(&self, inode: u64, lookups: u64) -> bool {
        if inode == ROOT {
            return false;
        }
        let mut shard = lock(self.shard(inode));
        let Some(known) = shard.get_mut(inode).filter(|known| known.lookups < u32::MAX) else {
            return false;
        };
        known.lookups = known.lookups.saturating_sub(u32::try_from(lookups).unwrap_or(u32::MAX));
        if known.lookups > 0 {
            return false;
        }
        shard.remove(inode);
        drop(shard);
        let mut departed = lock(&self.departed);
        departed.remove(&inode);
        if departed.is_empty() && departed.capacity() > 1_024 {
            departed.shrink_to(0);
        }
        true
    }

    pub(super) fn file(&self, inode: u64) -> Result<FileId, Errno> {
        let shard = lock(self.shard(inode));
        shard.get(inode).map(|known| known.file.clone()).ok_or(Errno::STALE)
    }

    /// Notes how an inode is opened; whether the pages that the kernel has of it are right.
    pub(super) fn open(&self, inode: u64, is_past_cache: bool) -> bool {
        let mut shard = lock(self.shard(inode));
        let known = shard.get_mut(inode);
        known.is_some_and(|known| std::mem::replace(&mut known.keeps_pages, !is_past_cache))
    }

    /// Notes that bytes of it are stored.
    pub(super) fn store(&self, inode: u64) {
        if let Some(known) = lock(self.shard(inode)).get_mut(inode) {
            known.is_bare = false;
        }
    }

    /// Whether no byte of it was ever stored.
    pub(super) fn is_bare(&self, inode: u64) -> bool {
        lock(self.shard(inode)).get(inode).is_some_and(|known| known.is_bare)
    }

    /// All that the kernel knows.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let shards = self.shards.iter();
        shards.flat_map(|shard| lock(shard).numbers().collect::<Vec<_>>()).collect()
    }

    /// The number of a file, if the kernel knows it. Looks at all of them.
    pub(super) fn find(&self, file: &FileId) -> Option<u64> {
        self.all(|known| known.file == *file).first().copied()
    }

    /// The numbers of a file and all below it that the kernel knows.
    pub(super) fn below(&self, file: &FileId) -> Vec<u64> {
        self.all(|known| file.is_prefix_of(&known.file))
    }

    fn all(&self, is_meant: impl Fn(&Inode) -> bool) -> Vec<u64> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let is_meant = |inode: &u64| shard.get(*inode).is_some_and(&is_meant);
            found.extend(shard.numbers().filter(is_meant));
        }
        found
    }

    /// Notes that a file is no more.
    pub(super) fn depart(&self, inode: u64, record: &triomphe::Arc<Record>) {
        let is_known = lock(self.shard(inode)).get(inode).is_some();
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
        self.numbers().len()
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
        assert_eq!(size_of::<Option<Inode>>(), 16);
    }

    #[test]
    fn what_was_forgotten_takes_no_room_and_leaves_its_neighbours_alone() {
        let inodes = Inodes::new();
        let some = 2..100_000;
        some.clone().for_each(|inode| inodes.learn(inode, &id("1"), false));
        let kept = |inode: &u64| inode % 5_000 == 7;
        some.clone().filter(|inode| !kept(inode)).for_each(|inode| _ = inodes.forget(inode, 1));
        let mut left = inodes.numbers();
        left.sort();
        assert_eq!(left, [ROOT].into_iter().chain(some.filter(kept)).collect::<Vec<_>>());
        let room = |shard: &Mutex<Shard>| lock(shard).0.capacity();
        assert!(inodes.shards.iter().all(|shard| room(shard) <= 1_024));
    }
}
