//! What a member does for those that are behind.

use std::sync::Arc;

use base::{Instant, PublicKey};
use load::reservoir::Allowance;

use super::{Output, Replica, Settings, catching_up::digest_of_state};
use crate::{
    ballot::{Certificate, Step, Vote},
    batch::{Decision, Tip},
    message::{Message, Summary},
    point::Point,
    seal::{Notary, Sealable as _},
    seat::Seat,
};

/// So many decisions are told at once, and so many bytes of them, but at least one.
const SERVED_MAX: usize = 64;
const SERVED_BYTES_MAX: usize = 1 << 20;
/// The bytes of a piece of a state; the last has what is left.
pub(super) const PIECE_BYTES: usize = 256 << 10;
/// What an answer counts for at the least.
const ANSWER_BYTES: usize = 4 << 10;
/// A state is not made out of turn for a member that can't follow before so many times as long as a question waits.
const MAKE_PAUSE: u32 = 4;
/// So many points are remembered whose state has been asked for and not come.
const ASKED_MAX: usize = 4;

impl<N: Notary> Replica<N> {
    /// Keeps a decision for those that are behind.
    pub(super) fn remember(&mut self, decision: Arc<Decision>) {
        if self.recent.back().is_some_and(|last| last.height + 1 != decision.height) {
            self.recent.clear();
            self.recent_bytes = 0;
        }
        self.recent_bytes += bytes_of(&decision);
        self.recent.push_back(decision);
        while self.recent.len() > self.settings.recent_max
            || self.recent_bytes > self.settings.recent_bytes_max
        {
            let Some(oldest) = self.recent.pop_front() else { break };
            self.recent_bytes -= bytes_of(&oldest);
        }
    }

    /// Tells somebody what comes after a height that it believes to be the last, but not at every word.
    pub(super) fn serve(&mut self, now: Instant, to: Seat, after: u64, out: &mut Vec<Output>) {
        let pause = self.settings.repeat / 4;
        if self.served.get(&to).is_some_and(|at| *at + pause > now) {
            return;
        }
        if self.served.len() >= Settings::SERVED_MAX {
            self.served.retain(|_, at| *at + pause > now);
            if self.served.len() >= Settings::SERVED_MAX {
                return;
            }
        }
        self.served.insert(to, now);
        self.on_behind(now, to, after, self.tip.epoch, out);
    }

    /// Tells somebody what comes after a height, if it was not told too much lately: what it asks with is small, and
    /// what it is told is not. It asks again.
    pub(super) fn on_behind(
        &mut self,
        now: Instant,
        from: Seat,
        height: u64,
        epoch: u64,
        out: &mut Vec<Output>,
    ) {
        if self.may_tell(now, &from) {
            let before = out.len();
            self.tell(now, from, height, epoch, out);
            let bytes = out[before..].iter().map(bytes_told).sum();
            self.note_told(now, &from, bytes);
        }
    }

    /// How the members have changed since, for somebody who wants to know. None if it was told too much lately.
    pub fn show_changes(
        &mut self,
        now: Instant,
        to: PublicKey,
        epoch: u64,
    ) -> Option<Vec<Decision>> {
        let to = self.tip.seat_of(&to);
        self.may_tell(now, &to).then(|| {
            let changes = self.changes_since(epoch);
            self.note_told(now, &to, changes.iter().map(bytes_of).sum());
            changes
        })
    }

    fn may_tell(&self, now: Instant, to: &Seat) -> bool {
        self.told.may(now, &to.key, self.allowance(to))
    }

    fn note_told(&mut self, now: Instant, to: &Seat, bytes: usize) {
        let allowance = self.allowance(to);
        self.told.spend(now, &to.key, allowance, (bytes + ANSWER_BYTES) as u64);
    }

    fn allowance(&self, to: &Seat) -> Allowance {
        match self.knows(to) {
            true => self.settings.told_members,
            false => self.settings.told_others,
        }
    }

    fn tell(&mut self, now: Instant, from: Seat, height: u64, epoch: u64, out: &mut Vec<Output>) {
        if height.saturating_add(1) >= self.tip.epoch && epoch < self.tip.epoch {
            // Others have sat here since, which it would know if it had what was decided.
            let changes = self.changes_since(epoch);
            if !changes.is_empty() {
                out.push(Output::Send { to: from, message: Message::Decisions(changes) });
                return;
            }
        }
        // What could still be lost with the power is told to nobody.
        if height >= self.effective {
            out.push(Output::Send { to: from, message: Message::Decisions(Vec::new()) });
            return;
        }
        if self.last_rescue().is_some_and(|rescue| rescue.height > height) {
            self.show_rescue(from, out);
        }
        let is_blank = epoch > height + 1;
        let first = self.recent.front().map_or(u64::MAX, |decision| decision.height);
        if first <= height + 1 && !is_blank {
            let mut bytes = 0;
            let skipped = (height + 1 - first) as usize;
            let count = SERVED_MAX.min((self.effective - height) as usize);
            let next = self.recent.iter().skip(skipped).take(count);
            let next = next.take_while(|decision| {
                let is_first = bytes == 0;
                bytes += bytes_of(decision);
                is_first || bytes <= SERVED_BYTES_MAX
            });
            let decisions = next.map(|decision| self.shown(decision)).collect();
            out.push(Output::Send { to: from, message: Message::Decisions(decisions) });
        } else if let Some((summary, _)) = self.checkpoints.back()
            && summary.tip.height > height
        {
            let offer = self.offer(summary);
            // It takes a state only of those of whom it is proven that they sit here, and they may need it to decide
            // anything at all.
            let change = self.own_proof().filter(|change| change.height <= self.effective);
            out.extend(change.map(|change| {
                let message = Message::Decisions(vec![change]);
                Output::Send { to: from, message }
            }));
            out.push(Output::Send { to: from, message: offer });
        } else if is_blank
            && self.members.contains(&from)
            && self.made_at.is_none_or(|at| at + MAKE_PAUSE * self.settings.repeat <= now)
        {
            // The others may need it to decide anything more, and it needs a state from beyond what it has said.
            self.made_at = Some(now);
            self.want_state_here(out);
        }
    }

