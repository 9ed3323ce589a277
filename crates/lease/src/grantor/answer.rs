//! Answering what waits: grants for whom the way is free, recalls to whoever stands in it.

use std::collections::{BTreeMap, BTreeSet};

use base::{FileId, Instant};

use crate::{
    Client, Field, Kind, Scope,
    kind::Side,
    message::{Down, Grant, Recall, Want},
};

use super::{EXCEPT_MAX, Grantor, Lease, Output, Request};

/// So many leases of a client that has too many are wanted back at a time.
pub(super) const OLDEST_MAX: usize = 16;
/// And where all have too many, this part of the leases of whoever has most, up to so many.
const RICHEST_PART: usize = 16;
const RICHEST_MAX: usize = 1_024;
/// The most exceptions in a lease that is wider than what was asked.
const EXCEPT_GENEROUS_MAX: usize = 4;

/// Where more leases than this meet, nobody looks for more than was asked: it must not cost more either.
const LOOK_GENEROUS_MAX: usize = 64;

/// What there is to say after settling, to be said in this order: a grant before its recall.
#[derive(Default)]
pub(super) struct Answers {
    /// To whom, in answer to which request, which lease.
    grants: Vec<(Client, u64, Scope, Side)>,
    /// From whom, which lease, which part of it, and whether reading may go on.
    recalls: Vec<(Client, Scope, Side, Scope, bool)>,
}

impl Answers {
    /// A lease stands that answers a request, or a part of it.
    pub(super) fn grant(&mut self, client: Client, request: u64, lease: Scope, side: Side) {
        self.grants.push((client, request, lease, side));
    }
}

