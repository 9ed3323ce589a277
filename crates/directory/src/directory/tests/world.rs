//! A directory and honest clients that do one thing at a time and push it at once.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;

use base::{Digest, Duration, FileId, Instant, Machine};
use lease::{
    Client, Field, Holder, Kind, Knowledge, Name, Scope, Terms, holder,
    message::{Upward, Want},
};
use triomphe::Arc;

use crate::{
    actor::Actor,
    message::{Answer, Ask, Needs, Provision, Request, Response},
    operation::{Act, Changes, Operation, Over, When},
    record::{Content, Entry, File, Numbering, Sort},
    refusal::Refusal,
    view::{Birth, Missing, Stop, View},
};

use super::super::{Command, Directory, Settings, Users};

/// The hash of any bytes: nobody here has them.
pub(super) const DIGEST: Digest = Digest::from_bytes([7; 32]);

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) directory: Directory,
    pub(super) puppets: BTreeMap<u32, Puppet>,
    /// Everything that was applied, and what came of it.
    pub(super) history: Vec<(Instant, Command, Said)>,
}

type Said = Vec<(Client, Response)>;

/// A client as simple as can be.
pub(super) struct Puppet {
    pub(super) holder: Holder,
    pub(super) batch: u64,
    pub(super) request: u64,
    pub(super) ranges: BTreeMap<FileId, (u64, u64)>,
    pub(super) serials: (u64, u64),
    pub(super) answers: VecDeque<Answer>,
}

impl Puppet {
    fn new(session: u64) -> Puppet {
        Puppet {
            holder: Holder::new(Terms::default(), session),
            batch: 0,
            request: 0,
            ranges: BTreeMap::new(),
            serials: (0, 0),
            answers: VecDeque::new(),
        }
    }

    fn on_lost(&mut self) {
        (self.batch, self.serials) = (0, (0, 0));
        self.ranges.clear();
        self.answers.clear();
    }
}

impl World {
    pub(super) fn new(clients: u32) -> World {
        World::with(clients, Settings::default())
    }

    pub(super) fn with(clients: u32, settings: Settings) -> World {
        let now = Instant::from_secs(1);
        let directory = Directory::new(settings, now);
        let puppets = (1..=clients).map(|client| (client, Puppet::new(1))).collect();
        let mut world = World { now, directory, puppets, history: Vec::new() };
        for client in 1..=clients {
            world.apply(Command::Admit { client: Client(client), users: Users::Any });
        }
        world
    }

    /// Applies a command and does not pass on what comes of it.
    pub(super) fn apply(&mut self, command: Command) -> Vec<(Client, Response)> {
        let mut out = Vec::new();
        self.directory.apply(self.now, &command, &mut out).expect("all is at hand");
        self.history.push((self.now, command, out.clone()));
        out
    }

    /// Lets time pass, and whatever falls due meanwhile.
    pub(super) fn pass(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        while let Some(at) = self.directory.wake_at().filter(|at| *at <= end) {
            self.now = self.now.max(at) + Duration::from_millis(1);
            let out = self.apply(Command::Tick);
            self.deliver(out);
        }
        self.now = self.now.max(end);
    }

    /// A client starts again and has forgotten everything: its old session is lost.
    pub(super) fn restart(&mut self, client: u32) {
        let puppet = self.puppets.get_mut(&client).unwrap();
        puppet.holder.abandon(self.now, &mut Vec::new());
        puppet.on_lost();
        let request = self.renewal(client);
        self.send(client, request);
    }

    pub(super) fn renewal(&mut self, client: u32) -> Request {
        let now = self.now;
        let lease = self.puppets.get_mut(&client).unwrap().holder.renewal(now);
        Request { lease, ask: None }
    }

    /// A client asks, and is answered at once if at all.
    pub(super) fn ask(&mut self, client: u32, ask: Ask) -> Option<Answer> {
        let request = Request { ask: Some(ask), ..self.renewal(client) };
        self.send(client, request);
        self.puppets.get_mut(&client).unwrap().answers.pop_back()
    }

    pub(super) fn send(&mut self, client: u32, request: Request) {
        let out = self.apply(Command::Heard { client: Client(client), request });
        self.deliver(out);
    }

