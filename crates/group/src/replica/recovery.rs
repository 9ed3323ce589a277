//! A member as its log has left it.

use std::sync::Arc;

use base::{Instant, Malformed};

use super::{Output, Record, Replica, Settings};
use crate::{
    batch::{Batch, Change, Decision, Tip},
    engine::Fact,
    rescue::Charter,
    seal::Notary,
    seat::Seat,
};

impl<N: Notary> Replica<N> {
    /// A member with this log, of which the record before the first has this mark, on top of a state that
    /// belongs to `tip`. Decisions of the log that come after it go to `out`, to take effect again.
    #[expect(clippy::too_many_arguments, reason = "what a member is made of")]
    pub fn recover<'a>(
        settings: Settings,
        charter: impl Into<Charter>,
        me: Seat,
        notary: N,
        tip: Tip,
        log: impl IntoIterator<Item = &'a [u8]>,
        mark: u64,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<Replica<N>, Malformed> {
        let mut replica = Replica::new(settings, charter, me, notary, tip, now);
        replica.begin_replay(mark);
        for record in log {
            replica.replay(record, now, out)?;
        }
        replica.end_replay(now, out);
        Ok(replica)
    }

    /// Before anything else, a new member may go through its log, of which the record before the first has
    /// this mark.
    pub fn begin_replay(&mut self, mark: u64) {
        (self.mark, self.is_replaying) = (mark, true);
    }

    /// The next record of the log. Decisions in it go to `out`, to take effect again.
    pub fn replay(
        &mut self,
        record: &[u8],
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Malformed> {
        self.mark += 1;
        let records = base::decode::<Vec<Record>>(record, record.len())?;
        records.into_iter().try_for_each(|record| self.relive(record, now, out))
    }

    /// That was the whole log.
    pub fn end_replay(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.is_replaying = false;
        (self.syncing, self.safe) = (self.mark, self.mark);
        self.records.clear();
        self.held.clear();
        // What does not reach up to the state is of no use to anybody.
        if self.recent.back().is_some_and(|last| last.height < self.tip.height) {
            self.recent.clear();
            self.recent_bytes = 0;
        }
        for fact in self.replay.iter().flatten() {
            if let Fact::Vote(vote) = fact
                && vote.what.seat == self.me
            {
                self.cast.push(vote.what.clone());
            }
        }
        self.has_left |= !self.is_member() && self.has_sat();
        self.say_again_at = (!self.is_member() && !self.has_left).then_some(now);
        // Those that are to come may need it.
        if self.is_alone() && self.tip.plan.is_some() {
            out.push(self.want_state());
        }
        self.greet(now);
        out.extend(self.astray().cloned().map(Output::Astray));
    }

    fn relive(
        &mut self,
        record: Record,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<(), Malformed> {
        match record {
            Record::Batch(batch) => {
                self.batches.insert(batch.digest(), (0, batch));
            }
            Record::Fact(height, fact) => {
                // An old disk is noticed also when those who can tell have started again.
                if let Fact::Vote(vote) = &fact
                    && vote.what.seat != self.me
                {
                    self.see(vote);
                }
                if let Fact::Proposal(proposal) = &fact
                    && let Some((round, _)) = self.batches.get_mut(&proposal.what.value)
                {
                    *round = proposal.what.round;
                }
                if height == self.tip.height + 1 {
                    self.replay.get_or_insert_default().push(fact);
                }
            }
            Record::Decided(certificate, batch) => {
                let known = self.batches.remove(&certificate.value).map(|(_, batch)| batch);
                let height = certificate.height;
                self.replay = None;
                if height <= self.tip.height {
                    self.batches.clear();
                    self.take_proof(&certificate);
                    self.on_effect(self.mark, self.tip.height);
                    if let Some(batch) = batch.or(known) {
                        self.remember(Arc::new(Decision { height, batch, certificate }));
                    }
                    return Ok(());
                }
                let is_next = |batch: &Batch| {
                    height == self.tip.height + 1 && batch.is_after(&self.tip)
                        || matches!(batch.change, Some(Change::Rescue(_)))
                };
                let Some(batch) = batch.or(known).filter(is_next) else {
                    return Err(Malformed::new("a log whose decisions do not follow one another"));
                };
                let decision = Decision { height, batch, certificate };
                let mut outputs = Vec::new();
                self.accept(decision, now, &mut outputs);
                let was_held = self.held_bytes > 0;
                outputs.append(&mut self.effects);
                outputs.extend(self.held.drain(..).map(|(_, output)| output));
                self.held_bytes = 0;
                if was_held {
                    self.on_effect(self.mark, height);
                } else {
                    self.decided_mark = self.mark;
                }
                out.extend(outputs);
            }
            Record::Installed(tip) => {
                if tip.height > self.tip.height {
                    return Err(Malformed::new("a log that goes on from a state that is not here"));
                }
                self.replay = None;
                self.batches.clear();
                self.recent.clear();
                self.recent_bytes = 0;
            }
            Record::Evidence(evidence) => _ = self.keep_evidence(evidence),
            Record::Astray(astray) => self.go_astray(astray, self.mark.saturating_sub(1)),
            Record::Rescued(decision) => {
                if decision.height > self.tip.height {
                    self.pass_over(decision, self.mark.saturating_sub(1));
                }
            }
        }
        Ok(())
    }

    /// A state that is on the disk and the point that it belongs to, for those that are behind. Without it
    /// members that all start again could not help one that is further behind than their logs reach.
    pub fn hold_state(&mut self, tip: Tip, state: Arc<[u8]>) {
        if tip.height > 0 {
            self.hold(tip, state);
        }
    }
}
