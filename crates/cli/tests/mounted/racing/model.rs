//! What a program may see, by the reference: each deed in the steps in which a kernel does it.
//!
//! A kernel looks a name up and then does something with what it found, or with the name. Another program may come
//! in between, on a local disk too.

use sim::reference::{Actor, At, Errno, FileSystem, Flag, Handle, How, Ino};

/// Where everything is.
pub const PLACES: [&str; 2] = ["a", "b"];
pub const FILES: [&str; 6] = ["a/f0", "a/f1", "a/f2", "b/f0", "b/f1", "b/f2"];
pub const DIRECTORIES: [&str; 4] = ["a/s0", "a/s1", "b/s0", "b/s1"];
/// What is written, always as much.
pub const RECORD: usize = 64;

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Make(usize),
    Remove(usize),
    Rename(usize, usize),
    MakeDirectory(usize),
    RemoveDirectory(usize),
    RenameDirectory(usize, usize),
    Look(usize),
    Open(usize),
    Read,
    Write(u8),
    Empty,
    Measure,
    Close,
}

/// What it sees of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Done,
    Size(u64),
    Bytes(Vec<u8>),
    Failed(i32),
}

/// A program, in the reference.
#[derive(Clone, Debug, Default)]
pub struct Program {
    open: Option<Handle>,
    /// What it has looked up, and how long that was.
    found: Option<(Ino, u64)>,
    step: u8,
}

/// What a step comes to.
pub enum Next {
    /// There is another.
    Step,
    /// It is done.
    Seen(Seen),
}

/// An empty tree with the places in it.
pub fn tree() -> FileSystem {
    let mut tree = FileSystem::new(Default::default(), 0o755);
    for place in PLACES {
        tree.mkdir(&Actor::root(), 0, At(Ino::ROOT, place.as_bytes()), 0o755).unwrap();
    }
    tree
}

impl Program {
    /// All of it that matters for what comes.
    pub fn name(&self, tree: &FileSystem) -> String {
        let open =
            self.open.map(|open| tree.handles().find(|(handle, _)| *handle == open).unwrap().1);
        let found = self.found.map(|(ino, size)| (name(tree, ino), size));
        format!("{} {:?} {found:?}", self.step, open.map(|ino| name(tree, ino)))
    }

    /// Takes the next step of a deed.
    pub fn step(&mut self, tree: &mut FileSystem, deed: Deed) -> Next {
        let next = self.advance(tree, deed);
        match next {
            Next::Step => self.step = self.step.wrapping_add(1),
            Next::Seen(_) => (self.step, self.found) = (0, None),
        }
        next
    }

