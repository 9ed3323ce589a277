//! The reference and the kernel, side by side, through one seed.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    path::Path,
};

use base::Rng;
use rustix::fs::FileType;
use sim::reference::{Actor, Attr, Change, FileSystem, Ino, Kind, Rules, Stamp};

use crate::{
    draw::{Draw, EXPLICIT},
    kernel::Kernel,
    model,
    op::{Op, Outcome, Yield, describe, errno_name},
    place::{Quirks, Scratch},
};

/// Where the two differ.
pub struct Difference {
    pub seed: u64,
    /// How many operations it takes.
    pub count: u64,
    pub what: String,
    /// The last operations, with what they answered.
    pub last: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { seed, count, what, last } = self;
        let last = last.join("\n  ");
        write!(f, "seed {seed}, operation {count}: {what}; the last operations:\n  {last}")
    }
}

/// How often each operation had each outcome.
pub type Tally = BTreeMap<(&'static str, String), u64>;

/// Changes what the reference does, to show that it would be noticed.
pub trait Tamper {
    /// What it answers.
    fn answer(&self, _: &Op, outcome: Outcome) -> Outcome {
        outcome
    }

    /// What becomes of its tree after an operation.
    fn tree(&self, _: &Op, _: &Outcome, _: &mut FileSystem) {}
}

/// Changes nothing.
pub struct Honest;

impl Tamper for Honest {}

/// Times of an inode on both sides, when they were last looked at.
struct Seen {
    reference: [u64; 2],
    kernel: [(i64, u64); 2],
}

struct Duel<'a> {
    fs: FileSystem,
    kernel: Kernel,
    quirks: &'a Quirks,
    seen: BTreeMap<Ino, Seen>,
}

const MODE: u32 = 0o777;
const LAST_MAX: usize = 25;
/// Larger files are compared where the reference has bytes, and at their ends.
const WHOLE_MAX: u64 = 1 << 20;
/// The whole tree is compared this often.
const SWEEP: u64 = 100;

/// Runs so many operations of the seed in a fresh directory of the place.
///
/// If only the comparison of the trees finds a difference, it is sought again after every operation, so
/// that the run ends where the trouble began.
pub fn fight(
    place: &Path,
    quirks: &Quirks,
    seed: u64,
    count: u64,
    tamper: &impl Tamper,
) -> Result<Tally, Difference> {
    let first = match fight_with(place, quirks, seed, count, tamper, SWEEP) {
        Err(difference) => difference,
        ok => return ok,
    };
    match fight_with(place, quirks, seed, first.count, tamper, 1) {
        Err(earlier) => Err(earlier),
        Ok(_) => Err(first),
    }
}

fn fight_with(
    place: &Path,
    quirks: &Quirks,
    seed: u64,
    count: u64,
    tamper: &impl Tamper,
    sweep: u64,
) -> Result<Tally, Difference> {
    let scratch = Scratch::new(place, MODE);
    let mut duel = Duel::new(&scratch.path, quirks);
    let actors = duel.kernel.identity.actors();
    let mut rng = Rng::new(seed);
    let mut last = VecDeque::new();
    let mut tally = Tally::new();
    for now in 1..=count {
        let actor = rng.pick(&actors).clone();
        let op = Draw { rng: &mut rng, fs: &duel.fs, quirks, now }.op();
        let (outcome, mut result) = duel.step(&actor, now, &op, tamper);
        let word = outcome.as_ref().map_or_else(|number| errno_name(*number), |_| "ok".to_owned());
        *tally.entry((op.verb(), word)).or_default() += 1;
        let (uid, words) = (actor.uid, op.describe());
        last.push_back(format!("{now}: {uid} {words}: {}", describe(&outcome)));
        if last.len() > LAST_MAX {
            last.pop_front();
        }
        if result.is_ok() && (now % sweep == 0 || now == count) {
            result = duel.sweep();
        }
        if let Err(what) = result {
            return Err(Difference { seed, count: now, what, last: last.into() });
        }
    }
    Ok(tally)
}

