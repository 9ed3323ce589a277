//! How the network stands, for whoever does not run it: status has to know who is there, and connections that
//! nobody needs are closed.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{Arc, Weak, mpsc},
    time::Duration,
};

use base::PublicKey;
use tokio::{task::JoinSet, time::timeout};

use crate::discovery::Missing;

use super::{
    Standing, ask,
    hub::{Hub, Slot},
    peer::Peer,
};

/// The most machines that are called at once only to see whether they are there.
const CALLS_MAX: usize = 64;

/// Looks at a network for as long as it is there.
#[derive(Clone)]
pub struct Lookout {
    pub(super) hub: Weak<Hub>,
}

/// Machines that were called and have not answered. At most 64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Away(pub(crate) BTreeSet<PublicKey>);

impl Lookout {
    /// How the network stands, if it is there.
    pub fn standing(&self) -> Option<Standing> {
        self.hub.upgrade()?.standing().ok()
    }

    /// Whether a line with these words was said to people.
    #[cfg(test)]
    pub(crate) fn has_said(&self, words: &str) -> bool {
        let Some(hub) = self.hub.upgrade() else { return false };
        let lines = hub.herald.lines.lock().unwrap();
        lines.iter().any(|line| line.contains(words))
    }

    /// From now on it is told there whom the network can't reach.
    pub(crate) fn report(&self, missing: Missing) {
        if let Some(hub) = self.hub.upgrade() {
            _ = hub.missing.set(missing);
        }
    }

    /// A machine that is known may be there too. If it is not connected, it is called there.
    pub(crate) fn hint(&self, key: &PublicKey, addresses: &[SocketAddr]) {
        let peer = self.hub.upgrade().and_then(|hub| hub.peer(key));
        if let Some(peer) = peer.filter(|peer| peer.is_named() && !peer.is_connected()) {
            peer.hint(addresses);
        }
    }

    /// Asks a machine that is known, and waits so long for its answer. A network that ends meanwhile does not
    /// wait for it.
    pub(crate) fn ask(
        &self,
        to: &PublicKey,
        bytes: Vec<u8>,
        patience: Duration,
    ) -> Option<Vec<u8>> {
        let hub = self.hub.upgrade()?;
        let (peer, inside) = (hub.peer(to)?, Arc::clone(&hub));
        let slot = Slot::take(&hub.asks, hub.limits.asks_max)?;
        let (tell, told) = mpsc::sync_channel(1);
        hub.runtime.spawn(async move {
            let _slot = slot;
            let work = async {
                let link = peer.connected().await;
                let _asking = link.begin_ask();
                ask::ask(&inside, &link.connection, &bytes).await
            };
            if let Ok(Ok(answer)) = timeout(patience, work).await {
                _ = tell.send(answer);
            }
        });
        drop(hub);
        told.recv().ok()
    }

    /// Calls those that are known and not connected, many of them at most, and waits so long for them.
    pub fn call(&self, patience: Duration) -> Away {
        let Some(hub) = self.hub.upgrade() else { return Away::default() };
        let is_silent = |peer: &&Arc<Peer>| peer.is_named() && !peer.is_connected();
        let silent: Vec<Arc<Peer>> =
            hub.peers().values().filter(is_silent).take(CALLS_MAX).cloned().collect();
        let mut away: BTreeSet<PublicKey> = silent.iter().map(|peer| peer.key).collect();
        if away.is_empty() {
            return Away::default();
        }
        let (tell, told) = mpsc::channel();
        hub.runtime.spawn(async move {
            let mut calls = JoinSet::new();
            for peer in silent {
                let tell = tell.clone();
                calls.spawn(async move {
                    if timeout(patience, peer.connected()).await.is_ok() {
                        _ = tell.send(peer.key);
                    }
                });
            }
            drop(tell);
            calls.join_all().await;
        });
        // So that a network that ends meanwhile is not waited for.
        drop(hub);
        for key in told {
            away.remove(&key);
        }
        Away(away)
    }
}
