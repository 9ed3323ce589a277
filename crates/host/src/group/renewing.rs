//! How the certificate of this machine is renewed: it asks in time, whoever has an issuer's key answers, and the
//! group hears of it as of anything else that a machine shows.

use std::{sync::Arc, thread, time::Duration};

use base::{Machine as _, PublicKey};
use node::{Input, Output, mailroom::Kind};
use overlay::Renewal;
use wire::{Answer, Query};

use crate::{Neighbours, cell::Membership, net::Lookout};

use super::{Group, Post};

/// How long one machine is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// The most machines that are asked.
const ASKED_MAX: usize = 64;

impl Group {
    /// Asks for a renewal when it is time, at this moment in seconds since 1970.
    pub(super) fn renew_in_time(&mut self, now: u64) {
        let Some(peers) = &self.peers else { return };
        if !self.renewer.asks(peers.expires(), now) {
            return;
        }
        let (lookout, neighbours, founder) = (peers.lookout(), peers.neighbours(), peers.founder());
        let (inbox, me) = (Arc::clone(&self.inbox), self.me.0);
        let (issuer, authority) = (peers.issuer_path(), peers.authority());
        thread::spawn(move || {
            let renewal = match issuer.exists() {
                true => Membership::renewal(&issuer, &authority, me)
                    .inspect_err(|failure| {
                        eprintln!("croft: the certificate is not renewed: {failure}")
                    })
                    .ok(),
                false => ask_around(&lookout, &neighbours, founder),
            };
            if let Some(renewal) = renewal {
                inbox.post(Kind::Word, Post::Renewed(renewal));
            }
        });
    }

    /// An issuer lets this machine stay for longer, as somebody says. The group has to hear of it.
    pub(super) fn on_renewed(&mut self, renewal: Renewal, out: &mut Vec<Output>) {
        let Some(peers) = &mut self.peers else { return };
        match peers.renew(renewal) {
            Ok(Some(join)) if self.member.replica().is_member() => {
                self.member.step(self.clock.now(), Input::Join(Box::new(join)), out);
            }
            Ok(Some(join)) => self.announce(join, None),
            Ok(None) => {}
            Err(failure) => eprintln!("croft: the certificate is not renewed: {failure}"),
        }
    }
}

/// Asks the other machines for a renewal, the one that has founded the cell first: some of them may have an
/// issuer's key. Whatever they say is checked by whoever takes it.
pub(crate) fn ask_around(
    lookout: &Lookout,
    neighbours: &Neighbours,
    founder: PublicKey,
) -> Option<Renewal> {
    let mut keys = neighbours.keys();
    keys.sort_by_key(|key| *key != founder);
    let ask = |key: &PublicKey| {
        let bytes = lookout.ask(key, wire::encode(&Query::Renew), PATIENCE)?;
        match wire::decode(&bytes) {
            Ok(Answer::Renewed(renewal)) => Some(*renewal),
            _ => None,
        }
    };
    keys.iter().take(ASKED_MAX).find_map(ask)
}