impl Duel<'_> {
    fn new<'a>(root: &Path, quirks: &'a Quirks) -> Duel<'a> {
        let kernel = Kernel::new(root);
        let rules = Rules { guards_links: quirks.guards_links };
        let mut fs = FileSystem::new(rules, MODE);
        let Actor { uid, gid, .. } = kernel.identity.own();
        let owner = Change::Owner { uid: Some(uid), gid: Some(gid) };
        fs.setattr(&Actor::root(), 0, Ino::ROOT, owner).expect("the superuser may");
        let mut duel = Duel { fs, kernel, quirks, seen: BTreeMap::new() };
        duel.compare(Ino::ROOT).expect("both roots are new");
        duel
    }

    fn step(
        &mut self,
        actor: &Actor,
        now: u64,
        op: &Op,
        tamper: &impl Tamper,
    ) -> (Outcome, Result<(), String>) {
        let mut touched = model::touched(&self.fs, op);
        self.excuse(op);
        let outcome = model::apply(&mut self.fs, actor, now, op);
        let outcome = tamper.answer(op, outcome);
        let truth = self.kernel.apply(actor, op, &outcome);
        tamper.tree(op, &outcome, &mut self.fs);
        if outcome != truth {
            let words = format!("the kernel answers {}", describe(&truth));
            return (outcome, Err(words));
        }
        if let Ok(Yield::Ino(ino) | Yield::Both(ino, _)) = &outcome {
            touched.push(*ino);
        }
        touched.sort_unstable();
        touched.dedup();
        let mut result = Ok(());
        for ino in touched {
            if self.fs.getattr(ino).is_err() {
                self.kernel.forget(ino);
                self.seen.remove(&ino);
            } else if result.is_ok() {
                result = self.compare(ino);
            }
        }
        if result.is_ok()
            && let (Op::SetAttr(ino, Change::Times { atime: Stamp::At(time), .. }), Ok(_)) =
                (op, &outcome)
        {
            let stat = self.kernel.stat(*ino);
            if nanoseconds((stat.st_atime, stat.st_atime_nsec)) != *time {
                result = Err(format!("{ino} was accessed at {}", stat.st_atime));
            }
        }
        (outcome, result)
    }

    /// Forgets the times where places differ among themselves: in a truncation to the same size.
    fn excuse(&mut self, op: &Op) {
        if let Op::SetAttr(ino, Change::Size(size)) = op
            && self.fs.getattr(*ino).is_ok_and(|attr| attr.size == *size)
        {
            self.seen.remove(ino);
        }
    }

    /// Compares what `stat` tells.
    fn compare(&mut self, ino: Ino) -> Result<(), String> {
        let attr = self.fs.getattr(ino).map_err(|errno| format!("{ino}: {errno}"))?;
        let stat = self.kernel.stat(ino);
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::File,
        };
        let is_directory = kind == Kind::Directory;
        let has_odd_links = is_directory && !self.quirks.counts_subdirectories;
        let kernel = Attr {
            kind,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            nlink: if has_odd_links { attr.nlink } else { stat.st_nlink as u32 },
            size: if is_directory { 0 } else { stat.st_size as u64 },
            ..attr
        };
        if kernel != attr {
            let (kernel, ours) = (words(&kernel), words(&attr));
            return Err(format!("{ino} is {kernel} to the kernel, and {ours} to the reference"));
        }
        if self.quirks.has_fine_times {
            let kernel = [(stat.st_mtime, stat.st_mtime_nsec), (stat.st_ctime, stat.st_ctime_nsec)];
            let seen = Seen { reference: [attr.mtime, attr.ctime], kernel };
            self.compare_times(ino, seen, is_directory && self.quirks.borrows_times)?;
        }
        Ok(())
    }

    /// What one side has changed since it was last looked at, the other must have changed.
    fn compare_times(&mut self, ino: Ino, seen: Seen, is_coarse: bool) -> Result<(), String> {
        for (index, name) in ["modification", "change"].into_iter().enumerate() {
            let (ours, theirs) = (seen.reference[index], seen.kernel[index]);
            if ours >= EXPLICIT && nanoseconds(theirs) != ours {
                return Err(format!("the time of {name} of {ino} is {theirs:?}, set to {ours}"));
            }
            let Some(before) = self.seen.get(&ino) else { continue };
            let has_changed = theirs != before.kernel[index];
            let should_change = ours != before.reference[index];
            if has_changed != should_change && !(is_coarse && should_change) {
                let word = if has_changed { "has" } else { "has not" };
                return Err(format!("the kernel {word} changed the time of {name} of {ino}"));
            }
        }
        self.seen.insert(ino, seen);
        Ok(())
    }

    /// Compares everything.
    fn sweep(&mut self) -> Result<(), String> {
        self.fs.check()?;
        for ino in self.fs.inos().collect::<Vec<_>>() {
            self.compare(ino)?;
            let attr = self.fs.getattr(ino).map_err(|errno| format!("{ino}: {errno}"))?;
            match attr.kind {
                Kind::File => self.compare_content(ino, attr.size)?,
                Kind::Directory if attr.nlink > 0 => self.compare_entries(ino)?,
                Kind::Directory | Kind::Symlink => {}
            }
            if self.quirks.has_xattrs && attr.kind != Kind::Symlink {
                self.compare_xattrs(ino)?;
            }
        }
        Ok(())
    }

    fn compare_content(&mut self, ino: Ino, size: u64) -> Result<(), String> {
        if !self.is_readable(ino) {
            return Ok(());
        }
        let mut pieces = self.fs.runs(ino);
        if size <= WHOLE_MAX {
            let mut bytes = vec![0; size as usize];
            for (offset, run) in pieces {
                let end = bytes.len().min(offset as usize + run.len());
                let len = end - offset as usize;
                bytes[offset as usize..end].copy_from_slice(&run[..len]);
            }
            let same = self.kernel.content(ino, 0, size as usize) == bytes;
            return if same { Ok(()) } else { Err(format!("{ino} has other bytes")) };
        }
        for (offset, run) in pieces.drain(..) {
            let len = run.len().min((size - offset) as usize);
            if self.kernel.content(ino, offset, len) != run[..len] {
                return Err(format!("{ino} has other bytes from {offset}"));
            }
        }
        Ok(())
    }

    fn compare_entries(&mut self, dir: Ino) -> Result<(), String> {
        if !self.is_readable(dir) {
            return Ok(());
        }
        let entries = self.fs.readdir(&Actor::root(), dir).map_err(|errno| errno.to_string())?;
        let entries = entries.into_iter().map(|entry| (entry.name, (entry.ino, entry.kind)));
        let kernel = self.kernel.entries(dir);
        if kernel != entries.collect() {
            return Err(format!("the kernel has other entries in {dir}: {kernel:?}"));
        }
        Ok(())
    }

    fn compare_xattrs(&mut self, ino: Ino) -> Result<(), String> {
        if !self.is_readable(ino) {
            return Ok(());
        }
        let kernel = self.kernel.xattrs(ino);
        let names = self.fs.listxattr(ino).map_err(|errno| errno.to_string())?;
        let root = Actor::root();
        let value =
            |name: &[u8]| (name.to_vec(), self.fs.getxattr(&root, ino, name).map(<[u8]>::to_vec));
        let ours: BTreeMap<_, _> = names.into_iter().map(value).collect();
        let kernel = kernel.into_iter().map(|(name, value)| (name, Ok(value)));
        if ours != kernel.collect() {
            return Err(format!("the kernel has other attributes of {ino}"));
        }
        Ok(())
    }

    /// Whether we can look inside; the superuser always can.
    fn is_readable(&self, ino: Ino) -> bool {
        let own = self.kernel.identity.own();
        self.fs.access(&own, ino, sim::reference::Permission::READ).is_ok()
    }
}

fn words(attr: &Attr) -> String {
    let Attr { kind, mode, uid, gid, nlink, size, .. } = attr;
    format!("{kind:?} {mode:04o} {uid}:{gid} {nlink} links {size} bytes")
}

fn nanoseconds((seconds, rest): (i64, u64)) -> u64 {
    seconds as u64 * 1_000_000_000 + rest
}
