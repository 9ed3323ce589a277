//! Trying calls: what has to be known, is it known, else what has to be found out.

use base::{FileId, Instant};
use directory::{
    Act, Actor, Birth, File, Key, Missing, Operation, Quota, Refusal, Sort, Stop, View,
    message::Needs,
};
use lease::{
    Field, Kind, Knowledge, Mode, Scope,
    holder::Input as Lease,
    message::{Refusal as LeaseRefusal, Want},
};
use triomphe::Arc;

use crate::{
    call::{Asked, Call, Failure, Modes, Reply},
    client::{Client, Output},
    look,
    queue::{Job, Waiting, Waits},
    supply::Lack,
    view::Sight,
};

/// Why an attempt did not end well.
pub(crate) enum Halt {
    /// It never will.
    Failed(Failure),
    /// Something has to be found out.
    Missing(Missing, Option<Lack>),
    /// Something has to happen.
    Wait(Waits),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Halt {
        Halt::Failed(Failure::Refused(refusal))
    }
}

/// So many records are fetched along with one that is missed.
const NEIGHBOURS_MAX: usize = 512;
/// The most leases that a call may need. A group accepts as many at once.
pub(crate) const WANTS_MAX: usize = 1_024;
/// The group hears of the room on this machine when it has changed by this part.
const FREE_PART: u64 = 64;
/// Whoever wants to know a directory waits for so many repetitions to hear of its times.
const LATE_REPEATS: u32 = 2;

impl Client {
    /// Tries a call for the first time.
    pub(crate) fn attempt(&mut self, now: Instant, waiting: Waiting, out: &mut Vec<Output>) {
        self.attempt_at(now, None, waiting, out);
    }

    fn attempt_at(
        &mut self,
        now: Instant,
        order: Option<u64>,
        mut waiting: Waiting,
        out: &mut Vec<Output>,
    ) {
        let verdict = match self.run(now, &waiting.job) {
            Ok(reply) => Ok(Ok(reply)),
            Err(Halt::Failed(failure)) => Ok(Err(failure)),
            Err(Halt::Wait(waits)) => Err(waits),
            Err(Halt::Missing(missing, lack)) => {
                waiting.late_at = self.late_at(now, &waiting, &missing);
                match self.find_out(now, &mut waiting, missing, lack, out) {
                    Ok(waits) => Err(waits),
                    Err(failure) => Ok(Err(failure)),
                }
            }
        };
        match (verdict, waiting.job) {
            (Err(waits), job) => self.queue.put(order, Waiting { job, waits, ..waiting }),
            (Ok(result), Job::Call(call, asked)) => {
                out.push(Output::Return { call, result });
                if let Some(file) = self.closed.take() {
                    self.attempt(now, Waiting::new(Job::Reap(file, asked.time)), out);
                }
            }
            (Ok(_), Job::Reap(..)) => {}
        }
    }

    /// Tries again the calls that wait for something that has happened, in the order in which they
    /// were made.
    pub(crate) fn retry(
        &mut self,
        now: Instant,
        is_due: impl FnMut(&Waits) -> bool,
        out: &mut Vec<Output>,
    ) {
        for order in self.queue.orders(is_due) {
            if let Some(waiting) = self.queue.take(order) {
                self.attempt_at(now, Some(order), waiting, out);
            }
        }
    }

    /// When a call is answered without what it misses, if it can be. Else every way through a directory in
    /// which others are at work would be closed to a machine that is cut off from them.
    fn late_at(&self, now: Instant, waiting: &Waiting, missing: &Missing) -> Option<Instant> {
        let Job::Call(_, Asked { what: Call::GetAttr { file }, .. }) = &waiting.job else {
            return None;
        };
        let is_directory = |record: &Arc<File>| record.sort == Sort::Directory;
        let is_late = self.facts.record(file).is_some_and(is_directory)
            && missing.keys.is_empty()
            && matches!(&missing.wants[..], [want] if want.scope == Field::Times.of(file));
        is_late.then(|| waiting.late_at.unwrap_or(now + LATE_REPEATS * self.settings.terms.repeat))
    }

