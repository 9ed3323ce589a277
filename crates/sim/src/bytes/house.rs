//! What the threads of one simulated machine share: its client, its disk, its open files, and what it says.

use std::{
    cell::{RefCell, RefMut},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use base::{Duration, FileId, Instant, Machine, Rng};
use client::{Call, Client, Failure, Input, Output, Reply, Settings, Wanted};
use content::{Body, Contests, File, Ledger, Seen, Silence};
use directory::{Act, Actor as User, Operation, record::Content};
use lease::{Field, Scope};

use crate::Node;

use super::{
    actor::{Answer, GROUP, Letter, Note, Query, node_of},
    disk::{Backing, Disk},
    tamper::Tamper,
    thread::Thread,
};

/// A call waits so long, and no longer.
pub(crate) const CALL_MAX: Duration = Duration::from_secs(60);
/// What is said to another machine and not answered is said again.
const AGAIN: Duration = Duration::from_millis(250);

/// One machine. Threads have it in common.
pub(crate) struct House<T: Tamper>(Rc<Shared<T>>);

impl<T: Tamper> Clone for House<T> {
    fn clone(&self) -> House<T> {
        House(Rc::clone(&self.0))
    }
}

struct Shared<T> {
    me: lease::Client,
    state: RefCell<State>,
    tamper: T,
}

/// What changes.
pub(crate) struct State {
    pub(crate) now: Instant,
    pub(crate) client: Client,
    pub(crate) rng: Rng,
    pub(crate) disk: Disk,
    pub(crate) silence: Silence,
    pub(crate) contests: Contests,
    pub(crate) losses: u64,
    lost_until: u64,
    version_next: u64,
    /// How often the directory was told of bytes.
    pub(crate) told: u64,
    /// Bounded by the files that there are.
    pub(crate) opens: BTreeMap<FileId, Rc<RefCell<Open>>>,
    pub(crate) yielding: Vec<Scope>,
    /// What is to be given up, in order. Bounded by the client.
    pub(crate) recalled: Vec<Wanted>,
    /// What is to be looked at, in order, and whether what the directory was told may be lost.
    pub(crate) looks: Vec<(FileId, bool)>,
    /// What came of calls that somebody waits for.
    calls: BTreeMap<u64, Option<Result<Reply, Failure>>>,
    call_next: u64,
    asks: BTreeMap<u64, Option<Answer>>,
    ask_next: u64,
    /// In which life others are, as far as is known.
    lives: BTreeMap<Node, u32>,
    life: u32,
    /// What others have asked in this life, and what they were answered. Those that were dropped are empty.
    served: BTreeMap<(Node, u64), Served>,
    pub(crate) started: Vec<Thread>,
    pub(crate) deadlines: Vec<Instant>,
    pub(crate) has_moved: bool,
    /// Nobody begins anything new.
    pub(crate) is_resting: bool,
    out: Vec<(Node, Letter)>,
    pub(crate) notes: Vec<Note>,
    pub(crate) marks: Vec<&'static str>,
    tag_next: u64,
}

#[derive(Default)]
struct Served {
    answer: Option<Answer>,
    is_dropped: bool,
}

/// A file that is open, or that somebody works on.
pub(crate) struct Open {
    pub(crate) file: FileId,
    pub(crate) serial: u64,
    pub(crate) bytes: File<Vec<u8>, Backing>,
    /// The client's number of each handle, and whether it is for writing.
    pub(crate) handles: Vec<(u64, bool)>,
    /// The kernel uses the backing file by itself.
    pub(crate) passes: bool,
    pub(crate) age: u32,
    pub(crate) is_retained: bool,
    pub(crate) holds: u32,
    is_locked: bool,
}

impl Open {
    /// The backing file as it is now.
    pub(crate) fn seen(&self) -> Option<Seen> {
        match self.bytes.body() {
            Body::File { file, .. } => Some(file.borrow().seen()),
            Body::Rest | Body::Memory(_) => None,
        }
    }

    /// All that is in it, if it is at hand.
    pub(crate) fn all(&self) -> Option<Vec<u8>> {
        match self.bytes.body() {
            Body::Rest => None,
            Body::Memory(held) => Some(held.clone()),
            Body::File { file, .. } => Some(file.borrow().bytes.clone()),
        }
    }
}

/// A file's lock. As long as it is there nobody else has it.
pub(crate) struct Locked(pub(crate) Rc<RefCell<Open>>);

impl Drop for Locked {
    fn drop(&mut self) {
        self.0.borrow_mut().is_locked = false;
    }
}

impl Locked {
    pub(crate) fn file(&self) -> FileId {
        self.0.borrow().file.clone()
    }

    pub(crate) fn serial(&self) -> u64 {
        self.0.borrow().serial
    }

    pub(crate) fn seen(&self) -> Option<Seen> {
        self.0.borrow().seen()
    }

    pub(crate) fn all(&self) -> Option<Vec<u8>> {
        self.0.borrow().all()
    }

    pub(crate) fn is_home(&self) -> bool {
        self.0.borrow().bytes.is_home()
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.0.borrow().handles.is_empty()
    }

    pub(crate) fn open(&self) -> RefMut<'_, Open> {
        self.0.borrow_mut()
    }
}

