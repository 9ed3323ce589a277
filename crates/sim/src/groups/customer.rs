//! Somebody who wants things decided, one after another, and believes what enough members say.

use std::rc::Rc;

use base::{Duration, Instant, Rng};
use group::{Change, Decision, Roll, Seat, Trust};

use crate::Node;

use super::{
    actor::{Letter, Note, Out},
    ledger::Shared,
    notary::{Safe, Stamp, group},
    tally::{Order, Receipt},
    tamper::Tamper,
};

/// How a customer behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habit {
    /// How long it thinks, at most.
    pub(crate) pace: Duration,
    /// When it says it again.
    pub(crate) patience: Duration,
}

/// After so many attempts it looks up who may sit in the group.
const ATTEMPTS_MAX: u32 = 3;

pub(crate) struct Customer<T> {
    node: Node,
    secret: u64,
    habit: Habit,
    safe: Rc<Safe>,
    ledger: Shared,
    trust: Trust,
    number: u64,
    order: Option<Rc<[u8]>>,
    pub(crate) asked_at: Option<Instant>,
    attempts: u32,
    wake_at: Option<Instant>,
    is_resting: bool,
    rng: Rng,
    tamper: T,
}

impl<T: Tamper> Customer<T> {
    #[expect(clippy::too_many_arguments, reason = "what a customer is made of")]
    pub(crate) fn new(
        node: Node,
        secret: u64,
        habit: Habit,
        safe: Rc<Safe>,
        ledger: Shared,
        mut rng: Rng,
        start: Instant,
        tamper: T,
    ) -> Customer<T> {
        let trust = Trust::new(ledger.borrow().roll()).expect("a group has members");
        let wake_at = Some(start + habit.pace.mul_f64(rng.unit()));
        Customer {
            node,
            secret,
            habit,
            safe,
            ledger,
            trust,
            number: 0,
            order: None,
            asked_at: None,
            attempts: 0,
            wake_at,
            is_resting: false,
            rng,
            tamper,
        }
    }

    /// Asks for nothing more.
    pub(crate) fn rest(&mut self) {
        self.is_resting = true;
        if self.order.is_none() {
            self.wake_at = None;
        }
    }

    /// Asks again.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.is_resting = false;
        if self.order.is_none() {
            self.wake_at = Some(now);
        }
    }

    /// Asks for one more thing at the most.
    pub(crate) fn rest_after_this(&mut self) {
        self.is_resting = true;
    }

    /// Whether it waits for an answer.
    pub(crate) fn is_waiting(&self) -> bool {
        self.order.is_some()
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.wake_at
    }

    pub(crate) fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        if self.wake_at.is_none_or(|at| at > now) {
            return;
        }
        if self.ledger.borrow().is_at_a_liars_mercy() {
            // Nobody could tell what it should believe.
            self.wake_at = Some(now + self.habit.patience);
            return;
        }
        if self.number == 0
            && let Some(trust) = Trust::new(self.ledger.borrow().roll())
        {
            self.trust = trust;
        }
        if self.order.is_none() {
            self.number += 1;
            let weight = self.rng.below(1_000) as u32;
            let order = Order::new(self.node.0, self.number, weight, self.secret);
            self.order = Some(base::encode(&order).into());
            self.asked_at = Some(now);
            self.attempts = 0;
            out.note(Note::Asked { number: self.number });
        } else {
            out.mark("a customer says it again");
        }
        self.attempts += 1;
        let mut to: Vec<Seat> = self.trust.ask(self.number).to_vec();
        if self.attempts >= ATTEMPTS_MAX {
            let ledger = self.ledger.borrow();
            let (roll, start) = (ledger.roll(), Roll::from(&ledger.start().0));
            if roll.epoch != self.trust.epoch() {
                out.mark("somebody looks up who may sit there");
                to.extend(roll.seats.into_iter().filter(|seat| !self.trust.seats().contains(seat)));
            }
            if start.epoch > self.trust.epoch()
                && let Some(trust) = Trust::new(start)
            {
                out.mark("somebody starts from what the authority says");
                self.trust = trust;
            }
        }
        let epoch = self.trust.epoch();
        for seat in to {
            if let (Some(index), Some(order)) = (self.safe.index(&seat.key), &self.order) {
                out.send(Node(index as u16), Letter::Order(Rc::clone(order), epoch));
            }
        }
        self.wake_at = Some(now + self.habit.patience);
    }

    pub(crate) fn deliver(&mut self, now: Instant, node: Node, letter: Letter, out: &mut Out<T>) {
        let Letter::Answer { from, number, receipt, roll, changes } = letter else { return };
        if self.safe.index(&from.key) != Some(node.index()) {
            return;
        }
        let changes: Vec<Decision> = base::decode(&changes, changes.len()).unwrap_or_default();
        if !changes.is_empty() && self.follow(&changes) {
            out.mark("a customer is shown how the members changed");
        }
        if self.trust.on_roll(from, (*roll).clone()) {
            out.mark("a customer learns who sits there or leads");
        }
        if number != self.number || self.order.is_none() {
            return;
        }
        let members = self.trust.seats().clone();
        for from in self.tamper.heard_as(from, members.list()) {
            if self.trust.on_answer(from, number, &receipt) {
                match base::decode::<Receipt>(&receipt, receipt.len()) {
                    Ok(receipt) => out.note(Note::Believed { number, receipt }),
                    Err(malformed) => out.note(Note::Unreadable(malformed.to_string())),
                }
                (self.order, self.asked_at) = (None, None);
                let pause = self.habit.pace.mul_f64(self.rng.unit());
                self.wake_at = (!self.is_resting).then(|| now + pause);
                return;
            }
        }
    }

    /// Follows changes of members. A mutant does not ask who has decided them.
    fn follow(&mut self, changes: &[Decision]) -> bool {
        if self.tamper.checks_changes() {
            let stamp = Stamp::new(&self.safe, 0);
            return self.trust.on_changes(changes, &group().into(), &stamp);
        }
        let last = changes.iter().rev().find_map(|change| match &change.batch.change {
            Some(Change::Enact { seats, .. }) => {
                let (epoch, leader) = (change.height + 1, change.batch.leader);
                Some(Roll { epoch, seats: seats.clone(), leader })
            }
            _ => None,
        });
        let trust = last.filter(|roll| roll.epoch > self.trust.epoch()).and_then(Trust::new);
        let is_news = trust.is_some();
        if let Some(trust) = trust {
            self.trust = trust;
            self.trust.ask(self.number);
        }
        is_news
    }
}
