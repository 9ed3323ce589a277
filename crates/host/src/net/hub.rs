//! What all parts of the network share, and who is let in.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use base::PublicKey;
use quinn::{
    ClientConfig, Connecting, Connection, ConnectionError, Endpoint, Incoming, TransportConfig,
    TransportErrorCode, VarInt,
};
use tokio::{runtime::Handle, time::timeout};

use crate::{Failure, discovery::Missing};

use super::{
    Asker, Lane, Reception, Welcome, ask,
    ask::Pool,
    frame::Stop,
    herald::Herald,
    limits::{GUEST_WINDOW, LINK_ASKS_MAX, Limits, SEND_WINDOW, STREAM_WINDOW},
    link::{self, Close, Link},
    peer::{self, Peer},
    room::Room,
    standing::{Standing, Turned},
    tls,
};

/// TLS alerts, as they come with a connection that fails.
const ALERT_KEY: u64 = 0x100 + 49;
const ALERT_VERSION: u64 = 0x100 + 120;

/// What all parts of the network share.
pub(crate) struct Hub {
    pub(crate) me: PublicKey,
    pub(crate) limits: Limits,
    pub(crate) identity: tls::Identity,
    pub(crate) endpoint: Endpoint,
    pub(crate) transport: Arc<TransportConfig>,
    pub(crate) runtime: Handle,
    pub(crate) reception: Arc<dyn Reception>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) herald: Herald,
    pub(crate) turned: Turned,
    /// Of frames that have come in part, and of those that wait to be sent.
    pub(crate) reading: Room,
    pub(crate) waiting: Arc<Room>,
    /// Connections of machines that are known, of strangers, and handshakes under way.
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) guests: Arc<AtomicUsize>,
    pub(crate) handshakes: Arc<AtomicUsize>,
    /// Requests of ours that are not answered yet.
    pub(crate) asks: Arc<AtomicUsize>,
    /// At most `peers_max`.
    pub(crate) peers: Mutex<BTreeMap<PublicKey, Arc<Peer>>>,
    /// Whoever looks for those that can't be reached.
    pub(crate) missing: OnceLock<Missing>,
}

/// One of a bounded number; it is free again when this is dropped.
pub(crate) struct Slot(Arc<AtomicUsize>);

