//! An operation as the reference file system performs it.

use sim::reference::{Actor, Answer, At, FileSystem, Ino, Owner, Permission};

use crate::op::{Op, Outcome, Yield};

/// Performs the operation and answers in the terms of both sides.
pub fn apply(fs: &mut FileSystem, actor: &Actor, now: u64, op: &Op) -> Outcome {
    answer(fs, actor, now, op).map_err(|errno| errno.number())
}

fn answer(fs: &mut FileSystem, actor: &Actor, now: u64, op: &Op) -> Answer<Yield> {
    match op {
        Op::Lookup(dir, name) => fs.lookup(actor, At(*dir, name)).map(Yield::Ino),
        Op::Create(dir, name, mode) => fs.create(actor, now, At(*dir, name), *mode).map(Yield::Ino),
        Op::CreateOpen(dir, name, mode, how) => {
            let (ino, handle) = fs.create_open(actor, now, At(*dir, name), *mode, *how)?;
            Ok(Yield::Both(ino, handle))
        }
        Op::Mkdir(dir, name, mode) => fs.mkdir(actor, now, At(*dir, name), *mode).map(Yield::Ino),
        Op::Symlink(dir, name, target) => {
            fs.symlink(actor, now, At(*dir, name), target).map(Yield::Ino)
        }
        Op::Readlink(dir, name) => {
            let ino = fs.lookup(actor, At(*dir, name))?;
            Ok(Yield::Bytes(fs.readlink(ino)?.to_vec()))
        }
        Op::Link(ino, dir, name) => done(fs.link(actor, now, *ino, At(*dir, name))),
        Op::Unlink(dir, name) => done(fs.unlink(actor, now, At(*dir, name))),
        Op::Rmdir(dir, name) => done(fs.rmdir(actor, now, At(*dir, name))),
        Op::Rename(from, to, flag) => {
            done(fs.rename(actor, now, At(from.0, &from.1), At(to.0, &to.1), *flag))
        }
        Op::SetAttr(ino, change) => done(fs.setattr(actor, now, *ino, *change)),
        Op::GetXattr(ino, name) => Ok(Yield::Bytes(fs.getxattr(actor, *ino, name)?.to_vec())),
        Op::SetXattr(ino, name, value, put) => {
            done(fs.setxattr(actor, now, *ino, name, value, *put))
        }
        Op::RemoveXattr(ino, name) => done(fs.removexattr(actor, now, *ino, name)),
        Op::ListXattr(ino) => {
            Ok(Yield::Names(fs.listxattr(*ino)?.into_iter().map(<[u8]>::to_vec).collect()))
        }
        Op::Readdir(dir) => {
            let entries = fs.readdir(actor, *dir)?.into_iter();
            Ok(Yield::Entries(entries.map(|entry| (entry.name, (entry.ino, entry.kind))).collect()))
        }
        Op::Access(ino, bits) => done(fs.access(actor, *ino, Permission::from_bits(*bits))),
        Op::Open(ino, how) => fs.open(actor, now, *ino, *how).map(Yield::Handle),
        Op::Close(handle) => {
            // Here every open file is an owner of its own.
            fs.flush(*handle, Owner(handle.0))?;
            done(fs.close(*handle))
        }
        Op::Read(handle, offset, len) => fs.read(*handle, *offset, *len).map(Yield::Bytes),
        Op::Write(handle, offset, data) => {
            fs.write(actor, now, *handle, *offset, data).map(Yield::Count)
        }
        Op::Truncate(handle, size) => done(fs.truncate_open(actor, now, *handle, *size)),
        Op::SetLock(handle, range, lock) => {
            done(fs.set_lock(*handle, Owner(handle.0), *range, *lock))
        }
        Op::TestLock(handle, range, lock) => {
            let spans = fs.test_lock(*handle, Owner(handle.0), *range, *lock)?;
            Ok(Yield::Conflicts(spans.iter().map(|span| (span.range, span.lock)).collect()))
        }
        Op::Flock(handle, lock) => done(fs.flock(*handle, *lock)),
    }
}

fn done(answer: Answer<()>) -> Answer<Yield> {
    answer.map(|()| Yield::Done)
}

/// Every inode that the operation is about, before it happens.
pub fn touched(fs: &FileSystem, op: &Op) -> Vec<Ino> {
    let child = |dir: &Ino, name: &[u8]| fs.lookup(&Actor::root(), At(*dir, name)).ok();
    let opened = |handle| fs.handles().find(|(other, _)| other == handle).map(|(_, ino)| ino);
    match op {
        Op::Lookup(dir, name)
        | Op::Create(dir, name, _)
        | Op::CreateOpen(dir, name, _, _)
        | Op::Mkdir(dir, name, _)
        | Op::Symlink(dir, name, _)
        | Op::Readlink(dir, name)
        | Op::Unlink(dir, name)
        | Op::Rmdir(dir, name) => [Some(*dir), child(dir, name)].into_iter().flatten().collect(),
        Op::Link(ino, dir, name) => {
            [Some(*ino), Some(*dir), child(dir, name)].into_iter().flatten().collect()
        }
        Op::Rename((from, old), (to, new), _) => {
            let inos = [Some(*from), Some(*to), child(from, old), child(to, new)];
            inos.into_iter().flatten().collect()
        }
        Op::SetAttr(ino, _)
        | Op::GetXattr(ino, _)
        | Op::SetXattr(ino, ..)
        | Op::RemoveXattr(ino, _)
        | Op::ListXattr(ino)
        | Op::Readdir(ino)
        | Op::Access(ino, _)
        | Op::Open(ino, _) => vec![*ino],
        Op::Close(handle)
        | Op::Read(handle, ..)
        | Op::Write(handle, ..)
        | Op::Truncate(handle, _)
        | Op::SetLock(handle, ..)
        | Op::TestLock(handle, ..)
        | Op::Flock(handle, _) => opened(handle).into_iter().collect(),
    }
}