/// What the client says of a file.
pub(crate) struct Said<'a, T: Tamper> {
    house: &'a House<T>,
    file: FileId,
}

impl<T: Tamper> Ledger for Said<'_, T> {
    fn me(&self) -> lease::Client {
        self.house.me()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn holds(&self, writes: bool) -> Option<Content> {
        let honest = |writes| self.house.holds(&self.file, writes);
        let reads = || if writes { honest(false) } else { None };
        self.house.0.tamper.holds(honest(writes), reads)
    }

    fn is_yielding(&self) -> bool {
        let state = self.house.state();
        let content = Field::Content.of(&self.file);
        let meets = |part: &Scope| part.file == self.file || part.contains(&content);
        self.house.0.tamper.is_yielding(state.yielding.iter().any(meets))
    }

    fn losses(&self) -> u64 {
        self.house.0.tamper.losses(self.house.state().losses)
    }

    fn place(&self) -> u64 {
        self.house.state().client.place()
    }

    fn is_pushed(&self, place: u64) -> bool {
        let state = self.house.state();
        let is_pushed = place > state.lost_until && state.client.is_pushed(place);
        self.house.0.tamper.is_pushed(is_pushed)
    }
}

impl<T: Tamper> House<T> {
    /// One that begins its first life, or a later one with what was left on the disk.
    pub(crate) fn new(settings: Settings, life: u32, disk: Disk, rng: Rng, tamper: T) -> House<T> {
        let state = State {
            now: Instant::START,
            client: Client::new(settings),
            rng,
            disk,
            silence: Silence::default(),
            contests: Contests::default(),
            losses: 0,
            lost_until: 0,
            version_next: u64::from(life) << 32,
            told: 0,
            opens: BTreeMap::new(),
            yielding: Vec::new(),
            recalled: Vec::new(),
            looks: Vec::new(),
            calls: BTreeMap::new(),
            call_next: 1,
            asks: BTreeMap::new(),
            ask_next: u64::from(life) << 32,
            lives: BTreeMap::new(),
            life,
            served: BTreeMap::new(),
            started: Vec::new(),
            deadlines: Vec::new(),
            has_moved: false,
            is_resting: false,
            out: Vec::new(),
            notes: Vec::new(),
            marks: Vec::new(),
            tag_next: (u64::from(settings.client.0) << 48) + (u64::from(life) << 32),
        };
        House(Rc::new(Shared { me: settings.client, state: RefCell::new(state), tamper }))
    }

    pub(crate) fn me(&self) -> lease::Client {
        self.0.me
    }

