//! The side that hands out knowledge and never contradicts itself.
//!
//! First come, first served (D26): a want is granted when no lease of another client conflicts with it
//! and no conflicting want of another client came before. Until then the conflicting leases are
//! recalled. A recall has until the end of the session: while one is out, the session can't be renewed
//! past the moment of the recall plus one session. So nobody waits longer than that for anybody, and less
//! for those who let others wait before (`patience`).
//!
//! A question is decided once, however often and on whichever ways it comes (`answered`).
//!
//! A session that has lapsed keeps its leases until somebody wants one; then it is lost as a whole.

mod answer;
mod answered;
mod birth;
mod conflict;
mod disturb;
mod lease;
mod patience;
mod promise;
mod recalls;
mod session;

use std::collections::{BTreeMap, BTreeSet};

use base::{Instant, Machine, Malformed};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    Client, Kind, Scope, Terms,
    index::Index,
    kind::Side,
    message::{Down, Downward, Refusal, Return, Up, Upward, Want},
};

use self::{
    answer::{Answers, OLDEST_MAX},
    lease::Lease,
    recalls::Recalls,
    session::Session,
};

/// Grants leases on the fields of some files.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Grantor {
    #[borsh(skip)]
    terms: Terms,
    #[borsh(skip)]
    policy: Policy,
    leases: Index<(Client, Side), Lease>,
    /// Booleans of disjunctive fields that are frozen and true. A client that may change its boolean
    /// has none here, since the grantor does not know it.
    truths: Index<Client, ()>,
    /// Where each waiting request waits.
    waits: Index<(u64, Side), Kind>,
    /// By ticket, which is the order of arrival.
    requests: BTreeMap<u64, Request>,
    /// How many wants still wait for each request that a client has made.
    asked: BTreeMap<(Client, u64), usize>,
    recalls: Recalls,
    /// One for each client that was ever heard: as many as there are certified machines.
    sessions: BTreeMap<Client, Session>,
    ticket_next: u64,
    serial_next: u64,
}

/// How generous the grantor is. The default is ours; the rest is for experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Whether a want is answered with more than was asked, where that is free: the whole file, or
    /// every child name. The paper never promotes (D26).
    pub is_generous: bool,
    /// Whether a client that is alone is granted all there is for whatever it asks. Whoever comes later
    /// has it recalled.
    pub gives_all_to_one: bool,
    /// What a lease is on.
    pub rule: Rule,
    /// The most leases that a client may hold, and the most that it may wait for.
    pub budget: usize,
    /// The most leases of all clients together. When there are as many, nobody gets more before whoever has most
    /// has given some back; what is born is born all the same, and has as many more given back.
    pub leases_max: usize,
}

/// The paper's rules and its controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Leases on fields, disjunctive ones among them (D23, D24).
    Fields,
    /// The control for field leases: one lease for a whole file.
    Files,
    /// The control for disjunctive leases: mode fields have one writer or many readers.
    PlainModes,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            is_generous: true,
            gives_all_to_one: false,
            rule: Rule::Fields,
            budget: 100_000,
            leases_max: 1_000_000,
        }
    }
}

impl Policy {
    /// What the paper did (D26).
    pub fn of_the_paper() -> Policy {
        Policy { is_generous: false, ..Policy::default() }
    }
}

/// How an ask is met. Whoever runs the grantor says so: it knows nothing of what stands in a field, nor
/// who may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Favour {
    /// As the policy says, perhaps with more than was asked.
    Generous,
    /// With just what was asked.
    Narrow,
    /// Not at all: [`Refusal::Denied`].
    Denied,
}

/// What happens to a grantor: a client says something.
pub type Input = (Client, Upward);
/// What a grantor wants done: tell a client something.
pub type Output = (Client, Downward);

#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
struct Request {
    client: Client,
    id: u64,
    wants: Vec<Want>,
    /// Answered with just what was asked.
    is_narrow: bool,
    /// Not a request but the end of a lost session's boolean: once granted, it is false.
    is_farewell: bool,
}

/// The most wants in one request.
pub const WANTS_MAX: usize = 1_024;
/// The most exceptions of one lease; beyond, it is recalled as a whole.
const EXCEPT_MAX: usize = 64;

impl Grantor {
    /// A grantor that has granted nothing.
    pub fn new(terms: Terms, policy: Policy) -> Grantor {
        assert!(terms.is_sound(), "nobody could believe a promise under {terms:?}");
        Grantor {
            terms,
            policy,
            leases: Index::new(),
            truths: Index::new(),
            waits: Index::new(),
            requests: BTreeMap::new(),
            asked: BTreeMap::new(),
            recalls: Recalls::default(),
            sessions: BTreeMap::new(),
            ticket_next: 0,
            serial_next: 1,
        }
    }

    /// A grantor as it was when it was written down, all but what it is told here.
    pub fn restore(terms: Terms, policy: Policy, bytes: &[u8]) -> Result<Grantor, Malformed> {
        let grantor: Grantor = base::decode(bytes, bytes.len())?;
        Ok(Grantor { terms, policy, ..grantor })
    }

