//! One connection with a machine that is known: its lanes, its requests, and how it ends.
//!
//! A connection that is no longer needed ends in peace, so that no frame is lost between two machines that
//! are both well. Who wants to part finishes its lanes, waits until all of it has arrived and until its own
//! requests are answered, and then opens a last stream that says farewell. The other does the same. Whoever
//! has said and heard it, and read every lane to its end, closes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base::PublicKey;
use quinn::{Connection, ConnectionError, RecvStream, SendStream, VarInt};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{Instant, interval, timeout},
};

use super::{
    Lane, ask, frame,
    frame::Stop,
    hub::{Hub, Slot},
    peer::Peer,
};

/// The first byte of the stream that says farewell; no lane has it.
const FAREWELL_MARK: u8 = 0xff;
/// How often it is looked whether a connection is idle or stalled, while it is neither.
const LOOK: Duration = Duration::from_millis(500);

/// Why a connection is closed, as the other end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Close {
    /// In peace.
    Farewell = 1,
    /// The program ends.
    Over = 2,
    /// Not welcome.
    Unwelcome = 3,
    /// Enough connections of this machine, or of strangers.
    Crowded = 4,
    /// What came made no sense, or was too large.
    Garbage = 5,
    /// It did not confirm what was sent.
    Stalled = 6,
    /// A stranger stayed too long.
    Stranger = 7,
}

impl Close {
    pub(crate) fn code(self) -> VarInt {
        VarInt::from_u32(self as u32)
    }

    /// Whether the other end has closed a connection for this.
    pub(crate) fn is_why(self, error: &ConnectionError) -> bool {
        matches!(error, ConnectionError::ApplicationClosed(close) if close.error_code == self.code())
    }
}

/// A connection.
pub(crate) struct Link {
    pub(crate) connection: Connection,
    /// Whose call it was.
    pub(crate) begun_by: PublicKey,
    pub(crate) since: Instant,
    parting: watch::Sender<bool>,
    /// Requests of ours that are not answered yet.
    asks: AtomicUsize,
    asks_ended: Notify,
    /// Requests of the other's that are being answered.
    served: AtomicUsize,
    /// Lanes that have come, a bit each.
    lanes_in: AtomicU8,
    /// Frames and requests, in either direction, that have come or gone.
    moves: AtomicU64,
    /// Frames and requests that have gone.
    moves_out: AtomicU64,
    is_farewell_heard: AtomicBool,
    farewell_heard: Notify,
}

impl Link {
    pub(crate) fn new(connection: Connection, begun_by: PublicKey) -> Link {
        Link {
            connection,
            begun_by,
            since: Instant::now(),
            parting: watch::Sender::new(false),
            asks: AtomicUsize::new(0),
            asks_ended: Notify::new(),
            served: AtomicUsize::new(0),
            lanes_in: AtomicU8::new(0),
            moves: AtomicU64::new(0),
            moves_out: AtomicU64::new(0),
            is_farewell_heard: AtomicBool::new(false),
            farewell_heard: Notify::new(),
        }
    }

    /// It is to end in peace.
    pub(crate) fn part(&self) {
        self.parting.send_replace(true);
    }

    pub(crate) fn is_parting(&self) -> bool {
        *self.parting.borrow()
    }

    async fn parting(&self) {
        // The sender is a field of ours, so this ends only when it is true.
        _ = self.parting.subscribe().wait_for(|is_parting| *is_parting).await;
    }

    pub(crate) fn close(&self, why: Close, text: &str) {
        self.connection.close(why.code(), text.as_bytes());
    }

    fn moved_in(&self) {
        self.moves.fetch_add(1, Ordering::Relaxed);
    }

    fn moved_out(&self) {
        self.moves.fetch_add(1, Ordering::Relaxed);
        self.moves_out.fetch_add(1, Ordering::Relaxed);
    }

    /// A request of ours begins; it is over when what is returned is dropped.
    pub(crate) fn begin_ask(self: &Arc<Link>) -> Asking {
        self.asks.fetch_add(1, Ordering::Relaxed);
        self.moved_out();
        Asking(Arc::clone(self))
    }

