//! Who is to sit in the group: members wish it, and then those to come show what they have.

use std::collections::BTreeMap;

use base::Instant;

use super::{Output, Replica};
use crate::{
    ballot::Certificate,
    batch::{Batch, Change, Decision, Unproven, Wish, Wisher},
    message::Message,
    seal::{Notary, Sealable as _},
    seat::{Seat, Seats},
};

/// So often can a question be asked again before those to be are not all waited for any more.
const LEARNERS_WAIT: u32 = 4;
/// A wish counts for so many times as long as it takes to be said again.
const WISH_LASTS: u32 = 10;

impl<N: Notary> Replica<N> {
    /// The change of members that can be decided next.
    pub(super) fn change_due(&self) -> Option<Change> {
        if let Some(proof) = &self.proof {
            return Some(Change::Prove(proof.clone()));
        }
        if let Some(change) = self.enact_due() {
            return Some(change);
        }
        let mut counts: BTreeMap<&Vec<Seat>, Vec<Wisher>> = BTreeMap::new();
        for (seats, wish) in self.wishes.values() {
            counts.entry(seats).or_default().push(*wish);
        }
        let (seats, wishes) = counts.into_iter().find(|(seats, wishes)| {
            wishes.len() >= self.tip.wishes_min(seats) && self.tip.plan.as_ref() != Some(*seats)
        })?;
        Some(Change::Plan { seats: seats.clone(), wishes })
    }

    /// What proves a change of members is known when it is decided, to who is there. It must not be lost, so
    /// the next thing that is decided is to have it.
    pub(super) fn take_proof(&mut self, certificate: &Certificate) {
        let is_change = |change: &Unproven| change.height == certificate.height;
        if self.tip.unproven.as_deref().is_some_and(is_change) {
            self.proof_mark = self.mark_behind(self.effective);
            self.proof = Some(self.with_seal(certificate));
        } else if self.tip.unproven.is_none() {
            self.proof = None;
        }
    }

    /// Whether who leads has left out what proves the last change of members, although it is known. If it does
    /// not know, somebody else has to lead: so a liar can't keep it from those who were not there.
    pub(super) fn is_proof_left_out(&self, batch: &Batch) -> bool {
        self.proof.is_some() && !matches!(batch.change, Some(Change::Prove(_)))
    }

    /// Shows all others what proves the last change of members: who leads next may have taken a state and not
    /// have seen it.
    pub(super) fn show_proof(&self, out: &mut Vec<Output>) {
        if let Some(change) = self.own_proof() {
            self.send_now(Message::Decisions(vec![change]), out);
        }
    }

    /// The last change of members with what proves it, if that is not decided yet and known here.
    pub(super) fn own_proof(&self) -> Option<Decision> {
        let (change, proof) = (self.tip.unproven.as_ref()?, self.proof.clone()?);
        Some(Decision { height: change.height, batch: change.batch.clone(), certificate: proof })
    }

    /// Takes what proves the last change of members from somebody else.
    pub(super) fn on_proof(&mut self, decision: &Decision) {
        let (group, notary) = (&self.charter.group, &self.notary);
        let is_proof = |change: &Unproven| {
            change.height == decision.height
                && change.is_proven_by(&decision.certificate, group, notary)
        };
        if self.proof.is_none() && self.tip.unproven.as_deref().is_some_and(is_proof) {
            self.take_proof(&decision.certificate);
        }
    }

    /// Whether it has sat here before, as far as can be told from what is known of the changes.
    pub(super) fn has_sat(&self) -> bool {
        let before = self.tip.unproven.iter().flat_map(|change| &change.seats);
        let enacted = self.tip.lineage.changes().iter().filter_map(|change| {
            let Some(Change::Enact { seats, .. }) = &change.batch.change else { return None };
            Some(seats)
        });
        before.chain(enacted.flatten()).any(|seat| *seat == self.me)
    }

    pub(super) fn on_wish(&mut self, epoch: u64, seats: Vec<Seat>, wisher: Wisher) {
        let Wisher { seat: from, until, seal } = wisher;
        let is_sound = Seats::new(seats.clone()).is_some_and(|set| set.list() == seats);
        if epoch != self.tip.epoch
            || !self.members.contains(&from)
            || !is_sound
            || seats == self.tip.seats
        {
            return;
        }
        let bytes = Wish { epoch, seats: seats.clone(), until }.sealed_bytes(&self.charter.group);
        if self.notary.is_sealed(&from.key, &bytes, &seal) {
            self.wishes.insert(from, (seats, wisher));
        }
    }

    pub(super) fn on_own_wish(
        &mut self,
        now: Instant,
        mut seats: Vec<Seat>,
        out: &mut Vec<Output>,
    ) {
        seats.sort_unstable();
        if seats == self.tip.seats || Seats::new(seats.clone()).is_none() {
            self.wish = None;
            self.wishes.remove(&self.me);
            return;
        }
        self.wish = Some(seats);
        self.say_again(now, out);
    }

    /// There is a plan, and those to be get some time to catch up.
    pub(super) fn await_learners(&mut self, now: Instant) {
        self.wait_at = self.tip.plan.as_ref().map(|_| now + LEARNERS_WAIT * self.settings.repeat);
    }

    /// A member to be says so when it has learnt of the plan.
    pub(super) fn on_plan(&mut self, now: Instant) {
        if self.is_learner() || self.wish.is_some() {
            self.say_again_at = Some(now);
        }
    }

    /// Says what others may not have heard.
    pub(super) fn say_again(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.say_again_at = None;
        let epoch = self.tip.epoch;
        if self.is_member()
            && let Some(seats) =
                self.wish.clone().filter(|seats| self.tip.plan.as_ref() != Some(seats))
        {
            let until = self.time(now) + WISH_LASTS * self.settings.repeat;
            let wish = Wish { epoch, seats: seats.clone(), until };
            let seal = self.notary.seal(&wish.sealed_bytes(&self.charter.group));
            self.wishes.insert(self.me, (seats.clone(), Wisher { seat: self.me, until, seal }));
            let message = Message::Wish { epoch, seats, until, seal };
            self.send_now(message, out);
            self.say_again_at = Some(now + self.settings.repeat);
        }
        self.show_again(out);
        if !self.is_member() && !self.is_stale && !self.has_left {
            self.ask_next(now, out);
            self.say_again_at = Some(now + self.settings.repeat);
        }
    }
}
