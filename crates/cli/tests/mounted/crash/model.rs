//! What must be found: the reference file system after each operation, and what was synced.

use std::{collections::BTreeMap, rc::Rc};

use sim::reference::{Actor, Answer, At, Change, FileSystem, Flag, How, Ino, Kind, Rules};

use super::{
    found::{Found, Thing},
    script::Step,
};

/// The operation that made a file's bytes so, and the bytes.
type Version = (usize, Rc<Vec<u8>>);

/// All states that there were.
pub struct Model {
    fs: FileSystem,
    /// Names after so many operations: first of none, then of one.
    states: Vec<BTreeMap<String, (Ino, String)>>,
    /// Bytes that a file had, each with the operation that made them so.
    versions: BTreeMap<Ino, Vec<Version>>,
    /// Operations after which a file's bytes are no older than they were then.
    barriers: BTreeMap<Ino, Vec<usize>>,
    /// So many operations are safe.
    synced: usize,
}

impl Model {
    pub fn new() -> Model {
        // As the machine makes it.
        let fs = FileSystem::new(Rules::default(), 0o755);
        let states = vec![names(&fs)];
        let (versions, barriers) = (BTreeMap::new(), BTreeMap::new());
        Model { fs, states, versions, barriers, synced: 0 }
    }

    /// How many operations there were.
    pub fn len(&self) -> usize {
        self.states.len() - 1
    }

    /// How many of them must be found.
    pub fn synced(&self) -> usize {
        self.synced
    }

    pub fn files(&self) -> Vec<String> {
        self.paths(Kind::File)
    }

    pub fn directories(&self) -> Vec<String> {
        self.paths(Kind::Directory)
    }

    fn paths(&self, kind: Kind) -> Vec<String> {
        let now = self.states.last().expect("there is a first state");
        let is_such = |ino: &Ino| self.fs.getattr(*ino).is_ok_and(|attr| attr.kind == kind);
        now.iter().filter(|(_, (ino, _))| is_such(ino)).map(|(path, _)| path.clone()).collect()
    }

    /// Does it here, and tells how it must end.
    pub fn perform(&mut self, step: &Step) -> Result<(), i32> {
        let replaces = match step {
            Step::Rename(old, new) => self.replaced_by(old, new),
            _ => None,
        };
        let answer = self.apply(step);
        self.states.push(names(&self.fs));
        let now = self.len();
        for (ino, _) in self.states[now].clone().into_values() {
            if let Some(bytes) = content(&mut self.fs, ino) {
                let versions = self.versions.entry(ino).or_default();
                if versions.last().is_none_or(|(_, last)| **last != bytes) {
                    versions.push((now, Rc::new(bytes)));
                }
            }
        }
        if let Some(ino) = replaces.filter(|_| answer.is_ok()) {
            self.barriers.entry(ino).or_default().push(now);
        }
        answer.map_err(|errno| errno.number())
    }

    /// It has ended well for real: what it promised holds from now on.
    pub fn note_done(&mut self, step: &Step) {
        if let Step::Sync(path) = step {
            self.synced = self.len();
            let ino = self.states[self.synced][path].0;
            self.barriers.entry(ino).or_default().push(self.synced);
        }
    }

    /// The file that is moved over another one.
    fn replaced_by(&self, old: &str, new: &str) -> Option<Ino> {
        let now = self.states.last()?;
        let (source, target) = (now.get(old)?.0, now.get(new)?.0);
        let is_file = |ino| self.fs.getattr(ino).is_ok_and(|attr| attr.kind == Kind::File);
        (source != target && is_file(source) && is_file(target)).then_some(source)
    }

