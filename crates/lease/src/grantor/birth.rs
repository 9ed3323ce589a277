//! Leases from birth: who creates a file holds every field of it without asking.
//!
//! The contract with the holder. The client creates a file and calls `Holder::bear`, which says
//! whether a lease was born there: it is not, if one that covers the file is usable already. The push
//! of the creation says so too, and only then whoever applies it here, in the session in which it was
//! made, calls [`Grantor::bear`]. So whatever a holder believes from birth is promised here, as soon
//! as anybody can hear of the file. If a lease covered it instead, the creation depends on that lease
//! and is pushed before any of it goes back; then neither side has anything.
//!
//! The serial number of a lease from birth is 0 on both sides. Identifiers are never used again, so a
//! scope is born once, and no other lease has that number.
//!
//! Another client may hold the subtree in which the file was born. It can't know that the file is
//! there. So the lease stands at once, the other client is told to let go of that part, and until it
//! has it is granted nothing by which it could learn of the file. (Whoever hands asks to the grantor
//! lets through only those about files that it knows, or anybody could ask for what is yet to be born.)

use std::collections::BTreeSet;

use base::Instant;

use crate::{Client, Field, Kind, Scope, kind::Side, message::Want};

use super::{Grantor, Lease, Output, answer::Answers};

impl Grantor {
    /// Notes that a client has created this file (`Whole`) or directory (`Whole` or `Tree`) and holds
    /// a lease on it from birth. False, and nothing is noted, if the client may not: it has no session,
    /// or far more leases than its budget, which an honest client sees coming by `Holder::may_bear`.
    #[must_use]
    pub fn bear(
        &mut self,
        now: Instant,
        client: Client,
        scope: Scope,
        out: &mut Vec<Output>,
    ) -> bool {
        let until = self.lease_until(now, client);
        // Twice the budget: what the holder has given back may be on its way, or lost.
        let leases_max = self.policy.budget.saturating_mul(2);
        let session = self.sessions.get_mut(&client);
        let session = session.filter(|session| session.may_bear(leases_max));
        let is_new = matches!(scope.field, Field::Whole | Field::Tree);
        let Some(session) = session.filter(|_| is_new) else { return false };
        let key = (client, Side::Own);
        match self.leases.get_mut(&scope, key) {
            // Asked for before the creation was heard of, and so under a number already.
            Some(lease) => {
                lease.set_kind(Kind::Write);
                lease.except_nothing();
                lease.until = until;
            }
            None => {
                let lease = Lease::new(Kind::Write, 0, until, Vec::new());
                self.leases.insert(&scope, key, lease);
                session.leases += 1;
            }
        }
        self.close(&scope);
        self.estrange(now, client, scope, out);
        if self.is_full(0) {
            self.recall_from_richest(now, out);
        }
        true
    }

    /// Nobody can have had open what was not there: whoever says so said it in advance.
    fn close(&mut self, scope: &Scope) {
        let truths: Vec<_> =
            self.truths.meeting(scope).map(|(at, of, ())| (at.scope(), of)).collect();
        for (truth, of) in truths {
            self.drop_truth(&truth, of);
        }
    }

    /// Takes the new file out of what other clients hold around it.
    fn estrange(&mut self, now: Instant, client: Client, scope: Scope, out: &mut Vec<Output>) {
        let want = Want { scope, kind: Kind::Write };
        let mut answers = Answers::default();
        let mut tickets = BTreeSet::new();
        for (lease, (holder, side)) in self.conflicts(client, &want) {
            // Nobody honest has asked for what was not there.
            if want.scope.contains(&lease) {
                self.drop_lease(&lease, holder, side, &mut tickets);
            } else if !self.clear(now, &lease, (holder, side), &mut tickets, out) {
                self.recall(now, lease.clone(), (holder, side), &want, &mut answers);
                self.recalls.estrange(&(holder, lease, side));
            }
        }
        self.settle(now, tickets, answers, out);
    }
}
