//! The vocabulary in which the tests of this crate are written.

use std::collections::BTreeMap;

use base::{FileId, Instant, Machine};

use crate::{
    Client, Field, Grantor, Holder, Kind, Knowledge, Mode, Name, Policy, Scope, Terms, grantor,
    holder::{self, Input},
    message::{Upward, Want},
};

/// A scope as in `1.2:/name`, `1.2:/*`, `1.2:*`, `1.2:**`, `1.2:content`.
pub(crate) fn scope(text: &str) -> Scope {
    let (file, field) = text.split_once(':').expect("file:field");
    let file: FileId = file.parse().unwrap();
    let field = match field {
        "access" => Field::Access,
        "times" => Field::Times,
        "extended" => Field::Extended,
        "content" => Field::Content,
        "deletion" => Field::Deletion,
        "parent" => Field::Parent,
        "locks" => Field::Locks,
        "handles" => Field::Handles,
        "write-mode" => Field::Mode(Mode::Write),
        "/*" => Field::Children,
        "*" => Field::Whole,
        "**" => Field::Tree,
        name => Field::Child(Name::new(name.strip_prefix('/').unwrap().as_bytes()).unwrap()),
    };
    field.of(&file)
}

/// A kind as in `read`, `write`, `self`, `others`.
pub(crate) fn kind(text: &str) -> Kind {
    match text {
        "read" => Kind::Read,
        "write" => Kind::Write,
        "self" => Kind::SelfWrite,
        "others" => Kind::OtherRead,
        other => panic!("no kind is called {other}"),
    }
}

/// Plays a script in a world of one grantor and holders with perfect clocks and a perfect network, and
/// compares what happened.
///
/// A line is a moment in milliseconds, a client and what it does:
///
/// ```text
/// A needs SCOPE KIND, SCOPE KIND      asks for these together
/// A needs each SCOPE KIND, ...        asks for each as it becomes free
/// A pushes                            has pushed all that it was told to
/// A pushes at once                    and will do so whenever it is told to
/// A is done with SCOPE KIND           needs that lease no more
/// A sets SCOPE, A clears SCOPE        its own boolean
/// A creates SCOPE                     bears it and pushes that at once
/// A creates SCOPE for now             bears it; to be pushed with whatever is pushed next
/// A tries SCOPE                       logs what it may do with it
/// A falls silent, A is back           loses all its messages, and no longer
/// A's messages wait                   on their way to the grantor
/// A's messages arrive                 after all, and those to come do so at once
/// A's messages arrive, last first     in the wrong order
/// A says MESSAGES                     logs how many messages were sent since the last time
/// ```
#[track_caller]
pub(crate) fn check(script: &str, expected: &str) {
    check_with(Policy::default(), script, expected);
}

#[track_caller]
pub(crate) fn check_with(policy: Policy, script: &str, expected: &str) {
    let mut world = World::new(policy);
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        world.play(line);
    }
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    assert_eq!(world.log, expected, "\n--- happened:\n{}\n", world.log.join("\n"));
}

struct World {
    now: Instant,
    grantor: Grantor,
    holders: BTreeMap<char, Actor>,
    log: Vec<String>,
    messages: usize,
}

struct Actor {
    holder: Holder,
    pushes: Vec<(Scope, Kind, Scope)>,
    pushes_at_once: bool,
    is_silent: bool,
    /// Messages that wait on their way, if they do.
    waiting: Option<Vec<Upward>>,
    /// The session that it last spoke in.
    session: u64,
    /// Creations that have not been pushed, and their session.
    births: Vec<(Scope, u64)>,
}

impl World {
    fn new(policy: Policy) -> World {
        let grantor = Grantor::new(Terms::default(), policy);
        World {
            now: Instant::START,
            grantor,
            holders: BTreeMap::new(),
            log: Vec::new(),
            messages: 0,
        }
    }

