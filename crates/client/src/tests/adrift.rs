//! Clients that do anything while messages are late, lost, repeated and overtaken: what an honest client
//! has done under its leases is never refused, and every call returns.

use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, FileId, Instant, Machine, Rng};
use directory::{
    Act, Actor, Birth, Command, Directory,
    message::{Ask, Request, Response},
    operation::{Changes, Over, When},
    record::Content,
};
use lease::{Name, Terms};

use crate::{Call, Client, Input, Modes, Output, Reply, Settings, Ways};

const CLIENTS: u32 = 3;

struct World {
    rng: Rng,
    now: Instant,
    group: Directory,
    clients: BTreeMap<u32, Client>,
    mail: BTreeMap<(Instant, u64), Mail>,
    mail_next: u64,
    call_next: u64,
    open: BTreeSet<u64>,
    handles: Vec<(u32, u64)>,
    /// The identifiers that each client has been told of: it has no other way to a file.
    files: BTreeMap<u32, Vec<FileId>>,
    faults: f64,
    /// Whether a client says that it has done something that it has not.
    is_lying: bool,
    /// Why the group did not apply something.
    refused: Vec<String>,
    losses: usize,
    done: usize,
}

#[derive(Clone)]
enum Mail {
    Up(u32, Request),
    Down(u32, Response),
}

impl World {
    fn new(seed: u64, faults: f64, settings: Settings) -> World {
        let now = Instant::from_secs(1_000);
        let group = directory::Settings {
            terms: settings.terms,
            admits_anybody: true,
            ..directory::Settings::default()
        };
        let client =
            |id: u32| (id, Client::new(Settings { client: lease::Client(id), ..settings }));
        World {
            rng: Rng::new(seed),
            now,
            group: Directory::new(group, now),
            clients: (1..=CLIENTS).map(client).collect(),
            mail: BTreeMap::new(),
            mail_next: 0,
            call_next: 0,
            open: BTreeSet::new(),
            handles: Vec::new(),
            files: (1..=CLIENTS).map(|id| (id, vec![FileId::ROOT])).collect(),
            faults,
            is_lying: false,
            refused: Vec::new(),
            losses: 0,
            done: 0,
        }
    }

    fn post(&mut self, mail: Mail) {
        if self.rng.chance(self.faults) {
            return;
        }
        let count = if self.rng.chance(self.faults) { 2 } else { 1 };
        for _ in 0..count {
            let slow = if self.rng.chance(self.faults) { 3_000_000_000 } else { 20_000_000 };
            let delay = Duration::from_nanos(self.rng.below(slow));
            self.mail.insert((self.now + delay, self.mail_next), mail.clone());
            self.mail_next += 1;
        }
    }

