//! The witness-order check: what programs saw is what the reference file system shows, step by step.

use std::collections::{BTreeMap, BTreeSet};

use base::FileId;
use directory::{
    operation::{Changes, Moment, Over, When},
    record::Sort,
};
use lease::Client;

use crate::{
    Broken,
    reference::{
        Access, Actor, At, Change, Errno, FileSystem, Flag, Handle, How, Ino, Kind, Lock, Owner,
        Put, Range, Rules, Stamp,
    },
};

use super::{
    history::{Deed, Event, History},
    step::{Outcome, Seen, Stat, Step, manifest},
};

/// The reference, driven by what was done.
pub(crate) struct Witness {
    files: FileSystem,
    inos: BTreeMap<FileId, Ino>,
    names: BTreeMap<Ino, FileId>,
    /// By client, life and the client's own handle.
    handles: BTreeMap<(Client, u32, u64), Handle>,
    /// Who may have locks through a handle.
    lockers: BTreeSet<(Handle, Owner)>,
    /// A file that was born twice.
    reborn: Option<FileId>,
    /// How many outcomes were compared.
    pub(crate) compared: u64,
}

impl Witness {
    pub(crate) fn new() -> Witness {
        let rules = Rules { guards_links: false };
        let inos = BTreeMap::from([(FileId::ROOT, Ino::ROOT)]);
        Witness {
            files: FileSystem::new(rules, 0o755),
            inos,
            names: BTreeMap::from([(Ino::ROOT, FileId::ROOT)]),
            handles: BTreeMap::new(),
            lockers: BTreeSet::new(),
            reborn: None,
            compared: 0,
        }
    }

    /// Replays everything that has been; every result must be the same.
    pub(crate) fn replay(history: &History) -> Result<Witness, Broken> {
        let mut witness = Witness::new();
        let undone = history.undone();
        if let Some(forgotten) = &undone.forgotten {
            return Err(Broken::new("durable", format!("{forgotten} was safe, and is lost")));
        }
        for event in &history.events {
            match event {
                Event::Did(deed) if undone.void.contains(&deed.tag) => {}
                Event::Did(deed) if undone.doubtful.contains(&deed.tag) => {}
                Event::Did(deed) => witness.check(deed)?,
                Event::Ended(client, life) => witness.forget(*client, *life),
            }
        }
        Ok(witness)
    }

    pub(crate) fn files(&self) -> &FileSystem {
        &self.files
    }

    pub(crate) fn ino(&self, file: &FileId) -> Option<Ino> {
        self.inos.get(file).copied()
    }

    fn check(&mut self, deed: &Deed) -> Result<(), Broken> {
        if deed.outcome == Outcome::Failed {
            return Ok(());
        }
        if self.is_about_nothing(deed) {
            if deed.is_done() {
                if matches!(deed.step, Step::Open { .. } | Step::Link { .. }) {
                    let what = format!("{:?} of what has no name went well", deed.step);
                    return Err(Broken::new("inv-N5", what));
                }
                let _ = self.perform(deed);
            }
            return Ok(());
        }
        let expected = match self.perform(deed) {
            Ok(seen) => Outcome::Seen(seen),
            Err(errno) => Outcome::Refused(errno.name()),
        };
        if let Some(reborn) = &self.reborn {
            return Err(Broken::new("inv-N4", format!("{reborn} was born twice")));
        }
        self.compared += 1;
        match agrees(&expected, &deed.outcome) || self.is_pedantic(deed, &expected) {
            true => Ok(()),
            false => {
                let Deed { client, tag, actor, step, outcome, .. } = deed;
                let what = format!(
                    "{client:?} as {} did {step:?} ({tag}): {outcome:?}; it should be {expected:?}",
                    actor.uid
                );
                Err(Broken::new("witness", what))
            }
        }
    }

    /// Whether it is about a file without a name that its client has not open: whether that is still
    /// there is nobody's business.
    fn is_about_nothing(&self, deed: &Deed) -> bool {
        // A directory that was removed while open is still there for the reference, with nothing in it.
        let is_removed = |directory: &&FileId| {
            let attr = self.files.getattr(self.known(directory));
            attr.is_ok_and(|attr| attr.nlink == 0)
        };
        if !deed.is_done() && deed.step.directories().iter().any(is_removed) {
            return true;
        }
        // What was locked through a handle went with it; one that was opened after a doubt is not known.
        if let Step::Lock { handle, .. } = &deed.step {
            return !self.handles.contains_key(&(deed.client, deed.life, *handle));
        }
        let Some(file) = deed.step.file() else { return false };
        let ino = self.known(file);
        let Ok(attr) = self.files.getattr(ino) else { return true };
        if attr.nlink == 0 && attr.kind == Kind::Directory {
            return true; // Directories do not outlive their names, open or not.
        }
        let of_client = (deed.client, deed.life, 0)..=(deed.client, deed.life, u64::MAX);
        let mut handles = self.handles.range(of_client).map(|(_, handle)| *handle);
        let opened = |handle| self.files.handles().any(|known| known == (handle, ino));
        attr.nlink == 0 && !handles.any(opened)
    }

