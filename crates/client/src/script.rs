//! The vocabulary in which the tests of this crate are written.

use std::collections::{BTreeMap, VecDeque};

use base::{Duration, FileId, Instant, Machine};
use directory::{
    Act, Actor, Birth, Command, Directory, Sort,
    message::{Ask, Request, Response},
    operation::{Changes, Moment, Over, When},
    record::Content,
};
use lease::{Name, Policy, message::Up};

use crate::{Call, Client, Input, Modes, Output, Reply, Settings, Wanted, Ways};

/// Plays a script in a world of one group and clients with perfect clocks and a perfect network, and
/// compares what happened. What goes well without a word is not logged.
///
/// A line is a moment in milliseconds, a client and what it does; `by 7` behind it says for which user.
///
/// ```text
/// A creates PATH, makes PATH              a file, a directory
/// A leads PATH to TARGET                  a symbolic link
/// A follows PATH                          logs where that leads
/// A links PATH to PATH                    an old file, a new name
/// A unlinks PATH, removes PATH            a file, a directory
/// A moves PATH to PATH, swaps PATH with PATH
/// A chmods PATH 640, gives PATH to 7, dates PATH 99
/// A writes PATH 100                       so many bytes
/// A tags PATH NAME VALUE, untags PATH NAME, reads PATH NAME
/// A sees PATH, lists PATH                 logs that
/// A opens PATH as H, closes H             H is any word
/// A tries to close H                      if it is open
/// A opens PATH as H for rw denying w      with share modes
/// A locks PATH x0-9, unlocks PATH 0-9, tests PATH s0-9
/// A looks up PATH, A syncs, A settles, A cancels
/// A syncs H                               through an open file
/// A falls silent, A is back               loses all its messages, and no longer
/// A yields                                whatever it was asked for
/// A counts                                logs what it has said since the last time
/// A looks around                          logs how many records the group has
/// ```
#[track_caller]
pub(crate) fn check(script: &str, expected: &str) {
    check_with(|settings| settings, script, expected);
}

#[track_caller]
pub(crate) fn check_with(change: impl Fn(Settings) -> Settings, script: &str, expected: &str) {
    let mut world = World::new(change);
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        world.play(line);
    }
    world.settle();
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    assert_eq!(world.log, expected, "\n--- happened:\n{}\n", world.log.join("\n"));
}

pub(crate) struct World<F> {
    pub(crate) now: Instant,
    pub(crate) group: Directory,
    pub(crate) users: BTreeMap<char, User>,
    pub(crate) log: Vec<String>,
    mail: VecDeque<Mail>,
    change: F,
}

enum Mail {
    Up(char, Request),
    Down(char, Response),
}

pub(crate) struct User {
    pub(crate) client: Client,
    call_next: u64,
    /// What was asked, by call, until it returns.
    open: BTreeMap<u64, String>,
    returned: BTreeMap<u64, Result<Reply, crate::Failure>>,
    handles: BTreeMap<String, u64>,
    is_silent: bool,
    wanted: Vec<Wanted>,
    pub(crate) counts: Counts,
}

/// What a client has said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) messages: usize,
    pub(crate) asks: usize,
    pub(crate) returns: usize,
    pub(crate) batches: usize,
    pub(crate) operations: usize,
    pub(crate) questions: usize,
}

impl<F: Fn(Settings) -> Settings> World<F> {
    pub(crate) fn new(change: F) -> World<F> {
        let now = Instant::from_secs(1_000);
        let terms = change(Settings::of(lease::Client(1))).terms;
        let settings = directory::Settings {
            terms,
            policy: Policy::default(),
            files_max: 1_000_000,
            room_max: 1_000_000,
            admits_anybody: true,
            ..directory::Settings::default()
        };
        let group = Directory::new(settings, now);
        let (users, log, mail) = (BTreeMap::new(), Vec::new(), VecDeque::new());
        World { now, group, users, log, mail, change }
    }

    pub(crate) fn user(&mut self, letter: char) -> &mut User {
        let change = &self.change;
        self.users.entry(letter).or_insert_with(|| User {
            client: Client::new(change(Settings::of(lease::Client(letter as u32)))),
            call_next: 1,
            open: BTreeMap::new(),
            returned: BTreeMap::new(),
            handles: BTreeMap::new(),
            is_silent: false,
            wanted: Vec::new(),
            counts: Counts::default(),
        })
    }

