//! What a member hears: what clients want, what other members say, and who is there.

use base::{Instant, PublicKey};
use directory::Command;
use group::{Notary, Seat};
use lease::Client;
use load::reservoir::Allowance;
use overlay::{Decree, Refused};
use wire::{About, Frame, Join, Message};

use crate::{
    attendance::{Attendance, Look},
    order::{self, Order},
};

use super::{CALL, Identity, Member, Output};

/// What a join counts for.
pub(crate) const JOIN: u64 = 1_000;
/// How often one machine may want to join: eight times, and then every two seconds.
pub(crate) const JOINS: Allowance = Allowance { burst: 8 * JOIN, per_second: JOIN / 2 };
/// How often all may that one issuer lets in: so many times, and then four times in a second.
pub(crate) const ISSUES: Allowance = Allowance { burst: 256 * JOIN, per_second: 4 * JOIN };

impl<N: Notary + Clone> Member<N> {
    pub(super) fn on_heard(
        &mut self,
        now: Instant,
        from: Client,
        bytes: &[u8],
        key: Option<PublicKey>,
        out: &mut Vec<Output>,
    ) {
        if key.is_some_and(|key| self.book.is_revoked(&key)) {
            self.strange += 1;
            return;
        }
        self.note(now, key.as_ref());
        // Nothing would come of it, so it must not cost a place in the log.
        if !(self.directory.hears(from) || self.admitting.contains(&from)) {
            self.strange += 1;
            return;
        }
        let Ok(Frame::Group(about, message)) = wire::decode(bytes) else {
            self.malformed += 1;
            return;
        };
        if !self.is_mine(&about) {
            return;
        }
        let (request, by) = match message {
            Message::Request(request) => (request, None),
            Message::Sealed(request, seal) => (request, key.map(|key| (key, seal))),
            Message::Whose => {
                let (whose, epoch) = (key.unwrap_or(self.identity.seat.key), about.epoch);
                let Some(changes) = self.replica.show_changes(now, whose, epoch) else { return };
                let bytes = self.about().encode(Message::Changes(changes));
                return out.push(Output::Show { to: from, bytes });
            }
            Message::Member(_) | Message::Word(_) | Message::Changes(_) => {
                self.malformed += 1;
                return;
            }
        };
        let order = Order::Do { command: Command::Heard { client: from, request }, by };
        if self.replica.is_alone() && key.is_none() || self.is_authentic(&order) {
            let from = key.unwrap_or(self.identity.seat.key);
            self.order(now, from, order, out);
        } else {
            self.strange += 1;
        }
    }

    pub(super) fn on_told(
        &mut self,
        now: Instant,
        from: Seat,
        bytes: &[u8],
        out: &mut Vec<Output>,
    ) {
        // A member that was sent away keeps its seat until another takes it, and is away for the others.
        if self.book.is_revoked(&from.key) {
            self.strange += 1;
            return;
        }
        self.note(now, Some(&from.key));
        if !self.has_room(0) {
            // Whoever can't keep up asks for what it has missed when it can.
            return;
        }
        let Ok(Frame::Group(about, Message::Member(message))) = wire::decode(bytes) else {
            self.malformed += 1;
            return;
        };
        if !self.is_mine(&about) {
            return;
        }
        // Others have no say in what is decided, so nobody has to look at what they want.
        let commands = message.commands();
        let is_fit =
            commands.is_empty() || self.replica.members().contains(&from) && self.are_fit(commands);
        let input = group::Input::Heard { from, message: *message, is_fit };
        self.group(now, input, out);
    }

    /// Whether something is for this group. What is for another is passed over.
    fn is_mine(&mut self, about: &About) -> bool {
        let is_mine = about.group == self.identity.group;
        self.strange += u64::from(!is_mine);
        is_mine
    }

    /// A machine is there: it has said something.
    fn note(&mut self, now: Instant, key: Option<&PublicKey>) {
        let is_member = self.replica.is_member();
        if let (Some(attendance), Some(key)) = (self.attendance.as_mut().filter(|_| is_member), key)
        {
            attendance.on_heard(now, key);
        }
    }