    /// Whether the two differ only in what is wrong with something that is gone and was no directory.
    fn is_pedantic(&self, deed: &Deed, expected: &Outcome) -> bool {
        let is_gone = |file: &&FileId| self.files.getattr(self.known(file)).is_err();
        *expected == Outcome::Refused("ENOENT")
            && deed.outcome == Outcome::Refused("ENOTDIR")
            && deed.step.directories().iter().any(is_gone)
    }

    fn forget(&mut self, client: Client, life: u32) {
        let all = self.handles.range((client, life, 0)..=(client, life, u64::MAX));
        let gone: Vec<_> = all.map(|(key, handle)| (*key, *handle)).collect();
        for (key, handle) in gone {
            self.handles.remove(&key);
            // Locks go with it.
            let owners = self.lockers.range((handle, Owner(0))..=(handle, Owner(u64::MAX)));
            for (_, owner) in owners.copied().collect::<Vec<_>>() {
                let _ = self.files.flush(handle, owner);
            }
            let _ = self.files.close(handle);
        }
    }

    /// The inode, or one that never was.
    fn known(&self, file: &FileId) -> Ino {
        self.inos.get(file).copied().unwrap_or(Ino(u64::MAX))
    }

    fn file_of(&self, ino: Ino) -> FileId {
        self.names.get(&ino).cloned().unwrap_or(FileId::ROOT)
    }

    fn perform(&mut self, deed: &Deed) -> Result<Seen, Errno> {
        let by = &deed.actor;
        let actor = Actor { uid: by.uid, gid: by.gid, groups: by.groups.clone() };
        let now = deed.tag as u64;
        let born = deed.born();
        match &deed.step {
            Step::Lookup { directory, name } => {
                let ino = self.files.lookup(&actor, At(self.known(directory), name.as_bytes()))?;
                Ok(Seen::File(self.file_of(ino)))
            }
            Step::Stat { file } => self.stat(self.known(file)),
            Step::List { directory } => self.list(&actor, self.known(directory)),
            Step::ReadLink { file } => {
                self.files.readlink(self.known(file)).map(|target| Seen::Bytes(target.to_vec()))
            }
            Step::Create { directory, name, mode } => {
                let at = At(self.known(directory), name.as_bytes());
                let ino = self.files.create(&actor, now, at, u32::from(*mode))?;
                self.be_born(born, ino)
            }
            Step::Mkdir { directory, name, mode } => {
                let at = At(self.known(directory), name.as_bytes());
                let ino = self.files.mkdir(&actor, now, at, u32::from(*mode))?;
                self.be_born(born, ino)
            }
            Step::Symlink { directory, name, target } => {
                let at = At(self.known(directory), name.as_bytes());
                let ino = self.files.symlink(&actor, now, at, target)?;
                self.be_born(born, ino)
            }
            Step::Link { file, directory, name } => {
                let at = At(self.known(directory), name.as_bytes());
                self.files.link(&actor, now, self.known(file), at).map(|()| Seen::Nothing)
            }
            Step::Unlink { directory, name } => {
                let at = At(self.known(directory), name.as_bytes());
                self.files.unlink(&actor, now, at).map(|()| Seen::Nothing)
            }
            Step::Rmdir { directory, name } => {
                let at = At(self.known(directory), name.as_bytes());
                self.files.rmdir(&actor, now, at).map(|()| Seen::Nothing)
            }
            Step::Rename { from, from_name, to, to_name, over } => {
                let from = At(self.known(from), from_name.as_bytes());
                let to = At(self.known(to), to_name.as_bytes());
                let flag = match over {
                    Over::Replace => Flag::Replace,
                    Over::Refuse => Flag::NoReplace,
                    Over::Exchange => Flag::Exchange,
                };
                self.files.rename(&actor, now, from, to, flag).map(|()| Seen::Nothing)
            }
            Step::SetAttr { file, changes } => self.setattr(&actor, now, self.known(file), changes),
            Step::SetXattr { file, name, value, when } => {
                let ino = self.known(file);
                let put = match when {
                    When::Always => Put::Any,
                    When::Absent => Put::Create,
                    When::Present => Put::Replace,
                };
                match value {
                    Some(value) => self.files.setxattr(&actor, now, ino, name, value, put),
                    None => self.files.removexattr(&actor, now, ino, name),
                }
                .map(|()| Seen::Nothing)
            }
            Step::GetXattr { file, name } => self
                .files
                .getxattr(&actor, self.known(file), name)
                .map(|value| Seen::Bytes(value.to_vec())),
            Step::Write { file, bytes } => self.write(&actor, now, self.known(file), bytes),
            Step::Open { file, writes } => {
                let access = if *writes { Access::Both } else { Access::Read };
                let how = How { access, append: false, truncate: false };
                let handle = self.files.open(&actor, now, self.known(file), how)?;
                match deed.outcome {
                    Outcome::Seen(Seen::Handle(number)) => {
                        self.handles.insert((deed.client, deed.life, number), handle);
                    }
                    _ => self.files.close(handle)?,
                }
                Ok(Seen::Handle(0))
            }
            Step::Close { handle } => {
                // One that was lost is closed already.
                if let Some(handle) = self.handles.remove(&(deed.client, deed.life, *handle)) {
                    self.files.close(handle)?;
                }
                Ok(Seen::Nothing)
            }
            Step::Lock { handle, owner, start, end, hold, .. } => {
                let handle = self.handles.get(&(deed.client, deed.life, *handle)).copied();
                let handle = handle.ok_or(Errno::EBADF)?;
                let lock = hold.map(|is_exclusive| match is_exclusive {
                    true => Lock::Exclusive,
                    false => Lock::Shared,
                });
                let owner = Owner(u64::from(deed.client.0) << 32 | owner);
                let range = Range { start: *start, end: *end };
                self.lockers.insert((handle, owner));
                self.files.set_lock(handle, owner, range, lock).map(|()| Seen::Nothing)
            }
            Step::Sync => Ok(Seen::Nothing),
        }
    }

