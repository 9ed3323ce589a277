//! Runs the client of this machine for whoever calls.
//!
//! A call that the client can answer at once is answered on the caller's own thread. Another waits for
//! what the group says, but never longer than [`CALL_MAX`]: whoever waits in the kernel can't be
//! interrupted. A slow disk of this machine is waited for, as with any file system.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use base::{FileId, Instant, Machine, PublicKey};
use client::{Call, Client, Failure, Input, Output, Reply, Settings, Wanted};
use directory::{
    Act, Actor, Operation, Refusal,
    message::{Ask, Request},
    record::{Access, Content},
};
use lease::Scope;
use node::mailroom::Kind;
use overlay::Profile;
use wire::{Answer, IoReply};

use crate::{cell::IoRequest, clock::Clock, group::Post, mailbox::Mailbox};

/// The longest that a call waits.
pub const CALL_MAX: Duration = Duration::from_secs(60);
/// And when the machine is about to stop: with too many others gone, nobody would ever answer.
const CALL_LAST_MAX: Duration = Duration::from_secs(15);
/// How long whoever knows only the number of a file waits.
const FIND_MAX: Duration = Duration::from_secs(3);
/// Whoever is at work for longer than this waits for the disk.
const SLOW: Duration = Duration::from_secs(1);
/// While something is under way, deadlines are looked at as often as this.
const BEAT: Duration = Duration::from_millis(100);

/// Whoever remembers what the client has said: the kernel, on whose behalf it is asked. Called while the
/// client waits, so it has to be quick, and may not call the client.
pub trait Memory: Send + Sync {
    /// What was said of this may not be relied on any more. The number is that of the file, if it is known.
    fn forget(&self, part: &Scope, serial: Option<u64>);
    /// The right to change contents in this is wanted back: what is not told has to be, and then
    /// [`Desk::give_up`].
    fn recalled(&self, wanted: Wanted);
    /// The directory may not know of the bytes that these files have here.
    fn look(&self, files: Vec<FileId>);
    /// Another machine wants something done to the bytes of a file. Unlike the others this may call the client, and
    /// wait.
    fn serve(&self, request: IoRequest<'_>) -> IoReply;
}

/// What the client says to its group.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) request: Request,
    /// Whether it speaks of bytes in files, which must be safe before it is heard.
    pub(crate) tells_content: bool,
}

/// The client of this machine.
pub struct Desk {
    state: Mutex<State>,
    /// The keeper of time has something to do.
    woken: Condvar,
    /// How often something may have been lost with a session.
    losses: AtomicU64,
    /// Until when what was said can be relied on, in nanoseconds.
    relied_until: AtomicU64,
    /// The next number of a content.
    version_next: AtomicU64,
    me: lease::Client,
    /// The users that the machine acts for, by number; none if it acts for any.
    users: RwLock<Option<BTreeMap<u32, Profile>>>,
    /// The machine is about to stop.
    is_ending: AtomicBool,
    memory: Mutex<Option<Weak<dyn Memory>>>,
    clock: Clock,
    group: Arc<Mailbox<Post>>,
    /// Takes what was lost with a session.
    on_lost: Box<dyn Fn(Lost) + Send + Sync>,
}

/// What was not pushed when a session was lost.
pub(crate) struct Lost {
    pub(crate) operations: Vec<Operation>,
    /// Why.
    pub(crate) refused: Option<directory::Refusal>,
}

struct State {
    client: Client,
    call_next: u64,
    /// The calls that wait. Bounded by the client's settings: it refuses more.
    waiting: BTreeMap<u64, Arc<Waiting>>,
    out: Vec<Output>,
    /// For tests: the call that is the last.
    dies_at: Option<u64>,
    /// Up to this place something was lost with a session.
    lost_until: u64,
    /// Whether anything has happened since the keeper of time last looked.
    is_stirred: bool,
    /// The group can't go on.
    is_broken: bool,
    is_over: bool,
}

#[derive(Default)]
struct Waiting {
    result: Mutex<Option<Result<Reply, Failure>>>,
    returned: Condvar,
}