    /// Answers those that have waited long enough. What they waited for is still asked for.
    pub(crate) fn answer_late(&mut self, now: Instant, out: &mut Vec<Output>) {
        for order in self.queue.late(now) {
            let Some(waiting) = self.queue.take(order) else { continue };
            if let Job::Call(call, Asked { what: Call::GetAttr { file }, .. }) = &waiting.job
                && let Waits::Leases(request) = waiting.waits
                && let Ok(reply) = self.see(now, |sight| look::late(sight, file))
            {
                self.queue.desert(request);
                self.late.insert(file.clone(), request);
                out.push(Output::Return { call: *call, result: Ok(reply) });
            } else {
                self.queue.put(Some(order), Waiting { late_at: None, ..waiting });
            }
        }
    }

    /// What was told late is known now, or never will be: whoever remembers it has to ask again.
    fn end_late(&mut self, request: u64, out: &mut Vec<Output>) {
        for (file, _) in self.late.extract_if(.., |_, asked| *asked == request) {
            if self.settings.has_memory {
                let serial = self.facts.record(&file).map(|record| record.serial);
                out.push(Output::Forget { part: Field::Times.of(&file), serial });
            }
        }
    }

    pub(crate) fn on_met(&mut self, now: Instant, request: u64, out: &mut Vec<Output>) {
        self.end_late(request, out);
        if let Some(order) = self.queue.answered(request)
            && let Some(waiting) = self.queue.take(order)
        {
            self.attempt_at(now, Some(order), waiting, out);
        }
    }

    pub(crate) fn on_refused(
        &mut self,
        now: Instant,
        request: u64,
        why: LeaseRefusal,
        out: &mut Vec<Output>,
    ) {
        self.end_late(request, out);
        let Some(order) = self.queue.answered(request) else { return };
        let Some(waiting) = self.queue.take(order) else { return };
        match (why, &waiting.job) {
            (LeaseRefusal::OverBudget, _) => {
                self.give_back_some(now, waiting.wants.len(), out);
                let waits = Waits::Later(now + self.settings.terms.repeat);
                self.queue.put(Some(order), Waiting { waits, ..waiting });
            }
            (_, Job::Reap(..)) => {}
            (
                LeaseRefusal::Misfit | LeaseRefusal::TooMany | LeaseRefusal::Answered,
                Job::Call(call, _),
            ) => {
                let result = Err(Refusal::TooMuch.into());
                out.push(Output::Return { call: *call, result });
            }
            (LeaseRefusal::Denied, Job::Call(..)) if !waiting.is_denied => {
                self.ask_who_may(now, order, waiting, out);
            }
            (LeaseRefusal::Denied, Job::Call(call, _)) => {
                out.push(Output::Return { call: *call, result: Err(Refusal::Access.into()) });
            }
        }
    }

    /// Before a call is over because the group keeps something from us: whoever has changed who may know
    /// it, and not pushed that, has to do so.
    fn ask_who_may(&mut self, now: Instant, order: u64, waiting: Waiting, out: &mut Vec<Output>) {
        let mut files: Vec<&FileId> = waiting.wants.iter().map(|want| &want.scope.file).collect();
        files.dedup();
        let access = |file: &&FileId| Want { scope: Field::Access.of(file), kind: Kind::Read };
        let wants: Vec<Want> = files.iter().map(access).collect();
        let waits = Waits::Leases(self.holder.request_next());
        self.queue.put(Some(order), Waiting { waits, is_denied: true, ..waiting });
        self.tell(now, Lease::Need { wants, together: true }, out);
    }