    fn note(&mut self, text: &str) {
        let at = self.now.since(Instant::from_secs(1_000)).as_millis();
        self.log.push(format!("{at} {text}").trim_end().to_owned());
    }

    pub(crate) fn play(&mut self, line: &str) {
        let (at, rest) = line.split_once(' ').expect("a moment");
        let at = Duration::from_millis(at.parse().unwrap());
        self.pass(Instant::from_secs(1_000) + at);
        let (letter, rest) = rest.split_once(' ').expect("a client");
        let letter = letter.chars().next().unwrap();
        self.user(letter);
        let (what, uid) = match rest.split_once(" by ") {
            Some((what, uid)) => (what, uid.parse().unwrap()),
            None => (rest, 0),
        };
        let actor = Actor { uid, gid: uid, groups: vec![] };
        let words: Vec<&str> = what.split(' ').collect();
        match words[..] {
            ["falls", "silent"] => self.user(letter).is_silent = true,
            ["is", "back"] => self.user(letter).is_silent = false,
            ["yields"] => {
                for wanted in std::mem::take(&mut self.user(letter).wanted) {
                    self.tell(letter, Input::Yield(wanted));
                }
            }
            ["counts"] => {
                let Counts { messages, asks, returns, batches, operations, questions } =
                    std::mem::take(&mut self.user(letter).counts);
                self.note(&format!(
                    "{letter} said {messages}: {asks} asks, {returns} returns, {questions} \
                     questions, {operations} operations in {batches}"
                ));
            }
            ["looks", "around"] => {
                let directory::Sizes { records, orphans, .. } = self.group.sizes();
                self.note(&format!("{letter} sees {records} records, {orphans} without a name"));
            }
            ["tries", "to", "close", word] => {
                if let Some(handle) = self.user(letter).handles.remove(word) {
                    self.call(letter, rest, actor, Call::Close { handle });
                }
            }
            ["cancels"] => {
                let call = *self.user(letter).open.last_key_value().expect("an open call").0;
                self.tell(letter, Input::Cancel { call });
            }
            _ => {
                let call = self.call_of(letter, &actor, &words);
                let Some(call) = call else {
                    return self.note(&format!("{letter} {rest}: ENOENT"));
                };
                self.call(letter, rest, actor, call);
            }
        }
    }