    fn apply(&mut self, step: &Step) -> Answer<()> {
        let by = Actor::root();
        let now = self.states.len() as u64;
        let fs = &mut self.fs;
        match step {
            Step::Create(path) => {
                let (parent, name) = split(fs, path)?;
                fs.create(&by, now, At(parent, name.as_bytes()), 0o644)?;
            }
            Step::Mkdir(path) => {
                let (parent, name) = split(fs, path)?;
                fs.mkdir(&by, now, At(parent, name.as_bytes()), 0o755)?;
            }
            Step::Symlink(target, path) => {
                let (parent, name) = split(fs, path)?;
                fs.symlink(&by, now, At(parent, name.as_bytes()), target.as_bytes())?;
            }
            Step::Link(old, new) => {
                let ino = find(fs, old)?;
                let (parent, name) = split(fs, new)?;
                fs.link(&by, now, ino, At(parent, name.as_bytes()))?;
            }
            Step::Write(path, offset, bytes) => {
                let ino = find(fs, path)?;
                let handle = fs.open(&by, now, ino, How::WRITE)?;
                fs.write(&by, now, handle, *offset, bytes)?;
                fs.close(handle)?;
            }
            Step::Truncate(path, size) => {
                let ino = find(fs, path)?;
                fs.setattr(&by, now, ino, Change::Size(*size))?;
            }
            Step::Chmod(path, mode) => {
                let ino = find(fs, path)?;
                fs.setattr(&by, now, ino, Change::Mode(*mode))?;
            }
            Step::Rename(old, new) => {
                let from = split(fs, old)?;
                let to = split(fs, new)?;
                let (from, to) = (At(from.0, from.1.as_bytes()), At(to.0, to.1.as_bytes()));
                fs.rename(&by, now, from, to, Flag::Replace)?;
            }
            Step::Unlink(path) => {
                let (parent, name) = split(fs, path)?;
                fs.unlink(&by, now, At(parent, name.as_bytes()))?;
            }
            Step::Rmdir(path) => {
                let (parent, name) = split(fs, path)?;
                fs.rmdir(&by, now, At(parent, name.as_bytes()))?;
            }
            Step::Sync(path) => {
                find(fs, path)?;
            }
        }
        Ok(())
    }

    /// Which prefix it is, the longest if there are several; or why it is none.
    pub fn judge(&self, found: &Found) -> Result<usize, String> {
        let mut why =
            format!("it is no prefix of {} operations, {} synced", self.len(), self.synced);
        for prefix in (self.synced..=self.len()).rev() {
            let state = &self.states[prefix];
            let is_alike = state.len() == found.names.len()
                && state.iter().zip(&found.names).all(|((path, (_, what)), (other, thing))| {
                    path == other && *what == thing.what
                });
            if !is_alike {
                continue;
            }
            let wrong = state.iter().find_map(|(path, (ino, _))| {
                let bytes = found.names[path].bytes.as_ref()?;
                let wrong = self.judge_bytes(*ino, prefix, bytes)?;
                Some(format!("after {prefix} operations of {}, {path}: {wrong}", self.len()))
            });
            match wrong {
                None => return Ok(prefix),
                Some(wrong) => why = wrong,
            }
        }
        Err(why)
    }

    /// What is wrong with a file's bytes.
    fn judge_bytes(&self, ino: Ino, prefix: usize, bytes: &[u8]) -> Option<String> {
        let versions = &self.versions[&ino];
        let barriers = self.barriers.get(&ino).into_iter().flatten();
        let since = barriers.filter(|barrier| **barrier <= prefix).max().copied().unwrap_or(0);
        let oldest = versions.iter().rposition(|(made, _)| *made <= since).unwrap_or(0);
        let possible: Vec<&[u8]> = versions[oldest..].iter().map(|(_, v)| v.as_slice()).collect();
        let sizes = possible.iter().map(|version| version.len());
        let (least, most) = (sizes.clone().min()?, sizes.max()?);
        if bytes.len() < least || bytes.len() > most {
            let size = bytes.len();
            return Some(format!("{size} bytes, not {least} to {most} as since {since}"));
        }
        let is_possible = |(at, byte): &(usize, &u8)| {
            let byte = **byte;
            possible.iter().any(|version| version.get(*at).copied().unwrap_or(0) == byte)
        };
        let wrong = bytes.iter().enumerate().find(|at| !is_possible(at));
        wrong.map(|(at, byte)| format!("byte {at} is {byte}, which it was never since {since}"))
    }
}

fn find(fs: &FileSystem, path: &str) -> Answer<Ino> {
    let mut names = path.split('/').filter(|name| !name.is_empty());
    names.try_fold(Ino::ROOT, |dir, name| fs.lookup(&Actor::root(), At(dir, name.as_bytes())))
}

