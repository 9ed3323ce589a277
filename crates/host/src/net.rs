//! The network: one connection with each machine, which proves the machine's key and carries everything.
//!
//! Reading order: `lane` and `limits` say what there is, `graph` why nothing overflows; `tls` who is at the other end; `frame` and `outbox`
//! what goes over a stream and what waits for it; `link` is one connection, `peer` one machine and how it is
//! called, `ask` requests and answers; `hub` has what they share, and lets people in; `lookout` shows who is there.
//!
//! A frame arrives once or not at all, and those of one lane in order, as long as one connection holds. When
//! it breaks, what was on its way is lost: whoever says something that matters says it until it is answered.
//! A connection that ends because it is not needed loses nothing.

mod ask;
mod backoff;
mod frame;
mod graph;
mod herald;
mod hub;
mod lane;
mod limits;
mod link;
mod lookout;
mod outbox;
mod peer;
mod room;
mod standing;
mod tls;

use std::{
    net::{SocketAddr, UdpSocket},
    sync::{Arc, Mutex, OnceLock, atomic::AtomicUsize, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use base::{Digest, Domain, Hasher, PublicKey, SecretKey};
use quinn::{Endpoint, EndpointConfig, ServerConfig, TokioRuntime};
use quinn_proto::HashedConnectionIdGenerator;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    time::timeout,
};

use crate::Failure;

pub use graph::graph;
pub use lane::Lane;
pub use limits::{LaneLimits, Limits};
pub use lookout::{Away, Lookout};
pub use standing::{Key, LaneStanding, PeerStanding, Refusals, Standing};

use hub::{Hub, Slot};
use limits::KNOCK_BYTES_MAX;
use room::Room;

/// From the machine's key, so that after a start anew it can still tell others that an old connection is gone.
const RESET: Domain = Domain::new("resets of connections v1");
const CONNECTIONS: Domain = Domain::new("numbers of connections v1");
/// What is asked of the kernel for datagrams that wait. It may give less.
const SOCKET_BUFFER: usize = 2 << 20;
/// How long the last words may take.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How a network is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What this machine is known by.
    pub key: SecretKey,
    /// Where it listens. Port 0 is any that is free.
    pub bind: SocketAddr,
    /// How much of everything there may be.
    pub limits: Limits,
}

/// What a machine is that has shown its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Welcome {
    /// One of us: it may send frames and ask.
    Known,
    /// It may ask once, little; to join, say.
    Stranger,
    /// It was one of us, and its certificate has expired: it is turned away.
    Expired,
    /// It was sent away from the cell: it is turned away.
    Refused,
    /// Nobody is let in before this machine has joined: it may call again.
    Early,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The key that it has shown.
    pub key: PublicKey,
    /// Whether it was known when it asked; else a stranger.
    pub is_known: bool,
}

/// What the network asks of whoever runs it.
pub trait Reception: Send + Sync + 'static {
    /// What a machine is that has shown its key. Called on the network's own thread, so it must be quick.
    fn welcome(&self, key: &PublicKey) -> Welcome;
    /// There is a connection with a machine that is known. Called on the network's own thread, so it must be quick.
    fn on_met(&self, _key: &PublicKey) {}
    /// A frame has come. Called on the network's own thread, so it must be quick, and drop what it has no
    /// room for. For how long nothing more is to be read of this lane.
    fn on_frame(&self, from: &PublicKey, lane: Lane, bytes: Vec<u8>) -> Duration;
    /// For how long a request is not to be heard: whoever asks has used up what it may. It waits.
    fn rest(&self, _: &Asker) -> Duration {
        Duration::ZERO
    }
    /// Answers a request. Called on one of few threads that are there for it. Whether somebody still waits for the
    /// answer can be asked at any time.
    fn on_ask(&self, from: &Asker, bytes: Vec<u8>, is_awaited: &dyn Fn() -> bool) -> Vec<u8>;
}

/// The network of one machine. It ends when this is dropped.
pub struct Network {
    hub: Arc<Hub>,
    /// Ends the network's thread when dropped; without last words if it is used.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    pool: Vec<JoinHandle<()>>,
}

impl Network {
    /// Begins to listen. Lines for people go to standard error.
    pub fn start(settings: Settings, reception: Arc<dyn Reception>) -> Result<Network, Failure> {
        Network::start_with(settings, reception, |line| eprintln!("croft: {line}"))
    }

