//! The grantor's node: the grantor, and the registers that its leases guard.

use std::{collections::BTreeMap, rc::Rc};

use base::{Instant, Machine};
use lease::{
    Client, Grantor, Kind, Policy, Terms,
    message::{Down, Downward, Grant, Refusal, Up, Upward},
};

use super::{
    actor::{Message, Note, Out, Value, node_of},
    book::Book,
    place::{Leaf, Place},
    tamper::Tamper,
};

/// A grantor and its registers.
pub(crate) struct Server<T> {
    place: Rc<Place>,
    grantor: Grantor,
    pub(crate) book: Book,
    pub(crate) registers: Vec<Value>,
    /// The last push of each client that changed each register: a repeated one changes nothing.
    tokens: BTreeMap<(Leaf, Client), u64>,
    answers: Vec<(Client, Downward)>,
    tamper: T,
}

impl<T: Tamper> Server<T> {
    pub(crate) fn new(place: Rc<Place>, terms: Terms, policy: Policy, tamper: T) -> Server<T> {
        Server {
            registers: vec![Value::default(); place.leaves.len()],
            place,
            grantor: Grantor::new(terms, policy),
            book: Book::default(),
            tokens: BTreeMap::new(),
            answers: Vec::new(),
            tamper,
        }
    }

    /// How many leases are out and how many requests wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        (self.grantor.lease_count(), self.grantor.waiting_count())
    }

    pub(crate) fn deliver(
        &mut self,
        now: Instant,
        from: Client,
        message: Message,
        out: &mut Out<T>,
    ) {
        match message {
            Message::Up(message) => self.on_up(now, from, message, out),
            Message::Push { session, token, writes } => {
                self.on_push(now, from, session, token, &writes, out);
            }
            Message::Down(..) | Message::Pushed { .. } => {}
        }
    }

    pub(crate) fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        let now = self.tamper.server_now(now);
        self.grantor.tick(now, &mut self.answers);
        self.answer(now, out);
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.grantor.wake_at()
    }

    fn on_up(&mut self, now: Instant, from: Client, message: Upward, out: &mut Out<T>) {
        let now = self.tamper.server_now(now);
        for (from, message) in self.tamper.heard(now, from, message) {
            self.book.hear(from, &message);
            let mut message = message;
            if let Up::Ask { request, .. } = &mut message.body {
                *request = self.tamper.asked(from, *request);
            }
            self.grantor.step(now, (from, message), &mut self.answers);
            self.answer(now, out);
        }
    }

    /// Changes are accepted under a lease only: late ones are refused as a whole.
    fn on_push(
        &mut self,
        now: Instant,
        from: Client,
        session: u64,
        token: u64,
        writes: &[(Leaf, u64)],
        out: &mut Out<T>,
    ) {
        let now = self.tamper.server_now(now);
        let is_current = self.book.is_current(from, session);
        let outcome = writes.iter().map(|&(leaf, number)| {
            let scope = &self.place.leaves[leaf];
            let last = self.tokens.entry((leaf, from)).or_default();
            let register = &mut self.registers[leaf];
            if token > *last {
                if !is_current || !self.book.promises(now, from, scope, Kind::Write, None) {
                    out.mark("a late push is refused");
                    return (leaf, None);
                }
                *last = token;
                *register = Value { version: register.version + 1, number };
            }
            (leaf, Some(*register))
        });
        let outcome = outcome.collect();
        out.send(node_of(from), Message::Pushed { token, outcome });
    }

    fn answer(&mut self, now: Instant, out: &mut Out<T>) {
        let mut answers = std::mem::take(&mut self.answers);
        for (to, mut message) in answers.drain(..) {
            if let Down::Granted { request, .. } | Down::Refused { request, .. } = &mut message.body
            {
                *request = self.tamper.answered(to, *request);
            }
            if self.book.say(now, to, &message) {
                out.note(Note::DecidedAgain(to));
            }
            mark(&message, out);
            if matches!(message.body, Down::Lost) {
                out.note(Note::Ended(to));
            }
            for (to, message) in self.tamper.said(now, to, message) {
                let values = match &message.body {
                    Down::Granted { grants, .. } => self.values(grants),
                    _ => Vec::new(),
                };
                out.send(node_of(to), Message::Down(message, values));
            }
        }
        self.answers = answers;
    }

    fn values(&self, grants: &[Grant]) -> Vec<(Leaf, Value)> {
        let mut values = Vec::new();
        for grant in grants {
            for leaf in self.place.within(&grant.scope) {
                values.push((leaf, self.registers[leaf]));
            }
        }
        values
    }
}

fn mark<T: Tamper>(message: &Downward, out: &mut Out<T>) {
    match &message.body {
        Down::Granted { grants, .. } => {
            for grant in grants {
                if grant.scope.field.is_wide() && !grant.except.is_empty() {
                    out.mark("a wide grant has exceptions");
                }
            }
        }
        Down::Recall(recalls) => {
            for recall in recalls {
                out.mark(match (recall.keep, recall.part == recall.lease) {
                    (true, _) => "a recall lets reading go on",
                    (false, true) => "a recall of a whole lease",
                    (false, false) => "a recall of a part",
                });
            }
        }
        Down::Refused { why: Refusal::Answered, .. } => {
            out.mark("what was given back is asked for again")
        }
        Down::Refused { .. } => out.mark("a request is refused"),
        Down::Renewed => out.mark("a session is renewed for its own sake"),
        Down::Lost => out.mark("a session is lost"),
    }
}