fn split<'a>(fs: &FileSystem, path: &'a str) -> Answer<(Ino, &'a str)> {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    Ok((find(fs, parent)?, name))
}

fn content(fs: &mut FileSystem, ino: Ino) -> Option<Vec<u8>> {
    let attr = fs.getattr(ino).ok().filter(|attr| attr.kind == Kind::File)?;
    let handle = fs.open(&Actor::root(), 0, ino, How::READ).ok()?;
    let bytes = fs.read(handle, 0, attr.size).ok();
    fs.close(handle).ok()?;
    bytes
}

fn names(fs: &FileSystem) -> BTreeMap<String, (Ino, String)> {
    let mut names = BTreeMap::new();
    walk(fs, "", Ino::ROOT, &mut BTreeMap::new(), &mut names);
    names
}

fn walk(
    fs: &FileSystem,
    path: &str,
    ino: Ino,
    firsts: &mut BTreeMap<Ino, String>,
    names: &mut BTreeMap<String, (Ino, String)>,
) {
    let attr = fs.getattr(ino).expect("an entry leads to an inode");
    let first = firsts.entry(ino).or_insert_with(|| path.to_owned()).clone();
    let (mode, nlink) = (attr.mode, attr.nlink);
    let what = match attr.kind {
        Kind::Directory => format!("directory {mode:o} {nlink}"),
        Kind::File => format!("file {mode:o} {nlink} is {first}"),
        Kind::Symlink => {
            let target = fs.readlink(ino).expect("it is one");
            format!("link {nlink} -> {}", String::from_utf8_lossy(target))
        }
    };
    names.insert(path.to_owned(), (ino, what));
    if attr.kind == Kind::Directory {
        for entry in fs.readdir(&Actor::root(), ino).expect("the superuser may") {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            if name != "." && name != ".." {
                let below = if path.is_empty() { name } else { format!("{path}/{name}") };
                walk(fs, &below, entry.ino, firsts, names);
            }
        }
    }
}

/// A model of one file that was written, synced and written again, and what it shows then.
fn small() -> (Model, Found) {
    let mut model = Model::new();
    let steps = [
        Step::Create("a".into()),
        Step::Write("a".into(), 0, b"old".to_vec()),
        Step::Sync("a".into()),
        Step::Write("a".into(), 1, b"new".to_vec()),
        Step::Mkdir("d".into()),
    ];
    for step in &steps {
        model.perform(step).expect("it can be done");
        model.note_done(step);
    }
    let state = &model.states[model.synced];
    let thing = |(path, (_, what)): (&String, &(Ino, String))| {
        let bytes = (path == "a").then(|| b"old".to_vec());
        (path.clone(), Thing { what: what.clone(), bytes })
    };
    let found = Found { names: state.iter().map(thing).collect() };
    (model, found)
}

#[test]
fn the_judge_takes_old_bytes_new_ones_and_some_of_each() {
    for bytes in ["old", "onew", "oldw", "oned"] {
        let (model, mut found) = small();
        found.names.get_mut("a").unwrap().bytes = Some(bytes.into());
        let verdict = model.judge(&found);
        assert_eq!(verdict.is_ok(), bytes != "oned", "{bytes}: {verdict:?}");
    }
}

#[test]
fn the_judge_refuses_what_was_never_there() {
    let spoil: [fn(&mut Found); 5] = [
        |found| _ = found.names.remove("a"),
        |found| found.names.get_mut("a").unwrap().bytes = Some(Vec::new()),
        |found| found.names.get_mut("a").unwrap().bytes = Some(b"odl".to_vec()),
        |found| found.names.get_mut("a").unwrap().what = "file 600 1 is a".into(),
        |found| {
            let bytes = Some(Vec::new());
            found.names.insert("b".into(), Thing { what: "file 644 1 is b".into(), bytes });
        },
    ];
    for (at, spoil) in spoil.iter().enumerate() {
        let (model, mut found) = small();
        assert_eq!(model.judge(&found), Ok(4), "names are as before the directory was made");
        spoil(&mut found);
        assert!(model.judge(&found).is_err(), "the one spoilt by {at} passes");
    }
}
