//! Sessions: who has been heard, and what happens to those who have not.

use std::collections::BTreeSet;

use base::{Duration, Instant};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    Client, Kind, Scope,
    message::{Down, Downward, Recall, Upward, Want},
};

use super::{Grantor, Output, Request, answer::Answers, answered::Answered, patience::Patience};

#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub(super) struct Session {
    /// The holder's own count of its sessions.
    number: u64,
    /// The latest stamp heard.
    stamp: Instant,
    /// It has lapsed from here on.
    pub(super) until: Instant,
    /// The greatest number of a return heard.
    return_last: u64,
    /// How many leases it holds.
    pub(super) leases: usize,
    /// How many wants of it wait.
    pub(super) waiting: usize,
    /// How many of the client's booleans are frozen and true, those of a lost session included.
    pub(super) truths: usize,
    /// Its leases have been taken; only a new session can go on.
    is_lost: bool,
    /// What it has asked and been answered.
    pub(super) answered: Answered,
    /// What is known of the client, whatever its session.
    patience: Patience,
}

impl Session {
    /// Whether it has this number and goes on.
    pub(super) fn is_current(&self, number: u64) -> bool {
        self.number == number && !self.is_lost
    }

    /// Whether a return with this number was sent after all that were heard; notes it.
    pub(super) fn is_next(&mut self, number: u64) -> bool {
        let is_next = number > self.return_last;
        self.return_last = self.return_last.max(number);
        is_next
    }

    /// Whether one more lease may be born in it.
    pub(super) fn may_bear(&self, leases_max: usize) -> bool {
        !self.is_lost && self.leases < leases_max
    }

    /// Whether it has lapsed and nobody has taken it to account yet.
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        !self.is_lost && self.until <= now
    }
}

