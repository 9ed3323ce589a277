//! Members tell one another what the decisions up to a checkpoint have led to, each under its seal.
//!
//! Equal decisions lead to equal states. A member whose disk or memory has failed, or whose program is another one,
//! can have a different state all the same. So many others that one of them is honest then say otherwise; it says
//! nothing more, and what they have sealed is kept.

use std::collections::{BTreeMap, VecDeque};

use base::Digest;
use borsh::{BorshDeserialize, BorshSerialize};

use super::{Output, Record, Replica, Settings};
use crate::{
    message::{Message, Vouch},
    seal::{Notary, Sealable as _, Sealed},
    seat::Seat,
};

/// How a member has gone astray.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Astray {
    /// Up to which point all decisions led to something else here.
    pub height: u64,
    /// The digest of the state here.
    pub state: Digest,
    /// What others have sealed, in order of their seats: one state, and so many that one of them is honest.
    pub others: Vec<Sealed<Vouch>>,
}

/// What others say of their states, and what came of that.
#[derive(Debug, Default)]
pub(super) struct Agreeing {
    /// The last that each has said: as many as there are checkpoints here.
    said: BTreeMap<Seat, VecDeque<Sealed<Vouch>>>,
    /// Why this member says nothing more, if it does not, and the mark of the log before that.
    astray: Option<(Astray, u64)>,
}

impl Agreeing {
    pub(super) fn len(&self) -> usize {
        self.said.values().map(VecDeque::len).sum()
    }

    /// Members have changed.
    pub(super) fn forget(&mut self, is_member: impl Fn(&Seat) -> bool) {
        self.said.retain(|seat, _| is_member(seat));
    }

    /// The log is needed from behind this mark on, if at all.
    pub(super) fn mark(&self) -> Option<u64> {
        self.astray.as_ref().map(|(_, mark)| *mark)
    }
}

impl<N: Notary> Replica<N> {
    /// How it has gone astray, if it has.
    pub fn astray(&self) -> Option<&Astray> {
        self.agreeing.astray.as_ref().map(|(astray, _)| astray)
    }

    /// Tells the others of the state at a checkpoint, and compares it with theirs.
    pub(super) fn vouch(&mut self, height: u64, out: &mut Vec<Output>) {
        let known = self.checkpoints.iter().find(|(summary, _)| summary.tip.height == height);
        let state = known.map(|(summary, _)| summary.state);
        let Some(state) = state.filter(|_| self.is_member() && !self.is_replaying) else { return };
        if self.is_stale {
            return;
        }
        let what = Vouch { height, state, seat: self.me };
        let seal = self.notary.seal(&what.sealed_bytes(&self.charter.group));
        self.send_now(Message::Vouch(Sealed { what, seal }), out);
        self.compare();
    }

    /// A member tells of its state.
    pub(super) fn on_vouch(&mut self, from: Seat, vouch: Sealed<Vouch>) {
        let Sealed { what, seal } = &vouch;
        let said = self.agreeing.said.get(&from).and_then(VecDeque::back);
        let is_news = said.is_none_or(|last| last.what.height < what.height);
        let bytes = what.sealed_bytes(&self.charter.group);
        if what.seat == from
            && from != self.me
            && is_news
            && self.members.contains(&from)
            && self.notary.is_sealed(&from.key, &bytes, seal)
        {
            let said = self.agreeing.said.entry(from).or_default();
            said.push_back(vouch);
            if said.len() > Settings::STATES_MAX {
                said.pop_front();
            }
            self.compare();
        }
    }

    /// Says nothing more if so many others that one of them is honest have one state that is not this one.
    fn compare(&mut self) {
        // One other could not tell which of the two is right, where nobody may lie.
        let enough = self.members.witnesses().max(2);
        // What it has from before it sat here is what it was told: that others have something else there is no fault
        // of its own, and it finds out because it can't follow them.
        let mut own = self.checkpoints.iter().filter(|(one, _)| one.tip.height >= self.tip.epoch);
        let found = own.find_map(|(summary, _)| {
            let (height, state) = (summary.tip.height, summary.state);
            let mut counts: BTreeMap<Digest, Vec<Sealed<Vouch>>> = BTreeMap::new();
            let said = self.agreeing.said.values().flatten();
            for vouch in said.filter(|vouch| vouch.what.height == height) {
                counts.entry(vouch.what.state).or_default().push(vouch.clone());
            }
            counts.remove(&state);
            let mut others = counts.into_values();
            let others = others.find(|others| others.len() >= enough)?;
            Some(Astray { height, state, others })
        });
        if let Some(astray) = found.filter(|_| !self.is_stale) {
            self.records.push(Record::Astray(astray.clone()));
            self.held.push_back((self.mark + 1, Output::Astray(astray.clone())));
            self.go_astray(astray, self.mark);
            self.leave_height();
        }
    }

    /// It says nothing more. Of the log what comes after this mark says so.
    pub(super) fn go_astray(&mut self, astray: Astray, mark: u64) {
        self.is_stale = true;
        self.agreeing.astray = Some((astray, mark));
    }
}
