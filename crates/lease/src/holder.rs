//! The side that acts on knowledge, and stops believing before the grantor stops promising.
//!
//! A holder counts every promise on its own clock, from before it asked. It acts on a lease only while
//! its session goes on; it gives a lease back only when everything that depends on it has been pushed.
//!
//! A grant counts only if its serial number is greater than every one heard of before, in a grant or
//! in a recall. So a grant that its own recall has overtaken, or that comes twice, is nothing; the
//! request is repeated, and answered under a new number.

mod query;

use std::collections::{BTreeMap, BTreeSet};

use base::{Instant, Machine};

use crate::{
    Field, Kind, Scope, Terms,
    index::Index,
    kind::Side,
    message::{Down, Downward, Grant, Recall, Refusal, Return, Up, Upward, Want},
};

/// Holds leases of one grantor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    terms: Terms,
    session: u64,
    /// The session can be relied upon before this.
    believed_until: Instant,
    /// When it last did anything, or had to be heard.
    busy_at: Option<Instant>,
    /// When it last said anything.
    sent_at: Option<Instant>,
    /// The greatest serial number heard of.
    serial_seen: u64,
    /// The number of the last return.
    return_last: u64,
    /// No lease has to be looked after before this.
    tend_at: Option<Instant>,
    leases: Index<Side, Held>,
    /// How many parts of leases are on their way back.
    leaving_count: usize,
    /// Our own booleans of disjunctive fields, where true.
    truths: BTreeSet<Scope>,
    asks: BTreeMap<u64, Ask>,
    request_next: u64,
}

/// A lease as its holder sees it: what it knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Held {
    kind: Kind,
    serial: u64,
    until: Instant,
    except: Vec<Scope>,
    /// The disjunctive fields in it for which some other client's boolean is true.
    truths: Vec<Scope>,
    /// Parts that are wanted back and may not be used for anything new, and whether reading may go on.
    leaving: BTreeMap<Scope, bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ask {
    /// The number of the need, which is that under which it was asked first.
    need: u64,
    /// What has not been granted yet.
    wants: Vec<Want>,
    together: bool,
    repeat_at: Instant,
}

/// What happens to a holder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Somebody needs to know all of this.
    Need {
        /// What.
        wants: Vec<Want>,
        /// All at once or none.
        together: bool,
    },
    /// The grantor said something.
    Heard(Downward),
    /// What depends on a lease's part has been pushed; it can go back.
    Pushed {
        /// The scope of the lease.
        lease: Scope,
        /// Its kind.
        kind: Kind,
        /// The part that was named in `Push`.
        part: Scope,
    },
    /// Nobody needs this lease any more.
    Done {
        /// Its scope.
        lease: Scope,
        /// Its kind.
        kind: Kind,
    },
}

/// What a holder wants done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Tell the grantor.
    Send(Upward),
    /// A request is met: a need's, or one that the holder made itself to keep a lease.
    Met(u64),
    /// A need can't be met.
    Refused(u64, Refusal),
    /// Push everything that depends on this part of this lease, then answer `Pushed`.
    Push {
        /// The scope of the lease.
        lease: Scope,
        /// Its kind.
        kind: Kind,
        /// What is wanted back.
        part: Scope,
    },
    /// Everything that was held is gone, and with it whatever was not pushed.
    Lost,
}

/// What somebody may do with a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Nothing is known.
    None,
    /// It does not change.
    Reads,
    /// It is ours to change.
    Writes,
}

impl Holder {
    /// A holder of nothing, in its first session or a later one: each needs a greater number.
    pub fn new(terms: Terms, session: u64) -> Holder {
        assert!(terms.is_sound(), "nobody could believe a promise under {terms:?}");
        Holder {
            terms,
            session,
            believed_until: Instant::START,
            busy_at: None,
            sent_at: None,
            serial_seen: 0,
            return_last: 0,
            tend_at: None,
            leases: Index::new(),
            leaving_count: 0,
            truths: BTreeSet::new(),
            asks: BTreeMap::new(),
            request_next: 1,
        }
    }

    /// How many leases it holds.
    pub fn lease_count(&self) -> usize {
        self.leases.len()
    }

