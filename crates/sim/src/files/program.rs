//! Programs: what users run on their machines.
//!
//! A program writes lines ahead; a line names files by what it has called them before (`dir` of a
//! [`Line`]). A line about something that it never found is skipped.

mod plots;

use std::collections::{BTreeMap, VecDeque};

use base::{FileId, Rng};
use client::Modes;
use directory::{
    Actor,
    operation::{Changes, Over, When},
};
use lease::Name;

use super::step::{Outcome, Seen, Step};

pub(crate) use plots::Plot;

/// What a program calls a file.
type Word = String;

/// A step with files by the program's own words.
#[derive(Clone, Debug)]
pub(super) enum Line {
    Lookup {
        dir: Word,
        name: Word,
        as_word: Word,
    },
    Stat(Word),
    List(Word),
    /// So many names after those that were listed last, if they were of the same directory.
    Page {
        dir: Word,
        count: usize,
    },
    ReadLink(Word),
    Create {
        dir: Word,
        name: Word,
        mode: u16,
        as_word: Word,
    },
    Mkdir {
        dir: Word,
        name: Word,
        mode: u16,
        as_word: Word,
    },
    Symlink {
        dir: Word,
        name: Word,
        target: Word,
        as_word: Word,
    },
    Link {
        file: Word,
        dir: Word,
        name: Word,
    },
    Unlink {
        dir: Word,
        name: Word,
    },
    Rmdir {
        dir: Word,
        name: Word,
    },
    Rename {
        from: Word,
        from_name: Word,
        to: Word,
        to_name: Word,
        over: Over,
    },
    SetAttr {
        file: Word,
        changes: Changes,
    },
    SetXattr {
        file: Word,
        name: Word,
        value: Option<Word>,
        when: When,
    },
    GetXattr {
        file: Word,
        name: Word,
    },
    ListXattr(Word),
    Write {
        file: Word,
        bytes: Vec<u8>,
        size: u64,
    },
    Open {
        file: Word,
        modes: Modes,
    },
    Lock {
        start: u64,
        end: u64,
        hold: Option<bool>,
    },
    TestLock {
        start: u64,
        end: u64,
        is_exclusive: bool,
    },
    Close,
    Sync,
}

/// A user at work.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) actor: Actor,
    plot: Plot,
    /// Tells its own files, and its locks, from those of others.
    number: u64,
    /// At most what one plot writes ahead.
    lines: VecDeque<Line>,
    /// At most [`WORDS_MAX`].
    words: BTreeMap<Word, FileId>,
    /// The file that it has open, its handle, and whether it may write.
    open: Option<(FileId, u64, bool)>,
    /// Where the next page of a listing begins.
    page: Option<(FileId, Name)>,
    /// What the step under way will be called.
    as_word: Option<Word>,
    round: u64,
    /// Does nothing more but to leave things in order.
    is_resting: bool,
}

const WORDS_MAX: usize = 256;

impl Program {
    pub(crate) fn new(plot: Plot, actor: Actor, number: u64) -> Program {
        let words = BTreeMap::from([("root".to_owned(), FileId::ROOT)]);
        let mut lines = VecDeque::new();
        if actor.is_root() {
            let changes = Changes { mode: Some(0o777), ..Changes::default() };
            lines.push_back(Line::SetAttr { file: "root".to_owned(), changes });
        }
        Program {
            actor,
            plot,
            number,
            lines,
            words,
            open: None,
            page: None,
            as_word: None,
            round: 0,
            is_resting: false,
        }
    }

    /// Finishes what it is at, and then only closes what is open and syncs.
    pub(crate) fn rest(&mut self) {
        self.is_resting = true;
    }

    pub(crate) fn is_resting(&self) -> bool {
        self.is_resting
    }

    /// The next thing that it does.
    pub(crate) fn next(&mut self, rng: &mut Rng) -> Option<Step> {
        for _ in 0..64 {
            if self.lines.is_empty() {
                match (self.is_resting, &self.open) {
                    (true, Some((_, handle, _))) => return Some(Step::Close { handle: *handle }),
                    (true, None) => return None,
                    (false, _) => {
                        self.round += 1;
                        let lines = self.plot.write(self, rng);
                        self.lines.extend(lines);
                    }
                }
            }
            if let Some(line) = self.lines.pop_front()
                && let Some(step) = self.resolve(line)
            {
                return Some(step);
            }
        }
        None
    }

