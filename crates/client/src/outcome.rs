//! What happens when something was done: it takes effect here, is pushed, acknowledged, or lost.

use base::{FileId, Instant};
use directory::{Act, Charges, Entry, Operation, Refusal, Sort, message::Needs};
use lease::{Field, Kind, Scope, holder::Input as Lease, message::Want};
use triomphe::Arc;

use crate::{
    attempt::content_of,
    call::{Failure, Reply},
    client::{Client, Output, Returning},
    facts::Facts,
    merge,
    pending::Done,
    queue::{Job, Waits},
    supply::Supply,
    view::Changes,
};

/// The most files that are looked at to make room in one step.
const EVICTIONS_MAX: usize = 4_096;

impl Client {
    /// Lets an operation take effect here and appends it to what is to be pushed.
    pub(crate) fn commit(
        &mut self,
        now: Instant,
        mut operation: Operation,
        changes: Changes,
    ) -> Reply {
        let Changes { mut depends, files, entries, birth, charges } = changes;
        self.holder.touch(now);
        if files.is_empty() && entries.is_empty() {
            return Reply::Done;
        }
        let mut reply = Reply::Done;
        if let Some((directory, scope)) = &birth {
            let is_leased = self.holder.bear(now, scope);
            if let Act::Create { birth, .. }
            | Act::Mkdir { birth, .. }
            | Act::Symlink { birth, .. }
            | Act::Mknod { birth, .. } = &mut operation.act
            {
                birth.is_leased = is_leased;
            }
            self.supply.take(directory);
            depends.push(Want { scope: scope.clone(), kind: Kind::Write });
        }
        let until = self.ends(now, &depends);

        let mut buried = None;
        let mut links = Vec::new();
        for (file, record) in files {
            match record {
                Some(record) if birth.as_ref().is_some_and(|(_, scope)| scope.file == file) => {
                    let entry = Entry { file: file.clone(), sort: record.sort };
                    reply = Reply::Entry(entry, Some(Arc::clone(&record)));
                    if record.sort == Sort::Directory {
                        self.supply.bear(&file);
                    }
                    self.facts.bear(&file, record);
                }
                Some(record) => {
                    if record.sort == Sort::Directory
                        && let Some(before) = self.facts.record(&file)
                        && before.links != record.links
                    {
                        let more = i64::from(record.links) - i64::from(before.links);
                        links.push((file.clone(), more as i32));
                    }
                    if record.links == 0
                        && let Some(before) = self.facts.record(&file)
                        && before.links > 0
                    {
                        reply = Reply::Nameless(Arc::clone(before));
                    }
                    let is_told = match operation.act {
                        Act::SetAttr { .. } | Act::SetContent { .. } => self.facts.is_whole(&file),
                        // Of its content, which is known.
                        Act::Keep { .. } => true,
                        _ => false,
                    };
                    if is_told {
                        reply = Reply::Changed(Arc::clone(&record));
                    }
                    self.facts.set_file(&file, record);
                }
                None => {
                    reply = self.facts.record(&file).cloned().map_or(reply, Reply::Gone);
                    self.discard(now, &file);
                    self.facts.bury(&file);
                    buried = Some(file);
                }
            }
        }
        for (directory, name, entry) in entries {
            self.facts.set_entry(&directory, &name, entry);
        }
        self.supply.spend(now, &charges, content_of(&operation.act));

        let mut depends: Vec<Scope> = depends.into_iter().map(|want| want.scope).collect();
        depends.sort();
        depends.dedup();
        let spent = charges.clone();
        let done = Done { operation, depends, until, at: now, charges, links };
        merge::append(&mut self.pending, done, buried.as_ref());
        if spent.iter().any(|(_, files, bytes)| files > 0 || bytes > 0) {
            self.provide_ahead(now, birth.map(|(directory, _)| directory), &spent);
        }
        reply
    }

    /// When the first of the leases ends under which all of this is known.
    fn ends(&self, now: Instant, wants: &[Want]) -> Instant {
        let mut until = Instant::END;
        let mut last: Option<&FileId> = None;
        for Want { scope, kind } in wants {
            let may_be_whole = scope.field != Field::Tree && *kind != Kind::OtherRead;
            if may_be_whole && last == Some(&scope.file) {
                continue;
            }
            // Mostly all of a file is known under one lease.
            let whole = Field::Whole.of(&scope.file);
            let end = match self.holder.ends(now, &whole, Kind::Write).filter(|_| may_be_whole) {
                Some(end) => {
                    last = Some(&scope.file);
                    Some(end)
                }
                None => self.holder.ends(now, scope, *kind),
            };
            until = until.min(end.unwrap_or(Instant::END));
        }
        until
    }