    /// The serial number of the lease on this very scope, on the same side as this kind, if it is held.
    pub fn serial(&self, lease: &Scope, kind: Kind) -> Option<u64> {
        self.leases.get(lease, kind.side()).map(|held| held.serial)
    }

    /// The number that the next need will have.
    pub fn request_next(&self) -> u64 {
        self.request_next
    }

    /// Whether the session can be relied on. Else nothing may be done, and what we said of our own
    /// booleans may be taken back for us.
    pub fn is_current(&self, now: Instant) -> bool {
        now < self.believed_until
    }

    /// What we know of a scope now. For a disjunctive field this is about our own boolean.
    pub fn knows(&self, now: Instant, scope: &Scope) -> Knowledge {
        let mut best = Knowledge::None;
        let most = self.usable(now, scope, |lease| match lease.kind {
            Kind::Write | Kind::SelfWrite => Some(Knowledge::Writes),
            // A read of a wide scope says nothing about the disjunctive fields in it.
            Kind::Read if !scope.field.is_disjunctive() => {
                best = Knowledge::Reads;
                None
            }
            Kind::Read | Kind::OtherRead => None,
        });
        most.unwrap_or(best)
    }

    /// Whether any other client's boolean of this disjunctive field is true, if we know.
    pub fn knows_others(&self, now: Instant, scope: &Scope) -> Option<bool> {
        self.usable(now, scope, |lease| {
            let tells = matches!(lease.kind, Kind::OtherRead | Kind::Write);
            tells.then(|| lease.truths.contains(scope))
        })
    }

    /// Our own boolean of a disjunctive field.
    pub fn own(&self, scope: &Scope) -> bool {
        self.truths.contains(scope)
    }

    /// Notes that something was done, so that the session is worth keeping.
    pub fn touch(&mut self, now: Instant) {
        self.busy_at = Some(now);
    }

    /// Changes our own boolean of a disjunctive field; false, and no change, if we may not.
    #[must_use]
    pub fn set(&mut self, now: Instant, scope: &Scope, value: bool) -> bool {
        let may = scope.field.is_disjunctive() && self.knows(now, scope) == Knowledge::Writes;
        if may {
            self.touch(now);
            let is_ending = |held: &Held| (self.renew_lease_at(held.until) <= now).then_some(());
            if self.usable(now, scope, is_ending).is_some() {
                self.tend_by(now);
            }
            match value {
                true => self.truths.insert(scope.clone()),
                false => self.truths.remove(scope),
            };
        }
        may
    }

    /// Takes hold of every field of a file (`Whole`) or of a subtree (`Tree`) that we have just created,
    /// without asking. True if a lease was born, and then the push of the creation has to say so; false
    /// if one that we can use covers the file already, or the session can't be relied on.
    ///
    /// See `grantor::birth` for the contract.
    #[must_use]
    pub fn bear(&mut self, now: Instant, scope: &Scope) -> bool {
        let covers = |lease: &Held| (lease.kind == Kind::Write).then_some(());
        let is_covered = self.usable(now, scope, covers).is_some();
        let is_known = self.leases.get(scope, Side::Own).is_some();
        if is_covered || is_known || !self.is_current(now) {
            return false;
        }
        self.touch(now);
        let until = self.terms.believed_until(now, self.terms.lease);
        let held = Held {
            kind: Kind::Write,
            serial: 0,
            until,
            except: Vec::new(),
            truths: Vec::new(),
            leaving: BTreeMap::new(),
        };
        self.tend_by(self.renew_lease_at(until));
        self.leases.insert(scope, Side::Own, held);
        true
    }

    /// Whether the grantor, whose policy has this budget, will accept one more lease from birth. To be
    /// asked before something is created; else something has to be given back first.
    pub fn may_bear(&self, budget: usize) -> bool {
        self.leases.len() < budget
    }

    /// Shows the leases under which something new may be done with this scope, until something comes of it.
    fn usable<T>(
        &self,
        now: Instant,
        scope: &Scope,
        mut show: impl FnMut(&Held) -> Option<T>,
    ) -> Option<T> {
        if !self.is_current(now) {
            return None;
        }
        self.leases.containing(scope, |_, lease| {
            let is_usable = now < lease.until
                && !lease.except.iter().any(|except| except.meets(scope))
                && !lease.leaving.keys().any(|part| part.meets(scope));
            if is_usable { show(lease) } else { None }
        })
    }