impl Grantor {
    /// Whether the message belongs to a session that goes on. Any message renews it.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        client: Client,
        message: &Upward,
        out: &mut Vec<Output>,
    ) -> bool {
        match self.sessions.get(&client) {
            Some(known) if message.session < known.number => return false,
            Some(known) if message.session == known.number && known.is_lost => {
                self.say(now, client, Down::Lost, out);
                return false;
            }
            Some(known) if message.session == known.number => {}
            // A holder that starts again has forgotten everything: so do we.
            Some(_) => {
                self.lose(now, client, out);
                self.open(now, client, message);
            }
            None => self.open(now, client, message),
        }
        if let Some(session) = self.sessions.get_mut(&client) {
            session.patience.forgive(now, &self.terms);
        }
        let deadline = self.recalls.deadline(client);
        let until = match client {
            Client::GROUP => Instant::END,
            _ => (now + self.session_span(client)).min(deadline.unwrap_or(Instant::END)),
        };
        let session = self.sessions.get_mut(&client).expect("it is open");
        session.stamp = session.stamp.max(message.stamp);
        session.until = session.until.max(until);
        // What is overdue ends here, not in the midst of what the client says.
        if session.until <= now {
            self.lose(now, client, out);
            return false;
        }
        true
    }

    fn open(&mut self, now: Instant, client: Client, message: &Upward) {
        let known = self.sessions.get(&client);
        let session = Session {
            number: message.session,
            stamp: message.stamp,
            until: now,
            return_last: 0,
            leases: 0,
            waiting: 0,
            truths: known.map_or(0, |known| known.truths),
            is_lost: false,
            answered: Answered::default(),
            patience: known.map_or(Patience::default(), |known| known.patience),
        };
        self.sessions.insert(client, session);
    }

    /// How long a client's session goes on when it is heard, and how long it may take to answer a recall.
    pub(super) fn session_span(&self, client: Client) -> Duration {
        let known = self.sessions.get(&client);
        known.map_or(self.terms.session, |session| session.patience.session(&self.terms))
    }

    /// Whether a client has let others wait.
    pub(super) fn is_strained(&self, client: Client) -> bool {
        self.sessions.get(&client).is_some_and(|session| session.patience.is_strained())
    }

    /// Whether somebody else may take what this client holds.
    pub(super) fn has_lapsed(&self, now: Instant, client: Client) -> bool {
        self.sessions.get(&client).is_none_or(|session| session.is_lost || session.until <= now)
    }

    /// Ends a session: its leases, its waits and, as soon as nobody relies on them, its booleans.
    pub(super) fn lose(&mut self, now: Instant, client: Client, out: &mut Vec<Output>) {
        let freed = self.forget(now, client, out);
        self.settle(now, freed, Answers::default(), out);
    }

    /// Ends a session. Answers which requests have to be looked at again: whatever waited for it.
    #[must_use]
    pub(super) fn forget(
        &mut self,
        now: Instant,
        client: Client,
        out: &mut Vec<Output>,
    ) -> BTreeSet<u64> {
        let mut freed = BTreeSet::new();
        let Some(session) = self.sessions.get_mut(&client) else { return freed };
        if session.is_lost {
            return freed;
        }
        session.is_lost = true;
        let leases = std::mem::take(&mut session.leases);
        let (waiting, truths) = (session.waiting, session.truths);
        self.say(now, client, Down::Lost, out);
        self.recalls.forget(client);
        // A new session costs its client one message: what it had not must cost us nothing either.
        let mut scopes = Vec::new();
        if leases > 0 {
            let is_waited_for = self.waits.len() > 0;
            self.leases.retain(|at, (holder, _)| {
                scopes.extend((holder == client && is_waited_for).then(|| at.scope()));
                holder != client
            });
        }
        if waiting > 0 {
            let of_client = |request: &Request| request.client == client && !request.is_farewell;
            let own = self.requests.iter().filter(|(_, request)| of_client(request));
            for ticket in own.map(|(ticket, _)| *ticket).collect::<Vec<_>>() {
                let wants = self.dequeue(ticket).map(|request| request.wants);
                scopes.extend(wants.into_iter().flatten().map(|want| want.scope));
            }
        }
        if truths > 0 {
            scopes.extend(self.forget_truths(client, &mut freed));
        }
        if scopes.len() > self.requests.len() {
            freed.extend(self.requests.keys());
        } else {
            for scope in &scopes {
                freed.extend(self.waits.meeting(scope).map(|(_, (ticket, _), _)| ticket));
            }
        }
        freed
    }

    /// Ends a lost client's booleans where nobody relies on them; elsewhere as soon as nobody does.
    fn forget_truths(&mut self, client: Client, freed: &mut BTreeSet<u64>) -> Vec<Scope> {
        let own = self.truths.iter().filter(|(_, of, _)| *of == client);
        let own: Vec<Scope> = own.map(|(at, ..)| at.scope()).collect();
        for scope in &own {
            let want = Want { scope: scope.clone(), kind: Kind::SelfWrite };
            if self.conflicts(client, &want).is_empty() {
                self.drop_truth(scope, client);
            } else if !self.has_farewell(client, scope) {
                let (wants, is_narrow) = (vec![want], true);
                let farewell = Request { client, id: 0, wants, is_narrow, is_farewell: true };
                freed.insert(self.enqueue(farewell));
            }
        }
        own
    }

    /// Whether an earlier loss is still waiting to end this boolean.
    fn has_farewell(&self, client: Client, scope: &Scope) -> bool {
        self.waits.meeting(scope).any(|(_, (ticket, _), _)| {
            let request = self.requests.get(&ticket);
            request.is_some_and(|request| request.is_farewell && request.client == client)
        })
    }

    /// Ends the sessions that have lapsed while something of theirs is wanted.
    pub(super) fn lose_silent(&mut self, now: Instant, out: &mut Vec<Output>) {
        let wanted: Vec<Client> = self.recalls.clients().collect();
        for client in wanted {
            if self.has_lapsed(now, client) {
                self.lose(now, client, out);
            }
        }
    }

    pub(super) fn repeat_recalls(&mut self, now: Instant, out: &mut Vec<Output>) {
        let late: Vec<Client> = self.recalls.clients().collect();
        for client in late {
            // More than half of its time is over.
            let left = self.recalls.deadline(client).map(|deadline| deadline.since(now));
            let is_late = left.is_some_and(|left| left < self.session_span(client) / 2);
            if let Some(session) = self.sessions.get_mut(&client).filter(|_| is_late) {
                session.patience.note_late(now, &self.terms);
            }
        }
        let due = self.recalls.due(now, now + self.terms.repeat);
        for parts in due.chunk_by(|a, b| a.0 == b.0) {
            let (client, scope, side) = &parts[0].0;
            let Some(lease) = self.leases.get(scope, (*client, *side)) else { continue };
            let recalls = parts.iter().map(|(_, part, keep)| Recall {
                lease: scope.clone(),
                kind: lease.kind(),
                serial: lease.serial(),
                part: part.clone(),
                keep: *keep,
            });
            let recalls = recalls.collect();
            self.say(now, *client, Down::Recall(recalls), out);
        }
    }

    /// What to tell a client that is told something else than of leases.
    pub fn renewed(&self, now: Instant, client: Client) -> Option<Downward> {
        let mut out = Vec::new();
        self.say(now, client, Down::Renewed, &mut out);
        out.pop().map(|(_, message)| message)
    }

    pub(super) fn say(&self, now: Instant, client: Client, body: Down, out: &mut Vec<Output>) {
        let Some(session) = self.sessions.get(&client) else { return };
        let message = Downward {
            session: session.number,
            stamp: session.stamp,
            span: session.until.since(now),
            body,
        };
        out.push((client, message));
    }
}
