//! What whoever acts on leases may ask of the holder beyond what it knows, and how it gives up.

use base::{FileId, Instant};

use crate::{
    Field, Kind, Scope,
    message::{Up, Upward},
};

use super::{Holder, Output};

impl Holder {
    /// The number of the session: what belongs to another is nothing to us.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// The greatest serial number heard of: only a grant with a greater one counts.
    pub fn serial_seen(&self) -> u64 {
        self.serial_seen
    }

    /// Whether a lease on this scope, of this kind or a stronger one, has not been given back and has not
    /// ended, be it recalled, be the session doubtful. While that is so nobody else changes what is in
    /// it, or the session is lost.
    pub fn is_held(&self, now: Instant, scope: &Scope, kind: Kind) -> bool {
        self.leases.meeting(scope).any(|(around, _, held)| {
            around.contains(scope)
                && held.kind.covers(kind)
                && now < held.until
                && !held.except.iter().any(|except| except.meets(scope))
        })
    }

    /// Until when what we know of this scope in this way can be relied on, if the session goes on.
    pub fn ends(&self, now: Instant, scope: &Scope, kind: Kind) -> Option<Instant> {
        self.usable(now, scope).filter(|held| held.kind.covers(kind)).map(|held| held.until).max()
    }

    /// The leases whose scope belongs to this very file; not those of files below it, nor those around
    /// it.
    pub fn leases_of(&self, file: &FileId) -> Vec<(Scope, Kind)> {
        let whole = Field::Whole.of(file);
        let meeting = self.leases.meeting(&whole).filter(|(at, ..)| at.file() == file);
        meeting.map(|(at, _, held)| (at.scope(), held.kind)).collect()
    }

    /// Something to say of leases where nothing else is to be said of them: the session goes on.
    pub fn renewal(&mut self, now: Instant) -> Upward {
        self.sent_at = Some(now);
        Upward { session: self.session, stamp: now, body: Up::Renew }
    }

    /// Gives up the session: whoever acts can't keep what it has done within its leases.
    pub fn abandon(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.on_lost(now, out);
    }
}
