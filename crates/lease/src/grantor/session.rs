//! Sessions: who has been heard, and what happens to those who have not.

use std::collections::BTreeSet;

use base::Instant;

use crate::{
    Client, Kind,
    kind::Side,
    message::{Down, Downward, Recall, Upward, Want},
};

use super::{Grantor, Output, Request, answer::Answers};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Session {
    /// The holder's own count of its sessions.
    number: u64,
    /// The latest stamp heard.
    stamp: Instant,
    /// It has lapsed from here on.
    pub(super) until: Instant,
    /// How many leases it holds.
    pub(super) leases: usize,
    /// Its leases have been taken; only a new session can go on.
    is_lost: bool,
}

impl Session {
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
        let promised = self.recalls.range((client, lowest(), Side::Own)..);
        let promised = promised.take_while(|((of, ..), _)| *of == client);
        let deadline = promised.map(|(_, recalled)| recalled.deadline).min();
        let until = (now + self.terms.session).min(deadline.unwrap_or(Instant::END));
        let session = self.sessions.get_mut(&client).expect("it is open");
        session.stamp = session.stamp.max(message.stamp);
        session.until = session.until.max(until);
        true
    }

    fn open(&mut self, now: Instant, client: Client, message: &Upward) {
        let session = Session {
            number: message.session,
            stamp: message.stamp,
            until: now,
            leases: 0,
            is_lost: false,
        };
        self.sessions.insert(client, session);
    }

    /// Whether somebody else may take what this client holds.
    pub(super) fn has_lapsed(&self, now: Instant, client: Client) -> bool {
        self.sessions.get(&client).is_none_or(|session| session.is_lost || session.until <= now)
    }

    /// Ends a session: its leases, its waits and, as soon as nobody relies on them, its booleans.
    pub(super) fn lose(&mut self, now: Instant, client: Client, out: &mut Vec<Output>) {
        self.forget(now, client, out);
        let all: BTreeSet<u64> = self.requests.keys().copied().collect();
        self.settle(now, all, Answers::default(), out);
    }

    pub(super) fn forget(&mut self, now: Instant, client: Client, out: &mut Vec<Output>) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        if session.is_lost {
            return;
        }
        session.is_lost = true;
        session.leases = 0;
        self.say(now, client, Down::Lost, out);
        self.leases.retain(|_, (holder, _), _| holder != client);
        self.recalls.retain(|(holder, ..), _| *holder != client);
        let of_client = |request: &Request| request.client == client && !request.is_farewell;
        let tickets: Vec<u64> =
            self.requests.iter().filter(|(_, r)| of_client(r)).map(|(t, _)| *t).collect();
        for ticket in tickets {
            self.dequeue(ticket);
        }
        let truths: Vec<_> = self
            .truths
            .iter()
            .filter(|(_, of, _)| *of == client)
            .map(|(scope, ..)| scope.clone())
            .collect();
        for scope in truths {
            let want = Want { scope, kind: Kind::SelfWrite };
            if self.conflicts(client, &want).is_empty() {
                self.truths.remove(&want.scope, client);
            } else {
                self.enqueue(Request { client, id: 0, wants: vec![want], is_farewell: true });
            }
        }
    }

    /// Ends the sessions that have lapsed while something of theirs is wanted.
    pub(super) fn lose_silent(&mut self, now: Instant, out: &mut Vec<Output>) {
        let wanted: BTreeSet<Client> = self.recalls.keys().map(|(client, ..)| *client).collect();
        for client in wanted {
            if self.has_lapsed(now, client) {
                self.lose(now, client, out);
            }
        }
    }

    pub(super) fn repeat_recalls(&mut self, now: Instant, out: &mut Vec<Output>) {
        let mut due = Vec::new();
        for ((client, scope, side), recalled) in &mut self.recalls {
            if recalled.repeat_at > now {
                continue;
            }
            recalled.repeat_at = now + self.terms.repeat;
            let lease = self.leases.get(scope, (*client, *side)).expect("what is recalled is held");
            let recalls = recalled.parts.iter().map(|(part, keep)| Recall {
                lease: scope.clone(),
                kind: lease.kind,
                serial: lease.serial,
                part: part.clone(),
                keep: *keep,
            });
            due.push((*client, recalls.collect()));
        }
        for (client, recalls) in due {
            self.say(now, client, Down::Recall(recalls), out);
        }
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

fn lowest() -> crate::Scope {
    crate::Field::Access.of(&base::FileId::ROOT)
}