    pub(crate) fn start_with(
        settings: Settings,
        reception: Arc<dyn Reception>,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Network, Failure> {
        let Settings { key, bind, limits } = settings;
        let limits = graph::limited(limits);
        let unfit = |error: &dyn std::fmt::Display| {
            let what = format!("can't listen at {bind}: {error}; is another croft there already?");
            Failure::Unfit(what)
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| unfit(&error))?;
        let identity = tls::Identity::new(&key)?;
        let transport = Arc::new(hub::transport(limits.silence));
        let endpoint = {
            let _inside = runtime.enter();
            let socket = open(bind).map_err(|error| unfit(&error))?;
            let knocks_max = limits.knocks_max();
            let mut config = ServerConfig::with_crypto(Arc::new(identity.server()?));
            config
                .transport_config(Arc::clone(&transport))
                .max_incoming(knocks_max)
                .incoming_buffer_size(KNOCK_BYTES_MAX)
                .incoming_buffer_size_total(knocks_max as u64 * KNOCK_BYTES_MAX)
                .migration(false);
            let endpoint =
                Endpoint::new(endpoint_config(&key), Some(config), socket, Arc::new(TokioRuntime));
            endpoint.map_err(|error| unfit(&error))?
        };
        let (pool, threads) = ask::Pool::start(limits.queries(), &reception);
        let count = || Arc::new(AtomicUsize::new(0));
        let hub = Arc::new(Hub {
            me: key.public(),
            reading: Room::new(limits.reading_bytes_max),
            waiting: Arc::new(Room::new(limits.outboxes_bytes_max)),
            limits,
            identity,
            endpoint,
            transport,
            runtime: runtime.handle().clone(),
            reception,
            pool,
            herald: herald::Herald::new(say),
            turned: Default::default(),
            connections: count(),
            guests: count(),
            handshakes: count(),
            asks: count(),
            peers: Mutex::default(),
            missing: OnceLock::new(),
        });
        let (stop, stopped) = oneshot::channel();
        let inside = Arc::clone(&hub);
        let thread = thread::Builder::new().name("net".into());
        let thread = thread.spawn(move || run(runtime, inside, stopped));
        let thread = thread.map_err(|error| unfit(&error))?;
        Ok(Network { hub, stop: Some(stop), thread: Some(thread), pool: threads })
    }

    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr, Failure> {
        self.hub.address()
    }

    /// Where a machine may be, in place of what was said before. It is called when something is to be sent
    /// to it. False if there are too many machines; at most 8 addresses are kept.
    pub fn know(&self, peer: &PublicKey, addresses: &[SocketAddr]) -> bool {
        if *peer == self.hub.me {
            return false;
        }
        let peer = self.hub.peer_or_new(peer);
        peer.is_some_and(|peer| {
            peer.name(addresses);
            true
        })
    }

    /// Forgets a machine, with all that waits for it.
    pub fn forget(&self, peer: &PublicKey) {
        let Some(peer) = self.hub.peers().remove(peer) else { return };
        peer.forget();
        for link in peer.links() {
            link.close(link::Close::Over, "forgotten");
        }
    }

    /// Whether there is a connection with a machine.
    pub fn is_connected(&self, to: &PublicKey) -> bool {
        self.hub.peer(to).is_some_and(|peer| peer.is_connected())
    }

    /// All with whom there is a connection.
    pub fn connected(&self) -> Vec<PublicKey> {
        let peers = self.hub.peers();
        let connected = peers.values().filter(|peer| peer.is_connected());
        connected.map(|peer| peer.key).collect()
    }

    /// Has a frame sent, without waiting. False if there is no room for it, or nobody with this key is known.
    pub fn send(&self, to: &PublicKey, lane: Lane, bytes: Vec<u8>) -> bool {
        let Some(peer) = self.hub.peer(to) else { return false };
        let is_taken = peer.send(lane, bytes);
        if !is_taken {
            self.hub.complain(&peer, lane);
        }
        is_taken
    }

    /// Asks a machine that is known and waits for its answer. No longer than this, and than `silence`.
    pub fn ask(
        &self,
        to: &PublicKey,
        bytes: Vec<u8>,
        patience: Duration,
    ) -> Result<Vec<u8>, Failure> {
        let who = format!("{to:?}");
        let Some(peer) = self.hub.peer(to) else {
            let what = "nobody with this key is known here".to_owned();
            return Err(Failure::Peer { who, what });
        };
        let hub = Arc::clone(&self.hub);
        self.wait(who, bytes.len(), patience, async move {
            let link = peer.connected().await;
            let _asking = link.begin_ask();
            ask::ask(&hub, &link.connection, &bytes).await
        })
    }

    /// Asks whoever is at an address, once, and says who that was. What it answers is to be judged by its key.
    pub fn ask_at(
        &self,
        address: SocketAddr,
        bytes: Vec<u8>,
        patience: Duration,
    ) -> Result<(PublicKey, Vec<u8>), Failure> {
        let hub = Arc::clone(&self.hub);
        self.wait(address.to_string(), bytes.len(), patience, async move {
            let connecting = hub.dial(address, None, tls::ASK)?;
            let connection = match timeout(hub.limits.handshake, connecting).await {
                Ok(Ok(connection)) => connection,
                Ok(Err(error)) => return Err(hub.explain(&error)),
                Err(_) => return Err("nobody answers there; is it running?".into()),
            };
            let key = tls::peer_of(&connection).ok_or("it has shown no key")?;
            let answer = ask::ask(&hub, &connection, &bytes).await?;
            connection.close(link::Close::Farewell.code(), b"thanks");
            Ok((key, answer))
        })
    }

    /// Waits for something on the network's own thread.
    fn wait<T: Send + 'static>(
        &self,
        who: String,
        size: usize,
        patience: Duration,
        work: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> Result<T, Failure> {
        let limits = &self.hub.limits;
        let failure = |what: String| Failure::Peer { who: who.clone(), what };
        if size > limits.ask_bytes_max {
            let what = format!("a request has at most {} bytes", limits.ask_bytes_max);
            return Err(failure(what));
        }
        let Some(slot) = Slot::take(&self.hub.asks, limits.asks_max) else {
            return Err(failure("too many requests wait for answers; try again later".into()));
        };
        let patience = patience.min(limits.silence);
        let (reply, answer) = mpsc::sync_channel(1);
        self.hub.runtime.spawn(async move {
            let _slot = slot;
            let late = |_| Err("no answer came in time; is it running?".into());
            _ = reply.send(timeout(patience, work).await.unwrap_or_else(late));
        });
        match answer.recv() {
            Ok(answer) => answer.map_err(failure),
            // The network's thread is gone.
            Err(_) => Err(Failure::Stopped),
        }
    }

    /// Asks the reception anew who is welcome, and ends the connections of those who no longer are.
    pub fn reconsider(&self) {
        let peers: Vec<_> = self.hub.peers().values().cloned().collect();
        for peer in peers {
            if !peer.links().is_empty() && !self.hub.is_known(&peer.key) {
                self.hub.turned.unwelcome.add(1);
                let why = match self.hub.reception.welcome(&peer.key) {
                    Welcome::Expired => "its certificate has expired",
                    _ => "it is no longer welcome, since it was sent away from the cell",
                };
                self.hub.herald.say(&format!("{:?} loses its connection: {why}", peer.key));
                for link in peer.links() {
                    link.close(link::Close::Unwelcome, "no longer welcome");
                }
            }
        }
    }

    /// Ends as if the machine had lost its power.
    #[cfg(test)]
    fn vanish(mut self) {
        _ = self.stop.take().map(|stop| stop.send(()));
    }

    /// Says a line for people, unless there were too many.
    pub(crate) fn say(&self, line: &str) {
        self.hub.herald.say(line);
    }

    /// How it stands.
    pub fn standing(&self) -> Result<Standing, Failure> {
        self.hub.standing()
    }

    /// For whoever wants to see how it stands later.
    pub(crate) fn lookout(&self) -> Lookout {
        Lookout { hub: Arc::downgrade(&self.hub) }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.hub.pool.stop();
        for thread in self.thread.take().into_iter().chain(self.pool.drain(..)) {
            // A thread that panicked has said why.
            _ = thread.join();
        }
    }
}

/// The network's own thread.
fn run(runtime: Runtime, hub: Arc<Hub>, stopped: oneshot::Receiver<()>) {
    runtime.block_on(async {
        let has_vanished = tokio::select! {
            vanish = stopped => vanish.is_ok(),
            () = hub::receive(Arc::clone(&hub)) => false,
        };
        if has_vanished {
            return;
        }
        for peer in hub.peers().values() {
            peer.forget();
        }
        hub.endpoint.close(link::Close::Over.code(), b"over");
        _ = timeout(LAST_WORDS, hub.endpoint.wait_idle()).await;
    });
}

fn open(bind: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind(bind)?;
    // With less it works too.
    _ = set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
    _ = set_socket_send_buffer_size(&socket, SOCKET_BUFFER);
    Ok(socket)
}

fn endpoint_config(key: &SecretKey) -> EndpointConfig {
    let derive = |domain| {
        let mut hasher = Hasher::new(domain);
        hasher.update(key.as_seed());
        hasher.finish()
    };
    let reset: Digest = derive(RESET);
    let reset = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, reset.as_bytes());
    let mut config = EndpointConfig::new(Arc::new(reset));
    let numbers = derive(CONNECTIONS);
    let numbers = numbers.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(numbers)));
    config
}

#[cfg(test)]
mod tests;
