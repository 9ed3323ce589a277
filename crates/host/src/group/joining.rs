//! How machines join, what is decreed of them and of users, and for whom this machine acts.

use std::sync::{Arc, mpsc::SyncSender};

use base::Machine as _;
use node::{Input, Output};
use overlay::{Consent, Decree, Profile};
use wire::{Answer, Join, Ticket};

use crate::cell::seconds_now;

use super::{Group, announce};

impl Group {
    /// A machine wants to join.
    pub(super) fn on_join(
        &mut self,
        join: Box<Join>,
        reply: SyncSender<Answer>,
        out: &mut Vec<Output>,
    ) {
        self.show_rescue(join.certificate.machine());
        let is_member = self.member.replica().is_member();
        let Some(peers) = &mut self.peers else { return };
        peers.on_moved(&join);
        if !is_member {
            let what = "this machine has no vote; join where a member of the group is".to_owned();
            _ = reply.try_send(Answer::Refused(what));
        } else if peers.await_join(&join, reply) {
            self.member.step(self.clock.now(), Input::Join(join), out);
        }
    }

    /// An issuer or the root key says something of a machine, a user or an issuer.
    pub(super) fn on_decree(
        &mut self,
        decree: Box<Decree>,
        reply: SyncSender<Answer>,
        out: &mut Vec<Output>,
    ) {
        let is_member = self.member.replica().is_member();
        let Some(peers) = &mut self.peers else { return };
        if !is_member {
            let what = "this machine has no vote; ask where a member of the group is".to_owned();
            _ = reply.try_send(Answer::Refused(what));
        } else if peers.await_decree(&decree, reply) {
            self.member.step(self.clock.now(), Input::Decree { decree, heard: seconds_now() }, out);
        }
    }

    /// A user agrees that this machine acts for them.
    pub(super) fn on_agree(
        &mut self,
        consent: Consent,
        reply: SyncSender<Answer>,
        out: &mut Vec<Output>,
    ) {
        let Some(peers) = &mut self.peers else { return };
        match peers.on_agreed(consent) {
            Ok(join) if self.member.replica().is_member() => {
                self.on_join(Box::new(join), reply, out);
            }
            Ok(join) => self.announce(join, Some(reply)),
            Err(failure) => _ = reply.try_send(Answer::Refused(failure.to_string())),
        }
    }

    /// Tells the members anew who this machine is, and hears from them for whom it acts. Whoever has a vote has it
    /// from the book.
    pub(super) fn introduce(&mut self) {
        let Some(peers) = self.peers.as_ref().filter(|_| !self.member.replica().is_member()) else {
            return;
        };
        match peers.own_join() {
            Ok(join) => self.announce(join, None),
            Err(failure) => eprintln!("croft: {failure}"),
        }
    }

    /// Enough members say for whom this machine acts.
    pub(super) fn on_served(&mut self, ticket: Box<Ticket>, reply: Option<SyncSender<Answer>>) {
        if let Some(peers) = self.peers.as_mut().filter(|_| !self.member.replica().is_member()) {
            peers.serve(ticket.users.clone());
        }
        if let Some(reply) = reply {
            // Whoever waited may be gone.
            _ = reply.try_send(Answer::Joined(ticket));
        }
    }

    /// The users that this machine acts for, as far as it knows; none if it acts for any.
    pub(crate) fn served(&self) -> Option<Vec<Profile>> {
        let book = self.member.book();
        let own = book.client(&self.me.0).and_then(|client| book.machine(client));
        match (&self.peers, own) {
            (Some(peers), _) => peers.served().clone(),
            (None, Some(own)) => book.served(own),
            (None, None) => None,
        }
    }

    pub(super) fn announce(&self, join: Join, reply: Option<SyncSender<Answer>>) {
        if let Some(peers) = &self.peers {
            let (beside, inbox) = (peers.neighbours(), Arc::clone(&self.inbox));
            announce::announce(peers.lookout(), beside, inbox, join, reply);
        }
    }
}
