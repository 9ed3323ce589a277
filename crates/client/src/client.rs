//! The client: told what programs ask and what the group says, it answers both.

use std::collections::BTreeMap;

use base::{Duration, FileId, Instant, Machine};
use directory::{
    Actor, Charges, Operation, Refusal,
    message::{Ask, Request, Response},
    record::{Content, File},
};
use lease::{
    Field, Holder, Kind, Knowledge, Scope, Terms,
    holder::{Input as Lease, Output as Held},
    message::{Recall, Up, Upward},
};

use crate::{
    ahead::Strides,
    call::{Asked, Call, Failure, Reply},
    facts::Facts,
    handles::Handles,
    pending::Pending,
    questions::Questions,
    queue::{Job, Queue, Waiting, Waits},
    supply::Supply,
};

/// A client of one group.
#[derive(Debug)]
pub struct Client {
    pub(crate) settings: Settings,
    pub(crate) holder: Holder,
    pub(crate) facts: Facts,
    pub(crate) supply: Supply,
    pub(crate) handles: Handles,
    pub(crate) pending: Pending,
    pub(crate) questions: Questions,
    pub(crate) queue: Queue,
    /// Leases that go back when everything up to a place is applied. At most as many as there are
    /// leases, and parts of them.
    pub(crate) returning: Vec<Returning>,
    /// What is wanted back, and is kept until whoever keeps bytes has said what became of them. At most as
    /// many as there may be leases.
    pub(crate) recalled: BTreeMap<Wanted, Recall>,
    /// Those of them of which whoever keeps bytes has not heard yet, because nothing can be told before the session
    /// is renewed.
    pub(crate) untold: Vec<Wanted>,
    /// Leases on files that are no more, to be given back together. At most [`LITTER_MAX`].
    pub(crate) litter: Vec<(Scope, Kind)>,
    pub(crate) litter_at: Option<Instant>,
    /// When to say again that the session goes on, while somebody waits for that.
    pub(crate) renew_at: Option<Instant>,
    /// What the group was last told of the room on this machine, in this session.
    pub(crate) told_free: Option<u64>,
    /// The next `Sync` without a handle has to say that something was lost.
    pub(crate) owes_loss: bool,
    /// Why the group did not apply something.
    pub(crate) refused: Option<Refusal>,
    /// What there is to say at the end of this step.
    pub(crate) upward: Vec<Upward>,
    pub(crate) asking: Vec<Ask>,
    /// A directory in which numbers may run low, and what was last paid for: to be looked at again when what is on
    /// its way has arrived.
    pub(crate) ahead: Option<(Option<FileId>, Charges)>,
    /// How programs go through directories.
    pub(crate) strides: Strides,
    /// A file that was just closed and may have lost its last name.
    pub(crate) closed: Option<FileId>,
    /// A question was dropped whose answer somebody waits for.
    pub(crate) is_shaken: bool,
    /// Directories whose times were told as they were known before, and the requests that ask what they are
    /// now. At most as many as there may be calls.
    pub(crate) late: BTreeMap<FileId, u64>,
}

/// A lease, or a part of it, that goes back soon.
#[derive(Debug)]
pub(crate) struct Returning {
    pub(crate) lease: Scope,
    pub(crate) kind: Kind,
    pub(crate) part: Scope,
    /// When everything up to this place is applied.
    pub(crate) place: u64,
}

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The terms of its leases; the group must have the same.
    pub terms: Terms,
    /// Which client it is.
    pub client: lease::Client,
    /// The number of its first session; each time that it starts it needs a greater one.
    pub session: u64,
    /// The most leases that it holds; the group's policy must allow as many.
    pub budget: usize,
    /// The most files and names that it remembers.
    pub facts_max: usize,
    /// How long an operation waits for others to be pushed with it.
    pub push_after: Duration,
    /// The most operations in one message. A large one counts as several.
    pub batch_max: usize,
    /// The most operations that wait to be acknowledged.
    pub pending_max: usize,
    /// The most calls that wait for something.
    pub calls_max: usize,
    /// Whether whoever calls remembers what it is told: then it hears what it has to forget, and is asked for
    /// its last words before the right to change a content goes.
    pub has_memory: bool,
    /// The most open files. Each may take a few leases, which can't be given back meanwhile.
    pub handles_max: usize,
    /// For so many bytes more its machine has room when it starts.
    pub free: u64,
    /// The most that have locked files, counted once for each of them; the group allows no more.
    pub lockers_max: usize,
}

impl Settings {
    /// The usual settings for a client.
    pub fn of(client: lease::Client) -> Settings {
        Settings {
            terms: Terms::default(),
            client,
            session: 1,
            budget: 100_000,
            facts_max: 1_000_000,
            push_after: Duration::from_secs(1),
            batch_max: 1_000,
            pending_max: 10_000,
            calls_max: 1_024,
            handles_max: 16_384,
            free: u64::MAX,
            lockers_max: directory::LOCKED_MAX,
            has_memory: false,
        }
    }
}

