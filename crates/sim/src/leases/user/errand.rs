//! Errands: pushing what depends on a lease before the lease goes back.

use base::Instant;
use lease::{Kind, Scope, holder::Input};

use crate::leases::{
    actor::{Message, Out, SERVER, Value},
    place::Leaf,
    tamper::Tamper,
};

use super::User;

/// Changes on their way to the grantor.
#[derive(Debug)]
pub(super) struct Errand {
    /// The lease that waits for it, if one does.
    lease: Option<(Scope, Kind)>,
    part: Scope,
    /// What is on the way.
    sent: Option<u64>,
    writes: Vec<(Leaf, u64)>,
    /// When to send it, or to send it again.
    pub(super) due_at: Instant,
}

impl<T: Tamper> User<T> {
    /// Will push what has changed in a part, after a while.
    pub(super) fn take_errand(&mut self, now: Instant, lease: Option<(Scope, Kind)>, part: Scope) {
        let due_at = now + self.habit.draw_push(&mut self.rng);
        self.errands.push(Errand { lease, part, sent: None, writes: Vec::new(), due_at });
    }

    pub(super) fn run_errands(&mut self, now: Instant, out: &mut Out<T>) {
        while let Some(index) = self.errands.iter().position(|errand| errand.due_at <= now) {
            self.run_errand(now, index, out);
        }
    }

    fn run_errand(&mut self, now: Instant, index: usize, out: &mut Out<T>) {
        let errand = &mut self.errands[index];
        if errand.sent.is_none() {
            let dirty = self.place.within(&errand.part).filter(|leaf| self.copies[*leaf].is_dirty);
            errand.writes = dirty.map(|leaf| (leaf, self.copies[leaf].value.number)).collect();
            if errand.writes.is_empty() || (errand.lease.is_some() && !self.tamper.pushes()) {
                return self.finish(now, index, out);
            }
            errand.sent = Some(self.token_next);
            self.token_next += 1;
        }
        errand.due_at = now + self.terms.repeat;
        let token = errand.sent.unwrap_or_default();
        let writes = errand.writes.clone();
        out.send(SERVER, Message::Push { session: self.session, token, writes });
    }

    fn finish(&mut self, now: Instant, index: usize, out: &mut Out<T>) {
        let errand = self.errands.swap_remove(index);
        if let Some((lease, kind)) = errand.lease {
            self.step(now, Input::Pushed { lease, kind, part: errand.part }, out);
        }
    }

    pub(super) fn on_pushed(
        &mut self,
        now: Instant,
        token: u64,
        outcome: &[(Leaf, Option<Value>)],
        out: &mut Out<T>,
    ) {
        let Some(errand) = self.errands.iter_mut().find(|errand| errand.sent == Some(token)) else {
            return;
        };
        for &(leaf, value) in outcome {
            let copy = &mut self.copies[leaf];
            match value {
                Some(value) => copy.settle(value),
                // Another errand may have brought it home before its lease went back.
                None if copy.is_dirty => copy.undo(),
                None => {}
            }
        }
        // Whatever has changed again in the meantime goes the same way.
        errand.sent = None;
        errand.due_at = now;
        self.run_errands(now, out);
    }

    /// Pushes everything that has changed, without letting go of anything.
    pub(super) fn sync(&mut self, now: Instant) {
        let is_dirty = self.copies.iter().any(|copy| copy.is_dirty);
        if is_dirty && self.errands.iter().all(|errand| errand.lease.is_some()) {
            let all = lease::Field::Tree.of(&base::FileId::ROOT);
            self.take_errand(now, None, all);
        }
    }
}