    fn advance(&mut self, tree: &mut FileSystem, deed: Deed) -> Next {
        let root = Actor::root();
        let look = |tree: &FileSystem, name: &str| tree.lookup(&root, at(tree, name));
        let done = |answer: Result<(), Errno>| {
            Next::Seen(answer.map_or_else(|errno| Seen::Failed(errno.number()), |()| Seen::Done))
        };
        let failed = |errno: Errno| Next::Seen(Seen::Failed(errno.number()));
        match (deed, self.step) {
            // What is to be is looked for first.
            (Deed::Make(index), 0) if look(tree, FILES[index]).is_ok() => failed(Errno::EEXIST),
            (Deed::MakeDirectory(index), 0) if look(tree, DIRECTORIES[index]).is_ok() => {
                failed(Errno::EEXIST)
            }
            (Deed::Make(_) | Deed::MakeDirectory(_), 0) => Next::Step,
            (Deed::Make(index), _) => {
                let place = at(tree, FILES[index]);
                done(tree.create(&root, 0, place, 0o644).map(drop))
            }
            (Deed::MakeDirectory(index), _) => {
                let place = at(tree, DIRECTORIES[index]);
                done(tree.mkdir(&root, 0, place, 0o755).map(drop))
            }
            // And what is to go.
            (Deed::Remove(index), 0) => {
                look(tree, FILES[index]).map_or_else(failed, |_| Next::Step)
            }
            (Deed::RemoveDirectory(index), 0) => {
                look(tree, DIRECTORIES[index]).map_or_else(failed, |_| Next::Step)
            }
            // What is to move is looked for, and what is in its place. If another has moved it there in between,
            // the two are one, and that is it.
            (Deed::Rename(..) | Deed::RenameDirectory(..), 0 | 1) => {
                let (from, to) = match deed {
                    Deed::Rename(from, to) => (FILES[from], FILES[to]),
                    Deed::RenameDirectory(from, to) => (DIRECTORIES[from], DIRECTORIES[to]),
                    _ => unreachable!(),
                };
                if self.step == 1 {
                    let is_same = look(tree, to).ok() == self.found.map(|(ino, _)| ino);
                    return if is_same { Next::Seen(Seen::Done) } else { Next::Step };
                }
                match look(tree, from) {
                    Ok(ino) => {
                        self.found = Some((ino, 0));
                        Next::Step
                    }
                    Err(errno) => failed(errno),
                }
            }
            (Deed::Remove(index), _) => {
                let place = at(tree, FILES[index]);
                done(tree.unlink(&root, 0, place))
            }
            (Deed::RemoveDirectory(index), _) => {
                let place = at(tree, DIRECTORIES[index]);
                done(tree.rmdir(&root, 0, place))
            }
            (Deed::Rename(from, to), _) => {
                let (from, to) = (at(tree, FILES[from]), at(tree, FILES[to]));
                done(tree.rename(&root, 0, from, to, Flag::Replace))
            }
            (Deed::RenameDirectory(from, to), _) => {
                let (from, to) = (at(tree, DIRECTORIES[from]), at(tree, DIRECTORIES[to]));
                done(tree.rename(&root, 0, from, to, Flag::Replace))
            }
            (Deed::Look(index) | Deed::Open(index), 0) => match look(tree, FILES[index]) {
                Ok(ino) => {
                    self.found = Some((ino, tree.getattr(ino).map_or(0, |attr| attr.size)));
                    Next::Step
                }
                Err(errno) => failed(errno),
            },
            (Deed::Look(_), _) => {
                let (ino, size) = self.found.unwrap();
                // Of what was removed meanwhile, how long it was.
                Next::Seen(Seen::Size(tree.getattr(ino).map_or(size, |attr| attr.size)))
            }
            (Deed::Open(_), _) => {
                let (ino, _) = self.found.unwrap();
                if tree.getattr(ino).map_or(0, |attr| attr.nlink) == 0 {
                    // It is looked for anew.
                    self.step = u8::MAX;
                    self.found = None;
                    return Next::Step;
                }
                let opened = tree.open(&root, 0, ino, How::BOTH);
                self.open = opened.ok();
                done(opened.map(drop))
            }
            (Deed::Read, _) => match tree.read(self.handle(), 0, 2 * RECORD as u64) {
                Ok(bytes) => Next::Seen(Seen::Bytes(bytes)),
                Err(errno) => failed(errno),
            },
            (Deed::Write(fill), _) => {
                done(tree.write(&root, 0, self.handle(), 0, &[fill; RECORD]).map(drop))
            }
            (Deed::Empty, _) => done(tree.truncate_open(&root, 0, self.handle(), 0)),
            (Deed::Measure, _) => {
                let handle = self.handle();
                let (_, ino) = tree.handles().find(|(open, _)| *open == handle).unwrap();
                Next::Seen(Seen::Size(tree.getattr(ino).unwrap().size))
            }
            (Deed::Close, _) => {
                let handle = self.open.take().unwrap();
                done(tree.close(handle))
            }
        }
    }

    fn handle(&self) -> Handle {
        self.open.unwrap()
    }
}

/// Where a name is.
fn at<'a>(tree: &FileSystem, path: &'a str) -> At<'a> {
    let (place, name) = path.split_once('/').unwrap();
    let place = tree.lookup(&Actor::root(), At(Ino::ROOT, place.as_bytes())).unwrap();
    At(place, name.as_bytes())
}

/// What a file is known by: its name, or its number and what is in it if it has none any more.
fn name(tree: &FileSystem, ino: Ino) -> String {
    let mut names = FILES.iter().chain(&DIRECTORIES);
    match names.find(|name| tree.lookup(&Actor::root(), at(tree, name)) == Ok(ino)) {
        Some(name) => (*name).to_owned(),
        None => {
            let size = tree.getattr(ino).map(|attr| attr.size);
            format!("{ino:?} {size:?} {:?}", tree.runs(ino))
        }
    }
}
