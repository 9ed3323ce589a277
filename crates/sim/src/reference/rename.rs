//! Renaming: one entry moves, or two change places.

use super::{
    Actor, Answer, At, Errno, FileSystem, Ino, Permission, file_system::is_dots, inode::Body,
};

/// What becomes of an entry that has the new name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// It is replaced, if POSIX allows.
    Replace,
    /// It stays and the rename is refused: `RENAME_NOREPLACE`.
    NoReplace,
    /// It gets the old name: `RENAME_EXCHANGE`.
    Exchange,
}

impl FileSystem {
    /// Moves the entry `from` a directory and name `to` another.
    pub fn rename(&mut self, actor: &Actor, now: u64, from: At, to: At, flag: Flag) -> Answer<()> {
        let (source, target) = self.find_both(actor, from, to, flag)?;
        // Two names of one file are not even looked at.
        if target == Some(source) {
            return Ok(());
        }
        self.may_rename(actor, (from.0, source), (to.0, target), flag)?;
        match target {
            Some(target) if flag == Flag::Exchange => {
                self.known_directory(from.0).entries.insert(from.1.to_vec(), target);
                self.move_in(now, target, to.0, from.0);
            }
            Some(target) => {
                self.known_directory(from.0).entries.remove(from.1);
                if self.known(target).is_directory() {
                    self.known(to.0).nlink -= 1;
                }
                self.unhook(now, target);
            }
            None => drop(self.known_directory(from.0).entries.remove(from.1)),
        }
        self.known_directory(to.0).entries.insert(to.1.to_vec(), source);
        self.move_in(now, source, from.0, to.0);
        self.known(from.0).touch(now);
        self.known(to.0).touch(now);
        Ok(())
    }

    /// What has the old name, and what the new one; all that is refused whoever asks.
    fn find_both(&self, actor: &Actor, from: At, to: At, flag: Flag) -> Answer<(Ino, Option<Ino>)> {
        self.walk(actor, from)?;
        self.walk(actor, to)?;
        if is_dots(from.1) {
            return Err(Errno::EBUSY);
        }
        if is_dots(to.1) {
            return Err(if flag == Flag::NoReplace { Errno::EEXIST } else { Errno::EBUSY });
        }
        let source = self.find(from)?.ok_or(Errno::ENOENT)?;
        let target = self.find(to)?;
        match (flag, target) {
            (Flag::NoReplace, Some(_)) => return Err(Errno::EEXIST),
            (Flag::Exchange, None) => return Err(Errno::ENOENT),
            _ => {}
        }
        if self.is_above(source, to.0) {
            return Err(Errno::EINVAL);
        }
        if target.is_some_and(|target| self.is_above(target, from.0)) {
            let exchanges = flag == Flag::Exchange;
            return Err(if exchanges { Errno::EINVAL } else { Errno::ENOTEMPTY });
        }
        Ok((source, target))
    }

    fn may_rename(
        &self,
        actor: &Actor,
        from: (Ino, Ino),
        to: (Ino, Option<Ino>),
        flag: Flag,
    ) -> Answer<()> {
        let exchanges = flag == Flag::Exchange;
        let moves_directory = self.inode(from.1)?.is_directory();
        self.may_delete(actor, from.0, from.1, moves_directory)?;
        let mut moved = vec![from.1];
        match to.1 {
            None => self.access(actor, to.0, Permission::WRITE | Permission::EXECUTE)?,
            Some(target) if exchanges => {
                self.may_delete(actor, to.0, target, self.inode(target)?.is_directory())?;
                moved.push(target);
            }
            Some(target) => self.may_delete(actor, to.0, target, moves_directory)?,
        }
        // A directory that gets another parent is written to: its `..` changes.
        for ino in moved {
            if from.0 != to.0 && self.inode(ino)?.is_directory() {
                self.access(actor, ino, Permission::WRITE)?;
            }
        }
        match to.1 {
            Some(target) if moves_directory && !exchanges => self.is_vacant(target),
            _ => Ok(()),
        }
    }

    /// Whether it is the directory or contains it, at any depth.
    fn is_above(&self, ino: Ino, dir: Ino) -> bool {
        let mut at = dir;
        loop {
            if at == ino {
                return true;
            }
            match self.inodes.get(&at).and_then(|inode| inode.directory()) {
                Some(directory) if directory.parent != at => at = directory.parent,
                _ => return false,
            }
        }
    }

    /// Tells an inode that its entry has moved.
    fn move_in(&mut self, now: u64, ino: Ino, from: Ino, to: Ino) {
        let inode = self.known(ino);
        inode.ctime = now;
        if let Body::Directory(directory) = &mut inode.body {
            directory.parent = to;
            self.known(from).nlink -= 1;
            self.known(to).nlink += 1;
        }
    }
}