    /// Asks for more before it is missing, so that nobody waits for it. The group gives more only of what
    /// it knows to be used up, so that has to be pushed first.
    fn provide_ahead(&mut self, now: Instant, directory: Option<FileId>, spent: &Charges) {
        let is_low_in = directory.as_ref().is_some_and(|at| self.supply.is_low_in(at));
        let low = self.supply.is_low(spent);
        if !is_low_in && low.is_none() {
            return;
        }
        if self.pending.is_flying() || self.questions.is_providing() {
            self.ahead = Some((directory, spent.clone()));
            return;
        }
        self.push_all();
        let (directory, owner) = (directory.filter(|_| is_low_in), low.flatten());
        self.provide(now, Needs { directory, owner, ..Needs::default() });
    }

    /// Everything that was done is to be pushed at once; the place of the last.
    pub(crate) fn push_all(&mut self) -> Option<u64> {
        let last = self.pending.last()?;
        self.pending.demand(last);
        Some(last)
    }

    /// Notes that leases on a file that is no more can go back, some time.
    fn discard(&mut self, now: Instant, file: &FileId) {
        for (scope, kind) in self.holder.leases_of(file) {
            // What was created in it may have moved elsewhere, and keeps its identifier.
            if scope.field != Field::Tree || !self.facts.has_below(file) {
                self.litter.push((scope, kind));
                self.litter_at.get_or_insert(now + self.settings.push_after);
            }
        }
    }

    pub(crate) fn give_back_litter(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.litter_at = None;
        for (lease, kind) in std::mem::take(&mut self.litter) {
            self.tell(now, Lease::Done { lease, kind }, out);
        }
    }

    /// A lease, or a part of it, is to go back when everything that depends on it is applied.
    pub(crate) fn on_push(
        &mut self,
        now: Instant,
        lease: Scope,
        kind: Kind,
        part: Scope,
        out: &mut Vec<Output>,
    ) {
        self.strides.disturb(&part);
        if self.settings.has_memory {
            let serial = self.facts.record(&part.file).map(|record| record.serial);
            out.push(Output::Forget { part: part.clone(), serial });
        }
        match self.pending.last_touching(&part) {
            Some(place) => {
                self.pending.demand(place);
                self.returning.push(Returning { lease, kind, part, place });
            }
            None => self.pushed(now, lease, kind, part, out),
        }
    }

    fn pushed(
        &mut self,
        now: Instant,
        lease: Scope,
        kind: Kind,
        part: Scope,
        out: &mut Vec<Output>,
    ) {
        self.tell(now, Lease::Pushed { lease, kind, part: part.clone() }, out);
        self.drop_unheld(now, &part);
    }

    /// Drops the facts in a scope that no lease is on any more, and answers that would bring them back.
    pub(crate) fn drop_unheld(&mut self, now: Instant, part: &Scope) {
        let holder = &self.holder;
        let is_held = |scope: &Scope| holder.is_held(now, scope, Kind::Read);
        if is_held(part) {
            return;
        }
        self.facts.forget(part, is_held);
        self.is_shaken |= self.questions.forget(part);
    }

    pub(crate) fn on_applied(
        &mut self,
        now: Instant,
        number: u64,
        refused: Option<(u32, Refusal)>,
        out: &mut Vec<Output>,
    ) {
        let count = refused.map(|(index, _)| index as usize);
        if !self.pending.applied(number, count) {
            return;
        }
        if let Some((_, why)) = refused {
            self.refused = Some(why);
            return self.abandon(now, out);
        }
        let pending = &self.pending;
        let (done, rest) = std::mem::take(&mut self.returning)
            .into_iter()
            .partition(|returning: &Returning| !pending.has_until(returning.place));
        self.returning = rest;
        let done: Vec<Returning> = done;
        for Returning { lease, kind, part, .. } in done {
            self.pushed(now, lease, kind, part, out);
        }
        if !self.litter.is_empty() {
            self.give_back_litter(now, out);
        }
        self.return_applied(Ok(Reply::Done), out);
        self.retry(now, |waits| *waits == Waits::Room, out);
        let first = self.pending.first();
        let is_applied = |place: &u64| first.is_none_or(|first| first > *place);
        self.retry(now, |waits| matches!(waits, Waits::After(place) if is_applied(place)), out);
        if let Some((directory, spent)) = self.ahead.take() {
            self.provide_ahead(now, directory, &spent);
        }
    }

