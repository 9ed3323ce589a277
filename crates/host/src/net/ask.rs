//! Requests: a stream each, whose end is the end of the request, and an answer back.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use base::PublicKey;
use quinn::{Connection, ReadToEndError, RecvStream, SendStream, VarInt};
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{Duration, interval, timeout},
};

use super::{
    Asker, Reception,
    frame::Stop,
    hub::{Hub, Slot},
    link::{Close, Link},
};

/// Why a request is not answered, as the other end is told.
const BUSY: VarInt = VarInt::from_u32(1);
const FAILED: VarInt = VarInt::from_u32(2);

/// How often it is looked whether a stranger who has asked for nothing yet is known by now.
const KNOWN_LOOK: Duration = Duration::from_millis(50);

struct Job {
    from: Asker,
    bytes: Vec<u8>,
    reply: oneshot::Sender<Vec<u8>>,
}

/// The threads that answer requests of others. What waits for them is bounded.
pub(crate) struct Pool {
    /// None when it is over.
    jobs: Mutex<Option<SyncSender<Job>>>,
}

impl Pool {
    pub(crate) fn start(
        threads: usize,
        queue_max: usize,
        reception: &Arc<dyn Reception>,
    ) -> (Pool, Vec<JoinHandle<()>>) {
        let (sender, receiver) = sync_channel(queue_max);
        let receiver = Arc::new(Mutex::new(receiver));
        let start = |_| {
            let (receiver, reception) = (Arc::clone(&receiver), Arc::clone(reception));
            thread::spawn(move || answer_all(&receiver, &*reception))
        };
        let threads = (0..threads.max(1)).map(start).collect();
        (Pool { jobs: Mutex::new(Some(sender)) }, threads)
    }

    /// The answer, when it is there; none if there is no room, or whoever answers has panicked.
    fn answer(&self, from: Asker, bytes: Vec<u8>) -> Option<oneshot::Receiver<Vec<u8>>> {
        let (reply, answer) = oneshot::channel();
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.as_ref()?.try_send(Job { from, bytes, reply }).ok()?;
        Some(answer)
    }

    /// Lets the threads end.
    pub(crate) fn stop(&self) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn answer_all(jobs: &Mutex<Receiver<Job>>, reception: &dyn Reception) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { from, bytes, reply }) = job else { return };
        let is_awaited = || !reply.is_closed();
        if !is_awaited() {
            continue;
        }
        // A thread that panics has said why; the next request may be another.
        let answer = catch_unwind(AssertUnwindSafe(|| reception.on_ask(&from, bytes, &is_awaited)));
        if let Ok(answer) = answer {
            // Whoever asked may have gone.
            _ = reply.send(answer);
        }
    }
}

/// Serves the requests of a machine that is known. How many at a time is a limit of the connection.
pub(crate) async fn serve(hub: Arc<Hub>, key: PublicKey, link: Arc<Link>) {
    let mut asks = JoinSet::new();
    while let Ok((send, recv)) = link.connection.accept_bi().await {
        while asks.try_join_next().is_some() {}
        let (hub, link) = (Arc::clone(&hub), Arc::clone(&link));
        asks.spawn(async move {
            let _serving = link.begin_serving();
            let from = Asker { key, is_known: true };
            if let Err(stop) = answer(&hub, from, send, recv, hub.limits.ask_bytes_max).await {
                hub.expel(&key, &link.connection, stop);
            }
        });
    }
}

/// Serves the one request of somebody who is only here for that.
pub(crate) async fn host(hub: Arc<Hub>, connection: Connection, from: Asker, slot: Slot) {
    let one = async {
        let accepted = tokio::select! {
            accepted = connection.accept_bi() => accepted,
            // It is known by now, and believes that it is heard: it has to call again.
            () = known(&hub, &from) => return,
        };
        let Ok((send, recv)) = accepted else { return };
        let size_max = match from.is_known {
            true => hub.limits.ask_bytes_max,
            false => hub.limits.ask_stranger_bytes_max,
        };
        match answer(&hub, from.clone(), send, recv, size_max).await {
            Ok(()) => {}
            Err(stop) => hub.expel(&from.key, &connection, stop),
        }
    };
    _ = timeout(hub.limits.guest, one).await;
    connection.close(Close::Stranger.code(), b"one request, and that is over");
    drop(slot);
}

/// Waits until a stranger is none any more.
async fn known(hub: &Hub, from: &Asker) {
    let mut looks = interval(KNOWN_LOOK);
    while from.is_known || !hub.is_known(&from.key) {
        looks.tick().await;
    }
}

async fn answer(
    hub: &Hub,
    from: Asker,
    mut send: SendStream,
    mut recv: RecvStream,
    size_max: usize,
) -> Result<(), Stop> {
    let bytes = match recv.read_to_end(size_max).await {
        Ok(bytes) => bytes,
        Err(ReadToEndError::TooLong) => {
            return Err(Stop::Oversized { size: size_max.saturating_add(1), size_max });
        }
        Err(ReadToEndError::Read(_)) => return Ok(()),
    };
    let Some(answer) = hub.pool.answer(from, bytes) else {
        hub.turned.asks.add(1);
        _ = send.reset(BUSY);
        return Ok(());
    };
    let answer = tokio::select! {
        answer = answer => answer,
        // Nobody waits for it any more.
        _ = send.stopped() => return Ok(()),
    };
    match answer {
        Ok(answer) if answer.len() <= hub.limits.answer_bytes_max => {
            if send.write_all(&answer).await.is_ok() {
                _ = send.finish();
                // Until all of it has arrived.
                _ = send.stopped().await;
            }
        }
        _ => _ = send.reset(FAILED),
    }
    Ok(())
}

/// Asks over a connection.
pub(crate) async fn ask(
    hub: &Hub,
    connection: &Connection,
    bytes: &[u8],
) -> Result<Vec<u8>, String> {
    let lost = |error: &dyn std::fmt::Display| {
        format!("the connection was lost ({error}); it may be tried again")
    };
    let (mut send, mut recv) = connection.open_bi().await.map_err(|error| hub.explain(&error))?;
    let written = send.write_all(bytes).await;
    // Whoever does not want to read all of it may still answer.
    if written.is_ok() {
        _ = send.finish();
    }
    match recv.read_to_end(hub.limits.answer_bytes_max).await {
        Ok(answer) => Ok(answer),
        Err(ReadToEndError::TooLong) => {
            Err("its answer is longer than any may be; do both run the same release?".into())
        }
        Err(ReadToEndError::Read(quinn::ReadError::Reset(BUSY))) => {
            Err("it has too much to do; try again later".into())
        }
        Err(ReadToEndError::Read(quinn::ReadError::Reset(_))) => {
            Err("it could not answer; its own log says why".into())
        }
        Err(ReadToEndError::Read(quinn::ReadError::ConnectionLost(error))) => {
            Err(hub.explain(&error))
        }
        Err(ReadToEndError::Read(error)) => Err(lost(&error)),
    }
}
