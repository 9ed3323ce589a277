//! Programs: what users run on their machines.
//!
//! A program writes lines ahead; a line names files by what it has called them before (`dir` of a
//! [`Line`]). A line about something that it never found is skipped.

mod plots;

use std::collections::{BTreeMap, VecDeque};

use base::{FileId, Rng};
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
    Lookup { dir: Word, name: Word, as_word: Word },
    Stat(Word),
    List(Word),
    ReadLink(Word),
    Create { dir: Word, name: Word, mode: u16, as_word: Word },
    Mkdir { dir: Word, name: Word, mode: u16, as_word: Word },
    Symlink { dir: Word, name: Word, target: Word, as_word: Word },
    Link { file: Word, dir: Word, name: Word },
    Unlink { dir: Word, name: Word },
    Rmdir { dir: Word, name: Word },
    Rename { from: Word, from_name: Word, to: Word, to_name: Word, over: Over },
    SetAttr { file: Word, changes: Changes },
    SetXattr { file: Word, name: Word, value: Option<Word>, when: When },
    GetXattr { file: Word, name: Word },
    Write { file: Word, bytes: Vec<u8> },
    Open { file: Word, writes: bool },
    Lock { start: u64, end: u64, hold: Option<bool> },
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
    /// The file that it has open, and its handle.
    open: Option<(FileId, u64)>,
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
                    (true, Some((_, handle))) => return Some(Step::Close { handle: *handle }),
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
            (Step::Open { file, .. }, Outcome::Seen(Seen::Handle(handle))) => {
                self.open = Some((file.clone(), *handle));
            }
            (Step::Close { .. }, _) => self.open = None,
            (_, Outcome::Seen(Seen::File(file))) => {
                if let Some(word) = as_word {
                    self.call(word, file.clone());
                }
            }
            (_, Outcome::Seen(Seen::Names(names))) => {
                for (name, file) in names.iter().take(8) {
                    self.call(format!("seen {name}"), file.clone());
                }
            }
            (_, Outcome::Failed) => {
                // Everything may be different now.
                self.open = None;
                self.lines.clear();
            }
            _ => {}
        }
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
            Line::List(word) => Step::List { directory: file(&word)? },
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
            Line::Write { file: f, bytes } => Step::Write { file: file(&f)?, bytes },
            Line::Open { file: f, writes } if self.open.is_none() => {
                Step::Open { file: file(&f)?, writes }
            }
            Line::Open { .. } => return None,
            Line::Lock { start, end, hold } => {
                let (file, handle) = self.open.clone()?;
                Step::Lock { file, handle, owner: self.number, start, end, hold }
            }
            Line::Close => Step::Close { handle: self.open.as_ref()?.1 },
            Line::Sync => Step::Sync,
        };
        self.as_word = called;
        Some(step)
    }
}