    fn on_need(&mut self, now: Instant, wants: Vec<Want>, together: bool, out: &mut Vec<Output>) {
        self.touch(now);
        self.ask(now, wants, together, out);
    }

    fn ask(&mut self, now: Instant, wants: Vec<Want>, together: bool, out: &mut Vec<Output>) {
        let request = self.request_next;
        self.request_next += 1;
        let repeat_at = now + self.terms.repeat;
        let ask = Ask { need: request, wants: wants.clone(), together, repeat_at };
        self.asks.insert(request, ask);
        self.send(now, Up::Ask { request, wants, together }, out);
    }

    fn on_heard(&mut self, now: Instant, message: Downward, out: &mut Vec<Output>) {
        if message.session != self.session {
            return;
        }
        if let Down::Lost = message.body {
            return self.on_lost(now, out);
        }
        let until = self.terms.believed_until(message.stamp, message.span);
        self.believed_until = self.believed_until.max(until);
        match message.body {
            Down::Granted { request, grants } => {
                self.on_granted(now, request, message.stamp, grants, out);
            }
            Down::Refused { request, why: Refusal::Answered } => self.ask_anew(now, request, out),
            Down::Refused { request, why } => {
                if let Some(ask) = self.asks.remove(&request) {
                    out.push(Output::Refused(ask.need, why));
                }
            }
            Down::Recall(recalls) => {
                for recall in recalls {
                    self.on_recall(now, recall, out);
                }
            }
            Down::Renewed | Down::Lost => {}
        }
    }

    fn on_granted(
        &mut self,
        now: Instant,
        request: u64,
        stamp: Instant,
        grants: Vec<Grant>,
        out: &mut Vec<Output>,
    ) {
        let mut unwanted = Vec::new();
        for grant in grants {
            if grant.serial <= self.serial_seen {
                continue; // Repeated, or overtaken.
            }
            self.serial_seen = grant.serial;
            let is_wanted = match self.asks.get_mut(&request) {
                Some(ask) => {
                    ask.wants.retain(|want| !grant.answers(want));
                    true
                }
                None => self.leases.get(&grant.scope, grant.kind.side()).is_some(),
            };
            if is_wanted {
                self.learn(stamp, grant);
            } else {
                // Nobody waits for it any more: it goes back at once, so that nobody else has to.
                let Grant { scope, kind, serial, .. } = grant;
                unwanted.push(self.giving_back(&scope, kind, serial, &scope, false));
            }
        }
        let is_met = |_: &u64, ask: &mut Ask| ask.wants.is_empty();
        if let Some((_, ask)) = self.asks.extract_if(request..=request, is_met).next() {
            out.push(Output::Met(ask.need));
        }
        if !unwanted.is_empty() {
            self.send_back(now, unwanted, out);
        }
    }

    fn learn(&mut self, stamp: Instant, grant: Grant) {
        let side = grant.kind.side();
        let before = self.leases.remove(&grant.scope, side);
        let leaving = before.map_or(BTreeMap::new(), |held| held.leaving);
        let held = Held {
            kind: grant.kind,
            serial: grant.serial,
            until: self.terms.believed_until(stamp, grant.span),
            except: grant.except,
            truths: grant.truths,
            leaving,
        };
        self.tend_by(self.renew_lease_at(held.until));
        self.leases.insert(&grant.scope, side, held);
    }

    fn on_recall(&mut self, now: Instant, recall: Recall, out: &mut Vec<Output>) {
        let Recall { lease: scope, kind, serial, part, keep } = recall;
        self.serial_seen = self.serial_seen.max(serial);
        let is_gone = |held: &Held| held.except.iter().any(|except| except.contains(&part));
        match self.leases.get_mut(&scope, kind.side()) {
            // We hold a later lease: the recall is a repeated one.
            Some(held) if held.serial > serial => {}
            Some(held) if !is_gone(held) => {
                // The grantor may have numbered the lease anew in a grant that did not arrive.
                held.serial = serial;
                let known = held.leaving.insert(part.clone(), keep);
                if known.is_none() {
                    self.leaving_count += 1;
                    out.push(Output::Push { lease: scope, kind, part });
                }
            }
            // Given back before, or its grant is still on the way and will be too late.
            _ => {
                let returned = self.giving_back(&scope, kind, serial, &part, false);
                self.send_back(now, vec![returned], out);
                self.ask_again_soon(now, &part);
            }
        }
    }