    /// How a state is offered.
    pub(super) fn offer(&self, summary: &Summary) -> Message {
        let decision = self.recent.iter().find(|one| one.height == summary.tip.height);
        let proof = decision.map(|decision| self.with_seal(&decision.certificate));
        Message::Offer(summary.clone(), proof)
    }

    /// Whoever was away has to know of it, also if it was no member that has gone on.
    pub(super) fn show_rescue(&self, to: Seat, out: &mut Vec<Output>) {
        if let Some(rescue) = self.last_rescue().filter(|_| to != self.me) {
            out.push(Output::Send { to, message: Message::Decisions(vec![rescue.clone()]) });
        }
    }

    /// What was decided alone gets its seal when somebody else wants to see it.
    pub(super) fn with_seal(&self, certificate: &Certificate) -> Certificate {
        let mut certificate = certificate.clone();
        if certificate.seals.is_empty() {
            let vote = Vote {
                height: certificate.height,
                round: certificate.round,
                step: Step::Precommit,
                value: Some(certificate.value),
                seat: self.me,
            };
            let seal = self.notary.seal(&vote.sealed_bytes(&self.charter.group));
            certificate.seals.push((self.me, seal));
        }
        certificate
    }

    /// A decision as others want to see it.
    pub(super) fn shown(&self, decision: &Decision) -> Decision {
        let Decision { height, batch, certificate } = decision;
        let certificate = self.with_seal(certificate);
        Decision { height: *height, batch: batch.clone(), certificate }
    }

    pub(super) fn on_fetch(
        &mut self,
        now: Instant,
        from: Seat,
        height: u64,
        start: u64,
        out: &mut Vec<Output>,
    ) {
        if !self.may_tell(now, &from) {
            return;
        }
        let found = self.checkpoints.iter().find(|(summary, _)| summary.tip.height == height);
        let Some((_, state)) = found else { return };
        let Some(rest) = usize::try_from(start).ok().and_then(|start| state.get(start..)) else {
            return;
        };
        let bytes = rest[..rest.len().min(PIECE_BYTES)].to_vec();
        self.note_told(now, &from, bytes.len());
        let message = Message::Piece { height, from: start, bytes };
        out.push(Output::Send { to: from, message });
    }

    pub(super) fn on_state(
        &mut self,
        now: Instant,
        height: u64,
        state: Arc<[u8]>,
        out: &mut Vec<Output>,
    ) {
        let Some(place) = self.asked.iter().position(|tip| tip.height == height) else { return };
        let Some(tip) = self.asked.drain(..=place).next_back() else { return };
        self.hold(tip, state);
        self.vouch(height, out);
        self.on_plan(now);
    }

    /// Keeps a checkpoint, the last two of them.
    pub(super) fn hold(&mut self, tip: Tip, state: Arc<[u8]>) {
        let place = self.checkpoints.partition_point(|(held, _)| held.tip.height < tip.height);
        let summary = Summary { tip, state: digest_of_state(&state), bytes: state.len() as u64 };
        self.note_point(Point::from(&summary));
        self.checkpoints.insert(place, (summary, state));
        if self.checkpoints.len() > Settings::STATES_MAX {
            self.checkpoints.pop_front();
        }
    }

    /// Asks for the state at the tip.
    pub(super) fn want_state(&mut self) -> Output {
        self.asked.retain(|tip| tip.height != self.tip.height);
        self.asked.push_back(self.tip.clone());
        if self.asked.len() > ASKED_MAX {
            self.asked.pop_front();
        }
        Output::WantState { height: self.tip.height }
    }
}

/// About how many bytes of decisions are in it.
fn bytes_told(output: &Output) -> usize {
    match output {
        Output::Send { message: Message::Decisions(decisions), .. } => {
            decisions.iter().map(bytes_of).sum()
        }
        Output::Send { message: Message::Offer(Summary { tip, .. }, _), .. } => {
            tip.lineage.changes().iter().map(bytes_of).sum()
        }
        _ => 0,
    }
}

/// About how much room a decision takes.
pub(super) fn bytes_of(decision: &Decision) -> usize {
    let commands = decision.batch.commands.iter();
    512 + commands.map(|command| command.len() + 8).sum::<usize>()
}