    fn run(&mut self, now: Instant, job: &Job) -> Result<Reply, Halt> {
        match job {
            Job::Reap(file, time) => self.reap(now, file, *time),
            Job::Call(_, Asked { actor, time, what }) => match what {
                Call::Sync { handle } => self.sync(*handle),
                Call::Settle => self.settle(),
                Call::Open { file, modes } => self.open(now, actor, file, *modes),
                Call::Close { handle } => self.close(now, actor, *time, *handle),
                Call::Reserve { file, least, most } => self.reserve(now, file, (*least, *most)),
                Call::Account { uid } => Ok(Reply::Account(self.supply.account(*uid))),
                // Only whoever closes a file may let it go.
                Call::Do(Act::Reap { .. }) => Err(Refusal::Senseless.into()),
                // A lock is had through an open file, and is lost with it.
                Call::Do(Act::Lock { file, hold: Some(_), .. }) if !self.handles.is_open(file) => {
                    Err(Halt::Failed(Failure::Lost))
                }
                Call::Do(Act::Lock { file, owner, hold: Some(_), .. })
                    if self.handles.locker_count() >= self.settings.lockers_max
                        && !self.handles.is_locker(file, *owner) =>
                {
                    Err(Refusal::TooManyLocks.into())
                }
                Call::Do(act) => {
                    let (actor, act) = (actor.clone(), act.clone());
                    let done = self.perform(now, Operation { actor, time: *time, act })?;
                    match what {
                        Call::Do(Act::Lock { file, owner, hold: Some(_), .. }) => {
                            self.handles.lock(file, *owner);
                        }
                        // Many may come and go while a file is open.
                        Call::Do(Act::Lock { file, owner, start: 0, end: u64::MAX, .. }) => {
                            self.handles.unlock(file, *owner);
                        }
                        _ => {}
                    }
                    Ok(done)
                }
                Call::GetAttr { file } if self.late.contains_key(file) => {
                    let late = self.see(now, |sight| look::late(sight, file));
                    late.or_else(|_| self.see(now, |sight| look::answer(sight, actor, what)))
                }
                query => self.see(now, |sight| look::answer(sight, actor, query)),
            },
        }
    }

    /// Looks at what is known.
    fn see<T>(
        &mut self,
        now: Instant,
        look: impl FnOnce(&mut Sight<'_>) -> Result<T, Stop>,
    ) -> Result<T, Halt> {
        let mut sight = self.sight(now);
        sight.is_noting = false;
        let result = look(&mut sight);
        let lack = sight.lack.take();
        self.holder.touch(now);
        result.map_err(|stop| halt(stop, lack))
    }

    pub(crate) fn sight(&mut self, now: Instant) -> Sight<'_> {
        let me = (self.settings.client, self.settings.budget);
        Sight::new(now, me, &self.holder, &mut self.facts, &self.supply, &self.handles)
    }

    fn perform(&mut self, now: Instant, mut operation: Operation) -> Result<Reply, Halt> {
        if self.pending.weight() >= self.settings.pending_max {
            self.push_all();
            return Err(Halt::Wait(Waits::Room));
        }
        if operation.actor.groups.len() > Actor::GROUPS_MAX {
            return Err(Refusal::TooMuch.into());
        }
        let mut sight = self.sight(now);
        let result = operation.perform(&mut sight);
        let result = result.and_then(|()| sight.pay(content_of(&operation.act)));
        let (changes, lack) = (std::mem::take(&mut sight.changes), sight.lack.take());
        match result {
            Ok(()) => Ok(self.commit(now, operation, changes)),
            Err(stop) => Err(halt(stop, lack)),
        }
    }

    /// Keeps bytes for a file to grow, as far as it takes more of them than the group knows.
    fn reserve(
        &mut self,
        now: Instant,
        file: &FileId,
        (least, most): (u64, u64),
    ) -> Result<Reply, Halt> {
        if most == 0 {
            self.supply.let_go(file);
            return Ok(Reply::Room(0));
        }
        let me = self.settings.client;
        let (uid, known) = self.see(now, |sight| {
            let read = |field: Field| Want { scope: field.of(file), kind: Kind::Read };
            sight.know(&[read(Field::Access), read(Field::Content)])?;
            let record = sight.file(file)?;
            let is_ours = record.content.home == Some(me);
            Ok((record.access.uid, if is_ours { record.content.allocated } else { 0 }))
        })?;
        let more = (least.saturating_sub(known), most.saturating_sub(known));
        match self.supply.keep(now, file, uid, more) {
            Ok(kept) => Ok(Reply::Room(known.saturating_add(kept))),
            Err(lack) => {
                let provision = Some(FileId::ROOT);
                Err(Halt::Missing(Missing { provision, ..Missing::default() }, Some(lack)))
            }
        }
    }

    fn sync(&mut self, handle: Option<u64>) -> Result<Reply, Halt> {
        let is_loss = match handle {
            None => std::mem::take(&mut self.owes_loss),
            Some(handle) if self.handles.get(handle).is_some() => self.handles.take_loss(handle),
            Some(handle) if self.handles.is_lost(handle) => true,
            Some(_) => return Err(Refusal::Senseless.into()),
        };
        if is_loss {
            self.handles.loss_told();
            return Err(Halt::Failed(Failure::Lost));
        }
        self.settle()
    }

