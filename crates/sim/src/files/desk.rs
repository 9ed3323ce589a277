//! A machine at which programs run: the client of the product, and people who use it.

use std::collections::BTreeMap;

use base::{Duration, Instant, Machine, Rng};
use client::{Client, Failure, Input, Output, Settings, Wanted};
use wire::{Ear, Frame, Message};

use crate::Node;

use super::{
    actor::{Letter, Note, Out, SERVER},
    circle::{Circle, Stamp},
    program::Program,
    spoken::{asked, outcome},
    step::{Outcome, Seen, Step},
    tamper::Tamper,
};

pub(crate) struct Desk<T> {
    client: Client,
    settings: Settings,
    programs: Vec<Seat>,
    /// One for each program, and one that pushes everything.
    calls: BTreeMap<u64, Call>,
    call_next: u64,
    /// The life in which each handle was handed out. Closed ones go, and all with a restart.
    handles: BTreeMap<u64, u32>,
    /// Somebody has yet to be told that something was lost.
    owes_loss: bool,
    /// What is to be given up, and when. Bounded by the client.
    yields: Vec<(Instant, Wanted)>,
    /// When to push everything.
    sync_at: Option<Instant>,
    /// How often it has started with nothing.
    life: u32,
    /// The session in which it lives, as far as anybody was told.
    session: Option<u64>,
    /// Counted up, so that tags are unique.
    tag_next: i64,
    habit: Habit,
    /// How it listens, if the group has several members.
    ear: Option<(Circle, Ear<Stamp>)>,
    rng: Rng,
    tamper: T,
}

/// How people behave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habit {
    /// How long they think on average.
    pub(crate) pace: Duration,
    /// How often they do not wait for an answer that takes a while.
    pub(crate) impatience: f64,
}

struct Seat {
    program: Program,
    /// When it does the next thing; none while it waits for an answer or has nothing to do.
    act_at: Option<Instant>,
    /// When it does not wait any more, and for which call.
    cancel_at: Option<(Instant, u64)>,
}

/// A call under way.
struct Call {
    /// Which program made it; none if everything is pushed.
    program: Option<usize>,
    tag: i64,
    step: Step,
    /// In which life.
    life: u32,
    is_cancelled: bool,
}

/// How often something is said to another member besides.
const TWO_WAYS: f64 = 0.3;

/// With fewer calls at a time than this, there may be too many.
pub(crate) const CALLS_ENOUGH: usize = 64;

impl<T: Tamper> Desk<T> {
    pub(crate) fn new(
        settings: Settings,
        programs: Vec<Program>,
        habit: Habit,
        ear: Option<(Circle, Ear<Stamp>)>,
        mut rng: Rng,
        tamper: T,
    ) -> Desk<T> {
        let mut seat = |program| {
            let first = Duration::from_millis(rng.below(1_000));
            Seat { program, act_at: Some(Instant::START + first), cancel_at: None }
        };
        let programs = programs.into_iter().map(&mut seat).collect();
        let client = Client::new(settings);
        Desk {
            client,
            settings,
            programs,
            calls: BTreeMap::new(),
            call_next: 1,
            handles: BTreeMap::new(),
            owes_loss: false,
            yields: Vec::new(),
            sync_at: None,
            life: 0,
            session: None,
            tag_next: 0,
            habit,
            ear,
            rng,
            tamper,
        }
    }

    /// Whether somebody waits for an answer.
    pub(crate) fn is_waiting(&self) -> Option<&Step> {
        self.calls.values().map(|call| &call.step).next()
    }

    /// Nobody starts anything new.
    pub(crate) fn rest(&mut self) {
        for seat in &mut self.programs {
            seat.program.rest();
        }
    }

    /// Pushes everything, as soon as it may.
    pub(crate) fn sync(&mut self, now: Instant) {
        self.sync_at = Some(self.tamper.clock(now));
    }

