//! A machine at which programs run: the client of the product, and people who use it.

use std::collections::BTreeMap;

use base::{Duration, Instant, Machine, Rng};
use client::{Call, Client, Failure, Input, Modes, Output, Reply, Settings};
use directory::{Act, Birth, File, Refusal, record::Content};
use wire::Message;

use super::{
    actor::{Letter, Note, Out, SERVER},
    program::Program,
    step::{Outcome, Seen, Stat, Step, manifest},
    tamper::Tamper,
};

pub(crate) struct Desk<T> {
    client: Client,
    settings: Settings,
    programs: Vec<Seat>,
    /// The calls under way: which program, and what.
    calls: BTreeMap<u64, (usize, i64, Step)>,
    call_next: u64,
    /// How often it has started with nothing.
    life: u32,
    /// The session in which it lives, as far as anybody was told.
    session: Option<u64>,
    /// Counted up, so that tags are unique.
    tag_next: i64,
    pace: Duration,
    rng: Rng,
    tamper: T,
}

struct Seat {
    program: Program,
    /// When it does the next thing; none while it waits for an answer or has nothing to do.
    act_at: Option<Instant>,
}

impl<T: Tamper> Desk<T> {
    pub(crate) fn new(
        settings: Settings,
        programs: Vec<Program>,
        pace: Duration,
        mut rng: Rng,
        tamper: T,
    ) -> Desk<T> {
        let mut seat = |program| {
            let first = Duration::from_millis(rng.below(1_000));
            Seat { program, act_at: Some(Instant::START + first) }
        };
        let programs = programs.into_iter().map(&mut seat).collect();
        let client = Client::new(settings);
        Desk {
            client,
            settings,
            programs,
            calls: BTreeMap::new(),
            call_next: 1,
            life: 0,
            session: None,
            tag_next: 0,
            pace,
            rng,
            tamper,
        }
    }

    /// Whether somebody waits for an answer.
    pub(crate) fn is_waiting(&self) -> Option<&Step> {
        self.calls.values().map(|(_, _, step)| step).next()
    }

    /// Nobody starts anything new.
    pub(crate) fn rest(&mut self) {
        for seat in &mut self.programs {
            seat.program.rest();
        }
    }

    /// Pushes everything.
    pub(crate) fn sync(&mut self, now: Instant, out: &mut Out<T>) {
        self.call(now, 0, Step::Sync, out);
    }

    pub(crate) fn deliver(&mut self, now: Instant, bytes: Vec<u8>, out: &mut Out<T>) {
        let now = self.tamper.clock(now);
        if let Some(bytes) = self.tamper.inward(bytes)
            && let Ok(Message::Response(response)) = wire::open(&bytes)
        {
            self.step(now, Input::Heard(response), out);
        }
    }

    pub(crate) fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        let now = self.tamper.clock(now);
        let mut wanted = Vec::new();
        self.client.tick(now, &mut wanted);
        self.follow(now, wanted, out);
        for index in 0..self.programs.len() {
            let seat = &mut self.programs[index];
            if seat.act_at.is_some_and(|at| at <= now) {
                seat.act_at = None;
                match seat.program.next(&mut self.rng) {
                    Some(step) => self.call(now, index, step, out),
                    None if seat.program.is_resting() => {}
                    None => self.think(now, index),
                }
            }
        }
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let seats = self.programs.iter().filter_map(|seat| seat.act_at);
        let at = seats.chain(self.client.wake_at()).min();
        at.map(|at| self.tamper.clock_back(at))
    }

    /// The machine was off: everything that was not pushed is gone.
    pub(crate) fn restart(&mut self, now: Instant, out: &mut Out<T>) {
        out.mark("a client starts again");
        self.settings.session = self.client.session() + 1;
        self.client = Client::new(self.settings);
        self.begin_life(out);
        let calls = std::mem::take(&mut self.calls);
        for (index, tag, step) in calls.into_values() {
            self.told(index, tag, step, Outcome::Failed, out);
        }
        for index in 0..self.programs.len() {
            self.programs[index].program.see(&Step::Sync, &Outcome::Failed);
            self.think(now, index);
        }
    }

    fn begin_life(&mut self, out: &mut Out<T>) {
        self.life += 1;
        let session = self.client.session();
        self.session = Some(session);
        out.note(Note::Lives { life: self.life, session });
    }

    fn think(&mut self, now: Instant, index: usize) {
        let pause = self.pace.mul_f64(2.0 * self.rng.unit()).max(Duration::from_nanos(1));
        self.programs[index].act_at = Some(now + pause);
    }

    fn call(&mut self, now: Instant, index: usize, step: Step, out: &mut Out<T>) {
        if self.session.is_none() {
            self.begin_life(out);
        }
        let call = self.call_next;
        self.call_next += 1;
        self.tag_next += 1;
        let tag = self.tag_next * 64 + i64::from(self.settings.client.0);
        let actor = self.tamper.actor(self.programs[index].program.actor.clone());
        let what = asked(&step);
        self.calls.insert(call, (index, tag, step));
        self.step(now, Input::Call { call, actor, time: tag, what }, out);
    }

    fn step(&mut self, now: Instant, input: Input, out: &mut Out<T>) {
        let mut wanted = Vec::new();
        self.client.step(now, input, &mut wanted);
        self.follow(now, wanted, out);
    }

    fn follow(&mut self, now: Instant, wanted: Vec<Output>, out: &mut Out<T>) {
        for output in wanted {
            match output {
                Output::Send(request) => {
                    let bytes = wire::seal(&Message::Request(request));
                    let (sent, forged) = self.tamper.outward(bytes);
                    sent.into_iter().for_each(|bytes| out.send(SERVER, Letter(bytes)));
                    for bytes in forged {
                        self.deliver(now, bytes, out);
                    }
                }
                Output::Return { call, result } => {
                    let Some((index, tag, step)) = self.calls.remove(&call) else { continue };
                    self.told(index, tag, step, outcome(result), out);
                    self.think(now, index);
                }
                Output::Lost { operations, .. } => {
                    out.mark("a session is lost");
                    if !operations.is_empty() {
                        out.mark("operations are lost with their session");
                    }
                    self.begin_life(out);
                }
            }
        }
    }

    fn told(&mut self, index: usize, tag: i64, step: Step, outcome: Outcome, out: &mut Out<T>) {
        let program = &mut self.programs[index].program;
        program.see(&step, &outcome);
        let (life, actor) = (self.life, program.actor.clone());
        out.note(Note::Did { life, program: index, tag, actor, step, outcome });
    }
}

