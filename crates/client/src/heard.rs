//! What the group says, and what of it is believed.

use base::{Duration, Instant, Machine};
use directory::{
    Key, Quota, Refusal,
    message::{Answer, Provision, Response, Value},
};
use lease::{
    Field, Kind, Scope,
    holder::Input as Lease,
    message::{Down, Downward, Recall},
};

use crate::{
    client::{Client, Output, Wanted},
    queue::{Job, Waiting, Waits},
    supply::Lack,
};

impl Client {
    pub(crate) fn on_heard(&mut self, now: Instant, response: Response, out: &mut Vec<Output>) {
        let Response { mut lease, values, applied, answer } = response;
        let session = self.holder.session();
        if lease.session != session {
            return;
        }
        // What is applied is applied, whatever comes of the session.
        let answer = match answer {
            Some(Answer::Applied { number, refused }) => {
                self.on_applied(now, number, refused, out);
                None
            }
            other => other,
        };
        // Overtaken by news of what we did: whatever was given back since then may be in it as it was.
        let is_old = applied < self.pending.acknowledged();
        let grants = match &lease.body {
            Down::Granted { grants, .. } => {
                grants.iter().map(|grant| (grant.scope.clone(), grant.kind, grant.serial)).collect()
            }
            _ => Vec::new(),
        };
        let mut seen = self.holder.serial_seen();
        for (scope, _, serial) in &grants {
            if *serial > seen {
                self.drop_unheld(now, scope);
                self.drop_consequences(now, scope);
            }
        }
        if let Down::Recall(recalls) = &mut lease.body {
            self.keep_back(recalls);
        }
        let mut wanted = Vec::new();
        self.holder.step(now, Lease::Heard(lease), &mut wanted);
        if self.holder.session() == session {
            for ((scope, kind, serial), values) in grants.into_iter().zip(values) {
                let is_accepted = serial > seen && self.holder.serial(&scope, kind) == Some(serial);
                seen = seen.max(serial);
                if is_accepted && !is_old {
                    self.facts.touch(&scope.file);
                    values.into_iter().for_each(|value| self.adopt(now, &scope, value));
                }
            }
        }
        self.absorb(now, wanted, out);
        if self.holder.session() == session {
            self.on_answer(now, answer, is_old, out);
        }
        if self.renew_at.is_some() && self.holder.is_current(now) {
            self.renew_at = None;
            self.retry(now, |waits| *waits == Waits::Session, out);
        }
        self.tell_recalled(now, out);
    }

    /// Whoever keeps bytes hears what is wanted back, once they can tell of them: a session that was not renewed for a
    /// while is renewed first. Else they would give up untold what they have written.
    fn tell_recalled(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.untold.is_empty() {
            return;
        }
        if self.holder.is_current(now) {
            out.extend(self.untold.drain(..).map(Output::Recalled));
        } else if self.renew_at.is_none() {
            self.renew(now);
        }
    }

    /// Keeps recalls from being heard until whoever keeps bytes has told of them. To the group it is as if
    /// they took longer.
    fn keep_back(&mut self, recalls: &mut Vec<Recall>) {
        // Everything that it takes to say that a content has changed: whoever gives up one of them first might wait
        // for it while others wait for the rest.
        let fields = [Field::Access, Field::Times, Field::Content, Field::Whole, Field::Tree];
        let is_kept = |recall: &Recall| fields.contains(&recall.part.field);
        if !self.settings.has_memory {
            return;
        }
        for recall in recalls.extract_if(.., |recall| is_kept(recall)) {
            let wanted = Wanted { lease: recall.lease.clone(), part: recall.part.clone() };
            if self.recalled.len() < self.settings.budget || self.recalled.contains_key(&wanted) {
                // The later number counts.
                if self.recalled.insert(wanted.clone(), recall).is_none() {
                    self.untold.push(wanted);
                }
            }
        }
    }

    /// All is told that there was to tell before something goes back.
    pub(crate) fn on_yield(&mut self, now: Instant, wanted: Wanted, out: &mut Vec<Output>) {
        let Some(recall) = self.recalled.remove(&wanted) else { return };
        // It says nothing of how long the session goes on: that was heard with it.
        let (session, stamp, span) = (self.holder.session(), Instant::START, Duration::ZERO);
        let body = Down::Recall(vec![recall]);
        self.tell(now, Lease::Heard(Downward { session, stamp, span, body }), out);
    }

    /// Drops what the group itself may have changed, as a consequence of something else, although we
    /// knew it: times, and the locks of others who were lost. What is ours to change we are asked for.
    fn drop_consequences(&mut self, now: Instant, lease: &Scope) {
        for field in [Field::Times, Field::Locks] {
            let scope = field.of(&lease.file);
            if lease.contains(&scope) && !self.holder.is_held(now, &scope, Kind::Write) {
                self.facts.forget(&scope, |_| false);
            }
        }
    }

    /// Adopts what came with a lease on this scope, as far as the lease says that it is so.
    fn adopt(&mut self, now: Instant, lease: &Scope, value: Value) {
        let holder = &self.holder;
        let is_held =
            |scope: &Scope| lease.contains(scope) && holder.is_held(now, scope, Kind::Read);
        match value {
            Value::File { file, record } if file == lease.file => {
                let is_ahead = self.pending.involves(&file);
                let links = self.pending.links_of(&file);
                self.facts.adopt_file(&file, record, is_ahead, links, is_held);
            }
            Value::Entry { directory, name, entry } if directory == lease.file => {
                self.facts.adopt_entry(&directory, name, entry, is_held);
            }
            Value::Names { directory, after, entries, is_all } if directory == lease.file => {
                self.facts.adopt_names(&directory, after.as_ref(), entries, is_all, is_held);
            }
            _ => {}
        }
    }

