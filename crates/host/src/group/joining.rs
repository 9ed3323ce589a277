//! Who this machine is to the others, and for whom it acts.

use std::sync::mpsc::SyncSender;

use node::server::{Input, Output};
use overlay::{Consent, Profile};
use wire::Answer;

use super::Group;

impl Group {
    /// A user agrees that this machine acts for them.
    pub(super) fn on_agree(
        &mut self,
        consent: Consent,
        reply: SyncSender<Answer>,
        out: &mut Vec<Output>,
    ) {
        let Some(peers) = &mut self.peers else { return };
        match peers.on_agreed(consent) {
            Ok(join) => {
                let token = Some(self.token_of(reply));
                self.step(Input::Own { join: Box::new(join), token }, out);
            }
            Err(failure) => _ = reply.try_send(Answer::Refused(failure.to_string())),
        }
    }

    /// Tells the members anew who this machine is, and hears from them for whom it acts. Whoever has a vote has it
    /// from the book.
    pub(super) fn introduce(&mut self, out: &mut Vec<Output>) {
        let is_member = self.server.member().replica().is_member();
        let Some(peers) = self.peers.as_ref().filter(|_| !is_member) else { return };
        match peers.own_join() {
            Ok(join) => self.step(Input::Own { join: Box::new(join), token: None }, out),
            Err(failure) => eprintln!("croft: {failure}"),
        }
    }

    /// The users that this machine acts for, as far as it knows; none if it acts for any.
    pub(crate) fn served(&self) -> Option<Vec<Profile>> {
        let book = self.server.member().book();
        let own = book.client(&self.me.0).and_then(|client| book.machine(client));
        match (&self.peers, own) {
            (Some(peers), _) => peers.served().clone(),
            (None, Some(own)) => book.served(own),
            (None, None) => None,
        }
    }
}