/// What the product is asked for.
fn asked(step: &Step) -> Call {
    let birth = Birth::default;
    match step.clone() {
        Step::Lookup { directory, name } => Call::Lookup { directory, name },
        Step::Stat { file } => Call::GetAttr { file },
        Step::List { directory } => Call::List { directory, after: None, count: usize::MAX },
        Step::ReadLink { file } => Call::ReadLink { file },
        Step::Create { directory, name, mode } => {
            Call::Do(Act::Create { directory, name, mode, birth: birth() })
        }
        Step::Mkdir { directory, name, mode } => {
            Call::Do(Act::Mkdir { directory, name, mode, birth: birth() })
        }
        Step::Symlink { directory, name, target } => {
            Call::Do(Act::Symlink { directory, name, target, birth: birth() })
        }
        Step::Link { file, directory, name } => Call::Do(Act::Link { file, directory, name }),
        Step::Unlink { directory, name } => {
            Call::Do(Act::Unlink { directory, name, is_open: false })
        }
        Step::Rmdir { directory, name } => Call::Do(Act::Rmdir { directory, name }),
        Step::Rename { from, from_name, to, to_name, over } => {
            Call::Do(Act::Rename { from, from_name, to, to_name, over, is_open: false })
        }
        Step::SetAttr { file, changes } => Call::Do(Act::SetAttr { file, changes }),
        Step::SetXattr { file, name, value, when } => {
            Call::Do(Act::SetXattr { file, name, value, when })
        }
        Step::GetXattr { file, name } => Call::GetXattr { file, name },
        Step::Write { file, bytes } => {
            let content = Content { size: bytes.len() as u64, manifest: Some(manifest(&bytes)) };
            Call::Do(Act::SetContent { file, content })
        }
        Step::Open { file, writes } => Call::Open { file, modes: Modes::posix(true, writes) },
        Step::Close { handle } => Call::Close { handle },
        Step::Lock { file, owner, start, end, hold, .. } => {
            Call::Do(Act::Lock { file, owner, start, end, hold })
        }
        Step::Sync => Call::Sync,
    }
}

/// What a program is told.
fn outcome(result: Result<Reply, Failure>) -> Outcome {
    let reply = match result {
        Ok(reply) => reply,
        // The reference forgets what is gone.
        Err(Failure::Refused(Refusal::Gone)) => return Outcome::Refused("ENOENT"),
        Err(Failure::Refused(refusal)) => return Outcome::Refused(refusal.errno()),
        Err(Failure::Lost | Failure::Busy | Failure::Cancelled) => return Outcome::Failed,
    };
    Outcome::Seen(match reply {
        Reply::Done | Reply::Lock(_) | Reply::Attributes(_) => Seen::Nothing,
        Reply::Entry(entry) => Seen::File(entry.file),
        Reply::File(file) => Seen::Stat(stat(&file)),
        Reply::Names { entries, .. } => {
            Seen::Names(entries.into_iter().map(|(name, entry)| (name, entry.file)).collect())
        }
        Reply::Bytes(bytes) => Seen::Bytes(bytes),
        Reply::Handle(handle) => Seen::Handle(handle),
    })
}

fn stat(file: &File) -> Stat {
    use directory::Sort;
    let is_directory = file.sort == Sort::Directory;
    let content = (file.content.size, file.content.manifest);
    Stat {
        sort: file.sort,
        mode: file.access.mode,
        uid: file.access.uid,
        gid: file.access.gid,
        links: (!is_directory).then_some(file.links),
        content: (file.sort == Sort::Regular).then_some(content),
    }
}