    /// Learns what came of it.
    pub(crate) fn see(&mut self, step: &Step, outcome: &Outcome) {
        let as_word = self.as_word.take();
        match (step, outcome) {
            (Step::Open { file, modes }, Outcome::Seen(Seen::Handle(handle))) => {
                self.open = Some((file.clone(), *handle, modes.access.write));
            }
            (Step::Close { .. }, Outcome::Busy | Outcome::Cancelled) => {}
            (Step::Close { .. }, _) => self.open = None,
            (_, Outcome::Seen(Seen::File(file))) => {
                if let Some(word) = as_word {
                    self.call(word, file.clone());
                }
            }
            (Step::List { directory, .. }, Outcome::Seen(Seen::Names(names, is_all))) => {
                for (name, file) in names.iter().take(8) {
                    self.call(format!("seen {name}"), file.clone());
                }
                let last = names.last().filter(|_| !is_all);
                self.page = last.map(|(name, _)| (directory.clone(), name.clone()));
            }
            // Everything may be different now.
            (_, Outcome::Lost) => self.lines.clear(),
            _ => {}
        }
    }

    /// Its machine has started again.
    pub(crate) fn start_again(&mut self) {
        self.lines.clear();
        self.lose_handle();
    }

    /// What it has open was lost.
    pub(crate) fn lose_handle(&mut self) {
        self.open = None;
    }

    fn call(&mut self, word: Word, file: FileId) {
        if self.words.len() < WORDS_MAX || self.words.contains_key(&word) {
            self.words.insert(word, file);
        }
    }

    fn resolve(&mut self, line: Line) -> Option<Step> {
        let file = |word: &Word| self.words.get(word).cloned();
        let name = |word: &Word| Name::new(word.as_bytes());
        let mut called = None;
        let step = match line {
            Line::Lookup { dir, name: n, as_word } => {
                called = Some(as_word);
                Step::Lookup { directory: file(&dir)?, name: name(&n)? }
            }
            Line::Stat(word) => Step::Stat { file: file(&word)? },
            Line::List(word) => {
                Step::List { directory: file(&word)?, after: None, count: usize::MAX }
            }
            Line::Page { dir, count } => {
                let directory = file(&dir)?;
                let page = self.page.as_ref().filter(|(of, _)| *of == directory);
                let after = page.map(|(_, name)| name.clone());
                Step::List { directory, after, count }
            }
            Line::ReadLink(word) => Step::ReadLink { file: file(&word)? },
            Line::Create { dir, name: n, mode, as_word } => {
                called = Some(as_word);
                Step::Create { directory: file(&dir)?, name: name(&n)?, mode }
            }
            Line::Mkdir { dir, name: n, mode, as_word } => {
                called = Some(as_word);
                Step::Mkdir { directory: file(&dir)?, name: name(&n)?, mode }
            }
            Line::Symlink { dir, name: n, target, as_word } => {
                called = Some(as_word);
                let target = target.into_bytes();
                Step::Symlink { directory: file(&dir)?, name: name(&n)?, target }
            }
            Line::Link { file: f, dir, name: n } => {
                Step::Link { file: file(&f)?, directory: file(&dir)?, name: name(&n)? }
            }
            Line::Unlink { dir, name: n } => {
                Step::Unlink { directory: file(&dir)?, name: name(&n)? }
            }
            Line::Rmdir { dir, name: n } => Step::Rmdir { directory: file(&dir)?, name: name(&n)? },
            Line::Rename { from, from_name, to, to_name, over } => Step::Rename {
                from: file(&from)?,
                from_name: name(&from_name)?,
                to: file(&to)?,
                to_name: name(&to_name)?,
                over,
            },
            Line::SetAttr { file: f, changes } => Step::SetAttr { file: file(&f)?, changes },
            Line::SetXattr { file: f, name, value, when } => Step::SetXattr {
                file: file(&f)?,
                name: name.into_bytes(),
                value: value.map(Word::into_bytes),
                when,
            },
            Line::GetXattr { file: f, name } => {
                Step::GetXattr { file: file(&f)?, name: name.into_bytes() }
            }
            Line::ListXattr(word) => Step::ListXattr { file: file(&word)? },
            Line::Write { file: f, bytes, size } => Step::Write { file: file(&f)?, bytes, size },
            Line::Open { file: f, modes } if self.open.is_none() => {
                Step::Open { file: file(&f)?, modes }
            }
            Line::Open { .. } => return None,
            Line::Lock { start, end, hold } => {
                let (file, handle, writes) = self.open.clone()?;
                // As fcntl(2) has it: who may not write can't keep others out.
                let hold = hold.map(|is_exclusive| is_exclusive && writes);
                Step::Lock { file, handle, owner: self.number, start, end, hold }
            }
            Line::TestLock { start, end, is_exclusive } => {
                let (file, handle, _) = self.open.clone()?;
                Step::TestLock { file, handle, owner: self.number, start, end, is_exclusive }
            }
            Line::Close => Step::Close { handle: self.open.as_ref()?.1 },
            Line::Sync => Step::Sync,
        };
        self.as_word = called;
        Some(step)
    }
}