    fn be_born(&mut self, born: Option<&FileId>, ino: Ino) -> Result<Seen, Errno> {
        let file = born.cloned().unwrap_or(FileId::ROOT);
        if self.inos.insert(file.clone(), ino).is_some() {
            self.reborn = Some(file.clone());
        }
        self.names.insert(ino, file.clone());
        Ok(Seen::File(file))
    }

    fn stat(&self, ino: Ino) -> Result<Seen, Errno> {
        let attr = self.files.getattr(ino)?;
        let sort = match attr.kind {
            Kind::File => Sort::Regular,
            Kind::Directory => Sort::Directory,
            Kind::Symlink => Sort::Symlink,
        };
        let content = (sort == Sort::Regular).then(|| {
            let runs = self.files.runs(ino);
            let bytes = runs.first().map_or(&[][..], |(_, run)| run);
            let bytes = &bytes[..bytes.len().min(attr.size as usize)];
            (attr.size, (attr.size > 0).then(|| manifest(bytes)))
        });
        Ok(Seen::Stat(Stat {
            sort,
            mode: attr.mode as u16,
            uid: attr.uid,
            gid: attr.gid,
            links: (sort != Sort::Directory).then_some(attr.nlink),
            content,
        }))
    }

    fn list(&self, actor: &Actor, ino: Ino) -> Result<Seen, Errno> {
        let entries = self.files.readdir(actor, ino)?;
        let names = entries.into_iter().filter_map(|entry| {
            let name = lease::Name::new(&entry.name)?;
            Some((name, self.file_of(entry.ino)))
        });
        let mut names: Vec<_> = names.collect();
        names.sort();
        Ok(Seen::Names(names))
    }

    fn setattr(
        &mut self,
        actor: &Actor,
        now: u64,
        ino: Ino,
        changes: &Changes,
    ) -> Result<Seen, Errno> {
        let stamp = |moment: Option<Moment>| match moment {
            None => Stamp::Omit,
            Some(Moment::Now) => Stamp::Now,
            Some(Moment::At(at)) => Stamp::At(at as u64),
        };
        let change = match changes {
            Changes { mode: Some(mode), .. } => Change::Mode(u32::from(*mode)),
            Changes { accessed, modified, .. } if accessed.is_some() || modified.is_some() => {
                Change::Times { atime: stamp(*accessed), mtime: stamp(*modified) }
            }
            Changes { uid, gid, .. } => Change::Owner { uid: *uid, gid: *gid },
        };
        self.files.setattr(actor, now, ino, change).map(|()| Seen::Nothing)
    }

    /// New content. An owner may always: see `directory`.
    fn write(&mut self, actor: &Actor, now: u64, ino: Ino, bytes: &[u8]) -> Result<Seen, Errno> {
        let owner = self.files.getattr(ino)?.uid;
        let opener = if owner == actor.uid { Actor::root() } else { actor.clone() };
        let how = How { access: Access::Write, append: false, truncate: false };
        let handle = self.files.open(&opener, now, ino, how)?;
        let done = self
            .files
            .truncate_open(actor, now, handle, 0)
            .and_then(|()| self.files.write(actor, now, handle, 0, bytes));
        self.files.close(handle)?;
        done.map(|_| Seen::Nothing)
    }
}

/// Whether two outcomes are the same to a program.
fn agrees(expected: &Outcome, seen: &Outcome) -> bool {
    match (expected, seen) {
        (Outcome::Seen(Seen::Handle(_)), Outcome::Seen(Seen::Handle(_))) => true,
        (expected, seen) => expected == seen,
    }
}
