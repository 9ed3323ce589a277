//! Answering what waits: grants for whom the way is free, recalls to whoever stands in it.

use std::collections::{BTreeMap, BTreeSet};

use base::{FileId, Instant};

use crate::{
    Client, Field, Kind, Scope,
    kind::Side,
    message::{Down, Grant, Recall, Want},
};

use super::{EXCEPT_MAX, Grantor, Lease, Output, Recalled, Request};

/// The most exceptions in a lease that is wider than what was asked.
const EXCEPT_GENEROUS_MAX: usize = 4;

/// What there is to say after settling, to be said in this order: a grant before its recall.
#[derive(Default)]
pub(super) struct Answers {
    grants: BTreeMap<(Client, u64), Vec<(Scope, Side)>>,
    recalls: BTreeMap<Client, Vec<(Scope, Side, Scope, bool)>>,
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
                silent.into_iter().for_each(|client| self.forget(now, client, out));
                tickets.extend(self.requests.keys());
                continue;
            }
            let mut in_the_way = Vec::new();
            let mut is_free = true;
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
                if self.clear(now, &lease, holder, side, out) {
                    tickets.extend(self.requests.keys());
                } else {
                    self.recall(now, lease, (holder, side), &want, &mut answers);
                }
            }
        }
        self.answer(now, answers, out);
    }

    /// Says what there is to say. Leases are numbered here, in the order in which they are heard of.
    fn answer(&mut self, now: Instant, answers: Answers, out: &mut Vec<Output>) {
        for ((client, request), leases) in answers.grants {
            let mut grants = Vec::with_capacity(leases.len());
            for (scope, side) in leases {
                self.number(now, &scope, client, side);
                grants.extend(self.describe(now, client, scope, side));
            }
            self.say(now, client, Down::Granted { request, grants }, out);
        }
        for (client, wanted) in answers.recalls {
            let recalls = wanted.into_iter().filter_map(|(scope, side, part, keep)| {
                let lease = self.leases.get(&scope, (client, side))?;
                Some(Recall { lease: scope, kind: lease.kind, serial: lease.serial, part, keep })
            });
            let recalls: Vec<Recall> = recalls.collect();
            self.say(now, client, Down::Recall(recalls), out);
        }
    }

    /// Takes a lease that nobody can rely on any more; false if somebody can.
    fn clear(
        &mut self,
        now: Instant,
        lease: &Scope,
        holder: Client,
        side: Side,
        out: &mut Vec<Output>,
    ) -> bool {
        if self.has_lapsed(now, holder) {
            self.forget(now, holder, out);
            return true;
        }
        let is_over = self.leases.get(lease, (holder, side)).is_none_or(|lease| lease.until <= now);
        if is_over {
            self.drop_lease(lease, holder, side);
        }
        is_over
    }

    /// Whether nothing stands in the way of a request that has just come.
    pub(super) fn is_free(&self, now: Instant, request: &Request) -> bool {
        let client = request.client;
        request.wants.iter().all(|want| {
            !self.is_behind(u64::MAX, client, want)
                && !self.is_leaving(client, want)
                && !self.would_shrink(client, want)
                && self.conflicts(client, want).is_empty()
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
        for want in &request.wants {
            *wants_of.entry(want.scope.file.clone()).or_insert(0) += 1;
        }
        for want in request.wants {
            // More than was asked would get in the way of what else was asked of the same file.
            let is_alone = wants_of.get(&want.scope.file) == Some(&1);
            tickets.extend(self.waits.meeting(&want.scope).map(|(_, (ticket, _), _)| ticket));
            if request.is_farewell {
                self.truths.remove(&want.scope, client);
                continue;
            }
            let (scope, side) = match self.held(now, client, &want) {
                Some(held) => held,
                None => self.hand_out(now, client, want, is_alone),
            };
            answers.grants.entry((client, request.id)).or_default().push((scope, side));
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
        if let Some(before) = self.leases.get(&scope, (client, side))
            && !(want.kind.covers(before.kind)
                && except.iter().all(|e| before.except.iter().any(|b| b.contains(e))))
        {
            (scope, except) = (want.scope.clone(), Vec::new());
        }
        if want.kind != Kind::Read && want.kind != Kind::OtherRead {
            self.thaw(client, &scope, &except);
        }
        let until = now + self.terms.lease;
        // It gets its number when it is told of.
        let lease = Lease { kind: want.kind, serial: 0, until, except: except.into() };
        let before = self.leases.insert(scope.clone(), (client, side), lease);
        let session = self.sessions.get_mut(&client).expect("only sessions ask");
        session.leases += usize::from(before.is_none());
        self.recalls.remove(&(client, scope.clone(), side));
        (scope, side)
    }

    /// Starts a lease's term anew, under a number greater than all before, so that the grant that says
    /// so counts. Nothing, if the lease is gone again.
    fn number(&mut self, now: Instant, scope: &Scope, client: Client, side: Side) {
        let Some(lease) = self.leases.get_mut(scope, (client, side)) else { return };
        lease.until = now + self.terms.lease;
        lease.serial = self.serial_next;
        self.serial_next += 1;
    }

    /// Forgets the booleans that a client may change from now on, and what still had to end them.
    fn thaw(&mut self, client: Client, scope: &Scope, except: &[Scope]) {
        let own = self
            .truths
            .meeting(scope)
            .filter(|(truth, of, ())| *of == client && !except.iter().any(|e| e.contains(truth)));
        let own: Vec<Scope> = own.map(|(truth, ..)| truth.clone()).collect();
        for truth in own {
            self.truths.remove(&truth, client);
        }
        let farewells = self.waits.meeting(scope).filter(|(at, (ticket, _), _)| {
            !except.iter().any(|e| e.contains(at))
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

    /// What must be excepted for this want to be free, if it is little.
    fn exceptions(&self, client: Client, want: &Want) -> Option<Vec<Scope>> {
        let of_others = |ticket: &u64| {
            self.requests.get(ticket).is_some_and(|request| request.client != client)
        };
        if self.waits.meeting(&want.scope).any(|(_, (ticket, _), _)| of_others(&ticket)) {
            return None;
        }
        let mut except: Vec<Scope> =
            self.conflicts(client, want).into_iter().map(|(scope, _)| scope).collect();
        except.sort();
        except.dedup();
        let is_inside = |scope: &Scope| want.scope.contains(scope) && *scope != want.scope;
        (except.len() <= EXCEPT_GENEROUS_MAX && except.iter().all(is_inside)).then_some(except)
    }

    fn describe(&self, now: Instant, client: Client, scope: Scope, side: Side) -> Option<Grant> {
        let lease = self.leases.get(&scope, (client, side))?;
        let mut truths: Vec<Scope> = Vec::new();
        if lease.kind == Kind::Write || lease.kind == Kind::OtherRead {
            let others = self.truths.meeting(&scope).filter(|(truth, of, ())| {
                *of != client && scope.contains(truth) && lease.covers(truth)
            });
            truths.extend(others.map(|(truth, ..)| truth.clone()));
            truths.sort();
            truths.dedup();
        }
        Some(Grant {
            except: lease.except.to_vec(),
            kind: lease.kind,
            serial: lease.serial,
            span: lease.until.since(now),
            truths,
            scope,
        })
    }

    fn recall(
        &mut self,
        now: Instant,
        scope: Scope,
        (holder, side): (Client, Side),
        want: &Want,
        answers: &mut Answers,
    ) {
        let Some(lease) = self.leases.get(&scope, (holder, side)) else { return };
        let is_part = scope.contains(&want.scope) && lease.except.len() < EXCEPT_MAX;
        let part = if is_part { want.scope.clone() } else { scope.clone() };
        let keep = want.kind == Kind::Read && lease.kind == Kind::Write && part == scope;
        let recalled =
            self.recalls.entry((holder, scope.clone(), side)).or_insert_with(|| Recalled {
                parts: BTreeMap::new(),
                repeat_at: now + self.terms.repeat,
                deadline: now + self.terms.session,
            });
        let covered = recalled
            .parts
            .iter()
            .any(|(known, known_keep)| known.contains(&part) && (keep || !known_keep));
        if !covered {
            recalled.parts.insert(part.clone(), keep);
            answers.recalls.entry(holder).or_default().push((scope, side, part, keep));
        }
    }
}