    /// Repeats soon the open requests that may have been answered by a grant that no longer counts. Not
    /// at once: where recalls keep overtaking grants, two holders must not race each other.
    fn ask_again_soon(&mut self, now: Instant, part: &Scope) {
        for ask in self.asks.values_mut() {
            if ask.wants.iter().any(|want| want.scope.meets(part)) {
                ask.repeat_at = ask.repeat_at.min(now + self.terms.repeat / 4);
            }
        }
    }

    /// What was granted to an open request has gone before it was heard of: it is another question now.
    fn ask_anew(&mut self, now: Instant, request: u64, out: &mut Vec<Output>) {
        let Some(mut ask) = self.asks.remove(&request) else { return };
        ask.repeat_at = now + self.terms.repeat;
        let (request, wants, together) = (self.request_next, ask.wants.clone(), ask.together);
        self.request_next += 1;
        self.asks.insert(request, ask);
        self.send(now, Up::Ask { request, wants, together }, out);
    }

    fn repeat_asks(&mut self, now: Instant, out: &mut Vec<Output>) {
        let mut due = Vec::new();
        for (&request, ask) in &mut self.asks {
            if ask.repeat_at <= now {
                ask.repeat_at = now + self.terms.repeat;
                let (wants, together) = (ask.wants.clone(), ask.together);
                due.push(Up::Ask { request, wants, together });
            }
        }
        for body in due {
            self.send(now, body, out);
        }
    }

    /// What to say of a lease, or a part of it, that is given up on this side.
    fn giving_back(
        &self,
        lease: &Scope,
        kind: Kind,
        serial: u64,
        part: &Scope,
        kept: bool,
    ) -> Return {
        let truths: Vec<Scope> = match part.field.is_wide() {
            false => self.truths.get(part).into_iter().cloned().collect(),
            // A file and the files below it follow each other.
            true => {
                let near = self.truths.range(Field::Access.of(&part.file)..);
                let near = near.take_while(|truth| part.file.is_prefix_of(&truth.file));
                near.filter(|truth| part.contains(truth)).cloned().collect()
            }
        };
        Return { lease: lease.clone(), kind, serial, part: part.clone(), kept, truths }
    }

    fn on_done(&mut self, scope: Scope, kind: Kind, out: &mut Vec<Output>) {
        let Some(held) = self.leases.get_mut(&scope, kind.side()) else { return };
        if held.leaving.insert(scope.clone(), false).is_none() {
            self.leaving_count += 1;
            out.push(Output::Push { lease: scope.clone(), kind, part: scope });
        }
    }

    fn on_pushed(
        &mut self,
        now: Instant,
        scope: Scope,
        kind: Kind,
        part: Scope,
        out: &mut Vec<Output>,
    ) {
        let Some(held) = self.leases.get_mut(&scope, kind.side()) else { return };
        let Some(keep) = held.leaving.remove(&part) else { return };
        self.leaving_count -= 1;
        let serial = held.serial;
        let kept = keep && held.kind == Kind::Write && part == scope;
        if kept {
            held.kind = Kind::Read;
        } else if part == scope {
            self.leaving_count -= held.leaving.len();
            self.leases.remove(&scope, kind.side());
        } else {
            held.except.retain(|inner| !part.contains(inner));
            held.except.push(part.clone());
        }
        let returned = self.giving_back(&scope, kind, serial, &part, kept);
        self.send_back(now, vec![returned], out);
    }

    fn on_lost(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.session += 1;
        self.believed_until = Instant::START;
        self.leases = Index::new();
        self.leaving_count = 0;
        self.tend_at = None;
        self.truths.clear();
        out.push(Output::Lost);
        self.asks.values_mut().for_each(|ask| ask.repeat_at = now);
        self.repeat_asks(now, out);
    }

