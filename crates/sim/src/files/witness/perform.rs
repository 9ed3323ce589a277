//! What each step does to the reference, and what it shows.

use base::FileId;
use client::Modes;
use directory::{
    operation::{Changes, Moment, Over, When},
    record::Sort,
};
use lease::Client;

use crate::reference::{
    Access, Actor, At, Change, Errno, Flag, Handle, How, Ino, Kind, Lock, Owner, Permission, Put,
    Range, Span, Stamp,
};

use super::{
    super::{
        history::Deed,
        step::{Held, Outcome, Seen, Stat, Step, digest},
    },
    Witness,
};

impl Witness {
    pub(super) fn perform(&mut self, deed: &Deed) -> Result<Seen, Errno> {
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
            Step::List { directory, after, count } => {
                let mut names = self.list(&actor, self.known(directory))?;
                names.retain(|(name, _)| Some(name) > after.as_ref());
                let is_all = names.len() <= *count;
                names.truncate(*count);
                Ok(Seen::Names(names, is_all))
            }
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
            Step::ListXattr { file } => {
                let names = self.files.listxattr(self.known(file))?;
                Ok(Seen::Attributes(names.into_iter().map(<[u8]>::to_vec).collect()))
            }
            Step::Write { file, bytes, size } => {
                self.write(&actor, now, self.known(file), bytes, *size)
            }
            Step::Open { file, modes } => {
                let ino = self.known(file);
                let access = if modes.access.write { Access::Both } else { Access::Read };
                let how = How { access, append: false, truncate: false };
                let handle = self.files.open(&actor, now, ino, how)?;
                if self.is_excluded(ino, *modes) {
                    self.files.close(handle)?;
                    return Err(Errno::EBUSY);
                }
                match deed.outcome {
                    Outcome::Seen(Seen::Handle(number)) => {
                        self.handles.insert((deed.client, deed.life, number), handle);
                        self.modes.insert(handle, (ino, *modes));
                    }
                    _ => self.files.close(handle)?,
                }
                Ok(Seen::Handle(0))
            }
            Step::Close { handle } => {
                // One that was lost is closed already.
                if let Some(handle) = self.handles.remove(&(deed.client, deed.life, *handle)) {
                    self.close(deed.client, deed.life, handle);
                }
                Ok(Seen::Nothing)
            }
            Step::Lock { file, start, end, hold, owner, .. } => {
                let handle = self.handle_of(deed, *hold == Some(true)).ok_or(Errno::EBADF)?;
                let ino = self.known(file);
                if self.files.getattr(ino)?.kind == Kind::Directory {
                    return Err(Errno::EINVAL);
                }
                let stat = self.files.getattr(ino)?;
                let may = |wanted| self.files.access(&actor, ino, wanted).is_ok();
                let owns = actor.is_super() || actor.uid == stat.uid;
                if hold.is_some() && !owns && !may(Permission::READ) && !may(Permission::WRITE) {
                    return Err(Errno::EACCES);
                }
                let lock = hold.map(strength);
                let owner = owner_of(deed.client, *owner);
                let range = Range { start: *start, end: *end };
                self.lockers.insert((ino, owner));
                self.files.set_lock(handle, owner, range, lock).map(|()| Seen::Nothing)
            }
            Step::TestLock { start, end, is_exclusive, owner, .. } => {
                let handle = self.handle_of(deed, false).ok_or(Errno::EBADF)?;
                let owner = owner_of(deed.client, *owner);
                let range = Range { start: *start, end: *end };
                let lock = strength(*is_exclusive);
                let spans = self.files.test_lock(handle, owner, range, lock)?;
                let held: Vec<Held> = spans.into_iter().map(held).collect();
                // Any one of them will do.
                let seen = match &deed.outcome {
                    Outcome::Seen(Seen::Lock(Some(seen))) => held.iter().find(|held| *held == seen),
                    _ => None,
                };
                Ok(Seen::Lock(seen.or(held.first()).copied()))
            }
            Step::Sync => Ok(Seen::Nothing),
        }
    }

    fn be_born(&mut self, born: Option<&FileId>, ino: Ino) -> Result<Seen, Errno> {
        let Some(file) = born.cloned() else { return Ok(Seen::Nothing) };
        if self.inos.insert(file.clone(), ino).is_some() {
            self.reborn = Some(file.clone());
        }
        self.names.insert(ino, file.clone());
        Ok(Seen::File(file))
    }

    /// A handle of the deed's client through which its file may be locked: its own or any other, if its
    /// own went with an earlier life.
    pub(super) fn handle_of(&self, deed: &Deed, writes: bool) -> Option<Handle> {
        let (Step::Lock { file, handle, .. } | Step::TestLock { file, handle, .. }) = &deed.step
        else {
            return None;
        };
        let own = self.handles.get(&(deed.client, deed.life, *handle)).copied();
        let ino = self.known(file);
        let may = |handle: &Handle| {
            let modes = self.modes.get(handle);
            modes.is_some_and(|(of, modes)| *of == ino && (modes.access.write || !writes))
        };
        own.or_else(|| self.handles_of(deed.client, deed.life).find(may))
    }

    /// The handles that a client has in this life.
    pub(super) fn handles_of(&self, client: Client, life: u32) -> impl Iterator<Item = Handle> {
        let all = self.handles.range((client, life, 0)..=(client, life, u64::MAX));
        all.map(|(_, handle)| *handle)
    }

    /// Whether somebody has a file open in a way that excludes this.
    fn is_excluded(&self, ino: Ino, modes: Modes) -> bool {
        let others = || self.modes.values().filter(|(of, _)| *of == ino);
        let mut conflicting = modes.conflicting();
        conflicting.any(|mode| others().any(|(_, other)| other.own().any(|own| own == mode)))
    }

    /// A client has begun to close a handle.
    pub(super) fn begin_close(&mut self, client: Client, life: u32, handle: u64) {
        let handle = self.handles.get(&(client, life, handle));
        if let Some((ino, _)) = handle.and_then(|handle| self.modes.get(handle)) {
            self.closing.insert((*ino, client));
        }
    }

    /// Whoever finds bytes free shows that those who are closing the file have let go of locks on them.
    pub(super) fn let_go(&mut self, deed: &Deed) {
        let (start, end, lock, owner) = match &deed.step {
            Step::Lock { start, end, hold: Some(hold), owner, .. } if deed.is_done() => {
                (start, end, strength(*hold), owner)
            }
            Step::TestLock { start, end, is_exclusive, owner, .. }
                if deed.outcome == Outcome::Seen(Seen::Lock(None)) =>
            {
                (start, end, strength(*is_exclusive), owner)
            }
            _ => return,
        };
        let Some(handle) = self.handle_of(deed, false) else { return };
        let Some((ino, _)) = self.modes.get(&handle).copied() else { return };
        let range = Range { start: *start, end: *end };
        let owner = owner_of(deed.client, *owner);
        for span in self.files.test_lock(handle, owner, range, lock).unwrap_or_default() {
            if self.closing.contains(&(ino, held(span).client)) {
                let _ = self.files.set_lock(handle, span.owner, span.range, None);
            }
        }
    }

    fn unlock(&mut self, ino: Ino, client: Client, handle: Handle) {
        let last = owner_of(client, u64::from(u32::MAX));
        let of_client = (ino, owner_of(client, 0))..=(ino, last);
        for (ino, owner) in self.lockers.range(of_client).copied().collect::<Vec<_>>() {
            self.lockers.remove(&(ino, owner));
            let _ = self.files.flush(handle, owner);
        }
    }

    /// Closes a handle. With a client's last one its locks on the file go.
    pub(super) fn close(&mut self, client: Client, life: u32, handle: Handle) {
        if let Some((ino, _)) = self.modes.remove(&handle) {
            let is_other = |other: Handle| self.modes.get(&other).is_some_and(|(of, _)| *of == ino);
            // If another was opened meanwhile, it is not known whether the locks have gone.
            if !self.handles_of(client, life).any(is_other) {
                self.closing.remove(&(ino, client));
                self.unlock(ino, client, handle);
            }
        }
        let _ = self.files.close(handle);
    }

    pub(crate) fn stat(&self, ino: Ino) -> Result<Seen, Errno> {
        let attr = self.files.getattr(ino)?;
        let sort = match attr.kind {
            Kind::File => Sort::Regular,
            Kind::Directory => Sort::Directory,
            Kind::Symlink => Sort::Symlink,
        };
        let content =
            (sort == Sort::Regular).then(|| (attr.size, digest(&self.written(ino), attr.size)));
        let times = (sort == Sort::Regular).then_some((attr.atime as i64, attr.mtime as i64));
        Ok(Seen::Stat(Stat {
            sort,
            mode: attr.mode as u16,
            uid: attr.uid,
            gid: attr.gid,
            links: (sort != Sort::Directory).then_some(attr.nlink),
            content,
            times,
        }))
    }

    /// What programs have written into a file: holes come after it.
    pub(super) fn written(&self, ino: Ino) -> Vec<u8> {
        let runs = self.files.runs(ino);
        let run = runs.first().map_or(&[][..], |(_, run)| run);
        // What programs write has no zeros in it.
        let end = run.iter().position(|byte| *byte == 0).unwrap_or(run.len());
        run[..end].to_vec()
    }

    fn list(&self, actor: &Actor, ino: Ino) -> Result<Vec<(lease::Name, FileId)>, Errno> {
        let entries = self.files.readdir(actor, ino)?;
        let names = entries.into_iter().filter_map(|entry| {
            let name = lease::Name::new(&entry.name)?;
            Some((name, self.file_of(entry.ino)))
        });
        let mut names: Vec<_> = names.collect();
        names.sort();
        Ok(names)
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
    fn write(
        &mut self,
        actor: &Actor,
        now: u64,
        ino: Ino,
        bytes: &[u8],
        size: u64,
    ) -> Result<Seen, Errno> {
        let owner = self.files.getattr(ino)?.uid;
        let opener = if owner == actor.uid { Actor::root() } else { actor.clone() };
        let how = How { access: Access::Write, append: false, truncate: false };
        let handle = self.files.open(&opener, now, ino, how)?;
        let done = self
            .files
            .truncate_open(actor, now, handle, 0)
            .and_then(|()| self.files.write(actor, now, handle, 0, bytes))
            .and_then(|_| self.files.truncate_open(actor, now, handle, size));
        self.files.close(handle)?;
        done.map(|_| Seen::Nothing)
    }
}

fn strength(is_exclusive: bool) -> Lock {
    if is_exclusive { Lock::Exclusive } else { Lock::Shared }
}

/// One owner of locks for each on each client.
fn owner_of(client: Client, owner: u64) -> Owner {
    Owner(u64::from(client.0) << 32 | owner)
}

fn held(Span { range, owner, lock }: Span) -> Held {
    Held {
        client: Client((owner.0 >> 32) as u32),
        owner: owner.0 & u64::from(u32::MAX),
        start: range.start,
        end: range.end,
        is_exclusive: lock == Lock::Exclusive,
    }
}
