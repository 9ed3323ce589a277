//! What must hold of every tree, whatever was done to it.

use std::collections::BTreeMap;

use super::{FileSystem, Ino};

impl FileSystem {
    /// Says what is wrong with the tree itself, if anything.
    ///
    /// inv-N1: as many entries lead to an inode as its links say, to a directory one. inv-N2: no
    /// directory is below itself. inv-N4: no entry leads nowhere. inv-N5: what has no name is open.
    pub fn check(&self) -> Result<(), String> {
        let mut entries: BTreeMap<Ino, u32> = BTreeMap::new();
        let mut subdirectories: BTreeMap<Ino, u32> = BTreeMap::new();
        for (dir, inode) in &self.inodes {
            let Some(directory) = inode.directory() else { continue };
            for ino in directory.entries.values() {
                *entries.entry(*ino).or_default() += 1;
                let Some(child) = self.inodes.get(ino) else {
                    return Err(format!("an entry of {dir} leads to {ino}, which is gone"));
                };
                let Some(below) = child.directory() else { continue };
                *subdirectories.entry(*dir).or_default() += 1;
                if below.parent != *dir {
                    return Err(format!("{ino} is in {dir}, but its parent is {}", below.parent));
                }
            }
        }
        let count = |counts: &BTreeMap<Ino, u32>, ino| counts.get(&ino).copied().unwrap_or(0);
        for (ino, inode) in &self.inodes {
            let (named, nlink) = (count(&entries, *ino), inode.nlink);
            let is_root = *ino == Ino::ROOT;
            let expected = match inode.is_directory() {
                true if named + u32::from(is_root) > 1 => {
                    return Err(format!("{named} entries lead to the directory {ino}"));
                }
                true if named == 1 || is_root => 2 + count(&subdirectories, *ino),
                _ => named,
            };
            if nlink != expected {
                return Err(format!("{ino} has {nlink} links, but should have {expected}"));
            }
            let open = self.handles.values().filter(|open| open.ino == *ino).count();
            if inode.handle_count as usize != open {
                return Err(format!("{ino} counts {} handles of {open}", inode.handle_count));
            }
            if nlink == 0 && open == 0 {
                return Err(format!("{ino} has no name and is not open"));
            }
            self.check_ancestors(*ino)?;
        }
        Ok(())
    }

    fn check_ancestors(&self, ino: Ino) -> Result<(), String> {
        let mut at = ino;
        for _ in 0..=self.inodes.len() {
            match self.inodes.get(&at).and_then(|inode| inode.directory()) {
                Some(directory) if directory.parent != at => at = directory.parent,
                _ => return Ok(()),
            }
        }
        Err(format!("{ino} is below itself"))
    }
}