    /// What a line means, if all but the last name of its paths leads somewhere.
    fn call_of(&mut self, letter: char, actor: &Actor, words: &[&str]) -> Option<Call> {
        let birth = Birth::default;
        Some(match words[..] {
            ["creates", path] => {
                let (directory, name) = self.place(letter, actor, path)?;
                Call::Do(Act::Create { directory, name, mode: 0o644, birth: birth() })
            }
            ["makes", path] => {
                let (directory, name) = self.place(letter, actor, path)?;
                Call::Do(Act::Mkdir { directory, name, mode: 0o755, birth: birth() })
            }
            ["leads", path, "to", target] => {
                let (directory, name) = self.place(letter, actor, path)?;
                let target = target.as_bytes().to_vec();
                Call::Do(Act::Symlink { directory, name, target, birth: birth() })
            }
            ["follows", path] => Call::ReadLink { file: self.walk(letter, actor, path)? },
            ["links", old, "to", new] => {
                let file = self.walk(letter, actor, old)?;
                let (directory, name) = self.place(letter, actor, new)?;
                Call::Do(Act::Link { file, directory, name })
            }
            ["unlinks", path] => {
                let (directory, name) = self.place(letter, actor, path)?;
                Call::Do(Act::Unlink { directory, name, is_open: false })
            }
            ["removes", path] => {
                let (directory, name) = self.place(letter, actor, path)?;
                Call::Do(Act::Rmdir { directory, name })
            }
            [verb @ ("moves" | "swaps"), old, _, new] => {
                let (from, from_name) = self.place(letter, actor, old)?;
                let (to, to_name) = self.place(letter, actor, new)?;
                let over = if verb == "moves" { Over::Replace } else { Over::Exchange };
                Call::Do(Act::Rename { from, from_name, to, to_name, over, is_open: false })
            }
            ["chmods", path, mode] => {
                let mode = Some(u16::from_str_radix(mode, 8).unwrap());
                self.changes(letter, actor, path, Changes { mode, ..Changes::default() })?
            }
            ["gives", path, "to", uid] => {
                let uid = Some(uid.parse().unwrap());
                self.changes(letter, actor, path, Changes { uid, ..Changes::default() })?
            }
            ["dates", path, time] => {
                let modified = Some(Moment::At(time.parse().unwrap()));
                self.changes(letter, actor, path, Changes { modified, ..Changes::default() })?
            }
            ["writes", path, size] => {
                let file = self.walk(letter, actor, path)?;
                let size = size.parse().unwrap();
                let digest = Some(base::Digest::from_bytes([7; 32]));
                let content = Content { size, allocated: size, digest, ..Content::default() };
                Call::Do(Act::SetContent { file, content })
            }
            ["keeps", path, least, most] => {
                let file = self.walk(letter, actor, path)?;
                let (least, most) = (least.parse().unwrap(), most.parse().unwrap());
                Call::Reserve { file, least, most }
            }
            ["tags", path, name, value] => {
                let file = self.walk(letter, actor, path)?;
                let (name, value) = (name.as_bytes().to_vec(), Some(value.as_bytes().to_vec()));
                Call::Do(Act::SetXattr { file, name, value, when: When::Always })
            }
            ["untags", path, name] => {
                let file = self.walk(letter, actor, path)?;
                let name = name.as_bytes().to_vec();
                Call::Do(Act::SetXattr { file, name, value: None, when: When::Always })
            }
            ["reads", path, name] => {
                let file = self.walk(letter, actor, path)?;
                Call::GetXattr { file, name: name.as_bytes().to_vec() }
            }
            ["sees", path] => Call::GetAttr { file: self.walk(letter, actor, path)? },
            ["lists", path] => {
                let directory = self.walk(letter, actor, path)?;
                Call::List { directory, after: None, count: 1_000_000 }
            }
            ["opens", path, "as", _] => {
                let file = self.walk(letter, actor, path)?;
                Call::Open { file, modes: Modes::posix(true, false) }
            }
            ["opens", path, "as", _, "for", access, "denying", deny] => {
                let file = self.walk(letter, actor, path)?;
                let modes = Modes { access: ways(access), deny: Some(ways(deny)) };
                Call::Open { file, modes }
            }
            ["closes", handle] => Call::Close { handle: self.user(letter).handles[handle] },
            ["locks", path, range] => {
                let file = self.walk(letter, actor, path)?;
                let (start, end) = bounds(&range[1..]);
                let hold = Some(range.starts_with('x'));
                Call::Do(Act::Lock { file, owner: 1, start, end, hold })
            }
            ["unlocks", path, range] => {
                let file = self.walk(letter, actor, path)?;
                let (start, end) = bounds(range);
                Call::Do(Act::Lock { file, owner: 1, start, end, hold: None })
            }
            ["tests", path, range] => {
                let file = self.walk(letter, actor, path)?;
                let (start, end) = bounds(&range[1..]);
                let is_exclusive = range.starts_with('x');
                Call::TestLock { file, owner: 1, start, end, is_exclusive }
            }
            ["looks", "up", path] => {
                let (directory, name) = self.place(letter, actor, path)?;
                Call::Lookup { directory, name }
            }
            ["syncs"] => Call::Sync { handle: None },
            ["settles"] => Call::Settle,
            ["syncs", handle] => Call::Sync { handle: Some(self.user(letter).handles[handle]) },
            _ => panic!("what is `{}`?", words.join(" ")),
        })
    }

    fn changes(
        &mut self,
        letter: char,
        actor: &Actor,
        path: &str,
        changes: Changes,
    ) -> Option<Call> {
        let file = self.walk(letter, actor, path)?;
        Some(Call::Do(Act::SetAttr { file, changes }))
    }

    fn place(&mut self, letter: char, actor: &Actor, path: &str) -> Option<(FileId, Name)> {
        let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
        let name = Name::new(name.as_bytes()).unwrap();
        Some((self.walk(letter, actor, directory)?, name))
    }

    /// Walks a path as a program would, by looking up each name.
    pub(crate) fn walk(&mut self, letter: char, actor: &Actor, path: &str) -> Option<FileId> {
        let mut at = FileId::ROOT;
        for name in path.split('/').filter(|name| *name != ".") {
            let name = Name::new(name.as_bytes()).unwrap();
            let what = Call::Lookup { directory: at, name };
            match self.ask(letter, actor.clone(), what)? {
                Ok(Reply::Entry(entry, _)) => at = entry.file,
                _ => return None,
            }
        }
        Some(at)
    }

