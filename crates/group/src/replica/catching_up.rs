//! A member that is behind: it asks others for decisions, or for what they have led to.

use std::collections::BTreeMap;

use base::{Digest, Domain, Instant};

use super::{Output, Record, Replica, serving::PIECE_BYTES};
use crate::{
    ballot::Certificate,
    batch::Decision,
    engine::Engine,
    lineage::Roll,
    message::{Message, Summary},
    point::Point,
    seal::Notary,
    seat::{Seat, Seats},
};

const STATE: Domain = Domain::new("group state v1");
/// Who may only miss a vote waits for it: this part of the time after which a question is asked again.
const SOON: u32 = 10;

/// The digest of a state's bytes.
pub(super) fn digest_of_state(state: &[u8]) -> Digest {
    Digest::of(STATE, state)
}

/// What is being asked for.
#[derive(Debug, Default)]
pub(super) struct CatchingUp {
    /// When to ask again, and how often still.
    again_at: Option<Instant>,
    asks_left: usize,
    /// The height that somebody has gone beyond, if all that is missing here may still be a vote on its way: once
    /// it is decided there is nothing to ask.
    awaited: Option<u64>,
    /// How many more are asked for a state, because somebody has decided what comes next on top of something else than
    /// is here: if those who sit here have gone on from there, it can't follow them in another way. Each is asked once,
    /// and as often as somebody says so again.
    parted: usize,
    /// Whom to ask next.
    turn: usize,
    /// What each member offers: those that are known, and those that are proven.
    offers: BTreeMap<Seat, Summary>,
    /// The newest members of whom it is proven that they sit here, or did.
    roll: Option<Roll>,
    /// Who is said to sit here, or has told of what is not known here. At most [`Seats::COUNT_MAX`].
    hints: Vec<Seat>,
    fetch: Option<Fetch>,
}

impl CatchingUp {
    /// These sit here now, which is proven, and what others offer leads nowhere.
    pub(super) fn pass_over(&mut self, roll: Roll) {
        *self = CatchingUp { roll: Some(roll), ..CatchingUp::default() };
    }

    /// The newest members of whom it is proven that they sit here, or did, if others were shown than are known.
    pub(super) fn roll(&self) -> Option<&Roll> {
        self.roll.as_ref()
    }

    /// These are the newest ones. What others have offered does not count any more.
    pub(super) fn prove(&mut self, roll: Roll) {
        self.roll = Some(roll);
        self.offers.clear();
        self.fetch = None;
    }

    /// How many bytes of a state have come.
    pub(super) fn fetched(&self) -> usize {
        self.fetch.as_ref().map_or(0, |fetch| fetch.bytes.len())
    }
}

/// A state on its way.
#[derive(Debug)]
struct Fetch {
    summary: Summary,
    /// Who has it; the first is asked.
    sources: Vec<Seat>,
    bytes: Vec<u8>,
    again_at: Instant,
    /// How often one has not answered since the last piece came. They forget states that are too old.
    unanswered: usize,
    /// Whether the bytes are of several sources, so that nobody could be blamed for them.
    is_mixed: bool,
    /// Whether that has gone wrong: then all bytes are to be of one source.
    is_strict: bool,
}

impl<N: Notary> Replica<N> {
    pub(super) fn catch_up_at(&self) -> Option<Instant> {
        let fetch = self.catching_up.fetch.as_ref().map(|fetch| fetch.again_at);
        fetch.or(self.catching_up.again_at)
    }

    /// Somebody knows more. Asks it, unless something has been asked just now.
    pub(super) fn ask(&mut self, now: Instant, whom: Seat, out: &mut Vec<Output>) {
        let whom_count = self.whom().len();
        let state = &mut self.catching_up;
        state.asks_left = 2 * whom_count;
        if state.awaited.take().is_some() {
            state.again_at = None;
        }
        if state.again_at.is_none() && state.fetch.is_none() {
            state.again_at = Some(now + self.settings.repeat);
            let message = self.behind();
            out.push(Output::Send { to: whom, message });
        }
    }