impl Grantor {
    /// Looks at these waiting requests again, and at those that this concerns.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        mut tickets: BTreeSet<u64>,
        mut answers: Answers,
        out: &mut Vec<Output>,
    ) {
        while let Some(ticket) = tickets.pop_first() {
            let Some(request) = self.requests.get(&ticket) else { continue };
            let client = request.client;
            let silent: BTreeSet<Client> =
                request.wants.iter().flat_map(|want| self.silent(now, client, want)).collect();
            if !silent.is_empty() {
                for client in silent {
                    tickets.extend(self.forget(now, client, out));
                }
                tickets.insert(ticket);
                continue;
            }
            let mut in_the_way = Vec::new();
            let mut is_free = request.is_farewell || !self.recalls.is_estranged(client);
            for want in &request.wants {
                if self.is_behind(ticket, client, want)
                    || (!request.is_farewell && self.is_leaving(client, want))
                {
                    is_free = false;
                    continue;
                }
                if !request.is_farewell && self.would_shrink(client, want) {
                    is_free = false;
                    in_the_way.push((want.scope.clone(), (client, want.kind.side()), want.clone()));
                }
                for (lease, holder) in self.conflicts(client, want) {
                    is_free = false;
                    in_the_way.push((lease, holder, want.clone()));
                }
            }
            if is_free && let Some(request) = self.dequeue(ticket) {
                self.give(now, request, &mut tickets, &mut answers);
            }
            for (lease, (holder, side), want) in in_the_way {
                if !self.clear(now, &lease, (holder, side), &mut tickets, out) {
                    self.recall(now, lease, (holder, side), &want, &mut answers);
                }
            }
        }
        self.answer(now, answers, out);
    }

    /// Says what there is to say. Leases are numbered here, in the order in which they are heard of.
    pub(super) fn answer(&mut self, now: Instant, mut answers: Answers, out: &mut Vec<Output>) {
        answers.grants.sort_by_key(|(client, request, ..)| (*client, *request));
        for leases in answers.grants.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (client, request) = (leases[0].0, leases[0].1);
            let grants = leases.iter();
            let grants =
                grants.filter_map(|(.., scope, side)| self.number(now, client, *side, scope));
            let grants = grants.collect();
            self.say(now, client, Down::Granted { request, grants }, out);
        }
        answers.recalls.sort_by_key(|(client, ..)| *client);
        for wanted in answers.recalls.chunk_by(|a, b| a.0 == b.0) {
            let client = wanted[0].0;
            let recalls = wanted.iter().filter_map(|(_, scope, side, part, keep)| {
                let lease = self.leases.get(scope, (client, *side))?;
                Some(Recall {
                    lease: scope.clone(),
                    kind: lease.kind(),
                    serial: lease.serial(),
                    part: part.clone(),
                    keep: *keep,
                })
            });
            let recalls = recalls.collect();
            self.say(now, client, Down::Recall(recalls), out);
        }
    }

    /// Takes a lease that nobody can rely on any more; false if somebody can. What waited for it is to
    /// be looked at again.
    pub(super) fn clear(
        &mut self,
        now: Instant,
        lease: &Scope,
        (holder, side): (Client, Side),
        tickets: &mut BTreeSet<u64>,
        out: &mut Vec<Output>,
    ) -> bool {
        if self.has_lapsed(now, holder) {
            tickets.extend(self.forget(now, holder, out));
            return true;
        }
        let is_over = self.leases.get(lease, (holder, side)).is_none_or(|lease| lease.until <= now);
        if is_over {
            self.drop_lease(lease, holder, side, tickets);
            tickets.extend(self.waits.meeting(lease).map(|(_, (ticket, _), _)| ticket));
        }
        is_over
    }

    /// Whether nothing stands in the way of a request that has just come.
    pub(super) fn is_free(&self, now: Instant, request: &Request) -> bool {
        let client = request.client;
        !self.recalls.is_estranged(client)
            && request.wants.iter().all(|want| {
                !self.is_behind(u64::MAX, client, want)
                    && !self.is_obstructed(client, want)
                    && self.silent(now, client, want).is_empty()
            })
    }

    /// Grants a request, in whose way nothing stands.
    pub(super) fn give(
        &mut self,
        now: Instant,
        request: Request,
        tickets: &mut BTreeSet<u64>,
        answers: &mut Answers,
    ) {
        let client = request.client;
        let mut wants_of: BTreeMap<FileId, usize> = BTreeMap::new();
        let is_single = request.wants.len() == 1;
        for want in request.wants.iter().filter(|_| !is_single) {
            *wants_of.entry(want.scope.file.clone()).or_insert(0) += 1;
        }
        let may_have_all = self.policy.gives_all_to_one && !request.is_narrow;
        if may_have_all && !request.is_farewell && self.is_alone(client) {
            let all = Want { scope: Field::Tree.of(&FileId::ROOT), kind: Kind::Write };
            if self.held(now, client, &all).is_none() {
                self.hand_out(now, client, all, false);
            }
        }
        for want in request.wants {
            // More than was asked would get in the way of what else was asked of the same file.
            let is_alone = is_single || wants_of.get(&want.scope.file) == Some(&1);
            let is_alone = is_alone && !request.is_narrow;
            tickets.extend(self.waits.meeting(&want.scope).map(|(_, (ticket, _), _)| ticket));
            if request.is_farewell {
                self.drop_truth(&want.scope, client);
                continue;
            }
            let (scope, side) = match self.held(now, client, &want) {
                Some(held) => held,
                None => self.hand_out(now, client, want, is_alone),
            };
            answers.grant(client, request.id, scope, side);
        }
    }

    fn hand_out(
        &mut self,
        now: Instant,
        client: Client,
        want: Want,
        is_alone: bool,
    ) -> (Scope, Side) {
        let side = want.kind.side();
        let (mut scope, mut except) = match is_alone {
            true => self.widened(client, &want),
            false => (want.scope.clone(), Vec::new()),
        };
        // A lease that is replaced must not shrink: its holder goes on believing it.
        if scope != want.scope
            && let Some(before) = self.leases.get(&scope, (client, side))
            && !(want.kind.covers(before.kind())
                && except.iter().all(|e| before.except().iter().any(|b| b.contains(e))))
        {
            (scope, except) = (want.scope.clone(), Vec::new());
        }
        if want.kind != Kind::Read && want.kind != Kind::OtherRead {
            self.thaw(client, &scope, &except);
        }
        let until = self.lease_until(now, client);
        // It gets its number when it is told of.
        let lease = Lease::new(want.kind, 0, until, except);
        let before = self.leases.insert(&scope, (client, side), lease);
        let session = self.sessions.get_mut(&client).expect("only sessions ask");
        session.leases += usize::from(before.is_none());
        if before.is_some() {
            self.recalls.remove(&(client, scope.clone(), side));
        }
        (scope, side)
    }

    /// Starts a lease's term anew, under a number greater than all before, so that the grant that says
    /// so counts. Nothing, if the lease is gone again.
    fn number(&mut self, now: Instant, client: Client, side: Side, scope: &Scope) -> Option<Grant> {
        let until = self.lease_until(now, client);
        let lease = self.leases.get_mut(scope, (client, side))?;
        lease.until = until;
        lease.set_serial(self.serial_next);
        self.serial_next += 1;
        let mut truths: Vec<Scope> = Vec::new();
        if matches!(lease.kind(), Kind::Write | Kind::OtherRead) {
            let others = self.truths.meeting(scope);
            let others = others.filter(|(truth, of, ())| *of != client && truth.is_in(scope));
            truths.extend(others.map(|(truth, ..)| truth.scope()));
            truths.retain(|truth| lease.covers(truth));
            truths.sort();
            truths.dedup();
        }
        Some(Grant {
            scope: scope.clone(),
            except: lease.except().to_vec(),
            kind: lease.kind(),
            serial: lease.serial(),
            span: until.since(now),
            truths,
        })
    }

    /// Forgets the booleans that a client may change from now on, and what still had to end them.
    fn thaw(&mut self, client: Client, scope: &Scope, except: &[Scope]) {
        let own = self
            .truths
            .meeting(scope)
            .filter(|(truth, of, ())| *of == client && !except.iter().any(|e| truth.is_in(e)));
        let own: Vec<Scope> = own.map(|(truth, ..)| truth.scope()).collect();
        for truth in own {
            self.drop_truth(&truth, client);
        }
        let farewells = self.waits.meeting(scope).filter(|(at, (ticket, _), _)| {
            !except.iter().any(|e| at.is_in(e))
                && self.requests.get(ticket).is_some_and(|r| r.is_farewell && r.client == client)
        });
        let farewells: Vec<u64> = farewells.map(|(_, (ticket, _), _)| ticket).collect();
        for ticket in farewells {
            self.dequeue(ticket);
        }
    }

    /// What is granted for a want: more than was asked, if that is free.
    fn widened(&self, client: Client, want: &Want) -> (Scope, Vec<Scope>) {
        let asked = (want.scope.clone(), Vec::new());
        if !self.policy.is_generous
            || want.scope.field.is_disjunctive()
            || want.scope.field.is_wide()
        {
            return asked;
        }
        let is_child = matches!(want.scope.field, Field::Child(_));
        let wider = [Some(Field::Whole), is_child.then_some(Field::Children)];
        wider
            .into_iter()
            .flatten()
            .find_map(|field| {
                let scope = field.of(&want.scope.file);
                let except =
                    self.exceptions(client, &Want { scope: scope.clone(), kind: want.kind })?;
                // What was wanted must be in it.
                let answers = !except.iter().any(|except| except.meets(&want.scope));
                answers.then_some((scope, except))
            })
            .unwrap_or(asked)
    }

    /// Whether nobody else holds or waits for anything.
    fn is_alone(&self, client: Client) -> bool {
        let mut others = self.sessions.iter().filter(|(other, _)| **other != client);
        others.all(|(_, session)| session.leases + session.waiting + session.truths == 0)
    }

    /// What must be excepted for this want to be free, if it is little.
    fn exceptions(&self, client: Client, want: &Want) -> Option<Vec<Scope>> {
        let of_others = |ticket: &u64| {
            self.requests.get(ticket).is_some_and(|request| request.client != client)
        };
        if self.waits.meeting(&want.scope).any(|(_, (ticket, _), _)| of_others(&ticket)) {
            return None;
        }
        if self.leases.meeting(&want.scope).nth(LOOK_GENEROUS_MAX).is_some() {
            return None;
        }
        let mut except: Vec<Scope> =
            self.conflicts(client, want).into_iter().map(|(scope, _)| scope).collect();
        except.sort();
        except.dedup();
        let is_inside = |scope: &Scope| want.scope.contains(scope) && *scope != want.scope;
        (except.len() <= EXCEPT_GENEROUS_MAX && except.iter().all(is_inside)).then_some(except)
    }

    /// Wants back the oldest leases of a client that has too many. What it gave back by itself, and was
    /// not heard, would else count for ever.
    pub(super) fn recall_oldest(
        &mut self,
        now: Instant,
        client: Client,
        count: usize,
        out: &mut Vec<Output>,
    ) {
        if self.recalls.deadline(client).is_some() {
            return;
        }
        let own = self.leases.iter().filter(|(_, (of, _), _)| *of == client);
        let mut oldest: Vec<(u64, Scope, Side)> =
            own.map(|(at, (_, side), lease)| (lease.serial(), at.scope(), side)).collect();
        oldest.sort();
        oldest.truncate(count);
        let (repeat_at, deadline) = self.recall_times(now, client);
        let mut answers = Answers::default();
        for (_, scope, side) in oldest {
            let lot = (client, scope.clone(), side);
            if self.recalls.add(&lot, &scope, false, repeat_at, deadline) {
                answers.recalls.push((client, scope.clone(), side, scope, false));
            }
        }
        self.settle(now, BTreeSet::new(), answers, out);
    }

    /// All clients together have too many leases: whoever has most gives back some of its oldest.
    pub(super) fn recall_from_richest(&mut self, now: Instant, out: &mut Vec<Output>) {
        let counts = self.sessions.iter().map(|(client, session)| (session.leases, *client));
        if let Some((leases, client)) = counts.max() {
            let count = (leases / RICHEST_PART).clamp(OLDEST_MAX, RICHEST_MAX);
            self.recall_oldest(now, client, count, out);
        }
    }

    /// When a recall that is said now is said again, and until when it has to be answered.
    fn recall_times(&self, now: Instant, client: Client) -> (Instant, Instant) {
        (now + self.terms.repeat, now + self.session_span(client))
    }

    pub(super) fn recall(
        &mut self,
        now: Instant,
        scope: Scope,
        (holder, side): (Client, Side),
        want: &Want,
        answers: &mut Answers,
    ) {
        let Some(lease) = self.leases.get(&scope, (holder, side)) else { return };
        let lot = (holder, scope, side);
        let (_, scope, _) = &lot;
        // What is recalled part by part will be as many exceptions.
        let is_part = scope.contains(&want.scope)
            && lease.except().len() + self.recalls.part_count(&lot) < EXCEPT_MAX;
        let part = if is_part { want.scope.clone() } else { scope.clone() };
        let keep = want.kind == Kind::Read && lease.kind() == Kind::Write && part == *scope;
        let (repeat_at, deadline) = self.recall_times(now, holder);
        if self.recalls.add(&lot, &part, keep, repeat_at, deadline) {
            answers.recalls.push((lot.0, lot.1, lot.2, part, keep));
        }
    }
}