    /// Makes a call that must return at once, and does not log it.
    pub(crate) fn ask(
        &mut self,
        letter: char,
        actor: Actor,
        what: Call,
    ) -> Option<Result<Reply, crate::Failure>> {
        let call = self.send(letter, actor, what);
        self.user(letter).returned.remove(&call)
    }

    fn send(&mut self, letter: char, actor: Actor, what: Call) -> u64 {
        let time = self.now.since(Instant::from_secs(1_000)).as_millis() as i64;
        let user = self.user(letter);
        let call = user.call_next;
        user.call_next += 1;
        self.tell(letter, Input::Call { call, actor, time, what });
        call
    }

    fn call(&mut self, letter: char, text: &str, actor: Actor, what: Call) {
        let number = self.user(letter).call_next;
        self.user(letter).open.insert(number, text.to_owned());
        self.send(letter, actor, what);
        if self.user(letter).open.contains_key(&number) {
            self.note(&format!("{letter} waits"));
        }
    }

    /// Lets time pass, with whatever falls due on the way.
    pub(crate) fn pass(&mut self, until: Instant) {
        for _ in 0..1_000_000 {
            let clients = self.users.values().map(|user| user.client.wake_at());
            let due = clients.chain([self.group.wake_at()]).flatten().min();
            let Some(due) = due.filter(|due| *due <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(due);
            if self.group.wake_at().is_some_and(|at| at <= self.now) {
                self.apply(Command::Tick);
            }
            for letter in self.users.keys().copied().collect::<Vec<_>>() {
                let now = self.now;
                let client = &mut self.user(letter).client;
                if client.wake_at().is_some_and(|at| at <= now) {
                    let mut out = Vec::new();
                    client.tick(now, &mut out);
                    self.act(letter, out);
                }
            }
            self.deliver();
        }
        panic!("time stands still at {}: {:#?}", self.now, self.log);
    }

    /// Lets everything be pushed, and looks whether the group is in order.
    pub(crate) fn settle(&mut self) {
        self.pass(self.now + Duration::from_secs(5));
        if let Err(what) = self.group.check() {
            panic!("{what}\n{}", self.log.join("\n"));
        }
    }

    pub(crate) fn tell(&mut self, letter: char, input: Input) {
        let now = self.now;
        let mut out = Vec::new();
        self.user(letter).client.step(now, input, &mut out);
        self.act(letter, out);
        self.deliver();
    }

    fn act(&mut self, letter: char, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Send(request) => {
                    let user = self.user(letter);
                    user.counts.note(&request);
                    if !user.is_silent {
                        self.mail.push_back(Mail::Up(letter, request));
                    }
                }
                Output::Return { call, result } => self.on_return(letter, call, result),
                Output::Forget { part, .. } => self.note(&format!("{letter} forgets {part}")),
                Output::Recalled(wanted) => {
                    let until = self.user(letter).client.relied_until();
                    assert!(until > self.now, "{letter} is asked for what it could not tell");
                    self.note(&format!("{letter} is asked for {}", wanted.part));
                    self.user(letter).wanted.push(wanted);
                }
                Output::Lost { operations, sent, refused } => {
                    let acts = operations.iter().map(|operation| verb(&operation.act));
                    let acts: Vec<&str> = acts.collect();
                    let refused = refused.map_or(String::new(), |why| format!(", refused {why:?}"));
                    let text = format!("{letter} has lost {acts:?}, {sent} sent{refused}");
                    self.note(&text);
                }
            }
        }
    }

    fn on_return(&mut self, letter: char, call: u64, result: Result<Reply, crate::Failure>) {
        let user = self.user(letter);
        let Some(text) = user.open.remove(&call) else {
            user.returned.insert(call, result);
            return;
        };
        if let (Ok(Reply::Handle(handle)), Some((_, rest))) = (&result, text.split_once(" as ")) {
            let word = rest.split(' ').next().unwrap();
            user.handles.insert(word.to_owned(), *handle);
        }
        let said = match result {
            Ok(Reply::Room(bytes)) => format!("room for {bytes}"),
            Ok(Reply::Account(account)) => format!("{account:?}"),
            Err(failure) => failure.errno().to_owned(),
            Ok(Reply::Handle(_)) => return,
            Ok(
                Reply::Done
                | Reply::Gone(_)
                | Reply::Nameless(_)
                | Reply::Changed(_)
                | Reply::Entry(..),
            ) if !["syncs", "settles", "looks"].iter().any(|verb| text.starts_with(verb)) => {
                return;
            }
            Ok(
                Reply::Done
                | Reply::Gone(_)
                | Reply::Nameless(_)
                | Reply::Changed(_)
                | Reply::Entry(..),
            ) => "done".to_owned(),
            Ok(Reply::File(file)) => {
                let sort = match file.sort {
                    Sort::Regular => "file",
                    Sort::Directory => "directory",
                    Sort::Symlink => "link",
                    Sort::Special(_) => "special",
                };
                let (access, size, links) = (file.access, file.content.size, file.links);
                let owner =
                    if access.uid == 0 { String::new() } else { format!(" of {}", access.uid) };
                format!(
                    "{sort} {:o}{owner}, {size} bytes, {links} names, at {}",
                    access.mode, file.times.modified
                )
            }
            Ok(Reply::Names { entries, is_all }) => {
                let names = entries.iter().map(|(name, _)| name.to_string());
                let names = names.collect::<Vec<_>>().join(" ");
                if is_all { names } else { format!("{names} ...") }
            }
            Ok(Reply::Bytes(bytes)) => String::from_utf8(bytes).unwrap(),
            Ok(Reply::Attributes(names)) => format!("{names:?}"),
            Ok(Reply::Lock(None)) => "free".to_owned(),
            Ok(Reply::Lock(Some(lock))) => {
                let client = char::from_u32(lock.client.0).unwrap();
                format!("{client} has {}-{}", lock.start, lock.end)
            }
        };
        self.note(&format!("{letter} {text}: {said}"));
    }

    fn deliver(&mut self) {
        for _ in 0..1_000_000 {
            let Some(mail) = self.mail.pop_front() else { return };
            match mail {
                Mail::Up(letter, request) => {
                    let client = lease::Client(letter as u32);
                    self.apply(Command::Heard { client, request });
                }
                Mail::Down(letter, response) => {
                    let now = self.now;
                    let mut out = Vec::new();
                    self.user(letter).client.step(now, Input::Heard(response), &mut out);
                    self.act(letter, out);
                }
            }
        }
        panic!("they talk for ever: {:#?}", self.log);
    }

    pub(crate) fn apply(&mut self, command: Command) {
        let mut out = Vec::new();
        self.group.apply(self.now, &command, &mut out).expect("all records are at hand");
        for (client, response) in out {
            let letter = char::from_u32(client.0).unwrap();
            if !self.user(letter).is_silent {
                self.mail.push_back(Mail::Down(letter, response));
            }
        }
    }
}

