//! Whoever comes with a code of this machine's is handed what the code pins, and what has changed since.

use std::sync::mpsc::SyncSender;

use base::Digest;
use node::mailroom::Sender;
use wire::{Answer, Lead, Pin};

use crate::cell::recall;

use super::{Group, Post, peers::Door};

/// The most addresses of members that are named.
const MEMBERS_MAX: usize = 8;

impl Door {
    /// Where the code with this digest leads. Anybody may ask: only who has the code can do something with it.
    pub(super) fn lead(&self, from: Sender, digest: &Digest) -> Answer {
        match recall(self.directory(), digest) {
            Some(pin) => self.submit(from, |reply| Post::Invited { pin: Box::new(pin), reply }),
            None => Answer::Refused(
                "no code of this machine leads there, or it has expired; ask for another, and look at the \
                 clocks if that can't be"
                    .into(),
            ),
        }
    }
}

impl Group {
    pub(super) fn on_invited(&self, pin: Pin, reply: &SyncSender<Answer>) {
        let changes = self.member.replica().changes_since(pin.roll.epoch);
        let members = self.peers.iter().flat_map(|peers| peers.members_at());
        let members = members.take(MEMBERS_MAX).collect();
        // Whoever waited may be gone.
        _ = reply.try_send(Answer::Invited(Box::new(Lead { pin, changes, members })));
    }
}