    /// Looks after leases that are about to end. One under which our own boolean stands is asked for
    /// again; every other goes back in good time, so that nothing is left to be pushed too late. If one
    /// with a boolean ends all the same, others may believe otherwise, and the session is given up.
    fn tend(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.tend_at.is_none_or(|at| at > now) {
            return;
        }
        let mut again = Vec::new();
        let mut back = Vec::new();
        let mut is_over = false;
        let mut next: Option<Instant> = None;
        for (at, side, held) in self.leases.iter() {
            let stands = || side == Side::Own && self.truths.iter().any(|truth| at.contains(truth));
            if held.until <= now {
                is_over |= stands();
                continue;
            }
            let renew_at = self.renew_lease_at(held.until);
            let next_at = if renew_at > now { renew_at } else { held.until };
            next = Some(next.map_or(next_at, |next| next.min(next_at)));
            if renew_at > now || !held.leaving.is_empty() {
                continue;
            }
            let want = Want { scope: at.scope(), kind: held.kind };
            if self.is_asked(&want) {
                continue;
            }
            if stands() { again.push(want) } else { back.push(want) }
        }
        self.tend_at = next;
        if is_over {
            return self.on_lost(now, out);
        }
        for Want { scope, kind } in back {
            self.on_done(scope, kind, out);
        }
        if !again.is_empty() {
            self.ask(now, again, false, out);
        }
    }

    fn tend_by(&mut self, at: Instant) {
        self.tend_at = Some(self.tend_at.map_or(at, |known| known.min(at)));
    }

    fn renew_lease_at(&self, until: Instant) -> Instant {
        until - (2 * self.terms.session).min(self.terms.lease / 4)
    }

    fn is_asked(&self, wanted: &Want) -> bool {
        self.asks.values().flat_map(|ask| &ask.wants).any(|want| want == wanted)
    }

    /// When the session must be kept alive by a message of its own: only if something was done since
    /// the last one, or somebody waits for what we are about to give back, or something is open here, which
    /// would be lost with the session. A session that the grantor makes shorter than usual is kept alive in time
    /// all the same.
    fn renew_at(&self) -> Option<Instant> {
        let sent_at = self.sent_at?;
        let is_busy = self.busy_at.is_some_and(|busy_at| busy_at > sent_at);
        if self.leases.len() == 0 || !(is_busy || self.leaving_count > 0 || !self.truths.is_empty())
        {
            return None;
        }
        let usual = sent_at + self.terms.session / 3;
        let repeat = self.terms.repeat;
        match self.believed_until > sent_at {
            true => Some(usual.min((sent_at + repeat).max(self.believed_until - repeat))),
            false => Some(usual),
        }
    }

    fn send_back(&mut self, now: Instant, returns: Vec<Return>, out: &mut Vec<Output>) {
        self.return_last += 1;
        self.send(now, Up::Return { number: self.return_last, returns }, out);
    }

    fn send(&mut self, now: Instant, body: Up, out: &mut Vec<Output>) {
        self.sent_at = Some(now);
        out.push(Output::Send(Upward { session: self.session, stamp: now, body }));
    }
}

impl Grant {
    fn answers(&self, want: &Want) -> bool {
        self.scope.contains(&want.scope)
            && self.kind.covers(want.kind)
            && !self.except.iter().any(|except| except.meets(&want.scope))
    }
}

impl Machine for Holder {
    type Input = Input;
    type Output = Output;

    fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Need { wants, together } => self.on_need(now, wants, together, out),
            Input::Heard(message) => {
                // A lease that ended while we slept must not come back to life with the session.
                self.tend(now, out);
                self.on_heard(now, message, out);
            }
            Input::Pushed { lease, kind, part } => self.on_pushed(now, lease, kind, part, out),
            Input::Done { lease, kind } => self.on_done(lease, kind, out),
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.tend(now, out);
        self.repeat_asks(now, out);
        if self.renew_at().is_some_and(|at| at <= now) {
            self.send(now, Up::Renew, out);
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let repeats = self.asks.values().map(|ask| ask.repeat_at);
        repeats.chain(self.renew_at()).chain(self.tend_at).min()
    }
}
