//! Random operations, chosen so that names collide and rights are in the way.

use base::Rng;
use sim::reference::{
    Access, Actor, Change, FileSystem, Flag, Handle, How, Ino, Kind, Lock, Put, Range, Stamp,
};

use crate::{
    op::{Name, Op},
    place::Quirks,
};

/// From here on a time was set by somebody; below, it is the number of an operation.
pub const EXPLICIT: u64 = 1_000_000_000_000_000_000;

const NAMES: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"e", b"f"];
const XATTRS: [&[u8]; 4] = [b"user.a", b"user.b", b"user.c", b"user.d"];
const MODES: [u32; 16] = [
    0o755, 0o777, 0o1777, 0o2775, 0o3777, 0o770, 0o700, 0o644, 0o666, 0o600, 0o4755, 0o2755,
    0o6777, 0o2664, 0o444, 0o000,
];
const UIDS: [u32; 4] = [0, 1001, 1002, 1003];
const GIDS: [u32; 5] = [0, 1001, 1002, 2000, 2001];
/// Above this many inodes more are removed than made.
const INODES_MAX: usize = 60;
const HANDLES_MAX: usize = 12;

/// Who may act when the tests run as the superuser.
pub fn actors() -> Vec<Actor> {
    // The superuser twice: it mends what the others lock up.
    vec![
        Actor::root(),
        Actor::root(),
        Actor { uid: 1001, gid: 1001, groups: vec![2000] },
        Actor { uid: 1002, gid: 1002, groups: vec![2000, 2001] },
        Actor { uid: 1003, gid: 2000, groups: vec![] },
    ]
}

/// A source of operations for one tree.
pub struct Draw<'a> {
    pub rng: &'a mut Rng,
    pub fs: &'a FileSystem,
    pub quirks: &'a Quirks,
    pub now: u64,
}