    pub(crate) fn state(&self) -> RefMut<'_, State> {
        self.0.state.borrow_mut()
    }

    pub(crate) fn tamper(&self) -> &T {
        &self.0.tamper
    }

    pub(crate) fn now(&self) -> Instant {
        self.state().now
    }

    pub(crate) fn note(&self, note: Note) {
        self.state().notes.push(note);
    }

    pub(crate) fn mark(&self, mark: &'static str) {
        self.state().marks.push(mark);
    }

    pub(crate) fn said(&self, file: &FileId) -> Said<'_, T> {
        Said { house: self, file: file.clone() }
    }

    /// A number that no other deed has.
    pub(crate) fn tag(&self) -> u64 {
        let mut state = self.state();
        state.tag_next += 1;
        state.tag_next
    }

    pub(crate) fn version(&self) -> u64 {
        let mut state = self.state();
        state.version_next += 1;
        state.version_next
    }

    pub(crate) fn holds(&self, file: &FileId, writes: bool) -> Option<Content> {
        let state = self.state();
        state.client.holds(state.now, file, writes).cloned()
    }

    /// A file's lock, as soon as it is free.
    pub(crate) async fn lock(&self, open: &Rc<RefCell<Open>>) -> Locked {
        self.wait(|| {
            let mut inner = open.borrow_mut();
            (!std::mem::replace(&mut inner.is_locked, true)).then(|| Locked(Rc::clone(open)))
        })
        .await
    }

    /// Somebody works on a file; until [`House::let_go`].
    pub(crate) fn hold(&self, file: &FileId, serial: u64) -> Rc<RefCell<Open>> {
        let mut state = self.state();
        let open = state.opens.entry(file.clone()).or_insert_with(|| {
            Rc::new(RefCell::new(Open {
                file: file.clone(),
                serial,
                bytes: File::default(),
                handles: Vec::new(),
                passes: false,
                age: 0,
                is_retained: false,
                holds: 0,
                is_locked: false,
            }))
        });
        open.borrow_mut().holds += 1;
        Rc::clone(open)
    }

    // --- the client

    /// Asks the client for something, and waits for the answer.
    pub(crate) async fn call(&self, what: Call) -> Result<Reply, Failure> {
        self.call_within(what, CALL_MAX).await
    }

    pub(crate) async fn call_within(&self, what: Call, most: Duration) -> Result<Reply, Failure> {
        let (call, until) = {
            let mut state = self.state();
            state.call_next += 1;
            let call = state.call_next;
            state.calls.insert(call, None);
            (call, state.now + most)
        };
        let time = call as i64;
        self.step(Input::Call { call, actor: User::ROOT, time, what });
        let answered = || {
            let mut state = self.state();
            let is_there = state.calls.get(&call).is_some_and(Option::is_some);
            if is_there { state.calls.remove(&call).flatten() } else { None }
        };
        if let Some(result) = self.wait_until(until, answered).await {
            return result;
        }
        self.step(Input::Cancel { call });
        let late = self.state().calls.remove(&call).flatten();
        late.unwrap_or(Err(Failure::Cancelled))
    }

    pub(crate) fn step(&self, input: Input) {
        let mut out = Vec::new();
        {
            let mut state = self.state();
            let now = state.now;
            state.client.step(now, input, &mut out);
        }
        self.absorb(out);
    }

    pub(crate) fn tick(&self) {
        let mut out = Vec::new();
        {
            let mut state = self.state();
            let now = state.now;
            if state.client.wake_at().is_some_and(|at| at <= now) {
                state.client.tick(now, &mut out);
            }
        }
        self.absorb(out);
    }

    fn absorb(&self, out: Vec<Output>) {
        for output in out {
            let mut state = self.state();
            match output {
                Output::Send(request) => {
                    let bytes = base::encode(&request);
                    state.out.push((GROUP, Letter::Upward(bytes)));
                }
                Output::Return { call, result } => {
                    if let Some(waiting) = state.calls.get_mut(&call) {
                        *waiting = Some(result);
                    }
                }
                Output::Forget { part, serial } => {
                    if part.field == Field::Content
                        && let Some(serial) = serial
                    {
                        state.contests.note(serial);
                    }
                }
                Output::Recalled(wanted) => {
                    state.marks.push("bytes are told before they are given up");
                    state.recalled.push(wanted);
                }
                Output::Lost { operations, .. } => {
                    state.lost_until = state.client.place();
                    state.losses += 1;
                    state.marks.push("a session is lost");
                    state.notes.push(Note::Bereft);
                    let written = |operation: Operation| match operation.act {
                        Act::SetContent { file, .. } => Some(file),
                        _ => None,
                    };
                    let written: Vec<_> = operations.into_iter().filter_map(written).collect();
                    if !written.is_empty() {
                        state.marks.push("what was told is lost with its session");
                    }
                    state.looks.extend(written.into_iter().map(|file| (file, true)));
                }
            }
        }
    }

    // --- other machines

    /// Asks another machine, which does it once or not at all; nothing if it does not answer in time.
    pub(crate) async fn ask(
        &self,
        whom: lease::Client,
        query: Query,
        patience: Duration,
    ) -> Option<Answer> {
        let node = node_of(whom);
        let until = self.now() + patience;
        let (number, life) = {
            let mut state = self.state();
            state.ask_next += 1;
            let number = state.ask_next;
            state.asks.insert(number, None);
            (number, state.lives.get(&node).copied().unwrap_or(0))
        };
        loop {
            let again = {
                let mut state = self.state();
                let ask = Letter::Ask { number, life, query: query.clone() };
                state.out.push((node, ask));
                (state.now + AGAIN).min(until)
            };
            let answered = || {
                let mut state = self.state();
                let is_there = state.asks.get(&number).is_some_and(Option::is_some);
                if is_there { state.asks.remove(&number).flatten() } else { None }
            };
            match self.wait_until(again, answered).await {
                Some(Answer::Stranger(life)) => {
                    self.state().lives.insert(node, life);
                    return None;
                }
                Some(answer) => return Some(answer),
                None if again >= until => break,
                None => {}
            }
        }
        let mut state = self.state();
        state.asks.remove(&number);
        state.out.push((node, Letter::Drop(number)));
        None
    }

    /// Another machine asks something for the first time; the answer, if it was asked before.
    pub(crate) fn is_asked(&self, from: Node, number: u64, life: u32) -> bool {
        let mut state = self.state();
        if life != state.life {
            let answer = Answer::Stranger(state.life);
            state.out.push((from, Letter::Answer { number, answer }));
            return false;
        }
        if let Some(served) = state.served.get(&(from, number)) {
            let answer = served.answer.clone();
            if let Some(answer) = answer {
                state.out.push((from, Letter::Answer { number, answer }));
            }
            return false;
        }
        state.served.insert((from, number), Served::default());
        true
    }

    pub(crate) fn answer(&self, to: Node, number: u64, answer: Answer) {
        let mut state = self.state();
        if let Some(served) = state.served.get_mut(&(to, number)) {
            served.answer = Some(answer.clone());
        }
        state.out.push((to, Letter::Answer { number, answer }));
    }

    pub(crate) fn is_awaited(&self, by: Node, number: u64) -> bool {
        let state = self.state();
        let is_dropped = state.served.get(&(by, number)).is_some_and(|served| served.is_dropped);
        self.0.tamper.is_awaited(!is_dropped)
    }

    pub(crate) fn on_drop(&self, by: Node, number: u64) {
        self.state().served.entry((by, number)).or_default().is_dropped = true;
    }

    pub(crate) fn on_answer(&self, number: u64, answer: Answer) {
        if let Some(waiting) = self.state().asks.get_mut(&number)
            && waiting.is_none()
        {
            *waiting = Some(answer);
        }
    }

    /// What there is to say.
    pub(crate) fn take_out(&self) -> Vec<(Node, Letter)> {
        std::mem::take(&mut self.state().out)
    }

    /// Which files are open within a scope, in order.
    pub(crate) fn within(&self, scope: &Scope) -> Vec<Rc<RefCell<Open>>> {
        let fields = [Field::Content, Field::Times, Field::Access];
        let is_within =
            |file: &FileId| fields.iter().any(|field| scope.contains(&field.clone().of(file)));
        let state = self.state();
        let opens = state.opens.iter().filter(|(file, _)| is_within(file));
        opens.map(|(_, open)| Rc::clone(open)).collect()
    }
}

/// What somebody wants, in some order, each once.
pub(crate) fn once<K: Ord + Clone>(items: Vec<K>) -> Vec<K> {
    let mut seen = BTreeSet::new();
    items.into_iter().filter(|item| seen.insert(item.clone())).collect()
}
