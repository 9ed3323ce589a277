//! A member as its log has left it.

use std::sync::Arc;

use base::{Digest, Instant, Malformed};

use super::{Output, Record, Replica, Settings};
use crate::{
    batch::{Decision, Tip},
    engine::Fact,
    seal::Notary,
    seat::Seat,
};

impl<N: Notary> Replica<N> {
    /// A member with this log, of which the record before the first has this mark, on top of a state that
    /// belongs to `tip`. Decisions of the log that come after it go to `out`, to take effect again.
    #[expect(clippy::too_many_arguments, reason = "what a member is made of")]
    pub fn recover<'a>(
        settings: Settings,
        group: Digest,
        me: Seat,
        notary: N,
        tip: Tip,
        log: impl IntoIterator<Item = &'a [u8]>,
        mark: u64,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Result<Replica<N>, Malformed> {
        let mut replica = Replica::new(settings, group, me, notary, tip, now);
        let mut facts = Vec::new();
        replica.mark = mark;
        for bytes in log {
            replica.mark += 1;
            for record in base::decode::<Vec<Record>>(bytes, bytes.len())? {
                replica.replay(record, &mut facts, now, out)?;
            }
        }
        (replica.syncing, replica.safe) = (replica.mark, replica.mark);
        replica.records.clear();
        replica.held.clear();
        let next = replica.tip.height + 1;
        let facts: Vec<Fact> =
            facts.into_iter().filter(|(height, _)| *height == next).map(|(_, fact)| fact).collect();
        for fact in &facts {
            if let Fact::Vote(vote) = fact
                && vote.what.seat == me
            {
                replica.cast.push(vote.what.clone());
            }
        }
        replica.replay = Some(facts).filter(|facts| !facts.is_empty());
        replica.say_again_at = (!replica.is_member()).then_some(now);
        replica.greet(now);
        Ok(replica)
    }

    fn replay(
        &mut self,
        record: Record,
        facts: &mut Vec<(u64, Fact)>,
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
                facts.push((height, fact));
            }
            Record::Decided(certificate, batch) => {
                let known = self.batches.remove(&certificate.value).map(|(_, batch)| batch);
                let height = certificate.height;
                facts.clear();
                if height <= self.tip.height {
                    self.batches.clear();
                    return Ok(());
                }
                let Some(batch) = batch.or(known).filter(|_| height == self.tip.height + 1) else {
                    return Err(Malformed::new("a log whose decisions do not follow one another"));
                };
                let decision = Decision { height, batch, certificate };
                let mut outputs = Vec::new();
                self.accept(decision, now, &mut outputs);
                (self.decided_mark, self.held_bytes) = (self.mark, 0);
                outputs.extend(self.held.drain(..).map(|(_, output)| output));
                out.extend(outputs);
            }
            Record::Installed(tip) => {
                if tip.height > self.tip.height {
                    return Err(Malformed::new("a log that goes on from a state that is not here"));
                }
                facts.clear();
                self.batches.clear();
            }
            Record::Evidence(evidence) => self.keep_evidence(evidence),
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
