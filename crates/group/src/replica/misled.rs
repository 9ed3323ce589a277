//! A member that was misled: whoever it has believed at first sat here once, and no longer, and has shown it what
//! was never decided.
//!
//! It can't tell while nobody else speaks to it. As soon as it hears who has sat here since, it lets go of everything.

use base::Instant;

use super::{Output, Replica, catching_up::CatchingUp};
use crate::{
    batch::{Change, Decision, Tip},
    clock::Clock,
    engine::Engine,
    lineage::Roll,
    seal::Notary,
};

impl<N: Notary> Replica<N> {
    /// The newest members of whom it is proven that they sit here, or did.
    pub(super) fn roll(&self) -> Roll {
        let known = Roll::from(&self.tip);
        let proven = self.catching_up.roll().filter(|roll| roll.epoch > known.epoch);
        proven.cloned().unwrap_or(known)
    }

    /// Somebody, be it who it may, shows how the members have changed.
    pub(super) fn on_changes(&mut self, now: Instant, shown: &[Decision], out: &mut Vec<Output>) {
        let is_enacted = |one: &&Decision| matches!(one.batch.change, Some(Change::Enact { .. }));
        for rescue in shown.iter().filter(|decision| decision.rescue().is_some()) {
            self.on_rescue(now, rescue, out);
        }
        let changes: Vec<Decision> = shown.iter().filter(is_enacted).cloned().collect();
        let known = self.roll();
        let roll = known.after(&changes, &self.charter, &self.notary);
        if roll.epoch > known.epoch {
            // Those who sit here now may know that what others have offered was never decided.
            self.catching_up.prove(roll);
            self.look_back(now, out);
        }
    }

    /// Whether what it has goes on beyond a change of members without that change: then it was made up by those
    /// who sat here before.
    pub(super) fn look_back(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.is_replaying || self.is_stale {
            return;
        }
        let roll = self.roll();
        if roll.epoch > self.tip.epoch && roll.epoch <= self.tip.height + 1 {
            self.let_go(&roll, now, out);
        }
    }

    /// Nothing of what it has was ever decided, as far as it can tell. It goes on from those who sit here.
    pub(super) fn let_go(&mut self, roll: &Roll, now: Instant, out: &mut Vec<Output>) {
        self.leave_height();
        let has_voted = self.members.contains(&self.me) || self.has_left || self.has_sat();
        let Some(tip) = Tip::pinned(roll).filter(|_| !has_voted) else {
            // It has voted among those who have misled it, and nobody could tell from which side its votes are.
            self.is_stale = true;
            out.push(Output::Stale);
            return;
        };
        self.tip = tip.clone();
        self.members = tip.members();
        (self.records, self.effects) = (Vec::new(), Vec::new());
        (self.held, self.held_bytes) = Default::default();
        (self.prior_mark, self.decided_mark, self.effective) = (self.mark + 1, self.mark + 1, 0);
        (self.recent, self.recent_bytes) = Default::default();
        (self.checkpoints, self.points, self.asked) = Default::default();
        (self.wish, self.proof, self.greeting, self.rescued) = Default::default();
        self.catching_up = CatchingUp::default();
        self.clock = Clock::new(self.settings.doubt, tip.time, now);
        let (group, patience) = (self.charter.group, self.settings.patience);
        self.engine = Engine::new(group, self.me, patience, 1, self.members.clone());
        self.on_new_epoch();
        self.await_learners(now);
        self.say_again_at = Some(now);
        out.push(Output::Misled { tip });
    }
}