impl Slot {
    /// Takes one, if fewer than so many are taken.
    pub(crate) fn take(count: &Arc<AtomicUsize>, count_max: usize) -> Option<Slot> {
        let take = |taken: usize| (taken < count_max).then_some(taken + 1);
        let is_taken = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        is_taken.then(|| Slot(Arc::clone(count)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How all connections are run, until it is known who is there.
pub(crate) fn transport(silence: Duration) -> TransportConfig {
    let mut config = TransportConfig::default();
    let silence = VarInt::from_u64(silence.as_millis() as u64).unwrap_or(VarInt::MAX);
    config
        .max_idle_timeout(Some(silence.into()))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(GUEST_WINDOW))
        .send_window(SEND_WINDOW)
        .datagram_receive_buffer_size(None)
        // On a local network an answer that has not come after so long will not come.
        .initial_rtt(Duration::from_millis(100));
    config
}

impl Hub {
    pub(crate) fn peers(&self) -> MutexGuard<'_, BTreeMap<PublicKey, Arc<Peer>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn peer(&self, key: &PublicKey) -> Option<Arc<Peer>> {
        self.peers().get(key).cloned()
    }

    /// The peer with this key, a new one if need be and if there is room.
    pub(crate) fn peer_or_new(self: &Arc<Hub>, key: &PublicKey) -> Option<Arc<Peer>> {
        let mut peers = self.peers();
        if let Some(peer) = peers.get(key) {
            return Some(Arc::clone(peer));
        }
        if peers.len() >= self.limits.peers_max {
            return None;
        }
        let peer = Arc::new(Peer::new(*key, &self.limits, &self.waiting));
        peers.insert(*key, Arc::clone(&peer));
        let call = peer::call(Arc::clone(self), Arc::clone(&peer));
        peer.set_caller(self.runtime.spawn(call).abort_handle());
        Some(peer)
    }

    pub(crate) fn is_known(&self, key: &PublicKey) -> bool {
        self.reception.welcome(key) == Welcome::Known
    }

    /// Begins a connection.
    pub(crate) fn dial(
        &self,
        address: SocketAddr,
        wanted: Option<PublicKey>,
        protocol: &[u8],
    ) -> Result<Connecting, String> {
        let config = self.identity.client(wanted, protocol).map_err(|error| error.to_string())?;
        let mut config = ClientConfig::new(Arc::new(config));
        config.transport_config(Arc::clone(&self.transport));
        // The name is never looked at: a machine is its key.
        let connecting = self.endpoint.connect_with(config, address, "croft");
        connecting.map_err(|error| format!("{error}; look at the address"))
    }

    /// Uses a connection with a machine that is known.
    pub(crate) fn link(
        self: &Arc<Hub>,
        connection: Connection,
        peer: Arc<Peer>,
        begun_by: PublicKey,
    ) {
        let slot = Slot::take(&self.connections, self.limits.connections_max);
        let link = Arc::new(Link::new(connection, begun_by));
        let Some(slot) = slot.filter(|_| peer.join(&link, &self.me)) else {
            self.turned.crowded.add(1);
            self.herald.say(&format!("{:?} has too many connections, or all have", peer.key));
            return link.close(Close::Crowded, "too many connections");
        };
        let connection = &link.connection;
        // The lanes, and the farewell.
        connection.set_max_concurrent_uni_streams(VarInt::from_u32(4));
        connection.set_max_concurrent_bi_streams(VarInt::from_u32(LINK_ASKS_MAX));
        connection.set_receive_window(VarInt::from_u32(SEND_WINDOW as u32));
        let key = peer.key;
        tokio::spawn(link::run(Arc::clone(self), peer, link, slot));
        self.reception.on_met(&key);
    }

    /// A connection is over.
    pub(crate) fn left(&self, peer: &Arc<Peer>, link: &Arc<Link>, in_peace: bool) {
        peer.leave(link, in_peace);
        let mut peers = self.peers();
        if !peer.is_named() && peer.links().is_empty() {
            // There may be a later one with the same key.
            if peers.get(&peer.key).is_some_and(|present| Arc::ptr_eq(present, peer)) {
                peers.remove(&peer.key);
            }
            peer.forget();
        }
    }

    /// Throws somebody out for what it sent.
    pub(crate) fn expel(&self, key: &PublicKey, connection: &Connection, stop: Stop) {
        let what = match stop {
            Stop::Gone => return,
            Stop::Garbage(what) => {
                self.turned.garbage.add(1);
                what
            }
            Stop::Oversized { size, size_max } => {
                self.turned.oversized.add(1);
                format!("{size} bytes at once where at most {size_max} may be")
            }
            Stop::Crowded => {
                self.turned.crowded.add(1);
                self.herald
                    .say(&format!("{key:?} was cut off: all together send too much at once"));
                return connection.close(Close::Crowded.code(), b"too much comes at once");
            }
        };
        self.herald.say(&format!("{key:?} was cut off, it sent garbage: {what}"));
        connection.close(Close::Garbage.code(), what.as_bytes());
    }

    /// There is no room for a frame: somebody does not take what it is sent. Said from time to time.
    pub(crate) fn complain(&self, peer: &Peer, lane: Lane) {
        let (frames, bytes) = peer.outboxes[lane.index()].waiting();
        if frames > 0 && peer.is_connected() && peer.may_complain() {
            self.herald.say(&format!(
                "{:?} takes what it is sent too slowly, or not at all: {bytes} bytes wait on the {} lane, and \
                 more is dropped; look at the wire, and whether it hangs",
                peer.key,
                lane.name()
            ));
        }
    }

    /// Where the network listens.
    pub(crate) fn address(&self) -> Result<SocketAddr, Failure> {
        let address = self.endpoint.local_addr();
        address.map_err(|error| Failure::Unfit(format!("the network's socket is gone: {error}")))
    }

    pub(crate) fn standing(&self) -> Result<Standing, Failure> {
        let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        Ok(Standing {
            address: self.address()?,
            peers: self.peers().values().map(|peer| peer.standing()).collect(),
            connections: load(&self.connections),
            guests: load(&self.guests),
            handshakes: load(&self.handshakes),
            refused: self.turned.standing(),
        })
    }

    /// Why a connection did not come about, or is gone.
    pub(crate) fn explain(&self, error: &ConnectionError) -> String {
        let code = match error {
            ConnectionError::TransportError(error) => u64::from(error.code),
            ConnectionError::ConnectionClosed(close) => u64::from(close.error_code),
            _ => 0,
        };
        match error {
            _ if code == ALERT_VERSION => {
                "it speaks another version; use the same release of croft on all machines".into()
            }
            _ if code == ALERT_KEY => {
                "another machine answers there, with another key; has it moved, or begun anew?"
                    .into()
            }
            ConnectionError::ConnectionClosed(close)
                if close.error_code == TransportErrorCode::CONNECTION_REFUSED =>
            {
                "it takes no calls now: it starts, or stops, or has too many; it is tried again"
                    .into()
            }
            ConnectionError::TimedOut => "it does not react; is it running?".into(),
            error if Close::Unwelcome.is_why(error) => {
                "it does not want this machine; was it sent away, or has its certificate expired?"
                    .into()
            }
            error if Close::Stranger.is_why(error) => {
                "it does not know this machine; has it joined?".into()
            }
            error if Close::Crowded.is_why(error) => {
                "it has too many connections; try again later".into()
            }
            error => format!("{error}; it may be tried again"),
        }
    }

    /// What to say about a connection that is over, if anything.
    pub(crate) fn obituary(&self, key: &PublicKey, error: &ConnectionError) -> Option<String> {
        match error {
            ConnectionError::TransportError(_) => {
                self.turned.garbage.add(1);
                Some(format!("the connection with {key:?} broke: {error}"))
            }
            error if Close::Garbage.is_why(error) => {
                Some(format!("{key:?} says that this machine sends garbage: {error}"))
            }
            error if [Close::Unwelcome, Close::Stranger].iter().any(|why| why.is_why(error)) => {
                Some(format!("lost {key:?}: {}", self.explain(error)))
            }
            _ => None,
        }
    }
}

/// Lets people in, for as long as there is an endpoint.
pub(crate) async fn receive(hub: Arc<Hub>) {
    while let Some(incoming) = hub.endpoint.accept().await {
        let from = incoming.remote_address();
        let full = hub.connections.load(Ordering::Relaxed) >= hub.limits.connections_max
            || hub.endpoint.open_connections() >= hub.limits.open_max;
        let slot = Slot::take(&hub.handshakes, hub.limits.handshakes_max);
        let Some(slot) = slot.filter(|_| !full) else {
            hub.turned.busy.add(1);
            hub.herald.say(&format!("{from} was turned away: too many handshakes or connections"));
            incoming.refuse();
            continue;
        };
        let is_busy = hub.handshakes.load(Ordering::Relaxed) > hub.limits.handshakes_max / 4;
        if is_busy && !incoming.remote_address_validated() && incoming.may_retry() {
            // It comes again, with the proof that it is where it says.
            _ = incoming.retry();
            continue;
        }
        tokio::spawn(greet(Arc::clone(&hub), incoming, slot));
    }
}

/// Shakes hands, and sees who it is.
async fn greet(hub: Arc<Hub>, incoming: Incoming, slot: Slot) {
    let from = incoming.remote_address();
    let connecting = match incoming.accept() {
        Ok(connecting) => connecting,
        Err(error) => return turn_down(&hub, from, &error),
    };
    let connection = match timeout(hub.limits.handshake, connecting).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return turn_down(&hub, from, &error),
        Err(_) => return turn_down(&hub, from, &ConnectionError::TimedOut),
    };
    drop(slot);
    let Some(key) = tls::peer_of(&connection).filter(|key| *key != hub.me) else {
        return turn_out(&hub, &connection, "a caller with our own key, or none");
    };
    let welcome = hub.reception.welcome(&key);
    let is_link = tls::protocol_of(&connection).as_deref() == Some(tls::LINK);
    match welcome {
        Welcome::Expired => {
            let why = "its certificate has expired; it has to join anew, with a new invitation";
            turn_out(&hub, &connection, &format!("{key:?} at {from}: {why}"));
        }
        Welcome::Refused => {
            let why = "it is not welcome, since it was sent away from the cell; if that was a \
                       mistake, it has to join anew, from an empty directory";
            turn_out(&hub, &connection, &format!("{key:?} at {from}: {why}"));
        }
        // Its own end, not the caller's fault: nothing to say.
        Welcome::Early => connection.close(Close::Over.code(), b"not yet"),
        Welcome::Known if is_link => match hub.peer_or_new(&key) {
            Some(peer) => hub.link(connection, peer, key),
            None => crowd(&hub, &connection, &format!("{key:?} at {from}: too many machines")),
        },
        Welcome::Known | Welcome::Stranger => {
            let from = Asker { key, is_known: welcome == Welcome::Known };
            match Slot::take(&hub.guests, hub.limits.guests_max) {
                Some(slot) => {
                    tokio::spawn(ask::host(hub, connection, from, slot));
                }
                None => crowd(&hub, &connection, &format!("{key:?}: too many strangers")),
            }
        }
    }
}

fn turn_down(hub: &Hub, from: SocketAddr, error: &ConnectionError) {
    if *error == ConnectionError::LocallyClosed {
        // We are about to stop.
        return;
    }
    let is_version = matches!(
        error,
        ConnectionError::TransportError(error) if u64::from(error.code) == ALERT_VERSION
    );
    let count = if is_version { &hub.turned.version } else { &hub.turned.handshake };
    count.add(1);
    hub.herald.say(&format!("{from} was not let in: {}", hub.explain(error)));
}

fn turn_out(hub: &Hub, connection: &Connection, who: &str) {
    hub.turned.unwelcome.add(1);
    hub.herald.say(&format!("turned away {who}"));
    connection.close(Close::Unwelcome.code(), b"not welcome");
}

fn crowd(hub: &Hub, connection: &Connection, who: &str) {
    hub.turned.crowded.add(1);
    hub.herald.say(&format!("turned away {who}"));
    connection.close(Close::Crowded.code(), b"too many");
}
