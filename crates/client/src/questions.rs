//! What the client has asked the group beside leases, and has not been told yet.

use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, FileId, Instant};
use directory::{
    Key,
    message::{Ask, KEYS_MAX, Needs},
};
use lease::{Field, Name, Scope};

/// Questions by number. As many as the settings allow calls.
#[derive(Debug)]
pub(crate) struct Questions {
    open: BTreeMap<u64, Question>,
    /// What is being fetched, and by which question.
    keys: BTreeMap<Key, u64>,
    /// Which directory is being listed, and by which question.
    lists: BTreeMap<FileId, u64>,
    provide: Option<u64>,
    next: u64,
    repeat: Duration,
}

#[derive(Debug)]
struct Question {
    ask: What,
    repeat_at: Instant,
}

#[derive(Clone, Debug)]
enum What {
    Fetch(BTreeSet<Key>),
    List(FileId, Option<Name>),
    Provide(Needs),
}

impl Questions {
    pub(crate) fn new(repeat: Duration) -> Questions {
        Questions {
            open: BTreeMap::new(),
            keys: BTreeMap::new(),
            lists: BTreeMap::new(),
            provide: None,
            next: 1,
            repeat,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// The number that the next question will have.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    fn ask(&mut self, now: Instant, what: What) -> Ask {
        let request = self.next;
        self.next += 1;
        let ask = what.as_ask(request);
        self.open.insert(request, Question { ask: what, repeat_at: now + self.repeat });
        ask
    }

    /// Asks for records that nobody has asked for yet.
    pub(crate) fn fetch(&mut self, now: Instant, keys: Vec<Key>) -> Option<Ask> {
        let news = keys.into_iter().filter(|key| !self.keys.contains_key(key));
        let news: BTreeSet<Key> = news.take(KEYS_MAX).collect();
        if news.is_empty() {
            return None;
        }
        self.keys.extend(news.iter().map(|key| (key.clone(), self.next)));
        Some(self.ask(now, What::Fetch(news)))
    }

    /// Asks for the names in a directory after one, if nobody has asked yet.
    pub(crate) fn list(
        &mut self,
        now: Instant,
        directory: &FileId,
        after: Option<Name>,
    ) -> Option<Ask> {
        if self.lists.contains_key(directory) {
            return None;
        }
        self.lists.insert(directory.clone(), self.next);
        Some(self.ask(now, What::List(directory.clone(), after)))
    }

    pub(crate) fn is_providing(&self) -> bool {
        self.provide.is_some()
    }

    /// Asks for what new files need. One at a time.
    pub(crate) fn provide(&mut self, now: Instant, what: Needs) -> Option<Ask> {
        if self.is_providing() {
            return None;
        }
        self.provide = Some(self.next);
        Some(self.ask(now, What::Provide(what)))
    }

    /// Whether something about a file, or of the names in it, is on its way.
    pub(crate) fn is_about(&self, file: &FileId) -> bool {
        let mut keys = self.keys.range(Key::file(file)..);
        self.lists.contains_key(file) || keys.next().is_some_and(|(key, _)| key.file == *file)
    }

    /// Closes a fetch that was answered: these keys still matter.
    pub(crate) fn fetched(&mut self, request: u64) -> Option<BTreeSet<Key>> {
        let What::Fetch(_) = self.open.get(&request)?.ask else { return None };
        let What::Fetch(keys) = self.open.remove(&request)?.ask else { return None };
        let still = |key: &Key| self.keys.get(key) == Some(&request);
        let keys: BTreeSet<Key> = keys.into_iter().filter(still).collect();
        self.keys.retain(|key, _| !keys.contains(key));
        Some(keys)
    }

    /// Closes a list that was answered: the directory and the name after which, if it still matters.
    pub(crate) fn listed(&mut self, request: u64) -> Option<Option<(FileId, Option<Name>)>> {
        let What::List(..) = self.open.get(&request)?.ask else { return None };
        let What::List(directory, after) = self.open.remove(&request)?.ask else { return None };
        if self.lists.get(&directory) != Some(&request) {
            return Some(None);
        }
        self.lists.remove(&directory);
        Some(Some((directory, after)))
    }

    /// Closes a request for supplies that was answered: for which directory it was.
    pub(crate) fn provided(&mut self, request: u64) -> Option<Option<FileId>> {
        self.provide.take_if(|open| *open == request)?;
        match self.open.remove(&request)?.ask {
            What::Provide(what) => Some(what.directory),
            What::Fetch(_) | What::List(..) => None,
        }
    }

    /// An answer about something of this would be too old. True if there was such a question.
    pub(crate) fn forget(&mut self, part: &Scope) -> bool {
        let before = self.keys.len() + self.lists.len();
        self.keys.retain(|key, _| {
            let field = key.name.clone().map_or(Field::Whole, Field::Child);
            !field.of(&key.file).meets(part)
        });
        self.lists.retain(|directory, _| !Field::Children.of(directory).meets(part));
        self.keys.len() + self.lists.len() < before
    }

    /// The session is lost: so is every answer.
    pub(crate) fn lose(&mut self) {
        *self = Questions { next: self.next, ..Questions::new(self.repeat) };
    }

    /// Questions that have to be asked again.
    pub(crate) fn repeat(&mut self, now: Instant) -> Vec<Ask> {
        let mut due = Vec::new();
        for (request, question) in &mut self.open {
            if question.repeat_at <= now {
                question.repeat_at = now + self.repeat;
                due.push(question.ask.as_ask(*request));
            }
        }
        due
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.open.values().map(|question| question.repeat_at).min()
    }
}

impl What {
    fn as_ask(&self, request: u64) -> Ask {
        match self.clone() {
            What::Fetch(keys) => Ask::Fetch { request, keys: keys.into_iter().collect() },
            What::List(directory, after) => Ask::List { request, directory, after },
            What::Provide(needs) => Ask::Provide { request, needs },
        }
    }
}
