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

    /// Until when the session can be relied on.
    pub fn relied_until(&self) -> Instant {
        self.believed_until
    }

    /// The greatest serial number heard of: only a grant with a greater one counts.
    pub fn serial_seen(&self) -> u64 {
        self.serial_seen
    }

    /// Whether a lease on this scope, of this kind or a stronger one, has not been given back and has not
    /// ended, be it recalled, be the session doubtful. While that is so nobody else changes what is in
    /// it, or the session is lost.
    pub fn is_held(&self, now: Instant, scope: &Scope, kind: Kind) -> bool {
        let holding = self.leases.containing(scope, |_, held| {
            let is_held = held.kind.covers(kind)
                && now < held.until
                && !held.except.iter().any(|except| except.meets(scope));
            is_held.then_some(())
        });
        holding.is_some()
    }

    /// Until when what we know of this scope in this way can be relied on, if the session goes on.
    pub fn ends(&self, now: Instant, scope: &Scope, kind: Kind) -> Option<Instant> {
        let mut end = None;
        self.usable(now, scope, |held| {
            if held.kind.covers(kind) {
                end = end.max(Some(held.until));
            }
            None::<()>
        });
        end
    }

    /// The leases whose scope belongs to this very file; not those of files below it, nor those around
    /// it.
    pub fn leases_of(&self, file: &FileId) -> Vec<(Scope, Kind)> {
        let whole = Field::Whole.of(file);
        let meeting = self.leases.meeting(&whole).filter(|(at, ..)| at.file() == file);
        meeting.map(|(at, _, held)| (at.scope(), held.kind)).collect()
    }

    /// Whether a request has not been met yet, nor refused.
    pub fn is_asking(&self, request: u64) -> bool {
        self.asks.contains_key(&request)
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

#[cfg(test)]
mod tests {
    use base::{Duration, Machine};

    use super::*;
    use crate::{
        Terms,
        holder::Input,
        message::{Down, Downward, Grant, Recall, Want},
        script::scope,
    };

    const NOW: Instant = Instant::from_secs(100);

    fn heard(body: Down) -> Input {
        Input::Heard(Downward { session: 1, stamp: NOW, span: Duration::from_secs(20), body })
    }

    fn holder_of(lease: &str, kind: Kind) -> Holder {
        let mut holder = Holder::new(Terms::default(), 1);
        let scope = scope(lease);
        let wants = vec![Want { scope: scope.clone(), kind }];
        holder.step(NOW, Input::Need { wants, together: true }, &mut Vec::new());
        let span = Duration::from_secs(7_200);
        let grant = Grant { scope, except: vec![], kind, serial: 7, span, truths: vec![] };
        let granted = Down::Granted { request: 1, grants: vec![grant] };
        holder.step(NOW, heard(granted), &mut Vec::new());
        holder
    }

    #[test]
    fn a_lease_is_held_until_it_is_given_back_or_has_ended() {
        let mut holder = holder_of("1:*", Kind::Write);
        let part = scope("1:/a");
        assert!(holder.is_held(NOW, &part, Kind::Write));
        assert!(holder.is_held(NOW + Duration::from_secs(3_600), &part, Kind::Read), "in doubt");
        assert!(!holder.is_held(NOW + Duration::from_secs(7_200), &part, Kind::Read), "ended");
        let (lease, kind) = (scope("1:*"), Kind::Write);
        let recall =
            Recall { lease: lease.clone(), kind, serial: 7, part: part.clone(), keep: false };
        holder.step(NOW, heard(Down::Recall(vec![recall])), &mut Vec::new());
        assert!(holder.is_held(NOW, &part, Kind::Write) && holder.ends(NOW, &part, kind).is_none());
        let pushed = Input::Pushed { lease, kind, part: part.clone() };
        holder.step(NOW, pushed, &mut Vec::new());
        assert!(!holder.is_held(NOW, &part, Kind::Read));
        assert!(holder.is_held(NOW, &scope("1:/b"), Kind::Write));
    }

    #[test]
    fn the_leases_of_a_file_are_those_on_it_alone() {
        assert_eq!(
            holder_of("1:/a", Kind::Read).leases_of(&"1".parse().unwrap()),
            [(scope("1:/a"), Kind::Read)]
        );
        assert_eq!(holder_of("1:**", Kind::Write).leases_of(&"1.2".parse().unwrap()), []);
    }

    #[test]
    fn whoever_gives_up_starts_again_with_nothing() {
        let mut holder = holder_of("1:*", Kind::Write);
        let mut out = Vec::new();
        holder.abandon(NOW, &mut out);
        assert_eq!(out, [Output::Lost]);
        assert_eq!((holder.session(), holder.lease_count(), holder.serial_seen()), (2, 0, 7));
        assert_eq!(holder.renewal(NOW).session, 2);
    }
}