    /// A request of the other's begins; it is over when what is returned is dropped.
    pub(crate) fn begin_serving(self: &Arc<Link>) -> Serving {
        self.served.fetch_add(1, Ordering::Relaxed);
        Serving(Arc::clone(self))
    }

    async fn asks_over(&self) {
        while self.asks.load(Ordering::Relaxed) > 0 {
            self.asks_ended.notified().await;
        }
    }

    async fn farewell_heard(&self) {
        while !self.is_farewell_heard.load(Ordering::Relaxed) {
            self.farewell_heard.notified().await;
        }
    }
}

/// A request of ours under way.
pub(crate) struct Asking(Arc<Link>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.moved_in();
        if self.0.asks.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.asks_ended.notify_one();
        }
    }
}

/// A request of the other's that is being answered.
pub(crate) struct Serving(Arc<Link>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.moved_in();
        self.0.served.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs a connection until it is over. It is among the peer's already.
pub(crate) async fn run(hub: Arc<Hub>, peer: Arc<Peer>, link: Arc<Link>, slot: Slot) {
    let mut readers = JoinSet::new();
    readers.spawn(listen(Arc::clone(&hub), Arc::clone(&peer), Arc::clone(&link)));
    let mut others = JoinSet::new();
    others.spawn(ask::serve(Arc::clone(&hub), peer.key, Arc::clone(&link)));
    others.spawn(watch_over(Arc::clone(&hub), Arc::clone(&link)));
    let mut writers = JoinSet::new();
    for lane in Lane::ALL {
        writers.spawn(write(Arc::clone(&peer), Arc::clone(&link), lane));
    }
    let parted = async {
        link.parting().await;
        peer.set_aside(&link);
        let farewell = part(&link, &mut writers, &mut readers);
        if timeout(hub.limits.stall, farewell).await.is_ok() {
            link.close(Close::Farewell, "farewell");
        } else {
            link.close(Close::Stalled, "no farewell came");
        }
    };
    let end = tokio::select! {
        end = link.connection.closed() => end,
        () = parted => link.connection.closed().await,
    };
    drop(slot);
    // What has come is still read; then these end by themselves.
    peer.set_aside(&link);
    while writers.join_next().await.is_some() {}
    while readers.join_next().await.is_some() {}
    let in_peace = link.is_parting() || Close::Farewell.is_why(&end);
    if let Some(line) = hub.obituary(&peer.key, &end) {
        hub.herald.say(&line);
    }
    hub.left(&peer, &link, in_peace);
}

/// Says farewell, and waits for the other's.
async fn part(link: &Link, writers: &mut JoinSet<()>, readers: &mut JoinSet<()>) {
    while writers.join_next().await.is_some() {}
    link.asks_over().await;
    if let Ok(mut stream) = link.connection.open_uni().await {
        _ = stream.write_all(&[FAREWELL_MARK]).await;
        _ = stream.finish();
        _ = stream.stopped().await;
    }
    link.farewell_heard().await;
    while readers.join_next().await.is_some() {}
}

/// Sends what waits on one lane. Its stream is opened with the first frame.
async fn write(peer: Arc<Peer>, link: Arc<Link>, lane: Lane) {
    let (outbox, meter) = (&peer.outboxes[lane.index()], &peer.meters[lane.index()]);
    let mut stream: Option<SendStream> = None;
    let gone = loop {
        let bytes = tokio::select! {
            biased;
            () = link.parting() => break false,
            _ = link.connection.closed() => break true,
            bytes = outbox.next() => bytes,
        };
        match send(&link, &mut stream, lane, &bytes).await {
            true => {
                link.moved_out();
                meter.frames_out.add(1);
                meter.bytes_out.add(bytes.len() as u64);
            }
            // Not all of it has gone, so the other end has not read it.
            false => {
                outbox.put_back(bytes);
                break true;
            }
        }
    };
    if let Some(mut stream) = stream.filter(|_| !gone) {
        _ = stream.finish();
        // Until all of it has arrived, or the connection is gone.
        _ = stream.stopped().await;
    }
}

/// Sends one frame. Whether all of it is on its way.
async fn send(link: &Link, stream: &mut Option<SendStream>, lane: Lane, bytes: &[u8]) -> bool {
    if stream.is_none() {
        let Ok(mut new) = link.connection.open_uni().await else { return false };
        _ = new.set_priority(lane.priority());
        if new.write_all(&[lane.mark()]).await.is_err() {
            return false;
        }
        *stream = Some(new);
    }
    match stream {
        Some(stream) => frame::write(stream, bytes).await.is_ok(),
        None => false,
    }
}

/// Reads what comes, until the other end has said farewell and all lanes are read, or the connection is gone.
async fn listen(hub: Arc<Hub>, peer: Arc<Peer>, link: Arc<Link>) {
    let mut lanes = JoinSet::new();
    // Ends with the farewell: that is the last stream that comes.
    while let Ok(stream) = link.connection.accept_uni().await {
        match hear(&hub, &peer, &link, stream, &mut lanes).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(stop) => {
                hub.expel(&peer.key, &link.connection, stop);
                break;
            }
        }
    }
    while lanes.join_next().await.is_some() {}
}

