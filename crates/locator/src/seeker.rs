//! From a path to its group: a hint, the group's own word, and else the long way.
//!
//! Safety rests on one rule. A group is `Found` only if it has said itself that it has the path; whatever
//! filters claim, nothing else comes of them than one question to one group.

use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, Instant, Machine};

use crate::{
    Found, Group, Print,
    array::{Array, Bounds, Hint, Refusal},
    message::{Tier, Update},
};

/// Whoever seeks, as it calls itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// What bounds a seeker.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What may be known.
    pub bounds: Bounds,
    /// Questions that are open at a time; beyond, the long way is taken at once.
    pub asked_max: usize,
    /// How long a group may take to answer.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            bounds: Bounds::default(),
            asked_max: 4_096,
            patience: Duration::from_millis(500),
        }
    }
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A group is there.
    Joined(Group),
    /// It is not any more.
    Left(Group),
    /// A group has told something of its filters.
    Heard {
        /// Who; the shell vouches for that.
        group: Group,
        /// What.
        update: Update,
    },
    /// Where is this path?
    Seek {
        /// For whom.
        token: Token,
        /// The path.
        print: Print,
    },
    /// The group that was asked says whether it has the path, which it knows from its path lease (H14).
    Said {
        /// For whom.
        token: Token,
        /// Who says so.
        group: Group,
        /// Whether it has.
        is_there: bool,
    },
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Ask this group whether it has the path.
    Ask {
        /// For whom.
        token: Token,
        /// Whom.
        group: Group,
    },
    /// It has.
    Found {
        /// For whom.
        token: Token,
        /// Who.
        group: Group,
        /// By which level.
        found: Found,
    },
    /// Walk the file map.
    Walk {
        /// For whom.
        token: Token,
        /// Why.
        why: Why,
    },
    /// Ask this group for a filter whole: something was missed.
    Want {
        /// Whom.
        group: Group,
        /// Which.
        tier: Tier,
    },
    /// An update was not taken. Of an honest group only [`Refusal::Old`] is to be expected, and where there
    /// is no room [`Refusal::Full`], and then [`Refusal::Misfit`] for changes of what had no room.
    Refused {
        /// Whose.
        group: Group,
        /// Why.
        refusal: Refusal,
    },
}

/// Why the long way is taken. H11: misses and false hits cost different things and are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No filter has one answer.
    Miss,
    /// The one answer was wrong.
    FalseHit,
    /// The group said nothing in time.
    Silence,
    /// Too many questions are open.
    Busy,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    group: Group,
    found: Found,
    until: Instant,
}

/// Finds groups for paths.
#[derive(Debug)]
pub struct Seeker {
    settings: Settings,
    array: Array,
    /// Bounded by `Settings::asked_max`.
    asked: BTreeMap<Token, Asked>,
    /// By deadline. As many as are asked.
    deadlines: BTreeSet<(Instant, Token)>,
}

impl Seeker {
    /// Knows nobody.
    pub fn new(settings: Settings) -> Seeker {
        let array = Array::new(settings.bounds);
        Seeker { settings, array, asked: BTreeMap::new(), deadlines: BTreeSet::new() }
    }

    /// What is known.
    pub fn array(&self) -> &Array {
        &self.array
    }

    fn on_heard(&mut self, group: Group, update: &Update, out: &mut Vec<Output>) {
        match self.array.hear(group, update) {
            Ok(()) => (),
            Err(Refusal::Gap) => out.push(Output::Want { group, tier: update.tier }),
            Err(refusal) => out.push(Output::Refused { group, refusal }),
        }
    }

    fn on_seek(&mut self, now: Instant, token: Token, print: Print, out: &mut Vec<Output>) {
        let (group, found) = match self.array.look_up(print) {
            Hint::Recent(group) => (group, Found::Recent),
            Hint::All(group) => (group, Found::All),
            Hint::Miss => return out.push(Output::Walk { token, why: Why::Miss }),
        };
        self.take(token);
        if self.asked.len() >= self.settings.asked_max {
            return out.push(Output::Walk { token, why: Why::Busy });
        }
        let until = now + self.settings.patience;
        self.asked.insert(token, Asked { group, found, until });
        self.deadlines.insert((until, token));
        out.push(Output::Ask { token, group });
    }

    fn on_said(&mut self, token: Token, group: Group, is_there: bool, out: &mut Vec<Output>) {
        // Only the one that was asked is heard, and only once.
        if self.asked.get(&token).is_none_or(|asked| asked.group != group) {
            return;
        }
        let Some(Asked { group, found, .. }) = self.take(token) else { return };
        // H5: a false hit is discovered at the target and handled as a miss.
        out.push(if is_there {
            Output::Found { token, group, found }
        } else {
            Output::Walk { token, why: Why::FalseHit }
        });
    }

    fn on_left(&mut self, group: Group, out: &mut Vec<Output>) {
        self.array.leave(group);
        let asked = self.asked.iter().filter(|(_, asked)| asked.group == group);
        let tokens: Vec<Token> = asked.map(|(token, _)| *token).collect();
        for token in tokens {
            self.take(token);
            out.push(Output::Walk { token, why: Why::Silence });
        }
    }

    fn take(&mut self, token: Token) -> Option<Asked> {
        let asked = self.asked.remove(&token)?;
        self.deadlines.remove(&(asked.until, token));
        Some(asked)
    }
}

impl Machine for Seeker {
    type Input = Input;
    type Output = Output;

    fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Joined(group) => {
                if !self.array.join(group) {
                    out.push(Output::Refused { group, refusal: Refusal::Full });
                }
            }
            Input::Left(group) => self.on_left(group, out),
            Input::Heard { group, update } => self.on_heard(group, &update, out),
            Input::Seek { token, print } => self.on_seek(now, token, print, out),
            Input::Said { token, group, is_there } => self.on_said(token, group, is_there, out),
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        while let Some(&(until, token)) = self.deadlines.first() {
            if until > now {
                break;
            }
            self.take(token);
            out.push(Output::Walk { token, why: Why::Silence });
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.deadlines.first().map(|(until, _)| *until)
    }
}
