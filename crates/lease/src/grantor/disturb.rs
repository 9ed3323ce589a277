//! What whoever applies operations may do to what was promised: have everybody let go of a value that
//! has changed as a consequence of something else, and end a session on evidence.
//!
//! What it may ask is in `promise`.

use std::collections::BTreeSet;

use base::Instant;

use crate::{Client, Kind, Scope, message::Want};

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

    /// Ends a client's session on evidence against it.
    pub fn expel(&mut self, now: Instant, client: Client, out: &mut Vec<Output>) {
        self.lose(now, client, out);
    }
}

#[cfg(test)]
mod tests {
    use base::Machine;

    use super::*;
    use crate::{
        Field, Policy, Terms,
        message::{Down, Downward, Up, Upward},
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
