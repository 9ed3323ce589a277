//! What whoever applies operations may ask: who was promised what, and whether anybody still relies on
//! it or may change it.
//!
//! Nothing changes here. What it may do is in `disturb`.

use crate::{Client, Kind, Scope};

use super::Grantor;

impl Grantor {
    /// Whether this is the client's present session, and it has not been lost. What was done in any
    /// other has come to nothing.
    pub fn is_in_session(&self, client: Client, session: u64) -> bool {
        self.sessions.get(&client).is_some_and(|known| known.is_current(session))
    }

    /// Whether the client was promised all of this scope in this way: by a lease that it has not given
    /// back, be it recalled or expired. While a lease stands nobody else was promised anything that
    /// conflicts, so what was done under it may come late.
    ///
    /// The right to change something wide includes both sides of each disjunctive field in it.
    pub fn promises(&self, client: Client, scope: &Scope, kind: Kind) -> bool {
        self.leases.meeting(scope).any(|(around, (holder, _), lease)| {
            holder == client
                && around.contains(scope)
                && lease.covers(scope)
                && lease.kind().covers(kind)
                && !self.is_born_inside(client, &around.scope(), scope)
        })
    }

    /// Whether a file that another client has created in this lease, and has not been taken out of it
    /// yet, has part of this scope.
    fn is_born_inside(&self, client: Client, lease: &Scope, scope: &Scope) -> bool {
        lease.field.is_wide()
            && self.leases.meeting(scope).any(|(inner, (holder, _), born)| {
                holder != client
                    && born.kind() == Kind::Write
                    // Else it was asked for in advance, by somebody who would have its creator refused.
                    && born.serial() == 0
                    && inner.is_in(lease)
                    && !inner.contains(lease)
                    && born.touches(scope)
            })
    }

    /// Whether no client but this one has, or may give itself, a true boolean of this disjunctive
    /// field.
    pub fn knows_closed(&self, scope: &Scope, except: Client) -> bool {
        let mut writers = self.leases.meeting(scope).filter(|(_, (holder, _), lease)| {
            *holder != except && lease.kind().is_change() && lease.touches(scope)
        });
        let mut truths = self.truths.meeting(scope).filter(|(_, of, ())| *of != except);
        // Beside a right to change all of it no other can stand, but one that was asked for before the
        // file was there.
        let mut is_alone = || writers.next().is_none() || self.promises(except, scope, Kind::Write);
        truths.next().is_none() && is_alone()
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

    /// Whether a lost session's boolean in this scope is still true, since somebody relies on it. Once
    /// nobody does, it ends unheard.
    pub fn has_farewell_in(&self, scope: &Scope) -> bool {
        self.waits.meeting(scope).any(|(_, (ticket, _), _)| {
            self.requests.get(&ticket).is_some_and(|request| request.is_farewell)
        })
    }
}