    /// How many leases are out.
    pub fn lease_count(&self) -> usize {
        self.leases.len()
    }

    /// How many requests are waiting.
    pub fn waiting_count(&self) -> usize {
        self.requests.len()
    }

    /// As [`Machine::step`]; if it is an ask, it is met like this.
    pub fn step_with(
        &mut self,
        now: Instant,
        (client, message): Input,
        favour: Favour,
        out: &mut Vec<Output>,
    ) {
        if !self.hear(now, client, &message, out) {
            return;
        }
        match message.body {
            Up::Ask { request, wants, together } => {
                self.on_ask(now, (client, request), wants, together, favour, out);
            }
            Up::Return { number, returns } => self.on_returns(now, client, number, returns, out),
            Up::Renew => self.say(now, client, Down::Renewed, out),
        }
    }

    fn on_ask(
        &mut self,
        now: Instant,
        (client, id): (Client, u64),
        wants: Vec<Want>,
        together: bool,
        favour: Favour,
        out: &mut Vec<Output>,
    ) {
        if self.asked.contains_key(&(client, id)) {
            return; // Repeated: it keeps its place, and the answer will come.
        }
        if let Some(refused) = self.outcome(client, id) {
            return self.say_again(now, (client, id), wants, refused, out);
        }
        let is_full = self.is_full(wants.len());
        let accepted = match favour {
            Favour::Denied => Err(Refusal::Denied),
            Favour::Generous | Favour::Narrow => self.accept(client, wants),
        };
        let is_narrow = favour == Favour::Narrow || self.is_strained(client);
        let wants = match accepted {
            Ok(wants) => wants,
            Err(why) => {
                self.note_answered(client, id, Some(why));
                if why == Refusal::OverBudget && is_full {
                    self.recall_from_richest(now, out);
                } else if why == Refusal::OverBudget {
                    self.recall_oldest(now, client, OLDEST_MAX, out);
                }
                return self.say(now, client, Down::Refused { request: id, why }, out);
            }
        };
        let mut answers = Answers::default();
        let mut tickets = BTreeSet::new();
        let mut ask = |wants| {
            let request = Request { client, id, wants, is_narrow, is_farewell: false };
            // D26: at once, if nothing conflicts, be it granted or asked for before.
            if self.is_free(now, &request) {
                self.give(now, request, &mut tickets, &mut answers);
            } else {
                tickets.insert(self.enqueue(request));
            }
        };
        match together {
            true => ask(wants),
            false => wants.into_iter().for_each(|want| ask(vec![want])),
        }
        if !self.asked.contains_key(&(client, id)) {
            self.note_answered(client, id, None);
        }
        self.settle(now, tickets, answers, out);
    }

    /// The wants as the policy reads them, if they may be wanted at all.
    fn accept(&self, client: Client, wants: Vec<Want>) -> Result<Vec<Want>, Refusal> {
        if wants.is_empty() || wants.len() > WANTS_MAX {
            return Err(Refusal::TooMany);
        }
        if wants.iter().any(|want| !want.kind.fits(&want.scope.field)) {
            return Err(Refusal::Misfit);
        }
        let Some(session) = self.sessions.get(&client) else { return Err(Refusal::OverBudget) };
        let is_over = |count: usize| count + wants.len() > self.policy.budget;
        if is_over(session.waiting) || is_over(session.leases) || self.is_full(wants.len()) {
            return Err(Refusal::OverBudget);
        }
        Ok(wants.into_iter().map(|want| self.policy.read(want)).collect())
    }

    /// Whether there are too many leases for so many more.
    fn is_full(&self, count: usize) -> bool {
        self.leases.len().saturating_add(count) > self.policy.leases_max
    }

    fn enqueue(&mut self, request: Request) -> u64 {
        let ticket = self.ticket_next;
        self.ticket_next += 1;
        if !request.is_farewell {
            let count = request.wants.len();
            *self.asked.entry((request.client, request.id)).or_insert(0) += count;
            if let Some(session) = self.sessions.get_mut(&request.client) {
                session.waiting += count;
            }
        }
        for want in &request.wants {
            let kind = want.kind;
            // Two wants of one request on one scope: the stronger one decides.
            let owner = (ticket, kind.side());
            let before = self.waits.insert(&want.scope, owner, kind);
            if let Some(before) = before.filter(|before| before.covers(kind)) {
                self.waits.insert(&want.scope, owner, before);
            }
        }
        self.requests.insert(ticket, request);
        ticket
    }

    fn dequeue(&mut self, ticket: u64) -> Option<Request> {
        let request = self.requests.remove(&ticket)?;
        for want in &request.wants {
            self.waits.remove(&want.scope, (ticket, want.kind.side()));
        }
        let key = (request.client, request.id);
        if let Some(count) = self.asked.get_mut(&key).filter(|_| !request.is_farewell) {
            *count -= request.wants.len();
            let is_last = *count == 0;
            if is_last {
                self.asked.remove(&key);
            }
            if let Some(session) = self.sessions.get_mut(&request.client) {
                session.waiting -= request.wants.len();
                if is_last {
                    session.answered.note(request.id, None);
                }
            }
        }
        Some(request)
    }