    fn settle(&mut self) -> Result<Reply, Halt> {
        let Some(last) = self.pending.last() else { return Ok(Reply::Done) };
        self.pending.demand(last);
        Err(Halt::Wait(Waits::Applied(last)))
    }

    fn open(
        &mut self,
        now: Instant,
        actor: &Actor,
        file: &FileId,
        modes: Modes,
    ) -> Result<Reply, Halt> {
        if self.handles.len() >= self.settings.handles_max {
            return Err(Halt::Failed(Failure::TooManyOpen));
        }
        let changing = self.handles.changing(file, modes, true);
        let is_open = self.handles.is_open(file);
        let is_excluded = modes.conflicting().any(|mode| self.handles.has(file, mode));
        self.see(now, |sight| {
            let read = |field: Field| Want { scope: field.of(file), kind: Kind::Read };
            let own = |scope: &Scope| Want { scope: scope.clone(), kind: Kind::SelfWrite };
            let own: Vec<Want> = changing.iter().map(own).collect();
            let mut wants = vec![read(Field::Access), read(Field::Parent)];
            // D25: others decide first, and of them those who deny: whoever is refused then has asked for
            // no right to change anything, and stands in nobody's way.
            let (denied, used): (Vec<Mode>, Vec<Mode>) =
                modes.conflicting().partition(|mode| mode.is_denial());
            if denied.is_empty() && used.is_empty() {
                wants.extend_from_slice(&own);
            }
            sight.know(&wants)?;
            look::may_open(sight, actor, file, modes, is_open)?;
            for conflicting in [denied, used] {
                let others = conflicting.into_iter().map(|mode| Field::Mode(mode).of(file));
                let others: Vec<Scope> = others.collect();
                let want = |scope: &Scope| Want { scope: scope.clone(), kind: Kind::OtherRead };
                sight.know(&others.iter().map(want).collect::<Vec<_>>())?;
                for scope in &others {
                    if is_excluded || sight.knows_others(scope)? {
                        return Err(Refusal::Sharing.into());
                    }
                }
            }
            sight.know(&own)
        })?;
        for scope in changing {
            let is_set = self.holder.set(now, &scope, true);
            debug_assert!(is_set, "{scope} was ours to change");
        }
        Ok(Reply::Handle(self.handles.open(file, modes)))
    }

    fn close(
        &mut self,
        now: Instant,
        actor: &Actor,
        time: i64,
        handle: u64,
    ) -> Result<Reply, Halt> {
        let Some((file, modes)) = self.handles.get(handle).cloned() else {
            return Err(Halt::Failed(match self.handles.is_lost(handle) {
                true => Failure::Lost,
                false => Failure::Refused(Refusal::Senseless),
            }));
        };
        let changing = self.handles.changing(&file, modes, false);
        let wants = changing.iter().filter(|scope| {
            // Not by way of `know`: a file that is no more is closed all the same.
            self.holder.knows(now, scope) != Knowledge::Writes
        });
        let want = |scope: &lease::Scope| Want { scope: scope.clone(), kind: Kind::SelfWrite };
        let wants: Vec<Want> = wants.map(want).collect();
        if !wants.is_empty() {
            return Err(Halt::Missing(Missing { wants, ..Missing::default() }, None));
        }
        // In one go with what follows: meanwhile nobody else opens the file and has locks on it.
        while let Some(owner) = self.handles.locker(&file) {
            let (start, end, hold) = (0, u64::MAX, None);
            let act = Act::Lock { file: file.clone(), owner, start, end, hold };
            match self.perform(now, Operation { actor: actor.clone(), time, act }) {
                Ok(_) | Err(Halt::Failed(_)) => self.handles.unlock(&file, owner),
                Err(halt) => return Err(halt),
            }
        }
        for scope in changing {
            let is_set = self.holder.set(now, &scope, false);
            debug_assert!(is_set, "{scope} was ours to change");
        }
        self.handles.close(handle);
        if !self.handles.is_open(&file) && !self.has_name(now, &file) {
            self.closed = Some(file);
        }
        Ok(Reply::Done)
    }