impl Draw<'_> {
    /// The next operation.
    pub fn op(&mut self) -> Op {
        let is_full = self.fs.inos().count() > INODES_MAX;
        let handle_count = self.fs.handles().count();
        let is_busy = handle_count > HANDLES_MAX;
        loop {
            let op = match self.rng.below(100) {
                0..=13 if is_full => self.removal(),
                0..=4 => Op::Create(self.dir(), self.name(), self.mode()),
                5..=11 => Op::Mkdir(self.dir(), self.name(), self.mode()),
                12..=13 => Op::Symlink(self.dir(), self.name(), self.target()),
                14..=16 => self.link(),
                17..=24 => self.removal(),
                25..=37 => self.rename(),
                38..=43 => Op::SetAttr(self.ino(), Change::Mode(self.mode())),
                44..=48 => Op::SetAttr(self.ino(), self.owner()),
                49..=50 => Op::SetAttr(self.ino(), Change::Size(self.size())),
                51..=53 => Op::SetAttr(self.ino(), self.times()),
                54..=56 => {
                    let (dir, name) = self.place(None);
                    Op::Lookup(dir, name)
                }
                57 => {
                    let (dir, name) = self.place(Some(Kind::Symlink));
                    Op::Readlink(dir, name)
                }
                58..=63 => self.xattr(),
                64..=66 => Op::Readdir(self.dir()),
                67..=69 => self.access(),
                70 if !is_busy => Op::CreateOpen(self.dir(), self.name(), self.mode(), self.how()),
                71..=76 if !is_busy => Op::Open(self.ino(), self.how()),
                70..=99 if handle_count > 0 => self.on_handle(is_busy),
                _ => continue,
            };
            if self.is_comparable(&op) {
                return op;
            }
        }
    }

    /// Leaves out what leads out of the tree, and what this place can't do.
    fn is_comparable(&self, op: &Op) -> bool {
        let leads_out = |dir: &Ino, name: &Name| {
            let is_gone = self.fs.getattr(*dir).is_ok_and(|attr| attr.nlink == 0);
            name == b".." && (*dir == Ino::ROOT || is_gone)
        };
        match op {
            Op::Lookup(dir, name) => !leads_out(dir, name),
            // Without a name, the call is about the descriptor.
            Op::Readlink(dir, name) => !leads_out(dir, name) && !name.is_empty(),
            Op::Access(ino, bits) => {
                let is_file = self.fs.getattr(*ino).is_ok_and(|attr| attr.kind == Kind::File);
                self.quirks.executes || bits & 1 == 0 || !is_file
            }
            Op::SetXattr(..) | Op::GetXattr(..) | Op::RemoveXattr(..) | Op::ListXattr(..) => {
                self.quirks.has_xattrs
            }
            _ => true,
        }
    }

    fn removal(&mut self) -> Op {
        if self.rng.chance(0.3) {
            let (dir, name) = self.place(None);
            return if self.rng.chance(0.5) { Op::Unlink(dir, name) } else { Op::Rmdir(dir, name) };
        }
        if self.rng.chance(0.5) {
            let (dir, name) = self.place(Some(Kind::Directory));
            return Op::Rmdir(dir, name);
        }
        let kind = *self.rng.pick(&[Kind::File, Kind::Symlink]);
        let (dir, name) = self.place(Some(kind));
        Op::Unlink(dir, name)
    }

    fn link(&mut self) -> Op {
        Op::Link(self.ino(), self.dir(), self.name())
    }

    fn rename(&mut self) -> Op {
        let from = self.place(None);
        let to = match self.rng.below(10) {
            0..=2 => (from.0, self.name()),
            3..=6 => (self.dir(), self.name()),
            _ => self.place(None),
        };
        let flag = *self.rng.pick(&[
            Flag::Replace,
            Flag::Replace,
            Flag::Replace,
            Flag::NoReplace,
            Flag::Exchange,
        ]);
        Op::Rename(from, to, flag)
    }

    fn owner(&mut self) -> Change {
        let uid = self.rng.chance(0.5).then(|| *self.rng.pick(&UIDS));
        let gid = self.rng.chance(0.6).then(|| *self.rng.pick(&GIDS));
        Change::Owner { uid, gid }
    }

    fn times(&mut self) -> Change {
        if self.rng.chance(0.3) {
            return Change::Times { atime: Stamp::Now, mtime: Stamp::Now };
        }
        Change::Times { atime: self.stamp(), mtime: self.stamp() }
    }

    fn stamp(&mut self) -> Stamp {
        match self.rng.below(3) {
            0 => Stamp::Omit,
            1 => Stamp::Now,
            _ => Stamp::At(EXPLICIT + self.rng.below(EXPLICIT / 2)),
        }
    }

    fn xattr(&mut self) -> Op {
        let ino = self.ino();
        let name = match self.rng.below(60) {
            0 => b"user.".to_vec(),
            1 => [b"user.".as_slice(), &[b'n'; 251]].concat(),
            2 => Vec::new(),
            3 => b"nowhere.a".to_vec(),
            _ => self.rng.pick(&XATTRS).to_vec(),
        };
        match self.rng.below(8) {
            0..=3 => {
                let put = *self.rng.pick(&[Put::Any, Put::Any, Put::Create, Put::Replace]);
                Op::SetXattr(ino, name, self.value(), put)
            }
            4..=5 => Op::GetXattr(ino, name),
            6 => Op::RemoveXattr(ino, name),
            _ => Op::ListXattr(ino),
        }
    }

    /// Never one that was there before: what it changes to set the same again depends on the place.
    fn value(&mut self) -> Vec<u8> {
        let len = match self.rng.below(40) {
            0 => 65_537,
            1 if self.quirks.is_roomy => 65_536,
            _ => self.rng.index(60),
        };
        let mut value = vec![b'v'; len];
        value.iter_mut().zip(self.now.to_le_bytes()).for_each(|(to, from)| *to = from);
        if value.len() < 8 { self.now.to_le_bytes().to_vec() } else { value }
    }

    fn access(&mut self) -> Op {
        Op::Access(self.ino(), self.rng.below(8) as u32)
    }

    fn on_handle(&mut self, is_busy: bool) -> Op {
        let handles: Vec<Handle> = self.fs.handles().map(|(handle, _)| handle).collect();
        let handle = *self.rng.pick(&handles);
        let locks = [Lock::Shared, Lock::Exclusive];
        match self.rng.below(20) {
            0..=3 if is_busy => Op::Close(handle),
            0 => Op::Close(handle),
            1..=5 => Op::Read(handle, self.offset(), self.rng.below(6_000)),
            6..=11 => {
                let len = *self.rng.pick(&[0, 1, 10, 500, 1024, 4096, 5000]);
                let byte = (self.now % 255) as u8 + 1;
                Op::Write(handle, self.offset(), vec![byte; len])
            }
            12 => Op::Truncate(handle, self.size()),
            13..=15 => {
                let lock = self.rng.chance(0.75).then(|| *self.rng.pick(&locks));
                Op::SetLock(handle, self.range(), lock)
            }
            16..=17 => Op::TestLock(handle, self.range(), *self.rng.pick(&locks)),
            _ => {
                let lock = self.rng.chance(0.75).then(|| *self.rng.pick(&locks));
                Op::Flock(handle, lock)
            }
        }
    }

    fn range(&mut self) -> Range {
        let start = self.rng.below(12);
        match self.rng.below(12) {
            0 => Range::ALL,
            1 => Range { start, end: Range::ALL.end },
            _ => Range { start, end: start + self.rng.below(6) },
        }
    }

    fn dir(&mut self) -> Ino {
        if self.rng.chance(0.03) {
            return self.ino();
        }
        let is_dir = |ino: &Ino| self.fs.getattr(*ino).is_ok_and(|a| a.kind == Kind::Directory);
        let dirs: Vec<Ino> = self.fs.inos().filter(is_dir).collect();
        *self.rng.pick(&dirs)
    }

    /// Mostly something that is there, if possible of this kind.
    fn place(&mut self, kind: Option<Kind>) -> (Ino, Name) {
        if self.rng.chance(0.3) {
            return (self.dir(), self.name());
        }
        let mut places = Vec::new();
        for dir in self.fs.inos() {
            let entries = self.fs.readdir(&Actor::root(), dir).unwrap_or_default();
            let entries = entries.into_iter().filter(|e| kind.is_none_or(|kind| e.kind == kind));
            places.extend(entries.map(|entry| (dir, entry.name)));
        }
        if places.is_empty() {
            return (self.dir(), self.name());
        }
        places.swap_remove(self.rng.index(places.len()))
    }

    fn ino(&mut self) -> Ino {
        let inos: Vec<Ino> = self.fs.inos().collect();
        *self.rng.pick(&inos)
    }

    fn name(&mut self) -> Name {
        match self.rng.below(120) {
            0 => b".".to_vec(),
            1 => b"..".to_vec(),
            2 => Vec::new(),
            3 => vec![b'l'; 256],
            4 => vec![b'k'; 255],
            5 => vec![b'\xff', b'\n', b' '],
            _ => self.rng.pick(&NAMES).to_vec(),
        }
    }

    fn target(&mut self) -> Vec<u8> {
        match self.rng.below(30) {
            0 => Vec::new(),
            1 => vec![b't'; 4095],
            2 => vec![b't'; 4096],
            _ => self.rng.pick(&NAMES).to_vec(),
        }
    }

    fn mode(&mut self) -> u32 {
        if self.rng.chance(0.15) {
            return self.rng.below(0o10000) as u32;
        }
        *self.rng.pick(&MODES)
    }

    fn how(&mut self) -> How {
        let access = *self.rng.pick(&[Access::Read, Access::Write, Access::Both, Access::Both]);
        How { access, append: self.rng.chance(0.2), truncate: self.rng.chance(0.15) }
    }

    fn offset(&mut self) -> u64 {
        match self.rng.below(60) {
            0 if self.quirks.is_roomy => i64::MAX as u64 - self.rng.below(3_000),
            1 => i64::MAX as u64 + 1,
            2..=10 => *self.rng.pick(&[0, 1, 1023, 1024, 4095, 4096]),
            _ => self.rng.below(10_000),
        }
    }

    fn size(&mut self) -> u64 {
        match self.rng.below(40) {
            0 if self.quirks.is_roomy => i64::MAX as u64 - self.rng.below(3_000),
            1 => i64::MAX as u64 + 1,
            2..=10 => *self.rng.pick(&[0, 1, 1023, 1024, 4095, 4096]),
            _ => self.rng.below(12_000),
        }
    }
}