    /// Returns count in the order in which they were sent: one that a later one has overtaken is as good
    /// as lost. (The lease is recalled when somebody wants it, and the holder then says how things are.)
    ///
    /// Why it matters: a client may have two leases under which it may change the same boolean. What the
    /// return of one says of it is kept only if no other stands here. One that its holder could use when
    /// it sent the return does stand here: were it given back already, that return would have been sent
    /// later, and this one would not count. One that is granted later takes away what was kept. So what
    /// is kept is what the boolean was when its client lost the last right to change it.
    fn on_returns(
        &mut self,
        now: Instant,
        client: Client,
        number: u64,
        returns: Vec<Return>,
        out: &mut Vec<Output>,
    ) {
        let session = self.sessions.get_mut(&client);
        if !session.is_some_and(|session| session.is_next(number)) {
            return;
        }
        let mut freed = BTreeSet::new();
        let mut is_within = true;
        for returned in returns {
            is_within &= self.on_return(client, returned, &mut freed);
        }
        if !is_within {
            // Whoever has opened more than it may remember would have others believe what is not so.
            freed.extend(self.forget(now, client, out));
        }
        self.settle(now, freed, Answers::default(), out);
    }

    /// Takes back a lease or a part of it. False if the client now has more true booleans than it may.
    fn on_return(&mut self, client: Client, returned: Return, freed: &mut BTreeSet<u64>) -> bool {
        let Return { lease: scope, kind, serial, part, kept, truths } = returned;
        let side = kind.side();
        let Some(lease) = self.leases.get_mut(&scope, (client, side)) else { return true };
        // A late return does not evict a later lease.
        if lease.serial() != serial || !scope.contains(&part) {
            return true;
        }
        if !lease.touches(&part) {
            return true; // Given back before: what it says of booleans may be old.
        }
        if part == scope && kept {
            if lease.kind() != Kind::Write {
                return true; // Repeated.
            }
            lease.set_kind(Kind::Read);
        } else if part == scope {
            self.drop_lease(&scope, client, side, freed);
        } else if lease.except().len() < EXCEPT_MAX {
            lease.except_also(&part);
        } else {
            return true; // An honest holder was asked for the whole lease.
        }
        let mut is_within = true;
        for truth in truths {
            if part.contains(&truth)
                && truth.field.is_disjunctive()
                && !self.may_change(client, &truth)
            {
                is_within &= self.keep_truth(&truth, client);
            }
        }
        if self.recalls.answer(&(client, scope, side), &part) {
            self.look_again(client, freed);
        }
        freed.extend(self.waits.meeting(&part).map(|(_, (ticket, _), _)| ticket));
        is_within
    }

    /// A client was held up as a whole and is no longer: all that it waits for is looked at again.
    fn look_again(&self, client: Client, freed: &mut BTreeSet<u64>) {
        let own = self.requests.iter().filter(|(_, request)| request.client == client);
        freed.extend(own.map(|(ticket, _)| *ticket));
    }

    /// Notes a boolean that is frozen and true; false if there are too many.
    fn keep_truth(&mut self, truth: &Scope, client: Client) -> bool {
        let session = self.sessions.get_mut(&client);
        let Some(session) = session.filter(|session| session.truths < self.policy.budget) else {
            return false;
        };
        session.truths += usize::from(self.truths.insert(truth, client, ()).is_none());
        true
    }

    fn drop_truth(&mut self, truth: &Scope, client: Client) {
        if self.truths.remove(truth, client).is_some()
            && let Some(session) = self.sessions.get_mut(&client)
        {
            session.truths -= 1;
        }
    }

    fn drop_lease(&mut self, scope: &Scope, client: Client, side: Side, freed: &mut BTreeSet<u64>) {
        if self.leases.remove(scope, (client, side)).is_some()
            && let Some(session) = self.sessions.get_mut(&client)
        {
            session.leases -= 1;
        }
        if !self.recalls.is_empty() && self.recalls.remove(&(client, scope.clone(), side)) {
            self.look_again(client, freed);
        }
    }

    /// When a lease that begins now ends.
    fn lease_until(&self, now: Instant, client: Client) -> Instant {
        if client == Client::GROUP { Instant::END } else { now + self.terms.lease }
    }
}

impl Machine for Grantor {
    type Input = Input;
    type Output = Output;

    fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        self.step_with(now, input, Favour::Generous, out);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.lose_silent(now, out);
        self.repeat_recalls(now, out);
    }

    fn wake_at(&self) -> Option<Instant> {
        let sessions = self.recalls.clients().filter_map(|client| self.sessions.get(&client));
        sessions.map(|session| session.until).chain(self.recalls.repeat_at()).min()
    }
}
