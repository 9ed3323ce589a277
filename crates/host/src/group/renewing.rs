//! How other machines are asked out of turn, and how the certificate of this one is renewed.

use std::{path::Path, sync::Arc, thread, time::Duration};

use base::PublicKey;
use node::{
    mailroom::Kind,
    server::{Input, Output, Token},
};
use overlay::Renewal;
use wire::{Answer, Query};

use crate::{Failure, Neighbours, cell::Membership, net::Lookout};

use super::{Group, Post};

/// How long one machine is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// The most machines that are asked.
const ASKED_MAX: usize = 64;

impl Group {
    /// Asks a machine, or this one, in a thread of its own: the answer comes by the mailbox.
    pub(super) fn ask(&self, token: Token, to: PublicKey, query: Query) {
        let Some(peers) = &self.peers else { return };
        let (lookout, inbox, is_this) = (peers.lookout(), Arc::clone(&self.inbox), to == self.me.0);
        let (issuer, authority) = (peers.issuer_path(), peers.authority());
        thread::spawn(move || {
            let answer = match is_this {
                true => renew_here(&issuer, &authority, to),
                false => lookout
                    .ask(&to, wire::encode(&query), PATIENCE)
                    .and_then(|bytes| wire::decode(&bytes).ok()),
            };
            // If there is no room, it counts as not answered in time.
            inbox.post(Kind::Word, Post::Answered { token, answer: answer.map(Box::new) });
        });
    }

    /// An issuer lets this machine stay for longer, as somebody says. The group has to hear of it.
    pub(super) fn on_renewed(&mut self, renewal: Renewal, out: &mut Vec<Output>) {
        let Some(peers) = &mut self.peers else { return };
        match peers.renew(renewal) {
            Ok(Some(join)) => self.step(Input::Own { join: Box::new(join), token: None }, out),
            Ok(None) => {}
            Err(failure) => eprintln!("croft: the certificate is not renewed: {failure}"),
        }
    }
}

/// Renews the certificate of this machine, if an issuer's key is here.
fn renew_here(issuer: &Path, authority: &PublicKey, me: PublicKey) -> Option<Answer> {
    if !issuer.exists() {
        return None;
    }
    let renewal = Membership::renewal(issuer, authority, me);
    let said = |failure: &Failure| eprintln!("croft: the certificate is not renewed: {failure}");
    Some(Answer::Renewed(Box::new(renewal.inspect_err(said).ok()?)))
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
