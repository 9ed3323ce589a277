//! A few clients and one directory that hear each other at once, and a count of the leases.

use std::collections::{BTreeMap, VecDeque};

use base::{FileId, Instant, Machine};
use client::{Call, Client, Failure, Input, Output, Reply, Settings};
use directory::{
    Act, Actor, Command, Directory,
    message::{Request, Response},
};
use lease::{Field, Name, Policy, message::Down};

/// Which fields are counted.
type Counted = fn(&Field) -> bool;

/// What was said of counted fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Answers that granted any.
    pub(crate) issued: u64,
    /// Fields in those answers.
    pub(crate) fields: u64,
    /// Messages that wanted any back.
    pub(crate) recalled: u64,
}

/// Machines of people who share a tree.
pub(crate) struct Office {
    directory: Directory,
    clients: Vec<Client>,
    now: Instant,
    upward: VecDeque<(usize, Request)>,
    downward: VecDeque<(usize, Response)>,
    returned: BTreeMap<u64, Result<Reply, Failure>>,
    call_next: u64,
    counted: Counted,
    pub(crate) tally: Tally,
}

impl Office {
    pub(crate) fn new(count: usize, policy: Policy, counted: Counted) -> Office {
        let settings =
            directory::Settings { policy, admits_anybody: true, ..directory::Settings::default() };
        let machine = |index: usize| Client::new(Settings::of(lease::Client(index as u32 + 1)));
        Office {
            directory: Directory::new(settings, Instant::START),
            clients: (0..count).map(machine).collect(),
            now: Instant::from_secs(1),
            upward: VecDeque::new(),
            downward: VecDeque::new(),
            returned: BTreeMap::new(),
            call_next: 1,
            counted,
            tally: Tally::default(),
        }
    }

    /// A program on a machine asks for something and waits for the answer.
    pub(crate) fn call(&mut self, index: usize, what: Call) -> Result<Reply, Failure> {
        let call = self.call_next;
        self.call_next += 1;
        let time = call as i64;
        self.step(index, Input::Call { call, actor: Actor::ROOT, time, what });
        loop {
            self.settle();
            if let Some(result) = self.returned.remove(&call) {
                return result;
            }
            let clients = self.clients.iter().map(Client::wake_at);
            let due = clients.chain([self.directory.wake_at()]).flatten().min();
            self.now = due.expect("somebody answers in the end").max(self.now);
            self.tick();
        }
    }

    /// Does something that makes a file at the root, and lets every machine find it there.
    pub(crate) fn make(&mut self, name: &str, act: Act) -> FileId {
        let made = self.call(0, Call::Do(act));
        assert!(made.is_ok(), "nothing is in the way of {name}, but: {made:?}");
        let found = (0..self.clients.len()).map(|index| {
            let lookup = Call::Lookup { directory: FileId::ROOT, name: self::name(name) };
            match self.call(index, lookup) {
                Ok(Reply::Entry(entry, _)) => entry.file,
                other => panic!("{name} was made, but: {other:?}"),
            }
        });
        found.last().expect("somebody is in the office")
    }

    fn settle(&mut self) {
        loop {
            if let Some((index, request)) = self.upward.pop_front() {
                let client = lease::Client(index as u32 + 1);
                let mut out = Vec::new();
                let command = Command::Heard { client, request };
                let applied = self.directory.apply(self.now, &command, &mut out);
                assert!(applied.is_ok(), "every record is at hand");
                self.hear(out);
            } else if let Some((index, response)) = self.downward.pop_front() {
                self.step(index, Input::Heard(response));
            } else {
                return;
            }
        }
    }

    fn hear(&mut self, out: Vec<(lease::Client, Response)>) {
        for (client, response) in out {
            match &response.lease.body {
                Down::Granted { grants, .. } => {
                    let fields = grants.iter().map(|grant| &grant.scope.field);
                    let count = fields.filter(|field| (self.counted)(field)).count();
                    self.tally.fields += count as u64;
                    self.tally.issued += u64::from(count > 0);
                }
                Down::Recall(recalls) => {
                    let mut fields = recalls.iter().map(|recall| &recall.part.field);
                    self.tally.recalled += u64::from(fields.any(self.counted));
                }
                _ => {}
            }
            self.downward.push_back((client.0 as usize - 1, response));
        }
    }

    fn tick(&mut self) {
        let mut out = Vec::new();
        if self.directory.wake_at().is_some_and(|at| at <= self.now) {
            let applied = self.directory.apply(self.now, &Command::Tick, &mut out);
            assert!(applied.is_ok(), "every record is at hand");
        }
        self.hear(out);
        for index in 0..self.clients.len() {
            let mut out = Vec::new();
            self.clients[index].tick(self.now, &mut out);
            self.follow(index, out);
        }
    }

    fn step(&mut self, index: usize, input: Input) {
        let mut out = Vec::new();
        self.clients[index].step(self.now, input, &mut out);
        self.follow(index, out);
    }

    fn follow(&mut self, index: usize, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Send(request) => self.upward.push_back((index, request)),
                Output::Return { call, result } => drop(self.returned.insert(call, result)),
                Output::Forget { .. } | Output::Recalled(_) => {}
                Output::Lost { .. } => panic!("nobody is ever silent here"),
            }
        }
    }
}

/// A name of this text.
pub(crate) fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).expect("it is a name")
}