/// Hears a new stream. Whether more may come.
async fn hear(
    hub: &Arc<Hub>,
    peer: &Arc<Peer>,
    link: &Arc<Link>,
    mut stream: RecvStream,
    lanes: &mut JoinSet<()>,
) -> Result<bool, Stop> {
    let mut mark = [0];
    if frame::fill(&mut stream, &mut mark).await? == 0 {
        return Err(Stop::Garbage("a stream without a lane".into()));
    }
    if mark[0] == FAREWELL_MARK {
        link.is_farewell_heard.store(true, Ordering::Relaxed);
        link.farewell_heard.notify_one();
        link.part();
        return Ok(false);
    }
    let Some(lane) = Lane::of_mark(mark[0]) else {
        return Err(Stop::Garbage(format!("a stream of lane {}, which there is not", mark[0])));
    };
    let bit = 1 << lane.index();
    if link.lanes_in.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
        return Err(Stop::Garbage(format!("a second stream of the {} lane", lane.name())));
    }
    lanes.spawn(read(Arc::clone(hub), Arc::clone(peer), Arc::clone(link), lane, stream));
    Ok(true)
}

/// Reads one lane to its end.
async fn read(hub: Arc<Hub>, peer: Arc<Peer>, link: Arc<Link>, lane: Lane, mut stream: RecvStream) {
    let meter = &peer.meters[lane.index()];
    loop {
        match frame::read(&mut stream, hub.limits.lane(lane).frame_bytes_max, &hub.reading).await {
            Ok(Some(bytes)) => {
                link.moved_in();
                meter.frames_in.add(1);
                meter.bytes_in.add(bytes.len() as u64);
                let rest = hub.reception.on_frame(&peer.key, lane, bytes);
                if !rest.is_zero() {
                    // What is sent meanwhile fills the stream's window, and then the sender waits too.
                    _ = timeout(rest, link.connection.closed()).await;
                }
            }
            Ok(None) => return,
            Err(stop) => return hub.expel(&peer.key, &link.connection, stop),
        }
    }
}

/// Ends a connection over which nothing goes, and one whose other end does not confirm what was sent.
async fn watch_over(hub: Arc<Hub>, link: Arc<Link>) {
    let received = || link.connection.stats().udp_rx.datagrams;
    let sent = || link.moves_out.load(Ordering::Relaxed);
    let mut looks = interval(LOOK.min(hub.limits.idle / 2));
    let (mut moves, mut moved_at) = (0, Instant::now());
    let (mut rx, mut tx) = (received(), sent());
    let mut unheard: Option<Instant> = None;
    loop {
        looks.tick().await;
        let now = link.moves.load(Ordering::Relaxed);
        let is_busy =
            [&link.asks, &link.served].iter().any(|count| count.load(Ordering::Relaxed) > 0);
        if now != moves || is_busy {
            (moves, moved_at) = (now, Instant::now());
        } else if moved_at.elapsed() >= hub.limits.idle && unheard.is_none() {
            return link.part();
        }
        // Whatever comes confirms that somebody is there.
        if received() != rx {
            (rx, tx, unheard) = (received(), sent(), None);
        } else if sent() != tx && unheard.is_none() {
            unheard = Some(Instant::now());
        }
        if unheard.is_some_and(|since| since.elapsed() >= hub.limits.stall) {
            return link.close(Close::Stalled, "what was sent is not confirmed");
        }
    }
}