    fn play(&mut self, line: &str) {
        let (at, rest) = line.split_once(' ').expect("a moment");
        self.pass(Instant::from_millis(at.parse().unwrap()));
        let (client, rest) = rest.split_once(' ').expect("a client");
        let client = client.chars().next().unwrap();
        self.holders.entry(client).or_insert_with(|| Actor {
            holder: Holder::new(Terms::default(), 1),
            pushes: Vec::new(),
            pushes_at_once: false,
            is_silent: false,
            waiting: None,
            session: 1,
            births: Vec::new(),
        });
        let now = self.now;
        let actor = self.holders.get_mut(&client).unwrap();
        let words: Vec<&str> = rest.split(' ').collect();
        match words[..] {
            ["needs", ..] => {
                let together = words[1] != "each";
                let list = rest.trim_start_matches("needs ").trim_start_matches("each ");
                let wants = list.split(", ").map(|want| {
                    let (scope, kind) = want.split_once(' ').unwrap();
                    Want { scope: self::scope(scope), kind: self::kind(kind) }
                });
                let wants = wants.collect();
                self.tell(client, Input::Need { wants, together });
            }
            ["pushes"] => self.push(client),
            ["pushes", "at", "once"] => {
                actor.pushes_at_once = true;
                self.push(client);
            }
            ["is", "done", "with", lease, kind] => {
                self.tell(
                    client,
                    Input::Done { lease: self::scope(lease), kind: self::kind(kind) },
                );
            }
            ["sets", field] => assert!(actor.holder.set(now, &self::scope(field), true), "{line}"),
            ["clears", field] => {
                assert!(actor.holder.set(now, &self::scope(field), false), "{line}")
            }
            ["creates", field, ..] => {
                let scope = self::scope(field);
                if actor.holder.bear(now, &scope) {
                    actor.births.push((scope, actor.session));
                }
                if words.len() == 2 {
                    self.push_births(client);
                }
            }
            ["tries", text] => {
                let scope = self::scope(text);
                let what = match actor.holder.knows(now, &scope) {
                    Knowledge::None => "knows nothing of",
                    Knowledge::Reads => "reads",
                    Knowledge::Writes => "writes",
                };
                let others = match actor.holder.knows_others(now, &scope) {
                    Some(others) if scope.field.is_disjunctive() => format!(", others {others}"),
                    _ => String::new(),
                };
                self.note(client, &format!("{what} {text}{others}"));
            }
            ["falls", "silent"] => actor.is_silent = true,
            ["is", "back"] => actor.is_silent = false,
            ["messages", "wait"] => actor.waiting = Some(Vec::new()),
            ["messages", ..] => {
                let mut messages = actor.waiting.take().expect("messages that wait");
                if rest.ends_with("last first") {
                    messages.reverse();
                }
                messages.into_iter().for_each(|message| self.deliver(client, message));
            }
            ["says", "messages"] => {
                let count = std::mem::take(&mut self.messages);
                self.note(client, &format!("saw {count} messages"));
            }
            _ => panic!("what is `{line}`?"),
        }
    }

    fn note(&mut self, client: char, what: &str) {
        self.log.push(format!("{} {client} {what}", self.now.as_nanos() / 1_000_000));
    }

    fn push_births(&mut self, client: char) {
        let births = std::mem::take(&mut self.holders.get_mut(&client).unwrap().births);
        for (scope, session) in births {
            let mut out = Vec::new();
            let from = client_of(client);
            let is_borne = self.grantor.is_in_session(from, session)
                && self.grantor.bear(self.now, from, scope, &mut out);
            if !is_borne {
                self.note(client, "is refused a birth");
            }
            self.hear(out);
        }
    }

    fn push(&mut self, client: char) {
        self.push_births(client);
        let pushes = std::mem::take(&mut self.holders.get_mut(&client).unwrap().pushes);
        for (lease, kind, part) in pushes {
            self.tell(client, Input::Pushed { lease, kind, part });
        }
    }

    /// Lets time pass, with whatever falls due on the way.
    fn pass(&mut self, until: Instant) {
        loop {
            let holders = self.holders.values().map(|actor| actor.holder.wake_at());
            let due = holders.chain([self.grantor.wake_at()]).flatten().min();
            let Some(due) = due.filter(|due| *due <= until) else { break };
            self.now = self.now.max(due);
            let mut out = Vec::new();
            self.grantor.tick(self.now, &mut out);
            self.hear(out);
            for client in self.holders.keys().copied().collect::<Vec<_>>() {
                let mut out = Vec::new();
                self.holders.get_mut(&client).unwrap().holder.tick(self.now, &mut out);
                self.act(client, out);
            }
        }
        self.now = until;
    }

    fn tell(&mut self, client: char, input: Input) {
        let mut out = Vec::new();
        self.holders.get_mut(&client).unwrap().holder.step(self.now, input, &mut out);
        self.act(client, out);
    }

    fn act(&mut self, client: char, outputs: Vec<holder::Output>) {
        for output in outputs {
            let actor = self.holders.get_mut(&client).unwrap();
            match output {
                holder::Output::Send(_) if actor.is_silent => {}
                holder::Output::Send(message) => {
                    self.messages += 1;
                    actor.session = message.session;
                    match &mut actor.waiting {
                        Some(waiting) => waiting.push(message),
                        None => self.deliver(client, message),
                    }
                }
                holder::Output::Met(_) => self.note(client, "is content"),
                holder::Output::Refused(_, why) => {
                    self.note(client, &format!("is refused: {why:?}"))
                }
                holder::Output::Push { lease, kind, part } => {
                    actor.pushes.push((lease, kind, part.clone()));
                    let at_once = actor.pushes_at_once;
                    self.note(client, &format!("must push {part}"));
                    if at_once {
                        self.push(client);
                    }
                }
                holder::Output::Lost => {
                    actor.pushes.clear();
                    actor.births.clear();
                    self.note(client, "has lost everything");
                }
            }
        }
    }

    fn deliver(&mut self, client: char, message: Upward) {
        let mut out = Vec::new();
        self.grantor.step(self.now, (client_of(client), message), &mut out);
        self.hear(out);
    }

    fn hear(&mut self, outputs: Vec<grantor::Output>) {
        for (client, message) in outputs {
            self.messages += 1;
            let client = match client {
                Client::GROUP => 'G',
                Client(code) => char::from_u32(code).unwrap(),
            };
            if !self.holders[&client].is_silent {
                self.tell(client, Input::Heard(message));
            }
        }
    }
}

/// `G` is the group itself.
fn client_of(letter: char) -> Client {
    if letter == 'G' { Client::GROUP } else { Client(letter as u32) }
}