impl Desk {
    pub(crate) fn start(
        settings: Settings,
        clock: Clock,
        group: Arc<Mailbox<Post>>,
        on_lost: Box<dyn Fn(Lost) + Send + Sync>,
    ) -> (Arc<Desk>, thread::JoinHandle<()>) {
        let me = settings.client;
        // As those of sessions, these are never used again in a later life.
        let version_next = AtomicU64::new(settings.session);
        let state = State {
            client: Client::new(settings),
            call_next: 1,
            waiting: BTreeMap::new(),
            out: Vec::new(),
            dies_at: None,
            lost_until: 0,
            is_stirred: false,
            is_broken: false,
            is_over: false,
        };
        let state = Mutex::new(state);
        let (woken, losses) = (Condvar::new(), AtomicU64::new(0));
        let (relied_until, memory) = (AtomicU64::new(0), Mutex::new(None));
        let desk = Arc::new(Desk {
            state,
            woken,
            losses,
            relied_until,
            version_next,
            me,
            users: RwLock::default(),
            is_ending: AtomicBool::new(false),
            memory,
            clock,
            group,
            on_lost,
        });
        // Else others would wait until the session of the life before has lapsed.
        desk.step(&mut desk.lock(), Input::Begin, &mut |_, with| Some(with));
        let keeper = Arc::clone(&desk);
        let thread = thread::spawn(move || keeper.keep_time());
        (desk, thread)
    }

    /// Asks the client for something, and waits for the answer.
    pub fn call(&self, actor: &Actor, what: Call) -> Result<Reply, Failure> {
        self.call_within(actor, what, None)
    }

    /// The same, and for how long, if whoever asks can do without.
    pub fn call_within(
        &self,
        actor: &Actor,
        what: Call,
        most: Option<Duration>,
    ) -> Result<Reply, Failure> {
        let actor = self.known(actor, &what)?;
        let mut state = self.lock();
        if state.is_broken && matches!(what, Call::Do(_) | Call::Sync { .. } | Call::Settle) {
            return Err(Failure::Lost);
        }
        let call = state.call_next;
        state.call_next += 1;
        let input = Input::Call { call, actor, time: self.clock.wall(), what };
        let mut result = None;
        if state.dies_at == Some(call) {
            std::process::abort();
        }
        self.step(&mut state, input, &mut |returned, with| {
            if returned == call {
                result = Some(with);
                None
            } else {
                Some(with)
            }
        });
        if let Some(result) = result {
            return result;
        }
        if state.is_broken {
            return Err(Failure::Lost);
        }
        let waiting = Arc::new(Waiting::default());
        state.waiting.insert(call, Arc::clone(&waiting));
        drop(state);
        let is_ending = self.is_ending.load(Ordering::Relaxed);
        let usual = if is_ending { CALL_LAST_MAX } else { CALL_MAX };
        let mut result = waiting.wait(most.unwrap_or(usual));
        while result.is_none() && most.is_none() && self.group.away() > SLOW {
            result = waiting.wait(CALL_LAST_MAX);
        }
        if let Some(result) = result {
            return result;
        }
        self.step(&mut self.lock(), Input::Cancel { call }, &mut |_, with| Some(with));
        // It may have come to its end at the last moment; a call that can't be cancelled goes on.
        self.lock().waiting.remove(&call);
        waiting.wait(Duration::ZERO).unwrap_or(Err(Failure::Cancelled))
    }

    /// From now on the machine acts for these users; for any, if none are named.
    pub(crate) fn serve(&self, users: Option<Vec<Profile>>) {
        let users = users.map(|users| users.into_iter().map(|user| (user.uid, user)).collect());
        *self.users.write().unwrap_or_else(PoisonError::into_inner) = users;
    }

    /// Whether the machine acts for the user with this number.
    pub fn may_be(&self, uid: u32) -> bool {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        users.as_ref().is_none_or(|users| users.contains_key(&uid))
    }