/// What happens to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A program asks for something.
    Call {
        /// Names the call in its answer.
        call: u64,
        /// On whose behalf.
        actor: Actor,
        /// When on this machine's wall clock, in nanoseconds since 1970.
        time: i64,
        /// For what.
        what: Call,
    },
    /// Whoever made a call does not wait any more. A `Close` goes on.
    Cancel {
        /// Which call.
        call: u64,
    },
    /// The group has said something.
    Heard(Response),
    /// It starts: whatever an earlier life has left with the group is to be let go.
    Begin,
    /// It is about to end, and everything that was done is pushed: whatever it holds is let go.
    End,
    /// For so many bytes more its machine has room: to be said now and then.
    Free(u64),
    /// Everything that there was to say of contents in something that is wanted back is said.
    Yield(Wanted),
}

/// Something that is wanted back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// The lease.
    pub lease: Scope,
    /// The part of it.
    pub part: Scope,
}

/// What a client wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Tell the group.
    Send(Request),
    /// A call is over.
    ///
    /// This comes in the very step in which the client performed it, on what it knew at that moment
    /// under its leases. So of all clients' calls, those steps, in the order in which they are taken,
    /// are an order in which everything has happened.
    Return {
        /// Which call.
        call: u64,
        /// What came of it.
        result: Result<Reply, Failure>,
    },
    /// Whoever remembers what it was told of this must not rely on it any more. What comes after this, only
    /// after it was forgotten.
    Forget {
        /// What.
        part: Scope,
        /// The number of the file that it is about, if that is known.
        serial: Option<u64>,
    },
    /// Something is wanted back that it takes to change contents: they have to be told as they are now, which
    /// can still be done, and then [`Input::Yield`].
    Recalled(Wanted),
    /// The session is lost, and with it every handle and everything that was not pushed.
    Lost {
        /// What the group has not acknowledged, whole and in order: to be kept for whoever did it.
        operations: Vec<Operation>,
        /// So many of the first of these were sent: the group may have applied them, all or none.
        sent: usize,
        /// Why the group did not apply the first of these, if that is how the session ended.
        refused: Option<Refusal>,
    },
}

/// The most leases on files that are no more.
const LITTER_MAX: usize = 1_024;

impl Client {
    /// A client that knows nothing yet.
    pub fn new(settings: Settings) -> Client {
        let settings = crate::graph::limited(settings);
        Client {
            settings,
            holder: Holder::new(settings.terms, settings.session),
            facts: Facts::default(),
            supply: Supply::default(),
            handles: Handles::default(),
            pending: Pending::new(),
            questions: Questions::new(settings.terms.repeat),
            queue: Queue::new(),
            returning: Vec::new(),
            recalled: BTreeMap::new(),
            untold: Vec::new(),
            litter: Vec::new(),
            litter_at: None,
            renew_at: None,
            told_free: None,
            owes_loss: false,
            refused: None,
            upward: Vec::new(),
            asking: Vec::new(),
            ahead: None,
            strides: Strides::default(),
            closed: None,
            is_shaken: false,
            late: BTreeMap::new(),
        }
    }

    /// The number of its present session.
    pub fn session(&self) -> u64 {
        self.holder.session()
    }

    /// How many operations the group has not acknowledged.
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// The place of the last operation that was performed here, in the order in which they are pushed.
    pub fn place(&self) -> u64 {
        self.pending.place()
    }

    /// Whether the group has everything up to a place.
    pub fn is_pushed(&self, place: u64) -> bool {
        !self.pending.has_until(place)
    }

    /// Until when what it has said can be relied on, if nothing is said to be forgotten before.
    pub fn relied_until(&self) -> Instant {
        self.holder.relied_until()
    }

    /// A file's content, if that is right now, and may be changed if need be.
    pub fn holds(&self, now: Instant, file: &FileId, writes: bool) -> Option<&Content> {
        let is_known = |field: Field, may_write: bool| match self.holder.knows(now, &field.of(file))
        {
            Knowledge::Writes => true,
            Knowledge::Reads => !may_write,
            Knowledge::None => false,
        };
        let is_held = is_known(Field::Content, writes)
            && (!writes || is_known(Field::Times, true) && is_known(Field::Access, false));
        let record = self.facts.record(file).filter(|_| self.facts.has(file, &Field::Content));
        record.map(|record| &record.content).filter(|_| is_held)
    }

    /// A file's record, if who may use it how is known right now.
    pub fn knows_access(&self, now: Instant, file: &FileId) -> Option<&File> {
        let is_known = self.holder.knows(now, &Field::Access.of(file)) != Knowledge::None;
        let record = self.facts.record(file).filter(|_| self.facts.has(file, &Field::Access));
        record.map(|record| &**record).filter(|_| is_known)
    }

    /// How many leases it holds.
    pub fn lease_count(&self) -> usize {
        self.holder.lease_count()
    }

    /// How many files and names it remembers.
    pub fn fact_count(&self) -> usize {
        self.facts.size()
    }