    /// Somebody has gone beyond the next height. That it is decided will be known in a moment; else it is asked for.
    pub(super) fn ask_soon(&mut self, now: Instant) {
        let state = &mut self.catching_up;
        if state.again_at.is_none() && state.fetch.is_none() {
            state.again_at = Some(now + self.settings.repeat / SOON);
            state.awaited = Some(self.tip.height + 1);
            state.asks_left = state.asks_left.max(1);
        }
    }

    /// A height was decided by votes that came here.
    pub(super) fn on_voted(&mut self, height: u64) {
        if self.catching_up.awaited.take_if(|awaited| *awaited <= height).is_some() {
            (self.catching_up.again_at, self.catching_up.asks_left) = (None, 0);
        }
    }

    /// All that may know more: those that are known to sit here, proven to, and said to.
    fn whom(&self) -> Vec<Seat> {
        let CatchingUp { roll, hints, .. } = &self.catching_up;
        let proven = roll.iter().flat_map(|roll| &roll.seats);
        let mut whom = Vec::new();
        for seat in self.members.list().iter().chain(proven).chain(hints) {
            if *seat != self.me && !whom.contains(seat) {
                whom.push(*seat);
            }
        }
        whom
    }

    /// Somebody that it has not heard of may know more: it is asked in turn with the others.
    pub(super) fn on_stranger(&mut self, seat: Seat) {
        let hints = &mut self.catching_up.hints;
        if !self.members.contains(&seat) && !hints.contains(&seat) {
            if hints.len() >= Seats::COUNT_MAX {
                hints.remove(0);
            }
            hints.push(seat);
        }
    }

    /// How far it is.
    fn behind(&mut self) -> Message {
        let (height, epoch) = (self.tip.height, self.tip.epoch);
        let is_parted = self.catching_up.parted > 0;
        self.catching_up.parted = self.catching_up.parted.saturating_sub(1);
        Message::Behind { height, epoch: if is_parted { epoch.max(height + 2) } else { epoch } }
    }

    /// Asks those that are said to sit here. What they answer proves itself, or enough vouch for it.
    pub(super) fn on_hint(&mut self, now: Instant, mut seats: Vec<Seat>, out: &mut Vec<Output>) {
        seats.truncate(Seats::COUNT_MAX);
        self.catching_up.hints = seats.clone();
        let message = self.behind();
        for to in seats.into_iter().filter(|seat| *seat != self.me) {
            out.push(Output::Send { to, message: message.clone() });
        }
        self.catching_up.asks_left = 2 * self.whom().len();
        self.catching_up.again_at = Some(now + self.settings.repeat);
    }

    /// Asks the next member for what comes next.
    pub(super) fn ask_next(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.catching_up.fetch.is_some() {
            return;
        }
        let others = self.whom();
        if let Some(to) = others.get(self.catching_up.turn % others.len().max(1)) {
            let message = self.behind();
            out.push(Output::Send { to: *to, message });
        }
        self.catching_up.turn += 1;
        self.catching_up.again_at = Some(now + self.settings.repeat);
    }

    pub(super) fn catch_up_again(&mut self, now: Instant, out: &mut Vec<Output>) {
        if let Some(fetch) = self.catching_up.fetch.as_mut().filter(|fetch| fetch.again_at <= now) {
            fetch.sources.rotate_left(1);
            fetch.unanswered += 1;
            if fetch.unanswered > 2 * fetch.sources.len() {
                fetch.sources.clear();
            }
            match fetch.is_strict {
                true => fetch.bytes.clear(),
                false => fetch.is_mixed = !fetch.bytes.is_empty(),
            }
            self.fetch_on(now, out);
            return;
        }
        if self.catching_up.again_at.is_some_and(|at| at <= now) {
            (self.catching_up.again_at, self.catching_up.awaited) = (None, None);
            if self.catching_up.asks_left > 0 {
                self.catching_up.asks_left -= 1;
                self.ask_next(now, out);
            }
        }
    }