    /// Something arrives. What members say counts when enough of them do.
    pub(crate) fn hear(&mut self, now: Instant, from: Node, letter: Letter, out: &mut Out<T>) {
        let heard = match (letter, &mut self.ear) {
            // There is nobody else to ask.
            (Letter::Downward(bytes), None) => Some(bytes),
            (Letter::Downward(bytes), Some((circle, ear))) => match wire::decode(&bytes) {
                Ok(Frame::Group(about, Message::Word(word))) => {
                    circle.seat(from).and_then(|seat| ear.on_word(&seat.key, about, word))
                }
                Ok(Frame::Group(_, Message::Changes(changes))) => {
                    ear.on_changes(&changes);
                    None
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(bytes) = heard {
            self.deliver(now, bytes, out);
        }
    }

    fn deliver(&mut self, now: Instant, bytes: Vec<u8>, out: &mut Out<T>) {
        let now = self.tamper.clock(now);
        if let Some(bytes) = self.tamper.inward(bytes)
            && let Ok(response) = wire::decode(&bytes)
        {
            self.step(now, Input::Heard(response), out);
        }
    }

    pub(crate) fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        let now = self.tamper.clock(now);
        let mut wanted = Vec::new();
        self.client.tick(now, &mut wanted);
        self.follow(now, wanted, out);
        for (_, wanted) in self.yields.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>() {
            self.step(now, Input::Yield(wanted), out);
        }
        if self.sync_at.take_if(|at| *at <= now).is_some() {
            self.call(now, None, Step::Sync, out);
        }
        for index in 0..self.programs.len() {
            let seat = &mut self.programs[index];
            if let Some((_, call)) = seat.cancel_at.take_if(|(at, _)| *at <= now) {
                self.cancel(now, call, out);
            }
            let seat = &mut self.programs[index];
            if seat.act_at.is_some_and(|at| at <= now) {
                seat.act_at = None;
                match seat.program.next(&mut self.rng) {
                    Some(step) => self.call(now, Some(index), step, out),
                    None if seat.program.is_resting() => {}
                    None => self.think(now, index),
                }
            }
        }
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let seats = self.programs.iter().flat_map(|seat| {
            let cancel_at = seat.cancel_at.map(|(at, _)| at);
            seat.act_at.into_iter().chain(cancel_at)
        });
        let at = seats.chain(self.client.wake_at()).chain(self.sync_at);
        let at = at.chain(self.yields.iter().map(|(at, _)| *at)).min();
        at.map(|at| self.tamper.clock_back(at))
    }

    /// The machine was off: everything that was not pushed is gone.
    pub(crate) fn restart(&mut self, now: Instant, out: &mut Out<T>) {
        out.mark("a client starts again");
        self.settings.session = self.client.session() + 1;
        self.client = Client::new(self.settings);
        self.begin_life(out);
        if self.settings.has_memory {
            self.step(now, Input::Begin, out);
        }
        self.handles.clear();
        self.yields.clear();
        self.owes_loss = false;
        let calls = std::mem::take(&mut self.calls);
        for call in calls.into_values() {
            self.told(now, call, Outcome::Lost, out);
        }
        for index in 0..self.programs.len() {
            self.programs[index].program.start_again();
            self.programs[index].cancel_at = None;
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
        let pause = self.habit.pace.mul_f64(2.0 * self.rng.unit()).max(Duration::from_nanos(1));
        self.programs[index].act_at = Some(now + pause);
    }

    fn call(&mut self, now: Instant, index: Option<usize>, step: Step, out: &mut Out<T>) {
        if self.session.is_none() {
            self.begin_life(out);
        }
        let call = self.call_next;
        self.call_next += 1;
        self.tag_next += 1;
        let tag = self.tag_next * 64 + i64::from(self.settings.client.0);
        let program = &self.programs[index.unwrap_or(0)].program;
        let actor = self.tamper.actor(program.actor.clone());
        let what = self.tamper.call(asked(&step));
        let life = self.life;
        self.calls.insert(call, Call { program: index, tag, step, life, is_cancelled: false });
        self.step(now, Input::Call { call, actor, time: tag, what }, out);
        if let Some(Step::Close { handle }) = self.calls.get(&call).map(|call| &call.step) {
            out.note(Note::Closing { life: self.life, handle: *handle });
        }
        if let Some(index) = index
            && self.calls.contains_key(&call)
            && self.rng.chance(self.habit.impatience)
        {
            let patience = Duration::from_millis(self.rng.below(500));
            self.programs[index].cancel_at = Some((now + patience, call));
        }
    }

    fn cancel(&mut self, now: Instant, call: u64, out: &mut Out<T>) {
        let Some(under_way) = self.calls.get_mut(&call) else { return };
        under_way.is_cancelled = true;
        if self.tamper.heeds_cancel() {
            return self.step(now, Input::Cancel { call }, out);
        }
        if !matches!(under_way.step, Step::Close { .. }) {
            let result = Err(Failure::Cancelled);
            self.follow(now, vec![Output::Return { call, result }], out);
        }
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
                    let bytes = match &self.ear {
                        Some((_, ear)) => ear.seal(request),
                        None => Circle::alone().encode(Message::Request(request)),
                    };
                    let (sent, forged) = self.tamper.outward(bytes);
                    for bytes in sent {
                        self.send(now, bytes, out);
                    }
                    for bytes in forged {
                        self.deliver(now, bytes, out);
                    }
                }
                Output::Return { call, result } => {
                    let Some(call) = self.calls.remove(&call) else { continue };
                    let index = call.program;
                    let outcome = outcome(self.tamper.result(result));
                    self.told(now, call, outcome, out);
                    if let Some(index) = index {
                        self.programs[index].cancel_at = None;
                        self.think(now, index);
                    }
                }
                Output::Forget { .. } => {}
                Output::Recalled(wanted) => {
                    out.mark("bytes are told before they are given up");
                    let pause = Duration::from_micros(self.rng.below(20_000));
                    self.yields.push((now + pause, wanted));
                }
                Output::Lost { operations, .. } => {
                    out.mark("a session is lost");
                    if !operations.is_empty() {
                        out.mark("operations are lost with their session");
                    }
                    out.note(Note::Bereft);
                    self.owes_loss = true;
                    self.begin_life(out);
                    for seat in &mut self.programs {
                        seat.program.lose_handle();
                    }
                }
            }
        }
    }