    /// Hands out what was said, and goes on until nobody has anything to say.
    pub(super) fn deliver(&mut self, out: Vec<(Client, Response)>) {
        let mut queue = VecDeque::from(out);
        while let Some((client, response)) = queue.pop_front() {
            let Some(puppet) = self.puppets.get_mut(&client.0) else { continue };
            puppet.answers.extend(response.answer);
            let mut inputs = VecDeque::from([holder::Input::Heard(response.lease)]);
            let mut upward = Vec::new();
            while let Some(input) = inputs.pop_front() {
                let mut outputs = Vec::new();
                puppet.holder.step(self.now, input, &mut outputs);
                for output in outputs {
                    match output {
                        holder::Output::Send(message) => upward.push(message),
                        holder::Output::Push { lease, kind, part } => {
                            inputs.push_back(holder::Input::Pushed { lease, kind, part });
                        }
                        holder::Output::Lost => puppet.on_lost(),
                        _ => {}
                    }
                }
            }
            for lease in upward {
                queue.extend(self.heard(client.0, lease));
            }
        }
    }

    fn heard(&mut self, client: u32, lease: Upward) -> Vec<(Client, Response)> {
        let request = Request { lease, ask: None };
        self.apply(Command::Heard { client: Client(client), request })
    }

    /// A client comes to know something.
    pub(super) fn need(&mut self, client: u32, kind: Kind, scope: &Scope) {
        self.need_all(client, vec![Want { scope: scope.clone(), kind }]);
    }

    pub(super) fn need_all(&mut self, client: u32, wants: Vec<Want>) {
        let now = self.now;
        let mut outputs = Vec::new();
        let holder = &mut self.puppets.get_mut(&client).unwrap().holder;
        holder.step(now, holder::Input::Need { wants, together: true }, &mut outputs);
        for output in outputs {
            let holder::Output::Send(lease) = output else { continue };
            let out = self.heard(client, lease);
            self.deliver(out);
        }
    }

    pub(super) fn provide(&mut self, client: u32, directory: Option<FileId>) -> Provision {
        let puppet = self.puppets.get_mut(&client).unwrap();
        puppet.request += 1;
        let request = puppet.request;
        let (owner, free) = (Some(0), Some(u64::MAX));
        let needs = Needs { directory, owner, free, ..Needs::default() };
        let answer = self.ask(client, Ask::Provide { request, needs });
        let Some(Answer::Provided { provision, .. }) = answer else {
            panic!("{client} is given nothing")
        };
        let puppet = self.puppets.get_mut(&client).unwrap();
        if let Some((directory, next, end)) = provision.numbers.clone() {
            puppet.ranges.insert(directory, (next, end));
        }
        puppet.serials = provision.serials.unwrap_or(puppet.serials);
        provision
    }

    /// An honest client does something: what it lacks it asks for, and it is never refused.
    pub(super) fn act(&mut self, client: u32, actor: &Actor, act: Act) -> Result<(), Refusal> {
        let time = self.now.as_nanos() as i64;
        if self.puppets[&client].request == 0 {
            // It says for how much it has room.
            self.provide(client, None);
        }
        for _ in 0..30 {
            let mut operation = Operation { actor: actor.clone(), time, act: act.clone() };
            let puppet = self.puppets.get_mut(&client).unwrap();
            let mut sight =
                Sight { now: self.now, client: Client(client), puppet, directory: &self.directory };
            match operation.perform(&mut sight) {
                Ok(()) => {
                    self.push(client, vec![operation]);
                    return Ok(());
                }
                Err(Stop::Refused(refusal)) => return Err(refusal),
                Err(Stop::Missing(Missing { provision: Some(directory), .. })) => {
                    self.provide(client, Some(directory));
                }
                Err(Stop::Missing(Missing { wants, .. })) => self.need_all(client, wants),
            }
            self.now = self.now + Duration::from_millis(1);
        }
        panic!("{client} never came to know enough for {act:?}");
    }

    fn push(&mut self, client: u32, operations: Vec<Operation>) {
        let puppet = self.puppets.get_mut(&client).unwrap();
        puppet.batch += 1;
        let number = puppet.batch;
        let what = format!("{operations:?}");
        let answer = self.ask(client, Ask::Batch { number, operations });
        let applied = Answer::Applied { number, refused: None };
        assert_eq!(answer, Some(applied), "{client} was refused {what}");
    }

    /// Opens or closes a file on a client; whoever closes it last reaps it.
    pub(super) fn open(&mut self, client: u32, file: &FileId, is_open: bool) {
        let handles = Field::Handles.of(file);
        for _ in 0..30 {
            let now = self.now;
            if self.puppets.get_mut(&client).unwrap().holder.set(now, &handles, is_open) {
                break;
            }
            self.need(client, Kind::SelfWrite, &handles);
        }
        assert_eq!(self.puppets[&client].holder.own(&handles), is_open);
        let record = self.directory.records.file(file).unwrap();
        if !is_open && record.is_some_and(|record| record.links == 0) {
            match self.act(client, &Actor::ROOT, Act::Reap { file: file.clone() }) {
                // The group may have been first, if somebody else was lost.
                Ok(()) | Err(Refusal::Sharing | Refusal::Gone) => {}
                Err(refusal) => panic!("{refusal:?}"),
            }
        }
    }

