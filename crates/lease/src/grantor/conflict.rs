//! Who is in the way of a want.

use base::Instant;

use crate::{
    Client, Field, Kind, Scope,
    disjunction::may_know_others,
    kind::{Peace, Side},
    message::Want,
};

use super::{Grantor, Lease, Policy, Rule};

impl Policy {
    /// A want as this policy reads it.
    pub(super) fn read(&self, want: Want) -> Want {
        match self.rule {
            Rule::Fields | Rule::PlainModes => want,
            Rule::Files => Want {
                scope: match want.scope.field {
                    Field::Tree => want.scope,
                    _ => Field::Whole.of(&want.scope.file),
                },
                kind: plain(want.kind),
            },
        }
    }

    fn peace(&self, a: Kind, b: Kind) -> Peace {
        match self.rule {
            Rule::PlainModes => plain(a).beside(plain(b)),
            Rule::Fields | Rule::Files => a.beside(b),
        }
    }
}

/// One writer or many readers.
fn plain(kind: Kind) -> Kind {
    match kind {
        Kind::Write | Kind::SelfWrite => Kind::Write,
        Kind::Read | Kind::OtherRead => Kind::Read,
    }
}

impl Grantor {
    /// The leases of other clients that keep this want from being granted.
    pub(super) fn conflicts(&self, client: Client, want: &Want) -> Vec<(Scope, (Client, Side))> {
        let leases = self.leases.meeting(&want.scope);
        leases
            .filter(|(_, (holder, _), lease)| {
                *holder != client && self.is_conflict(client, want, *holder, lease)
            })
            .map(|(at, holder, _)| (at.scope(), holder))
            .collect()
    }

    /// Whether any lease is in the way of a want: somebody else's that conflicts, or the client's own
    /// that is on its way back or would shrink.
    pub(super) fn is_obstructed(&self, client: Client, want: &Want) -> bool {
        self.leases.meeting(&want.scope).any(|(at, (holder, side), lease)| {
            if holder != client {
                return self.is_conflict(client, want, holder, lease);
            }
            side == want.kind.side()
                && (self.is_recalled(client, || at.scope(), side, &want.scope)
                    || (at.contains(&want.scope)
                        && at.is_in(&want.scope)
                        && lease.would_shrink(want)))
        })
    }

    fn is_conflict(&self, client: Client, want: &Want, holder: Client, lease: &Lease) -> bool {
        lease.touches(&want.scope)
            && match self.policy.peace(want.kind, lease.kind()) {
                Peace::Always => false,
                Peace::Never => true,
                Peace::ByValue => !self.allow_by_value(client, want, holder),
            }
    }

    /// Whether the booleans let one client know the others' while another changes its own.
    fn allow_by_value(&self, client: Client, want: &Want, holder: Client) -> bool {
        let of_kind = |kind: Kind| {
            let leases = self.leases.meeting(&want.scope);
            leases
                .filter(move |(_, _, lease)| lease.kind() == kind)
                .map(|(_, (holder, _), _)| holder)
        };
        let truths = self.truths.meeting(&want.scope).map(|(_, client, ())| client);
        match want.kind {
            Kind::OtherRead => may_know_others(client, of_kind(Kind::SelfWrite), truths),
            // With the right to change it, the client's own boolean is no longer frozen.
            _ => {
                let writers = of_kind(Kind::SelfWrite).chain([client]);
                may_know_others(holder, writers, truths.filter(|truth| *truth != client))
            }
        }
    }

    /// Whether a client has the right to change its boolean, as far as we know.
    pub(super) fn may_change(&self, client: Client, scope: &Scope) -> bool {
        self.leases.meeting(scope).any(|(around, (holder, _), lease)| {
            holder == client
                && lease.kind().is_change()
                && around.contains(scope)
                && lease.covers(scope)
        })
    }

    /// The clients that have not been heard and whose booleans this want would have to believe.
    pub(super) fn silent(&self, now: Instant, client: Client, want: &Want) -> Vec<Client> {
        if want.kind != Kind::OtherRead && want.kind != Kind::Write {
            return Vec::new();
        }
        let truths = self.truths.meeting(&want.scope).map(|(_, of, ())| of);
        let is_silent = |of: &Client| {
            let session = self.sessions.get(of);
            *of != client && session.is_some_and(|session| session.is_silent(now))
        };
        truths.filter(is_silent).collect()
    }

    /// Whether another client has asked before for something that conflicts with this want.
    pub(super) fn is_behind(&self, ticket: u64, client: Client, want: &Want) -> bool {
        self.waits.meeting(&want.scope).any(|(_, (earlier, _), kind)| {
            earlier < ticket
                && self.requests.get(&earlier).is_some_and(|request| request.client != client)
                && self.policy.peace(want.kind, *kind) != Peace::Always
        })
    }

    /// The client's own lease that answers this want already.
    pub(super) fn held(&self, now: Instant, client: Client, want: &Want) -> Option<(Scope, Side)> {
        let own = self.leases.meeting(&want.scope).filter(|(_, (holder, _), _)| *holder == client);
        own.filter(|(at, (_, side), lease)| {
            at.contains(&want.scope)
                && lease.covers(&want.scope)
                && lease.kind().covers(want.kind)
                && lease.until > now
                && !self.is_recalled(client, || at.scope(), *side, &want.scope)
        })
        .map(|(at, (_, side), _)| (at.scope(), side))
        .next()
    }

    /// Whether the client has a lease on this very scope that is stronger, but not everywhere.
    pub(super) fn would_shrink(&self, client: Client, want: &Want) -> bool {
        let own = self.leases.get(&want.scope, (client, want.kind.side()));
        own.is_some_and(|lease| lease.would_shrink(want))
    }

    /// Whether the client has still to give back something of this.
    pub(super) fn is_leaving(&self, client: Client, want: &Want) -> bool {
        !self.recalls.is_empty()
            && self.leases.meeting(&want.scope).any(|(at, (holder, side), _)| {
                holder == client
                    && side == want.kind.side()
                    && self.is_recalled(client, || at.scope(), side, &want.scope)
            })
    }

    fn is_recalled(
        &self,
        client: Client,
        lease: impl FnOnce() -> Scope,
        side: Side,
        part: &Scope,
    ) -> bool {
        !self.recalls.is_empty() && self.recalls.has(&(client, lease(), side), part)
    }
}