    /// Whether a file is known to have a name, or to be gone already.
    fn has_name(&self, now: Instant, file: &FileId) -> bool {
        let parent = Field::Parent.of(file);
        let is_known = self.holder.knows(now, &parent) != Knowledge::None
            && self.facts.has(file, &Field::Parent);
        let has_name = self.facts.record(file).is_some_and(|record| record.has_name());
        self.facts.is_gone(file) || (is_known && has_name)
    }

    /// Lets a file go that has no name and that nobody has open.
    fn reap(&mut self, now: Instant, file: &FileId, time: i64) -> Result<Reply, Halt> {
        if self.handles.is_open(file) {
            return Ok(Reply::Done);
        }
        let has_name = self.see(now, |sight| {
            sight.know(&[Want { scope: Field::Parent.of(file), kind: Kind::Read }])?;
            Ok(sight.file(file)?.has_name())
        })?;
        if has_name {
            return Ok(Reply::Done);
        }
        let act = Act::Reap { file: file.clone() };
        self.perform(now, Operation { actor: Actor::ROOT, time, act })
    }

    /// Asks for what is missing, and says what to wait for.
    fn find_out(
        &mut self,
        now: Instant,
        waiting: &mut Waiting,
        missing: Missing,
        lack: Option<Lack>,
        out: &mut Vec<Output>,
    ) -> Result<Waits, Failure> {
        let Missing { wants, keys, names, .. } = missing;
        if !wants.is_empty() {
            return self.need(now, waiting, wants, out);
        }
        waiting.missed.extend(keys.iter().map(|key| key.file.clone()).chain(names.clone()));
        if !keys.is_empty() {
            let keys = self.with_neighbours(now, keys);
            self.asking.extend(self.questions.fetch(now, keys));
            return Ok(Waits::Values);
        }
        if let Some(directory) = names {
            let after = self.facts.listed_through(&directory);
            self.asking.extend(self.questions.list(now, &directory, after));
            return Ok(Waits::Values);
        }
        Ok(self.replenish(now, waiting, lack, out))
    }

    /// Adds to a single record that is missed those that follow in the same directory: whoever looks at
    /// one of them mostly looks at all.
    fn with_neighbours(&self, now: Instant, mut keys: Vec<Key>) -> Vec<Key> {
        if let [Key { file, name: None }] = keys.as_slice()
            && let Some(directory) = file.parent()
            && self.holder.knows(now, &Field::Tree.of(&directory)) != Knowledge::None
        {
            let count = NEIGHBOURS_MAX.min(self.settings.facts_max / 16);
            let neighbours = self.facts.unknown_after(&directory, file);
            let neighbours: Vec<Key> = neighbours.take(count).map(Key::file).collect();
            keys.extend(neighbours);
        }
        keys
    }

    /// Sees to what is used up.
    fn replenish(
        &mut self,
        now: Instant,
        waiting: &mut Waiting,
        lack: Option<Lack>,
        out: &mut Vec<Output>,
    ) -> Waits {
        waiting.lack.clone_from(&lack);
        if lack == Some(Lack::Leases) {
            self.give_back_some(now, 1, out);
            let is_pending = self.push_all().is_some();
            return match self.holder.may_bear(self.settings.budget) {
                true => Waits::Later(now),
                false if is_pending => Waits::Room,
                false => Waits::Later(now + self.settings.terms.repeat),
            };
        }
        if self.questions.is_providing() {
            waiting.question = None;
            return Waits::Supplies;
        }
        // The group gives more only of what it knows to be used up.
        if !std::mem::replace(&mut waiting.is_pushed, true)
            && let Some(last) = self.push_all()
        {
            return Waits::After(last);
        }
        waiting.is_pushed = false;
        let mut needs = Needs::default();
        match lack {
            Some(Lack::Numbers(directory)) => {
                (needs.directory, needs.owner) = (Some(directory), self.newcomer(waiting));
            }
            Some(Lack::Serials) => needs.owner = self.newcomer(waiting),
            Some(Lack::Files(uid)) => needs.owner = Some(uid),
            Some(Lack::Bytes(uid, bytes)) => {
                // The group may think that we still have what was taken since the last push, or is kept.
                let taken = self.pending.taken(uid).saturating_add(self.supply.reserved(uid));
                (needs.owner, needs.bytes) = (Some(uid), bytes.saturating_add(taken));
            }
            Some(Lack::Leases) | None => {}
        }
        // If there is no more, then perhaps because it is set aside here for others.
        if needs.owner.is_some() && (waiting.is_short || self.supply.is_crowded()) {
            needs.give_back = self.give_back(needs.owner, None);
        }
        waiting.question = Some(self.questions.next());
        self.provide(now, needs);
        Waits::Supplies
    }

