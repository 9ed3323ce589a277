//! The witness-order check: what programs saw is what the reference file system shows, step by step.

mod perform;
mod space;

use std::collections::{BTreeMap, BTreeSet};

use base::FileId;
use client::Modes;
use lease::Client;

use crate::{
    Broken,
    reference::{At, Attr, FileSystem, Handle, Ino, Kind, Owner, Rules},
};

use super::{
    history::{Deed, Event, Fate, History, Life},
    step::{Outcome, Seen, Step},
};

use space::Amounts;
pub(crate) use space::Space;

/// The reference, driven by what was done.
pub(crate) struct Witness {
    files: FileSystem,
    inos: BTreeMap<FileId, Ino>,
    names: BTreeMap<Ino, FileId>,
    /// By client, life and the client's own handle.
    handles: BTreeMap<(Client, u32, u64), Handle>,
    /// What each is open for, and of which file.
    modes: BTreeMap<Handle, (Ino, Modes)>,
    /// Who may have locks on a file.
    lockers: BTreeSet<(Ino, Owner)>,
    /// Who is closing a file, and may have let go of its locks already.
    closing: BTreeSet<(Ino, Client)>,
    /// When each client last changed anything of a file: the group may hear of that in any order.
    changed: BTreeMap<Ino, BTreeMap<Client, i64>>,
    /// Lives in which something was lost: what they saw afterwards is not known to have been so.
    doubted: BTreeSet<(Client, u32)>,
    /// Deeds about files that came and went unseen, and that seem to have been.
    passed: BTreeSet<i64>,
    space: Space,
    /// The most files and bytes that there were of each owner and of all, and those that may have outlived their
    /// last handle for a while.
    peak: Amounts,
    kept: Amounts,
    /// Who was given files of others: they may have more than their share.
    gifted: BTreeSet<u32>,
    /// Whether any life has ended.
    has_ended: bool,
    /// A file that was born twice.
    reborn: Option<FileId>,
    /// How many outcomes were compared.
    pub(crate) compared: u64,
}

impl Witness {
    pub(crate) fn new(space: Space) -> Witness {
        let rules = Rules { guards_links: false };
        Witness {
            files: FileSystem::new(rules, 0o755),
            inos: BTreeMap::from([(FileId::ROOT, Ino::ROOT)]),
            names: BTreeMap::from([(Ino::ROOT, FileId::ROOT)]),
            handles: BTreeMap::new(),
            modes: BTreeMap::new(),
            lockers: BTreeSet::new(),
            closing: BTreeSet::new(),
            changed: BTreeMap::new(),
            doubted: BTreeSet::new(),
            passed: BTreeSet::new(),
            space,
            peak: Amounts::new(),
            kept: Amounts::new(),
            gifted: BTreeSet::new(),
            has_ended: false,
            reborn: None,
            compared: 0,
        }
    }