    /// What a name anywhere stands for; `/` is the root.
    #[track_caller]
    pub(super) fn find(&self, name: &str) -> FileId {
        if name == "/" {
            return FileId::ROOT;
        }
        let wanted = Name::new(name.as_bytes());
        let found = self.directory.records.iter().find(|(key, _)| key.name == wanted);
        match found {
            Some((_, crate::Record::Entry(entry))) => entry.file.clone(),
            _ => panic!("there is no {name}"),
        }
    }

    /// Plays what clients do: `1 mkdir / d; 2 create d a`. A name stands for the one file called so.
    #[track_caller]
    pub(super) fn script(&mut self, script: &str) {
        for line in script.split(';') {
            let words: Vec<&str> = line.split_whitespace().collect();
            let client = words[0].parse().unwrap();
            let of = |at: usize| self.find(words[at]);
            let name = |at: usize| Name::new(words[at].as_bytes()).unwrap();
            let birth = Birth::default();
            let act = match words[1] {
                "mkdir" => Act::Mkdir { directory: of(2), name: name(3), mode: 0o777, birth },
                "create" => Act::Create { directory: of(2), name: name(3), mode: 0o666, birth },
                "symlink" => {
                    let target = b"somewhere".to_vec();
                    Act::Symlink { directory: of(2), name: name(3), target, birth }
                }
                "unlink" => Act::Unlink { directory: of(2), name: name(3), is_open: false },
                "rmdir" => Act::Rmdir { directory: of(2), name: name(3) },
                "link" => Act::Link { file: of(2), directory: of(3), name: name(4) },
                "lock" => {
                    let (owner, start, end) = (1, 0, u64::MAX);
                    Act::Lock { file: of(2), owner, start, end, hold: Some(true) }
                }
                "write" => {
                    let size = words[3].parse().unwrap();
                    let digest = Some(DIGEST);
                    let content = Content { size, allocated: size, digest, ..Content::default() };
                    Act::SetContent { file: of(2), content }
                }
                "open" => {
                    let file = of(2);
                    self.open(client, &file, true);
                    continue;
                }
                "close" => {
                    let file = of(2);
                    self.open(client, &file, false);
                    continue;
                }
                other => panic!("{other}"),
            };
            self.act(client, &Actor::ROOT, act).unwrap_or_else(|why| panic!("{line}: {why:?}"));
        }
    }

    /// All files of a sort, and all names.
    pub(super) fn files(&self, is_wanted: impl Fn(Sort) -> bool) -> Vec<FileId> {
        let files = self.directory.records.iter().filter_map(|(key, record)| match record {
            crate::Record::File(file) if is_wanted(file.sort) => Some(key.file.clone()),
            _ => None,
        });
        files.collect()
    }

    /// Something that some user might do, sensible or not.
    pub(super) fn random_act(&self, rng: &mut base::Rng) -> Act {
        let directories = self.files(|sort| sort == Sort::Directory);
        let files = self.files(|_| true);
        let directory = rng.pick(&directories).clone();
        let file = rng.pick(&files).clone();
        let names = ["a", "b", "c", "d", "e"].map(|name| Name::new(name.as_bytes()).unwrap());
        let name = rng.pick(&names).clone();
        let birth = Birth::default();
        let is_open = false;
        match rng.below(14) {
            0..=2 => Act::Create { directory, name, mode: 0o666, birth },
            3 | 4 => Act::Mkdir { directory, name, mode: 0o777, birth },
            5 => Act::Symlink { directory, name, target: b"x".to_vec(), birth },
            6 => Act::Link { file, directory, name },
            7 => Act::Unlink { directory, name, is_open },
            8 => Act::Rmdir { directory, name },
            9 | 10 => {
                let over = *rng.pick(&[Over::Replace, Over::Refuse, Over::Exchange]);
                let (to, to_name) = (rng.pick(&directories).clone(), rng.pick(&names).clone());
                Act::Rename { from: directory, from_name: name, to, to_name, over, is_open }
            }
            11 => match rng.below(4) {
                0 => {
                    let changes = Changes { mode: Some(0o755), ..Changes::default() };
                    Act::SetAttr { file, changes }
                }
                1 => {
                    let (name, value) = (b"user.x".to_vec(), Some(vec![7; 20]));
                    Act::SetXattr { file, name, value, when: When::Always }
                }
                2 => {
                    let (size, allocated) = (rng.below(5_000), rng.below(5_000));
                    let digest = rng.chance(0.9).then_some(DIGEST);
                    let content = Content { size, allocated, digest, ..Content::default() };
                    Act::SetContent { file, content }
                }
                _ => {
                    let (version, is_live) = (rng.below(10), rng.chance(0.7));
                    let digest = rng.chance(0.4).then_some(DIGEST);
                    Act::Keep { file, version, is_live, digest }
                }
            },
            _ => {
                let hold = *rng.pick(&[None, Some(false), Some(true)]);
                let start = rng.below(10);
                let end = start + rng.below(10);
                Act::Lock { file, owner: rng.below(2), start, end, hold }
            }
        }
    }
}