    /// Looks who is there, calls those who are silent, and wishes for others if need be.
    pub(super) fn look_round(&mut self, now: Instant, out: &mut Vec<Output>) {
        let (me, members) = (self.identity.seat.key, self.replica.members().clone());
        let Some(attendance) = &mut self.attendance else { return };
        let Look { calls, wish } = attendance.look(now, &me, &members, &self.book);
        let hello = group::Message::Hello { nonce: CALL };
        let bytes = self.about().encode(Message::Member(Box::new(hello)));
        out.extend(calls.into_iter().map(|to| Output::Tell { to, bytes: bytes.clone() }));
        if let Some(seats) = wish {
            self.group(now, group::Input::Wish(seats), out);
        }
    }

    /// When to look round next.
    pub(super) fn look_at(&self) -> Option<Instant> {
        let attendance = self.attendance.as_ref().filter(|_| self.replica.is_member());
        attendance.and_then(Attendance::look_at)
    }

    /// Whether all of these may be decided. What waits here already was looked at when it came.
    fn are_fit(&self, commands: &[Vec<u8>]) -> bool {
        let is_fit = |order: &Order| self.is_authentic(order);
        let mut commands = commands.iter().filter(|command| !self.replica.is_pending(command));
        commands.all(|command| Order::of(command).is_ok_and(|order| is_fit(&order)))
    }

    fn is_authentic(&self, order: &Order) -> bool {
        let Identity { group, authority, notary, .. } = &self.identity;
        order.is_authentic(group, authority.as_ref(), notary)
    }

    pub(super) fn on_join(&mut self, now: Instant, join: Box<Join>, out: &mut Vec<Output>) {
        let machine = *join.certificate.machine();
        let Some(authority) = &self.identity.authority else { return };
        // What this member knows already must not cost a place in the log, whoever asks how often.
        let judged = join.check(authority).and_then(|vouched| {
            let known = self.book.may_join(&vouched, join.heard)?;
            Ok((vouched.inviter.issuer, known))
        });
        let outcome = match judged {
            Err(refused) => Err(refused),
            Ok((_, Some(client))) if !self.book.is_news(client, &join, authority) => Ok(client),
            Ok((issuer, _)) if self.may_join(now, machine, issuer) => {
                return self.order(now, issuer, Order::Join(join), out);
            }
            Ok(_) => Err(Refused::JoinsTooMany),
        };
        out.push(Output::Joined { machine, outcome });
    }

    /// Whether a machine has not wanted to join too often lately, nor all together that this issuer lets in: each time
    /// is a decision, whatever comes of it.
    fn may_join(&mut self, now: Instant, machine: PublicKey, issuer: PublicKey) -> bool {
        let allowances = [(machine, JOINS), (issuer, ISSUES)];
        let joins = &mut self.joins;
        let may = allowances.iter().all(|(key, allowance)| joins.may(now, key, *allowance));
        if may {
            for (key, allowance) in allowances {
                joins.spend(now, &key, allowance, JOIN);
            }
        }
        may
    }

    pub(super) fn on_decree(
        &mut self,
        now: Instant,
        decree: Box<Decree>,
        heard: u64,
        out: &mut Vec<Output>,
    ) {
        let Some(authority) = &self.identity.authority else { return };
        // One that nobody may make is for nobody at all.
        let Ok(subject) = decree.verify(authority) else {
            self.strange += 1;
            return;
        };
        match self.book.judge(&decree, authority, heard) {
            Ok(true) => {
                // Whoever has signed it may let others hand it in.
                let from = *authority;
                self.order(now, from, Order::Decree { decree, heard }, out);
            }
            known => out.push(Output::Decreed { subject, decree, outcome: known.map(drop) }),
        }
    }

    /// Has the group decide something that somebody has handed in.
    pub(super) fn order(
        &mut self,
        now: Instant,
        from: PublicKey,
        order: Order,
        out: &mut Vec<Output>,
    ) {
        let bytes = base::encode(&order);
        if bytes.len() > order::BYTES_MAX {
            self.malformed += 1;
            return;
        }
        if self.has_room(bytes.len()) {
            self.group(now, group::Input::Command { from, command: bytes }, out);
        }
    }

    /// Whether something new can be taken, with so many bytes; if not, whoever said it will say it again.
    fn has_room(&self, bytes: usize) -> bool {
        let (held, held_bytes) = self.replica.held();
        self.due.len() + held < self.limits.due_max
            && held_bytes + bytes <= self.limits.held_bytes_max
    }
}