    /// Who acts, if nothing was ever set aside here for what they will own.
    fn newcomer(&self, waiting: &Waiting) -> Option<u32> {
        let Job::Call(_, Asked { actor, .. }) = &waiting.job else { return None };
        self.supply.account(actor.uid).is_none().then_some(actor.uid)
    }

    fn need(
        &mut self,
        now: Instant,
        waiting: &mut Waiting,
        wants: Vec<Want>,
        out: &mut Vec<Output>,
    ) -> Result<Waits, Failure> {
        // The leases are there and only the session is in doubt.
        if !self.holder.is_current(now) && self.holder.lease_count() > 0 {
            if self.renew_at.is_none() {
                self.renew(now);
            }
            return Ok(Waits::Session);
        }
        for want in &wants {
            match waiting.wants.contains(want) {
                true => waiting.is_contended = true,
                false => waiting.wants.push(want.clone()),
            }
        }
        if waiting.wants.len() > WANTS_MAX {
            return Err(Refusal::TooDeep.into());
        }
        // What was had and lost again would be lost again and again: all at once can't be.
        let all = if waiting.is_contended { waiting.wants.clone() } else { wants.clone() };
        let request = self.holder.request_next();
        self.tell(now, Lease::Need { wants: all, together: true }, out);
        if !waiting.is_contended {
            self.ask_ahead(now, &wants, out);
        }
        Ok(Waits::Leases(request))
    }

    /// What is set aside here for other owners than this one and not used.
    fn give_back(
        &mut self,
        but: Option<u32>,
        idle_since: Option<Instant>,
    ) -> Vec<(u32, Option<Quota>)> {
        let pending = &self.pending;
        self.supply.give_back(but, idle_since, |uid| pending.coming(uid))
    }

    /// So many bytes more fit onto this machine.
    pub(crate) fn on_free(&mut self, now: Instant, free: u64) {
        self.settings.free = free;
        let is_news = self.told_free.is_none_or(|told| told.abs_diff(free) > free / FREE_PART);
        if self.questions.is_providing() {
            return;
        }
        let give_back = self.give_back(None, Some(now));
        if is_news || !give_back.is_empty() {
            self.provide(now, Needs { give_back, ..Needs::default() });
        }
    }

    /// Asks for what new files need, and for numbers in a directory.
    pub(crate) fn provide(&mut self, now: Instant, needs: Needs) {
        if self.questions.is_providing() {
            return;
        }
        let directory = needs.directory.clone();
        let pending = &self.pending;
        let release =
            self.supply.release(|idle| directory.as_ref() == Some(idle) || pending.involves(idle));
        // What is not acknowledged may still be on its way.
        let births = || self.pending.births();
        let in_it = |birth: &&Birth| birth.file.parent() == directory;
        let number = births().filter(in_it).filter_map(|birth| birth.file.number()).min();
        let number = number.map(u64::from);
        let number = number.or_else(|| self.supply.unused_number(directory.as_ref()?));
        let serial = births().map(|birth| birth.serial).min().or(self.supply.unused_serial());
        let (number, serial) = (number.unwrap_or(0), serial.unwrap_or(0));
        let free = Some(self.settings.free);
        self.told_free = free;
        let needs = Needs { number, serial, release, free, ..needs };
        self.asking.extend(self.questions.provide(now, needs));
    }

    /// Says that the session goes on, for those who wait to hear that it does.
    pub(crate) fn renew(&mut self, now: Instant) {
        let renewal = self.holder.renewal(now);
        self.upward.push(renewal);
        self.renew_at = Some(now + self.settings.terms.repeat);
    }
}

/// The file whose bytes an operation is about.
pub(crate) fn content_of(act: &Act) -> Option<&FileId> {
    match act {
        Act::SetContent { file, .. } => Some(file),
        _ => None,
    }
}

fn halt(stop: Stop, lack: Option<Lack>) -> Halt {
    match stop {
        Stop::Refused(refusal) => refusal.into(),
        Stop::Missing(missing) => Halt::Missing(missing, lack),
    }
}
