//! One machine that is known: what waits for it, where it may be, and how it is called.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base::PublicKey;
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::{Instant, sleep_until, timeout},
};

use super::{
    Lane,
    backoff::Backoff,
    hub::Hub,
    limits::{ADDRESSES_MAX, LINKS_MAX, Limits},
    link::Link,
    outbox::Outbox,
    room::Room,
    standing::{Key, LaneStanding, Meter, PeerStanding},
    tls,
};

/// A machine that is known.
pub(crate) struct Peer {
    pub(crate) key: PublicKey,
    pub(crate) outboxes: [Outbox; 3],
    pub(crate) meters: [Meter; 3],
    /// At most [`ADDRESSES_MAX`].
    addresses: Mutex<Vec<SocketAddr>>,
    /// Where it may be too, as somebody says who need not be believed; the latest first. At most [`ADDRESSES_MAX`].
    hints: Mutex<Vec<SocketAddr>>,
    /// Whether somebody named it, or it only came by itself and is forgotten when it goes.
    is_named: AtomicBool,
    /// Requests of ours that wait for a connection.
    askers: AtomicUsize,
    /// There is something to send, or other addresses.
    stir: Notify,
    /// The connection in use.
    link: watch::Sender<Option<Arc<Link>>>,
    /// All connections that are not over. At most [`LINKS_MAX`].
    links: Mutex<Vec<Arc<Link>>>,
    /// The last connection ended in peace, so the next call need not wait.
    is_in_peace: AtomicBool,
    /// Who calls it.
    caller: Mutex<Option<AbortHandle>>,
    /// When it was last said that it does not take what it is sent.
    complained_at: Mutex<Option<Instant>>,
}

/// How often it is said of a machine that it does not take what it is sent.
const COMPLAINTS: Duration = Duration::from_secs(60);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peer {
    pub(crate) fn new(key: PublicKey, limits: &Limits, room: &Arc<Room>) -> Peer {
        Peer {
            key,
            outboxes: limits.lanes.map(|lane| Outbox::new(lane, Arc::clone(room))),
            meters: Default::default(),
            addresses: Mutex::default(),
            hints: Mutex::default(),
            is_named: AtomicBool::new(false),
            askers: AtomicUsize::new(0),
            stir: Notify::new(),
            link: watch::Sender::new(None),
            links: Mutex::default(),
            is_in_peace: AtomicBool::new(true),
            caller: Mutex::default(),
            complained_at: Mutex::default(),
        }
    }

    /// Where it may be from now on.
    pub(crate) fn name(&self, addresses: &[SocketAddr]) {
        let some = addresses.iter().take(ADDRESSES_MAX);
        *lock(&self.addresses) = some.copied().collect();
        self.is_named.store(true, Ordering::Relaxed);
        self.is_in_peace.store(true, Ordering::Relaxed);
        self.stir.notify_one();
    }

    /// Where it may be too. It is called there soon, if there is a reason to call it.
    pub(crate) fn hint(&self, addresses: &[SocketAddr]) {
        let mut hints = lock(&self.hints);
        let old = std::mem::take(&mut *hints);
        hints.extend(addresses.iter().copied());
        hints.extend(old.into_iter().filter(|address| !addresses.contains(address)));
        hints.truncate(ADDRESSES_MAX);
        drop(hints);
        self.is_in_peace.store(true, Ordering::Relaxed);
        self.stir.notify_one();
    }

    /// Where to call it in this turn. Every second call goes where it was said to be, if there are hints.
    fn address(&self, turn: usize) -> Option<SocketAddr> {
        let (addresses, hints) = (lock(&self.addresses), lock(&self.hints));
        let nth = |list: &[SocketAddr], index: usize| list.get(index % list.len().max(1)).copied();
        match hints.is_empty() {
            true => nth(&addresses, turn),
            false if turn.is_multiple_of(2) => nth(&hints, turn / 2),
            false => nth(&addresses, turn / 2),
        }
    }

    pub(crate) fn is_named(&self) -> bool {
        self.is_named.load(Ordering::Relaxed)
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.link.borrow().is_some()
    }

    /// Puts a frame in its outbox, if there is room.
    pub(crate) fn send(&self, lane: Lane, frame: Vec<u8>) -> bool {
        let is_taken = self.outboxes[lane.index()].put(frame);
        if is_taken && self.link.borrow().is_none() {
            self.stir.notify_one();
        }
        is_taken
    }

    /// Whether it may be said now that it does not take what it is sent.
    pub(crate) fn may_complain(&self) -> bool {
        let mut complained_at = lock(&self.complained_at);
        let is_time = complained_at.is_none_or(|at| at.elapsed() >= COMPLAINTS);
        if is_time {
            *complained_at = Some(Instant::now());
        }
        is_time
    }

    /// The connection in use, as soon as there is one.
    pub(crate) async fn connected(&self) -> Arc<Link> {
        let _waiting = Waiting::new(&self.askers);
        self.stir.notify_one();
        let mut link = self.link.subscribe();
        loop {
            let current = link.borrow_and_update().clone();
            match current {
                Some(link) => return link,
                // The sender is a field of ours, so there will be a change.
                None => _ = link.changed().await,
            }
        }
    }

    pub(crate) fn links(&self) -> Vec<Arc<Link>> {
        lock(&self.links).clone()
    }

    /// Takes a connection up, unless there are too many. Of two that both sides have begun at once the one
    /// stays that the smaller key has begun; of two by one side the later, since it knows why.
    pub(crate) fn join(&self, new: &Arc<Link>, me: &PublicKey) -> bool {
        let mut links = lock(&self.links);
        if links.len() >= LINKS_MAX {
            return false;
        }
        links.push(Arc::clone(new));
        let smaller = *me.min(&self.key);
        self.link.send_modify(|current| {
            let stays = current.as_ref().is_some_and(|old| {
                old.begun_by != new.begun_by && old.begun_by == smaller && !old.is_parting()
            });
            let other =
                if stays { Some(Arc::clone(new)) } else { current.replace(Arc::clone(new)) };
            if let Some(other) = other {
                other.part();
            }
        });
        true
    }

    /// A connection is not to be used for anything new.
    pub(crate) fn set_aside(&self, link: &Arc<Link>) {
        let is_this = |current: &Option<Arc<Link>>| {
            current.as_ref().is_some_and(|current| Arc::ptr_eq(current, link))
        };
        self.link.send_if_modified(|current| {
            let is_current = is_this(current);
            if is_current {
                *current = None;
            }
            is_current
        });
    }

    /// A connection is over.
    pub(crate) fn leave(&self, link: &Arc<Link>, in_peace: bool) {
        self.set_aside(link);
        lock(&self.links).retain(|other| !Arc::ptr_eq(other, link));
        self.is_in_peace.store(in_peace, Ordering::Relaxed);
        self.stir.notify_one();
    }

    /// Ends everything with it.
    pub(crate) fn forget(&self) {
        if let Some(caller) = lock(&self.caller).take() {
            caller.abort();
        }
    }

    pub(crate) fn set_caller(&self, caller: AbortHandle) {
        if let Some(old) = lock(&self.caller).replace(caller) {
            old.abort();
        }
    }

    /// Whether it should be called: there is no connection, and something that wants one.
    fn is_wanted(&self) -> bool {
        let has_frames = || self.outboxes.iter().any(|outbox| outbox.waiting().0 > 0);
        let has_askers = || self.askers.load(Ordering::Relaxed) > 0;
        self.link.borrow().is_none()
            && !lock(&self.addresses).is_empty()
            && (has_frames() || has_askers())
    }

    async fn wanted(&self) {
        while !self.is_wanted() {
            self.stir.notified().await;
        }
    }

    fn drop_frames(&self) {
        for (outbox, meter) in self.outboxes.iter().zip(&self.meters) {
            meter.frames_dropped.add(outbox.clear() as u64);
        }
    }

    pub(crate) fn standing(&self) -> PeerStanding {
        let lanes = Lane::ALL.map(|lane| {
            let meter = &self.meters[lane.index()];
            let (waiting, waiting_bytes) = self.outboxes[lane.index()].waiting();
            LaneStanding {
                lane,
                frames_in: meter.frames_in.get(),
                bytes_in: meter.bytes_in.get(),
                frames_out: meter.frames_out.get(),
                bytes_out: meter.bytes_out.get(),
                frames_dropped: meter.frames_dropped.get(),
                waiting,
                waiting_bytes,
            }
        });
        let link = self.link.borrow().clone();
        PeerStanding {
            key: Key(self.key),
            addresses: lock(&self.addresses).clone(),
            connected_s: link.map(|link| link.since.elapsed().as_secs_f64()),
            connections: lock(&self.links).len(),
            lanes: lanes.to_vec(),
        }
    }
}