    /// Replays everything that has been; every result must be the same.
    pub(crate) fn replay(history: &History, space: Space) -> Result<Witness, Broken> {
        let mut witness = Witness::new(space);
        let lives = history.lives();
        witness.has_ended = !lives.is_empty();
        for event in &history.events {
            match event {
                Event::Did(deed) => match lives.get(&(deed.client, deed.life)) {
                    Some(life) => witness.check_in(life, deed)?,
                    None => witness.check(deed)?,
                },
                Event::Closing(client, life, handle) => {
                    witness.begin_close(*client, *life, *handle)
                }
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

    /// Whether a client has a file open, in whatever life.
    pub(crate) fn has_open(&self, client: Option<Client>, ino: Ino) -> bool {
        let of_file = |handle: &Handle| self.modes.get(handle).is_some_and(|(of, _)| *of == ino);
        let mut all = self.handles.iter();
        all.any(|((of, ..), handle)| client.is_none_or(|client| client == *of) && of_file(handle))
    }

    /// When anything of a file may have changed last.
    pub(crate) fn may_have_changed_at(&self, ino: Ino, at: i64) -> bool {
        let mut all = self.changed.get(&ino).into_iter().flat_map(BTreeMap::values);
        all.any(|stamp| *stamp == at)
    }

    /// Checks a deed of a life that has ended.
    fn check_in(&mut self, life: &Life, deed: &Deed) -> Result<(), Broken> {
        let key = (deed.client, deed.life);
        let is_doubted = self.doubted.contains(&key);
        let fate = match life.fate(deed) {
            Fate::Hollow if is_doubted => return Ok(()),
            Fate::Hollow if self.changes_nothing(deed) => Fate::Been,
            Fate::Hollow | Fate::Void => Fate::Void,
            Fate::Passing(_) if !is_doubted => {
                self.passed.insert(deed.tag);
                Fate::Been
            }
            // What came before the doubt goes after it.
            Fate::Passing(birth) => {
                if self.passed.contains(&birth) {
                    let _ = self.perform(deed);
                }
                return Ok(());
            }
            Fate::Been => Fate::Been,
        };
        if fate == Fate::Void {
            self.doubted.insert(key);
            let Deed { client, tag, step, .. } = deed;
            let broken = |check, why| {
                Err(Broken::new(check, format!("{step:?} ({tag}) of {client:?} is lost, {why}")))
            };
            if life.was_safe(deed) {
                return broken("durable", "and was said to be safe");
            }
            if life.has_gap_after(deed) {
                return broken("prefix", "and what came after it is not");
            }
            return Ok(());
        }
        if !is_doubted || deed.is_changed() {
            return self.check(deed);
        }
        // What is open is open, whatever became of what was done.
        let is_open = matches!(deed.step, Step::Open { .. } | Step::Close { .. });
        if is_open && deed.is_done() && !self.is_about_nothing(deed) {
            let _ = self.perform(deed);
        }
        Ok(())
    }

    /// Whether it renames one name of a file over another.
    fn changes_nothing(&self, deed: &Deed) -> bool {
        let Step::Rename { from, from_name, to, to_name, .. } = &deed.step else { return false };
        let root = crate::reference::Actor::root();
        let find = |at: &FileId, name: &lease::Name| {
            self.files.lookup(&root, At(self.known(at), name.as_bytes())).ok()
        };
        let (from, to) = (find(from, from_name), find(to, to_name));
        from.is_some() && from == to
    }

    fn check(&mut self, deed: &Deed) -> Result<(), Broken> {
        if let Outcome::Lost | Outcome::Busy | Outcome::Cancelled = deed.outcome {
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
        let may_lack = match deed.outcome {
            Outcome::Refused("ENOSPC") => self.may_lack_space(deed),
            Outcome::Refused("EDQUOT") => self.may_lack_share(deed),
            _ => false,
        };
        if may_lack {
            self.compared += 1;
            return Ok(());
        }
        self.let_go(deed);
        let touched = self.touched(deed);
        let expected = match self.perform(deed) {
            Ok(seen) => Outcome::Seen(seen),
            Err(errno) => Outcome::Refused(errno.name()),
        };
        if let Some(reborn) = &self.reborn {
            return Err(Broken::new("inv-N4", format!("{reborn} was born twice")));
        }
        self.note_changed(deed, touched);
        self.note_space(deed);
        self.compared += 1;
        if !agrees(&expected, deed) && !self.is_pedantic(deed, &expected) {
            let Deed { client, tag, actor, step, outcome, .. } = deed;
            let what = format!(
                "{client:?} as {} did {step:?} ({tag}): {outcome:?}; it should be {expected:?}",
                actor.uid
            );
            return Err(Broken::new("witness", what));
        }
        self.check_space(deed)
    }

    /// The files that a change may change, but for the directories.
    fn touched(&self, deed: &Deed) -> Vec<Ino> {
        if !deed.is_changed() {
            return Vec::new();
        }
        let root = crate::reference::Actor::root();
        let find = |at: &FileId, name: &lease::Name| {
            self.files.lookup(&root, At(self.known(at), name.as_bytes())).ok()
        };
        let mut touched: Vec<Ino> =
            deed.step.file().map(|file| self.known(file)).into_iter().collect();
        match &deed.step {
            Step::Unlink { directory, name } => touched.extend(find(directory, name)),
            Step::Rename { from, from_name, to, to_name, .. } => {
                touched.extend(find(from, from_name));
                touched.extend(find(to, to_name));
            }
            _ => {}
        }
        touched
    }

    fn note_changed(&mut self, deed: &Deed, touched: Vec<Ino>) {
        let born = deed.born().and_then(|file| self.ino(file));
        for ino in touched.into_iter().chain(born) {
            if self.files.getattr(ino).is_ok_and(|attr| attr.ctime == deed.tag as u64) {
                self.changed.entry(ino).or_default().insert(deed.client, deed.tag);
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
        if let Step::Lock { file, .. } | Step::TestLock { file, .. } = &deed.step {
            let attr = self.files.getattr(self.known(file));
            let is_removed = |attr: Attr| attr.kind == Kind::Directory && attr.nlink == 0;
            return self.handle_of(deed, false).is_none() || attr.is_ok_and(is_removed);
        }
        let Some(file) = deed.step.file() else { return false };
        let ino = self.known(file);
        let Ok(attr) = self.files.getattr(ino) else { return true };
        if attr.nlink == 0 && attr.kind == Kind::Directory {
            return true; // Directories do not outlive their names, open or not.
        }
        let mut handles = self.handles_of(deed.client, deed.life);
        let opened = |handle| self.modes.get(&handle).is_some_and(|(of, _)| *of == ino);
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
            self.close(client, life, handle);
        }
    }

    /// The inode, or one that never was.
    fn known(&self, file: &FileId) -> Ino {
        self.inos.get(file).copied().unwrap_or(Ino(u64::MAX))
    }

    fn file_of(&self, ino: Ino) -> FileId {
        self.names.get(&ino).cloned().unwrap_or(FileId::ROOT)
    }
}

/// Whether this is what the program saw.
fn agrees(expected: &Outcome, deed: &Deed) -> bool {
    match (expected, &deed.outcome) {
        (Outcome::Seen(Seen::Handle(_)), Outcome::Seen(Seen::Handle(_))) => true,
        // Whoever has seen a whole page may have yet to see that there is no other.
        (Outcome::Seen(Seen::Names(expected, true)), Outcome::Seen(Seen::Names(seen, false))) => {
            let Step::List { count, .. } = deed.step else { return false };
            expected == seen && seen.len() == count
        }
        (expected, seen) => expected == seen,
    }
}