impl Counts {
    fn note(&mut self, request: &Request) {
        self.messages += 1;
        match &request.lease.body {
            Up::Ask { .. } => self.asks += 1,
            Up::Return { .. } => self.returns += 1,
            Up::Renew => {}
        }
        match &request.ask {
            Some(Ask::Batch { operations, .. }) => {
                self.batches += 1;
                self.operations += operations.len();
            }
            Some(_) => self.questions += 1,
            None => {}
        }
    }
}

fn ways(text: &str) -> Ways {
    let has = |letter| text.contains(letter);
    Ways { read: has('r'), write: has('w'), delete: has('d') }
}

fn bounds(text: &str) -> (u64, u64) {
    let (start, end) = text.split_once('-').unwrap();
    (start.parse().unwrap(), end.parse().unwrap())
}

fn verb(act: &Act) -> &'static str {
    match act {
        Act::Create { .. } => "create",
        Act::Mkdir { .. } => "mkdir",
        Act::Symlink { .. } => "symlink",
        Act::Mknod { .. } => "mknod",
        Act::Link { .. } => "link",
        Act::Unlink { .. } => "unlink",
        Act::Rmdir { .. } => "rmdir",
        Act::Rename { .. } => "rename",
        Act::SetAttr { .. } => "setattr",
        Act::SetXattr { .. } => "setxattr",
        Act::SetContent { .. } => "setcontent",
        Act::Keep { .. } => "keep",
        Act::Lock { .. } => "lock",
        Act::Reap { .. } => "reap",
    }
}