    /// The names of those it acts for, or the word for any.
    pub(crate) fn acts_for(&self) -> Vec<String> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        match &*users {
            None => vec!["any".into()],
            Some(users) => users.values().map(|user| user.name.to_string()).collect(),
        }
    }

    /// Whoever acts, as the cell knows them: the groups that they are in are the cell's affair, and their own group
    /// stands for one that it does not know. The group would refuse what anybody else does here, so it is refused
    /// before it is done.
    fn known(&self, actor: &Actor, what: &Call) -> Result<Actor, Failure> {
        let is_act = matches!(what, Call::Do(act) if !act.is_nobodys());
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        let Some(users) = users.as_ref().filter(|_| is_act) else { return Ok(actor.clone()) };
        let user = users.get(&actor.uid).ok_or(Failure::Refused(Refusal::NotYourUser))?;
        let gids = user.gids();
        let gid = if gids.contains(&actor.gid) { actor.gid } else { user.gid };
        Ok(Actor { uid: user.uid, gid, groups: gids.into_iter().collect() })
    }

    /// Which client it is.
    pub fn me(&self) -> lease::Client {
        self.me
    }

    /// From now on this is told what to forget, in place of whoever was before, until it is dropped.
    pub fn remember(&self, memory: &Arc<dyn Memory>) {
        let mut known = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(Arc::downgrade(memory));
    }

    /// How long what is said now can be relied on, unless it is said to be forgotten.
    pub fn validity(&self) -> Duration {
        let until = Instant::from_nanos(self.relied_until.load(Ordering::Acquire));
        until.since(self.clock.now())
    }

    /// The content of a file, if it is held now, and may be changed if need be.
    pub fn holds(&self, file: &FileId, writes: bool) -> Option<Content> {
        self.lock().client.holds(self.clock.now(), file, writes).cloned()
    }

    /// A number for a content that no other content of this machine ever has.
    pub fn version(&self) -> u64 {
        self.version_next.fetch_add(1, Ordering::Relaxed)
    }

    /// All is told that there was to tell of something that is wanted back.
    pub fn give_up(&self, wanted: Wanted) {
        self.step(&mut self.lock(), Input::Yield(wanted), &mut |_, with| Some(with));
    }

    /// The directory may not know of the bytes that these files have here. Whether there is anybody to look.
    pub(crate) fn look(&self, files: Vec<FileId>) -> bool {
        let memory = self.memory();
        memory.map(|memory| memory.look(files)).is_some()
    }

    /// Another machine wants something done to the bytes of a file; nothing, if nobody has mounted the tree.
    pub(crate) fn serve_io(&self, request: IoRequest<'_>) -> Option<IoReply> {
        Some(self.memory()?.serve(request))
    }

    /// For so many bytes more there is room on this machine.
    pub fn has_room(&self, bytes: u64) {
        self.step(&mut self.lock(), Input::Free(bytes), &mut |_, with| Some(with));
    }

    /// Whether the machine acts for any user.
    pub fn acts_for_any(&self) -> bool {
        self.users.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// The machine is about to stop: from now on nobody waits for long.
    pub fn hurry(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// The place of the last operation that was performed here.
    pub fn place(&self) -> u64 {
        self.lock().client.place()
    }

    /// How many sessions were lost so far. What was done when there were fewer may be undone.
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// Whether everything up to a place is safe with the group. What was lost never is.
    pub fn is_pushed(&self, place: u64) -> bool {
        let state = self.lock();
        place > state.lost_until && state.client.is_pushed(place)
    }

    /// For tests: the process ends in the midst of this call, counted from the start.
    pub fn die_at(&self, call: Option<u64>) {
        self.lock().dies_at = call;
    }

    /// What the client holds and owes.
    pub fn standing(&self) -> Standing {
        let state = self.lock();
        let client = &state.client;
        Standing {
            session: client.session(),
            pending: client.pending_count(),
            leases: client.lease_count(),
            facts: client.fact_count(),
        }
    }

    /// The file with an inode number, as far as this machine's member of the group has heard.
    pub(crate) fn find(&self, serial: u64) -> Result<Answer, crate::Failure> {
        let (reply, found) = mpsc::sync_channel(1);
        self.group.post(Kind::Word, Post::Find { serial, reply });
        found.recv_timeout(FIND_MAX).map_err(|_| crate::Failure::Stopped)
    }

    /// For whom a machine acts and who may use a file how, as far as this machine's member of the group has heard.
    pub(crate) fn rights(
        &self,
        machine: PublicKey,
        serial: u64,
        file: FileId,
    ) -> Result<Answer, crate::Failure> {
        let (reply, rights) = mpsc::sync_channel(1);
        self.group.post(Kind::Word, Post::Rights { machine, serial, file, reply });
        rights.recv_timeout(FIND_MAX).map_err(|_| crate::Failure::Stopped)
    }

    /// Who may use a file how, if that is known now and nobody else can change it meanwhile.
    pub(crate) fn access(&self, serial: u64, file: &FileId) -> Option<Access> {
        let state = self.lock();
        let record = state.client.knows_access(self.clock.now(), file)?;
        (record.serial == serial).then_some(record.access)
    }

    /// The group has said something.
    pub(crate) fn hear(&self, bytes: &[u8]) {
        if let Ok(response) = wire::decode(bytes) {
            let input = Input::Heard(response);
            self.step(&mut self.lock(), input, &mut |_, with| Some(with));
        }
    }

    /// The group can't go on. Whoever waits is told, and so is everybody from now on.
    pub(crate) fn fail(&self, failure: &crate::Failure) {
        eprintln!("croft: {failure}");
        eprintln!(
            "croft: nothing more can be changed or made safe; mend the cause and start again"
        );
        let mut state = self.lock();
        state.is_broken = true;
        for (_, waiting) in std::mem::take(&mut state.waiting) {
            waiting.put(Err(Failure::Lost));
        }
    }

    /// Lets go of everything that is held, when all that was done is pushed: nobody has to wait for it.
    pub(crate) fn leave(&self) {
        self.step(&mut self.lock(), Input::End, &mut |_, with| Some(with));
    }

    /// Nobody calls any more.
    pub(crate) fn stop(&self) {
        self.lock().is_over = true;
        self.woken.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, state: &mut State, input: Input, returned: &mut Returned<'_>) {
        let State { client, out, .. } = state;
        client.step(self.clock.now(), input, out);
        self.follow(state, returned);
        if !state.is_stirred {
            state.is_stirred = true;
            self.woken.notify_one();
        }
    }

    /// Does what the client wants done.
    fn follow(&self, state: &mut State, returned: &mut Returned<'_>) {
        let mut out = std::mem::take(&mut state.out);
        let mut unremembered = Vec::new();
        for output in out.drain(..) {
            match output {
                // What finds no room is said again.
                Output::Send(request) => {
                    _ = self.group.post(Kind::Wish, Post::Letter(letter(request)))
                }
                Output::Return { call, result } => {
                    if let Some(result) = returned(call, result)
                        && let Some(waiting) = state.waiting.remove(&call)
                    {
                        waiting.put(result);
                    }
                }
                Output::Forget { part, serial } => {
                    if let Some(memory) = self.memory() {
                        memory.forget(&part, serial);
                    }
                }
                Output::Recalled(wanted) => match self.memory() {
                    Some(memory) => memory.recalled(wanted),
                    None => unremembered.push(wanted),
                },
                Output::Lost { operations, refused, .. } => {
                    state.lost_until = state.client.place();
                    self.losses.fetch_add(1, Ordering::AcqRel);
                    let written = |operation: &Operation| match &operation.act {
                        Act::SetContent { file, .. } => Some(file.clone()),
                        _ => None,
                    };
                    self.look(operations.iter().filter_map(written).collect());
                    (self.on_lost)(Lost { operations, refused });
                }
            }
        }
        state.out = out;
        self.relied_until.store(state.client.relied_until().as_nanos(), Ordering::Release);
        // Nobody has bytes that could be told of.
        for wanted in unremembered {
            let State { client, out, .. } = state;
            client.step(self.clock.now(), Input::Yield(wanted), out);
            self.follow(state, returned);
        }
    }

    fn memory(&self) -> Option<Arc<dyn Memory>> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.as_ref().and_then(Weak::upgrade)
    }

    /// Lets deadlines pass, until [`Desk::stop`].
    fn keep_time(&self) {
        let mut state = self.lock();
        while !state.is_over {
            let now = self.clock.now();
            if state.client.wake_at().is_some_and(|at| at <= now) {
                let State { client, out, .. } = &mut *state;
                client.tick(now, out);
                self.follow(&mut state, &mut |_, with| Some(with));
            }
            let wait = match std::mem::take(&mut state.is_stirred) {
                true => BEAT,
                false => state.client.wake_at().map_or(Duration::MAX, |at| pause(now, at)),
            };
            let waited = self.woken.wait_timeout_while(state, wait, |state| {
                // Within a beat it is soon enough.
                (wait == BEAT || !state.is_stirred) && !state.is_over
            });
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Told of a call that has ended; hands the result back if somebody else waits for it.
type Returned<'a> = dyn FnMut(u64, Result<Reply, Failure>) -> Option<Result<Reply, Failure>> + 'a;

/// What a client holds and owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Standing {
    /// The number of its session.
    pub session: u64,
    /// Operations that the group has not acknowledged.
    pub pending: usize,
    /// Leases that it holds.
    pub leases: usize,
    /// Files and names that it remembers.
    pub facts: usize,
}

impl Waiting {
    fn put(&self, result: Result<Reply, Failure>) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.returned.notify_one();
    }

    fn wait(&self, most: Duration) -> Option<Result<Reply, Failure>> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.returned.wait_timeout_while(result, most, |result| result.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.take()
    }
}

fn letter(request: Request) -> Letter {
    let tells_content = match &request.ask {
        Some(Ask::Batch { operations, .. }) => {
            operations.iter().any(|operation| matches!(operation.act, Act::SetContent { .. }))
        }
        _ => false,
    };
    Letter { request, tells_content }
}

/// How long until then, and a little: clocks of waits are coarse, and early is for nothing.
fn pause(now: Instant, at: Instant) -> Duration {
    at.since(now) + Duration::from_millis(1)
}