    fn act(&mut self, id: u32, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Send(mut request) => {
                    if let Some(Ask::Batch { operations, .. }) = &mut request.ask
                        && self.is_lying
                    {
                        operations[0].act = Act::Reap { file: FileId::ROOT };
                    }
                    self.post(Mail::Up(id, request));
                }
                Output::Return { call, result } => {
                    assert!(self.open.remove(&call), "{call} returned twice");
                    self.done += usize::from(result.is_ok());
                    match result {
                        Ok(Reply::Entry(entry, _)) => self.learn(id, entry.file),
                        Ok(Reply::Names { entries, .. }) => {
                            entries.into_iter().for_each(|(_, entry)| self.learn(id, entry.file));
                        }
                        Ok(Reply::Handle(handle)) => self.handles.push((id, handle)),
                        _ => {}
                    }
                }
                Output::Forget { .. } | Output::Recalled(_) => {}
                Output::Lost { operations, refused, .. } => {
                    self.losses += 1;
                    if let Some(why) = refused {
                        let first = operations.first();
                        self.refused.push(format!("{} {id} {why:?} {first:?}", self.now));
                    }
                }
            }
        }
    }

    fn learn(&mut self, id: u32, file: FileId) {
        let files = self.files.get_mut(&id).unwrap();
        if !files.contains(&file) {
            files.push(file);
        }
    }

    fn tell(&mut self, id: u32, input: Input) {
        let mut out = Vec::new();
        let client = self.clients.get_mut(&id).unwrap();
        client.step(self.now, input, &mut out);
        self.act(id, out);
    }

    fn apply(&mut self, command: &Command) {
        let mut out = Vec::new();
        self.group.apply(self.now, command, &mut out).expect("all records are at hand");
        for (client, response) in out {
            self.post(Mail::Down(client.0, response));
        }
    }

    /// Lets time pass, with whatever falls due on the way.
    fn pass(&mut self, until: Instant) {
        loop {
            let mail = self.mail.first_key_value().map(|((at, _), _)| *at);
            let clients = self.clients.values().map(Machine::wake_at);
            let due = clients.chain([self.group.wake_at(), mail]).flatten().min();
            let Some(due) = due.filter(|due| *due <= until) else { break };
            self.now = self.now.max(due);
            while let Some(entry) = self.mail.first_entry().filter(|e| e.key().0 <= self.now) {
                match entry.remove() {
                    Mail::Up(id, request) => {
                        let client = lease::Client(id);
                        self.apply(&Command::Heard { client, request });
                    }
                    Mail::Down(id, response) => self.tell(id, Input::Heard(response)),
                }
            }
            if self.group.wake_at().is_some_and(|at| at <= self.now) {
                self.apply(&Command::Tick);
            }
            for id in 1..=CLIENTS {
                let mut out = Vec::new();
                let client = self.clients.get_mut(&id).unwrap();
                client.tick(self.now, &mut out);
                self.act(id, out);
            }
        }
        self.now = until;
    }

    fn call(&mut self) {
        let rng = &mut self.rng;
        let mut id = 1 + rng.below(u64::from(CLIENTS)) as u32;
        let names = ["a", "b", "c", "d"].map(|text| Name::new(text.as_bytes()).unwrap());
        // Most of the time something young: the old are gone.
        let files = &self.files[&id];
        let from = files.len().saturating_sub(8);
        let mut file = || match rng.below(4) {
            0 => FileId::ROOT,
            1 => rng.pick(files).clone(),
            _ => rng.pick(&files[from..]).clone(),
        };
        let (one, two) = (file(), file());
        let (name, other) = (rng.pick(&names).clone(), rng.pick(&names).clone());
        let what = match rng.below(26) {
            0..=3 => {
                Call::Do(Act::Create { directory: one, name, mode: 0o644, birth: Birth::default() })
            }
            4..=6 => {
                Call::Do(Act::Mkdir { directory: one, name, mode: 0o755, birth: Birth::default() })
            }
            7..=8 => Call::Do(Act::Unlink { directory: one, name, is_open: false }),
            9 => Call::Do(Act::Rmdir { directory: one, name }),
            10..=11 => Call::Do(Act::Rename {
                from: one,
                from_name: name,
                to: two,
                to_name: other,
                over: *rng.pick(&[Over::Replace, Over::Exchange]),
                is_open: false,
            }),
            12 => Call::Do(Act::Link { file: one, directory: two, name }),
            13 => {
                let changes = Changes { mode: Some(0o700), ..Changes::default() };
                Call::Do(Act::SetAttr { file: one, changes })
            }
            14 => {
                let size = rng.below(1_000);
                let digest = Some(base::Digest::from_bytes([7; 32]));
                let content = Content { size, allocated: size, digest, ..Content::default() };
                Call::Do(Act::SetContent { file: one, content })
            }
            15 => Call::Do(Act::SetXattr {
                file: one,
                name: b"k".to_vec(),
                value: Some(b"v".to_vec()),
                when: When::Always,
            }),
            16 | 17 => Call::List { directory: one, after: None, count: 100 },
            18 => Call::GetAttr { file: one },
            19 | 20 => Call::Lookup { directory: one, name },
            21 => Call::Open { file: one, modes: Modes::posix(true, false) },
            22 => {
                let ways = Ways { read: rng.chance(0.5), write: rng.chance(0.5), delete: false };
                let deny = Some(Ways { write: rng.chance(0.3), ..Ways::default() });
                Call::Open { file: one, modes: Modes { access: ways, deny } }
            }
            23 | 24 if !self.handles.is_empty() => {
                let (owner, handle) = self.handles.swap_remove(rng.index(self.handles.len()));
                id = owner;
                Call::Close { handle }
            }
            23 | 24 => {
                let hold = *rng.pick(&[Some(true), Some(false), None]);
                Call::Do(Act::Lock { file: one, owner: 1, start: rng.below(5), end: 9, hold })
            }
            _ => Call::Sync { handle: None },
        };
        self.call_next += 1;
        let call = self.call_next;
        self.open.insert(call);
        let time = (self.now.as_nanos() / 1_000_000) as i64;
        self.tell(id, Input::Call { call, actor: Actor::ROOT, time, what });
    }
}

/// Plays a world and says how many calls went well, and how many sessions were lost.
fn run(seed: u64, faults: f64, settings: Settings) -> (usize, usize) {
    play(World::new(seed, faults, settings), seed)
}

fn play(mut world: World, seed: u64) -> (usize, usize) {
    for _ in 0..300 {
        world.call();
        let pause = if world.rng.chance(0.05) { 3_000 } else { 30 };
        let until = world.now + Duration::from_millis(world.rng.below(pause));
        world.pass(until);
        world.group.check().unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
    world.faults = 0.0;
    world.pass(world.now + Duration::from_secs(200));
    assert_eq!(world.refused, Vec::<String>::new(), "seed {seed}");
    assert!(world.open.is_empty(), "seed {seed}: {:?} did not return", world.open);
    for (id, client) in &world.clients {
        assert_eq!(client.pending_count(), 0, "seed {seed}: client {id}");
    }
    world.group.check().unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    (world.done, world.losses)
}

#[test]
#[should_panic(expected = "Unknown")]
fn a_client_that_is_refused_is_noticed() {
    let mut world = World::new(0, 0.0, Settings::of(lease::Client(0)));
    world.is_lying = true;
    play(world, 0);
}

#[test]
fn nobody_is_refused_where_messages_are_late() {
    let counts = (0..50).map(|seed| run(seed, 0.0, Settings::of(lease::Client(0))));
    let (done, losses) = counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    assert!(done > 50 * 60, "only {done} calls went well");
    assert!(losses < 50, "{losses} sessions were lost");
}

#[test]
fn nobody_is_refused_where_messages_are_lost_and_repeated_and_overtaken() {
    let terms = Terms {
        session: Duration::from_secs(5),
        lease: Duration::from_secs(30),
        repeat: Duration::from_millis(500),
        slack: Duration::from_millis(100),
        ..Terms::default()
    };
    let settings = Settings {
        terms,
        push_after: Duration::from_millis(200),
        batch_max: 5,
        pending_max: 8,
        ..Settings::of(lease::Client(0))
    };
    for seed in 0..50 {
        run(seed, 0.1, settings);
    }
}