    pub(super) fn on_decisions(
        &mut self,
        now: Instant,
        from: Seat,
        decisions: Vec<Decision>,
        out: &mut Vec<Output>,
    ) {
        let height = self.tip.height;
        if !self.is_member() {
            self.on_stranger(from);
        }
        self.on_changes(now, &decisions, out);
        for decision in decisions {
            if decision.height <= self.tip.height {
                self.on_proof(&decision);
                continue;
            }
            if decision.rescue().is_some() {
                continue;
            }
            if self.is_passed_over()
                || self.tip.is_blank()
                || !decision.follows(&self.tip, &self.charter.group, &self.notary)
            {
                // It may be true all the same: who has left is told so that it is to sit here again. And whoever was
                // alone here once may have decided different things for different newcomers.
                if decision.height == self.tip.height + 1 && !decision.batch.is_after(&self.tip) {
                    self.catching_up.parted = self.whom().len();
                }
                self.ask(now, from, out);
                break;
            }
            if self.is_seated_blindly(&decision) {
                let seated = std::slice::from_ref(&decision);
                let roll = Roll::from(&self.tip).after(seated, &self.charter, &self.notary);
                self.let_go(&roll, now, out);
                break;
            }
            let Decision { certificate, batch, .. } = decision.clone();
            self.records.push(Record::Decided(certificate, Some(batch)));
            self.accept(decision, now, out);
        }
        if self.tip.height > height {
            self.catching_up.offers.clear();
            (self.catching_up.fetch, self.catching_up.parted) = (None, 0);
            self.catching_up.again_at = Some(now + self.settings.repeat);
            let message = self.behind();
            out.push(Output::Send { to: from, message });
        }
    }

    pub(super) fn on_offer(
        &mut self,
        now: Instant,
        from: Seat,
        summary: Summary,
        proof: Option<&Certificate>,
        out: &mut Vec<Output>,
    ) {
        if !summary.tip.is_sound() || summary.tip.is_blank() {
            return;
        }
        self.on_changes(now, summary.tip.lineage.changes(), out);
        let is_denied = self.denies(&Point::from(&summary));
        let is_of_use = (summary.tip.height > self.tip.height || is_denied)
            && summary.bytes <= self.settings.state_bytes_max
            && self.catching_up.fetch.is_none();
        let roll = self.roll();
        // Who sat here once may be too few to be believed by now. A state from their time leads nowhere either:
        // what came after it was theirs to decide. Nor does one of members of whom nothing proves that they sit here.
        // But if what it has came from whoever was alone here, those who sit here may do so since another height
        // than is known: what a quorum of them has sealed is theirs, and nobody can have sealed what it has.
        let is_sealed = || {
            let (group, notary) = (&self.charter.group, &self.notary);
            summary.tip.seats == roll.seats
                && proof.is_some_and(|proof| summary.tip.is_sealed_by(proof, group, notary))
        };
        if !is_of_use || !(summary.tip.is_of(&roll) || is_sealed()) {
            return;
        }
        let Some(proven) = Seats::new(roll.seats.clone()).filter(|proven| proven.contains(&from))
        else {
            return;
        };
        let offers = &mut self.catching_up.offers;
        offers.retain(|seat, _| proven.contains(seat));
        offers.insert(from, summary.clone());
        let equal = offers.iter().filter(|(_, offer)| **offer == summary).map(|(seat, _)| *seat);
        let sources: Vec<Seat> = equal.collect();
        if sources.len() >= proven.witnesses() && is_denied {
            // Those who sit here have something else where this member has this.
            self.let_go(&roll, now, out);
        } else if sources.len() >= proven.witnesses() {
            let (bytes, again_at, unanswered) = (Vec::new(), now, 0);
            let (is_mixed, is_strict) = (false, false);
            let fetch =
                Fetch { summary, sources, bytes, again_at, unanswered, is_mixed, is_strict };
            self.catching_up.fetch = Some(fetch);
            self.fetch_on(now, out);
        } else {
            // Another one has to say the same.
            self.ask_next(now, out);
        }
    }

