//! Machines for tests: what they hear, and how long is waited for it.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use base::{PublicKey, SecretKey};

use super::super::{Asker, Lane, Limits, Network, Reception, Settings, Welcome};

/// Longer than anything takes that happens at all, on a computer that has much else to do.
pub(super) const LONG: Duration = Duration::from_secs(30);

pub(super) fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

/// Limits for tests: short pauses, and patience with a busy computer.
pub(super) fn quick() -> Limits {
    Limits {
        handshake: Duration::from_secs(20),
        silence: Duration::from_secs(30),
        stall: Duration::from_secs(20),
        pause: (Duration::from_millis(5), Duration::from_millis(50)),
        ..Limits::default()
    }
}

/// Waits until something is so.
pub(super) fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "it never came to be");
        thread::park_timeout(Duration::from_millis(1));
    }
}

/// What a machine has heard.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) frames: Vec<(PublicKey, Lane, Vec<u8>)>,
    pub(super) asks: usize,
    /// Requests of which it was seen that nobody waited for them any more.
    pub(super) deserted: usize,
    pub(super) lines: Vec<String>,
    /// Whoever asks to be made to wait need not, nor is the network's thread frozen by a frame.
    is_open: bool,
}

/// Listens for a machine. Everybody is known unless it is said otherwise.
#[derive(Default)]
pub(super) struct Ears {
    heard: Mutex<Heard>,
    changed: Condvar,
    welcomes: Mutex<BTreeMap<PublicKey, Welcome>>,
    others: Mutex<Option<Welcome>>,
}

impl Ears {
    pub(super) fn new() -> Arc<Ears> {
        Arc::default()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Heard) -> T) -> T {
        let changed = change(&mut self.heard.lock().unwrap());
        self.changed.notify_all();
        changed
    }

    fn wait_until_open(&self) {
        let heard = self.heard.lock().unwrap();
        drop(self.changed.wait_while(heard, |heard| !heard.is_open).unwrap());
    }
}

impl Reception for Ears {
    fn welcome(&self, key: &PublicKey) -> Welcome {
        let other = self.others.lock().unwrap().unwrap_or(Welcome::Known);
        self.welcomes.lock().unwrap().get(key).copied().unwrap_or(other)
    }

    fn on_frame(&self, from: &PublicKey, lane: Lane, bytes: Vec<u8>) -> Duration {
        let freezes = bytes == b"freeze";
        self.change(|heard| heard.frames.push((*from, lane, bytes)));
        if freezes {
            self.wait_until_open();
        }
        Duration::ZERO
    }

    fn on_ask(&self, from: &Asker, bytes: Vec<u8>, is_awaited: &dyn Fn() -> bool) -> Vec<u8> {
        self.change(|heard| heard.asks += 1);
        match &bytes[..] {
            b"block" => self.wait_until_open(),
            b"dawdle" => {
                until(|| !is_awaited());
                self.change(|heard| heard.deserted += 1);
            }
            b"panic" => panic!("as it was asked to"),
            _ => {}
        }
        let who: &[u8] = if from.is_known { b"known: " } else { b"stranger: " };
        [who, &bytes].concat()
    }
}

/// A machine with a network.
pub(super) struct Machine {
    pub(super) network: Network,
    pub(super) key: PublicKey,
    pub(super) limits: Limits,
    ears: Arc<Ears>,
}

impl Machine {
    pub(super) fn start(seed: u8) -> Machine {
        Machine::start_with(seed, quick())
    }

    pub(super) fn start_with(seed: u8, limits: Limits) -> Machine {
        Machine::start_at(seed, "127.0.0.1:0".parse().unwrap(), limits)
    }

    pub(super) fn start_at(seed: u8, bind: SocketAddr, limits: Limits) -> Machine {
        let ears = Ears::new();
        let settings = Settings { key: key(seed), bind, limits: limits.clone() };
        let (reception, scribe) = (Arc::clone(&ears), Arc::clone(&ears));
        let say = move |line: &str| scribe.change(|heard| heard.lines.push(line.to_owned()));
        let network = Network::start_with(settings, reception, say).unwrap();
        Machine { network, key: key(seed).public(), limits, ears }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.network.address().unwrap()
    }

    pub(super) fn knows(&self, other: &Machine) {
        assert!(self.network.know(&other.key, &[other.address()]));
    }

    pub(super) fn welcomes(&self, other: &Machine, welcome: Welcome) {
        self.ears.welcomes.lock().unwrap().insert(other.key, welcome);
    }

    pub(super) fn welcomes_key(&self, key: &PublicKey, welcome: Welcome) {
        self.ears.welcomes.lock().unwrap().insert(*key, welcome);
    }

    /// What all others are, of whom nothing else is said.
    pub(super) fn welcomes_others(&self, welcome: Welcome) {
        *self.ears.others.lock().unwrap() = Some(welcome);
    }

    /// Looks at what it has heard.
    pub(super) fn heard<T>(&self, look: impl FnOnce(&Heard) -> T) -> T {
        look(&self.ears.heard.lock().unwrap())
    }

    /// Waits until it has heard something.
    pub(super) fn hears(&self, mut has: impl FnMut(&Heard) -> bool) {
        let heard = self.ears.heard.lock().unwrap();
        let (heard, waited) =
            self.ears.changed.wait_timeout_while(heard, LONG, |heard| !has(heard)).unwrap();
        let (frames, lines) = (heard.frames.len(), &heard.lines);
        assert!(!waited.timed_out(), "heard {frames} frames and {lines:?}");
    }

    /// Ends as if it had lost its power.
    pub(super) fn vanish(self) {
        self.network.vanish();
    }

    /// Lets everything go on that was made to wait.
    pub(super) fn unblock(&self) {
        self.ears.change(|heard| heard.is_open = true);
    }
}
