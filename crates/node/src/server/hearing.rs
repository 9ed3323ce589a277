//! What a machine hears from its own client and from others, and what it tells them; who its client believes.

use base::{Duration, Instant, PublicKey};
use directory::message::Request;
use group::{Decision, Notary};
use lease::Client;
use wire::{Audience, Frame, Message, Slot, Word};

use crate::member;

use super::{Output, Server};

/// After so long without a word that can be believed all machines are asked who the members are, and again after as
/// long.
pub(super) const UNHEARD: Duration = Duration::from_secs(5);
/// The most machines that are asked.
const ASKED_MAX: usize = 64;

impl<N: Notary + Clone> Server<N> {
    pub(super) fn on_wanted(&mut self, now: Instant, request: Request, out: &mut Vec<Output>) {
        let (me, client) = self.me;
        if self.member.replica().is_alone() {
            let bytes = self.member.about().encode(Message::Request(request));
            let input = member::Input::Heard { from: client, bytes, key: None };
            return self.step_member(now, input, out);
        }
        let Some(cell) = &mut self.cell else { return };
        let mut said = Vec::new();
        let bytes = cell.ear.seal(request);
        cell.ear.say(now, bytes.clone(), &mut said);
        cell.ask_around(now, out);
        // A member that knows what is to be done misses a leader that has died with it. What comes twice is decided
        // once.
        let own = self.member.replica().tip().seat_of(&me);
        if cell.ear.seats().contains(&own) && !said.iter().any(|(seat, _)| *seat == own) {
            said.push((own, bytes));
        }
        for (seat, bytes) in said {
            if seat.key == me {
                let input = member::Input::Heard { from: client, bytes, key: Some(me) };
                self.step_member(now, input, out);
            } else {
                out.push(Output::Send { to: seat.key, bytes });
            }
        }
    }

    pub(super) fn on_frame(
        &mut self,
        now: Instant,
        from: PublicKey,
        bytes: Vec<u8>,
        out: &mut Vec<Output>,
    ) {
        let Some(cell) = &mut self.cell else { return };
        match Audience::of(&bytes) {
            Some(Audience::Member(_)) => {
                let from = self.member.replica().tip().seat_of(&from);
                self.step_member(now, member::Input::Told { from, bytes }, out);
            }
            Some(Audience::Group(_)) => {
                if let Some(client) = self.member.book().client(&from) {
                    let input = member::Input::Heard { from: client, bytes, key: Some(from) };
                    self.step_member(now, input, out);
                }
            }
            Some(Audience::Client(_)) => match wire::decode(&bytes) {
                Ok(Frame::Group(about, Message::Word(word))) => {
                    out.extend(cell.ear.on_word(&from, about, word).map(Output::Hear));
                }
                Ok(Frame::Group(about, Message::Changes(changes)))
                    if about.group == self.member.about().group =>
                {
                    self.on_changes(now, changes, out);
                }
                _ => {}
            },
            Some(Audience::Machine) => {
                if let Ok(Frame::Tidings(tidings)) = wire::decode(&bytes) {
                    self.on_tidings(now, from, tidings, out);
                }
            }
            None => {}
        }
    }

    /// Somebody shows how the members have changed: the client on this machine has to know, and so has its member, who
    /// may have been passed over, and finds out for both whether a rescue is to be obeyed.
    pub(super) fn on_changes(
        &mut self,
        now: Instant,
        changes: Vec<Decision>,
        out: &mut Vec<Output>,
    ) {
        let Some(cell) = &mut self.cell else { return };
        cell.ear.on_changes(&changes);
        self.step_member(now, member::Input::Changes(changes), out);
    }

    /// Tells a client what follows from a decision.
    pub(super) fn say(&mut self, to: Client, slot: Slot, bytes: Vec<u8>, out: &mut Vec<Output>) {
        let (me, client) = self.me;
        let replica = self.member.replica();
        if to == client && replica.is_alone() {
            return out.push(Output::Hear(bytes));
        }
        let Some(cell) = self.cell.as_mut().filter(|_| replica.is_member()) else { return };
        let (about, leader) = (self.member.about(), replica.tip().leader);
        let word = Word { slot, leader, bytes };
        if to == client {
            out.extend(cell.ear.on_word(&me, about, word).map(Output::Hear));
        } else if let Some(machine) = self.member.book().machine(to) {
            out.push(Output::Send { to: machine.key, bytes: about.encode(Message::Word(word)) });
        }
    }

    /// Shows a client something that it need not believe.
    pub(super) fn show(&self, to: Client, bytes: Vec<u8>, out: &mut Vec<Output>) {
        let machine = self.member.book().machine(to).filter(|_| self.cell.is_some());
        out.extend(machine.map(|machine| Output::Send { to: machine.key, bytes }));
    }

    /// The members may have changed: this machine's client has to know whom to ask.
    pub(super) fn read_roll(&mut self, out: &mut Vec<Output>) {
        let Some(cell) = &mut self.cell else { return };
        let (replica, epoch) = (self.member.replica(), cell.roll.epoch);
        if replica.epoch_known() > epoch {
            cell.ear.follow(&replica.changes_since(epoch));
        }
        let roll = cell.ear.roll();
        if (roll.epoch, &roll.seats) != (epoch, &cell.roll.seats) {
            cell.roll = roll.clone();
            out.push(Output::Roll(roll));
        }
    }
}

impl<N: Notary> super::Cell<N> {
    /// If no member was heard for long, asks everybody else: they may be others by now, and whoever knows can show it.
    fn ask_around(&mut self, now: Instant, out: &mut Vec<Output>) {
        let is_asked = self.asked_at.is_some_and(|at| now.since(at) < UNHEARD);
        if is_asked || !self.ear.is_unheard(now, UNHEARD) {
            return;
        }
        self.asked_at = Some(now);
        let whose = self.ear.whose();
        let asked = self.machines.iter().take(ASKED_MAX);
        out.extend(asked.map(|to| Output::Send { to: *to, bytes: whose.clone() }));
    }
}
