//! What the group's thread hears from clients and other machines, and tells them.

use std::collections::BTreeSet;

use base::{Machine, PublicKey};
use directory::message::Request;
use lease::Client;
use node::{Input, Output};
use wire::{Audience, Frame, Message, Slot, Word};

use crate::Failure;

use super::{Group, Roster};

impl Group {
    /// This machine's client wants something.
    pub(super) fn on_letter(&mut self, request: Request, out: &mut Vec<Output>) {
        let (now, (me, client)) = (self.clock.now(), self.me);
        if self.member.replica().is_alone() {
            let bytes = self.member.about().encode(Message::Request(request));
            return self.member.step(now, Input::Heard { from: client, bytes, key: None }, out);
        }
        let Some(peers) = &mut self.peers else { return };
        let mut said = Vec::new();
        let bytes = peers.ear().seal(request);
        peers.ear().say(now, bytes.clone(), &mut said);
        peers.ask_around(now);
        // A member that knows what is to be done misses a leader that has died with it. What comes twice is decided
        // once.
        let own = self.member.replica().tip().seat_of(&me);
        if peers.ear().seats().contains(&own) && !said.iter().any(|(seat, _)| *seat == own) {
            said.push((own, bytes));
        }
        for (seat, bytes) in said {
            if seat.key == me {
                self.member.step(now, Input::Heard { from: client, bytes, key: Some(me) }, out);
            } else {
                peers.send(&seat.key, bytes);
            }
        }
    }

    /// Another machine says something.
    pub(super) fn on_frame(
        &mut self,
        from: PublicKey,
        bytes: Vec<u8>,
        said: &mut Vec<Vec<u8>>,
        out: &mut Vec<Output>,
    ) -> Result<(), Failure> {
        #[cfg(test)]
        if !self.heeds(&from, &bytes) {
            return Ok(());
        }
        let Some(peers) = &mut self.peers else { return Ok(()) };
        let now = self.clock.now();
        match Audience::of(&bytes) {
            Some(Audience::Member(_)) => {
                let from = self.member.replica().tip().seat_of(&from);
                self.member.step(now, Input::Told { from, bytes }, out);
            }
            Some(Audience::Group(_)) => {
                if let Some(client) = self.member.book().client(&from) {
                    let input = Input::Heard { from: client, bytes, key: Some(from) };
                    self.member.step(now, input, out);
                }
            }
            Some(Audience::Client(_)) => match wire::decode(&bytes) {
                Ok(Frame::Group(about, Message::Word(word))) => {
                    said.extend(peers.ear().on_word(&from, about, word));
                }
                Ok(Frame::Group(about, Message::Changes(changes)))
                    if about.group == self.member.about().group =>
                {
                    self.on_changes(changes, out);
                }
                _ => {}
            },
            Some(Audience::Machine) => {
                if let Ok(Frame::Tidings(tidings)) = wire::decode(&bytes) {
                    return self.on_tidings(from, tidings, out);
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Tells a client what follows from a decision.
    pub(super) fn say(&mut self, to: Client, slot: Slot, bytes: Vec<u8>, said: &mut Vec<Vec<u8>>) {
        let (me, client) = self.me;
        let replica = self.member.replica();
        if to == client && replica.is_alone() {
            return said.push(bytes);
        }
        let Some(peers) = self.peers.as_mut().filter(|_| replica.is_member()) else { return };
        let (about, word) =
            (self.member.about(), Word { slot, leader: replica.tip().leader, bytes });
        if to == client {
            said.extend(peers.ear().on_word(&me, about, word));
        } else if let Some(machine) = self.member.book().machine(to) {
            peers.send(&machine.key, about.encode(Message::Word(word)));
        }
    }

    pub(super) fn show(&self, to: Client, bytes: Vec<u8>) {
        let machine = self.member.book().machine(to);
        if let (Some(peers), Some(machine)) = (&self.peers, machine) {
            peers.send(&machine.key, bytes);
        }
    }

    /// The book of machines may have changed: others may have to be met.
    pub(super) fn read_book(&mut self) {
        self.listed = Roster::read(self.member.book());
        let Some(peers) = &mut self.peers else { return };
        peers.read_book(self.member.book(), &self.me.0);
    }

    /// The keys of those who sit in the group or are to, as far as this machine knows.
    fn seated(&mut self) -> BTreeSet<PublicKey> {
        let tip = self.member.replica().tip();
        let seats = tip.seats.iter().chain(tip.learners());
        let mut keys: BTreeSet<PublicKey> = seats.map(|seat| seat.key).collect();
        if let Some(peers) = &mut self.peers {
            keys.extend(peers.ear().roll().seats.iter().map(|seat| seat.key));
        }
        keys
    }

    /// The members may have changed: this machine's client has to know whom to ask.
    pub(super) fn read_roll(&mut self) {
        let seated = self.seated();
        self.inbox.seat(seated);
        let Some(peers) = &mut self.peers else { return };
        let (replica, epoch) = (self.member.replica(), peers.ear().roll().epoch);
        if replica.epoch_known() > epoch {
            peers.ear().follow(&replica.changes_since(epoch));
        }
        peers.read_roll();
        peers.expire();
    }
}
