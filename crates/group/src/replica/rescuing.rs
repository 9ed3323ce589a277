//! What a member does when the authority says that the group goes on from one survivor: that one goes on, and
//! all others let go of what they have, when they have found that no quorum of them is left.

use base::{Digest, Instant};
use borsh::{BorshDeserialize, BorshSerialize};

use super::{Output, Record, Replica};
use crate::{
    ballot::{Certificate, Step},
    batch::Decision,
    engine::Engine,
    hesitation::Hesitation,
    lineage::Roll,
    message::Message,
    rescue::Rescue,
    seal::{Notary, Sealed},
    seat::{Seat, Seats},
};

/// How much a member has of what was decided, or may have been. Of two survivors the greater one knows more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Reach {
    /// The last place that was decided.
    pub height: u64,
    /// In which attempt it has bound itself to a batch at the next place. That one may have been decided, with
    /// votes of those who are lost; and if one was, whoever has bound itself later has bound itself to it too.
    pub bound: Option<u32>,
}

impl<N: Notary> Replica<N> {
    /// How much it has.
    pub fn reach(&self) -> Reach {
        Reach { height: self.tip.height, bound: self.bound().map(|(round, _)| round) }
    }

    /// The last batch that it has bound itself to at the next height, and in which round.
    fn bound(&self) -> Option<(u32, Digest)> {
        let height = self.tip.height + 1;
        let votes = self.cast.iter().filter(|vote| vote.height == height);
        let votes = votes.filter(|vote| vote.step == Step::Precommit);
        let bound = votes.filter_map(|vote| Some((vote.round, vote.value?)));
        bound.filter(|(_, value)| self.batches.contains_key(value)).max_by_key(|(round, _)| *round)
    }

    /// Whether the authority has let the group go on from somebody else, and what that has led to is not here.
    pub fn is_passed_over(&self) -> bool {
        self.rescued.as_ref().is_some_and(|rescue| rescue.height > self.tip.height)
    }

    /// The last rescue that is known and may be told of.
    pub fn last_rescue(&self) -> Option<&Decision> {
        let own = self.tip.lineage.rescue().filter(|rescue| rescue.height <= self.effective);
        self.rescued.as_ref().into_iter().chain(own).max_by_key(|rescue| rescue.height)
    }

    /// The first height at which the members were those that it knows of last.
    pub fn epoch_known(&self) -> u64 {
        let rescued = self.rescued.as_ref().map_or(0, |rescue| rescue.height + 1);
        self.tip.epoch.max(rescued)
    }

    /// How the members have changed, for somebody who knows them since this height.
    pub fn changes_since(&self, epoch: u64) -> Vec<Decision> {
        let rescue = self.last_rescue();
        if self.is_passed_over() {
            return rescue.cloned().into_iter().collect();
        }
        // A rescue that is not safe yet is shown to nobody.
        let lineage = &self.tip.lineage;
        let is_safe = lineage.rescue().is_none_or(|own| rescue == Some(own));
        let changes = if is_safe { lineage.since(epoch) } else { &[] };
        changes.to_vec()
    }

    /// The authority lets the group go on from this member, which stands where it is said to.
    pub(super) fn on_own_rescue(
        &mut self,
        now: Instant,
        rescue: &Sealed<Rescue>,
        out: &mut Vec<Output>,
    ) {
        let Rescue { number, seat, height, time, .. } = &rescue.what;
        let known = self.rescued.as_ref().map_or(self.tip.height, |known| known.height);
        let is_due = *seat == self.me
            && *height == self.tip.height
            && *time >= self.tip.time
            && *number > Rescue::number_at(known.max(self.tip.height))
            && !self.is_stale
            && self.charter.allows(rescue, &self.notary);
        if !is_due {
            return;
        }
        if let Some((_, batch)) = self.bound().and_then(|(_, value)| self.batches.remove(&value)) {
            // Somebody may have been told that it is decided.
            let (height, round, step) = (self.tip.height + 1, 0, Step::Precommit);
            let (value, seals) = (batch.digest(), Vec::new());
            let certificate = Certificate { height, round, step, value, seals };
            self.take(Decision { height, batch, certificate }, now, out);
        }
        self.take(rescue.decision(), now, out);
        let (patience, members) = (self.settings.patience, self.members.clone());
        let (group, next) = (self.charter.group, self.tip.height + 1);
        self.engine = Engine::new(group, self.me, patience, next, members);
    }

