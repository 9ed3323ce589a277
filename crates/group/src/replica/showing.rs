//! What those to come show before they sit here: under their own key, what they have at a place of the order that
//! the members have decided too.
//!
//! Whoever has let a newcomer in may have shown it what was never decided. It can't tell, but it says what it has,
//! and then the members can. So it gets no seat that it would act from: either it has what they have, or it
//! finds out that it has not, lets go of everything, and takes what enough of them vouch for.

use super::{Output, Replica, Settings};
use crate::{
    batch::{Batch, Change, Decision, Ready},
    message::Message,
    point::Point,
    seal::{Notary, Seal, Sealable as _},
    seat::Seat,
};

/// A member to be that has shown what it has so often, and is none yet, shows what it has now: what it had may be
/// from before the members know.
const SHOWN_MAX: u32 = 8;

impl<N: Notary> Replica<N> {
    /// Whether it is to be a member.
    pub(super) fn is_learner(&self) -> bool {
        self.tip.learners().any(|seat| *seat == self.me)
    }

    /// What all decisions up to some height have led to here.
    pub(super) fn note_point(&mut self, point: Point) {
        let place = self.points.partition_point(|known| known.height < point.height);
        if self.points.get(place).is_none_or(|known| known.height != point.height) {
            self.points.insert(place, point);
        }
        while self.points.len() > Settings::POINTS_MAX {
            self.points.pop_front();
        }
        let first = self.points.front().map_or(0, |point| point.height);
        self.ready.retain(|(height, _), _| *height >= first);
    }

    /// Whether it has something else there.
    pub(super) fn denies(&self, point: &Point) -> bool {
        self.points.iter().any(|known| known.height == point.height && known != point)
    }

    /// The planned members can sit here now, with what those who come have shown last.
    pub(super) fn enact_due(&self) -> Option<Change> {
        let seats = self.tip.plan.clone()?;
        let count = self.tip.learners().count();
        if count == 0 {
            return Some(Change::Enact { seats, point: None, ready: Vec::new() });
        }
        self.points.iter().rev().find_map(|point| {
            let seal = |seat: &Seat| Some((*seat, *self.ready.get(&(point.height, *seat))?));
            let ready: Vec<_> = self.tip.learners().filter_map(seal).collect();
            let are_due = ready.len() == count || self.wait_at.is_none();
            let is_due = are_due && self.tip.is_enough(ready.len());
            is_due.then(|| Change::Enact { seats: seats.clone(), point: Some(*point), ready })
        })
    }

    /// Whether it has itself what those have shown who are to come with this batch.
    pub(super) fn has_seen(&self, batch: &Batch) -> bool {
        match &batch.change {
            Some(Change::Enact { point: Some(point), .. }) => self.points.contains(point),
            _ => true,
        }
    }

    /// Whether it is to sit here from now on, and can't tell that it has what those have who have come with it:
    /// then it may have been misled.
    pub(super) fn is_seated_blindly(&self, decision: &Decision) -> bool {
        let Some(Change::Enact { seats, .. }) = &decision.batch.change else { return false };
        seats.contains(&self.me)
            && !self.members.contains(&self.me)
            && !self.has_seen(&decision.batch)
    }

    /// A member to be shows what it has.
    pub(super) fn on_ready(
        &mut self,
        from: Seat,
        epoch: u64,
        seats: Vec<Seat>,
        point: Point,
        seal: Seal,
        out: &mut Vec<Output>,
    ) {
        let is_due = epoch == self.tip.epoch
            && self.tip.plan.as_ref() == Some(&seats)
            && self.tip.learners().any(|seat| *seat == from);
        let bytes = Ready { epoch, seats, seat: from, point }.sealed_bytes(&self.charter.group);
        if !is_due || !self.notary.is_sealed(&from.key, &bytes, &seal) {
            return;
        }
        if self.points.contains(&point) {
            self.ready.insert((point.height, from), seal);
        } else if self.denies(&point) {
            // It was misled, unless it lies. If enough say so, it finds out.
            let offer = self.checkpoints.back().map(|(summary, _)| self.offer(summary));
            out.extend(offer.map(|message| Output::Send { to: from, message }));
        } else if point.height == self.tip.height {
            self.want_state_here(out);
        }
    }

    /// Shows what it has to those who sit here, if it is to sit here too.
    pub(super) fn show_again(&mut self, out: &mut Vec<Output>) {
        if !self.is_learner() {
            self.shown = 0;
            return;
        }
        self.shown += 1;
        if self.shown > SHOWN_MAX && self.points.back().is_none_or(|p| p.height < self.tip.height) {
            self.shown = 0;
            self.want_state_here(out);
        }
        if let (Some(seats), Some(point)) = (self.tip.plan.clone(), self.points.back().copied()) {
            let (epoch, seat) = (self.tip.epoch, self.me);
            let ready = Ready { epoch, seats: seats.clone(), seat, point };
            let seal = self.notary.seal(&ready.sealed_bytes(&self.charter.group));
            self.send_now(Message::Ready { epoch, seats, point, seal }, out);
        }
    }

    /// Asks for the state at the tip out of turn, if it can be had and has not been asked for.
    pub(super) fn want_state_here(&mut self, out: &mut Vec<Output>) {
        let is_asked = self.asked.iter().any(|tip| tip.height == self.tip.height);
        if self.effective == self.tip.height && !is_asked {
            out.push(self.want_state());
        }
    }
}