    fn on_call(&mut self, now: Instant, call: u64, asked: Asked, out: &mut Vec<Output>) {
        // Whoever closes a file can't do so later, and there are only so many open files.
        let spare = match asked.what {
            Call::Close { .. } => self.settings.handles_max,
            _ => 0,
        };
        if self.queue.load() + self.questions.len() >= self.settings.calls_max + spare {
            return out.push(Output::Return { call, result: Err(Failure::Busy) });
        }
        self.attempt(now, Waiting::new(Job::Call(call, asked)), out);
    }

    fn on_cancel(&mut self, call: u64, out: &mut Vec<Output>) {
        if self.queue.cancel(call) {
            out.push(Output::Return { call, result: Err(Failure::Cancelled) });
        }
    }

    /// Tells the holder something and does what it wants done.
    pub(crate) fn tell(&mut self, now: Instant, input: Lease, out: &mut Vec<Output>) {
        let mut wanted = Vec::new();
        self.holder.step(now, input, &mut wanted);
        self.absorb(now, wanted, out);
    }

    pub(crate) fn absorb(&mut self, now: Instant, wanted: Vec<Held>, out: &mut Vec<Output>) {
        for output in wanted {
            match output {
                Held::Send(message) => self.upward.push(message),
                // Before anything else is heard: what was granted could be wanted back by then.
                Held::Met(request) => self.on_met(now, request, out),
                Held::Refused(request, why) => self.on_refused(now, request, why, out),
                Held::Push { lease, kind, part } => self.on_push(now, lease, kind, part, out),
                Held::Lost => self.on_lost(now, out),
            }
        }
    }

    /// What every step ends with.
    fn finish(&mut self, now: Instant, out: &mut Vec<Output>) {
        while std::mem::take(&mut self.is_shaken) {
            self.retry(now, |waits| matches!(waits, Waits::Values), out);
        }
        if self.litter.len() >= LITTER_MAX {
            self.give_back_litter(now, out);
        }
        self.make_room(now, out);
        let Settings { push_after, batch_max, terms, .. } = self.settings;
        // Before anything else that is asked: the answer should rest on it.
        if let Some(batch) = self.pending.batch(now, push_after, batch_max, terms.repeat) {
            self.asking.insert(0, batch);
        }
        self.flush(now, out);
    }

    /// Says what there is to say, in as few messages as it takes.
    fn flush(&mut self, now: Instant, out: &mut Vec<Output>) {
        let mut upward: Vec<Upward> = Vec::new();
        for message in self.upward.drain(..) {
            match (upward.last_mut().map(|last| &mut last.body), message.body) {
                (
                    Some(Up::Return { number: last, returns: before }),
                    Up::Return { number, returns },
                ) => {
                    // The later number stands for both: they arrive together or not at all.
                    *last = number;
                    before.extend(returns);
                }
                (_, body) => upward.push(Upward { body, ..message }),
            }
        }
        let mut asking = self.asking.drain(..);
        for lease in upward {
            out.push(Output::Send(Request { lease, ask: asking.next() }));
        }
        for ask in asking {
            let lease = self.holder.renewal(now);
            out.push(Output::Send(Request { lease, ask: Some(ask) }));
        }
    }

    /// Gives up if something that was done would outlive the leases that it was done under.
    fn check_ends(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.pending.ends_at() <= now {
            self.abandon(now, out);
        }
    }

    pub(crate) fn abandon(&mut self, now: Instant, out: &mut Vec<Output>) {
        let mut wanted = Vec::new();
        self.holder.abandon(now, &mut wanted);
        self.absorb(now, wanted, out);
    }
}

impl Machine for Client {
    type Input = Input;
    type Output = Output;

    fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        self.check_ends(now, out);
        match input {
            Input::Call { call, actor, time, what } => {
                self.on_call(now, call, Asked { actor, time, what }, out);
            }
            Input::Cancel { call } => self.on_cancel(call, out),
            Input::Heard(response) => self.on_heard(now, response, out),
            Input::Yield(wanted) => self.on_yield(now, wanted, out),
            Input::Free(bytes) => self.on_free(now, bytes),
            // A session with a greater number ends the one before.
            Input::Begin => self.renew(now),
            Input::End => {
                self.abandon(now, out);
                self.renew(now);
            }
        }
        self.finish(now, out);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.check_ends(now, out);
        let mut wanted = Vec::new();
        self.holder.tick(now, &mut wanted);
        self.absorb(now, wanted, out);
        let again = self.questions.repeat(now);
        self.asking.extend(again);
        if self.renew_at.is_some_and(|at| at <= now) {
            self.renew(now);
        }
        if self.litter_at.is_some_and(|at| at <= now) {
            self.give_back_litter(now, out);
        }
        self.retry(now, |waits| matches!(waits, Waits::Later(at) if *at <= now), out);
        self.answer_late(now, out);
        self.finish(now, out);
    }

    fn wake_at(&self) -> Option<Instant> {
        let Settings { push_after, batch_max, .. } = self.settings;
        let ends_at = Some(self.pending.ends_at()).filter(|at| *at < Instant::END);
        let all = [
            self.holder.wake_at(),
            self.questions.wake_at(),
            self.pending.wake_at(push_after, batch_max),
            self.queue.wake_at(),
            self.renew_at,
            self.litter_at,
            ends_at,
        ];
        all.into_iter().flatten().min()
    }
}