    /// Takes a decision that nobody has to prove to it.
    fn take(&mut self, mut decision: Decision, now: Instant, out: &mut Vec<Output>) {
        // The agreed time never goes back.
        decision.batch.time = decision.batch.time.max(self.tip.time);
        let Decision { certificate, batch, .. } = decision.clone();
        self.records.push(Record::Decided(certificate, Some(batch)));
        self.accept(decision, now, out);
    }

    /// Somebody, be it who it may, shows a rescue. Before it is obeyed all members are asked whether they decide.
    pub(super) fn on_rescue(&mut self, now: Instant, decision: &Decision, out: &mut Vec<Output>) {
        let known = self.rescued.as_ref().map_or(0, |known| known.height).max(self.tip.height);
        let is_one = self.charter.rescue(decision, &self.notary).is_some();
        if !is_one || decision.height <= known || self.is_stale {
            return;
        }
        match &mut self.hesitation {
            Some(heard) if heard.rescue().height >= decision.height => {
                heard.on_shown_again(self.settings.hesitate, now);
            }
            _ => {
                let members = self.members_proven();
                self.hesitation = Some(Hesitation::new(decision.clone(), members, now));
            }
        }
        self.hesitate_again(now, out);
    }

    /// Those who sit here now, as far as that is proven.
    fn members_proven(&self) -> Seats {
        Seats::new(self.roll().seats).unwrap_or_else(|| self.members.clone())
    }

    pub(super) fn hesitate_at(&self) -> Option<Instant> {
        self.hesitation.as_ref().and_then(Hesitation::wake_at)
    }

    /// Asks those who have not answered, and obeys if too few have for long.
    pub(super) fn hesitate_again(&mut self, now: Instant, out: &mut Vec<Output>) {
        let (members, me, height) = (self.members_proven(), self.me, self.tip.height);
        let (may_vote, repeat, span) =
            (self.may_vote(), self.settings.repeat, self.settings.hesitate);
        let Some(heard) = &mut self.hesitation else { return };
        heard.ask_others(&members, now);
        if may_vote {
            heard.on_answer(me, height);
        }
        if heard.is_over(span, repeat, now) {
            return self.obey(now, out);
        }
        let message = Message::Hello { nonce: heard.nonce() };
        for to in heard.ask(now, repeat).into_iter().filter(|seat| *seat != me) {
            out.push(Output::Send { to, message: message.clone() });
        }
    }

    /// A member answers that it is there.
    pub(super) fn on_there(&mut self, from: Seat, nonce: u64, height: u64) {
        if let Some(heard) = self.hesitation.as_mut().filter(|heard| heard.nonce() == nonce) {
            heard.on_answer(from, height);
        }
    }

    /// A rescue that it was shown and has not obeyed.
    pub fn hesitation(&self) -> Option<&Hesitation> {
        self.hesitation.as_ref()
    }

    /// From now on this member has no say in what comes after the heights that it knows, until it has what the
    /// survivor had.
    pub(super) fn obey(&mut self, now: Instant, out: &mut Vec<Output>) {
        let known = self.rescued.as_ref().map_or(0, |known| known.height).max(self.tip.height);
        let heard = self.hesitation.take().filter(|heard| heard.rescue().height > known);
        let Some(decision) = heard.map(|heard| heard.rescue().clone()) else { return };
        let Some(survivor) = decision.rescue().map(|rescue| rescue.what.seat) else { return };
        self.leave_height();
        if survivor == self.me {
            // It has gone on from there once, and its disk does not know.
            self.is_stale = true;
            out.push(Output::Stale);
            return;
        }
        self.records.push(Record::Rescued(decision.clone()));
        self.pass_over(decision, self.mark);
        self.ask(now, survivor, out);
    }

    /// This member sits here no more. Of the log what comes after this mark says so.
    pub(super) fn pass_over(&mut self, decision: Decision, mark: u64) {
        self.rescue_mark = mark;
        self.has_left |= self.members.contains(&self.me);
        (self.greeting, self.wish) = (None, None);
        self.wishes.clear();
        self.ready.clear();
        let roll = Roll::from(&self.tip).after(
            std::slice::from_ref(&decision),
            &self.charter,
            &self.notary,
        );
        self.catching_up.pass_over(roll);
        self.rescued = Some(decision);
    }
}