    fn on_answer(
        &mut self,
        now: Instant,
        answer: Option<Answer>,
        is_old: bool,
        out: &mut Vec<Output>,
    ) {
        match answer {
            Some(Answer::Fetched { request, values }) => {
                let values = if is_old { Vec::new() } else { values };
                self.on_fetched(now, request, values, out);
            }
            Some(Answer::Listed { request, value }) => {
                self.on_listed(now, request, value.filter(|_| !is_old), out);
            }
            Some(Answer::Provided { request, provision }) => {
                self.on_provided(now, request, provision, out);
            }
            Some(Answer::Applied { .. }) | None => {}
        }
    }

    fn on_fetched(
        &mut self,
        now: Instant,
        request: u64,
        values: Vec<Value>,
        out: &mut Vec<Output>,
    ) {
        let Some(mut keys) = self.questions.fetched(request) else { return };
        let holder = &self.holder;
        let is_held = |scope: &Scope| holder.is_held(now, scope, Kind::Read);
        for value in values {
            match value {
                Value::File { file, record } if keys.remove(&Key::file(&file)) => {
                    let is_ahead = self.pending.involves(&file);
                    let links = self.pending.links_of(&file);
                    self.facts.adopt_file(&file, record, is_ahead, links, is_held);
                }
                Value::Entry { directory, name, entry }
                    if keys.remove(&Key::entry(&directory, &name)) =>
                {
                    self.facts.adopt_entry(&directory, name, entry, is_held);
                }
                _ => {}
            }
        }
        self.on_values(now, keys.is_empty(), out);
    }

    fn on_listed(
        &mut self,
        now: Instant,
        request: u64,
        value: Option<Value>,
        out: &mut Vec<Output>,
    ) {
        let Some(asked) = self.questions.listed(request) else { return };
        let Some((asked, asked_after)) = asked else { return };
        let holder = &self.holder;
        let is_held = |scope: &Scope| holder.is_held(now, scope, Kind::Read);
        let is_told = match value {
            Some(Value::Names { directory, after, entries, is_all })
                if directory == asked && after == asked_after =>
            {
                let is_step = is_all || !entries.is_empty();
                self.facts.adopt_names(&directory, after.as_ref(), entries, is_all, is_held);
                is_step
            }
            _ => false,
        };
        self.on_values(now, is_told, out);
    }

    /// Values have come. If not all that were asked for, asking again at once would be no use.
    fn on_values(&mut self, now: Instant, is_told: bool, out: &mut Vec<Output>) {
        if is_told {
            return self.retry(now, |waits| *waits == Waits::Values, out);
        }
        let later = now + self.settings.terms.repeat;
        for order in self.queue.orders(|waits| *waits == Waits::Values) {
            if let Some(waiting) = self.queue.take(order) {
                let waits = Waits::Later(later);
                self.queue.put(Some(order), Waiting { waits, ..waiting });
            }
        }
    }

    fn on_provided(
        &mut self,
        now: Instant,
        request: u64,
        provision: Provision,
        out: &mut Vec<Output>,
    ) {
        let Some(asked) = self.questions.provided(request) else { return };
        let supply = &self.supply;
        let given = |uid: u32| {
            let stock = provision.stock.filter(|(of, _)| *of == uid);
            stock.map_or(Quota::default(), |(_, quota)| quota)
        };
        let has = |lack: &Lack| match lack {
            Lack::Serials => provision.serials.is_some(),
            Lack::Files(uid) => given(*uid).files > 0,
            // Some of it is of no use.
            Lack::Bytes(uid, bytes) => {
                supply.left(*uid).bytes.saturating_add(given(*uid).bytes) >= *bytes
            }
            // If it was for another directory, it has yet to be asked for.
            Lack::Numbers(directory) => {
                asked.as_ref() != Some(directory) || provision.numbers.is_some()
            }
            Lack::Leases => true,
        };
        let mut refused = Vec::new();
        for order in self.queue.orders(|waits| *waits == Waits::Supplies) {
            if let Some(waiting) = self.queue.take(order) {
                let is_asked = waiting.question == Some(request);
                let is_short = is_asked && !waiting.lack.as_ref().is_none_or(has);
                match is_short && waiting.is_short {
                    true => {
                        let why = match (&waiting.lack, provision.is_over) {
                            (Some(Lack::Files(_)), (true, _)) => Refusal::OverShare,
                            (Some(Lack::Bytes(..)), (_, true)) => Refusal::OverShare,
                            _ => Refusal::NoSpace,
                        };
                        refused.push((waiting.job, why));
                    }
                    false => self.queue.put(Some(order), Waiting { is_short, ..waiting }),
                }
            }
        }
        for (job, why) in refused {
            if let Job::Call(call, _) = job {
                out.push(Output::Return { call, result: Err(why.into()) });
            }
        }
        self.supply.add(now, provision);
        self.retry(now, |waits| *waits == Waits::Supplies, out);
    }
}
