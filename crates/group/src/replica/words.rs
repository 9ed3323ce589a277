//! What members say of the next height, and what is made of it.

use base::Instant;

use super::{Output, ROUNDS_AHEAD_MAX, Replica};
use crate::{
    ballot::{Proposal, Vote},
    batch::{Batch, Change},
    engine::{Fact, Word},
    seal::{Notary, Sealable as _, Sealed},
    seat::Seat,
};

impl<N: Notary> Replica<N> {
    pub(super) fn on_word(
        &mut self,
        now: Instant,
        from: Seat,
        word: Word,
        batch: Option<Batch>,
        is_fit: bool,
        out: &mut Vec<Output>,
    ) {
        let next = self.tip.height + 1;
        if !self.is_member() && !self.members.contains(&from) {
            // Whoever votes here sits somewhere: perhaps where this member is to sit, and was told otherwise.
            self.on_stranger(from);
            self.ask(now, from, out);
            return;
        }
        if word.height() < next {
            // Whoever says it again does not know that it is decided.
            if matches!(word, Word::Vote(_, true) | Word::Passage(_)) {
                self.serve(now, from, word.height().saturating_sub(1), out);
            }
            return;
        }
        if !self.members.contains(&from) || from == self.me {
            return;
        }
        if word.height() > next {
            match word.height() == next + 1 && self.is_on {
                true => self.ask_soon(now),
                false => self.ask(now, from, out),
            }
            self.ahead.keep(next + 1, from, word, batch, is_fit);
            return;
        }
        let is_too_late = word.round() >= self.settings.rounds_max
            || matches!(word, Word::Passage(_)) && !self.may_follow(word.round());
        if is_too_late || !self.may_vote() || self.is_alone() || !self.is_authentic(&from, &word) {
            return;
        }
        if let Word::Vote(vote, _) = &word {
            self.see(vote);
        }
        if !self.is_on {
            self.begin();
        }
        match (word, batch) {
            (Word::Proposal(proposal), Some(batch)) => {
                self.on_proposal(now, proposal, batch, is_fit, out);
            }
            (Word::Proposal(_), None) => {}
            (word, _) => {
                let mut deeds = Vec::new();
                self.engine.hear(&self.notary, word, &mut deeds);
                self.deeds.extend(deeds);
            }
        }
    }

    /// Whether who says it has sealed it. Certificates are checked by the engine.
    fn is_authentic(&mut self, from: &Seat, word: &Word) -> bool {
        let (seat, bytes, seal) = match word {
            Word::Vote(vote, _) if vote.what.seat == *from => {
                (vote.what.seat, vote.what.sealed_bytes(&self.charter.group), vote.seal)
            }
            Word::Proposal(proposal) if proposal.what.seat != self.me => {
                (proposal.what.seat, proposal.what.sealed_bytes(&self.charter.group), proposal.seal)
            }
            Word::Vote(..) | Word::Proposal(_) => return false,
            Word::Polka(_) | Word::Passage(_) => return true,
        };
        self.members.contains(&seat) && self.engine.is_sealed(&self.notary, &seat, &bytes, &seal)
    }

    /// Remembers the last vote of a member, so that it can be told if it does not know of it any more.
    pub(super) fn see(&mut self, vote: &Sealed<Vote>) {
        let seen = self.seen.entry(vote.what.seat).or_insert_with(|| vote.clone());
        if seen.what.order() < vote.what.order() {
            *seen = vote.clone();
        }
    }

    fn on_proposal(
        &mut self,
        now: Instant,
        proposal: Sealed<Proposal>,
        batch: Batch,
        is_fit: bool,
        out: &mut Vec<Output>,
    ) {
        let value = batch.digest();
        if value != proposal.what.value {
            return;
        }
        let Proposal { round, valid_round, seat, .. } = proposal.what;
        // Only who leads a round proposes something in it, and one thing. Nobody can use up the room for others.
        let is_led = *self.members.leader(round) == seat
            && round <= self.engine.round().saturating_add(ROUNDS_AHEAD_MAX);
        if !is_led {
            return;
        }
        let mut others = self.batches.iter().filter(|(other, _)| **other != value);
        if others.any(|(_, (last, _))| *last == round) {
            // A lie, of which the engine keeps the proof.
            let mut deeds = Vec::new();
            self.engine.hear(&self.notary, Word::Proposal(proposal), &mut deeds);
            self.deeds.extend(deeds);
            return;
        }
        let is_known = self.batches.contains_key(&value);
        // What a quorum has seen before, some honest member has found in time then. Whether it has is for the
        // engine to see. Somebody may only say so, so that later the batch is fit for being known.
        let is_old = valid_round.is_some();
        let is_in_time = is_old || self.clock.is_plausible(batch.time, now);
        let is_unfair = !is_old && self.is_unfair(now, round, &batch);
        if !is_in_time {
            self.ask_time(now, out);
        }
        if !is_old && self.is_proof_left_out(&batch) {
            self.show_proof(out);
        }
        let is_fit = is_known && (is_old || self.judged.contains(&value))
            || is_fit
                && is_in_time
                && (is_old
                    || batch.leader == seat
                        && !self.is_proof_left_out(&batch)
                        && self.has_seen(&batch))
                && !is_unfair
                && self.is_sound(&batch);
        if is_fit {
            self.keep(round, value, batch);
            if !is_old {
                self.judged.insert(value);
            }
        }
        let mut deeds = Vec::new();
        self.engine.hear(&self.notary, Word::Proposal(proposal), &mut deeds);
        let fact = Fact::Judged { round, valid_round, seat, value, is_fit };
        self.engine.take(&self.notary, fact, &mut deeds);
        self.deeds.extend(deeds);
    }

    /// Whether a batch may follow the last decision.
    fn is_sound(&self, batch: &Batch) -> bool {
        let bytes: usize = batch.commands.iter().map(Vec::len).sum();
        let change = batch.change.as_ref();
        let is_enacted = matches!(change, Some(Change::Enact { .. }));
        batch.is_after(&self.tip)
            && batch.time >= self.tip.time
            && !(is_enacted && bytes > 0)
            && batch.commands.len() <= self.settings.batch_count_max
            && bytes <= self.settings.batch_bytes_max
            && change.is_none_or(|change| {
                self.tip.admits(change, batch.time, &self.charter.group, &self.notary)
            })
    }
}
