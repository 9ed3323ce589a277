//! What a machine does that lies, beside what its `Vice` makes of what it says.

use base::Instant;
use group::{Input, Message, Rescue, Roll, Seat};
use vice::Vice;

use super::Member;
use crate::{
    Node,
    groups::{
        actor::{Letter, Out},
        tally::{Order, Receipt},
        tamper::Tamper,
    },
};

/// How often a liar that is alone decides something, when it could.
const WHIMS: f64 = 0.1;
/// How often a liar that has the authority's word shows it, when it could.
const LEAKED: f64 = 0.02;

impl<T: Tamper> Member<T> {
    /// A liar says something else instead, perhaps.
    pub(super) fn lie(&mut self, to: Seat, message: Message, out: &mut Out<T>) {
        let (Some(vice), Some(index)) = (&mut self.vice, self.site.safe.index(&to.key)) else {
            return;
        };
        let node = Node(index as u16);
        for message in vice.outward(node.0, message, self.seat, &self.stamp) {
            let bytes = vice.maul(base::encode(&message)).into();
            out.send(node, Letter::Member { from: self.seat, to, bytes });
        }
    }

    /// A liar that is alone decides what it likes; if it is two, each of them does.
    pub(super) fn please_itself(&mut self, now: Instant, out: &mut Out<T>) {
        for index in 0..self.lives.len() {
            let life = &self.lives[index];
            let is_alone = self.vice.is_some() && life.tip.seats == [self.seat];
            if is_alone && self.rng.chance(WHIMS) {
                let command = base::encode(&Order::whim(&life.tally, &mut self.rng));
                let from = self.seat.key;
                self.step(now, index, Input::Command { from, command }, out);
            }
        }
    }

    /// A liar says things that nobody made it say.
    pub(super) fn scheme(
        &mut self,
        now: Instant,
        heard: Option<(Seat, &Message)>,
        out: &mut Out<T>,
    ) {
        let (clock, is_biding) = (self.clock(now), self.is_biding());
        let Some(vice) = self.vice.as_mut().filter(|_| !is_biding) else { return };
        let life = &self.lives[0];
        let (tip, time) = (&life.tip, life.replica.time(clock));
        let false_state = || {
            let mut tally = life.tally.clone();
            tally.spoil();
            base::encode(&tally)
        };
        let mut said = vice.scheme(heard, tip, &false_state, time, self.seat, &self.stamp);
        if self.site.leaks && self.rng.chance(LEAKED) {
            let seat = *self.rng.pick(&tip.seats);
            let what = Rescue { number: 1, seat, height: tip.height, time, at: 0 };
            let leaked = Message::Decisions(vec![self.site.safe.leak(what).decision()]);
            out.mark("a rescue leaks while a quorum is well");
            said.extend(tip.seats.iter().map(|to| (*to, leaked.clone())));
        }
        for (to, message) in said {
            if let Some(index) = self.site.safe.index(&to.key).filter(|n| *n != self.node.index()) {
                let bytes = vice.maul(base::encode(&message)).into();
                out.send(Node(index as u16), Letter::Member { from: self.seat, to, bytes });
            }
        }
    }
}

/// Whether a liar answers a customer, and how.
pub(super) fn misanswer(vice: &mut Vice, receipt: &mut Receipt, roll: &mut Roll) -> bool {
    if vice.misanswers() {
        receipt.weight += 1;
        if receipt.weight.is_multiple_of(2) {
            roll.epoch += 1;
            roll.seats.truncate(1);
        }
    }
    !vice.withholds()
}