    /// Ends the calls that waited for what is applied by now.
    fn return_applied(&mut self, result: Result<Reply, Failure>, out: &mut Vec<Output>) {
        let pending = &self.pending;
        let is_due = |waits: &Waits| match waits {
            Waits::Applied(place) => !pending.has_until(*place),
            _ => false,
        };
        for order in self.queue.orders(is_due) {
            if let Some(Job::Call(call, _)) = self.queue.take(order).map(|waiting| waiting.job) {
                out.push(Output::Return { call, result: result.clone() });
            }
        }
    }

    /// Everything is gone; what was not acknowledged is handed over.
    pub(crate) fn on_lost(&mut self, now: Instant, out: &mut Vec<Output>) {
        let sent = self.pending.flying();
        let operations = self.pending.take();
        let is_loss = !operations.is_empty();
        self.facts = Facts::default();
        (self.supply, self.told_free) = (Supply::default(), None);
        self.handles.lose(is_loss);
        self.questions.lose();
        self.returning.clear();
        self.recalled.clear();
        self.untold.clear();
        self.litter.clear();
        self.late.clear();
        self.strides.clear();
        (self.litter_at, self.renew_at, self.ahead) = (None, None, None);
        // What would have been said in the old session is pointless.
        self.upward.clear();
        self.asking.clear();
        // The group reaps what a lost session had open.
        self.queue.drop_jobs();
        self.owes_loss |= is_loss;
        if self.settings.has_memory {
            let part = Field::Tree.of(&FileId::ROOT);
            out.push(Output::Forget { part, serial: None });
        }
        out.push(Output::Lost { operations, sent, refused: self.refused.take() });
        let result = if is_loss { Err(Failure::Lost) } else { Ok(Reply::Done) };
        self.return_applied(result, out);
        // What they were to tell they have found out under leases that are gone: others may have been faster.
        for call in self.queue.take_tellers() {
            out.push(Output::Return { call, result: Err(Failure::Lost) });
        }
        self.retry(now, |waits| !matches!(waits, Waits::Leases(_)), out);
    }

    /// Keeps within what may be remembered and held: what was not used for longest goes.
    pub(crate) fn make_room(&mut self, now: Instant, out: &mut Vec<Output>) {
        let high = self.settings.budget - self.settings.budget / 8;
        if self.facts.size() > self.settings.facts_max || self.holder.lease_count() > high {
            self.give_back_some(now, 0, out);
        }
    }

    /// Makes room again, and in any case for so many leases.
    pub(crate) fn give_back_some(&mut self, now: Instant, wanted: usize, out: &mut Vec<Output>) {
        let budget = self.settings.budget;
        let leases_max = (budget / 4 * 3).min(budget.saturating_sub(wanted));
        let facts_max = self.settings.facts_max / 4 * 3;
        // Each of them once at the most: what can't go now can't go a moment later.
        for _ in 0..EVICTIONS_MAX.min(self.facts.file_count()) {
            if self.facts.size() <= facts_max && self.holder.lease_count() <= leases_max {
                return;
            }
            let Some(file) = self.facts.oldest() else { return };
            let leases = self.holder.leases_of(&file);
            let has_tree = leases.iter().any(|(scope, _)| scope.field == Field::Tree);
            if self.pending.involves_below(&file)
                || self.handles.is_open_below(&file)
                || (has_tree && self.facts.has_below(&file))
                // Or whoever waits for the rest of it would ask for ever.
                || self.questions.is_about(&file)
                || self.queue.has_missed(&file)
            {
                self.facts.put_last(&file);
                continue;
            }
            for (lease, kind) in leases {
                self.tell(now, Lease::Done { lease, kind }, out);
            }
            self.facts.remove(&file);
        }
    }
}
