//! Listing directories.
//!
//! Each open directory keeps what it has listed, so that a place in it stays the same whatever is created
//! or removed meanwhile. The kernel may therefore not keep listings of its own: in one it would find places
//! of another open directory.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use base::FileId;
use client::{Call, Reply};
use directory::{Actor, Entry, Sort};
use lease::Name;

use crate::front::{Attributes, Errno, Listed};

use super::{Tree, lock, names::REPLACED_MAX};

/// So many names are asked for at once.
const PAGE: usize = 1_024;

/// Told of each name, and of the file unless it is `.` or `..`; says whether it is full.
type Give<'a> = dyn FnMut(&Tree, Option<&FileId>, Listed<'_>) -> Result<bool, Errno> + 'a;

/// Open directories, by handle. As many as programs have open.
#[derive(Default)]
pub(super) struct Listings {
    open: Mutex<HashMap<u64, Arc<Mutex<Listing>>>>,
    next: AtomicU64,
}

/// What was listed of a directory since its start. As long as the directory.
#[derive(Default)]
struct Listing {
    entries: Vec<(Name, Entry)>,
    is_all: bool,
}

impl Tree {
    /// A directory is opened to be listed.
    pub fn opendir(&self, inode: u64) -> Result<u64, Errno> {
        self.inodes.file(inode)?;
        let handle = self.listings.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.listings.open).insert(handle, Arc::default());
        Ok(handle)
    }

    /// And closed.
    pub fn releasedir(&self, handle: u64) {
        lock(&self.listings.open).remove(&handle);
    }

    /// Returns when everything that was done is safe with the group.
    pub fn fsyncdir(&self) -> Result<(), Errno> {
        // What was written to files is told with their names, so it has to be safe too.
        self.content.sync().map_err(crate::errno::of_host)?;
        self.ask(&Actor::ROOT, Call::Sync { handle: None }).map(drop)
    }

    /// Hands over the names from a place on, until there are no more or `give` says that it is full.
    pub fn readdir(
        &self,
        inode: u64,
        handle: u64,
        cookie: u64,
        give: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<(), Errno> {
        self.list(inode, handle, cookie, &mut |tree, file, listed| {
            let inode = match file {
                Some(file) => tree.record(file)?.serial,
                None => listed.inode,
            };
            Ok(give(Listed { inode, ..listed }))
        })
    }

    /// As [`Tree::readdir`], with attributes. The kernel knows each inode from then on as if it had looked
    /// it up, except those of `.` and `..`.
    pub fn readdirplus(
        &self,
        inode: u64,
        handle: u64,
        cookie: u64,
        give: &mut dyn FnMut(Listed<'_>, &Attributes) -> bool,
    ) -> Result<(), Errno> {
        self.list(inode, handle, cookie, &mut |tree, file, listed| {
            let Some(file) = file else {
                return Ok(give(listed, &dot(listed.inode)));
            };
            let attributes = tree.fresh(file)?;
            let is_full = give(Listed { inode: attributes.inode, ..listed }, &attributes);
            if !is_full {
                tree.inodes.learn(attributes.inode, file, false);
            }
            Ok(is_full)
        })
    }

    fn list(&self, inode: u64, handle: u64, cookie: u64, give: &mut Give<'_>) -> Result<(), Errno> {
        let directory = self.inodes.file(inode)?;
        let listing = lock(&self.listings.open).get(&handle).cloned().ok_or(Errno::BADF)?;
        let mut listing = lock(&listing);
        if cookie == 0 {
            *listing = Listing::default();
        }
        let mut at = usize::try_from(cookie).unwrap_or(usize::MAX);
        loop {
            let cookie = at as u64 + 1;
            let is_full = match at {
                0 => {
                    let listed = Listed { inode, sort: Sort::Directory, name: b".", cookie };
                    give(self, None, listed)?
                }
                1 => {
                    let inode = self.parent(inode, &directory);
                    let listed = Listed { inode, sort: Sort::Directory, name: b"..", cookie };
                    give(self, None, listed)?
                }
                _ => {
                    if at - 2 >= listing.entries.len()
                        && !self.list_more(&directory, &mut listing)?
                    {
                        return Ok(());
                    }
                    // A place that nobody was told of is behind the end.
                    let Some((name, entry)) = listing.entries.get(at - 2) else {
                        match listing.is_all {
                            true => return Ok(()),
                            false => continue,
                        }
                    };
                    self.give_entry(&directory, name, entry.clone(), cookie, give)?
                }
            };
            if is_full {
                return Ok(());
            }
            at += 1;
        }
    }

    /// Hands over what a name stands for; whether it is full. What it stood for may be replaced since it
    /// was listed: the name is left out only if it stands for nothing.
    fn give_entry(
        &self,
        directory: &FileId,
        name: &Name,
        mut entry: Entry,
        cookie: u64,
        give: &mut Give<'_>,
    ) -> Result<bool, Errno> {
        // What was listed a while ago another machine may have moved since.
        if self.is_shared {
            match self.entry(directory, name)? {
                Some((found, _)) => entry = found,
                None => return Ok(false),
            }
        }
        for _ in 0..REPLACED_MAX {
            let sort = entry.sort;
            let listed = Listed { inode: 0, sort, name: name.as_bytes(), cookie };
            match give(self, Some(&entry.file), listed) {
                Err(Errno::STALE) => {}
                result => return result,
            }
            match self.entry(directory, name)? {
                Some((found, _)) => entry = found,
                None => return Ok(false),
            }
        }
        Err(Errno::AGAIN)
    }

    /// Lists the next names; whether there were any.
    fn list_more(&self, directory: &FileId, listing: &mut Listing) -> Result<bool, Errno> {
        if listing.is_all {
            return Ok(false);
        }
        let after = listing.entries.last().map(|(name, _)| name.clone());
        let call = Call::List { directory: directory.clone(), after, count: PAGE };
        match self.ask(&Actor::ROOT, call) {
            Ok(Reply::Names { entries, is_all }) => {
                // Whoever says that there is more and then gives nothing would be asked for ever.
                listing.is_all = is_all || entries.is_empty();
                let has_more = !entries.is_empty();
                listing.entries.extend(entries);
                Ok(has_more)
            }
            // A directory that was removed is empty, whoever still stands in it.
            Err(Errno::STALE) => {
                listing.is_all = true;
                Ok(false)
            }
            Ok(_) => Err(Errno::IO),
            Err(errno) => Err(errno),
        }
    }

    /// The inode of the directory above; the root is above itself.
    fn parent(&self, inode: u64, directory: &FileId) -> u64 {
        let above = self.record(directory).and_then(|record| self.record(&record.parent));
        above.map_or(inode, |record| record.serial)
    }
}

/// What is told of `.` and `..`: the kernel looks at the number and the sort only.
fn dot(inode: u64) -> Attributes {
    Attributes {
        inode,
        sort: Sort::Directory,
        mode: 0o755,
        links: 1,
        uid: 0,
        gid: 0,
        size: 0,
        blocks: 0,
        accessed: 0,
        modified: 0,
        changed: 0,
    }
}