    fn fetch_on(&mut self, now: Instant, out: &mut Vec<Output>) {
        let Some(fetch) = &mut self.catching_up.fetch else { return };
        let Some(to) = fetch.sources.first() else {
            self.catching_up.fetch = None;
            self.catching_up.offers.clear();
            return self.ask_next(now, out);
        };
        fetch.again_at = now + self.settings.repeat;
        let (height, from) = (fetch.summary.tip.height, fetch.bytes.len() as u64);
        out.push(Output::Send { to: *to, message: Message::Fetch { height, from } });
    }

    pub(super) fn on_piece(
        &mut self,
        now: Instant,
        from: Seat,
        height: u64,
        start: u64,
        bytes: Vec<u8>,
        out: &mut Vec<Output>,
    ) {
        let Some(fetch) = &mut self.catching_up.fetch else { return };
        let is_next = fetch.sources.first() == Some(&from)
            && fetch.summary.tip.height == height
            && fetch.bytes.len() as u64 == start;
        if !is_next {
            return;
        }
        let left = fetch.summary.bytes.saturating_sub(start);
        let is_whole = bytes.len() as u64 == left.min(PIECE_BYTES as u64);
        fetch.bytes.extend(bytes);
        fetch.unanswered = 0;
        let is_last = left <= PIECE_BYTES as u64;
        if is_whole && is_last && digest_of_state(&fetch.bytes) == fetch.summary.state {
            return self.install(now, out);
        }
        if !is_whole || is_last {
            fetch.bytes.clear();
            match fetch.is_mixed && is_whole {
                true => (fetch.is_mixed, fetch.is_strict) = (false, true),
                // Whoever sends something else is not asked again.
                false => {
                    fetch.sources.remove(0);
                }
            }
        }
        self.fetch_on(now, out);
    }

    /// Takes the state that was fetched.
    fn install(&mut self, now: Instant, out: &mut Vec<Output>) {
        let Some(Fetch { summary, bytes, sources, .. }) = self.catching_up.fetch.take() else {
            return;
        };
        let (epoch, was_member) = (self.tip.epoch, self.is_member());
        self.leave_height();
        self.catching_up = CatchingUp::default();
        self.tip = summary.tip.clone();
        self.effective = self.tip.height;
        // What was to take effect is part of the state.
        let is_past =
            |output: &Output| matches!(output, Output::Decided(_) | Output::WantState { .. });
        self.held.retain(|(_, output)| !is_past(output));
        self.held_bytes = 0;
        self.members = self.tip.members();
        self.has_left = !self.is_member() && (was_member || self.has_left || self.has_sat());
        self.proof = None;
        self.clock.on_decided(self.tip.time, now);
        let (patience, members) = (self.settings.patience, self.members.clone());
        self.engine =
            Engine::new(self.charter.group, self.me, patience, self.tip.height + 1, members);
        self.recent.clear();
        self.recent_bytes = 0;
        self.records.push(Record::Installed(self.tip.clone()));
        self.checkpoints.clear();
        self.points.clear();
        self.note_point(Point::from(&summary));
        self.checkpoints.push_back((summary, bytes.as_slice().into()));
        if self.tip.epoch != epoch {
            self.on_new_epoch();
        }
        self.await_learners(now);
        if !was_member && self.is_member() {
            self.ask_time(now, out);
        }
        self.on_plan(now);
        out.push(Output::Install { tip: self.tip.clone(), state: bytes });
        if let Some(source) = sources.first() {
            self.ask(now, *source, out);
        }
    }
}