/// What a puppet sees: the truth, of which it uses what it knows.
struct Sight<'a> {
    now: Instant,
    client: Client,
    puppet: &'a mut Puppet,
    directory: &'a Directory,
}

impl View for Sight<'_> {
    fn know(&mut self, wants: &[Want]) -> Result<(), Stop> {
        let is_known = |want: &Want| match want.kind {
            Kind::Read => self.puppet.holder.knows(self.now, &want.scope) != Knowledge::None,
            Kind::OtherRead => self.puppet.holder.knows_others(self.now, &want.scope).is_some(),
            _ => self.puppet.holder.knows(self.now, &want.scope) == Knowledge::Writes,
        };
        let wants: Vec<Want> = wants.iter().filter(|want| !is_known(want)).cloned().collect();
        match wants.is_empty() {
            true => Ok(()),
            false => Err(Stop::Missing(Missing { wants, ..Missing::default() })),
        }
    }

    fn knows_value(&self, scope: &Scope) -> bool {
        self.puppet.holder.knows(self.now, scope) != Knowledge::None
    }

    fn file(&mut self, file: &FileId) -> Result<Arc<File>, Stop> {
        let record = self.directory.records.file(file).expect("all is at hand");
        record.cloned().ok_or(Refusal::Gone.into())
    }

    fn entry(&mut self, directory: &FileId, name: &Name) -> Result<Option<Entry>, Stop> {
        Ok(self.directory.records.entry(directory, name).expect("all is at hand").cloned())
    }

    fn is_empty(&mut self, directory: &FileId) -> Result<bool, Stop> {
        Ok(self.file(directory)?.numbering.names == 0)
    }

    fn set_file(&mut self, _: &FileId, _: File) {}

    fn set_entry(&mut self, _: &FileId, _: &Name, _: Option<Entry>) {}

    fn bear(&mut self, directory: &FileId, sort: Sort, birth: &mut Birth) -> Result<(), Stop> {
        let lacking =
            Stop::Missing(Missing { provision: Some(directory.clone()), ..Missing::default() });
        let numbering = self.file(directory)?.numbering;
        let is_creators =
            numbering.creator == self.client.0 && numbering.creator_next < Numbering::BORN;
        let number = match self.puppet.ranges.get(directory) {
            _ if is_creators => numbering.creator_next,
            Some((next, end)) if next < end => *next,
            _ => return Err(lacking),
        };
        if self.puppet.serials.0 == self.puppet.serials.1 {
            return Err(lacking);
        }
        birth.file = directory.child(NonZeroU64::new(number).unwrap()).unwrap();
        birth.serial = self.puppet.serials.0;
        let field = if sort == Sort::Directory { Field::Tree } else { Field::Whole };
        birth.is_leased = self.puppet.holder.bear(self.now, &field.of(&birth.file));
        self.puppet.serials.0 += 1;
        if let Some((next, _)) = self.puppet.ranges.get_mut(directory).filter(|_| !is_creators) {
            *next += 1;
        }
        Ok(())
    }

    fn bury(&mut self, _: &FileId) {}

    fn is_open(&mut self, file: &FileId, is_open: &mut bool) -> Result<(), Stop> {
        *is_open =
            self.is_open_elsewhere(file)? || self.puppet.holder.own(&Field::Handles.of(file));
        Ok(())
    }

    fn is_open_elsewhere(&mut self, file: &FileId) -> Result<bool, Stop> {
        let scope = Field::Handles.of(file);
        match self.puppet.holder.knows_others(self.now, &scope) {
            Some(others) => Ok(others),
            None => {
                let wants = vec![Want { scope, kind: Kind::OtherRead }];
                Err(Stop::Missing(Missing { wants, ..Missing::default() }))
            }
        }
    }

    fn has_others(&self) -> bool {
        self.directory.members.len() > 1
    }

    fn client(&self) -> Client {
        self.client
    }
}

/// Users of a machine, each with groups.
pub(super) fn users(users: &[(u32, &[u32])]) -> Users {
    let one = |(uid, gids): &(u32, &[u32])| (*uid, gids.iter().copied().collect());
    Users::These(users.iter().map(one).collect())
}
