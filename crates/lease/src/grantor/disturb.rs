//! What whoever applies operations may do on the group's behalf: change a value as a consequence of
//! something else, and see to it that whoever believes the old one hears of it.

use std::collections::BTreeSet;

use base::Instant;

use crate::{
    Client, Kind, Scope,
    message::{Down, Downward, Want},
};

use super::{Grantor, Output, answer::Answers};

impl Grantor {
    /// Recalls what anybody but these clients knows of a scope, since its value has changed. Nobody
    /// waits for it: whoever wants to know it again asks, and is told the new value.
    pub fn disturb(
        &mut self,
        now: Instant,
        scope: &Scope,
        spare: &[Client],
        out: &mut Vec<Output>,
    ) {
        let want = Want { scope: scope.clone(), kind: Kind::Write };
        let conflicts = self.conflicts(Client::GROUP, &want);
        if conflicts.is_empty() {
            return;
        }
        let mut answers = Answers::default();
        let mut tickets = BTreeSet::new();
        for (lease, (holder, side)) in conflicts {
            if spare.contains(&holder) {
                continue;
            }
            if !self.clear(now, &lease, (holder, side), &mut tickets, out) {
                self.recall(now, lease, (holder, side), &want, &mut answers);
            }
        }
        self.settle(now, tickets, answers, out);
    }

    /// Whether nobody may change anything in this scope, and nobody's boolean in it is true.
    pub fn is_unclaimed(&self, scope: &Scope) -> bool {
        let mut claims = self.leases.meeting(scope).filter(|(_, (holder, _), lease)| {
            *holder != Client::GROUP && lease.kind().is_change() && lease.touches(scope)
        });
        claims.next().is_none() && self.truths.meeting(scope).next().is_none()
    }

    /// Whether the client was promised this scope, but perhaps for a stated few in it.
    pub fn promises_most(&self, client: Client, scope: &Scope) -> bool {
        self.leases.meeting(scope).any(|(around, (holder, _), lease)| {
            holder == client && around.contains(scope) && lease.touches(scope)
        })
    }

    /// What to tell a client that is told something else than of leases.
    pub fn renewed(&self, now: Instant, client: Client) -> Option<Downward> {
        let mut out = Vec::new();
        self.say(now, client, Down::Renewed, &mut out);
        out.pop().map(|(_, message)| message)
    }
}

#[cfg(test)]
mod tests {
    use base::Machine;

    use super::*;
    use crate::{
        Field, Policy, Terms,
        message::{Up, Upward},
    };

    const READER: Client = Client(1);

    fn scope() -> Scope {
        Field::Times.of(&base::FileId::ROOT)
    }

    fn read_by_one() -> Grantor {
        let mut grantor = Grantor::new(Terms::default(), Policy::of_the_paper());
        let wants = vec![Want { scope: scope(), kind: Kind::Read }];
        let body = Up::Ask { request: 1, wants, together: true };
        let message = Upward { session: 1, stamp: Instant::START, body };
        grantor.step(Instant::START, (READER, message), &mut Vec::new());
        grantor
    }

    #[test]
    fn whoever_believes_an_old_value_is_told_to_let_go() {
        let mut grantor = read_by_one();
        let mut out = Vec::new();
        grantor.disturb(Instant::START, &scope(), &[], &mut out);
        assert!(matches!(&out[..], [(READER, Downward { body: Down::Recall(_), .. })]));
        out.clear();
        grantor.disturb(Instant::START, &scope(), &[], &mut out);
        assert_eq!(out, [], "it is told once");
    }

    #[test]
    fn whoever_made_the_change_is_spared() {
        let mut grantor = read_by_one();
        let mut out = Vec::new();
        grantor.disturb(Instant::START, &scope(), &[READER], &mut out);
        assert_eq!(out, []);
    }

    #[test]
    fn reading_is_no_claim() {
        assert!(read_by_one().is_unclaimed(&scope()));
        let mut grantor = read_by_one();
        let file = Field::Whole.of(&"1".parse().unwrap());
        assert!(grantor.bear(Instant::START, READER, file.clone(), &mut Vec::new()));
        assert!(!grantor.is_unclaimed(&file));
    }
}