/// Counted as long as it lives.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn new(count: &AtomicUsize) -> Waiting<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Calls a peer whenever something waits for it and there is no connection.
pub(crate) async fn call(hub: Arc<Hub>, peer: Arc<Peer>) {
    let mut backoff = Backoff::new(&hub.me, &peer.key, hub.limits.pause);
    let mut not_before = Instant::now();
    let mut failing: Option<Instant> = None;
    let mut turn = 0;
    // What was said last, so that it is said once.
    let mut said = String::new();
    loop {
        peer.wanted().await;
        if peer.is_in_peace.swap(false, Ordering::Relaxed) {
            (not_before, failing) = (Instant::now(), None);
            backoff.reset();
        }
        if Instant::now() < not_before {
            // Who is named anew, or comes by itself, need not be waited for.
            tokio::select! {
                () = sleep_until(not_before) => {}
                () = peer.stir.notified() => continue,
            }
        }
        let address = peer.address(turn);
        turn += 1;
        let Some(address) = address else { continue };
        // Also if it is reached: it may throw us out at once.
        not_before = Instant::now() + backoff.pause();
        match dial(&hub, &peer, address).await {
            Ok(connection) => {
                failing = None;
                said.clear();
                hub.link(connection, Arc::clone(&peer), hub.me);
            }
            Err(why) => {
                let line = format!("can't reach {:?} at {address}: {why}", peer.key);
                if line != said {
                    hub.herald.say(&line);
                    said = line;
                }
                let since = *failing.get_or_insert_with(Instant::now);
                if since.elapsed() >= hub.limits.patience {
                    peer.drop_frames();
                }
                if let Some(missing) = hub.missing.get() {
                    missing.tell(&peer.key);
                }
            }
        }
    }
}

async fn dial(hub: &Hub, peer: &Peer, address: SocketAddr) -> Result<quinn::Connection, String> {
    let connecting = hub.dial(address, Some(peer.key), tls::LINK)?;
    match timeout(hub.limits.handshake, connecting).await {
        Ok(Ok(connection)) if hub.is_known(&peer.key) => Ok(connection),
        Ok(Ok(_)) => Err("it is no longer welcome here; its certificate may have expired".into()),
        Ok(Err(error)) => Err(hub.explain(&error)),
        Err(_) => Err("nobody answers there; is it running, and is the way open for UDP?".into()),
    }
}