    fn send(&mut self, now: Instant, bytes: Vec<u8>, out: &mut Out<T>) {
        let Some((circle, ear)) = &mut self.ear else {
            return out.send(SERVER, Letter::Upward(bytes));
        };
        let mut said = Vec::new();
        // A member hears all that its own machine wants, and the leader perhaps too.
        if self.rng.chance(TWO_WAYS) {
            said.push((*self.rng.pick(ear.seats()), bytes.clone()));
            out.mark("a question goes two ways");
        }
        ear.say(now, bytes, &mut said);
        for (seat, bytes) in said {
            if let Some(node) = circle.node(seat) {
                out.send(node, Letter::Upward(bytes));
            }
        }
    }

    fn told(&mut self, now: Instant, call: Call, outcome: Outcome, out: &mut Out<T>) {
        self.mark(&call.step, &outcome, out);
        if !self.has_excuse(&call, &outcome) {
            out.note(Note::Needless { step: call.step.clone(), outcome: outcome.clone() });
        }
        let Call { program, tag, step, life, .. } = call;
        match (&step, &outcome) {
            (Step::Open { .. }, Outcome::Seen(Seen::Handle(handle))) => {
                self.handles.insert(*handle, self.life);
            }
            (Step::Close { handle }, Outcome::Seen(_) | Outcome::Lost) => {
                self.handles.remove(handle);
            }
            (Step::Sync, Outcome::Lost) if life == self.life => self.owes_loss = false,
            _ => {}
        }
        if program.is_none() && !matches!(outcome, Outcome::Seen(_)) {
            self.sync_at = Some(now + Duration::from_millis(100));
        }
        let index = program.unwrap_or(0);
        let program = &mut self.programs[index].program;
        program.see(&step, &outcome);
        let (life, actor) = (self.life, program.actor.clone());
        out.note(Note::Did { life, program: index, tag, actor, step, outcome });
    }

    /// Whether the system may have failed to do this.
    fn has_excuse(&self, call: &Call, outcome: &Outcome) -> bool {
        let of_life = |life: u32| self.handles.values().filter(|of| **of == life).count();
        match outcome {
            Outcome::Seen(_) | Outcome::Refused(_) => true,
            Outcome::Cancelled => call.is_cancelled,
            Outcome::Busy => {
                let is_open = matches!(call.step, Step::Open { .. });
                let is_crowded = is_open && of_life(self.life) >= self.settings.handles_max;
                is_crowded || self.settings.calls_max < CALLS_ENOUGH
            }
            Outcome::Lost => match call.step.handle() {
                _ if call.life < self.life => true,
                Some(handle) => self.handles.get(&handle).is_some_and(|life| *life < self.life),
                None => call.step == Step::Sync && self.owes_loss,
            },
        }
    }

    fn mark(&self, step: &Step, outcome: &Outcome, out: &mut Out<T>) {
        match (step, outcome) {
            (_, Outcome::Cancelled) => out.mark("a call is cancelled"),
            (Step::Open { .. }, Outcome::Busy) => out.mark("too many files are open"),
            (Step::Open { .. }, Outcome::Refused("EBUSY")) => out.mark("a share mode excludes"),
            (Step::TestLock { .. }, Outcome::Seen(Seen::Lock(Some(_)))) => {
                out.mark("a lock is in the way");
            }
            (Step::List { .. }, Outcome::Seen(Seen::Names(_, false))) => {
                out.mark("a listing has more pages");
            }
            (_, Outcome::Refused("ENOSPC")) => out.mark("no space is left"),
            (_, Outcome::Refused("EDQUOT")) => out.mark("a share is used up"),
            _ => {}
        }
    }
}
